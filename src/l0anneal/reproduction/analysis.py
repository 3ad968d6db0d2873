"""Read sweeps back: means with error bars, the limit of large N, the deviation from theory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.counts import log_choose
from l0anneal.reproduction.solvers import instance_of
from l0anneal.reproduction.sweeps import Sweep
from l0anneal.reproduction.task import Task
from l0anneal.tasks.store import Record, Store

if TYPE_CHECKING:
    from l0anneal.theory import ReplicaSymmetric

__all__ = [
    "FOUND",
    "Data",
    "Deviation",
    "Theory",
    "crossing",
    "deviation",
    "entropy",
    "extrapolate",
    "fitted_order",
    "found",
    "gather",
    "mean_and_error",
    "only_solvable",
    "summary",
]

Floats = NDArray[np.float64]

#: The measured data of some sweeps, by the sweeps' names.
Data = Mapping[str, xr.Dataset]

#: A run whose mean squared error is below this has found the planted solution. The paper's schedule
#: ends at T = 8e-5, where a few columns still enter and leave, so the error does not vanish.
FOUND = 1e-3


# ---------------------------------------------------------------- measured


def gather(sweep: Sweep, store: Store) -> xr.Dataset:
    """Read the finished tasks of a sweep, over ``size``, ``sample`` and, for curves, ``mu``.

    Unfinished tasks leave NaN; ``n_samples`` counts the finished ones. ``n_planted`` is the size of
    each instance's planted support (NaN for pure noise).
    """
    sizes = sorted(sweep.samples)
    n_samples = max(sweep.samples.values())
    columns: dict[str, Floats] = {}
    mu: Floats | None = None
    seconds = np.full((len(sizes), n_samples), np.nan)
    n_planted = seconds.copy()
    for i, size in enumerate(sizes):
        for task in sweep.tasks(size):
            if task not in store:
                continue
            record = store.read(task)
            seconds[i, task.sample] = record.seconds
            if "rho_hat" in sweep.ensemble:
                n_planted[i, task.sample] = _size_of_planted_support(task, record)
            for name, values in record.arrays.items():
                if name == "n_planted":
                    continue
                if name == "mu":
                    mu = np.asarray(values, dtype=np.float64)
                    continue
                if name not in columns:
                    columns[name] = np.full((len(sizes), n_samples, *values.shape), np.nan)
                columns[name][i, task.sample] = values
    data = xr.Dataset(
        {
            "seconds": (("size", "sample"), seconds),
            "n_planted": (("size", "sample"), n_planted),
        },
        coords={"size": sizes},
        attrs={name: float(value) for name, value in sweep.parameters.items()},
    )
    data["n_samples"] = ("size", np.isfinite(seconds).sum(axis=1))
    if mu is not None:
        with np.errstate(divide="ignore"):
            data = data.assign_coords(mu=mu, temperature=("mu", 1.0 / mu))
    for name, values in columns.items():
        curve = mu is not None and values.shape[2:] == mu.shape
        dims = ["size", "sample", "mu" if curve else "part"]
        data[name] = (dims[: values.ndim], values)
    return data


def _size_of_planted_support(task: Task, record: Record) -> int:
    """Return the number of planted columns of a finished task's instance."""
    if "n_planted" in record.arrays:
        return int(record.arrays["n_planted"])
    # a file from before the number was stored: draw the instance once more
    return instance_of(task).support.size


def only_solvable(data: xr.Dataset) -> xr.Dataset:
    """Leave out the instances whose planted support is larger than the supports of the run.

    With Bernoulli supports the number of planted columns fluctuates by √N. Where ρ is only slightly
    larger than ρ̂, this number sometimes exceeds k, and then no support of size k contains the
    planted one.
    """
    k = np.round(data.attrs["rho"] * data["size"])
    chosen = data.where(data["n_planted"] <= k)
    return chosen.assign(n_samples=chosen["n_planted"].notnull().sum("sample"))


def found(data: xr.Dataset, name: str = "final_mse", size: int | None = None) -> tuple[int, int]:
    """Count the runs at one size (the largest by default) that found the planted solution.

    Returns
    -------
    n_found, n_runs : int
    """
    chosen = data.isel(size=-1) if size is None else data.sel(size=size)
    return int((chosen[name] < FOUND).sum()), int(chosen["n_samples"])


