import itertools
import time
from itertools import combinations

import numpy as np
import pytest

from l0anneal import KickResult, SparseProblem, diagnose, ensembles, kick_search
from l0anneal.engine.moves.kick import kick
from l0anneal.engine.moves.walk import BEST, RANKED, start_of_walk
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from l0anneal.problem import scaled as problem_module
from l0anneal.samplers.kicks import search
from l0anneal.samplers.kicks.walk import TRIAL, Walk
from l0anneal.samplers.run import Run, RunStopped


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_best_of_all_supports(seed):
    rng = np.random.default_rng(seed)
    problem = SparseProblem(rng.standard_normal((8, 12)), rng.standard_normal(8))
    for k in (1, 3, 5):
        best = min(problem.energy(list(S)) for S in combinations(range(12), k))
        result = kick_search(problem, k, n_kicks=200, random_state=seed)
        assert result.energy == pytest.approx(best, rel=1e-9)
        x, energy = problem.least_squares(result.support)
        np.testing.assert_array_equal(result.coef[result.support], x)
        assert result.energy == energy


@pytest.fixture(scope="module")
def noise():
    return ensembles.noise_only(100, 0.5, random_state=3).problem


def test_it_never_ends_above_where_it_began(noise):
    start = kick_search(noise, 20, n_kicks=0, random_state=0)
    short = kick_search(noise, 20, n_kicks=30, random_state=0)
    long = kick_search(noise, 20, n_kicks=300, random_state=0)
    assert long.energy <= short.energy <= start.energy
    assert long.energy < start.energy
    # a descent has ended: no exchange of one column lowers the energy
    for i in long.support:
        others = np.setdiff1d(np.arange(100), long.support)
        rest = np.setdiff1d(long.support, [i])
        assert all(noise.energy([*rest, j]) >= long.energy * (1 - 1e-9) for j in others[::7])
    again = kick_search(noise, 20, n_kicks=0, initial_support=long.support)
    assert again.energy == long.energy


def test_one_seed_one_result(own_time, noise, tmp_path):
    first = kick_search(noise, 20, n_kicks=50, n_chains=3, random_state=5)
    threads = kick_search(noise, 20, n_kicks=50, n_chains=3, n_jobs=2, random_state=5)
    np.testing.assert_array_equal(first.chain_supports, threads.chain_supports)
    timed = kick_search(noise, 20, n_chains=2, time_limit=0.2, random_state=5)
    replayed = kick_search(noise, 20, n_chains=2, n_kicks=timed.n_kicks, random_state=5)
    np.testing.assert_array_equal(timed.chain_supports, replayed.chain_supports)
    assert not np.array_equal(
        first.chain_supports[1],
        kick_search(noise, 20, n_chains=2, random_state=6).chain_supports[1],
    )
    first.save(tmp_path / "r.npz")
    loaded = KickResult.load(tmp_path / "r.npz")
    for name in first.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(first, name))
    assert "kicks        50, 50, 50" in loaded.summary()


@pytest.fixture
def walks(monkeypatch):
    """All walks that are begun."""
    begun = []

    class Kept(Walk):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            begun.append(self)

    monkeypatch.setattr(search, "Walk", Kept)
    return begun


def test_when_the_clock_is_read_changes_nothing(noise, walks, monkeypatch):
    first = kick_search(noise, 20, n_kicks=400, n_chains=2, random_state=5)
    monkeypatch.setattr(search, "PAUSE", 1e-9)  # one kick at a time
    again = kick_search(noise, 20, n_kicks=400, n_chains=2, random_state=5)
    np.testing.assert_array_equal(first.chain_supports, again.chain_supports)
    for one, other in zip(walks[:2], walks[2:], strict=True):
        assert one.n_stretches == other.n_stretches
        assert one.total == other.total
        assert min(one.n_stretches.values()) > 0  # both walks were tried


