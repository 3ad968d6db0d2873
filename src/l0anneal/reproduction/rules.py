"""The rules of the verdict table: how each verdict follows from its numbers.

A measured curve is extrapolated to N → ∞ by a straight line in 1/N (a single size is compared as it
is). The curve agrees with theory if two conditions hold over the range of temperatures where the
paper claims agreement. First, its largest deviation stays within the bound that chance alone
exceeds in one case of a hundred (Bonferroni: 3.9 error bars for 99 temperatures). Second, no error
bar is wider than the theory's value itself. A single number agrees if it lies within three error
bars.
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
    found,
    mean_and_error,
    only_solvable,
)

__all__ = [
    "CURVES",
    "JUDGED_HIGH",
    "JUDGED_LOW",
    "MIN_SAMPLES",
    "SIGMAS",
    "Row",
    "Status",
    "allowed",
    "compare",
    "describe",
    "judge_curve",
    "judge_planted_run",
    "judge_solvable",
    "judged",
    "n_of",
    "pm",
    "problem_name",
]

Status = Literal["agrees", "partly", "differs", "new"]
JUDGED_LOW, JUDGED_HIGH = 7.9e-5, 11.0  # the paper's schedule from its second temperature on
SIGMAS = 3.0
MIN_SAMPLES = 8

#: The curves that are compared with theory, and their symbols.
CURVES = {"distortion": "ε(T)", "mse": "MSE(T)"}


@dataclass(frozen=True)
class Row:
    """One row of the verdict table: the columns' texts, and the status that colours the row."""

    quantity: str
    paper: str
    theory: str
    measured: str
    verdict: str
    status: Status


def pm(value: float, error: float) -> str:
    """Write a number with its error in the last two digits, as 0.0365(16).

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
    """Return the deviations from theory of the largest size and of the limit N → ∞.

    Sizes with fewer than `MIN_SAMPLES` samples are drawn but not judged, because an error bar from
    so few samples is itself mostly chance.
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
    """Select the sizes that have enough samples."""
    return data.isel(size=np.flatnonzero(data["n_samples"].to_numpy() >= MIN_SAMPLES))


def describe(data: xr.Dataset, measured: Deviation | None, limit: Deviation | None) -> str:
    """Describe both deviations in words."""
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
    """Return how many error bars the largest of ``n_points`` deviations may have.

    Chance alone exceeds this number in at most one case of a hundred.

    Examples
    --------
    >>> round(allowed(1), 2), round(allowed(99), 2)
    (2.58, 3.89)
    """
    from scipy.special import ndtri

    return float(-ndtri(0.005 / n_points))


def judge_curve(measured: Deviation | None, limit: Deviation | None) -> tuple[str, Status]:
    """Return the verdict on a curve from the deviations that `compare` found."""
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


def problem_name(data: xr.Dataset) -> str:
    """Name the problem of a sweep by its parameters (α, ρ, ρ̂)."""
    a = data.attrs
    return f"({a['alpha']:g}, {a['rho']:g}, {a['rho_hat']:g})"


def n_of(counts: tuple[int, int]) -> str:
    """Write counts of successes and of runs as "3 of 4"."""
    return f"{counts[0]} of {counts[1]}"


def judge_planted_run(source: xr.Dataset, says: str) -> list[Row]:
    """Judge ε and MSE over the paper's whole schedule, and whether the planted signal is found."""
    where = f"RS line, {JUDGED_LOW:.0e} ≤ T ≤ {JUDGED_HIGH:g}"
    problem = problem_name(source)
    rows = []
    for name, label in CURVES.items():
        both = compare(source, name, JUDGED_LOW, JUDGED_HIGH)
        text, status = judge_curve(*both)
        rows.append(Row(f"{label}, {problem}", says, where, describe(source, *both), text, status))
    rows += judge_solvable(source, JUDGED_LOW, JUDGED_HIGH)
    good, n = found(source)
    final = source["final_mse"].isel(size=-1)
    solvable = int(only_solvable(source)["n_samples"][-1])
    rows.append(
        Row(
            f"planted solution found, {problem}",
            "yes: MSE → 0",
            "yes: MSE ∝ T^1.5",
            f"N = {int(source['size'][-1])}: {good} of {n} runs end with MSE < 1e-3 "
            f"({solvable} instances have one); median MSE {float(final.median()):.1e}",
            f"{'agrees' if good >= 0.9 * solvable else 'in part'}: {good} of {solvable}",
            "agrees" if good >= 0.9 * solvable else "partly",
        )
    )
    return rows


def judge_solvable(source: xr.Dataset, low: float, high: float) -> list[Row]:
    """Judge the curves without the instances that have no planted solution of k columns.

    If every instance has one, there is nothing to leave out and no row.
    """
    chosen = only_solvable(source)
    lost = (source["n_samples"] - chosen["n_samples"]).to_numpy()
    if not lost.any():
        return []
    counts = ", ".join(f"{int(a)} at N = {int(n)}" for a, n in zip(lost, source["size"]) if a)
    rows = []
    for name, label in CURVES.items():
        both = compare(chosen, name, low, high)
        text, status = judge_curve(*both)
        rows.append(
            Row(
                f"{label}, {problem_name(source)}, instances with at most k planted columns",
                "–",
                f"left out as unsolvable: {counts}",
                describe(chosen, *both),
                text,
                "new" if status == "agrees" else status,
            )
        )
    return rows
