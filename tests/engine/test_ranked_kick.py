"""The walk that weighs the exchanges of one column: its choice, its ranking, its tableau."""

import sys

import numpy as np
import pytest

from helpers.kernels import from_python
from helpers.reference import off_span, qr_energy, random_problem
from l0anneal import SparseProblem
from l0anneal.engine.moves import ranked_kick as module
from l0anneal.engine.moves.protocol import OUTSIDE, SLOT
from l0anneal.engine.moves.ranked_kick import ranked_kick
from l0anneal.engine.moves.walk import (
    CLOCK,
    HUGE,
    KICKS,
    MADE,
    STEPS,
    start_of_walk,
)
from l0anneal.engine.ranking import empty_ranking, fill_ranking
from l0anneal.engine.refresh import drift, refresh
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import CAREFUL, MOVES, Tableau
from l0anneal.engine.workspace import Workspace

choose_step = from_python(module._choose)
read_slots = from_python(module._read_slots)
fill = from_python(fill_ranking)
EPSILON = float(np.finfo(np.float32).eps)


class Walk:
    """A ranked walk on a problem, from given columns."""

    def __init__(self, A, y, support):
        self.workspace = Workspace(SparseProblem(A, y), len(support))
        self.workspace.begin_at(np.asarray(support))
        self.ranking = empty_ranking(A.shape[1], len(support))
        self.marks, self.at = start_of_walk(A.shape[1])
        energy = self.workspace.unit_energy
        self.levels = np.array([energy, -1.0, -1.0])  # no minimum is below the lowest: no descents
        self.state = stream(np.random.SeedSequence(0))

    def go_on(self, stop):
        while self.at[KICKS] < stop:  # a stretch ends when a shake is due
            self.workspace.run(
                ranked_kick, self.state, stop, self.levels, self.marks, self.at, self.ranking
            )


def near_singular(A, support):
    return any(off_span(A, support, i) <= CAREFUL for i in support)


@pytest.mark.parametrize("kind", ["gaussian", "duplicates", "badly scaled"])
@pytest.mark.parametrize("seed", range(6))
def test_the_step_is_that_of_the_column_that_gains_most(kind, seed):
    rng = np.random.default_rng(seed)
    n, inside, now, made = 12, np.array([0, 3, 5, 8]), 10, 4
    A, y = random_problem(rng, n - 3, n, kind)
    walk = Walk(A, y, inside)
    t, unit = walk.workspace.tableau, walk.workspace.problem.unit_energy
    fill(t, walk.ranking)
    read_slots(t)
    marks = np.array([rng.integers(8, 13, n), rng.integers(0, 5, n)])
    until, refused = marks
    inside = t.inside[: inside.size].copy()
    before = qr_energy(A, y, inside)
    gains = {
        j: before - qr_energy(A, y, [*inside, j])
        for j in np.setdiff1d(np.arange(n), inside)
        if until[j] <= now and refused[j] != made
    }
    gains = {j: gain for j, gain in gains.items() if gain > 1e-9 * before}
    for sensation in (-1.0, -1e-3, 0.0):
        at = walk.at.copy()
        change = choose_step(t, marks, now, made, sensation, at, walk.ranking)
        if not gains:
            assert change == HUGE
            continue
        entering = max(gains, key=gains.get)
        changes = {}
        for k in range(inside.size):
            support = inside.copy()
            support[k] = entering
            if off_span(A, support, entering) > CAREFUL:
                changes[k] = (qr_energy(A, y, support) - before) / unit
        permitted = {
            k: value
            for k, value in changes.items()
            if (until[inside[k]] <= now or value < sensation) and abs(value) > 1e-11
        }
        assert (change < HUGE) == bool(permitted)
        if permitted:
            assert t.outside[at[OUTSIDE]] == entering
            assert at[SLOT] in permitted
            assert change == pytest.approx(min(permitted.values()), abs=1e-9)


def ranking_error(walk):
    """Return the largest errors of r and γ in the ranking, and put the right numbers in their place."""
    t, n_inside = walk.workspace.tableau, walk.workspace.size
    r, gamma = walk.ranking.r.copy(), walk.ranking.gamma.copy()
    assert refresh(t)
    fill(t, walk.ranking)
    outside = t.outside[: t.b.size - n_inside]
    return max(
        np.max(np.abs(found[outside] - right[outside]))
        for found, right in ((r, walk.ranking.r), (gamma, walk.ranking.gamma))
    )