def test_a_run_that_is_cut_anywhere_replays(walks, monkeypatch):
    """The clock runs out after each call of `go_on` in which the faster walk found a new minimum."""
    problem = ensembles.noise_only(300, 0.5, random_state=8).problem
    go_on, calls = Walk.go_on, {}

    def cut_go_on(walk, stop):
        lowest = walk.levels[BEST]
        go_on(walk, stop)
        calls["made"] += 1
        if walk.ranked and walk.levels[BEST] < lowest:
            calls["found"].append(calls["made"])

    def kicked(cut, **options):
        calls.update(made=0, found=[], cut=cut)
        return kick_search(problem, 45, random_state=0, **options)

    monkeypatch.setattr(search, "PAUSE", 1e-9)  # one kick at a time
    monkeypatch.setattr(Walk, "go_on", cut_go_on)
    monkeypatch.setattr(Run, "now", lambda run: 0.98e6 if calls["made"] >= calls["cut"] else 0.0)
    kicked(np.inf, n_kicks=800)
    cuts = list(calls["found"])
    assert len(cuts) >= 3
    for cut in cuts:
        timed = kicked(cut, n_kicks=800, time_limit=1e6)
        assert timed.n_kicks[0] < 800
        again = kicked(np.inf, n_kicks=timed.n_kicks)
        np.testing.assert_array_equal(again.support, timed.support)


def test_the_ranking_is_that_of_the_present_support(monkeypatch):
    """The descents that the faster walk asks for change the support without the ranking."""
    problem = ensembles.noise_only(300, 0.5, random_state=8).problem
    go_on, after = Walk._go_on_ranked, []

    def checked(walk, stop):
        go_on(walk, stop)
        after.append(walk.at[RANKED])
        if walk.at[RANKED]:
            position, workspace = walk.ranking.position, walk.workspace
            assert np.all(position[workspace.inside_columns] == -1)
            assert np.all(position[workspace.outside_columns] == np.arange(255))

    monkeypatch.setattr(Walk, "_go_on_ranked", checked)
    kick_search(problem, 45, n_kicks=800, random_state=0)
    assert set(after) == {0, 1}


def test_interrupted_batches_count_as_not_begun(walks, monkeypatch):
    problem = ensembles.noise_only(300, 0.5, random_state=8).problem
    descend, descents = Workspace.descend, itertools.count()

    def interrupted(workspace):
        if next(descents) == 4:
            raise RunStopped
        return descend(workspace)

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "descend", interrupted)
        stopped = kick_search(problem, 45, n_kicks=800, random_state=0)
    assert next(descents) > 4
    assert 0 < stopped.n_kicks[0] < 800
    again = kick_search(problem, 45, n_kicks=stopped.n_kicks, random_state=0)
    np.testing.assert_array_equal(again.support, stopped.support)


def test_a_search_without_dominant_columns_has_marks_of_its_own(walks):
    """The kernels must not look at columns that the remaining problem does not have."""
    rng = np.random.default_rng(0)
    A = np.ones((90, 2128))
    A[:, :2000] *= rng.random(2000) + 0.5
    A[:, 2000:] = rng.standard_normal((90, 128))
    problem = SparseProblem(A, 1e7 + rng.standard_normal(90))
    result = kick_search(problem, 30, n_kicks=2000, random_state=0)
    assert np.sum(result.support < 2000) == 1
    (walk,) = walks
    assert walk.marks.shape[1] == walk.workspace.problem.n_columns < 2128
    assert result.energy == pytest.approx(problem.energy(result.support))


def test_the_faster_walk_does_not_start_from_near_singular_supports(monkeypatch):
    """The descent that it asks for may lead to two columns that are nearly the same."""
    rng = np.random.default_rng(22)
    m, n, k = 60, 80, 16
    close = 10 ** rng.uniform(-2.8, -2.0)
    B, E = rng.standard_normal((m, n)), rng.standard_normal((m, n))
    chosen = rng.permutation(n)[:k]
    y = E[:, chosen[:6]].sum(axis=1) + 0.2 * B[:, chosen[6:]].sum(axis=1)
    problem = SparseProblem(np.hstack([B, B + close * E]), y + 0.1 * rng.standard_normal(m))
    starts, ends = [], []
    go_on = Walk._go_on_ranked

    def watched(walk, stop):
        starts.append(walk.workspace.is_near_singular)
        go_on(walk, stop)
        ends.append(walk.workspace.is_near_singular)

    monkeypatch.setattr(Walk, "_go_on_ranked", watched)
    kick_search(problem, k, n_kicks=8000, n_chains=3, random_state=22)
    assert any(ends)  # or there is nothing to test
    assert not any(starts)


