"""Population annealing: many replicas cooled together, and log G(μ) from the same run.

R supports drawn uniformly at μ = 0 are taken to μ' > μ by *resampling*, replica i in proportion to
w_i = exp(−(μ' − μ) E_i), and then by sweeps of pair flips at μ'. The mean weight of each step is an
estimate of G(μ')/G(μ), G(μ) = Σ_S exp(−μ E(S)), so that

    log Ĝ(μ_a) = log G(0) + Σ_{b<a} log (1/R) Σ_i w_i^(b),        G(0) = C(N, k).

The replicas descended from one first ancestor are a *family*. Families know of each other only
through the normalisation, so they are the independent parts of a run, and the error of any of its
averages comes from how much each family contributed to it: family f moves log Ĝ by

    δ_f = Σ_b [ Σ_{i∈f} w_i^(b) / Σ_i w_i^(b) − n_f^(b)/R ],       error² = Σ_f δ_f² R/(R − 1),

n_f being its size. This holds while no family is a large part of the population: ρ_t, the mean
square family size R Σ_f (n_f/R)², has to stay far below R.

Bias. For a schedule fixed in advance Ĝ is unbiased, so log Ĝ is low by about half its variance, the
reported ``free_entropy_bias``. If the steps are chosen in the run from the same energies, Ĝ itself
has a bias of order 1/R too: replay the executed schedule with another seed to be rid of that.
"""

from __future__ import annotations

import math
import time
from functools import cache

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_integer, check_time_limit
from l0anneal._util.counts import log_choose
from l0anneal._util.seeds import RandomState, child, seed_of
from l0anneal.engine.warm_up import patience, tiny_problem, warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.population.replicas import Replicas
from l0anneal.samplers.population.result import PopulationResult
from l0anneal.samplers.schedule import Schedule

__all__ = ["population_anneal"]

Floats = NDArray[np.float64]

HOT_SWEEPS = (
    30  # a run with a time limit has time for so many sweeps at μ = 0, and more where it is cold
)


