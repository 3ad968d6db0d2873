"""Moves: their energies, and the properties that all of them share."""

import itertools
import sys

import numpy as np
import pytest

from helpers.kernels import from_python
from helpers.reference import admissible, off_span, qr_energy, random_problem
from helpers.results import assert_same
from l0anneal import Schedule, SparseProblem, anneal, ensembles
from l0anneal.engine import tableau
from l0anneal.engine.kernel_choice import KERNELS, MOVES
from l0anneal.engine.moves import kick, row, walk
from l0anneal.engine.moves.multi_flip import MOST_PAIRS, _exchange
from l0anneal.engine.moves.multi_flip import delta_exchange as _delta_exchange
from l0anneal.engine.moves.protocol import ACCEPTED, OUTSIDE, PROPOSED, SLOT, new_tally
from l0anneal.engine.refresh import drift
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import CAREFUL, SINGULARITY, Tableau
from l0anneal.engine.workspace import Workspace
from l0anneal.problem import scaled as problem_module

exchange = from_python(_exchange)
delta_exchange = from_python(_delta_exchange)
choose_step = from_python(kick._choose)
joins_easily = from_python(row.joins_easily)
slot_terms = from_python(row.slot_terms)
swap_row = from_python(row.swap_row)
delta_swap = from_python(tableau.delta_swap)

SHORT = Schedule.geometric(0.1, 1e3, n=30, tau=3)


@pytest.fixture(scope="module")
def instance():
    return ensembles.noise_only(40, 0.6, random_state=0)


def at_support(A, y, support):
    workspace = Workspace(SparseProblem(A, y), len(support))
    workspace.begin_at(np.asarray(support))
    return workspace


@pytest.mark.parametrize("move", KERNELS)
def test_no_reference_to_an_array_is_lost_or_left(instance, move):
    """Most kernels do not count references, so that a mistake would free an array or never free it."""
    workspace = Workspace(instance.problem, 10)
    workspace.fill(10, np.arange(40))

    def counts():
        return {name: sys.getrefcount(getattr(workspace.tableau, name)) for name in Tableau._fields}

    before = counts()
    for mu in (0.0, 1e4):
        tally = new_tally(n_pairs=3)
        workspace.run(KERNELS[move], stream(np.random.SeedSequence(0)), mu, 40, np.zeros(1), tally)
    assert counts() == before


@pytest.mark.parametrize("kind", ["gaussian", "duplicates", "barely independent"])
def test_a_row_of_energies_agrees_with_single_energies(kind):
    """Whether K + 1 columns are well conditioned does not depend on which one is outside."""
    A, y = random_problem(np.random.default_rng(8), 7, 10, kind)
    answers = {}
    for support in itertools.combinations(range(10), 3):
        if not admissible(A, support):
            continue
        t = at_support(A, y, support).tableau
        freed, lost, room, delta = np.empty((4, 3))
        slot_terms(t, freed, lost, room)
        for p in range(7):
            columns = [*t.inside, t.outside[p]]
            easy = joins_easily(t, p, room)
            assert easy == all(off_span(A, columns, j) > CAREFUL for j in columns)
            answers.setdefault(frozenset(columns), set()).add(easy)
            if t.values[SINGULARITY] * CAREFUL < 1.0:
                swap_row(t, p, freed, lost, delta)
                expected = [delta_swap(t, k, p) for k in range(3)]
                np.testing.assert_allclose(delta, expected, rtol=1e-9, atol=1e-12)
                assert np.isfinite(delta).all() or not easy
    assert all(len(answer) == 1 for answer in answers.values())
    assert ({False} in answers.values()) == (kind != "gaussian")


