"""Slow annealing reaches equilibrium where rapid annealing leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from l0anneal._util.figures import new_figure
from l0anneal.reproduction.analysis import FOUND, Data, Theory, found
from l0anneal.reproduction.diagnoses import CURVES, of_medians
from l0anneal.reproduction.drawing import curve
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import (
    JUDGED_LOW,
    MARGINS,
    WHY_MARGIN,
    Row,
    against_theory,
    estimate_of,
    judge_solvable,
    n_of,
    problem_name,
    samples_text,
    shared_samples,
)
from l0anneal.reproduction.rules import larger, more_often_paired, too_few
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

COLD = 0.02  # below this temperature the paper's rapid runs leave equilibrium
PAPER_END = 1 / 1.2527e4  # the last temperature of the paper's schedule


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return the runs with 5 and with 100 sweeps at each temperature."""
    return shared(quick, "rapid", "slow")


def draw(data: Data) -> Figure:
    """Draw distortion and error over temperature, rapid runs above slow ones."""
    figure = new_figure(10, 7.4)
    axes = figure.subplots(2, 2, sharey="col")
    for row, (sweep, tau) in enumerate((("rapid", 5), ("slow", 100))):
        for ax, name in zip(axes[row], ("distortion", "mse")):
            what = "distortion" if name == "distortion" else "error of the coefficients"
            curve(ax, data[sweep], name, f"{what}, τ = {tau}", medians=True)
        axes[row, 0].legend(frameon=False, fontsize=9)
    return figure


def judge(data: Data) -> list[Row]:
    """Judge the cold part of all curves, and the numbers of solutions found."""
    rapid, slow = data["rapid"], data["slow"]
    rows = [_judge_lag(rapid, name, label) for name, label in CURVES.items()]
    rows += [
        Row(
            f"{label} at T ≤ {COLD:g}, {problem_name(slow)}, τ = 100",
            "well matched with equilibrium",
            "RS line, no transition",
            samples_text(slow),
            against_theory(slow, name, JUDGED_LOW, COLD),
            note=f"{WHY_MARGIN} {of_medians(slow, name, JUDGED_LOW, COLD)}",
        )
        for name, label in CURVES.items()
    ]
    rows += judge_solvable(slow, JUDGED_LOW, COLD)
    return [*rows, _judge_success(data)]


def _judge_lag(rapid: xr.Dataset, name: str, label: str) -> Row:
    """Judge whether rapid runs end above equilibrium by more than the margin of agreement."""
    last = rapid.isel(size=[-1])
    t = last["temperature"].to_numpy()
    cold = int(np.argmin(np.abs(np.log(t[1:] / PAPER_END)))) + 1
    line = Theory(rapid.attrs).at(name, t[[cold]])
    estimate = estimate_of(last, last[name].isel(mu=[cold]) / line - 1)
    return Row(
        f"{label} at T = {t[cold]:.1e}, {problem_name(rapid)}, τ = 5",
        "leaves equilibrium at low T",
        f"{line[0]:.2e}",
        f"N = {int(last['size'][0])}: median {float(last[name].isel(mu=cold).median()):.2e}; how far "
        "the mean lies above theory, as a multiple of it",
        too_few(samples_text(last)) if estimate is None else larger(estimate, MARGINS[name]),
        note="Claimed: above equilibrium by more than the margin of an agreement.",
    )


def _judge_success(data: Data) -> Row:
    """Compare how often both find the planted solution on the same instances of the largest size."""
    size = int(np.intersect1d(data["slow"]["size"], data["rapid"]["size"]).max())
    rapid, slow = shared_samples(
        *(data[name]["final_mse"].sel(size=size) for name in ("rapid", "slow"))
    )
    counts = (found(data[name], size=size) for name in ("rapid", "slow"))
    return Row(
        f"planted solution found more often when slow, N = {size}",
        "τ = 5 is not slow enough, τ = 100 is consistent with equilibrium",
        "yes, in equilibrium",
        "; ".join(f"τ = {tau}: {n_of(count)}" for tau, count in zip((5, 100), counts)),
        more_often_paired(slow < FOUND, rapid < FOUND),
    )


FIGURE = ReportFigure(
    name="slow",
    title="Rapid and slow: α = 0.75, ρ = 0.55, ρ̂ = 0.5",
    caption=(
        "There is no transition here, yet the means of runs with five sweeps at each temperature "
        "leave the theory while they cool. With a hundred sweeps the mean distortion follows it to four "
        "times lower T. The mean error leaves it near T = 0.004 at both rates, because some runs never "
        "find the signal; the table counts them. Open symbols are medians at the largest N: those of "
        "the slow runs follow the theory to the end."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
