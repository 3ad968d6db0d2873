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
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.checks import check_integer, check_positive
from l0anneal._util.counts import log_choose
from l0anneal._util.seeds import RandomState
from l0anneal.engine.warm_up import tiny_problem, warm_up
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.greedy import NO_SCHEDULE, NOT_BEGUN, greedy_order
from l0anneal.samplers.population.replicas import Replicas
from l0anneal.samplers.population.result import PopulationResult
from l0anneal.samplers.result import fitted
from l0anneal.samplers.run import OnInterrupt, OutOfTime, Run, RunStopped
from l0anneal.samplers.schedule import Schedule
from l0anneal.samplers.temperature_range import temperature_range

__all__ = ["population_anneal"]

Floats = NDArray[np.float64]

# what is recorded at each temperature
RECORDED = (
    *("mean_energy", "std_energy", "energy_error", "log_g", "log_g_error", "entropy_error"),
    *("integrated_log_g", "integrated_log_g_error", "acceptance", "ess", "n_families", "rho_t"),
)
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
        one.
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
    if not 0.0 < overlap < 1.0:
        raise ValueError(f"overlap must be a fraction between 0 and 1; got {overlap!r}")
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ValueError(f"schedule must be a Schedule, such as Schedule.paper(); got {schedule!r}")
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
                cooled = _Population(Replicas(run, problem, k, population), keep_samples)
            if schedule is not None:
                run.expect(len(schedule))
                _follow(pace, cooled, schedule)
            else:
                assert mu_max is not None
                _by_overlap(pace, cooled, mu_max, overlap, tau)
        except OutOfTime:
            if cooled is None or not cooled.mus:
                return _not_begun(run, problem, k, keep_samples)
            cooled.ended = "time limit"
        except RunStopped:  # the temperatures completed so far are in the record
            run.require(cooled is not None and cooled.mus)
        assert cooled is not None
        name = schedule.name if schedule else "overlap"
        return _package(run, cooled, name, polish)


def _follow(pace: _Pace, cooled: _Population, schedule: Schedule) -> None:
    """Cool along a schedule, with fewer sweeps where time is short."""
    for a, (mu, tau) in enumerate(schedule):
        tau = pace.sweeps(tau, len(schedule) - a)
        if tau == 0:
            cooled.ended = "time limit"
            break
        cooled.step(mu, tau)


def _by_overlap(pace: _Pace, cooled: _Population, mu_max: float, overlap: float, tau: int) -> None:
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


def _package(run: Run, cooled: _Population, name: str, polish: bool) -> PopulationResult:
    """Put the record of the population into a result."""
    problem = cooled.replicas.problem
    best = cooled.best
    if polish:
        try:
            best = run.polished(problem, best)
        except OutOfTime:
            polish = False
    series: dict[str, Any] = {name: np.array(values) for name, values in cooled.record.items()}
    return PopulationResult(
        **fitted(problem, best),
        **run.record(cooled.ended),
        **series,
        schedule=Schedule(tuple(cooled.mus), tuple(cooled.taus), name),
        family=cooled.last[0],
        last_supports=cooled.last[1],
        last_energies=cooled.last[2] * problem.unit_energy,
        polished=polish,
        sampled_supports=np.stack(cooled.samples) if cooled.keep_samples else None,
    )


