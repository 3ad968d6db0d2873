"""Iterated descent: kick a support out of its minimum, walk down, and mostly stay where that ends.

At zero temperature the landscape is seen through its swap-local minima alone. A kick exchanges a few
random columns; the descent after it costs a few exchanges, each O(NK) like an accepted pair flip. Of the
minima it comes to, those not much higher than the last are accepted (`moves.kick`): annealing on the
minima instead of on the supports, at a temperature that steers itself. It samples no law, so it has no
entropies; for the lowest distortion in a given time it is the best of our samplers (benchmarks).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_integer, check_time_limit
from l0anneal._util.seeds import RandomState, child, seed_of
from l0anneal.engine.moves.kick import BEST, FLOOR, KICKS, PLACES, kick
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import ENERGY
from l0anneal.engine.warm_up import patience, tiny_problem, warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.chain import RunStopped, in_threads
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.search_result import fitted

__all__ = ["kick_search"]

FIRST_SLACK = 0.05  # as a part of the first minimum's energy
EXACT = 1e-13  # energy in the engine's units at which nothing is left to be gained
ENDLESS = 2**50
PAUSE = 0.01  # seconds of kicks between two looks at the clock


def kick_search(
    problem: SparseProblem,
    n_nonzero: int,
    *,
    n_kicks: int | Sequence[int] | None = None,
    n_chains: int = 1,
    n_jobs: int | None = None,
    initial_support: ArrayLike | None = None,
    time_limit: float | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: str = "raise",
) -> KickResult:
    """Find the best ``n_nonzero`` columns by descents, each after a kick to the support.

    Parameters
    ----------
    problem : SparseProblem
        A and y.
    n_nonzero : int
        k, the size of the support.
    n_kicks : int, or one for each chain, optional
        How long to search; by default 1000, or with a time limit as many as there is time for. A chain
        ends before if nothing of the signal is left.
    n_chains, n_jobs : int
        Independent chains, the best of which wins, and threads to run them in (−1: all cores). The
        first starts at the greedy support (orthogonal least squares), the others at random ones. The
        result does not depend on ``n_jobs``.
    initial_support : array of k column indices, optional
        Where every chain starts.
    time_limit : float, optional
        Seconds, except the compilation of kernels. One descent is always made. The numbers of kicks are
        in the result, and given in place of the limit they give it again exactly.
    random_state : None, int, SeedSequence or Generator
        One seed, one result.
    progress : bool
        Show a bar.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the best support found so far.

    Returns
    -------
    KickResult

    Examples
    --------
    >>> from l0anneal import ensembles, kick_search
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = kick_search(instance.problem, 6, random_state=0)
    >>> bool((result.support == instance.support).all())
    True
    """
    k = problem.check_size(n_nonzero)
    n_chains = check_integer("n_chains", n_chains, 1)
    if n_kicks is None:
        n_kicks = 1000 if time_limit is None else ENDLESS
    each = [n_kicks] * n_chains if np.ndim(n_kicks) == 0 else list(n_kicks)  # type: ignore[arg-type]
    each = [check_integer("n_kicks", n, 0) for n in each]
    if len(each) != n_chains:
        raise ValueError(f"n_kicks has {len(each)} numbers for {n_chains} chain(s)")
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f'on_interrupt is "raise" or "return"; got {on_interrupt!r}')
    check_time_limit(time_limit)
    start = None if initial_support is None else problem.check_support(initial_support, k)
    seed = seed_of(random_state)
    _warm_up()
    began = time.perf_counter()
    n_threads = min(n_chains, effective_n_jobs(n_jobs if n_jobs is not None else 1))
    run = _Run(problem, k, seed, start)
    if time_limit is not None:
        run.seconds = 0.97 * time_limit * n_threads / n_chains
        run.deadline = began + 0.97 * time_limit
    total = sum(each) if max(each) < ENDLESS else None
    with one_blas_thread(), tqdm(total=total, unit="kick", disable=not progress) as run.bar:
        problem.make_ready()
        chains = [_Chain(run, c, n) for c, n in enumerate(each)]
        interrupted = in_threads(
            chains, n_threads, lambda every: every(_Chain.go), run.stop, on_interrupt
        )
        begun = [(np.sort(c.best), c.at[KICKS]) for c in chains if c.best is not None]
        if not begun:
            raise KeyboardInterrupt
        answer = fitted(problem, [support for support, _ in begun])
    return KickResult(
        **answer,
        n_kicks=np.array([kicks for _, kicks in begun]),
        seed=seed,
        seconds=time.perf_counter() - began,
        interrupted=interrupted,
    )


@dataclass
class _Run:
    """What the chains have in common."""

    problem: SparseProblem
    k: int
    seed: int
    start: NDArray[np.int64] | None
    deadline: float = math.inf
    seconds: float = math.inf  # of each chain
    bar: Any = None
    stop: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Hear an interrupt."""
        if self.stop.is_set():
            raise RunStopped


class _Chain:
    """One chain; `go` may be called in a thread."""

    def __init__(self, run: _Run, number: int, n_kicks: int) -> None:
        self.run, self.number, self.n_kicks = run, number, n_kicks
        self.at = np.zeros(PLACES, dtype=np.int64)
        self.best: NDArray[np.int64] | None = None  # until there is one

    def go(self) -> None:
        """Find the first minimum and kick from there."""
        run = self.run
        end = min(run.deadline, time.perf_counter() + run.seconds)
        try:
            workspace = self._begin()
        except RunStopped:
            return
        t = workspace.tableau
        held = workspace.spare()
        energy = float(t.values[ENERGY])
        left = min(1.0, run.problem.unit_signal + energy)
        levels = np.array([energy, energy, FIRST_SLACK * left, EXACT - run.problem.unit_signal])
        state = stream(child(run.seed, self.number))
        if not 0 < run.k < run.problem.n_columns:
            self.n_kicks = 0
        batch = 1
        while self.at[KICKS] < self.n_kicks and not run.stop.is_set():
            if levels[BEST] <= levels[FLOOR]:
                break
            now = time.perf_counter()
            if now >= end:
                break
            stop = min(self.n_kicks, int(self.at[KICKS]) + batch)
            before = int(self.at[KICKS])
            workspace.run(kick, held, state, stop, levels, self.best, self.at)
            took = time.perf_counter() - now
            run.bar.update(int(self.at[KICKS]) - before)
            fits = PAUSE / max(took / batch, 1e-9)
            batch = max(1, int(min(2 * batch, fits, (end - now - took) * fits / PAUSE)))

    def _begin(self) -> Workspace:
        """The first minimum."""
        run = self.run
        workspace = Workspace(run.problem, run.k)
        workspace.pause = run.check
        if run.start is not None:
            workspace.begin_at(run.start)
        elif self.number == 0:
            workspace.fill_greedily(run.k)
        else:
            rng = np.random.default_rng(child(run.seed, self.number, 1))
            workspace.fill(run.k, rng.permutation(run.problem.n_columns))
        workspace.descend()
        self.best = workspace.support
        return workspace


@cache
def _warm_up() -> None:
    """Compile what only this search uses."""
    warm_up()
    with patience():
        workspace = Workspace(tiny_problem(), 2)
        workspace.fill_greedily(2)
        state = stream(np.random.SeedSequence(0))
        best, at = np.empty(2, dtype=np.int64), np.zeros(PLACES, dtype=np.int64)
        levels = np.array([0.0, 0.0, 0.0, -1.0])
        workspace.run(kick, workspace.spare(), state, 1, levels, best, at)
