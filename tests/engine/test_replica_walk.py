"""Kernels that move many supports through one tableau."""

import numpy as np
import pytest

from helpers.law import LEVEL, counts_p_value
from helpers.reference import enumerate_supports, gibbs_law, random_problem
from l0anneal import SparseProblem, ensembles
from l0anneal.engine.kernel_choice import KERNELS
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, FULL, PROPOSED, new_tally
from l0anneal.engine.refresh import drift
from l0anneal.engine.replica_walk import TRIES, draw, settle, walk
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import STALE
from l0anneal.engine.workspace import Workspace


@pytest.fixture
def problem():
    return ensembles.noise_only(30, 0.6, random_state=0).problem


def streams(n):
    return np.array([stream(seed) for seed in np.random.SeedSequence(1).spawn(n)])


@pytest.mark.parametrize("direct", [False, True])
def test_settle_makes_the_tableau_of_a_support(problem, direct):
    support = np.array([2, 3, 11, 29])
    expected, workspace = Workspace(problem, 4), Workspace(problem, 4)
    expected.begin_at(support)
    assert settle(workspace.tableau, support, direct) == DONE
    np.testing.assert_array_equal(workspace.inside_columns, support)
    np.testing.assert_array_equal(workspace.outside_columns, np.setdiff1d(np.arange(30), support))
    assert workspace.unit_energy == expected.unit_energy
    np.testing.assert_array_equal(workspace.coefficients, expected.coefficients)
    assert workspace.tableau.counts[STALE] == direct
    if not direct:
        assert drift(workspace.tableau)["regressions"] == 0


def test_supports_are_drawn_uniformly_from_the_admissible_ones():
    A, y = random_problem(np.random.default_rng(5), 7, 10, "duplicates")
    supports, at = np.empty((2000, 3), dtype=np.int64), np.zeros(4, dtype=np.int64)
    t = Workspace(SparseProblem(A, y), 3).tableau
    assert draw(t, supports, streams(2000), True, at) == DONE
    assert at[0] == 2000 < at[3]  # some draws were rejected
    known, energies = enumerate_supports(A, y, 3)
    assert counts_p_value(known, gibbs_law(energies, 0.0), supports) > LEVEL


def test_draw_gives_up_where_no_support_is_admissible():
    problem = SparseProblem(np.ones((3, 4)), np.arange(3.0))
    supports, at = np.empty((2, 2), dtype=np.int64), np.zeros(4, dtype=np.int64)
    assert draw(Workspace(problem, 2).tableau, supports, streams(2), True, at) == FULL
    assert at.tolist() == [0, 0, TRIES, TRIES]


@pytest.mark.parametrize("chunk", [7, 1000])
@pytest.mark.parametrize("direct", [False, True])
def test_replicas_walk_as_single_chains_do(problem, direct, chunk):
    starts = np.array([[0, 1, 2], [3, 9, 20], [7, 8, 29]])
    supports, states = starts.copy(), streams(3)
    lasts, means, tally = np.empty(3), np.empty(3), np.zeros(4, dtype=np.int64)
    pauses, at = [], np.zeros(6, dtype=np.int64)
    workspace = Workspace(problem, 3)
    workspace.pause = lambda: pauses.append(True)
    workspace.run(walk, supports, states, 20.0, 4, chunk, direct, lasts, means, tally, at)
    assert len(pauses) == 3 * (-(-120 // chunk) - 1)
    accepted = 0
    for i, state in enumerate(streams(3)):
        workspace, energies, own = Workspace(problem, 3), np.empty(4), new_tally()
        assert settle(workspace.tableau, starts[i], direct) == DONE
        kernel = KERNELS["pair flip, direct" if direct else "pair flip"]
        workspace.run(kernel, state, 20.0, 120, energies, own)
        np.testing.assert_array_equal(supports[i], workspace.support)
        np.testing.assert_array_equal(states[i], state)
        assert lasts[i] == energies[-1]
        assert means[i] == pytest.approx(energies.mean(), rel=1e-14)
        accepted += own[ACCEPTED]
    assert tally[PROPOSED] == 360
    assert 0 < tally[ACCEPTED] == accepted
