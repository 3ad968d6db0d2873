"""Computation time over N, beside the paper's own times, an l1 path and OMP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, fitted_order
from l0anneal.reproduction.drawing import finish
from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import MIN_SAMPLES, Row
from l0anneal.reproduction.rules import larger, too_few, within
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

PAPER_SECONDS = {100: 6.0, 200: 15.0, 400: 38.0}


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing, OMP and l1 on pure noise, at the paper's sizes and at a larger one."""
    more = {200: 5} if quick else {800: 100}
    found = {}
    for name, sweep in shared(quick, "noise", "omp", "l1").items():
        found[name] = sweep
        found[f"{name}-large"] = Sweep(sweep.ensemble, sweep.solver, more)
    return found


def _median_seconds(data: Data, solver: str) -> tuple[list[int], list[float]]:
    """Return the sizes that have runs of a solver, and the median seconds at each."""
    pairs = {
        int(size): float(data[name]["seconds"].sel(size=size).median())
        for name in (solver, f"{solver}-large")
        for size in data[name]["size"].to_numpy()
        if int(data[name]["n_samples"].sel(size=size)) > 0
    }
    return sorted(pairs), [pairs[size] for size in sorted(pairs)]


def draw(data: Data) -> Figure:
    """Draw seconds over N on logarithmic axes."""
    figure = new_figure(6.4, 4.6)
    ax = figure.subplots()
    paper = list(PAPER_SECONDS), list(PAPER_SECONDS.values())
    for label, (sizes, seconds), color, marker in (
        ("annealing, paper (MATLAB)", paper, "black", "s"),
        ("annealing, here", _median_seconds(data, "noise"), "blue", "o"),
        ("l1 path (LARS), scikit-learn", _median_seconds(data, "l1"), "orange", "^"),
        ("OMP, scikit-learn", _median_seconds(data, "omp"), "green", "v"),
    ):
        if len(sizes) > 1:
            label += f": N^{fitted_order(sizes, seconds):.1f}"
        ax.plot(sizes, seconds, marker=marker, ms=5, lw=1.2, color=COLORS[color], label=label)
    finish(ax, "columns N", "processor seconds for one run (median)", logx=True, logy=True)
    ticks = sorted({*PAPER_SECONDS, *_median_seconds(data, "noise")[0]})
    ax.set_xticks(ticks, [str(size) for size in ticks])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=9)
    return figure


def _log_seconds(data: Data, solver: str) -> tuple[list[int], list[NDArray[np.float64]]]:
    """Return the sizes that have enough runs of a solver, and the logarithms of their seconds."""
    sizes, groups = [], []
    for name in (solver, f"{solver}-large"):
        for size in data[name]["size"].to_numpy():
            seconds = data[name]["seconds"].sel(size=size).dropna("sample").to_numpy()
            if seconds.size >= MIN_SAMPLES and int(size) not in sizes:
                sizes.append(int(size))
                groups.append(np.log(np.maximum(seconds, 1e-6)))
    return sizes, groups


def _slope(sizes: list[int]) -> list[float]:
    """Return the weights by which values at some sizes give the slope of a line in log N."""
    x = np.log(sizes) - np.mean(np.log(sizes))
    return list(x / (x @ x))


def _local_orders(data: Data) -> str:
    """Say how fast the medians grow between the two largest sizes, where the fit hides it."""
    parts = []
    for solver, label in (("noise", "annealing"), ("l1", "l1")):
        sizes, seconds = (values[-2:] for values in _median_seconds(data, solver))
        if len(sizes) < 2:
            return ""
        parts.append(f"{fitted_order(sizes, seconds):.1f} ({label})")
    return f"Between N = {sizes[0]} and {sizes[1]} the orders are {' and '.join(parts)}."


def judge(data: Data) -> list[Row]:
    """Report the seconds, and judge their order in N and beside that of l1."""
    sizes, seconds = _median_seconds(data, "noise")
    l1_seconds = _median_seconds(data, "l1")[1]
    listed = ", ".join(f"N = {n}: {s:.3g}" for n, s in zip(sizes, seconds))
    paper = [s / PAPER_SECONDS[n] for n, s in zip(sizes, seconds) if n in PAPER_SECONDS]
    ratio = f"{1 / max(paper):.0f} to {1 / min(paper):.0f} times the paper's speed" if paper else ""
    n_samples = int(data["noise"]["n_samples"][-1])
    own, other = _log_seconds(data, "noise"), _log_seconds(data, "l1")
    order = difference = too_few("two sizes with enough runs are needed")
    if len(own[0]) > 1 and len(other[0]) > 1:
        below = Estimate(own[1], [-w for w in _slope(own[0])])
        order = larger(below, -3.0).saying("minus the order")
        both = Estimate([*own[1], *other[1]], [*_slope(own[0]), *(-w for w in _slope(other[0]))])
        difference = within(both, 0.0, 1.0)
    return [
        Row(
            "seconds for one run, (.5, .2), τ = 5",
            "6, 15, 38 at N = 100, 200, 400 (MATLAB)",
            "–",
            f"{listed} (medians, {n_samples} samples, processor time)",
            note=f"Reported, not judged: {ratio}, machine and language included.",
        ),
        Row(
            "order in N",
            "only third-order dependence",
            "N³ for accepted moves, N² for rejected ones",
            f"N^{fitted_order(sizes, seconds):.1f} from the medians" if len(sizes) > 1 else "–",
            order,
            note=f"Claimed: an order below 3. {_local_orders(data)}",
        ),
        Row(
            "order in N beside that of l1",
            "comparable to l1",
            "–",
            f"{seconds[-1] / l1_seconds[-1]:.1f} times the l1 time at N = {sizes[-1]}",
            difference.saying("difference of the orders"),
            note="Margin: one power of N. The l1 path is scikit-learn's LARS.",
        ),
    ]


FIGURE = ReportFigure(
    name="time",
    title="Computation time: α = 0.5, ρ = 0.2",
    caption=(
        "Processor seconds for one run at the paper's schedule, as the paper reports them and as "
        "measured here, beside an l1 solver (the whole LASSO path to k columns) and OMP. The "
        "exponents of N are fitted."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
