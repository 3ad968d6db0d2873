"""The rows of the verdict table: claims of the paper, the numbers about them, and their verdicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal.reproduction.analysis import FOUND, found, mean_and_error, only_solvable
from l0anneal.reproduction.diagnoses import CURVES, deviations, of_medians
from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.rules import Verdict, rate_above, too_few, within

__all__ = [
    "JUDGED_HIGH",
    "JUDGED_LOW",
    "MARGINS",
    "MIN_SAMPLES",
    "WHY_MARGIN",
    "WHY_NATS",
    "Row",
    "against_theory",
    "by_size",
    "estimate_of",
    "judge_planted_run",
    "judge_solvable",
    "judged_sizes",
    "limit_weights",
    "n_of",
    "pm",
    "problem_name",
    "samples_text",
    "shared_samples",
]

Floats = NDArray[np.float64]
JUDGED_LOW, JUDGED_HIGH = 7.9e-5, 11.0  # the paper's schedule from its second temperature on

#: Sizes with fewer samples than this are drawn but not judged.
MIN_SAMPLES = 5

#: How far a mean curve in the limit N → ∞ may be from theory: relative for distortion and error,
#: nats per column for entropies.
MARGINS = {"distortion": 0.05, "mse": 0.1, "free_entropy": 0.01, "entropy": 0.02}

WHY_MARGIN = "Margin: what a finite size of N = 100 would shift, rounded up."
WHY_NATS = "Margin: some hundredths of the range of g and s."


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes
    ----------
    quantity, paper, theory, measured : str
        The texts of the columns.
    verdict : Verdict or None
        None for numbers that are reported and not judged, because the paper claims nothing that
        they could show.
    new : bool
        Whether the paper has no such measurement, so that the claim is the theory's.
    note : str
        What else there is to know: the reason of the margin, or a diagnosis.
    """

    quantity: str
    paper: str
    theory: str
    measured: str
    verdict: Verdict | None = None
    new: bool = False
    note: str = ""


# ---------------------------------------------------------------- texts


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


def problem_name(data: xr.Dataset) -> str:
    """Name the problem of a sweep by its parameters (α, ρ, ρ̂)."""
    a = data.attrs
    return f"({a['alpha']:g}, {a['rho']:g}, {a['rho_hat']:g})"


def n_of(counts: tuple[int, int]) -> str:
    """Write counts of successes and of runs as "3 of 4"."""
    return f"{counts[0]} of {counts[1]}"


def by_size(values: xr.DataArray) -> str:
    """Write the mean over samples with its error at each size."""
    mean, error = mean_and_error(values)
    return ", ".join(
        f"N = {int(size)}: {pm(float(mean.sel(size=size)), float(error.sel(size=size)))}"
        for size in mean["size"].to_numpy()
    )


def samples_text(data: xr.Dataset) -> str:
    """Name the sizes that are judged, with their samples, and whether they are extrapolated."""
    sizes, counts = judged_sizes(data)
    if not sizes.size:
        return f"fewer than {MIN_SAMPLES} samples at every size"
    listed = ", ".join(f"N = {n} ({c} samples)" for n, c in zip(sizes, counts))
    return listed + (", extrapolated in 1/N" if sizes.size > 1 else ", not extrapolated")


# ---------------------------------------------------------------- estimates