@pytest.mark.parametrize("kind", ["gaussian", "correlated", "duplicates"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_energy_of_a_multiple_exchange_is_that_of_qr(kind, n):
    rng = np.random.default_rng(n)
    A, y = random_problem(rng, 12, 16, kind)
    scratch = np.empty((4, 8, 8))
    made = np.zeros(50)
    for trial in range(50):
        workspace = Workspace(SparseProblem(A, y), 6)
        workspace.fill(6, rng.permutation(16))
        t = workspace.tableau
        slots, outs = rng.permutation(6)[:n], rng.permutation(10)[:n]
        before, after = t.inside.copy(), t.inside.copy()
        after[slots] = t.outside[outs]
        delta = delta_exchange(t, slots, outs, scratch) * workspace.problem.unit_energy
        made[trial] = exchange(t, slots, outs)
        assert made[trial] == admissible(A, after)
        assert sorted(t.inside) == sorted(after if made[trial] else before)
        energy = qr_energy(A, y, t.inside)
        assert workspace.energy == pytest.approx(energy, rel=1e-9)
        if made[trial]:
            assert delta == pytest.approx(energy - qr_energy(A, y, before), abs=1e-9)
        assert drift(t)["regressions"] < 1e-9
    assert made.sum() >= 10
    assert made.all() == (kind != "duplicates")


def test_an_exchange_of_several_pairs_to_a_near_singular_support_is_refused():
    A = np.eye(4, 6)
    A[:, 4] = [1.0, 0.01, 0.0, 0.0]  # near-singular with column 0, but admissible
    A[:, 5] = [1.0, 1e-5, 0.0, 0.0]  # not admissible with column 0
    y = np.arange(1.0, 5.0)
    workspace = at_support(A, y, [1, 2])
    t = workspace.tableau
    position = {int(j): p for p, j in enumerate(t.outside[:4])}
    slots = np.array([0, 1])
    for pair in ([0, 4], [0, 5]):
        outs = np.array([position[j] for j in pair])
        assert np.isinf(delta_exchange(t, slots, outs, np.empty((4, 3, 2))))
        assert exchange(t, slots, outs) == 0
        assert workspace.support.tolist() == [1, 2]
        assert workspace.energy == pytest.approx(qr_energy(A, y, [1, 2]), rel=1e-12)
    assert exchange(t, slots, np.array([position[0], position[3]])) == 1
    assert workspace.support.tolist() == [0, 3]


@pytest.mark.parametrize("move", MOVES)
def test_a_seed_gives_one_result(instance, move):
    """The number of threads and the observation of single sweeps change nothing."""
    arguments = {"move": move, "n_pairs": 3, "n_chains": 3, "random_state": 7}
    first = anneal(instance.problem, 8, SHORT, **arguments)
    threads = anneal(instance.problem, 8, SHORT, n_jobs=3, **arguments)
    watched = anneal(
        instance.problem,
        8,
        SHORT,
        keep_samples=True,
        observables={"largest": np.max},
        **arguments,
    )
    for other in (threads, watched):
        assert_same(first, other)
        np.testing.assert_array_equal(first.kernels, other.kernels)
    energy = qr_energy(instance.A, instance.y, first.support)
    assert first.energy == pytest.approx(energy, rel=1e-9)
    assert (first.move, first.n_pairs) == (move, 3)
    assert set(first.kernels.ravel()) <= set(MOVES[move])


def test_the_moves_are_different_chains(instance):
    runs = [anneal(instance.problem, 8, SHORT, move=move, random_state=7) for move in MOVES]
    for a, b in itertools.combinations(runs, 2):
        assert not np.array_equal(a.mean_energy, b.mean_energy)


@pytest.mark.parametrize("move", MOVES)
def test_gram_rows_on_demand_give_the_same_chain(instance, move, monkeypatch):
    arguments = {"move": move, "n_pairs": MOST_PAIRS, "random_state": 1}
    expected = anneal(instance.problem, 8, SHORT, **arguments)
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    for cache, columns in ((0, 0), (20 * 40 * 8, 10**6)):
        monkeypatch.setattr(problem_module, "ROW_CACHE_BYTES", cache)
        monkeypatch.setattr(problem_module, "COLUMN_BYTES", columns)
        problem = SparseProblem(instance.A, instance.y)
        assert not problem.gram_is_whole
        result = anneal(problem, 8, SHORT, **arguments)
        np.testing.assert_array_equal(result.support, expected.support)
        np.testing.assert_array_equal(result.acceptance, expected.acceptance)
        np.testing.assert_allclose(result.mean_energy, expected.mean_energy, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("n", "alpha", "k"), [(40, 0.6, 8), (40, 0.6, 11), (12, 2.0, 9)])
def test_an_interrupted_kernel_resumes_where_it_stopped(n, alpha, k, kernel):
    """Nor does it matter whether a kernel can look ahead to the next proposal."""
    instance = ensembles.noise_only(n, alpha, random_state=0)

    def run(stops):
        workspace = Workspace(instance.problem, k)
        workspace.fill(k, np.arange(n))
        tally, energies = new_tally(), np.zeros(400 // n)
        state = stream(np.random.SeedSequence(3))
        for stop in stops:
            workspace.run(KERNELS[kernel], state, 40.0, stop, energies, tally)
            assert tally[PROPOSED] == stop
        return workspace.support, energies, tally[ACCEPTED]

    whole, parts = run([400]), run(range(1, 401))
    for a, b in zip(whole, parts):
        np.testing.assert_array_equal(a, b)
    assert 0 < whole[2] < 400
    assert np.all(whole[1] < 0)  # relative to the empty support


def test_a_refresh_while_the_next_proposal_is_drawn_changes_no_bit():
    """Powers of one variable are near-singular supports, whose tableau is refreshed every few moves."""
    rng = np.random.default_rng(0)
    A = np.vander(rng.uniform(-1.0, 1.0, 40), 24)
    problem = SparseProblem(A, rng.standard_normal(40))

    def run(stops):
        workspace = Workspace(problem, 7)
        workspace.fill(7, np.arange(0, 24, 2))
        tally, energies = new_tally(), np.zeros(125)
        state = stream(np.random.SeedSequence(3))
        for stop in stops:
            workspace.run(KERNELS["pair flip, direct"], state, 0.5, stop, energies, tally)
        return workspace, energies

    (whole, energies), (parts, energies_of_parts) = run([3000]), run(range(1, 3001))
    assert whole.refreshes > 100
    np.testing.assert_array_equal(energies, energies_of_parts)
    np.testing.assert_array_equal(whole.inside_columns, parts.inside_columns)
    np.testing.assert_array_equal(whole.inverse, parts.inverse)
    assert whole.refreshes == parts.refreshes


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("k", [0, 1, 7, 8])
def test_supports_of_no_column_one_column_and_nearly_all_columns(move, k):
    A, y = random_problem(np.random.default_rng(0), 10, 8)
    result = anneal(SparseProblem(A, y), k, SHORT, move=move, random_state=0)
    best = min(qr_energy(A, y, s) for s in itertools.combinations(range(8), k))
    assert result.energy == pytest.approx(best, rel=1e-9)
    assert anneal(SparseProblem(A, 0 * y), k, SHORT, move=move, random_state=0).energy == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"move": "swap"}, "move must be one of .*; got 'swap'"),
        ({"n_pairs": 0}, "n_pairs must be an integer between 1 and 8; got 0"),
        ({"n_pairs": 9}, "n_pairs must be an integer between 1 and 8; got 9"),
        ({"n_pairs": 1.5}, "n_pairs must be an integer between 1 and 8; got 1.5"),
    ],
)
def test_bad_arguments(instance, arguments, message):
    with pytest.raises(ValueError, match=message):
        anneal(instance.problem, 8, SHORT, **arguments)


