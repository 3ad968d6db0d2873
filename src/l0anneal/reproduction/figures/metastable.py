"""Below T_c, cooling stays on the metastable branch; heating follows the planted one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import FOUND, Data, Theory, found, mean_and_error
from l0anneal.reproduction.diagnoses import CURVES, by_rate, means_by_size, of_medians
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
from l0anneal.reproduction.figures.waiting import RUNS
from l0anneal.reproduction.rows import (
    JUDGED_HIGH,
    JUDGED_LOW,
    WHY_MARGIN,
    Row,
    against_theory,
    estimate_of,
    n_of,
    problem_name,
    samples_text,
)
from l0anneal.reproduction.rules import larger, rate_above, too_few
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

RATES = RUNS[0.65]  # the cooling runs, by τ


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return the cooling runs at three rates, and the runs heated from the planted signal."""
    return shared(quick, *RATES.values(), "heated")


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
    figure.axes[0].legend(frameon=False, fontsize=9, loc="lower right")
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
    rates = {tau: data[name] for tau, name in RATES.items()}
    source, heated = data["metastable"], data["heated"]
    transition = Theory(source.attrs).exact.transition()
    assert transition is not None
    at = transition.temperature
    rows = [
        Row(
            f"{label} on cooling, {problem_name(source)}",
            "follows the metastable branch",
            "RS line of the cooled branch",
            samples_text(source),
            against_theory(source, name, JUDGED_LOW, JUDGED_HIGH),
            note=f"{WHY_MARGIN} {by_rate(rates, name, JUDGED_LOW, JUDGED_HIGH)}",
        )
        for name, label in CURVES.items()
    ]
    rows += [_judge_branch(source, at), _judge_trapped(source)]
    rows += [
        Row(
            f"{label} on heating from the truth, T ≤ T_c",
            "–",
            "RS line of the planted branch",
            samples_text(heated),
            against_theory(heated, name, 1e-6, at, "planted"),
            new=True,
            note=f"{WHY_MARGIN} {means_by_size(heated, name, 1e-6, at, 'planted')} "
            f"{of_medians(heated, name, 1e-6, at, 'planted')} Where they fall faster than 1/N, the line "
            "in 1/N ends below theory.",
        )
        for name, label in CURVES.items()
    ]
    return [*rows, _judge_heated_beyond(heated, at)]


def _judge_branch(source: xr.Dataset, at: float) -> Row:
    """Judge whether the error below T_c is nearer to the cooled branch than to equilibrium."""
    t = source["temperature"].to_numpy()
    below = np.flatnonzero((t >= JUDGED_LOW) & (t < at))
    theory = Theory(source.attrs)
    cooled, planted = (theory.at("mse", t[below], name) for name in ("cooled", "planted"))
    last = source.isel(size=[-1])
    estimate = estimate_of(last, (last["mse"].isel(mu=below) - planted) / (cooled - planted))
    verdict = too_few("")
    if estimate is not None:
        places = [f"T = {x:.2g}" for x in t[below]]
        verdict = larger(estimate, 0.5, places=places)
    return Row(
        "which branch below T_c",
        "the metastable one, not equilibrium",
        f"T_c = {at:.3e}",
        f"N = {int(last['size'][0])}: place of the mean MSE between the planted branch (0) and the "
        "cooled one (1)",
        verdict,
        note="Claimed to be nearer to the cooled branch at every temperature below T_c.",
    )


def _judge_trapped(source: xr.Dataset) -> Row:
    good, n = found(source)
    return Row(
        f"planted solution not reached, {problem_name(source)}",
        "non-vanishing MSE",
        "trapped for N → ∞",
        f"N = {int(source['size'][-1])}: {n_of((good, n))} runs end with MSE < {FOUND:g}",
        rate_above((n - good, n), 0.9),
        note="Claimed rate: more than nine of ten runs at the largest N stay trapped.",
    )


def _judge_heated_beyond(heated: xr.Dataset, at: float) -> Row:
    """Judge how far above T_c heating follows the planted branch."""
    end = Theory(heated.attrs).exact.spinodals().planted
    assert end is not None
    return Row(
        "MSE(T) on heating, T_c < T < end of the planted branch",
        "–",
        f"the branch exists up to T = {end:.3e}, metastable above T_c",
        samples_text(heated),
        against_theory(heated, "mse", at, end * (1 - 1e-6), "planted"),
        new=True,
        note=WHY_MARGIN,
    )


FIGURE = ReportFigure(
    name="metastable",
    title="Trapped: α = 0.75, ρ = 0.65, ρ̂ = 0.5",
    caption=(
        "Below T_c the equilibrium (black) jumps to the planted state, but cooling stays on the "
        "metastable branch (red, dashed). Heating from the truth (open symbols) follows the "
        "distortion of the planted branch up to its end. The mean error lies above this branch "
        "already below T_c, and more so above T_c, where the branch is itself metastable: at these "
        "sizes a few runs leave it early."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