def _not_begun(run: Run, problem: SparseProblem, k: int, keep_samples: bool) -> PopulationResult:
    """Return greedy columns, because the time limit is too short for a sweep."""
    support = np.sort(greedy_order(run, problem, k))
    answer = fitted(problem, support)
    series: dict[str, Any] = dict.fromkeys(RECORDED, np.full(1, np.nan))
    series |= {"n_families": np.ones(1), "rho_t": np.ones(1)}
    return PopulationResult(
        **answer,
        **run.record(NOT_BEGUN),
        **series,
        schedule=NO_SCHEDULE,
        family=np.zeros(1, dtype=np.int64),
        last_supports=support[None].astype(np.int32),
        last_energies=np.array([answer["energy"]]),
        polished=False,
        sampled_supports=support[None, None].astype(np.int32) if keep_samples else None,
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
    """Compile the kernels that population annealing uses."""
    warm_up()
    Replicas(Run(random_state=0), tiny_problem(), 2, 2).sweep(0.0, 1)


class _Population:
    """The population at μ, and what has been measured on the way there."""

    def __init__(self, replicas: Replicas, keep_samples: bool) -> None:
        self.replicas, self.keep_samples = replicas, keep_samples
        self.resampling = np.random.default_rng(replicas.run.stream("population resampling"))
        self.ended = "the last temperature was reached"
        n, k, size = replicas.problem.n_columns, replicas.k, replicas.energies.size
        self.mu = 0.0
        self.mus: list[float] = []
        self.taus: list[int] = []
        self.samples: list[NDArray[np.int32]] = []
        self.best = replicas.supports[0].copy()
        self.lowest = np.inf
        self.family = np.arange(size)
        count = log_choose(n, k)
        self.log_g = count + replicas.log_fraction
        self.delta = np.zeros(size)  # contribution of each family to log Ĝ
        # the same by thermodynamic integration, log G = log G(0) − ∫⟨E⟩ dμ
        self.integral = self.log_g
        self.integral_delta = np.zeros(size)
        self.node: tuple[float, float, float, Floats] | None = None
        self.record: dict[str, list[float]] = {name: [] for name in RECORDED}

    def next_mu(self, mu_max: float, overlap: float) -> float:
        """Return the largest μ ≤ mu_max with the required effective sample size, by bisection."""
        if self._weights(mu_max)[2] >= overlap:
            return mu_max
        low, high = self.mu, mu_max
        for _ in range(60):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if self._weights(middle)[2] >= overlap:
                low = middle
            else:
                high = middle
        return low if low > self.mu else high

    def step(self, mu: float, n_sweeps: int) -> None:
        """Resample to μ, sweep there, measure."""
        run = self.replicas.run
        with nullcontext() if self.mus else run.to_start():
            self._move(mu, n_sweeps)

    def _move(self, mu: float, n_sweeps: int) -> None:
        if not self.mus:  # energies of the first, uniform, draws
            self.replicas.sweep(0.0, 1)
            self._integrate(0.0)
        ess = 1.0
        if mu > self.mu:
            ess = self._resample(mu)
        self.mu = mu
        self.replicas.sweep(mu, n_sweeps)
        self.mus.append(mu)
        self.taus.append(n_sweeps)
        self._measure(ess)

    def _weights(self, mu: float) -> tuple[Floats, float, float]:
        """Return the normalised weights of a step to μ, their log mean and effective fraction."""
        energies = self.replicas.energies
        step = (mu - self.mu) * self.replicas.problem.unit_energy
        lowest = energies.min()
        weights = np.exp(-step * (energies - lowest))
        total = float(weights.sum())
        log_mean = math.log(total / energies.size) - step * float(lowest)
        weights /= total
        return weights, log_mean, float(1.0 / (energies.size * np.sum(weights**2)))

    def _resample(self, mu: float) -> float:
        """Resample systematically: a replica gets its share of copies, rounded up or down."""
        weights, log_mean, ess = self._weights(mu)
        size = weights.size
        self.log_g += log_mean
        self.delta += self._by_family(weights - 1.0 / size)
        edges = np.cumsum(weights)
        edges *= size / edges[-1]
        points = np.arange(size) + self.resampling.random()
        chosen = np.minimum(np.searchsorted(edges, points, side="right"), size - 1)
        self.replicas.supports[:] = self.replicas.supports[chosen]
        self.family = self.family[chosen]
        return ess

    def _by_family(self, values: Floats) -> Floats:
        sums: Floats = np.bincount(self.family, weights=values, minlength=self.family.size)  # type: ignore[assignment]
        return sums

    def _error(self, delta: Floats, more: float = 0.0) -> float:
        size = delta.size
        return math.sqrt(float(np.sum(delta**2)) * size / (size - 1) + more)

    def _integrate(self, mu: float) -> Floats:
        """Extend ∫⟨E⟩ dμ to μ by the trapezoidal rule with end slopes d⟨E⟩/dμ = −var E."""
        energies = self.replicas.mean_energies
        mean = float(energies.mean())
        influence = self._by_family(energies - mean) / energies.size
        slope = -float(self.replicas.energies.var())
        if self.node is not None:
            old_mu, old_mean, old_slope, old_influence = self.node
            step = (mu - old_mu) * self.replicas.problem.unit_energy
            self.integral -= step * (mean + old_mean) / 2 + step**2 * (old_slope - slope) / 12
            self.integral_delta -= step * (influence + old_influence) / 2
        self.node = (mu, mean, slope, influence)
        return influence

    def _measure(self, ess: float) -> None:
        replicas = self.replicas
        unit = replicas.problem.unit_energy
        influence = self._integrate(self.mu)
        sizes = np.bincount(self.family)
        first = replicas.log_fraction_variance
        now = {
            "mean_energy": float(replicas.mean_energies.mean()) * unit,
            "std_energy": float(replicas.energies.std(ddof=1)) * unit,
            "energy_error": self._error(influence) * unit,
            "log_g": self.log_g,
            "log_g_error": self._error(self.delta, first),
            "entropy_error": self._error(self.delta + self.mu * unit * influence, first),
            "integrated_log_g": self.integral,
            "integrated_log_g_error": self._error(self.integral_delta, first),
            "acceptance": replicas.acceptance,
            "ess": ess,
            "n_families": float(np.count_nonzero(sizes)),
            "rho_t": float(np.sum(sizes.astype(np.float64) ** 2)) / self.family.size,
        }
        for name, value in now.items():
            self.record[name].append(value)
        lowest = int(np.argmin(replicas.energies))
        if replicas.energies[lowest] < self.lowest:
            self.lowest = float(replicas.energies[lowest])
            self.best = replicas.supports[lowest].copy()
        # if a step is interrupted, some replicas have moved: the result keeps those before the step
        supports = replicas.supports.astype(np.int32)
        if self.keep_samples:
            self.samples.append(supports)
        self.last = self.family.copy(), supports, replicas.energies.copy()
        distortion = now["mean_energy"] / replicas.problem.n_samples
        replicas.run.advance(1, f"μ = {self.mu:.3g}, ε = {distortion:.4g}")
