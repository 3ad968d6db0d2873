"""Replica exchange: in temperature, and in the size of the support.

Replicas at a ladder of temperatures exchange places, so that one that is trapped in the cold is
carried to where it melts. Where several sizes are asked for, a replica also adds and removes
columns, each size having its own weight at each rung: the paper's extended ensemble. The run has
three parts: a *pilot*, in which the ladder is moved to equal exchange rates and the weights are
learnt; a tenth of the sweeps to forget it; and the sweeps that count, during which nothing is
changed and rung a has the law

    P_a(S) ∝ exp(−μ_a E(S) + w_{a,|S|}).
"""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_integer, check_time_limit
from l0anneal._util.seeds import RandomState, seed_of
from l0anneal.engine.warm_up import patience, tiny_problem, warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.autocorrelation import autocorrelation_time
from l0anneal.samplers.schedule import temperature_range
from l0anneal.samplers.tempering.ladder import MOST_RUNGS, ReplicaLadder
from l0anneal.samplers.tempering.result import TemperResult

__all__ = ["temper"]

Floats = NDArray[np.float64]

LEAST_SWEEPS = 2
PILOT_STAGES = (1, 2, 4)  # parts of the pilot; the ladder moves after each but the last
FIRST_RUNGS = 16

# a run is too short with fewer than TRIPS round trips, fewer than TIMES autocorrelation times, or
# halves that differ by more than SIGMAS standard errors
TRIPS = 20
TIMES = 100
SIGMAS = 5.0


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
    polish: bool = True,
    n_jobs: int | None = None,
    keep_samples: bool = False,
    time_limit: float | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> TemperResult:
    """Sample supports at many temperatures, and sizes, by replicas that exchange places.

    Parameters
    ----------
    problem : SparseProblem
        A and y.
    n_nonzero : int, optional
        k, the size of the support; or else
    sizes : (k_min, k_max), optional
        the sizes of the supports, all of which are visited at each temperature.
    ladder : array, optional
        Inverse temperatures, ascending, one replica each; used as given. By default a pilot run
        finds a ladder of equal exchange rates.
    n_replicas : int, optional
        ReplicaLadder of the ladder to be found; by default the pilot run tells.
    mu_max : float, optional
        Cold end of the ladder to be found; by default that of `Schedule.automatic`.
    n_sweeps : int
        Sweeps of each replica that count, with an attempt to exchange after each.
    n_pilot : int, optional
        Sweeps of each replica in the pilot run; by default half of ``n_sweeps``.
    n_burn_in : int, optional
        Sweeps between the pilot run and those that count; by default a tenth of ``n_sweeps``.
    polish : bool
        End with a descent from the best support of each size to a swap-local minimum.
    n_jobs : int
        Threads (−1: all cores). The result does not depend on it.
    keep_samples : bool
        Keep the supports after every sweep that counts, as ``result.samples``.
    time_limit : float, optional
        Seconds, except the compilation of kernels, that the run fills, a third of them with the
        pilot: the numbers of sweeps are then not given but found, and are in the result; given in
        place of the time limit they replay it exactly. Where it is too short for 16 replicas to be
        made and moved a few times, there are fewer, and no pilot: then ``n_replicas`` belongs to
        what replays it. With ``sizes``, a first survey of them is not limited.
    random_state : None, int, SeedSequence or Generator
        One seed, one result.
    progress : bool
        Show a bar.

    Returns
    -------
    TemperResult
        If the run was too short for its averages and samples to mean anything, these raise
        `RunTooShort`, and ``result.refusals`` says why.

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
    n_sweeps = check_integer("n_sweeps", n_sweeps, LEAST_SWEEPS)
    n_pilot = n_sweeps // 2 if n_pilot is None else check_integer("n_pilot", n_pilot, 1)
    n_burn_in = n_sweeps // 10 if n_burn_in is None else check_integer("n_burn_in", n_burn_in, 0)
    check_time_limit(time_limit)
    if n_replicas is not None and check_integer("n_replicas", n_replicas, 2) > 10 * MOST_RUNGS:
        raise ValueError(f"n_replicas must not exceed {10 * MOST_RUNGS}; got {n_replicas}")
    if mu_max is not None and not (math.isfinite(mu_max) and mu_max > 0):
        raise ValueError(f"mu_max must be positive and finite; got {mu_max!r}")
    given = None if ladder is None else _check_ladder(ladder, n_replicas, mu_max)
    seed = seed_of(random_state)
    warm_up()
    if least < most:
        _warm_up()
    began = time.perf_counter()
    clock = None if time_limit is None else _Clock(began, time_limit)
    with one_blas_thread():
        if clock and given is None and n_replicas is None:
            n_replicas = clock.affordable(problem, most)
        first = _first_ladder(problem, most, n_replicas, mu_max) if given is None else given
        unit = problem.unit_energy
        total = None if clock else n_pilot + n_burn_in + n_sweeps
        bar = tqdm(total=total, unit="sweep", disable=not progress, leave=False)
        with bar, ReplicaLadder(problem, least, most, first * unit, seed, n_jobs) as rungs:
            n_pilot = _pilot(rungs, n_pilot, given is None, n_replicas, bar, clock)
            if clock:
                n_burn_in = n_pilot // 5
            for _ in range(n_burn_in):
                rungs.round()
                rungs.exchange()
                bar.update()
            rungs.clear()
            n_rungs = rungs.mu.size
            energy_rows, held_rows, sample_rows = [], [], []
            sweep = 0
            while sweep < n_sweeps if clock is None else sweep < LEAST_SWEEPS or clock.left > 0:
                rungs.round()
                energy_rows.append(rungs.energies.copy())
                held_rows.append(np.asarray(rungs.sizes, dtype=np.float64))
                if keep_samples:
                    sample_rows.append(rungs.supports())
                rungs.exchange()
                bar.update()
                sweep += 1
        n_sweeps = sweep
        energies, held = np.stack(energy_rows), np.stack(held_rows)
        supports, best_energies, coefs = _best(problem, rungs, polish)
    times = np.array(
        [
            max(autocorrelation_time(energies[:, a]), autocorrelation_time(held[:, a]))
            for a in range(n_rungs)
        ]
    )
    spread = energies.std(axis=0, ddof=1)
    error = _robust_spread(rungs, energies, held) * np.sqrt(np.maximum(times, 1.0) / n_sweeps)
    return TemperResult(
        n_samples=problem.n_samples,
        n_columns=problem.n_columns,
        seed=seed,
        seconds=time.perf_counter() - began,
        n_sweeps=n_sweeps,
        n_pilot=n_pilot,
        n_burn_in=n_burn_in,
        first_size=least,
        refusals=tuple(_refusals(rungs, energies, held, times)),
        round_trips=rungs.round_trips,
        size_trips=rungs.size_trips,
        ladder=rungs.mu / unit if given is None else given,
        weights=rungs.weights,
        exchange_rate=rungs.exchange_rate,
        mean_energy=energies.mean(axis=0) * unit,
        std_energy=spread * unit,
        energy_error=error * unit,
        autocorrelation=times,
        visits=rungs.visits,
        best_supports=supports,
        best_energies=best_energies,
        best_coefs=coefs,
        sampled_supports=np.stack(sample_rows).astype(np.int32) if keep_samples else None,
    )


class _Clock:
    """The share of the time that is left, and when the first stage of the pilot has had its own."""

    def __init__(self, began: float, time_limit: float) -> None:
        self.time_limit = time_limit
        self.deadline = began + 0.96 * time_limit
        self.first_stage = began + 0.04 * time_limit

    @property
    def left(self) -> float:
        return self.deadline - time.perf_counter()

    def affordable(self, problem: SparseProblem, k: int) -> int | None:
        """How many replicas, if there is no time for `FIRST_RUNGS`, by the speed of one at μ = 0."""
        began = time.perf_counter()
        with ReplicaLadder(problem, k, k, np.array([0.0]), 0, 1) as one:
            one.round()
        n = int(self.time_limit / (5 * (time.perf_counter() - began)))
        return max(2, n) if n < FIRST_RUNGS else None


def _pilot(
    rungs: ReplicaLadder,
    n_pilot: int,
    tune: bool,
    n_replicas: int | None,
    bar: Any,
    clock: _Clock | None,
) -> int:
    """Learn weights and, if it is not given, the ladder; return the number of sweeps.

    With a clock, the sweeps for which the first stage has time tell how many there are in all.
    """
    done = 0
    if clock is not None:
        began = time.perf_counter()
        while done == 0 or time.perf_counter() < clock.first_stage:
            rungs.round(learn=True)
            rungs.exchange()
            bar.update()
            done += 1
        n_pilot = done * sum(PILOT_STAGES) // PILOT_STAGES[0]
        if done == 1 and n_pilot * (time.perf_counter() - began) > 0.5 * clock.left:
            n_pilot = 1
    for stage, end in enumerate(np.cumsum(PILOT_STAGES) * n_pilot // sum(PILOT_STAGES)):
        if stage > 0 and tune and n_pilot >= sum(PILOT_STAGES) and np.all(rungs.tried > 0):
            rungs.tune(n_replicas)
        for _ in range(done, int(end)):
            rungs.round(learn=True)
            rungs.exchange()
            bar.update()
        done = max(done, int(end))
    return n_pilot


def _robust_spread(rungs: ReplicaLadder, energies: Floats, held: Floats) -> Floats:
    """Standard deviation of the energy: own, or that of the hotter rung reweighted, if larger.

    A cold rung that has seen one support only would else claim to have no error at all.
    """
    spread = energies.std(axis=0, ddof=1)
    sizes = held.astype(np.int64) - rungs.least
    for a in range(1, spread.size):
        e, k = energies[:, a - 1], sizes[:, a - 1]
        logs = rungs.weights[a, k] - rungs.weights[a - 1, k]
        logs -= (rungs.mu[a] - rungs.mu[a - 1]) * e
        chance = np.exp(logs - logs.max())
        chance /= chance.sum()
        spread[a] = max(spread[a], math.sqrt(max(0.0, chance @ (e - chance @ e) ** 2)))
    return spread


def _refusals(rungs: ReplicaLadder, energies: Floats, held: Floats, times: Floats) -> list[str]:
    """Why the run was too short, if it was."""
    n_sweeps, n_rungs = energies.shape
    reasons = []
    rates = rungs.exchange_rate
    if n_rungs > 1 and rates.min() < 0.01:
        reasons.append(
            f"rungs {int(rates.argmin())} and {int(rates.argmin()) + 1} hardly exchange "
            f"(rate {rates.min():.1g}): more replicas are needed"
        )
    if n_rungs > 1 and rungs.round_trips < TRIPS:
        reasons.append(
            f"{rungs.round_trips} round trips from hot to cold and back; {TRIPS} are needed"
        )
    if times.max() * TIMES > n_sweeps:
        reasons.append(
            f"the autocorrelation time is {times.max():.3g} sweeps at rung {int(times.argmax())}; "
            f"{n_sweeps} sweeps are less than {TIMES} of them"
        )
    if rungs.n_sizes > 1:
        missed = np.flatnonzero(np.any(rungs.visits == 0, axis=0)) + rungs.least
        if missed.size:
            reasons.append(f"not all sizes were visited at all rungs: {missed.tolist()}")
        if rungs.size_trips < TRIPS:
            reasons.append(f"{rungs.size_trips} round trips through all sizes; {TRIPS} are needed")
    half = n_sweeps // 2
    for name, series in (("energies", energies), ("sizes", held)):
        gap = np.abs(series[:half].mean(axis=0) - series[half:].mean(axis=0))
        error = series.std(axis=0) * np.sqrt(4.0 * np.maximum(times, 1.0) / n_sweeps)
        scale = 1e-9 * (1.0 + np.abs(series).max())  # differences by rounding are none
        if np.any(gap > SIGMAS * error + scale):
            reasons.append(f"{name} of the first half and of the second differ: still relaxing")
    return reasons


def _best(
    problem: SparseProblem, rungs: ReplicaLadder, polish: bool
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """The best support of each size, sorted, padded with −1; energies and coefficients by QR."""
    supports = np.full((rungs.n_sizes, rungs.most), -1, dtype=np.int64)
    energies = np.full(rungs.n_sizes, np.nan)
    coefs = np.full((rungs.n_sizes, problem.n_columns), np.nan)
    for i, support in enumerate(rungs.best):
        if support is None:  # a size that was never seen
            continue
        if polish:
            workspace = Workspace(problem, support.size)
            workspace.begin_at(support)
            workspace.descend()
            support = workspace.support
        x, energies[i] = problem.least_squares(support)
        supports[i, : support.size] = support
        coefs[i] = 0.0
        coefs[i, support] = x
    return supports, energies, coefs


def _first_ladder(
    problem: SparseProblem, k: int, n_replicas: int | None, mu_max: float | None
) -> Floats:
    """Equal ratios between the hot and the cold end of the automatic schedule."""
    hot, cold = temperature_range(problem, k)
    cold = cold if mu_max is None else mu_max
    hot = min(hot, 0.5 * cold)
    return np.geomspace(hot, cold, FIRST_RUNGS if n_replicas is None else n_replicas)


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
def _warm_up() -> None:
    with patience(), ReplicaLadder(tiny_problem(), 1, 2, np.array([0.0]), 0, 1) as rungs:
        rungs.round()
