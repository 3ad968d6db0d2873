"""Means with error bars, counts of solutions, entropies, and the curves of theory beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.counts import log_choose

if TYPE_CHECKING:
    from l0anneal.theory import ReplicaSymmetric

__all__ = [
    "FOUND",
    "Data",
    "Theory",
    "crossing",
    "entropy",
    "fitted_order",
    "found",
    "mean_and_error",
    "only_solvable",
]

Floats = NDArray[np.float64]

#: The measured data of some sweeps, by the sweeps' names.
Data = Mapping[str, xr.Dataset]

#: A run whose mean squared error is below this has found the planted solution. The paper's schedule
#: ends at T = 8e-5, where a few columns still enter and leave, so the error does not vanish.
FOUND = 1e-3


# ---------------------------------------------------------------- measured


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
