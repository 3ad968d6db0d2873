"""Population annealing: cool many replicas together, and estimate log G(μ) from them.

R supports (the replicas) are drawn uniformly at μ = 0. A step to μ' > μ *resamples* them, copying
replica i in proportion to w_i = exp(−(μ' − μ) E_i), and then makes sweeps of pair flips at μ'. The
mean weight of each step estimates G(μ')/G(μ), with G(μ) = Σ_S exp(−μ E(S)), so that

    log Ĝ(μ_a) = log G(0) + Σ_{b<a} log (1/R) Σ_i w_i^(b),        G(0) = C(N, k).

The replicas that descend from one first ancestor are a *family*. Families interact only through the
normalisation, so they are the independent parts of a run, and the error of any average follows from how
much each family contributed to it: family f moves log Ĝ by

    δ_f = Σ_b [ Σ_{i∈f} w_i^(b) / Σ_i w_i^(b) − n_f^(b)/R ],       error² = Σ_f δ_f² R/(R − 1),

where n_f is its size. This holds while no family is a large part of the population: the mean square
family size ρ_t = R Σ_f (n_f/R)² has to stay far below R.

Bias. For a schedule fixed in advance Ĝ is unbiased, so log Ĝ is too low by about half its variance,
which is reported as ``free_entropy_bias``. If the steps are chosen in the run from the same
energies, Ĝ itself has a bias of order 1/R as well; replaying the executed schedule with another
seed removes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.checks import check_integer, check_positive
from l0anneal._util.seeds import RandomState
from l0anneal.engine.assistant import run_steps
from l0anneal.engine.warm_up import tiny_problem, workspace_steps
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.greedy import NO_SCHEDULE, NOT_BEGUN, greedy_order
from l0anneal.samplers.observables import Observable, check_observables
from l0anneal.samplers.population.population import RECORDED, Population
from l0anneal.samplers.population.replicas import Replicas
from l0anneal.samplers.population.result import PopulationResult
from l0anneal.samplers.result import fitted
from l0anneal.samplers.run import OnInterrupt, OutOfTime, Run, RunStopped
from l0anneal.samplers.schedule import Schedule
from l0anneal.samplers.temperature_range import temperature_range

__all__ = ["population_anneal"]

Floats = NDArray[np.float64]

HOT_SWEEPS = 30  # a time limit must suffice for this many sweeps at μ = 0; cold ones are cheaper


def population_anneal(
    problem: SparseProblem,
    n_nonzero: int,
    schedule: Schedule | None = None,
    *,
    population: int = 500,
    overlap: float = 0.9,
    tau: int = 5,
    mu_max: float | None = None,
    polish: bool = True,
    n_jobs: int | None = None,
    keep_samples: bool = False,
    observables: Mapping[str, Observable] | None = None,
    time_limit: float | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: OnInterrupt = "raise",
) -> PopulationResult:
    """Cool a population of supports together, and estimate free entropy and entropy.

    At each step to a lower temperature, supports with a small error are copied and those with a
    large error are dropped; then all of them make random exchanges. The weights of the copies give
    an estimate of G(μ) = Σ_S exp(−μ E(S)), the normalising constant at inverse temperature μ, and
    of the free entropy log G / N.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary A and the signal y.
    n_nonzero : int
        k, the number of columns.
    schedule : Schedule, optional
        Inverse temperatures and sweeps, for example the ``schedule`` of an earlier result; together
        with the seed and the population of that run it replays the run exactly. By default each
        step is chosen during the run.
    population : int
        R, the number of replicas.
    overlap : float
        Each step is as long as it can be while the effective sample size of its weights,
        (Σw)²/Σw², is at least this fraction of the population. Not used with a ``schedule``.
    tau : int
        Sweeps of N proposals at each temperature. Not used with a ``schedule``.
    mu_max : float, optional
        The last inverse temperature; by default that of `Schedule.automatic`. It cannot be combined
        with a ``schedule``.
    polish : bool
        End with a descent from the best support to a swap-local minimum.
    n_jobs : int
        Number of threads (−1: all cores). The result does not depend on it.
    keep_samples : bool
        Keep the population at every temperature, as ``result.samples``, and not only at the last
        one, with its energies and observables.
    observables : mapping of names to functions, optional
        Functions of the dense coefficient vector, such as ``{"mse": instance.mse}``. Their averages
        over the population at each temperature, and the errors of these, are in
        ``result.trajectory``.
    time_limit : float, optional
        Wall-clock time of the whole call in seconds, not counting the compilation of kernels. If
        there is too little time, the population is reduced first (see ``result.population``), then
        the number of sweeps at each temperature, down to one, and finally the run ends before the
        last temperature. The result records the executed schedule; with this schedule and
        ``result.population`` the run can be replayed exactly. A run never takes longer than it
        would without a limit.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers. Without a time limit, the same seed gives the same result for
        any ``n_jobs``. None draws a new seed, which the result stores as ``seed``.
    progress : bool
        Show a progress bar.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the temperatures completed so far. Before
        the first temperature is completed, KeyboardInterrupt is raised.

    Returns
    -------
    PopulationResult

    See Also
    --------
    temper : Sample by replica exchange.
    anneal : Cool independent chains.
    PopulationResult : The result.

    Notes
    -----
    If some sets of k columns are linearly dependent, G(0) is the number of sets that are
    independent. This number is estimated from the first draws. If fewer than about one set in a
    thousand is independent, it is not estimated, and free entropies are NaN.

    Examples
    --------
    >>> from l0anneal import ensembles, population_anneal
    >>> instance = ensembles.noise_only(20, 0.5, random_state=1)
    >>> result = population_anneal(instance.problem, 4, population=200, random_state=0)
    >>> print(f"{result.trajectory['free_entropy'][0]:.4f}")  # log C(20, 4) / 20
    0.4243
    """
    k = problem.check_size(n_nonzero)
    population = check_integer("population", population, 2)
    tau = check_integer("tau", tau, 1)
    checked = check_observables(observables)
    if not 0.0 < overlap < 1.0:
        raise ValueError(f"overlap must be a fraction between 0 and 1; got {overlap!r}")
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ValueError(f"schedule must be a Schedule, such as Schedule.paper(); got {schedule!r}")
    if schedule is not None and not schedule.cools:
        raise ValueError(
            "population annealing needs a schedule that cools, with ascending inverse temperatures; "
            f"got {schedule!r}, which heats: use anneal"
        )
    if schedule is not None and mu_max is not None:
        raise ValueError("give a schedule or mu_max, not both: a schedule has its own end")
    if mu_max is not None:
        mu_max = check_positive("mu_max", mu_max, zero=True)
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress,
        on_interrupt=on_interrupt,
        unit="temperature",
    ) as run:
        run.compile(_warm_up)
        cooled = None
        try:
            with run.to_start():
                run.prepare(problem)
                if schedule is None and mu_max is None:
                    mu_max = temperature_range(problem, k, run.listen)[1] / problem.unit_energy
                each = 0.0
                if run.time_limit is not None:
                    each = _seconds_of_a_sweep(run, problem, k)
                    population = min(population, max(2, int(run.time_limit / (HOT_SWEEPS * each))))
                pace = _Pace(run, each * population)
                cooled = Population(Replicas(run, problem, k, population), keep_samples, checked)
            if schedule is not None:
                run.expect(len(schedule))
                _follow(pace, cooled, schedule)
            else:
                assert mu_max is not None
                _by_overlap(pace, cooled, mu_max, overlap, tau)
        except OutOfTime:
            if cooled is None or not cooled.mus:
                return _not_begun(run, problem, k, keep_samples, checked)
            cooled.ended = "time limit"
        except RunStopped:  # the temperatures completed so far are in the record
            run.require(cooled is not None and cooled.mus)
        assert cooled is not None
        name = schedule.name if schedule else "overlap"
        return _package(run, cooled, name, polish)


def _follow(pace: _Pace, cooled: Population, schedule: Schedule) -> None:
    """Cool along a schedule, with fewer sweeps where time is short."""
    for a, (mu, tau) in enumerate(schedule):
        tau = pace.sweeps(tau, len(schedule) - a)
        if tau == 0:
            cooled.ended = "time limit"
            break
        cooled.step(mu, tau)


def _by_overlap(pace: _Pace, cooled: Population, mu_max: float, overlap: float, tau: int) -> None:
    """Cool by steps that keep the effective sample size."""
    cooled.step(0.0, pace.sweeps(tau, 100))
    while cooled.mu < mu_max:
        mu = cooled.next_mu(mu_max, overlap)
        ratio = mu / cooled.mu if cooled.mu > 0 else 2.0  # later steps have about this ratio
        n_sweeps = pace.sweeps(tau, 1 + math.log(mu_max / mu) / math.log(ratio))
        if n_sweeps == 0:
            cooled.ended = "time limit"
            break
        cooled.step(mu, n_sweeps)


def _package(run: Run, cooled: Population, name: str, polish: bool) -> PopulationResult:
    """Put the record of the population into a result."""
    problem = cooled.replicas.problem
    best = cooled.best
    if polish:
        try:
            best = run.polished(problem, best)
        except OutOfTime:
            polish = False
    record = {name: np.array(values) for name, values in cooled.record.items()}
    series: dict[str, Any] = {name: record[name] for name in RECORDED}
    series["observed"] = {name: record[name] for name in cooled.observables}
    series["observed_error"] = {name: record[f"{name}_error"] for name in cooled.observables}
    return PopulationResult(
        **fitted(problem, best),
        **run.record(cooled.ended),
        **series,
        schedule=Schedule(tuple(cooled.mus), tuple(cooled.taus), name),
        family=cooled.last[0],
        last_supports=cooled.last[1],
        last_energies=cooled.last[2] * problem.unit_energy,
        polished=polish,
        **_sampled(cooled),
    )


def _sampled(cooled: Population) -> dict[str, Any]:
    """Return the populations at all temperatures, if they were kept, as fields of a result."""
    if not cooled.keep_samples:
        return {}
    names = cooled.values[0]
    return {
        "sampled_supports": np.stack(cooled.samples),
        "sampled_families": np.stack(cooled.families),
        "sampled_values": {name: np.stack([row[name] for row in cooled.values]) for name in names},
    }


def _not_begun(
    run: Run,
    problem: SparseProblem,
    k: int,
    keep_samples: bool,
    observables: dict[str, Observable],
) -> PopulationResult:
    """Return greedy columns, because the time limit is too short for a sweep."""
    support = np.sort(greedy_order(run, problem, k))
    answer = fitted(problem, support)
    series: dict[str, Any] = dict.fromkeys(RECORDED, np.full(1, np.nan))
    series |= {"n_families": np.ones(1), "rho_t": np.ones(1)}
    kept: dict[str, Any] = {}
    if keep_samples:
        kept["sampled_supports"] = support[None, None].astype(np.int32)
        kept["sampled_families"] = np.zeros((1, 1), dtype=np.int64)
        kept["sampled_values"] = dict.fromkeys(("energy", *observables), np.full((1, 1), np.nan))
    return PopulationResult(
        **answer,
        **run.record(NOT_BEGUN),
        **series,
        schedule=NO_SCHEDULE,
        family=np.zeros(1, dtype=np.int64),
        last_supports=support[None].astype(np.int32),
        last_energies=np.array([answer["energy"]]),
        polished=False,
        observed=dict.fromkeys(observables, np.full(1, np.nan)),
        observed_error=dict.fromkeys(observables, np.full(1, np.nan)),
        **kept,
    )


class _Pace:
    """Decides how many sweeps there is time for at each remaining temperature."""

    def __init__(self, run: Run, seconds: float) -> None:
        self.run, self.seconds = run, seconds  # of a sweep of the whole population, at first
        self.last: tuple[float, int] | None = None

    def sweeps(self, at_most: int, n_temperatures: float) -> int:
        """Return 0 when the time is up, but at least 1 for the first temperature."""
        if self.run.time_limit is None:
            return at_most
        now = self.run.now()
        if self.last is not None:
            self.seconds = (now - self.last[0]) / self.last[1]
        left = self.run.deadline - now
        n = max(1, min(at_most, int(left / max(1e-9, self.seconds * n_temperatures))))
        if self.last is not None and left < self.seconds:
            n = 0
        self.last = now, max(n, 1)
        return n


def _seconds_of_a_sweep(run: Run, problem: SparseProblem, k: int) -> float:
    """Time a sweep of one replica at μ = 0, where sweeps take longest."""
    n_pilots = 2 * run.n_threads
    pilots = Replicas(run.part(random_state=0), problem, k, n_pilots)
    pilots.sweep(0.0, 1)  # creates the tableaus of the threads
    began = run.now()
    pilots.sweep(0.0, 1)
    return (run.now() - began) / n_pilots


@cache
def _warm_up() -> None:
    """Compile the kernels that population annealing uses, or load them, once per process."""
    run_steps(_steps)


def _steps() -> list[Callable[[], object]]:
    return [*workspace_steps("pair flip"), _sweep_once]


def _sweep_once() -> None:
    Replicas(Run(random_state=0), tiny_problem(), 2, 2).sweep(0.0, 1)