@pytest.mark.parametrize("kind", ["gaussian", "duplicates", "badly scaled"])
@pytest.mark.parametrize(
    ("n", "inside", "seed"),
    [(12, [0, 3, 5, 8], seed) for seed in range(8)] + [(30, [*range(8, 27)], 0)],
)
def test_the_step_of_a_walk_is_the_best_that_is_allowed(kind, n, inside, seed):
    """Compare with all exchanges; columns that may not move do so for a sensation only."""
    rng = np.random.default_rng(seed)
    A, y = random_problem(rng, n - 3, n, kind)
    workspace = at_support(A, y, inside)
    t, now = workspace.tableau, 10
    marks = np.array([rng.integers(8, 13, n), rng.integers(0, 5, n)])
    until, refused = marks
    before = qr_energy(A, y, workspace.inside_columns)
    changes = {}
    for k, p in itertools.product(range(len(inside)), range(n - len(inside))):
        support = workspace.inside_columns.copy()
        support[k] = t.outside[p]
        if admissible(A, support):
            change = (qr_energy(A, y, support) - before) / workspace.problem.unit_energy
            changes[k, p] = change, until[t.inside[k]] <= now, until[t.outside[p]] <= now
    ordered = sorted(change for change, _, _ in changes.values())
    for sensation in (-1.0, *ordered[1:4]):
        permitted = {
            pair: change
            for pair, (change, may_leave, may_enter) in changes.items()
            if ((may_leave and may_enter) or change < sensation - 1e-12)
            and refused[t.outside[pair[1]]] != 4
            and abs(change) > 1e-11
        }
        at = walk.start_of_walk(n)[1]
        change = choose_step(t, marks, now, 4, sensation, at)
        assert (change < walk.HUGE) == bool(permitted)
        if permitted:
            pair = at[SLOT], at[OUTSIDE]
            assert change == pytest.approx(changes[pair][0], abs=1e-9)
            assert pair in permitted
            assert change == pytest.approx(min(permitted.values()), abs=1e-9)
        # what was good at an earlier step changes nothing, whether it is good or even possible now
        chosen = at[: OUTSIDE + 1].tolist()
        for largest in (None, 3, n, 5 * n):
            if largest is not None:
                at[walk.N_GOOD] = walk.GOOD + 3
                at[walk.N_GOOD + 1 :] = rng.integers(0, largest, 2 * walk.GOOD)
            assert choose_step(t, marks, now, 4, sensation, at) == change
            assert at[: OUTSIDE + 1].tolist() == chosen
    assert not all(may_leave and may_enter for _, may_leave, may_enter in changes.values())
