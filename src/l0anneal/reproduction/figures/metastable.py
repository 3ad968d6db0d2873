"""Below T_c, cooling stays on the metastable branch; heating follows the planted one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, Theory, mean_and_error
from l0anneal.reproduction.drawing import (
    DISTORTION_LABEL,
    MSE_LABEL,
    SHOWN_HIGH,
    SHOWN_LOW,
    T_LABEL,
    finish,
    limits,
    lines,
    points,
    thin,
)
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rules import (
    CURVES,
    JUDGED_HIGH,
    JUDGED_LOW,
    Row,
    compare,
    describe,
    judge_curve,
    judged,
    problem_name,
)
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return the cooling runs, and the runs heated from the planted signal."""
    return shared(quick, "metastable", "heated")


def draw(data: Data) -> Figure:
    """Draw distortion and error over temperature, cooled and heated, with both branches."""
    figure = new_figure(10, 4.8)
    cooled = data["metastable"]
    theory = Theory(cooled.attrs)
    end = theory.exact.spinodals().planted or 1.0
    low = 2e-5
    labels = {"distortion": DISTORTION_LABEL, "mse": MSE_LABEL}
    for ax, (name, label) in zip(figure.subplots(1, 2), labels.items()):
        text = "cooled, N = {size} ({n})"
        points(ax, cooled, name, low=SHOWN_LOW, high=SHOWN_HIGH, label=text)
        _draw_heated(ax, data["heated"], name, low, 1.6 * end)
        lines(ax, theory, name, low, SHOWN_HIGH)
        finish(ax, T_LABEL, label, logx=True, logy=True)
        planted, metastable = (
            theory.line("planted", low, end),
            theory.line("cooled", low, SHOWN_HIGH),
        )
        limits(ax, planted[name], metastable[name])
    figure.axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _draw_heated(ax: Axes, heated: xr.Dataset, name: str, low: float, high: float) -> None:
    largest = heated.isel(size=[-1])
    shown = thin(largest, low, high, n=22)
    mean, error = mean_and_error(shown[name])
    ax.errorbar(
        shown["temperature"],
        mean.isel(size=0),
        error.isel(size=0),
        ls="none",
        marker="v",
        ms=4.5,
        mfc="none",
        lw=0.9,
        color=COLORS["purple"],
        label=f"heated, N = {int(largest['size'][0])} ({int(largest['n_samples'][0])})",
    )


def judge(data: Data) -> list[Row]:
    """Judge the cooled curves, which branch they follow below T_c, and the heated curves."""
    source = data["metastable"]
    transition = Theory(source.attrs).exact.transition()
    assert transition is not None
    at = transition.temperature
    rows = []
    for name, label in CURVES.items():
        both = compare(source, name, JUDGED_LOW, JUDGED_HIGH)
        text, status = judge_curve(*both)
        rows.append(
            Row(
                f"{label} on cooling, {problem_name(source)}",
                "follows the metastable branch",
                "RS line of the cooled branch",
                describe(source, *both),
                text,
                status,
            )
        )
    rows += _judge_branch(source, at)
    heated = data["heated"]
    for name, label in CURVES.items():
        both = compare(heated, name, 1e-6, at, "planted")
        text, status = judge_curve(*both)
        rows.append(
            Row(
                f"{label} on heating from the truth, T ≤ T_c",
                "–",
                "RS line of the planted branch",
                describe(heated, *both),
                text,
                "new" if status == "agrees" else status,
            )
        )
    return rows


def _judge_branch(source: xr.Dataset, at: float) -> list[Row]:
    """Judge whether the error below T_c is that of the cooled branch or that of equilibrium."""
    below, _ = compare(source, "mse", JUDGED_LOW, at)
    planted, _ = compare(source, "mse", JUDGED_LOW, at, "planted")
    if below is None or planted is None:
        return []
    trapped = abs(planted.rms) > 3 * max(1.0, below.rms)
    return [
        Row(
            "which branch below T_c",
            "the metastable one, not equilibrium",
            f"T_c = {at:.3e}",
            f"MSE at N = {int(judged(source)['size'][-1])}: rms {below.rms:.1f} error bars "
            f"from the cooled branch, {planted.rms:.1f} from equilibrium",
            "agrees: trapped" if trapped else "not shown by these runs",
            "agrees" if trapped else "partly",
        )
    ]


FIGURE = ReportFigure(
    name="metastable",
    title="Trapped: α = 0.75, ρ = 0.65, ρ̂ = 0.5",
    caption=(
        "Below T_c the equilibrium (black) jumps to the planted state, but cooling stays on the "
        "metastable branch (red, dashed). Heating from the truth (open symbols) follows the "
        "planted branch up to its own end, beyond T_c."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
