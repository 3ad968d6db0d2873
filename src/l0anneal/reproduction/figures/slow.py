"""Slow annealing reaches equilibrium where rapid annealing leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from l0anneal._util.figures import new_figure
from l0anneal.reproduction.analysis import Data, found
from l0anneal.reproduction.drawing import curve
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rules import (
    CURVES,
    JUDGED_HIGH,
    JUDGED_LOW,
    Row,
    allowed,
    compare,
    describe,
    judge_curve,
    judge_solvable,
    problem_name,
)
from l0anneal.reproduction.sweeps import Sweep, annealed, paper_sizes, planted, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return the runs with 5 and with 100 sweeps at each temperature."""
    rapid = Sweep(planted(0.75, 0.5), annealed(0.55), paper_sizes(quick))
    return {"rapid": rapid, **shared(quick, "slow")}


def draw(data: Data) -> Figure:
    """Draw distortion and error over temperature, rapid runs above slow ones."""
    figure = new_figure(10, 7.4)
    axes = figure.subplots(2, 2, sharey="col")
    for row, (sweep, tau) in enumerate((("rapid", 5), ("slow", 100))):
        for ax, name in zip(axes[row], ("distortion", "mse")):
            what = "distortion" if name == "distortion" else "error of the coefficients"
            curve(ax, data[sweep], name, f"{what}, τ = {tau}")
        axes[row, 0].legend(frameon=False, fontsize=8)
    return figure


def judge(data: Data) -> list[Row]:
    """Judge the cold part of all curves, and the numbers of solutions found."""
    rows = []
    for sweep, tau, says in (
        ("rapid", 5, "leaves equilibrium at low T"),
        ("slow", 100, "well matched with equilibrium"),
    ):
        source = data[sweep]
        for name, label in CURVES.items():
            high, _ = compare(source, name, 0.02, JUDGED_HIGH)
            both = compare(source, name, JUDGED_LOW, 0.02)
            text, status = judge_curve(*both)
            if sweep == "rapid":
                measured = both[0]
                left = measured is not None and abs(measured.largest) > allowed(measured.n_points)
                text = "agrees: it leaves" if left else "not seen with these samples"
                status = "agrees" if left else "partly"
            above = "" if high is None else f" (above T = 0.02: rms {high.rms:.1f})"
            rows.append(
                Row(
                    f"{label} at T ≤ 0.02, {problem_name(source)}, τ = {tau}",
                    says,
                    "RS line, no transition",
                    describe(source, *both) + above,
                    text,
                    status,
                )
            )
    rows += judge_solvable(data["slow"], JUDGED_LOW, 0.02)
    return rows + _judge_success(data)


def _judge_success(data: Data) -> list[Row]:
    """Compare how often both find the planted solution, at the largest size that both have."""
    common = [s for s in data["slow"]["size"].to_numpy() if s in data["rapid"]["size"]]
    rows = []
    for size in common[-1:]:
        rapid, slow = (found(data[name], size=int(size)) for name in ("rapid", "slow"))
        better = slow[0] / max(slow[1], 1) > rapid[0] / max(rapid[1], 1)
        rows.append(
            Row(
                f"planted solution found, N = {size}",
                "only slowly",
                "yes, in equilibrium",
                f"τ = 5: {rapid[0]} of {rapid[1]}; τ = 100: {slow[0]} of {slow[1]}",
                "agrees: slower is better" if better else "no gain seen",
                "agrees" if better else "differs",
            )
        )
    return rows


FIGURE = ReportFigure(
    name="slow",
    title="Rapid and slow: α = 0.75, ρ = 0.55, ρ̂ = 0.5",
    caption=(
        "There is no transition here, yet runs with five sweeps at each temperature fall out of "
        "equilibrium while they cool. Runs with a hundred sweeps follow the theory farther down, "
        "the more so the larger N. The mean error that remains comes from the few samples that "
        "lag behind."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
