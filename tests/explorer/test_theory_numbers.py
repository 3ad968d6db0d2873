"""The explorer's numbers are those of ``l0anneal.theory``, to the error that the page states."""

import math

import pytest

from l0anneal.theory import ReplicaSymmetric, bayes, l1, metastability, phase_diagram

pytestmark = pytest.mark.browser

STATED = 1e-4  # the relative error that docs/explorer/index.html promises
PROBLEMS = (
    (0.75, 0.65, 0.5, 0.0),  # the paper's hard case
    (0.75, 0.55, 0.5, 0.0),  # one branch
    (0.8, 0.4, 0.2, 0.0),  # easy
    (0.75, 0.61, 0.5, 0.0),  # two spinodals above T = 0
    (0.6, 0.55, 0.5, 0.0),  # below the limit of message passing
    (0.75, 0.4, 0.5, 0.0),  # a support that is too small
    (0.435, 0.322, 0.451, 0.0),  # fewer measurements than planted columns
    (0.75, 0.65, 0.5, 1e-5),  # the hard case with noise
    (0.352, 0.297, 0.199, 1e-5),  # noise, and a planted branch on a curve of its own
    (0.75, 0.6, 0.3, 0.01),  # noise, one branch
    (0.9, 0.1, 0.05, 1e-4),  # sparse, with noise
    (0.5, 0.4, 0.3, 0.1),  # much noise
    (0.5, 0.2, 0.0, 1.0),  # no planted signal
    (0.3, 0.1, 0.0, 0.5),  # no planted signal
)
FIELDS = {
    "distortion": "eps",
    "mse": "mse",
    "entropy": "s",
    "free_entropy": "g",
    "at_ratio": "at",
    "precision": "precision",
}
SOLVE = """([temperatures, problem]) => {
  const theory = new L0.Theory(problem);
  const states = temperatures.map((T) => ["cooled", "planted"].map((branch) => theory.at(T, branch)));
  return {
    states, single: theory.single, spinodals: theory.spinodals(), transition: theory.transition(),
    freezing: theory.freezing(), instability: theory.instability(),
  };
}"""


def as_object(problem):
    return dict(zip(("alpha", "rho", "rhoHat", "noise"), problem, strict=True))


def python_state(theory, temperature, branch):
    """Return Python's state, or None where the branch does not exist."""
    try:
        return theory.at(temperature, branch)
    except ValueError:
        return None


def deviation(name, found, expected):
    """Return the relative deviation; an entropy is compared with at least a hundredth of a nat."""
    least = 0.01 if name in ("entropy", "free_entropy", "precision") else 0.0
    return abs(found - expected) / max(abs(expected), least) if found != expected else 0.0


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_states_and_landmarks(page, problem):
    theory = ReplicaSymmetric(*problem[:3], 1.0, problem[3])
    temperatures = [t * theory.variance for t in (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6)]
    here = page.evaluate(SOLVE, [temperatures, as_object(problem)])
    spinodals = theory.spinodals()
    assert here["single"] == (spinodals.planted is None)
    worst, n_states = 0.0, 0
    for temperature, found in zip(temperatures, here["states"], strict=True):
        for branch, state in zip(("cooled", "planted"), found, strict=True):
            if branch == "planted" and problem[2] == 0:
                continue
            expected = python_state(theory, temperature, branch)
            assert (state is None) == (expected is None), (temperature, branch)
            if expected is not None:
                n_states += 1
                for name, key in FIELDS.items():
                    worst = max(worst, deviation(name, state[key], getattr(expected, name)))
    assert n_states >= 6
    transition, frozen, unstable = (
        theory.transition(),
        theory.freezing("cooled"),
        theory.at_instability("cooled"),
    )
    if frozen is not None and frozen.temperature < 1e-11 * theory.variance:
        frozen = None  # the page says that it does not search there
    pairs = [
        (here["spinodals"]["cooling"], spinodals.cooling),
        (here["spinodals"]["planted"], spinodals.planted),
        (here["transition"] and here["transition"]["T"], transition and transition.temperature),
        (here["freezing"] and here["freezing"]["T"], frozen and frozen.temperature),
        (here["freezing"] and here["freezing"]["eps"], frozen and frozen.distortion),
        (here["instability"] and here["instability"]["T"], unstable and unstable.temperature),
    ]
    for found, expected in pairs:
        assert (found is None) == (expected is None), pairs
        if expected is not None:
            worst = max(worst, abs(found / expected - 1.0))
    print(f"largest relative deviation at {problem}: {worst:.1e}")
    assert worst < STATED