@pytest.mark.parametrize("incoherent", [True, False])
def test_the_walk_that_comes_lower_goes_on(incoherent, walks):
    """`kick` finds more on overcomplete cosines, and `ranked_kick` goes farther on random columns."""
    rng = np.random.default_rng(0)
    if incoherent:
        problem = ensembles.noise_only(200, 0.5, random_state=1).problem
    else:
        A = np.cos(np.pi * (np.arange(48)[:, None] + 0.5) * np.arange(144) / 144)
        problem = SparseProblem(A, np.cumsum(rng.standard_normal(48)))
    kick_search(problem, 20, n_kicks=6000, random_state=0)
    made, total = walks[0].n_stretches, walks[0].total
    assert made[incoherent] > made[not incoherent] >= sum(made.values()) // TRIAL > 1
    assert total[incoherent] / made[incoherent] < total[not incoherent] / made[not incoherent]


def test_supports_stay_independent_on_a_coherent_dictionary():
    """Nearly every support of this size is near-singular."""
    A = np.cos(np.pi * (np.arange(64)[:, None] + 0.5) * np.arange(256) / 256)
    y = np.cumsum(np.random.default_rng(79).standard_normal(64))
    problem = SparseProblem(A, y)
    result = kick_search(problem, 32, n_kicks=1500, n_chains=2, random_state=0)
    assert np.linalg.matrix_rank(A[:, result.support]) == 32
    assert result.energy == pytest.approx(problem.energy(result.support), rel=1e-9)
    assert result.energy < kick_search(problem, 32, n_kicks=0).energy


def test_rows_on_demand_find_the_same(noise, monkeypatch):
    whole = kick_search(noise, 10, n_kicks=100, random_state=0)
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr(problem_module, "ROW_CACHE_BYTES", 20 * 8 * 100)  # rows have to make way
    rows = SparseProblem(noise.A, noise.y)
    assert not rows.gram_is_whole
    assert kick_search(rows, 10, n_kicks=100, random_state=0).energy == pytest.approx(
        whole.energy, rel=1e-9
    )


def test_an_exact_fit_ends_the_search():
    instance = ensembles.planted(100, 0.7, 0.1, support="fixed", random_state=0)
    result = kick_search(instance.problem, 10, n_kicks=10**9, random_state=0)
    np.testing.assert_array_equal(result.support, instance.support)
    again = kick_search(instance.problem, 10, n_kicks=10**6, random_state=0)
    np.testing.assert_array_equal(again.n_kicks, result.n_kicks)  # not a matter of the clock
    assert kick_search(instance.problem, 10, n_kicks=3, time_limit=60.0).n_kicks[0] <= 3
    verdict = diagnose(result, instance.problem)
    assert verdict.verdict == "exact"


def test_chains_are_judged(noise):
    two = kick_search(noise, 20, n_kicks=2, n_chains=2, random_state=0)
    assert diagnose(two).verdict in ("trapped", "doubtful")
    alone = kick_search(noise, 20, n_kicks=2, random_state=0)
    assert diagnose(alone).verdict == "unknown"
    compared = diagnose(alone, noise)
    assert "second chain" in compared.reasons[0]
    assert np.isfinite(compared.disagreement)


@pytest.mark.parametrize("k", [0, 1, 12])
def test_sizes_at_the_ends(k):
    rng = np.random.default_rng(0)
    problem = SparseProblem(rng.standard_normal((20, 12)), rng.standard_normal(20))
    result = kick_search(problem, k, n_kicks=20, random_state=0)
    assert result.support.size == k
    assert result.energy == pytest.approx(problem.energy(result.support))


def test_duplicates_and_zeros_are_passed_over():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 10))
    A = np.hstack((A, A[:, :5], np.zeros((30, 2))))
    problem = SparseProblem(A, rng.standard_normal(30))
    result = kick_search(problem, 8, n_kicks=50, random_state=0)
    assert np.linalg.matrix_rank(A[:, result.support]) == 8
    with pytest.raises(ValueError, match="exceeds the rank"):
        kick_search(problem, 11, n_kicks=5)


def test_a_greedy_start_that_leads_nowhere_is_given_up():
    angles = np.array([-2e-4, 0.0, 2e-4])  # the first choice is the middle one: nothing joins it
    problem = SparseProblem(np.vstack((np.cos(angles), np.sin(angles))), [1.0, 0.0])
    assert kick_search(problem, 2, n_kicks=1, random_state=0).support.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_nonzero": 101}, "between 0 and N"),
        ({"n_kicks": -1}, "n_kicks"),
        ({"n_kicks": [1, 2, 3], "n_chains": 2}, "one number per chain, 2; got 3"),
        ({"n_chains": 0}, "n_chains"),
        ({"time_limit": 0}, "time_limit"),
        ({"initial_support": [1, 1, 2]}, "at most once"),
        ({"on_interrupt": "ignore"}, "on_interrupt"),
    ],
)
def test_bad_arguments(noise, arguments, message):
    with pytest.raises(ValueError, match=message):
        kick_search(noise, **{"n_nonzero": 3} | arguments)


