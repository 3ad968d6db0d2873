"""Simulated annealing: the paper's Algorithm 2, one chain or many."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from l0anneal._blas import one_blas_thread
from l0anneal._compile import warm_up
from l0anneal.automatic import KERNELS, MOVES, pair_acceptance
from l0anneal.moves import new_tally
from l0anneal.moves.multi_flip import MOST_PAIRS
from l0anneal.moves.outcome import ACCEPTED, PROPOSED
from l0anneal.problem import SparseProblem
from l0anneal.results import RESERVED_NAMES, AnnealResult
from l0anneal.rng import stream
from l0anneal.schedules import Schedule
from l0anneal.seeds import RandomState, child, seed_of
from l0anneal.workspace import Workspace

__all__ = ["anneal"]

Observable = Callable[[NDArray[np.float64]], float]


def anneal(
    problem: SparseProblem,
    n_nonzero: int,
    schedule: Schedule | None = None,
    *,
    move: str = "pair flip",
    n_pairs: int = 2,
    polish: bool = True,
    n_chains: int = 1,
    n_jobs: int | None = None,
    initial_support: ArrayLike | None = None,
    keep_samples: bool = False,
    observables: Mapping[str, Observable] | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: Literal["raise", "return"] = "raise",
) -> AnnealResult:
    """Find the best ``n_nonzero`` columns by Monte Carlo over supports at falling temperature.

    Minimises ½‖y − Ax‖² over supports of exactly ``n_nonzero`` columns. At each inverse temperature
    μ_a of the schedule a Monte Carlo chain, by default the paper's pair flip, runs τ_a sweeps of N
    proposals.

    Parameters
    ----------
    problem : SparseProblem
        A and y.
    n_nonzero : int
        k, the size of the support. Columns that are nearly dependent are never chosen together:
        each keeps more than 1e-7 of its squared norm off the span of the others.
    schedule : Schedule, optional
        By default `Schedule.automatic`, which finds its temperatures from the problem.
        `Schedule.paper` is the paper's.
    move : {"pair flip", "auto", "heat bath", "multi flip", "rejection free"}
        How supports change. The stationary law is the same for all. "pair flip": the paper's
        Metropolis exchanges of one column for another. "rejection free": the same chain in law, but
        not the same random numbers, at a cost for its changes only. "heat bath": a column comes in
        and the one that goes out is drawn by weight. "multi flip": up to ``n_pairs`` columns are
        exchanged at once. "auto": at each temperature the cheapest of the single exchanges, by
        counts of operations, chosen by the acceptance at the temperature before.
    n_pairs : int
        For "multi flip".
    polish : bool
        End with a descent to a swap-local minimum: no exchange of one column lowers the energy.
        The paper does not; switch it off to reproduce it.
    n_chains, n_jobs : int
        Independent chains, the best of which wins, and threads to run them in (−1: all cores).
        The result does not depend on ``n_jobs``.
    initial_support : array of k column indices, optional
        Where every chain starts; by default each at its own random support.
    keep_samples : bool
        Keep the support after every sweep, as ``result.samples``.
    observables : mapping of names to functions, optional
        Functions of the dense coefficient vector, averaged over the sweeps of each temperature into
        ``result.trajectory``, such as ``{"mse": instance.mse}``.
    random_state : None, int, SeedSequence or Generator
        One seed, one result.
    progress : bool
        Show a bar with the current distortion.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the best support found so far. Before
        the first chain has a support there is none to return, and it raises.

    Returns
    -------
    AnnealResult

    Examples
    --------
    >>> from l0anneal import anneal, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = anneal(instance.problem, 6, random_state=0)
    >>> bool((result.support == instance.support).all())
    True
    """
    began = time.perf_counter()
    k = problem.check_size(n_nonzero)
    if isinstance(n_chains, bool) or not isinstance(n_chains, (int, np.integer)) or n_chains < 1:
        raise ValueError(f"n_chains must be an integer ≥ 1; got {n_chains!r}")
    if move not in MOVES:
        raise ValueError(f"move is one of {', '.join(MOVES)}; got {move!r}")
    if isinstance(n_pairs, bool) or not isinstance(n_pairs, (int, np.integer)):
        raise ValueError(f"n_pairs must be an integer; got {n_pairs!r}")
    if not 1 <= n_pairs <= MOST_PAIRS:
        raise ValueError(f"n_pairs must be between 1 and {MOST_PAIRS}; got {n_pairs}")
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f'on_interrupt is "raise" or "return"; got {on_interrupt!r}')
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ValueError(f"schedule must be a Schedule, such as Schedule.paper(); got {schedule!r}")
    for name in observables or {}:
        if name in RESERVED_NAMES:
            raise ValueError(
                f"an observable cannot be called {name!r}: the trajectory has it already"
            )
    start = None if initial_support is None else problem.check_support(initial_support, k)
    seed = seed_of(random_state)
    warm_up(move)
    with one_blas_thread():
        if schedule is None:
            schedule = Schedule.automatic(problem, k)
        # once, before the chains share it
        _ = problem.gram if problem.gram_is_whole else problem.unit_columns
        run = _Run(
            problem,
            k,
            schedule,
            move,
            int(n_pairs),
            polish,
            keep_samples,
            dict(observables or {}),
        )
        bar = tqdm(
            total=schedule.n_sweeps * n_chains, unit="sweep", disable=not progress, leave=False
        )
        with bar:
            run.bar = bar
            chains, interrupted = _run_chains(run, seed, start, n_chains, n_jobs, on_interrupt)
        supports = [chain.support for chain in chains if chain.support is not None]
        energies = np.array([problem.energy(support) for support in supports])
        support = supports[int(np.argmin(energies))]
        x, energy = problem.least_squares(support)
    coef = np.zeros(problem.n_columns)
    coef[support] = x
    return AnnealResult(
        support=support,
        coef=coef,
        energy=energy,
        n_samples=problem.n_samples,
        schedule=schedule,
        general_position=problem.in_general_position,
        seed=seed,
        seconds=time.perf_counter() - began,
        interrupted=interrupted,
        refreshes=sum(chain.refreshes for chain in chains),
        chain_energies=energies,
        chain_supports=np.stack(supports),
        mean_energy=np.stack([chain.mean_energy for chain in chains]),
        std_energy=np.stack([chain.std_energy for chain in chains]),
        acceptance=np.stack([chain.acceptance for chain in chains]),
        kernels=np.stack([chain.kernels for chain in chains]),
        move=move,
        n_pairs=int(n_pairs),
        observed={
            name: np.stack([chain.observed[name] for chain in chains]) for name in run.observables
        },
        sampled_supports=np.stack([chain.samples for chain in chains]) if keep_samples else None,
    )


class _Stopped(Exception):
    """Ends a chain from within, between two kernel calls."""


@dataclass
class _Run:
    """What the chains of one run share."""

    problem: SparseProblem
    k: int
    schedule: Schedule
    move: str
    n_pairs: int
    polish: bool
    keep_samples: bool
    observables: dict[str, Observable]
    bar: Any = None
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pause(self) -> None:
        if self.stop.is_set():
            raise _Stopped

    def advance(self, n_sweeps: int, energy: float) -> None:
        with self.lock:
            self.bar.set_postfix_str(f"ε = {energy / self.problem.n_samples:.4g}", refresh=False)
            self.bar.update(n_sweeps)


class _Chain:
    """One chain: Algorithm 2. It can be stopped at any time and then holds the best so far."""

    def __init__(self, run: _Run) -> None:
        n_mu = len(run.schedule)
        self.mean_energy = np.full(n_mu, np.nan)
        self.std_energy = np.full(n_mu, np.nan)
        self.acceptance = np.full(n_mu, np.nan)
        self.kernels = np.full(n_mu, "", dtype=f"U{max(map(len, KERNELS))}")
        self.pair_acceptance = 1.0  # of the pair flip, at the temperature before
        self.observed = {name: np.full(n_mu, np.nan) for name in run.observables}
        shape = (run.schedule.n_sweeps, run.k) if run.keep_samples else (0, 0)
        self.samples = np.full(shape, -1, dtype=np.int32)
        self.support: NDArray[np.int64] | None = None  # until there is one
        self.refreshes = 0

    def anneal(
        self, run: _Run, seed: np.random.SeedSequence, start: NDArray[np.int64] | None
    ) -> None:
        workspace = Workspace(run.problem, run.k)
        workspace.pause = run.pause
        order, flips = seed.spawn(2)
        try:
            if start is None:
                n = run.problem.n_columns
                workspace.fill(run.k, np.random.default_rng(order).permutation(n))
            else:
                workspace.begin_at(start)
        except _Stopped:
            return
        self.support = workspace.support
        lowest = np.inf
        self.sweeps_done = 0
        state = stream(flips)
        try:
            for a, (mu, tau) in enumerate(run.schedule):
                self._at_temperature(run, workspace, state, a, mu, tau)
                if workspace.energy < lowest:
                    lowest, self.support = workspace.energy, workspace.support
            if run.polish:
                workspace.descend()
            self.support = workspace.support
        except _Stopped:
            if workspace.energy < lowest:
                self.support = workspace.support
        finally:
            self.refreshes = workspace.refreshes

    def _at_temperature(
        self,
        run: _Run,
        workspace: Workspace,
        state: NDArray[np.uint64],
        a: int,
        mu: float,
        tau: int,
    ) -> None:
        n = run.problem.n_columns
        beta = mu * run.problem.unit_energy
        energies = np.zeros(tau)
        observed = dict.fromkeys(self.observed, 0.0)
        tally = new_tally(run.n_pairs)
        kernel = workspace.choose(run.move, self.pair_acceptance)
        self.kernels[a] = kernel
        each_sweep = run.keep_samples or bool(observed)
        done = 0
        while done < tau:
            at_most = int(tally[PROPOSED]) + workspace.chunk
            end = min(at_most, (done + 1 if each_sweep else tau) * n)
            workspace.run(KERNELS[kernel], state, beta, end, energies, tally)
            run.pause()
            swept = int(tally[PROPOSED]) // n - done
            if swept:
                done += swept
                run.advance(swept, workspace.energy)
                if run.keep_samples:
                    self.samples[self.sweeps_done + done - 1] = workspace.support
                for name in observed:
                    observed[name] += run.observables[name](workspace.coef)
        self.sweeps_done += tau
        self.mean_energy[a] = workspace.to_energy(energies.mean())
        if tau > 1:
            self.std_energy[a] = energies.std(ddof=1) * run.problem.unit_energy
        self.acceptance[a] = tally[ACCEPTED] / tally[PROPOSED]
        self.pair_acceptance = pair_acceptance(kernel, float(self.acceptance[a]), run.k)
        for name, total in observed.items():
            self.observed[name][a] = total / tau


def _run_chains(
    run: _Run,
    seed: int,
    start: NDArray[np.int64] | None,
    n_chains: int,
    n_jobs: int | None,
    on_interrupt: str,
) -> tuple[list[_Chain], bool]:
    """Run the chains in threads; chain c has the random stream (seed, c) wherever it runs."""
    chains = [_Chain(run) for _ in range(n_chains)]
    n_threads = min(n_chains, effective_n_jobs(n_jobs if n_jobs is not None else 1))
    interrupted = False
    futures: list[Future[None]] = []
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="l0anneal")
    try:
        for c, chain in enumerate(chains):
            futures.append(pool.submit(chain.anneal, run, child(seed, c), start))
        for future in futures:
            future.result()
    except KeyboardInterrupt:
        interrupted = True
        if on_interrupt == "raise":
            raise
    finally:
        run.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
    begun = [chain for chain in chains if chain.support is not None]
    if not begun:
        raise KeyboardInterrupt
    return begun, interrupted
