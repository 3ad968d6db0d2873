"""The chains of one annealing: what they share, what each does, and in what order they do it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from tqdm.auto import tqdm

from l0anneal._util.seeds import child
from l0anneal.engine.kernel_choice import KERNELS, pair_acceptance
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.outcome import ACCEPTED, PROPOSED
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.pace import Pace
from l0anneal.samplers.schedule import Schedule

__all__ = ["Chain", "Observable", "Run", "RunStopped", "in_threads", "run_chains"]

Observable = Callable[[NDArray[np.float64]], float]
C = TypeVar("C")


class RunStopped(Exception):
    """Ends a chain from within, between two kernel calls."""


@dataclass
class Run:
    """What the chains of one run share."""

    problem: SparseProblem
    k: int
    seed: int
    start: NDArray[np.int64] | None
    move: str
    n_pairs: int
    polish: bool
    keep_samples: bool
    observables: dict[str, Observable]
    deadline: float = np.inf  # of the clock; reached only if a step was too long for its pace
    bar: Any = field(default_factory=lambda: tqdm(disable=True))
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pause(self) -> None:
        """Called between kernel calls."""
        if self.stop.is_set() or time.perf_counter() > self.deadline:
            raise RunStopped

    def advance(self, n_sweeps: int, energy: float) -> None:
        """Show that something was done."""
        with self.lock:
            self.bar.set_postfix_str(f"ε = {energy / self.problem.n_samples:.4g}", refresh=False)
            self.bar.update(n_sweeps)


class Chain:
    """One chain of Algorithm 2. It can be stopped at any time and then holds the best so far.

    Chain c has the random stream (seed, c), wherever and with whomever it runs.
    """

    def __init__(self, run: Run, index: int) -> None:
        self.run, self.index = run, index
        self.mean_energy: list[float] = []
        self.std_energy: list[float] = []
        self.acceptance: list[float] = []
        self.kernels: list[str] = []
        self.observed: dict[str, list[float]] = {name: [] for name in run.observables}
        self.samples: list[NDArray[np.int64]] = []
        self.energies = np.zeros(0)  # of the last step's sweeps
        self.pair_acceptance = 1.0  # of the pair flip, at the temperature before
        self.support: NDArray[np.int64] | None = None  # until there is one
        self.lowest = np.inf
        self.stopped = False

    def begin(self) -> None:
        """Take the first support."""
        run = self.run
        self.workspace = Workspace(run.problem, run.k)
        self.workspace.pause = run.pause
        order, flips = child(run.seed, self.index).spawn(2)
        self.state = stream(flips)
        try:
            if run.start is None:
                n = run.problem.n_columns
                self.workspace.fill(run.k, np.random.default_rng(order).permutation(n))
            else:
                self.workspace.begin_at(run.start)
        except RunStopped:
            self.stopped = True
            return
        self.support = self.workspace.support

    def step(self, mu: float, tau: int) -> None:
        """Run τ sweeps at μ; measure."""
        if self.stopped:
            return
        try:
            self._sweep(mu, tau)
        except RunStopped:
            self.stopped = True
        if self.workspace.energy < self.lowest:
            self.lowest, self.support = self.workspace.energy, self.workspace.support

    def finish(self) -> None:
        """End in the last support, or, with polish, in the swap-local minimum below it."""
        if self.stopped:
            return
        try:
            if self.run.polish:
                self.workspace.descend()
        except RunStopped:
            self.stopped = True
            if self.workspace.energy > self.lowest:
                return
        self.support = self.workspace.support

    @property
    def refreshes(self) -> int:
        """How often the tableau was recomputed."""
        return self.workspace.refreshes

    def _sweep(self, mu: float, tau: int) -> None:
        run, workspace = self.run, self.workspace
        n = run.problem.n_columns
        beta = mu * run.problem.unit_energy
        energies = np.zeros(tau)
        observed = dict.fromkeys(self.observed, 0.0)
        tally = new_tally(run.n_pairs)
        kernel = workspace.choose_kernel(run.move, self.pair_acceptance)
        each_sweep = run.keep_samples or bool(observed)
        done = 0
        while done < tau:
            at_most = int(tally[PROPOSED]) + workspace.chunk
            end = min(at_most, (done + 1 if each_sweep else tau) * n)
            workspace.run(KERNELS[kernel], self.state, beta, end, energies, tally)
            run.pause()
            swept = int(tally[PROPOSED]) // n - done
            if swept:
                done += swept
                run.advance(swept, workspace.energy)
                if run.keep_samples:
                    self.samples.append(workspace.support)
                for name in observed:
                    observed[name] += run.observables[name](workspace.coef)
        unit = run.problem.unit_energy
        self.energies = energies * unit
        self.mean_energy.append(workspace.to_energy(energies.mean()))
        self.std_energy.append(energies.std(ddof=1) * unit if tau > 1 else np.nan)
        self.acceptance.append(tally[ACCEPTED] / tally[PROPOSED])
        self.kernels.append(kernel)
        self.pair_acceptance = pair_acceptance(kernel, self.acceptance[-1], run.k)
        for name, total in observed.items():
            self.observed[name].append(total / tau)


Every = Callable[[Callable[[Chain], None]], None]


def run_chains(
    run: Run, plan: Schedule | Pace, n_chains: int, n_jobs: int | None, on_interrupt: str
) -> tuple[list[Chain], Schedule, bool]:
    """Run the chains in threads; return those that began, the schedule, and whether it was cut.

    With a schedule each chain goes its own way to the end. With a pace they go step by step together,
    because what it decides is for all.
    """
    chains = [Chain(run, c) for c in range(n_chains)]
    n_threads = min(n_chains, effective_n_jobs(n_jobs if n_jobs is not None else 1))
    steps: list[tuple[float, int]] = []

    def work(every: Every) -> None:
        if isinstance(plan, Schedule):
            steps.extend(plan)
            every(lambda chain: _whole(chain, plan))
        else:
            _together(every, chains, plan, steps)

    interrupted = in_threads(chains, n_threads, work, run.stop, on_interrupt)
    begun = [chain for chain in chains if chain.support is not None]
    if not begun or not steps:
        raise KeyboardInterrupt
    interrupted |= any(chain.stopped for chain in begun)
    executed = Schedule(tuple(mu for mu, _ in steps), tuple(tau for _, tau in steps), plan.name)
    return begun, executed, interrupted


def in_threads(
    chains: Sequence[C],
    n_threads: int,
    work: Callable[[Callable[[Callable[[C], None]], None]], None],
    stop: threading.Event,
    on_interrupt: str,
) -> bool:
    """Let ``work`` call what it likes for every chain, in threads; return whether Ctrl-C cut it.

    Whatever ends it, ``stop`` is set, and it is waited for the chains to hear that.
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="l0anneal")

    def every(call: Callable[[C], None]) -> None:
        done, _ = wait([pool.submit(call, chain) for chain in chains], return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()

    try:
        work(every)
    except KeyboardInterrupt:
        if on_interrupt == "raise":
            raise
        return True
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
    return False


def _whole(chain: Chain, schedule: Schedule) -> None:
    chain.begin()
    for mu, tau in schedule:
        chain.step(mu, tau)
    chain.finish()


def _together(
    every: Every, chains: list[Chain], pace: Pace, steps: list[tuple[float, int]]
) -> None:
    every(Chain.begin)
    step = pace.next(None)
    while step is not None:
        steps.append(step)
        mu, tau = step
        every(lambda chain, mu=mu, tau=tau: chain.step(mu, tau))  # type: ignore[misc]
        if any(chain.stopped for chain in chains):
            break
        step = pace.next(np.stack([chain.energies for chain in chains]))
    every(Chain.finish)