def test_recovery_limits(page):
    rho_hat = [0.02, 0.1, 0.3, 0.5, 0.7, 0.95]
    found = page.evaluate("(r) => r.map((r) => [L0.ampLimit(r), L0.l1Limit(r)])", rho_hat)
    expected = phase_diagram(rho_hat)
    for (amp, limit), a, b in zip(
        found, expected.alpha_bayes.values, expected.alpha_l1.values, strict=True
    ):
        assert amp == pytest.approx(a, rel=STATED)
        assert limit == pytest.approx(b, rel=STATED)


def test_rivals_with_noise(page):
    problem = {"alpha": 0.5, "rho": 0.2, "rhoHat": 0.0, "noise": 2.0}
    found = page.evaluate("(p) => L0.l1OnNoise(p)", problem)
    assert found["lasso"] == pytest.approx(l1.distortion(0.5, 0.2, sigma_xi2=2.0), rel=STATED)
    refit = l1.distortion_after_least_squares(0.5, 0.2, sigma_xi2=2.0)
    assert found["refit"] == pytest.approx(refit, rel=STATED)
    problem = {"alpha": 0.6, "rho": 0.3, "rhoHat": 0.2, "noise": 0.1}
    error = bayes.message_passing(0.6, 0.2, sigma_xi2=0.1).mse
    assert page.evaluate("(p) => L0.ampError(p)", problem) == pytest.approx(error, rel=STATED)


@pytest.mark.parametrize(("alpha", "rho_hat"), [(0.75, 0.5), (0.6, 0.5), (0.9, 0.3)])
def test_which_rho_have_a_metastable_state(page, alpha, rho_hat):
    """The page halves an interval of ρ down to 2e-4, on a curve with fewer points than Python's."""
    code = """([alpha, rhoHat]) => {
      const steps = L0.metastability(alpha, rhoHat);
      for (;;) { const { value, done } = steps.next(); if (done) return value; }
    }"""
    found = page.evaluate(code, [alpha, rho_hat])
    expected = metastability(alpha, rho_hat)
    for name in ("onset", "trapped"):
        value, known = found[name], getattr(expected, name)
        assert (value is None) == (known is None), name
        if known is not None:
            assert value == pytest.approx(known, abs=2e-4), name


VERDICTS = {True: "can work", False: "cannot work"}


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p[2] and not p[3]], ids=str)
def test_statements_about_methods_follow_python(page, problem):
    """Without noise, each verdict is a comparison that Python's theory makes."""
    alpha, rho, rho_hat, _ = problem
    spinodals = ReplicaSymmetric(alpha, rho, rho_hat).spinodals()
    trapped = spinodals.planted is not None and spinodals.cooling is None
    expected = {
        "Annealing": alpha > bayes.information_limit(rho_hat) and rho >= rho_hat and not trapped,
        "Bayes": alpha > bayes.amp_threshold(rho_hat),
        "l1": alpha > l1.reconstruction_limit(rho_hat),
        "Exhaustive": alpha > bayes.information_limit(rho_hat),
    }
    for name, value in as_object(problem).items():
        page.fill(f"#{name}", str(value))
    page.wait_for_function("(p) => L0.page.problem.rho === p", arg=rho)
    for method, works in expected.items():
        row = page.locator("#methods li", has_text=method).filter(
            has=page.locator(f"strong:text-matches('^{method}')")
        )
        assert row.locator(".verdict").inner_text() == VERDICTS[works], method


def test_the_page_shows_what_it_computes(page):
    """The table of landmarks has Python's T_c, and the table of states its distortion."""
    theory = ReplicaSymmetric(0.75, 0.65, 0.5)
    shown = page.locator("#landmarks td").first.inner_text().replace("−", "-")
    assert float(shown) == pytest.approx(theory.transition().temperature, rel=STATED)
    page.locator("summary", has_text="The curves as numbers").click()
    rows = page.locator("#numbers tr").all()
    assert len(rows) > 8
    for row in rows:
        cells = [row.locator("th").inner_text(), *row.locator("td").all_inner_texts()]
        temperature, distortion = (float(cells[i].replace("−", "-")) for i in (0, 2))
        state = theory.at(temperature, cells[1])
        assert distortion == pytest.approx(state.distortion, rel=STATED)
        assert math.isclose(float(cells[4].replace("−", "-")), state.entropy, abs_tol=1e-4)
