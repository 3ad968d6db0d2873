"""Simulated annealing: the paper's Algorithm 2, with one chain or many."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.checks import check_choice, check_integer
from l0anneal._util.seeds import RandomState
from l0anneal.engine.kernel_choice import KERNELS, MOVES
from l0anneal.engine.moves.descent import RESOLUTION
from l0anneal.engine.moves.multi_flip import MOST_PAIRS
from l0anneal.engine.warm_up import warm_up
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.chain import Chain, Settings, run_chains
from l0anneal.samplers.annealing.result import AnnealResult
from l0anneal.samplers.comparison import compare_chains
from l0anneal.samplers.greedy import NO_SCHEDULE, NOT_BEGUN, greedy_order
from l0anneal.samplers.observables import Observable, check_observables
from l0anneal.samplers.pace import (
    AdaptivePace,
    AdaptiveSchedule,
    FixedPace,
    Pace,
    TimedPace,
    interpolated,
)
from l0anneal.samplers.result import chain_fields
from l0anneal.samplers.run import OnInterrupt, OutOfTime, Run
from l0anneal.samplers.schedule import Schedule
from l0anneal.samplers.temperature_range import automatic_temperatures, temperature_range

__all__ = ["anneal"]

Floats = NDArray[np.float64]

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
    on_interrupt: OnInterrupt = "raise",
) -> AnnealResult:
    """Find the best ``n_nonzero`` columns by simulated annealing.

    Minimises ½‖y − Ax‖² over supports of exactly ``n_nonzero`` columns. A Markov chain proposes
    random changes of the support, by default exchanges of one column for another, and accepts
    changes for the worse with a probability that falls with the temperature. At each inverse
    temperature μ_a of the schedule it makes τ_a sweeps; a sweep is N proposals.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary A and the signal y.
    n_nonzero : int
        k, the number of columns. Columns that are nearly linearly dependent are never chosen
        together: after regression of any chosen column on the others, more than 1e-7 of its squared
        norm is left.
    schedule : Schedule or AdaptiveSchedule, optional
        By default `Schedule.automatic`, which derives its temperatures from the problem.
        `Schedule.paper` is the schedule of the paper. An `AdaptiveSchedule` chooses its steps
        during the run. A schedule may also heat, for example `Schedule.there_and_back`; then the
        answer is the best of the supports with which the temperatures ended.
    move : {"pair flip", "auto", "heat bath", "multi flip", "rejection free"}
        How supports change. All moves have the same stationary distribution and differ in speed.
        "pair flip" is the paper's Metropolis exchange of one column for another. "rejection free"
        is statistically the same chain with other random numbers, and only its accepted exchanges
        take time. "heat bath" lets a random column enter and draws the column that leaves according
        to the energies of the resulting supports. "multi flip" exchanges up to ``n_pairs`` columns
        at once. "auto" uses, at each temperature, the cheapest move that exchanges a single column,
        judged by counts of operations and by the acceptance rate at the previous temperature.
    n_pairs : int
        The largest number of columns that "multi flip" exchanges at once.
    polish : bool
        End with a descent to a swap-local minimum, where no exchange of one column lowers the energy.
        The paper does not do this; switch it off to reproduce the paper.
    n_chains, n_jobs : int
        The number of independent chains, of which the best is returned, and the number of threads that
        run them (−1: all cores). The result does not depend on ``n_jobs``.
    initial_support : array of k column indices, optional
        Where every chain starts; by default each chain draws its own random support.
    keep_samples : bool
        Keep the support after every sweep, as ``result.samples``, with its energy and observables.
    observables : mapping of names to functions, optional
        Functions of the dense coefficient vector, averaged over the sweeps of each temperature into
        ``result.trajectory``, such as ``{"mse": instance.mse}``.
    time_limit : float, optional
        Wall-clock time of the whole call in seconds, not counting the compilation of kernels. If no
        ``schedule`` is given, the run uses all of this time for sweeps at the middle temperatures
        of the automatic schedule. A given schedule is shortened if there is not enough time for it.
        The result records the schedule that was executed, with which the run can be replayed
        exactly.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers. Without a time limit, the same seed gives the same result for
        any ``n_jobs``. None draws a new seed, which the result stores as ``seed``.
    progress : bool
        Show a progress bar with the current distortion.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the best support found so far. Before the
        first chain has a support there is nothing to return, and KeyboardInterrupt is raised.

    Returns
    -------
    AnnealResult

    See Also
    --------
    solve : Choose a sampler for a problem.
    Schedule : Temperatures and sweeps.
    AdaptiveSchedule : Temperatures that are chosen during the run.
    temper : Sample at several temperatures in equilibrium.
    AnnealResult : The result.

    Examples
    --------
    >>> from l0anneal import anneal, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = anneal(instance.problem, 6, random_state=0)
    >>> bool((result.support == instance.support).all())
    True
    """
    settings = _check(
        problem,
        n_nonzero,
        move=move,
        n_pairs=n_pairs,
        polish=polish,
        initial_support=initial_support,
        keep_samples=keep_samples,
        observables=observables,
    )
    n_chains = check_integer("n_chains", n_chains, 1)
    if schedule is not None and not isinstance(schedule, Schedule | AdaptiveSchedule):
        raise ValueError(f"schedule must be a Schedule, such as Schedule.paper(); got {schedule!r}")
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress,
        on_interrupt=on_interrupt,
    ) as run:
        run.compile(warm_up, move)
        try:
            with run.to_start():
                run.prepare(problem)
                steps = _steps(run, settings, schedule, n_chains)
            if isinstance(steps, Schedule):
                run.expect(steps.n_sweeps * n_chains)
            seeds = [run.stream("annealing chain", c) for c in range(n_chains)]
            chains = [Chain(run, settings, seed) for seed in seeds]
            executed, cut = run_chains(run, chains, steps)
        except OutOfTime:
            return _not_begun(run, settings)
        return _package(run, settings, chains, executed, steps, cut)


def _check(
    problem: SparseProblem,
    n_nonzero: int,
    *,
    move: str,
    n_pairs: int,
    polish: bool,
    initial_support: ArrayLike | None,
    keep_samples: bool,
    observables: Mapping[str, Observable] | None,
) -> Settings:
    """Check the arguments that all chains share."""
    k = problem.check_size(n_nonzero)
    check_choice("move", move, tuple(MOVES))
    n_pairs = check_integer("n_pairs", n_pairs, 1, MOST_PAIRS)
    checked = check_observables(observables)
    start = None if initial_support is None else problem.check_support(initial_support, k)
    return Settings(problem, k, start, move, n_pairs, polish, keep_samples, checked)


def _steps(
    run: Run, settings: Settings, schedule: Schedule | AdaptiveSchedule | None, n_chains: int
) -> Schedule | Pace:
    """Return what the chains follow: a schedule, or a pace that decides step by step."""
    problem, k = settings.problem, settings.k
    if isinstance(schedule, Schedule) and run.time_limit is None:
        return schedule
    if schedule is None and run.time_limit is None:
        mu = automatic_temperatures(problem, k, pause=run.listen)
        return Schedule(tuple(mu), (5,) * mu.size, "automatic")
    fill = schedule is None
    if isinstance(schedule, Schedule):
        pace: FixedPace | AdaptivePace = FixedPace(schedule)
    else:
        hot, cold = (mu / problem.unit_energy for mu in temperature_range(problem, k, run.listen))
        if schedule is None:
            # supports relax slowly in this range; outside it, time would be wasted
            schedule = Schedule.geometric(min(6.0 * hot, 0.5 * cold), 0.5 * cold, 60)
            pace = FixedPace(schedule)
        else:
            mu_max = cold if schedule.mu_max is None else schedule.mu_max
            mu_min = min(hot, mu_max) if schedule.mu_min is None else schedule.mu_min
            pace = AdaptivePace(schedule, mu_min, max(mu_min, mu_max))
    if run.time_limit is None:
        return pace
    return _timed(run, settings, pace, math.ceil(n_chains / run.n_threads), fill)


def _timed(
    run: Run,
    settings: Settings,
    pace: FixedPace | AdaptivePace,
    n_rounds: int,
    fill: bool,
) -> Pace:
    """Fit a pace into the time limit: rehearse it with single sweeps to see what each of them costs."""
    assert run.time_limit is not None
    mus = np.sort(pace.range())
    mus = mus[np.linspace(0, mus.size - 1, REHEARSAL).astype(int)]
    rehearsal = Chain(run, settings, run.stream("annealing rehearsal"))
    rehearsal.begin()
    seconds: list[float] = []
    latest = run.now() + 0.15 * run.time_limit
    for mu in mus:
        began = run.now()
        rehearsal.step(float(mu), 1)
        seconds.append((run.now() - began) * n_rounds)
        if run.now() > latest:
            break
    ending = 0.1 * run.time_limit
    if run.now() < latest:
        began = run.now()
        with suppress(OutOfTime), run.until(latest):
            rehearsal.finish()
        ending = (run.now() - began) * n_rounds
    profile = interpolated(mus[: len(seconds)], np.array(seconds))
    deadline = run.began + 0.98 * run.time_limit - min(ending, 0.1 * run.time_limit)
    return TimedPace(pace, deadline, profile, fill, run.now)


def _not_begun(run: Run, settings: Settings) -> AnnealResult:
    """Return greedy columns, because the time limit is too short for a sweep."""
    problem = settings.problem
    support = settings.start
    if support is None:
        support = np.sort(greedy_order(run, problem, settings.k))
    answer = chain_fields(problem, [support])
    missing = np.full((1, 1), np.nan)
    return AnnealResult(
        **answer,
        **run.record(NOT_BEGUN),
        schedule=NO_SCHEDULE,
        comparison=compare_chains(problem, [support], answer["chain_energies"], 0.0),
        general_position=False,
        refreshes=0,
        mean_energy=missing,
        std_energy=missing,
        acceptance=missing,
        kernels=np.full((1, 1), "", dtype="U1"),
        move=settings.move,
        n_pairs=settings.n_pairs,
        polished=False,
        observed=dict.fromkeys(settings.observables, missing),
        sampled_supports=np.full((1, 1, settings.k), -1, dtype=np.int32)
        if settings.keep_samples
        else None,
        sampled_values=dict.fromkeys(("energy", *settings.observables), missing)
        if settings.keep_samples
        else {},
    )


def _package(
    run: Run,
    settings: Settings,
    chains: list[Chain],
    executed: Schedule,
    steps: Schedule | Pace,
    cut: bool,
) -> AnnealResult:
    """Put what the chains found into a result."""
    begun = [chain for chain in chains if chain.support is not None]
    run.require(begun)
    problem, n = settings.problem, len(executed)
    supports = [chain.support for chain in begun if chain.support is not None]
    answer = chain_fields(problem, supports)
    ended = "the schedule was completed"
    if cut or (isinstance(steps, TimedPace) and steps.cut):
        ended = "time limit"
    return AnnealResult(
        **answer,
        **run.record(ended),
        schedule=executed,
        comparison=compare_chains(
            problem, supports, answer["chain_energies"], RESOLUTION * problem.unit_energy
        ),
        general_position=problem.in_general_position,
        refreshes=sum(chain.refreshes for chain in begun),
        mean_energy=_table(begun, n, lambda chain: chain.mean_energy),
        std_energy=_table(begun, n, lambda chain: chain.std_energy),
        acceptance=_table(begun, n, lambda chain: chain.acceptance),
        kernels=_kernels(begun, n),
        move=settings.move,
        n_pairs=settings.n_pairs,
        polished=settings.polish and not cut,
        observed={
            name: _table(begun, n, lambda chain, name=name: chain.observed[name])  # type: ignore[misc]
            for name in settings.observables
        },
        sampled_supports=_samples(begun, executed.n_sweeps, settings.k)
        if settings.keep_samples
        else None,
        sampled_values={
            name: _table(begun, executed.n_sweeps, lambda chain, name=name: chain.sampled[name])  # type: ignore[misc]
            for name in ("energy", *settings.observables)
            if settings.keep_samples
        },
    )


def _table(chains: list[Chain], n: int, values: Callable[[Chain], list[float]]) -> Floats:
    """Return values by chain and temperature or sweep; NaN where a chain had been stopped."""
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
