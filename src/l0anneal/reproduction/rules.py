"""The rules of the verdict table, in one place: each verdict is worked out from its numbers.

A measured curve agrees with theory if, over the range where the paper says so, its straight line
through 1/N ends so close to the theory at every temperature that chance alone would go farther at
one of them in one case of a hundred (Bonferroni's bound: 3.9 error bars for 99 temperatures), and
if these error bars are nowhere wider than the theory's value itself. With one size only, that size
is compared as it is. A single number agrees within three error bars.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from l0anneal.reproduction.analysis import (
    Deviation,
    Theory,
    deviation,
    extrapolate,
    mean_and_error,
)

__all__ = [
    "MIN_SAMPLES",
    "Row",
    "Status",
    "allowed",
    "compare",
    "describe",
    "judge",
    "judged",
    "pm",
]

Status = Literal["agrees", "partly", "differs", "new"]
LOW, HIGH = 7.9e-5, 11.0  # the paper's schedule, from its second temperature on
SIGMAS = 3.0
MIN_SAMPLES = 8


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    quantity: str
    paper: str
    theory: str
    measured: str
    verdict: str
    status: Status


def pm(value: float, error: float) -> str:
    """A number with its error in the last two digits, as 0.0365(16).

    Examples
    --------
    >>> pm(0.036512, 0.00162), pm(2.94e-4, 3e-5), pm(1.5, float("nan"))
    ('0.0365(16)', '2.94(30)e-04', '1.5')
    """
    if not error > 0 or not np.isfinite(value):
        return f"{value:.3g}"
    digits = 1 - int(np.floor(np.log10(error)))
    if abs(value) >= 1e-3:
        digits = max(digits, 0)
        return f"{value:.{digits}f}({round(error * 10**digits)})"
    power = int(np.floor(np.log10(abs(value) or error)))
    scaled = digits + power
    mantissa = f"{value / 10.0**power:.{max(scaled, 0)}f}"
    return f"{mantissa}({round(error / 10.0**power * 10 ** max(scaled, 0))})e{power:03d}"


def compare(
    data: xr.Dataset, name: str, low: float, high: float, branch: str = "cooled"
) -> tuple[Deviation | None, Deviation | None]:
    """The largest size's deviation from theory, and that of the limit N → ∞.

    Sizes with fewer than `MIN_SAMPLES` samples are drawn but not judged: an error bar from so few
    is itself mostly chance.
    """
    data = judged(data)
    if data["size"].size == 0:
        return None, None
    temperature = data["temperature"].to_numpy()
    theory = np.full(temperature.size, np.nan)
    inside = (temperature >= low) & (temperature <= high)
    theory[inside] = Theory(data.attrs).at(name, temperature[inside], branch)
    mean, error = mean_and_error(data[name])
    limit, limit_error = extrapolate(mean, error)
    measured = deviation(
        temperature,
        mean.isel(size=-1).to_numpy(),
        error.isel(size=-1).to_numpy(),
        theory,
        low,
        high,
    )
    return measured, deviation(
        temperature, limit.to_numpy(), limit_error.to_numpy(), theory, low, high
    )


def judged(data: xr.Dataset) -> xr.Dataset:
    """The sizes that have enough samples."""
    return data.isel(size=np.flatnonzero(data["n_samples"].to_numpy() >= MIN_SAMPLES))


def describe(data: xr.Dataset, measured: Deviation | None, limit: Deviation | None) -> str:
    """Both deviations in words."""
    if measured is None:
        return "too few samples for an error bar"
    data = judged(data)
    size, n = int(data["size"][-1]), int(data["n_samples"][-1])
    text = (
        f"N = {size} ({n} samples): largest deviation {measured.largest:+.1f} error bars, "
        f"rms {measured.rms:.1f}, {100 * measured.relative:.0f} % at most, "
        f"at {measured.n_points} temperatures"
    )
    if limit is not None:
        text += f"; extrapolated in 1/N: {limit.largest:+.1f}, rms {limit.rms:.1f}"
    return text


def allowed(n_points: int) -> float:
    """Error bars that the largest of ``n_points`` deviations may have, at one per cent.

    Examples
    --------
    >>> round(allowed(1), 2), round(allowed(99), 2)
    (2.58, 3.89)
    """
    from scipy.special import ndtri

    return float(-ndtri(0.005 / n_points))


def judge(measured: Deviation | None, limit: Deviation | None) -> tuple[str, Status]:
    """The rule of this page for a curve."""
    if measured is None:
        return "no verdict", "partly"
    final = limit or measured
    close = abs(final.largest) <= allowed(final.n_points)
    if close and final.widest > 1.0:
        return (
            f"within {abs(final.largest):.1f} error bars, but these reach {final.widest:.2g} times "
            "the theory's value where single runs lag behind",
            "partly",
        )
    if close:
        return f"agrees: within {abs(final.largest):.1f} error bars everywhere", "agrees"
    if final.rms <= SIGMAS:
        return f"agrees in the mean (rms {final.rms:.1f}), not everywhere", "partly"
    return f"deviates: rms {final.rms:.1f} error bars", "differs"
