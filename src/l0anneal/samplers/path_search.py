"""The best support of every size, from one run through the sizes.

Neighbouring sizes know much about each other: the best k columns without their worst one, or with
the best addition, are good starts for k − 1 and k + 1. The run has three parts.

1. *Passes*: up the sizes, adding the best column, and down, removing the worst, each time followed by
   a descent to a swap-local minimum. The best support of each size is kept, and a pass goes on from
   the better of what it has and what was kept; passes are repeated until a pair of them brings
   nothing.
2. *Annealing in sizes*: down from the largest size, one short annealing at each from the best support
   there is: warm enough to leave it, too short and too cold to forget it. A size of few supports is
   enumerated instead.
3. Passes again, so that what one size has found reaches the others. The last pass goes up, and so no
   size is worse than the one before it.
"""

from __future__ import annotations

import time
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.seeds import child
from l0anneal.engine.kernel_choice import KERNELS, pair_acceptance
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.descent import RESOLUTION
from l0anneal.engine.moves.outcome import ACCEPTED, PROPOSED
from l0anneal.engine.pivots import remove
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import ENERGY, SIZE
from l0anneal.engine.warm_up import warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.schedule import Schedule

__all__ = ["best_of_every_size"]

# the short annealings: temperatures, sweeps and proposals at each at least, and where in the automatic
# schedule they begin
TEMPERATURES, SWEEPS, PROPOSALS, BEGIN = 20, 3, 500, 0.25
ENUMERATED = 5000  # sizes with so few supports are not annealed: all of them are looked at
MOST_PASSES = 20


class _TimeIsUp(Exception):
    """Ends the search; what it has found stays."""


def best_of_every_size(
    problem: SparseProblem, most: int, seed: int, time_limit: float | None = None
) -> list[NDArray[np.int64]]:
    """Return the best support found of each size from 0 to ``most``, or to the rank if that is less.

    Parameters
    ----------
    problem : SparseProblem
        A and y.
    most : int
        The largest size.
    seed : int
        One seed, one result, unless the time limit ends the run.
    time_limit : float, optional
        Seconds after which the run ends with what it has; the first pass up is always made.

    Examples
    --------
    >>> from l0anneal import SparseProblem
    >>> best_of_every_size(SparseProblem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]), 2, 0)
    [array([], dtype=int64), array([1]), array([0, 1])]
    """
    problem.check_size(most)
    warm_up("auto")
    end = np.inf if time_limit is None else time.perf_counter() + time_limit
    with one_blas_thread():
        search = _Search(problem, most)
        search.begin()
        search.end = end
        try:
            search.settle()
            if 0 < search.most < problem.n_columns:
                search.anneal(seed)
                search.settle()
        except _TimeIsUp:
            search.end = np.inf
            search.up()  # so that no size is worse than the one before
    return search.supports


