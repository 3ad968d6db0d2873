"""Ctrl-C, as a real SIGINT to a real process, in everything that takes long."""

import re
import signal

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers.processes import child
from l0anneal import (
    AnnealedSubsetRegressor,
    Schedule,
    SparseProblem,
    anneal,
    ensembles,
    evidence_anneal,
    population_anneal,
    temper,
)
from l0anneal.problem import scaled
from l0anneal.samplers.evidence.posterior import PosteriorChain
from l0anneal.samplers.run import Run
from l0anneal.samplers.tempering.ladder import ReplicaLadder

PROGRAM = """
import warnings
import numpy as np
from sklearn.linear_model import orthogonal_mp
from l0anneal import *
from l0anneal.samplers.evidence.posterior import PosteriorChain
from l0anneal.samplers.run import Run

warnings.simplefilter("ignore")
instance = ensembles.noise_only(120, 0.5, random_state=0)
trap = ensembles.planted(120, 0.6, 0.5, support="fixed", random_state=1).problem
problem, A, y = instance.problem, instance.A, instance.y
rng = np.random.default_rng(0)
signals, atoms = rng.standard_normal((3000, 16)), rng.standard_normal((64, 16))
unit = atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
original = Run.advance


def of_codes(result):
    codes, finished = result
    errors = np.sum((signals - codes @ atoms) ** 2, axis=1)
    pursuit = orthogonal_mp(unit.T, signals.T, n_nonzero_coefs=4).T
    pursued = np.sum((signals - pursuit @ unit) ** 2, axis=1)
    same = np.allclose(errors[~finished], pursued[~finished])
    return finished.any(), (~finished).any(), same, np.all(errors <= pursued * (1 + 1e-9))


def interrupted(name, mark, call, options, found):
    call(False)  # compiled

    def advance(run, *arguments):
        if mark in str(arguments):
            Run.advance = original
            print(f"step of {name}\\n", end="", flush=True)  # one text, as threads may print at once
        original(run, *arguments)

    Run.advance = advance
    try:
        result = call(True, **options)
    except KeyboardInterrupt:
        print("end of", name + ":", "raised", flush=True)
    else:
        print("end of", name + ":", *found(result), flush=True)


"""

ENDLESS = "(10**8 if long else 1)"
SEARCHES = {
    "anneal": f"anneal(problem, 24, Schedule.custom([1.0], {ENDLESS}), **arguments)",
    "anneal, threads": (
        f"anneal(problem, 24, Schedule.custom([1.0], {ENDLESS}), n_chains=3, n_jobs=2, **arguments)"
    ),
    "anneal, adaptive": (
        f"anneal(problem, 24, AdaptiveSchedule(tau={ENDLESS}, mu_max=0.1), n_jobs=2, **arguments)"
    ),
    "kick_search": f"kick_search(problem, 24, n_kicks={ENDLESS}, n_chains=2, n_jobs=2, **arguments)",
    "temper": "temper(problem, 24, n_sweeps=10**8 if long else 2, n_jobs=2, **arguments)",
    "temper, sizes": "temper(problem, sizes=(22, 24), n_sweeps=10**8 if long else 2, **arguments)",
    "population_anneal": (
        f"population_anneal(problem, 24, Schedule.custom([0.0] + [1.0] * ({ENDLESS} // 1000 + 1), 1),"
        " population=20, n_jobs=2, **arguments)"
    ),
    "population_anneal, long": (
        f"population_anneal(problem, 24, Schedule.custom([0.0, 1.0], [1, {ENDLESS}]),"
        " population=20, **arguments)"
    ),
    "evidence_anneal": "evidence_anneal(trap, tau=3000 if long else 1, n_draws=1, **arguments)",
    "evidence_anneal, sampling": (
        f"evidence_anneal(problem, noise_variance=1.0, n_draws={ENDLESS}, **arguments)"
    ),
}
FOUND = (
    "result.interrupted, result.ended.startswith('interrupted'), np.isfinite(result.energy),"
    " len(result.summary()) > 50"
)
RAISING = ["anneal, threads", "kick_search", "temper", "evidence_anneal"]
OTHERS = {
    "path": (
        "subset_path(A[:, :60], y, 20 if long else 2, cv=60 if long else 2, **arguments)",
        "result.interrupted, np.all(np.diff(result.energies) <= 0), 'cv' not in result.criteria",
    ),
    "codes": (
        "sparse_encode(signals, atoms, 4, n_kicks=10**4 if long else 0, random_state=0,"
        " return_finished=True, n_jobs=2, **arguments)",
        "of_codes(result)",
    ),
} | {
    f"fit, {name}": (
        f"AnnealedSubsetRegressor({model}, random_state=0, **arguments).fit({data})",
        "result.interrupted_, np.isfinite(result.predict(A)).all()",
    )
    for name, model, data in (
        ("auto", "'auto', time_limit=1000.0 if long else 0.01", "trap.A, trap.y"),
        ("number", "6, time_limit=1000.0 if long else 0.01", "A, y"),
        ("cv", "'cv', max_nonzero_coefs=40 if long else 2", "A, y"),
    )
}

RETURN = "{'on_interrupt': 'return'}"
CASES = {
    name: ("posterior" if "sampling" in name else "", call, RETURN, f"({FOUND})")
    for name, call in SEARCHES.items()
}
CASES |= {f"{name}, raising": ("", SEARCHES[name], "{}", "['returned']") for name in RAISING}
CASES |= {name: ("", call, RETURN, f"({found})") for name, (call, found) in OTHERS.items()}


