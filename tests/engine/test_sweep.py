"""The loop over sweeps."""

import numpy as np
import pytest

from l0anneal import SparseProblem, ensembles
from l0anneal.engine.moves import pair_flip
from l0anneal.engine.moves.protocol import ACCEPTED, PROPOSED
from l0anneal.engine.rng import stream
from l0anneal.engine.sweep import LONGER, Mover, Sweeps
from l0anneal.engine.workspace import Workspace


class SmallChunks(Workspace):
    """A workspace whose kernels return after every 7 proposals."""

    def chunk(self, direct=False):
        return 7


def sweeps(kind=Workspace, mu=40.0, **options):
    problem = ensembles.noise_only(40, 0.6, random_state=0).problem
    workspace = kind(problem, 8)
    workspace.fill(8, np.arange(40))
    state = stream(np.random.SeedSequence(3))
    return Sweeps(workspace, pair_flip, state, mu, n_sweeps=5, **options)


def test_the_way_of_running_changes_no_number():
    expected = sweeps()
    expected.all()
    assert expected.tally[PROPOSED] == 200
    assert 0 < expected.tally[ACCEPTED] < 200
    assert expected.acceptance == expected.tally[ACCEPTED] / 200
    for kind in (Workspace, SmallChunks):
        for step in (False, True):
            run = sweeps(kind)
            if step:
                assert list(run.each()) == [1, 2, 3, 4, 5]
            else:
                run.all()
            np.testing.assert_array_equal(run.energies, expected.energies)
            np.testing.assert_array_equal(run.tally, expected.tally)
            np.testing.assert_array_equal(run.workspace.support, expected.workspace.support)


def test_energies_are_those_after_each_sweep():
    run = sweeps()
    for done in run.each():
        assert run.energies[done - 1] == run.workspace.unit_energy
        assert not run.energies[done:].any()
    assert len(set(run.energies)) > 1


def test_progress_counts_completed_sweeps():
    counts = []
    sweeps(SmallChunks, mu=0.0).all(counts.append)
    assert sum(counts) == 5
    assert len(counts) == 200 // 7 + 1


def test_chunks_are_longer_where_few_proposals_are_accepted():
    """The first chunk is short unless few acceptances are expected, and all are short in a hot run."""

    def lengths(mu, few=False):
        run = sweeps(SmallChunks, mu=mu, few=few)
        if mu > 0.0:
            run.workspace.descend()
        ends = [0]
        run.workspace.pause = lambda: ends.append(int(run.tally[PROPOSED]))
        run.all()
        return np.diff(ends)[:3].tolist()

    assert lengths(1e15) == [7, 7, 7 * LONGER]  # seven rejections are too few to tell
    assert lengths(1e15, few=True) == [7 * LONGER, 7 * LONGER, 7 * LONGER]
    assert lengths(0.0) == [7, 7, 7]
    assert lengths(0.0, few=True) == [7 * LONGER, 7, 7]


def test_few_acceptances_are_expected_only_of_the_same_kernel(monkeypatch):
    workspace = sweeps().workspace
    mover = Mover(workspace, stream(np.random.SeedSequence(3)), "auto")
    kernels = iter(["pair flip", "pair flip", "heat bath", "heat bath", "pair flip"])
    monkeypatch.setattr(workspace, "choose_kernel", lambda *arguments: next(kernels))
    expected = []
    for mu in (1e15, 1e15, 1e15, 0.0, 1e15):
        run = mover.at(mu, 5)
        expected.append(run.few_expected)
        run.all()
    assert expected == [False, True, False, True, False]


def test_a_pause_stops_the_run_between_chunks():
    run = sweeps(SmallChunks)

    def stop():
        raise KeyboardInterrupt

    run.workspace.pause = stop
    with pytest.raises(KeyboardInterrupt):
        run.all()
    assert run.tally[PROPOSED] == 7


def test_chunks_are_short_for_what_a_proposal_costs():
    """About 5e7 operations: K N for an accepted proposal with a tableau, K (K + M) without one."""
    small = sweeps().workspace
    assert small.chunk() == 1 + int(5e7 // (500 + 8 * 40))
    assert small.chunk(direct=True) == 1 + int(5e7 // (500 + 8 * 8))
    rng = np.random.default_rng(0)
    wide = Workspace(SparseProblem(rng.standard_normal((30, 9000)), rng.standard_normal(30)), 4)
    wide.fill(4, np.arange(4))
    assert not wide.problem.gram_is_whole
    assert wide.chunk() == 1 + int(5e7 // (500 + 4 * 9000))
    assert wide.chunk(direct=True) == 1 + int(5e7 // (500 + 4 * 34))
