"""The population of a population annealing: resampling, and what is measured at each temperature."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.counts import log_choose
from l0anneal.samplers.observables import Observable
from l0anneal.samplers.population.replicas import Replicas

__all__ = ["RECORDED", "Population"]

Floats = NDArray[np.float64]

# what is recorded at each temperature
RECORDED = (
    *("mean_energy", "std_energy", "energy_error", "log_g", "log_g_error", "entropy_error"),
    *("integrated_log_g", "integrated_log_g_error", "acceptance", "ess", "n_families", "rho_t"),
    *("specific_heat", "specific_heat_error"),
)


class Population:
    """The population at μ, and what has been measured on the way there."""

    def __init__(
        self, replicas: Replicas, keep_samples: bool, observables: dict[str, Observable]
    ) -> None:
        self.replicas, self.keep_samples, self.observables = replicas, keep_samples, observables
        self.resampling = np.random.default_rng(replicas.run.stream("population resampling"))
        self.ended = "the last temperature was reached"
        n, k, size = replicas.problem.n_columns, replicas.k, replicas.energies.size
        self.mu = 0.0
        self.mus: list[float] = []
        self.taus: list[int] = []
        self.samples: list[NDArray[np.int32]] = []
        self.families: list[NDArray[np.int64]] = []
        self.values: list[dict[str, Floats]] = []
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
        self.record: dict[str, list[float]] = defaultdict(list)

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
        values = self.replicas.observe(self.observables)
        self.mus.append(mu)
        self.taus.append(n_sweeps)
        self._measure(ess, values)

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

    def _mean(self, values: Floats) -> tuple[float, float]:
        """Return the mean over the replicas, and its error from families."""
        mean = float(values.mean())
        return mean, self._error(self._by_family(values - mean) / values.size)

    def _measure(self, ess: float, values: dict[str, Floats]) -> None:
        replicas = self.replicas
        unit = replicas.problem.unit_energy
        influence = self._integrate(self.mu)
        sizes = np.bincount(self.family)
        first = replicas.log_fraction_variance
        energies = replicas.energies
        variance, variance_error = self._mean((energies - energies.mean()) ** 2)
        heat = (self.mu * unit) ** 2 / replicas.problem.n_samples
        heat *= energies.size / (energies.size - 1)
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
            "specific_heat": heat * variance,
            "specific_heat_error": heat * variance_error,
        }
        for name, observed in values.items():
            now[name], now[f"{name}_error"] = self._mean(observed)
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
            self.families.append(self.family.copy())
            self.values.append({"energy": energies * unit} | values)
        self.last = self.family.copy(), supports, replicas.energies.copy()
        distortion = now["mean_energy"] / replicas.problem.n_samples
        replicas.run.advance(1, f"μ = {self.mu:.3g}, ε = {distortion:.4g}")