@pytest.mark.parametrize(("m", "n", "k"), [(30, 60, 12), (60, 30, 7), (100, 200, 41), (20, 130, 2)])
def test_tableau_and_ranking_follow_the_walk(m, n, k):
    rng = np.random.default_rng(1)
    A, y = rng.standard_normal((m, n)), rng.standard_normal(m)
    walk = Walk(A, y, rng.permutation(n)[:k])
    seen = set()
    for stop in range(1, 13):
        walk.go_on(stop)
        workspace = walk.workspace
        columns = workspace.inside_columns.copy()
        seen.add(tuple(np.sort(columns)))
        assert workspace.energy == pytest.approx(qr_energy(A, y, columns), rel=1e-9)
        unit = A / np.linalg.norm(A, axis=0)
        inverse = np.linalg.inv(unit[:, columns].T @ unit[:, columns])
        np.testing.assert_allclose(workspace.inverse, inverse, rtol=1e-9, atol=1e-9)
        assert sorted([*columns, *workspace.outside_columns]) == list(range(n))
    assert len(seen) > 5  # it moves
    assert drift(walk.workspace.tableau)["coefficients"] < 1e-10
    # each exchange since the last refresh rounds sums of 2 K products, of at most one each
    moves = walk.workspace.tableau.counts[MOVES]
    assert moves >= 20
    bound = EPSILON * moves * np.sqrt(2 * k)
    wrong = walk.ranking.r.copy()
    assert ranking_error(walk) < bound
    walk.go_on(14)  # a control: the ranking of two kicks ago is not that of this support
    walk.ranking.r[:] = wrong
    assert ranking_error(walk) > bound


def test_the_walk_resumes_where_it_stopped():
    rng = np.random.default_rng(2)
    A, y = rng.standard_normal((40, 80)), rng.standard_normal(40)
    at_once, in_steps = (Walk(A, y, np.arange(16)) for _ in range(2))
    at_once.go_on(200)
    for stop in range(1, 201):
        in_steps.go_on(stop)
    np.testing.assert_array_equal(at_once.at, in_steps.at)
    np.testing.assert_array_equal(
        at_once.workspace.inside_columns, in_steps.workspace.inside_columns
    )
    assert at_once.workspace.unit_energy == in_steps.workspace.unit_energy


def test_near_singular_supports_are_left_out():
    """The difference of a column and its neighbour, which lies close to it, fits the signal."""
    rng = np.random.default_rng(3)
    B, E = rng.standard_normal((2, 30, 12))
    A = np.hstack([B, B + 0.02 * E])
    walk = Walk(A, E[:, :4].sum(axis=1), [0, 1, 2, 3, 4, 5])
    supports = set()
    for stop in range(1, 40):
        walk.go_on(stop)
        supports.add(tuple(walk.workspace.support))
        assert not walk.workspace.is_near_singular
        assert not near_singular(A, walk.workspace.support)
    assert len(supports) > 20
    pair = [0, 12, 1, 13, 2, 14]  # what the walk would like best
    assert near_singular(A, pair)
    assert qr_energy(A, E[:, :4].sum(axis=1), pair) < 0.7 * walk.workspace.energy


def test_a_kick_takes_as_long_as_one_of_the_other_walk():
    rng = np.random.default_rng(6)
    walk = Walk(rng.standard_normal((40, 80)), rng.standard_normal(40), np.arange(16))
    walk.go_on(10)
    assert walk.at[CLOCK] == 10 * 3 * STEPS


def test_nothing_may_enter():
    """All columns outside are copies of those inside: random exchanges are tried, and most refused."""
    rng = np.random.default_rng(4)
    B = rng.standard_normal((20, 4))
    walk = Walk(np.hstack([B, B]), rng.standard_normal(20), [0, 1, 2, 3])
    walk.go_on(10)
    assert len({j % 4 for j in walk.workspace.support}) == 4
    assert 1 < walk.at[MADE] < walk.at[CLOCK] // 2


def test_no_reference_to_an_array_is_lost_or_left():
    rng = np.random.default_rng(5)
    walk = Walk(rng.standard_normal((20, 40)), rng.standard_normal(20), np.arange(10))

    def counts():
        t, ranking = walk.workspace.tableau, walk.ranking
        names = [(t, name) for name in Tableau._fields] + [(ranking, n) for n in ranking._fields]
        return [sys.getrefcount(getattr(owner, name)) for owner, name in names]

    before = counts()
    walk.go_on(20)
    assert counts() == before
