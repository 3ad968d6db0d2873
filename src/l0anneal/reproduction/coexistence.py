"""Where two phases coexist: the temperature at which one of them has probability ½, for N → ∞.

The probability is averaged over instances, whose own transitions lie at different temperatures. The
temperature at which the mean passes ½ is a smooth function of the mean curve, so that the jackknife
gives its error from sample to sample: each instance has a *pseudo-value*, the mean of the pseudo-values
is the temperature without its bias of order 1/n, and the rules for means apply to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.rows import limit_weights

if TYPE_CHECKING:
    from l0anneal.theory.states import State

__all__ = [
    "densities_near",
    "half_temperature",
    "limit_of_halves",
    "overlaps_at",
    "pseudo_values",
    "resampled_limits",
    "shared_columns",
]

Floats = NDArray[np.float64]
WINDOW = 0.033  # of an overlap; two neighbouring values of q at N = 40


def half_temperature(temperature: Floats, probability: Floats) -> float:
    """Return the temperature at which a falling probability passes ½; NaN if it does not.

    The probability is interpolated linearly in log T. If noise makes it pass ½ several times, the
    coldest and the hottest of these temperatures are averaged in log T.

    Examples
    --------
    >>> t = np.array([1e-4, 1e-3, 1e-2])
    >>> print(f"{half_temperature(t, np.array([0.9, 0.6, 0.1])):.3e}")
    1.585e-03
    """
    order = np.argsort(temperature)
    x, excess = np.log(temperature[order]), probability[order] - 0.5
    falls = np.flatnonzero((excess[:-1] > 0) & (excess[1:] <= 0))
    if not falls.size:
        return math.nan
    ends = falls[[0, -1]]
    at = x[ends] + (x[ends + 1] - x[ends]) * excess[ends] / (excess[ends] - excess[ends + 1])
    return math.exp(float(at.mean()))


def pseudo_values(temperature: Floats, curves: Floats) -> Floats:
    """Return the jackknife's pseudo-values of log T at half probability, one for each curve (row).

    They are NaN if the mean curve, or the mean without one of the curves, does not pass ½.
    """
    n = len(curves)
    mean = curves.mean(axis=0)
    whole = math.log(half_temperature(temperature, mean))
    without = [
        math.log(half_temperature(temperature, (n * mean - curve) / (n - 1))) for curve in curves
    ]
    return n * whole - (n - 1) * np.array(without)


def limit_of_halves(temperature: Floats, curves: Mapping[int, Floats]) -> Estimate | None:
    """Estimate log T at half probability for N → ∞, by a line in 1/N; None if a size has none.

    ``curves`` has the curves of all instances (rows) by size N.
    """
    groups = [pseudo_values(temperature, values) for values in curves.values() if len(values) > 1]
    if len(groups) < len(curves) or not groups or not np.all(np.isfinite(np.concatenate(groups))):
        return None
    counts = np.array([len(group) for group in groups])
    return Estimate(groups, list(limit_weights(np.array(list(curves)), counts)))


def resampled_limits(
    temperature: Floats, curves: Mapping[int, Floats], n_resampled: int = 400
) -> Floats:
    """Return T at half probability for N → ∞, from resamplings of the instances at each size.

    Resamplings in which a size has no such temperature are left out.
    """
    rng = np.random.default_rng(len(curves))
    counts = np.array([len(values) for values in curves.values()])
    weights = limit_weights(np.array(list(curves)), counts)
    found = []
    for _ in range(n_resampled):
        means = [
            values[rng.integers(len(values), size=len(values))].mean(axis=0)
            for values in curves.values()
        ]
        logs = np.log([half_temperature(temperature, mean) for mean in means])
        found.append(math.exp(float(weights @ logs)))
    kept = np.array(found)
    return kept[np.isfinite(kept)]


def overlaps_at(source: xr.Dataset, size: int, temperature: float) -> Floats:
    """Return P(q) of each instance (row) at one temperature, over 0, 1, … k shared columns."""
    k = round(source.attrs["rho"] * size)
    cold_first = source["overlap"].sel(size=size).sortby("temperature")
    own = cold_first.transpose("sample", "mu", ...).to_numpy()[:, :, : k + 1]
    own = own[np.isfinite(own).all(axis=(1, 2))]
    x = np.log(cold_first["temperature"].to_numpy())
    at = np.clip(np.log(temperature), x[0], x[-1])
    i = int(np.clip(np.searchsorted(x, at) - 1, 0, x.size - 2))
    part = (at - x[i]) / (x[i + 1] - x[i])
    return np.asarray((1 - part) * own[:, i] + part * own[:, i + 1])


def densities_near(overlaps: Floats, centres: tuple[float, ...]) -> Floats:
    """Return the mean density of P(q) near some overlaps, for each instance (row)."""
    k = overlaps.shape[1] - 1
    q = np.arange(k + 1) / k
    columns = [k * overlaps[:, np.abs(q - centre) <= WINDOW].mean(axis=1) for centre in centres]
    return np.stack(columns, axis=1)


def shared_columns(
    state: State, alpha: float, rho: float, rho_hat: float, sigma_x2: float
) -> float:
    """Return the overlap |S ∩ S'|/k of two supports in one state of the replica theory, E[p²]/ρ.

    p(h) is the probability that a column with effective field h is selected (docs/theory.md).
    """
    s = alpha / (alpha - rho) + state.mu * state.d
    z = np.linspace(0.0, 12.0, 24_001)
    density = np.exp(-0.5 * z**2) * math.sqrt(2 / math.pi)
    total = 0.0
    for part, variance in ((1 - rho_hat, state.delta), (rho_hat, state.delta + alpha * sigma_x2)):
        p = 1.0 / (
            1.0 + np.exp(-np.minimum(state.lam + 0.5 * state.mu / s * variance * z**2, 700.0))
        )
        total += part * float(np.trapezoid(density * p**2, z))
    return total / rho