class _Search:
    """The best of each size so far, and the ways to better it."""

    def __init__(self, problem: SparseProblem, most: int) -> None:
        self.problem, self.most = problem, most
        self.end = np.inf
        self.energies = np.full(most + 1, np.inf)  # in the engine's units
        self.supports = [np.zeros(0, dtype=np.int64)] * (most + 1)
        self.energies[0] = 0.0

    def pause(self) -> None:
        if time.perf_counter() > self.end:
            raise _TimeIsUp

    def at(self, size: int) -> Workspace:
        """A workspace at the best support of a size."""
        workspace = Workspace(self.problem, max(1, self.most))
        workspace.pause = self.pause
        workspace.begin_at(self.supports[size])
        return workspace

    def keep(self, workspace: Workspace) -> bool:
        """Keep the support if it is the best of its size so far."""
        size = int(workspace.tableau.counts[SIZE])
        energy = float(workspace.tableau.values[ENERGY])
        if not energy < self.energies[size] - RESOLUTION:
            return False
        self.energies[size], self.supports[size] = energy, workspace.support
        return True

    def descend(self, workspace: Workspace) -> tuple[Workspace, bool]:
        """Descend and keep what is better than before, or go back to that."""
        workspace.descend()
        if self.keep(workspace):
            return workspace, True
        size = int(workspace.tableau.counts[SIZE])
        if not np.array_equal(workspace.support, self.supports[size]):
            workspace = self.at(size)
        return workspace, False

    def begin(self) -> None:
        """The first pass up; it finds out how far the independent columns reach."""
        workspace = self.at(0)
        for size in range(1, self.most + 1):
            try:
                workspace.fill_greedily(size)
            except ValueError:
                self.most = size - 1
                self.energies, self.supports = self.energies[:size], self.supports[:size]
                break
            workspace, _ = self.descend(workspace)

    def up(self) -> bool:
        """Add the best column, size by size; return whether anything became better."""
        workspace, any_better = self.at(0), False
        for size in range(1, self.most + 1):
            workspace.fill_greedily(size)
            workspace, better = self.descend(workspace)
            any_better |= better
        return any_better

    def down(self) -> bool:
        """Remove the worst column, size by size; return whether anything became better."""
        workspace, any_better = self.at(self.most), False
        for _ in range(self.most - 1):
            _remove_worst(workspace)
            workspace, better = self.descend(workspace)
            any_better |= better
        return any_better

    def settle(self) -> None:
        """Down and up until neither brings anything."""
        for _ in range(MOST_PASSES):
            better = self.down()
            if not (self.up() or better):
                break

    def anneal(self, seed: int) -> None:
        """One short annealing at each size, from the largest down."""
        mu = np.array(Schedule.automatic(self.problem, self.most).mu) * self.problem.unit_energy
        mu = mu[mu.size // 10 :]  # without the lead-in
        mu = np.geomspace(mu[int(BEGIN * mu.size)], mu[-1], TEMPERATURES)
        state = stream(child(seed, 0))
        n = self.problem.n_columns
        sweeps = max(SWEEPS, PROPOSALS // n)
        for size in range(self.most, 0, -1):
            if comb(n, size) <= ENUMERATED and self.problem.gram_is_whole:
                self.enumerate(size)
                continue
            workspace = self.at(size)
            acceptance = 1.0
            for beta in mu:
                kernel = workspace.choose_kernel("auto", acceptance)
                tally, energies = new_tally(), np.zeros(sweeps)
                for sweep in range(1, sweeps + 1):
                    workspace.run(KERNELS[kernel], state, beta, sweep * n, energies, tally)
                    self.keep(workspace)
                    self.pause()
                rate = float(tally[ACCEPTED] / tally[PROPOSED])
                acceptance = pair_acceptance(kernel, rate, size)
            self.descend(workspace)

    def enumerate(self, size: int) -> None:
        """Look at all supports of a size; admissible ones only, as `tableau` defines them."""
        diagonal, b = self.problem.unit_diagonal(), self.problem.unit_correlation
        supports = np.array(list(combinations(np.flatnonzero(diagonal), size)))
        if supports.size == 0:
            return
        gram = self.problem.gram[supports[:, :, None], supports[:, None, :]]
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 1e-12)  # the inverse's diagonal is then beyond 1/PIVOT
        along = np.einsum("smi,sm->si", vectors, b[supports])
        energies = -0.5 * np.sum(along**2 / values, axis=1)
        steepest = np.max(np.sum(vectors**2 / values[:, None, :], axis=2), axis=1)
        energies[steepest * PIVOT >= 1.0] = np.inf
        best = int(np.argmin(energies))
        if energies[best] < self.energies[size] - RESOLUTION:
            self.energies[size], self.supports[size] = energies[best], supports[best]


def _remove_worst(workspace: Workspace) -> None:
    t = workspace.tableau
    size = int(t.counts[SIZE])
    remove(t, int(np.argmin(t.x[:size] ** 2 / np.diagonal(t.U)[:size])))
    workspace.refresh()