@pytest.fixture(scope="module")
def answers():
    """Interrupt one call after the other in a child process; return what each printed, and seconds.

    The child is one for all, because starting Python takes longer than the rest.
    """
    program = PROGRAM + "".join(
        f"interrupted({name!r}, {mark!r}, lambda long, **arguments: {call}, {options},"
        f" lambda result: {found})\n"
        for name, (mark, call, options, found) in CASES.items()
    )
    found = {}
    with child(program) as process:
        for name in CASES:
            process.wait_for(f"step of {name}\n", timeout=300)
            process.interrupt()
            process.wait_for(f"end of {name}:", timeout=60)
            found[name] = process.seconds_since_interrupt
        ended = process.finish(timeout=60)
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 0
    lines = dict(re.findall(r"^end of (.*): (.*)$", ended.stdout, re.M))
    return {name: (lines[name], seconds) for name, seconds in found.items()}


@pytest.mark.parametrize("name", CASES)
def test_ctrl_c_ends_a_call_and_keeps_its_best_so_far(answers, name):
    answer, seconds = answers[name]
    if name.endswith("raising"):
        assert answer == "raised"
    else:
        assert set(answer.split()) == {"True"}
        assert len(answer.split()) >= 2
    assert seconds < 10.0  # some hundredths on a quiet machine


# ---------------------------------------------------------------- at chosen moments, in this process


@pytest.fixture
def press(monkeypatch):
    """Return a function that does what Ctrl-C does, also where SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.getsignal(signal.SIGINT)(signal.SIGINT, None)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def noise():
    return ensembles.noise_only(60, 0.5, random_state=0)


def press_when(monkeypatch, press, owner, name, wanted=lambda arguments: True):
    """Press Ctrl-C just before the first call of a method whose arguments are as wanted."""
    method = getattr(owner, name)
    pressed = []

    def wrapped(*arguments, **options):
        if not pressed and wanted(arguments):
            pressed.append(True)
            press()
        return method(*arguments, **options)

    monkeypatch.setattr(owner, name, wrapped)
    return pressed


def test_a_fit_keeps_its_columns_when_the_probabilities_are_interrupted(noise, monkeypatch, press):
    pressed = press_when(monkeypatch, press, Run, "advance", lambda a: "⟨y²⟩" in str(a[1:]))
    model = AnnealedSubsetRegressor(5, random_state=0, on_interrupt="return")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(noise.A, noise.y)
    whole = AnnealedSubsetRegressor(5, random_state=0).fit(noise.A, noise.y)
    assert pressed
    assert model.interrupted_
    assert model.evidence_ is None
    np.testing.assert_array_equal(model.support_, whole.support_)
    np.testing.assert_array_equal(model.inclusion_probability_ > 0, whole.coef_ != 0)


def test_evidence_returns_where_rows_of_the_gram_matrix_are_missing(noise, monkeypatch, press):
    monkeypatch.setattr(scaled, "WHOLE_GRAM_BYTES", 0)
    problem = SparseProblem(noise.A, noise.y)
    assert press_when(monkeypatch, press, Run, "advance") == []
    result = evidence_anneal(problem, random_state=0, on_interrupt="return")
    assert result.interrupted
    assert result.state == "begun"  # before the first draw there are columns, but no probabilities
    assert np.isnan(result.inclusion_probability).all()
    with pytest.raises(ValueError, match="no draws yet"):
        result.credible_sets()


def test_a_survey_that_is_interrupted_leaves_supports(noise, monkeypatch, press):
    pressed = press_when(monkeypatch, press, ReplicaLadder, "_cooled_energies")
    result = temper(noise.problem, sizes=(3, 6), random_state=0, on_interrupt="return")
    assert pressed
    assert result.interrupted
    assert 3 <= result.support.size <= 6
    assert result.refusals


@pytest.mark.parametrize("sampler", [population_anneal, temper])
def test_a_descent_that_is_interrupted_keeps_the_answer(noise, monkeypatch, press, sampler):
    options = {"population": 10} if sampler is population_anneal else {"n_sweeps": 10}
    pressed = press_when(monkeypatch, press, Run, "polished")
    result = sampler(noise.problem, 6, random_state=0, on_interrupt="return", **options)
    assert pressed
    assert result.interrupted
    assert result.support.size == 6


def test_an_interrupted_schedule_has_the_temperatures_that_were_begun(noise, monkeypatch, press):
    press_when(monkeypatch, press, Run, "advance")
    schedule = Schedule.geometric(0.1, 10.0, n=50, tau=10)
    result = anneal(noise.problem, 6, schedule, random_state=0, on_interrupt="return")
    assert result.interrupted
    assert len(result.schedule) == 2  # the first was completed, the second begun


def test_ctrl_c_before_the_first_draw_returns_the_columns_of_the_cooling(monkeypatch, press):
    press_when(monkeypatch, press, PosteriorChain, "sample")
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 40)), rng.standard_normal(30)
    model = AnnealedSubsetRegressor(on_interrupt="return", random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(A, y)
    assert model.result_.state == "begun"
    assert model.interrupted_
    summary = model.summary()
    assert "there are no probabilities" in summary
    assert "nan" not in summary
