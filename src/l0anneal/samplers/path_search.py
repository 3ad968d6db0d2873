"""The best support of every size, from one run through the sizes.

The best supports of neighbouring sizes are often similar: the best k columns without the worst of
them, or with the best additional column, are good starting points for k − 1 and k + 1. The run has
three parts.

1. *Passes* up the sizes, adding the best column, and down, removing the worst one, each time followed by
   a descent to a swap-local minimum. The best support of each size is kept, and a pass continues from
   the better of its own support and the kept one. Passes are repeated until two of them improve nothing.
2. *Annealing in sizes*: from the largest size down, make one short annealing at each size, starting
   from the best support of this size. It is warm enough to leave the support, but too short and too
   cold to forget it. Sizes with few supports are enumerated instead.
3. Passes again, so that an improvement at one size reaches the others. The last pass leads up, so that
   no size is worse than the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.moves.descent import RESOLUTION
from l0anneal.engine.rng import stream
from l0anneal.engine.sweep import Mover
from l0anneal.engine.warm_up import warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.greedy import NOT_BEGUN, completed, counted_order
from l0anneal.samplers.run import OutOfTime, Run, RunStopped
from l0anneal.samplers.temperature_range import automatic_temperatures

__all__ = ["TO_THE_END", "Supports", "best_of_every_size"]

# The short annealings: the number of temperatures, the least numbers of sweeps and of proposals at
# each temperature, and where in the automatic schedule they begin, as a fraction of its length.
TEMPERATURES, SWEEPS, PROPOSALS, BEGIN = 20, 3, 500, 0.25
ENUMERATED = 5000  # sizes with at most this many supports are enumerated
MOST_PASSES = 20
NOT_ALL = "time limit, before all sizes were reached: larger supports were completed greedily"
TO_THE_END = -1  # given as a number of steps: the search was not cut short
FIRST_PASS = -2  # this number and those below: cut short in the first pass, after 0, 1, ... steps
NO_PASS = -(10**9)  # this number and those below: not begun, after 0, 1, ... greedy columns


@dataclass(frozen=True)
class Supports:
    """The best support found of each size from 0 on, and how to find them again.

    ``n_steps`` replays the search exactly; it is −1 if the search was not cut short, and lower if
    the first pass was.
    """

    supports: list[NDArray[np.int64]]
    n_steps: int
    ended: str


def best_of_every_size(
    run: Run, problem: SparseProblem, most: int, n_steps: int | None = None
) -> Supports:
    """Return the best support found for each size up to ``most``, or to the rank if that is lower.

    Parameters
    ----------
    run : Run
        The run, which has begun. Its time limit cuts the search short. Sizes for which there was no
        time in the first pass get the columns that lower the energy most by themselves.
    problem : SparseProblem
        The dictionary A and the signal y.
    most : int
        The largest size.
    n_steps : int, optional
        ``n_steps`` of an earlier search, to replay that search.

    Examples
    --------
    >>> from l0anneal import SparseProblem
    >>> problem = SparseProblem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
    >>> with Run(random_state=0) as run:
    ...     best_of_every_size(run, problem, 2).supports
    [array([], dtype=int64), array([1]), array([0, 1])]
    """
    problem.check_size(most)
    run.compile(warm_up, "auto")
    if n_steps is not None and n_steps <= NO_PASS:
        return _not_begun(run, problem, most, NO_PASS - n_steps)
    try:
        with run.to_start():
            run.prepare(problem)
    except OutOfTime:
        return _not_begun(run, problem, most)
    search = _Search(run, problem, most)
    ended, used = "no size could be improved any more", TO_THE_END
    try:
        search.limit(n_steps, first_pass=True)
        search.begin()
        if n_steps is not None and n_steps <= FIRST_PASS:
            raise ValueError(
                "these steps belong to another problem; they replay only their own run"
            )
        search.limit(n_steps)
        search.settle()
        if 0 < search.most < problem.n_columns:
            search.anneal()
            search.settle()
    except RunStopped:
        ended, used = "time limit", search.budget.used
        if search.in_first_pass and run.stopped:
            search.end_at_last()
        elif search.in_first_pass:
            ended, used = NOT_ALL, FIRST_PASS - used
            search.complete()
        else:
            search.make_monotone()
    return Supports(search.supports, used, ended)


def _not_begun(run: Run, problem: SparseProblem, most: int, replay: int | None = None) -> Supports:
    """Return supports of greedily chosen columns, as many as there was time for."""
    order, n_chosen = counted_order(run, problem, most, replay=replay)
    supports = [np.sort(order[:size]) for size in range(most + 1)]
    return Supports(supports, NO_PASS - n_chosen, NOT_BEGUN)


class _Search:
    """The best support of each size so far, and the ways to improve it."""

    def __init__(self, run: Run, problem: SparseProblem, most: int) -> None:
        self.run, self.problem, self.most = run, problem, most
        self.budget = run.budget()
        self.pause: Callable[[], object] = run.listen
        self.in_first_pass = False
        self.energies = np.full(most + 1, np.inf)  # in the engine's units
        self.supports = [np.zeros(0, dtype=np.int64)] * (most + 1)
        self.energies[0] = 0.0

    def limit(self, n_steps: int | None, first_pass: bool = False) -> None:
        """From here on count steps, and stop when the time is up or ``n_steps`` were made."""
        self.in_first_pass = first_pass
        replay = None
        if n_steps is not None and (n_steps <= FIRST_PASS if first_pass else n_steps >= 0):
            replay = FIRST_PASS - n_steps if first_pass else n_steps
        end = self.run.deadline if n_steps is None else np.inf
        self.budget = self.run.budget(end, replay)
        self.pause = self.budget.spend

    def at(self, size: int) -> Workspace:
        """Return a workspace at the best support of a size."""
        workspace = Workspace(self.problem, max(1, self.most))
        workspace.pause = lambda: self.pause()
        workspace.begin_at(self.supports[size])
        return workspace

    def keep(self, workspace: Workspace) -> bool:
        """Keep the support if it is the best of its size so far."""
        size, energy = workspace.size, workspace.unit_energy
        if not energy < self.energies[size] - RESOLUTION:
            return False
        self.energies[size], self.supports[size] = energy, workspace.support
        return True

    def show(self, what: str, size: int) -> None:
        """Move the progress bar, which counts the sizes that were visited."""
        self.run.advance(1, f"{what}, {size} columns")

    def descend(self, workspace: Workspace) -> tuple[Workspace, bool]:
        """Descend and keep the support if it is an improvement; if not, return to the kept one."""
        workspace.descend()
        if self.keep(workspace):
            return workspace, True
        if not np.array_equal(workspace.support, self.supports[workspace.size]):
            workspace = self.at(workspace.size)
        return workspace, False

    def begin(self) -> None:
        """Make the first pass up, which finds out how many columns are independent."""
        self.reached, self.first = 0, self.at(0)
        for size in range(1, self.most + 1):
            try:
                self.first.fill_greedily(size)
            except ValueError:
                break
            self.first, _ = self.descend(self.first)
            self.reached = size
            self.show("first pass", size)
        self.end_at_last()

    def end_at_last(self) -> None:
        """Leave out the sizes that the first pass did not reach."""
        self.most = self.reached
        self.energies = self.energies[: self.most + 1]
        self.supports = self.supports[: self.most + 1]

    def complete(self) -> None:
        """Give the sizes that the first pass did not reach the columns with the largest gains."""
        gains = np.full(self.problem.n_columns, -1.0)
        gains[self.first.outside_columns] = self.first.outside_gains
        order = completed(self.first.support, gains, self.problem.n_columns)
        admissible = self.first.size + int(np.sum(gains >= 0))
        most = max(self.reached, min(self.most, self.problem.n_samples, admissible))
        for size in range(self.reached + 1, most + 1):
            self.supports[size] = np.sort(order[:size])
        self.supports = self.supports[: most + 1]

    def up(self) -> bool:
        """Add the best column, size by size; return whether any size was improved."""
        workspace, any_better = self.at(0), False
        for size in range(1, self.most + 1):
            workspace.fill_greedily(size)
            workspace, better = self.descend(workspace)
            any_better |= better
            self.show("pass up", size)
        return any_better

    def down(self) -> bool:
        """Remove the worst column, size by size; return whether any size was improved."""
        workspace, any_better = self.at(self.most), False
        for _ in range(self.most - 1):
            workspace.remove_worst()
            workspace, better = self.descend(workspace)
            any_better |= better
            self.show("pass down", workspace.size)
        return any_better

    def settle(self) -> None:
        """Pass down and up until neither improves any size."""
        for _ in range(MOST_PASSES):
            better = self.down()
            if not (self.up() or better):
                break

    def anneal(self) -> None:
        """Make one short annealing at each size, from the largest down."""
        mu = automatic_temperatures(self.problem, self.most, pause=self.run.listen)
        mu = mu * self.problem.unit_energy
        mu = mu[mu.size // 10 :]  # without the lead-in
        mu = np.geomspace(mu[int(BEGIN * mu.size)], mu[-1], TEMPERATURES)
        state = stream(self.run.stream("path annealing"))
        n = self.problem.n_columns
        n_sweeps = max(SWEEPS, PROPOSALS // n)
        for size in range(self.most, 0, -1):
            if comb(n, size) <= ENUMERATED and self.problem.gram_is_whole:
                self.enumerate(size)
                continue
            workspace = self.at(size)
            mover = Mover(workspace, state, "auto")
            for beta in mu:
                for _ in mover.at(float(beta), n_sweeps).each():
                    self.keep(workspace)
            self.descend(workspace)
            self.show("annealing", size)

    def enumerate(self, size: int) -> None:
        """Look at all admissible supports of a size."""
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

    def make_monotone(self) -> None:
        """After a search that was cut short, extend a smaller support where a larger one is worse."""
        self.pause = lambda: None
        for size in range(1, self.most + 1):
            if self.energies[size] > self.energies[size - 1]:
                workspace = self.at(size - 1)
                workspace.fill_greedily(size)
                self.keep(workspace)
