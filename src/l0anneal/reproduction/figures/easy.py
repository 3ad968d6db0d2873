"""Easy recovery: rapid annealing stays in equilibrium and finds the planted signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from l0anneal._util.figures import new_figure
from l0anneal.reproduction.analysis import Data, Theory
from l0anneal.reproduction.drawing import (
    DISTORTION_LABEL,
    SHOWN_LOW,
    T_LABEL,
    curve,
    finish,
    lines,
    points,
)
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import Row, judge_planted_run
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return the cooling runs of the easy case."""
    return shared(quick, "easy")


def draw(data: Data) -> Figure:
    """Draw distortion and error over temperature, with the coldest part magnified."""
    figure = new_figure(13, 4.0)
    left, middle, right = figure.subplots(1, 3)
    source = data["easy"]
    curve(left, source, "distortion", "distortion")
    points(middle, source, "distortion", low=0.0, high=0.105, label="")
    lines(middle, Theory(source.attrs), "distortion", SHOWN_LOW, 0.105)
    finish(middle, T_LABEL, DISTORTION_LABEL, "distortion, magnified, linear axes")
    middle.set_xlim(0, 0.1)
    middle.set_ylim(0, 0.0065)
    curve(right, source, "mse", "error of the coefficients")
    left.legend(frameon=False, fontsize=9)
    return figure


def judge(data: Data) -> list[Row]:
    """Judge both curves down to the lowest temperature."""
    return judge_planted_run(data["easy"], "agree, down to T → 0")


FIGURE = ReportFigure(
    name="easy",
    title="Easy recovery: α = 0.8, ρ = 0.4, ρ̂ = 0.2",
    caption=(
        "Points are annealing runs at the paper's schedule; the line is the replica theory for "
        "N → ∞. At low T a sample is exact at most times and has an error at a few, so that means "
        "scatter and medians lie below the line, the more so the smaller N is. The table says in how "
        "many runs the planted solution is found."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