def mean_and_error(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the mean over samples and the paper's error bar, std / √(N_samp − 1).

    The error bar of a single sample is NaN.

    Examples
    --------
    >>> mean, error = mean_and_error(xr.DataArray([1.0, 2.0, 3.0, float("nan")], dims="sample"))
    >>> float(mean), round(float(error), 6)
    (2.0, 0.57735)
    """
    n = values.count("sample")
    total = values.sum("sample", skipna=True)
    mean = total / n.where(n > 0)
    spread = ((values - mean) ** 2).sum("sample", skipna=True) / n.where(n > 0)
    return mean, (spread / (n - 1).where(n > 1)) ** 0.5


def extrapolate(mean: xr.DataArray, error: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Extrapolate to 1/N → 0 by a straight line through the sizes, weighted by their error bars.

    The limit and its error are NaN if fewer than two sizes have an error bar.

    Examples
    --------
    >>> sizes = {"size": [100, 200, 400]}
    >>> mean = xr.DataArray([1.1, 1.05, 1.025], dims="size", coords=sizes)
    >>> limit, error = extrapolate(mean, 0.01 * xr.ones_like(mean))
    >>> round(float(limit), 12)
    1.0
    """
    x = 1.0 / mean["size"]
    good = mean.notnull() & (error > 0)
    # bound the weight of a size whose samples happen to coincide
    floor = 1e-3 * error.where(good).max("size")
    weight = xr.where(good, 1.0 / error.clip(min=floor).where(good, 1.0) ** 2, 0.0)
    value = xr.where(good, mean, 0.0)
    s0, s1, s2 = (weight.sum("size"), (weight * x).sum("size"), (weight * x * x).sum("size"))
    t0, t1 = (weight * value).sum("size"), (weight * x * value).sum("size")
    determinant = (s0 * s2 - s1 * s1).where(good.sum("size") >= 2)
    return (s2 * t0 - s1 * t1) / determinant, (s2 / determinant) ** 0.5


def entropy(data: xr.Dataset, *, planted: bool) -> xr.Dataset:
    """Return free entropy g and entropy s = g + μ⟨E⟩/N per column, at every μ, size and sample.

    One part of the finite-size effect is known exactly and is removed: the logarithm of the number
    of supports, log C(N, K)/N, is replaced by its limit H(ρ) for N → ∞ (and likewise for the
    supports that contain the planted one, if ``planted``).
    """
    rho, rho_hat = data.attrs["rho"], data.attrs["rho_hat"]
    shifts = []
    for n in data["size"].to_numpy():
        k, k_hat = round(rho * n), round(rho_hat * n) if planted else 0
        fraction = (rho - rho_hat) / (1 - rho_hat) if planted else rho
        limit = (1 - rho_hat if planted else 1.0) * _binary_entropy(fraction)
        shifts.append(limit - log_choose(n - k_hat, k - k_hat) / n)
    g = data["free_entropy"] + xr.DataArray(shifts, dims="size", coords={"size": data["size"]})
    return xr.Dataset(
        {"free_entropy": g, "entropy": g + data["mu"] * data.attrs["alpha"] * data["distortion"]}
    )


def _binary_entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def summary(data: xr.Dataset) -> xr.Dataset:
    """Reduce a sweep to what its data file keeps.

    Curves are kept as means and error bars, single numbers for every sample.
    """
    kept = data[["n_samples", "seconds"]].copy()
    for name, values in data.data_vars.items():
        if values.dims == ("size", "sample") and name != "seconds":
            kept[name] = values
        elif "sample" in values.dims and name != "seconds":
            kept[str(name)], kept[f"{name}_error"] = mean_and_error(values)
    kept.attrs = dict(data.attrs)
    return kept


def fitted_order(sizes: ArrayLike, seconds: ArrayLike) -> float:
    """Return the exponent b of seconds = a N^b, fitted by least squares of the logarithms.

    Examples
    --------
    >>> round(fitted_order([100, 200, 400], [1.0, 4.0, 16.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(np.asarray(sizes)), np.log(np.asarray(seconds)), 1)[0])


# ---------------------------------------------------------------- compared with theory


class Theory:
    """Curves of the replica theory for one set of parameters, computed once and interpolated.

    Parameters
    ----------
    parameters : mapping
        Has alpha, rho, rho_hat, sigma_x2 and sigma_xi2, as the attributes of a gathered sweep have.
    """

    def __init__(self, parameters: Mapping[str, float]) -> None:
        self.exact = _replica_symmetric(tuple(float(parameters[name]) for name in _NAMES))

    def line(self, branch: str, low: float, high: float, n: int = 48) -> xr.Dataset:
        """Return states at ``n`` temperatures in equal ratios, within the range of the branch."""
        spinodals = self.exact.spinodals()
        if branch == "planted" and spinodals.planted is not None:
            high = min(high, spinodals.planted * (1 - 1e-6))
        if branch == "cooled" and spinodals.cooling is not None:
            low = max(low, spinodals.cooling * (1 + 1e-6))
        return _line(self.exact, branch, float(low), float(high), n)

    def at(self, name: str, temperatures: ArrayLike, branch: str = "cooled") -> Floats:
        """Interpolate a quantity at some temperatures; NaN beyond the end of the branch."""
        from scipy.interpolate import PchipInterpolator

        t = np.asarray(temperatures, dtype=np.float64)
        low, high = (7.5e-5, 12.0) if branch == "cooled" else (9e-8, 12.0)
        low, high = min(low, t.min() * (1 - 1e-9)), max(high, t.max() * (1 + 1e-9))
        line = self.line(branch, low, high)
        x, y = np.log(line["temperature"].to_numpy()), line[name].to_numpy()
        if np.all(y > 0):
            values = np.exp(PchipInterpolator(x, np.log(y), extrapolate=False)(np.log(t)))
        else:
            values = PchipInterpolator(x, y, extrapolate=False)(np.log(t))
        return np.asarray(values, dtype=np.float64)


_NAMES = ("alpha", "rho", "rho_hat", "sigma_x2", "sigma_xi2")


@cache
def _replica_symmetric(parameters: tuple[float, ...]) -> ReplicaSymmetric:
    from l0anneal.theory import ReplicaSymmetric

    return ReplicaSymmetric(*parameters)


@cache
def _line(exact: ReplicaSymmetric, branch: str, low: float, high: float, n: int) -> xr.Dataset:
    grid = np.geomspace(high, low, n)
    if branch == "planted":  # more points at its spinodal, where its tangent is vertical
        grid = np.concatenate((high * (1 - np.geomspace(1e-5, 0.1, 7)), grid))
    temperatures = np.unique(grid[grid >= low])
    return exact.curve(temperatures, branch)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Deviation:
    """How far measured points lie from theory.

    Attributes
    ----------
    largest, rms : float
        The largest deviation (with its sign) and the root mean square, in error bars.
    absolute, relative : float
        The largest deviation as it is, and relative to the theory.
    widest : float
        The largest error bar, relative to the theory. Above one, agreement means nothing.
    n_points : int
        How many points were compared.
    """

    largest: float
    rms: float
    absolute: float
    relative: float
    widest: float
    n_points: int


def deviation(
    temperature: Floats, mean: Floats, error: Floats, theory: Floats, low: float, high: float
) -> Deviation | None:
    """Compare points with theory for low ≤ T ≤ high; None if no point has an error bar.

    Examples
    --------
    >>> t = np.array([0.1, 1.0, 10.0])
    >>> d = deviation(t, 1.02 * t, 0.01 * t, t, 0.5, 20.0)
    >>> round(d.largest, 6), round(d.relative, 6), d.n_points
    (2.0, 0.02, 2)
    """
    used = (temperature >= low) & (temperature <= high) & (error > 0)
    used &= np.isfinite(theory) & np.isfinite(mean)
    if not used.any():
        return None
    z = (mean[used] - theory[used]) / error[used]
    relative = np.abs(mean[used] / theory[used] - 1)
    return Deviation(
        float(z[np.argmax(np.abs(z))]),
        float(np.sqrt(np.mean(z**2))),
        float(np.max(np.abs(mean[used] - theory[used]))),
        float(relative.max()),
        float(np.max(error[used] / np.abs(theory[used]))),
        int(used.sum()),
    )


def crossing(temperature: Floats, difference: Floats, error: Floats) -> tuple[float, float] | None:
    """Return the temperature where a difference first changes sign, with its error, or None.

    The difference is interpolated linearly in log T.

    Examples
    --------
    >>> t = np.array([1e-4, 1e-3, 1e-2])
    >>> at, error = crossing(t, np.array([-1.0, 1.0, 3.0]), np.full(3, 0.1))
    >>> print(f"{at:.3e} {error:.1e}")
    3.162e-04 3.6e-05
    """
    x = np.log(temperature)
    change = np.flatnonzero(difference[:-1] * difference[1:] < 0)
    if change.size == 0:
        return None
    i = int(change[0])
    slope = (difference[i + 1] - difference[i]) / (x[i + 1] - x[i])
    at = math.exp(x[i] - difference[i] / slope)
    return at, float(at * 0.5 * (error[i] + error[i + 1]) / abs(slope))
