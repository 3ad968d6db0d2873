"""Simulated annealing: the paper's Algorithm 2, one chain or many."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_integer, check_time_limit
from l0anneal._util.seeds import RandomState, seed_of
from l0anneal.engine.kernel_choice import KERNELS, MOVES
from l0anneal.engine.moves.multi_flip import MOST_PAIRS
from l0anneal.engine.warm_up import warm_up
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.chain import Chain, Observable, Run, run_chains
from l0anneal.samplers.annealing.result import RESERVED_NAMES, AnnealResult
from l0anneal.samplers.pace import (
    AdaptivePace,
    AdaptiveSchedule,
    FixedPace,
    Pace,
    TimedPace,
    interpolated,
)
from l0anneal.samplers.schedule import Schedule, temperature_range
from l0anneal.samplers.search_result import fitted

__all__ = ["anneal"]

Floats = NDArray[np.float64]

GRACE = 0.1  # seconds over the limit, or a tenth of it, before a step is cut short in its middle
REHEARSAL = 8  # temperatures at which a sweep is timed before a run with a time limit


def anneal(
    problem: SparseProblem,
    n_nonzero: int,
    schedule: Schedule | AdaptiveSchedule | None = None,
    *,
    move: str = "pair flip",
    n_pairs: int = 2,
    polish: bool = True,
    n_chains: int = 1,
    n_jobs: int | None = None,
    initial_support: ArrayLike | None = None,
    keep_samples: bool = False,
    observables: Mapping[str, Observable] | None = None,
    time_limit: float | None = None,
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
        `Schedule.paper` is the paper's; an `AdaptiveSchedule` is made in the run.
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
    time_limit : float, optional
        Seconds, all included except the compilation of kernels. Without a ``schedule`` the run fills
        them, on the middle part of the automatic one: more time, more sweeps. A given schedule is cut
        down to them, if need be. The schedule that was executed is in the result, and replays it
        exactly.
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
    k = problem.check_size(n_nonzero)
    n_chains = check_integer("n_chains", n_chains, 1)
    if move not in MOVES:
        raise ValueError(f"move is one of {', '.join(MOVES)}; got {move!r}")
    if isinstance(n_pairs, bool) or not isinstance(n_pairs, (int, np.integer)):
        raise ValueError(f"n_pairs must be an integer; got {n_pairs!r}")
    if not 1 <= n_pairs <= MOST_PAIRS:
        raise ValueError(f"n_pairs must be between 1 and {MOST_PAIRS}; got {n_pairs}")
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f'on_interrupt is "raise" or "return"; got {on_interrupt!r}')
    if schedule is not None and not isinstance(schedule, Schedule | AdaptiveSchedule):
        raise ValueError(f"schedule must be a Schedule, such as Schedule.paper(); got {schedule!r}")
    check_time_limit(time_limit)
    for name in observables or {}:
        if name in RESERVED_NAMES:
            raise ValueError(
                f"an observable cannot be called {name!r}: the trajectory has it already"
            )
    start = None if initial_support is None else problem.check_support(initial_support, k)
    seed = seed_of(random_state)
    warm_up(move)
    began = time.perf_counter()
    with one_blas_thread():
        problem.make_ready()
        run = Run(
            problem,
            k,
            seed,
            start,
            move,
            int(n_pairs),
            polish,
            keep_samples,
            dict(observables or {}),
        )
        fill = schedule is None
        if schedule is None:
            schedule = Schedule.automatic(problem, k) if time_limit is None else _brief(problem, k)
        plan: Schedule | Pace = _plan(run, schedule)
        if time_limit is not None:
            n_rounds = math.ceil(n_chains / effective_n_jobs(n_jobs if n_jobs is not None else 1))
            plan = _timed(run, _plan(run, schedule), began, time_limit, n_rounds, fill)
        total = plan.n_sweeps * n_chains if isinstance(plan, Schedule) else None
        with tqdm(total=total, unit="sweep", disable=not progress, leave=False) as bar:
            run.bar = bar
            chains, executed, interrupted = run_chains(run, plan, n_chains, n_jobs, on_interrupt)
        answer = fitted(problem, [chain.support for chain in chains if chain.support is not None])
    return AnnealResult(
        **answer,
        schedule=executed,
        general_position=problem.in_general_position,
        seed=seed,
        seconds=time.perf_counter() - began,
        interrupted=interrupted,
        refreshes=sum(chain.refreshes for chain in chains),
        mean_energy=_table(chains, len(executed), lambda chain: chain.mean_energy),
        std_energy=_table(chains, len(executed), lambda chain: chain.std_energy),
        acceptance=_table(chains, len(executed), lambda chain: chain.acceptance),
        kernels=_kernels(chains, len(executed)),
        move=move,
        n_pairs=int(n_pairs),
        observed={
            name: _table(chains, len(executed), lambda chain, name=name: chain.observed[name])  # type: ignore[misc]
            for name in run.observables
        },
        sampled_supports=_samples(chains, executed.n_sweeps, k) if keep_samples else None,
    )


def _brief(problem: SparseProblem, k: int) -> Schedule:
    """Where supports relax slowly: hotter, and colder, time would be wasted."""
    hot, cold = temperature_range(problem, k)
    return Schedule.geometric(min(6.0 * hot, 0.5 * cold), 0.5 * cold, 60)


def _plan(run: Run, schedule: Schedule | AdaptiveSchedule) -> Schedule | AdaptivePace:
    """What is given to the chains; an adaptive schedule gets the ends that it does not have."""
    if isinstance(schedule, Schedule):
        return schedule
    hot, cold = temperature_range(run.problem, run.k)
    mu_max = cold if schedule.mu_max is None else schedule.mu_max
    mu_min = min(hot, mu_max) if schedule.mu_min is None else schedule.mu_min
    return AdaptivePace(schedule, mu_min, max(mu_min, mu_max))


def _timed(
    run: Run,
    plan: Schedule | AdaptivePace,
    began: float,
    time_limit: float,
    n_rounds: int,
    fill: bool,
) -> Pace:
    """Fit a plan into the seconds: rehearse it with single sweeps to see what each costs."""
    run.deadline = began + max(1.1 * time_limit, time_limit + GRACE)
    steps = plan if isinstance(plan, Schedule) else Schedule.geometric(plan.mu_min, plan.mu_max)
    mus = [steps.mu[i] for i in np.linspace(0, len(steps) - 1, REHEARSAL).astype(int)]
    rehearsal = Chain(run, 2**32 - 1)
    rehearsal.begin()
    seconds: list[float] = []
    latest = time.perf_counter() + 0.15 * time_limit
    for mu in mus:
        start = time.perf_counter()
        rehearsal.step(mu, 1)
        seconds.append((time.perf_counter() - start) * n_rounds)
        if time.perf_counter() > latest:
            break
    ending = 0.1 * time_limit
    if time.perf_counter() < latest:
        start = time.perf_counter()
        rehearsal.finish()
        ending = (time.perf_counter() - start) * n_rounds
    profile = interpolated(np.array(mus[: len(seconds)]), np.array(seconds))
    pace = FixedPace(plan) if isinstance(plan, Schedule) else plan
    deadline = began + 0.98 * time_limit - min(ending, 0.1 * time_limit)
    return TimedPace(pace, deadline, profile, fill)


def _table(chains: list[Chain], n: int, values: Callable[[Chain], list[float]]) -> Floats:
    """By chain and temperature; NaN where a chain was stopped before."""
    table = np.full((len(chains), n), np.nan)
    for row, chain in zip(table, chains):
        row[: len(values(chain))] = values(chain)
    return table


def _kernels(chains: list[Chain], n: int) -> NDArray[np.str_]:
    table = np.full((len(chains), n), "", dtype=f"U{max(map(len, KERNELS))}")
    for row, chain in zip(table, chains):
        row[: len(chain.kernels)] = chain.kernels
    return table


def _samples(chains: list[Chain], n_sweeps: int, k: int) -> NDArray[np.int32]:
    table = np.full((len(chains), n_sweeps, k), -1, dtype=np.int32)
    for block, chain in zip(table, chains):
        if chain.samples:
            block[: len(chain.samples)] = np.stack(chain.samples)
    return table