def places(A, y, k, n_kicks):
    """Return the supports after each kick of a walk from the greedy minimum."""
    workspace = Workspace(SparseProblem(A, y), k)
    workspace.fill_greedily(k)
    workspace.descend()
    levels = np.array([workspace.unit_energy, workspace.unit_energy, -10.0])
    state, best = stream(np.random.SeedSequence(0)), workspace.support
    marks, at = start_of_walk(A.shape[1])
    seen = set()
    for stop in range(1, n_kicks + 1):
        workspace.run(kick, state, stop, levels, best, marks, at)
        seen.add(tuple(workspace.support))
    return seen


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7, 8, 12, 15, 16, 40])
def test_the_walk_leaves_its_minimum(k):
    problem = ensembles.noise_only(200, 0.5, random_state=1).problem
    assert len(places(problem.A, problem.y, k, 40)) >= 10


@pytest.mark.parametrize("k", [8, 16, 32])
def test_the_walk_passes_over_copies(k):
    B = np.random.default_rng(0).standard_normal((80, 101))
    seen = places(np.hstack([B[:, :100], B[:, :100]]), B[:, 100], k, 40)
    assert len({tuple(sorted(j % 100 for j in support)) for support in seen}) >= 15


@pytest.mark.parametrize("seed", range(4))
def test_the_walk_is_not_stopped_by_an_exchange_that_is_refused(seed):
    """Column 2 would gain most, but columns 0 and 1 are then almost dependent."""
    rng = np.random.default_rng(seed)
    A = np.zeros((60, 100))
    A[0, 0] = 1.0
    A[:2, 1] = np.cos(0.05), np.sin(0.05)
    A[1:3, 2] = 1.0, np.sqrt(1e-5)
    A[3:, 3:] = rng.standard_normal((57, 97))
    y = np.concatenate([[1.0, 1.0, -0.5], 0.3 * rng.standard_normal(57)])
    assert len(places(A, y, 20, 60)) >= 15


def test_the_best_support_is_a_minimum():
    for seed in range(60):
        problem = ensembles.noise_only(120, 0.7, random_state=seed).problem
        found = kick_search(problem, 32, n_kicks=1 + seed % 3, random_state=seed)
        again = kick_search(problem, 32, n_kicks=0, initial_support=found.support)
        assert again.energy == found.energy


def test_a_search_that_ends_in_an_exact_fit_replays():
    ends = []
    for seed in range(12):
        problem = ensembles.planted(60, 0.5, 0.22, support="fixed", random_state=seed).problem
        first = kick_search(problem, 13, n_kicks=3000, random_state=0)
        again = kick_search(problem, 13, n_kicks=first.n_kicks, random_state=0)
        np.testing.assert_array_equal(again.support, first.support)
        assert again.ended == first.ended
        ends.append(int(first.n_kicks[0]))
    assert any(0 < end < 3000 for end in ends)  # exact, and not from the beginning


def test_a_kick_that_is_cut_replays(monkeypatch):
    """The clock runs out while the walk waits for a row of the Gram matrix."""
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr(problem_module, "ROW_CACHE_BYTES", 0)
    start = np.arange(0, 80, 5)
    for seed in range(6):
        noise = ensembles.noise_only(120, 0.6, random_state=seed).problem
        problem = SparseProblem(noise.A, noise.y)
        seconds = iter(np.arange(0.0, 1e6, 0.02))  # each look at the clock takes this long
        with monkeypatch.context() as patch:
            patch.setattr(time, "perf_counter", lambda seconds=seconds: float(next(seconds)))
            timed = kick_search(
                problem, 16, time_limit=4.0 + 0.3 * seed, random_state=seed, initial_support=start
            )
        again = kick_search(
            problem, 16, n_kicks=timed.n_kicks, random_state=seed, initial_support=start
        )
        np.testing.assert_array_equal(again.support, timed.support)
