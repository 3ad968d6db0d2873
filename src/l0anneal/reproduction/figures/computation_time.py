"""Computation time over N, beside the paper's own times, an l1 path and OMP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, fitted_order
from l0anneal.reproduction.drawing import finish
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rules import Row
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

PAPER_SECONDS = {100: 6.0, 200: 15.0, 400: 38.0}


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing, OMP and l1 on pure noise, at the paper's sizes and at a larger one."""
    larger = {200: 3} if quick else {800: 20}
    found = {}
    for name, sweep in shared(quick, "noise", "omp", "l1").items():
        found[name] = sweep
        found[f"{name}-large"] = Sweep(sweep.ensemble, sweep.solver, larger)
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
    ax.legend(frameon=False, fontsize=8)
    return figure


def _order(sizes: list[int], seconds: list[float]) -> float:
    return fitted_order(sizes, seconds) if len(sizes) > 1 else np.nan


def judge(data: Data) -> list[Row]:
    """Judge the seconds, and their order in N beside that of l1."""
    sizes, seconds = _median_seconds(data, "noise")
    l1_sizes, l1_seconds = _median_seconds(data, "l1")
    order, l1_order = _order(sizes, seconds), _order(l1_sizes, l1_seconds)
    listed = ", ".join(f"N = {n}: {s:.3g}" for n, s in zip(sizes, seconds))
    paper = [s / PAPER_SECONDS[n] for n, s in zip(sizes, seconds) if n in PAPER_SECONDS]
    ratio = f"{1 / max(paper):.0f} to {1 / min(paper):.0f} times faster" if paper else "–"
    close = abs(order - l1_order) < 1.0
    n_samples = int(data["noise"]["n_samples"][-1])
    return [
        Row(
            "seconds for one run, (.5, .2), τ = 5",
            "6, 15, 38 at N = 100, 200, 400 (MATLAB; order 1.3)",
            "–",
            f"{listed} (medians, {n_samples} samples, processor time)",
            f"{ratio} than the paper's times, machine and language included",
            "new",
        ),
        Row(
            "order in N, and that of l1",
            "N³ at most; comparable to l1",
            "N³ for accepted moves, N² for rejected ones",
            f"annealing N^{order:.1f}; the l1 path N^{l1_order:.1f} "
            f"({seconds[-1] / l1_seconds[-1]:.1f} times the l1 time at N = {sizes[-1]})",
            "agrees: same order within one power" if close else "orders differ here",
            "agrees" if close else "partly",
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
