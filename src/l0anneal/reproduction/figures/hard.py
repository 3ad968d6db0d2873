"""Recovery below the l1 limit: annealing follows the theory where l1 fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from l0anneal._util.figures import new_figure
from l0anneal.reproduction.analysis import Data
from l0anneal.reproduction.drawing import curve
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import Row, judge_planted_run
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return the cooling runs below the l1 limit."""
    return shared(quick, "hard")


def draw(data: Data) -> Figure:
    """Draw distortion and error over temperature."""
    figure = new_figure(9, 4.0)
    left, right = figure.subplots(1, 2)
    curve(left, data["hard"], "distortion", "distortion")
    curve(right, data["hard"], "mse", "error of the coefficients", medians=True)
    left.legend(frameon=False, fontsize=9)
    return figure


def judge(data: Data) -> list[Row]:
    """Judge both curves, also without the instances that have no solution of k columns."""
    return judge_planted_run(data["hard"], "agree, below the l1 limit")


FIGURE = ReportFigure(
    name="hard",
    title="Below the l1 limit: α = 0.8, ρ = 0.55, ρ̂ = 0.5",
    caption=(
        "Annealing at parameters where l1 fails for N → ∞ (l1 needs α ≥ 0.831). At low T the mean "
        "error levels off because of a few samples: at N = 100 mostly those that have more planted "
        "columns than the support may have, at N = 400 those that lag behind. The median over samples "
        "(open symbols, largest N) shows what the other runs do."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