def judged_sizes(data: xr.Dataset) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Return the sizes that have enough samples, and how many."""
    counts = data["n_samples"].to_numpy()
    enough = counts >= MIN_SAMPLES
    return data["size"].to_numpy()[enough].astype(int), counts[enough].astype(int)


def limit_weights(sizes: NDArray[np.int_], counts: NDArray[np.int_], power: float = 1.0) -> Floats:
    """Return the weights by which the means at several sizes add up to the limit N → ∞.

    The limit is the intercept of a straight line in 1/N, or in a ``power`` of 1/N. Sizes are weighted
    by N times their samples, as for a quantity that averages itself; weights from the measured error
    bars would favour sizes that happen to lack outliers. One size is its own limit.

    Examples
    --------
    >>> weights = limit_weights(np.array([100, 200, 400]), np.array([100, 100, 100]))
    >>> round(float(weights @ (2 + 30 / np.array([100, 200, 400]))), 9)
    2.0
    """
    if sizes.size == 1:
        return np.ones(1)
    x, w = 1.0 / sizes**power, sizes * counts.astype(float)
    s0, s1, s2 = w.sum(), (w * x).sum(), (w * x * x).sum()
    return np.asarray(w * (s2 - s1 * x) / (s0 * s2 - s1 * s1))


def estimate_of(data: xr.Dataset, values: xr.DataArray) -> Estimate | None:
    """Estimate the limit N → ∞ of some values over samples; None if there are too few.

    ``values`` has the dimensions size and sample, and one more if it is a curve.
    """
    sizes, counts = judged_sizes(data)
    if not sizes.size:
        return None
    groups = []
    for size in sizes:
        own = values.sel(size=size).transpose("sample", ...).to_numpy()
        whole = np.isfinite(own.reshape(own.shape[0], -1)).all(axis=1)
        groups.append(own[whole])
    if any(len(group) < MIN_SAMPLES for group in groups):
        return None
    return Estimate(groups, list(limit_weights(sizes, counts)))


def against_theory(
    data: xr.Dataset,
    name: str,
    low: float,
    high: float,
    branch: str = "cooled",
    margin: float | None = None,
) -> Verdict:
    """Claim that a curve agrees with theory between two temperatures, in the limit N → ∞.

    ``MARGINS`` has the margin of each quantity, unless another is given.
    """
    temperature, off = deviations(data, name, low, high, branch)
    estimate = estimate_of(data, off)
    if estimate is None:
        return too_few(samples_text(data))
    places = [f"T = {t:.2g}" for t in temperature]
    bound = MARGINS[name] if margin is None else margin
    if name in CURVES:
        return within(estimate, 0.0, bound, " %", 100.0, places)
    return within(estimate, 0.0, bound, " nats", 1.0, places)


def shared_samples(*values: xr.DataArray) -> list[Floats]:
    """Return the values of the samples that all arrays have, in the same order."""
    arrays = [v.to_numpy() for v in values]
    n = min(a.shape[0] for a in arrays)
    cut = [a[:n] for a in arrays]
    whole = np.all([np.isfinite(a) for a in cut], axis=0)
    return [a[whole] for a in cut]


# ---------------------------------------------------------------- rows of several figures


def judge_planted_run(source: xr.Dataset, says: str) -> list[Row]:
    """Judge ε and MSE over the paper's whole schedule, and whether the planted signal is found."""
    where = f"RS line, {JUDGED_LOW:.0e} ≤ T ≤ {JUDGED_HIGH:g}"
    problem = problem_name(source)
    rows = [
        Row(
            f"{label}, {problem}",
            says,
            where,
            samples_text(source),
            against_theory(source, name, JUDGED_LOW, JUDGED_HIGH),
            note=f"{WHY_MARGIN} {of_medians(source, name, JUDGED_LOW, JUDGED_HIGH)}",
        )
        for name, label in CURVES.items()
    ]
    rows += judge_solvable(source, JUDGED_LOW, JUDGED_HIGH)
    chosen = only_solvable(source)
    good, n = found(chosen)
    final = source["final_mse"].isel(size=-1)
    rows.append(
        Row(
            f"planted solution found, {problem}",
            "yes: perfect reconstruction",
            "yes: MSE ∝ T^1.5",
            f"N = {int(source['size'][-1])}: {n_of(found(source))} runs end with MSE < {FOUND:g}; "
            f"{n} instances have an exact solution of k columns, {good} of these are found; median "
            f"MSE {float(final.median()):.1e}",
            rate_above((good, n), 0.9) if n else too_few("no runs"),
            note="Claimed rate: nine of ten instances that have an exact solution of k columns.",
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
    return [
        Row(
            f"{label}, {problem_name(source)}, instances with at most k planted columns",
            "–",
            f"left out, no exact solution of k columns: {counts}",
            samples_text(chosen),
            against_theory(chosen, name, low, high),
            new=True,
            note=f"{WHY_MARGIN} {of_medians(chosen, name, low, high)}",
        )
        for name, label in CURVES.items()
    ]