def population_anneal(
    problem: SparseProblem,
    n_nonzero: int,
    schedule: Schedule | None = None,
    *,
    population: int = 500,
    overlap: float = 0.9,
    n_sweeps: int = 5,
    mu_max: float | None = None,
    polish: bool = True,
    n_jobs: int | None = None,
    keep_samples: bool = False,
    time_limit: float | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> PopulationResult:
    """Cool a population of supports together; estimate free entropy and entropy on the way.

    Parameters
    ----------
    problem : SparseProblem
        A and y.
    n_nonzero : int
        k, the size of the support.
    schedule : Schedule, optional
        Inverse temperatures and sweeps, such as ``result.schedule`` of an earlier run, which with
        that run's seed gives it again exactly. By default each step is chosen in the run.
    population : int
        R, the number of replicas.
    overlap : float
        Each step is made as long as it can be while the effective sample size of its weights,
        (Σw)²/Σw², is at least this fraction of the population. Not used with a ``schedule``.
    n_sweeps : int
        Sweeps of N proposals at each temperature. Not used with a ``schedule``.
    mu_max : float, optional
        Where to end; by default the cold end of `Schedule.automatic`. Not with a ``schedule``.
    polish : bool
        End with a descent from the best support to a swap-local minimum.
    n_jobs : int
        Threads (−1: all cores). The result does not depend on it.
    keep_samples : bool
        Keep the population at every temperature, as ``result.samples``, not only the last one.
    time_limit : float, optional
        Seconds, except the compilation of kernels. Where they are short the population is smaller
        (``result.population``), then there are fewer sweeps at each temperature, down to one, and
        then the run ends before it is cold. The schedule that was executed is in the result, and with
        that population replays it exactly. The longest run is the unlimited one.
    random_state : None, int, SeedSequence or Generator
        One seed, one result.
    progress : bool
        Show a bar.

    Returns
    -------
    PopulationResult

    Notes
    -----
    Where some sets of k columns are linearly dependent, G(0) is the number of those that are not.
    It is then estimated from the first draws, or, if these supports are rarer than one in a
    thousand, left open: free entropies are NaN.

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
    n_sweeps = check_integer("n_sweeps", n_sweeps, 1)
    if not 0.0 < overlap < 1.0:
        raise ValueError(f"overlap is a fraction, between 0 and 1; got {overlap!r}")
    if schedule is not None and mu_max is not None:
        raise ValueError("give a schedule or mu_max, not both: a schedule has its own end")
    if mu_max is not None and not (math.isfinite(mu_max) and mu_max >= 0):
        raise ValueError(f"mu_max must be finite and ≥ 0; got {mu_max!r}")
    check_time_limit(time_limit)
    seed = seed_of(random_state)
    warm_up()
    _warm_up()
    began = time.perf_counter()
    clock = _Clock(began + 0.97 * time_limit if time_limit is not None else math.inf)
    with one_blas_thread():
        if schedule is None and mu_max is None:
            mu_max = Schedule.automatic(problem, k).mu[-1]
        bar = tqdm(
            total=None if schedule is None else len(schedule),
            unit="temperature",
            disable=not progress,
            leave=False,
        )
        if time_limit is not None:
            population = _affordable(problem, k, population, time_limit, n_jobs)
        with bar, Replicas(problem, k, population, seed, n_jobs) as replicas:
            run = _Run(replicas, np.random.default_rng(child(seed, 2)), keep_samples)
            if schedule is not None:
                for a, (mu, tau) in enumerate(schedule):
                    tau = clock.sweeps(tau, len(schedule) - a)
                    if tau == 0:
                        break
                    run.step(mu, tau)
                    _show(bar, run)
            else:
                assert mu_max is not None
                run.step(0.0, clock.sweeps(n_sweeps, 100))
                while run.mu < mu_max:
                    mu = run.next_mu(mu_max, overlap)
                    ratio = (
                        mu / run.mu if run.mu > 0 else 2.0
                    )  # the coming steps have it too, about
                    tau = clock.sweeps(n_sweeps, 1 + math.log(mu_max / mu) / math.log(ratio))
                    if tau == 0:
                        break
                    run.step(mu, tau)
                    _show(bar, run)
        best = run.best
        if polish:
            workspace = Workspace(problem, k)
            workspace.begin_at(best)
            workspace.descend()
            best = workspace.support
        x, energy = problem.least_squares(best)
    coef = np.zeros(problem.n_columns)
    coef[best] = x
    executed = Schedule(tuple(run.mus), tuple(run.taus), schedule.name if schedule else "overlap")
    return PopulationResult(
        support=best,
        coef=coef,
        energy=energy,
        n_samples=problem.n_samples,
        schedule=executed,
        seed=seed,
        seconds=time.perf_counter() - began,
        **{name: np.array(values) for name, values in run.record.items()},
        family=run.family,
        last_supports=replicas.supports.astype(np.int32),
        last_energies=replicas.energies * problem.unit_energy,
        sampled_supports=np.stack(run.samples) if keep_samples else None,
    )


class _Clock:
    """How many sweeps there is time for at each of the coming temperatures."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.last: tuple[float, int] | None = None

    def sweeps(self, at_most: int, n_temperatures: float) -> int:
        """0 when there is no time; the first time, when nothing is known, ``at_most`` or 1."""
        if self.deadline == math.inf:
            return at_most
        now = time.perf_counter()
        n = 1
        if self.last is not None:
            each = (now - self.last[0]) / self.last[1]
            left = self.deadline - now
            n = 0 if left < each else max(1, min(at_most, int(left / (each * n_temperatures))))
        self.last = now, max(n, 1)
        return n


def _affordable(
    problem: SparseProblem, k: int, population: int, seconds: float, n_jobs: int | None
) -> int:
    """How many replicas there is time for, by the speed of a few of them where that is least."""
    n_pilots = 2 * effective_n_jobs(n_jobs if n_jobs is not None else 1)
    with Replicas(problem, k, n_pilots, 0, n_jobs) as pilots:
        pilots.sweep(0.0, 1)  # makes the threads' tableaus
        began = time.perf_counter()
        pilots.sweep(0.0, 1)
        each = (time.perf_counter() - began) / n_pilots
    return min(population, max(2, int(seconds / (HOT_SWEEPS * each))))


@cache
def _warm_up() -> None:
    with patience(), Replicas(tiny_problem(), 2, 2, 0, 1) as replicas:
        replicas.sweep(0.0, 1)


def _show(bar: tqdm, run: _Run) -> None:
    distortion = run.record["mean_energy"][-1] / run.replicas.problem.n_samples
    bar.set_postfix_str(f"μ = {run.mu:.3g}, ε = {distortion:.4g}", refresh=False)
    bar.update()


class _Run:
    """The population at μ, and what has been learnt from it so far."""

    def __init__(
        self, replicas: Replicas, resampling: np.random.Generator, keep_samples: bool
    ) -> None:
        self.replicas, self.resampling, self.keep_samples = replicas, resampling, keep_samples
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
        self.delta = np.zeros(size)  # by family: its part in log Ĝ
        # the same by thermodynamic integration, log G = log G(0) − ∫⟨E⟩ dμ
        self.integral = self.log_g
        self.integral_delta = np.zeros(size)
        self.node: tuple[float, float, float, Floats] | None = None
        names = "mean_energy std_energy energy_error log_g log_g_error entropy_error"
        names += " integrated_log_g integrated_log_g_error acceptance ess n_families rho_t"
        self.record: dict[str, list[float]] = {name: [] for name in names.split()}

    def next_mu(self, mu_max: float, overlap: float) -> float:
        """The largest μ ≤ mu_max with the effective sample size asked for; by bisection."""
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
        """Normalised weights for the step to μ, log of their mean, effective fraction."""
        energies = self.replicas.energies
        step = (mu - self.mu) * self.replicas.problem.unit_energy
        lowest = energies.min()
        weights = np.exp(-step * (energies - lowest))
        total = float(weights.sum())
        log_mean = math.log(total / energies.size) - step * float(lowest)
        weights /= total
        return weights, log_mean, float(1.0 / (energies.size * np.sum(weights**2)))

    def _resample(self, mu: float) -> float:
        """Systematic resampling: each replica's copies are its share, rounded up or down."""
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
        """Take ∫⟨E⟩ dμ to the present μ, by the trapezium with end slopes d⟨E⟩/dμ = −var E."""
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
        if self.keep_samples:
            self.samples.append(replicas.supports.astype(np.int32))
