"""Why a curve leaves theory: a few samples, the rate of cooling, or the size of the system.

Each function returns a sentence for the note of a row. None of them takes part in a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal.reproduction.analysis import Theory

__all__ = ["CURVES", "by_rate", "deviations", "means_by_size", "of_medians"]

Floats = NDArray[np.float64]

#: The curves whose deviations from theory are relative, and their symbols.
CURVES = {"distortion": "ε(T)", "mse": "MSE(T)"}


def deviations(
    source: xr.Dataset, name: str, low: float, high: float, branch: str
) -> tuple[Floats, xr.DataArray]:
    """Return the temperatures between two, and what a curve has more there than theory.

    The deviations are fractions of the theory's value for distortion and error, and nats for entropies.
    """
    t = source["temperature"].to_numpy()
    inside = np.flatnonzero((t >= low) & (t <= high))
    line = Theory(source.attrs).at(name, t[inside], branch)
    inside, line = inside[np.isfinite(line)], line[np.isfinite(line)]
    values = source[name].isel(mu=inside)
    return t[inside], values / line - 1 if name in CURVES else values - line


def of_medians(
    source: xr.Dataset, name: str, low: float, high: float, branch: str = "cooled"
) -> str:
    """Say how far the medians at the largest size lie from theory: a few samples do not move them."""
    t, off = deviations(source.isel(size=[-1]), name, low, high, branch)
    median = off.isel(size=0).median("sample").to_numpy()
    size = int(source["size"][-1])
    return (
        f"Medians at N = {size}: {_percent(median.min())} at T = {t[median.argmin()]:.2g} to "
        f"{_percent(median.max())} at T = {t[median.argmax()]:.2g}."
    )


def means_by_size(
    source: xr.Dataset, name: str, low: float, high: float, branch: str = "cooled"
) -> str:
    """Say how far the means lie from theory at each size, where they lie farthest at the largest."""
    t, off = deviations(source, name, low, high, branch)
    mean = off.mean("sample").transpose("size", "mu").to_numpy()
    at = int(np.argmax(np.abs(mean[-1])))
    parts = [f"{_percent(m)} (N = {int(n)})" for n, m in zip(source["size"], mean[:, at])]
    return f"Means at T = {t[at]:.2g}: {', '.join(parts)}."


def by_rate(
    sources: Mapping[int, xr.Dataset], name: str, low: float, high: float, branch: str = "cooled"
) -> str:
    """Say how far the means at the largest shared size lie from theory at each rate of cooling.

    ``sources`` has the runs by τ. The temperature is the one at which the most rapid runs lie farthest
    from theory.
    """
    shared = set.intersection(*(set(map(int, source["size"])) for source in sources.values()))
    if not shared:
        return ""
    parts, at = [], None
    for tau in sorted(sources):
        t, off = deviations(sources[tau].sel(size=[max(shared)]), name, low, high, branch)
        mean = off.isel(size=0).mean("sample").to_numpy()
        if at is None:
            at = t[np.argmax(np.abs(mean))]
        nearest = int(np.argmin(np.abs(np.log(t / at))))
        parts.append(f"{_percent(mean[nearest])} (τ = {tau})")
    return f"Means at T = {at:.2g}, N = {max(shared)}: {', '.join(parts)}."


def _percent(fraction: float) -> str:
    return f"{100 * fraction:+.3g} %"
