"""One chain of simulated annealing, and the ways in which several of them run together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.rng import stream
from l0anneal.engine.sweep import Mover
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.observables import Observable, observe
from l0anneal.samplers.pace import Pace
from l0anneal.samplers.run import OutOfTime, Run, RunStopped
from l0anneal.samplers.schedule import Schedule

__all__ = ["Chain", "Settings", "run_chains"]


@dataclass(frozen=True)
class Settings:
    """What the chains of one annealing have in common."""

    problem: SparseProblem
    k: int
    start: NDArray[np.int64] | None
    move: str
    n_pairs: int
    polish: bool
    keep_samples: bool
    observables: dict[str, Observable]


class Chain:
    """One chain of Algorithm 2. It can be stopped at any time and then holds the best support so far.

    A chain's random numbers depend on its stream alone, not on the threads or chains beside it.
    """

    def __init__(self, run: Run, settings: Settings, seeds: np.random.SeedSequence) -> None:
        self.run, self.settings, self.seeds = run, settings, seeds
        self.mean_energy: list[float] = []
        self.std_energy: list[float] = []
        self.acceptance: list[float] = []
        self.kernels: list[str] = []
        self.observed: dict[str, list[float]] = {name: [] for name in settings.observables}
        # after each sweep, if samples are kept
        self.samples: list[NDArray[np.int64]] = []
        self.sampled: dict[str, list[float]] = {name: [] for name in ("energy", *self.observed)}
        self.energies = np.zeros(0)  # after each sweep of the last step
        self.support: NDArray[np.int64] | None = None  # None until there is one
        # μ, energy and support at the end of each step
        self.ends: list[tuple[float, float, NDArray[np.int64]]] = []
        self.lowest = np.inf
        self.stopped = False

    def begin(self) -> None:
        """Set the first support: the given one, or a random one."""
        settings = self.settings
        self.workspace = self.run.workspace(settings.problem, settings.k)
        order, flips = self.seeds.spawn(2)
        self.mover = Mover(self.workspace, stream(flips), settings.move, settings.n_pairs)
        try:
            if settings.start is None:
                n = settings.problem.n_columns
                self.workspace.fill(settings.k, np.random.default_rng(order).permutation(n))
            else:
                self.workspace.begin_at(settings.start)
        except OutOfTime:
            raise
        except RunStopped:
            self.stopped = True
            return
        self.support = self.workspace.support

    def step(self, mu: float, tau: int) -> None:
        """Run τ sweeps at μ and measure."""
        if self.stopped:
            return
        try:
            self._sweep(mu, tau)
            self.ends.append((mu, self.workspace.energy, self.workspace.support))
        except OutOfTime:
            raise
        except RunStopped:
            self.stopped = True
        energy = self.workspace.energy
        if energy < self.lowest:
            self.lowest, self.support = energy, self.workspace.support

    def finish(self) -> None:
        """End in the last support or, with polish, in the swap-local minimum below it.

        If the chain was heated, the best support at the end of a step takes the place of the last one.
        """
        if self.stopped:
            return
        if self.heated:
            self.support = self._answer()
            if self.settings.polish:
                self.support = self.run.polished(self.settings.problem, self.support)
            return
        try:
            if self.settings.polish:
                self.workspace.descend()
        except OutOfTime:
            raise
        except RunStopped:
            self.stopped = True
            if self.workspace.energy > self.lowest:
                return
        self.support = self.workspace.support

    def go_back(self, n: int, n_sweeps: int) -> None:
        """Forget all but the first n steps, with their sweeps; the support is that after step n."""
        rows = (self.mean_energy, self.std_energy, self.acceptance, self.kernels)
        for values in (*rows, *self.observed.values()):
            del values[n:]  # type: ignore[attr-defined]
        for values in (self.samples, *self.sampled.values()):
            del values[n_sweeps:]  # type: ignore[attr-defined]
        del self.ends[n:]
        self.support = self._answer()

    @property
    def heated(self) -> bool:
        """Whether the temperature ever rose."""
        return any(after[0] < before[0] for before, after in pairwise(self.ends))

    def _answer(self) -> NDArray[np.int64]:
        """Return the last support or, if the chain was heated, the best at the end of a step."""
        end = min(self.ends, key=lambda end: end[1]) if self.heated else self.ends[-1]
        return end[2]

    def follow(self, schedule: Schedule) -> None:
        """Run a schedule from the beginning to the end."""
        self.begin()
        for mu, tau in schedule:
            self.step(mu, tau)
        self.finish()

    @property
    def refreshes(self) -> int:
        """How often the tableau was recomputed."""
        return self.workspace.refreshes

    def _sweep(self, mu: float, tau: int) -> None:
        settings, workspace = self.settings, self.workspace
        unit = settings.problem.unit_energy
        sweeps = self.mover.at(mu * unit, tau)
        totals = dict.fromkeys(self.observed, 0.0)
        if settings.keep_samples or totals:
            for done in sweeps.each():
                self._show(1)
                values = observe(settings.observables, workspace.coef) if totals else {}
                for name, value in values.items():
                    totals[name] += value
                if settings.keep_samples:
                    self.samples.append(workspace.support)
                    values["energy"] = workspace.to_energy(sweeps.energies[done - 1])
                    for name, value in values.items():
                        self.sampled[name].append(value)
        else:
            sweeps.all(self._show)
        energies = sweeps.energies
        self.energies = energies * unit
        # as by `mean` and `std` of NumPy, which take as long as a cold sweep of a small problem
        mean = np.add.reduce(energies) / tau
        apart = energies - mean
        self.mean_energy.append(workspace.to_energy(mean))
        self.std_energy.append(
            math.sqrt(np.add.reduce(apart * apart) / (tau - 1)) * unit if tau > 1 else np.nan
        )
        self.acceptance.append(sweeps.acceptance)
        self.kernels.append(self.mover.kernel)
        for name, total in totals.items():
            self.observed[name].append(total / tau)

    def _show(self, n_sweeps: int) -> None:
        distortion = self.workspace.energy / self.settings.problem.n_samples
        self.run.advance(n_sweeps, f"ε = {distortion:.4g}")


def run_chains(run: Run, chains: list[Chain], steps: Schedule | Pace) -> tuple[Schedule, bool]:
    """Run the chains in threads; return the schedule that was executed, and whether it was cut short.

    With a schedule, each chain runs to the end independently of the others. With a pace, all chains
    make each step together, because the pace decides on the step from the energies of all of them. A
    step or a last descent for which there is no time is as if it had not begun; if that is the first
    step, `OutOfTime` is raised.
    """
    if isinstance(steps, Schedule):
        run.map(lambda chain: chain.follow(steps), chains)
        begun = max((len(chain.mean_energy) + chain.stopped for chain in chains), default=0)
        n = max(1, min(len(steps), begun))  # an interrupted run has not begun all of them
        done = steps if n == len(steps) else Schedule(steps.mu[:n], steps.tau[:n], steps.name)
        return done, False
    executed: list[tuple[float, int]] = []

    def make(step: tuple[float, int]) -> None:
        run.map(lambda chain: chain.step(*step), chains)
        executed.append(step)

    with run.to_start():
        run.map(Chain.begin, chains)
        step = steps.next(None)
        if step is not None:
            make(step)
    run.require(executed)
    cut = False
    try:
        while not any(chain.stopped for chain in chains):
            step = steps.next(np.stack([chain.energies for chain in chains]))
            if step is None:
                break
            make(step)
        run.map(Chain.finish, chains)
    except OutOfTime:
        cut = True
        for chain in chains:
            chain.go_back(len(executed), sum(tau for _, tau in executed))
    mus, taus = zip(*executed)
    return Schedule(mus, taus, steps.name), cut
