"""Replica exchange, in temperature and in the size of the support.

A replica is a support with its own random numbers. There is one replica at each temperature of a
ladder, and replicas exchange places, so that a replica that is trapped at a low temperature gets to
higher ones and can escape. If several sizes are asked for, a replica also adds and removes columns,
and each size has a weight of its own at each rung of the ladder: the paper's extended ensemble. The
run has three parts: a *pilot run*, which moves the ladder to equal exchange rates and learns the
weights; a burn-in, by which the replicas forget the pilot run; and the averaged sweeps, during
which the ladder and the weights stay fixed and rung a has the distribution

    P_a(S) ∝ exp(−μ_a E(S) + w_{a,|S|}).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.checks import check_integer, check_positive
from l0anneal._util.seeds import RandomState
from l0anneal.engine.assistant import run_steps
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.size_flip import size_flip
from l0anneal.engine.rng import stream
from l0anneal.engine.warm_up import tiny_problem, workspace_steps
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.observables import Observable, check_observables
from l0anneal.samplers.run import OnInterrupt, OutOfTime, Run, RunStopped
from l0anneal.samplers.temperature_range import temperature_range
from l0anneal.samplers.tempering.ladder import (
    MOST_RUNGS,
    SURVEY_TEMPERATURES,
    SURVEYED_SIZES,
    ReplicaLadder,
)
from l0anneal.samplers.tempering.package import LEAST_SWEEPS, Counts, Series, not_begun, package
from l0anneal.samplers.tempering.result import TemperResult

__all__ = ["temper"]

Floats = NDArray[np.float64]

PILOT_STAGES = (1, 2, 4)  # parts of the pilot run; the ladder moves after each but the last
FIRST_RUNGS = 16
SURVEY_TAU = 5
START = 0.3  # part of a time limit in which all replicas have to make a sweep


def temper(
    problem: SparseProblem,
    n_nonzero: int | None = None,
    *,
    sizes: tuple[int, int] | None = None,
    ladder: ArrayLike | None = None,
    n_replicas: int | None = None,
    mu_max: float | None = None,
    n_sweeps: int = 2000,
    n_pilot: int | None = None,
    n_burn_in: int | None = None,
    survey_tau: int | None = None,
    polish: bool = True,
    initial_support: ArrayLike | None = None,
    n_jobs: int | None = None,
    keep_samples: bool = False,
    observables: Mapping[str, Observable] | None = None,
    time_limit: float | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: OnInterrupt = "raise",
) -> TemperResult:
    """Sample supports at many temperatures by replica exchange (parallel tempering).

    One replica of the support runs at each temperature of a ladder, and neighbouring replicas try
    to exchange places after each sweep of N proposals. With ``sizes``, the number of columns
    varies as well.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary A and the signal y.
    n_nonzero : int, optional
        k, the number of columns. Give either ``n_nonzero`` or ``sizes``.
    sizes : (k_min, k_max), optional
        The smallest and the largest number of columns. All sizes in between are visited at each
        temperature.
    ladder : array, optional
        Inverse temperatures in ascending order, one for each replica. By default a pilot run finds
        a ladder on which all neighbours exchange equally often.
    n_replicas : int, optional
        The number of replicas, if the ladder is found by the pilot run. By default the pilot run
        also finds this number.
    mu_max : float, optional
        The last inverse temperature, if the ladder is found by the pilot run; by default that of
        `Schedule.automatic`.
    n_sweeps : int
        The number of sweeps of each replica that are averaged.
    n_pilot : int, optional
        The number of sweeps of each replica in the pilot run; by default half of ``n_sweeps``.
    n_burn_in : int, optional
        The number of sweeps between the pilot run and the averaged ones; by default a tenth of
        ``n_sweeps``.
    survey_tau : int, optional
        With ``sizes``, the number of sweeps at each temperature of the survey, a few short
        annealings that give the first weights of the sizes; by default 5. With 0 there is none.
    polish : bool
        End with a descent from the best support of each size to a swap-local minimum.
    initial_support : array of ``n_nonzero`` column indices, optional
        Where every replica starts; by default each starts at a random support of its own. A run from a
        known solution and one from random supports agree if both have reached equilibrium. It cannot
        be combined with ``sizes``.
    n_jobs : int
        Number of threads (−1: all cores). The result does not depend on it.
    keep_samples : bool
        Keep the supports after every averaged sweep, as ``result.samples``, with their energies and
        observables.
    observables : mapping of names to functions, optional
        Functions of the dense coefficient vector, such as ``{"mse": instance.mse}``. Their averages
        over the sweeps at each temperature, and the errors of these, are in ``result.trajectory``.
    time_limit : float, optional
        Wall-clock time of the whole call in seconds, not counting the compilation of kernels. The
        run uses all of this time, about a third of it for the pilot run, and the numbers of sweeps
        follow from the time instead of the arguments. If the time is too short to move 16 replicas
        a few times, there are fewer replicas and no pilot run. With ``sizes``, the survey is
        shortened if need be. The result records all these numbers (``n_sweeps``, ``n_pilot``,
        ``n_burn_in``, ``n_replicas``, ``survey_tau``); pass them in place of the time limit to
        replay the run exactly.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers. Without a time limit, the same seed gives the same result for
        any ``n_jobs``. None draws a new seed, which the result stores as ``seed``.
    progress : bool
        Show a progress bar.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the best supports found so far.

    Returns
    -------
    TemperResult
        If the run was too short for its averages and samples to be reliable, reading them raises
        `RunTooShort`, and ``result.refusals`` says why.

    See Also
    --------
    population_anneal : Sample by cooling a population.
    autocorrelation_time : How far apart independent samples are.
    TemperResult : The result.
    overlap : Compare supports.

    Examples
    --------
    >>> from l0anneal import ensembles, temper
    >>> instance = ensembles.planted(20, 0.8, 0.2, support="fixed", random_state=1)
    >>> result = temper(instance.problem, sizes=(2, 4), n_sweeps=1000, random_state=0)
    >>> bool((result.support == instance.support).all())
    True
    >>> result.path["support"].sel(size=3).to_numpy()[:3].size
    3
    """
    least, most = _check_sizes(problem, n_nonzero, sizes)
    start = _check_start(problem, initial_support, least, most)
    checked = check_observables(observables)
    counts = _check_counts(n_sweeps, n_pilot, n_burn_in, survey_tau, n_replicas)
    if mu_max is not None:
        check_positive("mu_max", mu_max)
    given = None if ladder is None else _check_ladder(ladder, n_replicas, mu_max)
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress,
        on_interrupt=on_interrupt,
    ) as run:
        run.compile(_warm_up, least < most)
        rungs, series = None, Series(keep_samples, checked)
        try:
            with run.to_start(START):
                run.prepare(problem)
                if run.time_limit is not None:
                    _afford(run, problem, least, most, given is None, counts)
                else:
                    run.expect(counts.n_pilot + counts.n_burn_in + counts.n_sweeps)
                mu = _first_ladder(run, problem, most, counts, mu_max) if given is None else given
                rungs = ReplicaLadder(run, problem, least, most, mu * problem.unit_energy, start)
                rungs.survey(counts.survey_tau)
                done = _first_stage(run, rungs, counts)
            _run(run, rungs, given is None, counts, series, done)
        except OutOfTime:
            if rungs is None or not rungs.begun:
                return not_begun(run, problem, least, most)
        except RunStopped:
            run.require(rungs is not None)
        assert rungs is not None  # the averaged sweeps so far are in the series
        return package(run, rungs, given, counts, series, polish)


def _afford(
    run: Run, problem: SparseProblem, least: int, most: int, tune: bool, counts: Counts
) -> None:
    """Reduce the numbers to what the time limit allows, judging by one sweep at μ = 0."""
    assert run.time_limit is not None
    began = run.now()
    one = ReplicaLadder(run.part(random_state=0), problem, most, most, np.array([0.0]))
    one.round()
    seconds = run.now() - began
    if tune and counts.n_replicas is None:
        n = int(run.time_limit / (5 * seconds))
        counts.n_replicas = max(2, n) if n < FIRST_RUNGS else None
    if least < most:
        each = seconds * SURVEY_TEMPERATURES * min(SURVEYED_SIZES, most - least + 1)
        counts.survey_tau = min(counts.survey_tau, int(0.15 * run.time_limit / each))


def _run(
    run: Run, rungs: ReplicaLadder, tune: bool, counts: Counts, series: Series, done: int
) -> None:
    """The pilot run, of which ``done`` sweeps have been made, the burn-in and the averaged sweeps."""
    _pilot(run, rungs, tune, counts, done)
    if run.time_limit is not None:
        counts.n_burn_in = counts.n_pilot // 5
    for _ in range(counts.n_burn_in):
        _step(run, rungs)
    rungs.clear()
    n_done = 0
    while _wanted(run, counts, n_done):
        rungs.round()
        series.note(rungs)
        rungs.exchange()
        run.advance()
        n_done += 1


def _wanted(run: Run, counts: Counts, n_done: int) -> bool:
    """Whether another sweep is to be averaged."""
    if run.time_limit is None:
        return n_done < counts.n_sweeps
    return n_done < LEAST_SWEEPS or run.now() < run.began + 0.96 * run.time_limit


def _step(run: Run, rungs: ReplicaLadder, learn: bool = False) -> None:
    rungs.round(learn)
    rungs.exchange()
    run.advance()


def _first_stage(run: Run, rungs: ReplicaLadder, counts: Counts) -> int:
    """With a time limit, make the first stage of the pilot run, and return its number of sweeps.

    The number of sweeps for which this stage has time determines all other numbers of sweeps.
    """
    if run.time_limit is None:
        return 0
    done, began, end = 0, run.now(), run.began + 0.04 * run.time_limit
    while done == 0 or run.now() < end:
        _step(run, rungs, learn=True)
        done += 1
    counts.n_pilot = done * sum(PILOT_STAGES) // PILOT_STAGES[0]
    left = run.began + 0.96 * run.time_limit - run.now()
    if done == 1 and counts.n_pilot * (run.now() - began) > 0.5 * left:
        counts.n_pilot = 1
    return done


def _pilot(run: Run, rungs: ReplicaLadder, tune: bool, counts: Counts, done: int) -> None:
    """Learn the weights and, if it is not given, the ladder; ``done`` sweeps have been made."""
    n_pilot = counts.n_pilot
    for stage, end in enumerate(np.cumsum(PILOT_STAGES) * n_pilot // sum(PILOT_STAGES)):
        if stage > 0 and tune and n_pilot >= sum(PILOT_STAGES) and np.all(rungs.tried > 0):
            rungs.tune(counts.n_replicas)
        for _ in range(done, int(end)):
            _step(run, rungs, learn=True)
        done = max(done, int(end))


def _first_ladder(
    run: Run, problem: SparseProblem, k: int, counts: Counts, mu_max: float | None
) -> Floats:
    """Return a geometric ladder between the hot and the cold end of the automatic schedule."""
    hot, cold = (mu / problem.unit_energy for mu in temperature_range(problem, k, run.listen))
    cold = cold if mu_max is None else mu_max
    hot = min(hot, 0.5 * cold)
    n_rungs = FIRST_RUNGS if counts.n_replicas is None else counts.n_replicas
    return np.geomspace(hot, cold, n_rungs)


# ---------------------------------------------------------------- checks


def _check_counts(
    n_sweeps: int,
    n_pilot: int | None,
    n_burn_in: int | None,
    survey_tau: int | None,
    n_replicas: int | None,
) -> Counts:
    n_sweeps = check_integer("n_sweeps", n_sweeps, LEAST_SWEEPS)
    return Counts(
        n_sweeps=n_sweeps,
        n_pilot=n_sweeps // 2 if n_pilot is None else check_integer("n_pilot", n_pilot, 1),
        n_burn_in=n_sweeps // 10 if n_burn_in is None else check_integer("n_burn_in", n_burn_in, 0),
        survey_tau=SURVEY_TAU if survey_tau is None else check_integer("survey_tau", survey_tau, 0),
        n_replicas=None
        if n_replicas is None
        else check_integer("n_replicas", n_replicas, 2, 10 * MOST_RUNGS),
    )


def _check_sizes(
    problem: SparseProblem, n_nonzero: int | None, sizes: tuple[int, int] | None
) -> tuple[int, int]:
    if (n_nonzero is None) == (sizes is None):
        raise ValueError("give either n_nonzero or sizes=(k_min, k_max)")
    if sizes is None:
        k = problem.check_size(n_nonzero)
        return k, k
    if not isinstance(sizes, (tuple, list)) or len(sizes) != 2:
        raise ValueError(f"sizes is a pair (k_min, k_max); got {sizes!r}")
    least, most = problem.check_size(sizes[0]), problem.check_size(sizes[1])
    if least > most:
        raise ValueError(f"sizes is a pair k_min ≤ k_max; got {sizes!r}")
    return least, most


def _check_start(
    problem: SparseProblem, initial_support: ArrayLike | None, least: int, most: int
) -> NDArray[np.int64] | None:
    if initial_support is None:
        return None
    if least < most:
        raise ValueError("initial_support needs supports of one size: give n_nonzero, not sizes")
    return problem.check_support(initial_support, most)


def _check_ladder(ladder: ArrayLike, n_replicas: int | None, mu_max: float | None) -> Floats:
    if n_replicas is not None or mu_max is not None:
        raise ValueError("give a ladder, or n_replicas and mu_max for one to be found; not both")
    mu = np.asarray(ladder, dtype=np.float64)
    if mu.ndim != 1 or mu.size == 0 or not np.all(np.isfinite(mu)) or mu[0] < 0:
        raise ValueError("a ladder is a list of inverse temperatures, finite and ≥ 0")
    if np.any(np.diff(mu) <= 0):
        raise ValueError("the inverse temperatures of a ladder must ascend")
    return mu


@cache
def _warm_up(with_sizes: bool) -> None:
    """Compile the kernels that replica exchange uses, or load them, once per process."""
    run_steps(_steps, with_sizes)


def _steps(with_sizes: bool) -> list[Callable[[], object]]:
    return [*workspace_steps("pair flip"), *([_flip_sizes] if with_sizes else [])]


def _flip_sizes() -> None:
    workspace = Workspace(tiny_problem(), 2)
    law = (0.0, np.zeros(2), 1, 0.0, np.zeros(2, dtype=np.int64))
    state = stream(np.random.SeedSequence(0))
    workspace.run(size_flip, state, *law, 0, np.zeros(1), new_tally())
