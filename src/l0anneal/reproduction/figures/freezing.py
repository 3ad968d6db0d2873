"""Cooling of the trapped state far below the paper's schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import FOUND, Data, Theory
from l0anneal.reproduction.drawing import (
    DISTORTION_LABEL,
    SHOWN_HIGH,
    T_LABEL,
    finish,
    size_style,
    thin,
)
from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import MIN_SAMPLES, Row, shared_samples
from l0anneal.reproduction.rules import larger, same_number, too_few, within
from l0anneal.reproduction.sweeps import Sweep, annealed, planted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

PAPER_T, PAPER_EPSILON = 1.3e-7, 8.6e-9


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return runs that cool to T = 1e-9, rapid and slow."""
    colder = {"kind": "paper", "tau": 5, "n": 220}
    slower = {**colder, "tau": 20 if quick else 100}
    ensemble = planted(0.75, 0.5)
    rapid_sizes = {50: 10} if quick else {100: 100, 200: 100}
    slow_sizes = {50: 8} if quick else {100: 100}
    return {
        "freezing": Sweep(ensemble, annealed(0.65, colder), rapid_sizes),
        "freezing-slow": Sweep(ensemble, annealed(0.65, slower), slow_sizes),
    }


def _runs(data: Data) -> Iterator[tuple[xr.Dataset, xr.DataArray, int, str]]:
    """Yield the runs of each size, which of them are trapped, the size and the rate of cooling."""
    for sweep, rate in (
        ("freezing", "τ = 5"),
        ("freezing-slow", f"τ = {data['freezing-slow'].attrs['tau']:g}"),
    ):
        for size in data[sweep]["size"].to_numpy():
            run = data[sweep].sel(size=size)
            yield run, run["final_mse"] > FOUND, int(size), rate


def draw(data: Data) -> Figure:
    """Draw the distortion of the trapped runs over temperature."""
    figure = new_figure(6.4, 4.6)
    ax = figure.subplots()
    _draw_theory(ax, Theory(data["freezing"].attrs))
    for rank, (run, trapped, size, rate) in enumerate(_runs(data)):
        n = int(trapped.sum())
        if n == 0:
            continue
        shown = thin(run, 8e-10, SHOWN_HIGH, 40)
        values = shown["distortion"].where(trapped)
        low, mid, high = (values.quantile(q, "sample", skipna=True) for q in (0.25, 0.5, 0.75))
        ax.errorbar(
            shown["temperature"],
            mid,
            [np.maximum(mid - low, 0), np.maximum(high - mid, 0)],
            ls="none",
            ms=3.5,
            lw=0.8,
            label=f"N = {size}, {rate}: median, quartiles of {n} trapped runs",
            **size_style(rank),
        )
    finish(ax, T_LABEL, DISTORTION_LABEL, logx=True, logy=True)
    ax.set_ylim(1e-10, 30.0)
    ax.legend(fontsize=9, loc="upper left", framealpha=1.0, edgecolor="none")
    return figure


def _draw_theory(ax: Axes, theory: Theory) -> None:
    frozen = theory.exact.freezing("cooled")
    assert frozen is not None
    line = theory.line("cooled", frozen.temperature, SHOWN_HIGH, 70)
    ax.plot(line["temperature"], line["distortion"], color=COLORS["red"], lw=1.5, ls="--")
    ax.plot([], [], color=COLORS["red"], lw=1.5, ls="--", label="theory, cooled branch")
    ax.hlines(frozen.distortion, 1e-9, frozen.temperature, color=COLORS["black"], lw=1.5)
    ax.plot([], [], color=COLORS["black"], label=f"theory, frozen: ε = {frozen.distortion:.2g}")
    ax.axvline(PAPER_T, color=COLORS["orange"], ls=":", lw=1.4)
    ax.axhline(
        PAPER_EPSILON, color=COLORS["orange"], ls=":", lw=1.4, label="paper: T = 1.3e-7, ε = 8.6e-9"
    )


def judge(data: Data) -> list[Row]:
    """Judge where the metastable branch freezes, T and ε, and where the runs stop."""
    from l0anneal.theory import condensation, rsb

    theory = Theory(data["freezing"].attrs).exact
    point = condensation.condensation_point(theory)
    assert point is not None
    frozen = theory.freezing("cooled")
    assert frozen is not None
    at_theirs = theory.at(PAPER_T, "cooled")
    ground = rsb.ground_state(theory)
    return [
        Row(
            "freezing of the metastable branch, T",
            "1.3e-7",
            f"{frozen.temperature:.4e} (s = 0); at 1.3e-7 our s is {at_theirs.entropy:+.4f}",
            "–",
            same_number(frozen.temperature, PAPER_T, 1e-8),
            note="Margin: one unit of the last printed digit.",
        ),
        Row(
            "ε where the branch freezes",
            "8.6e-9",
            f"{frozen.distortion:.4e} (RS, s = 0), {ground.distortion:.4e} (1RSB)",
            "–",
            same_number(frozen.distortion, PAPER_EPSILON, 1e-10),
            note="Margin: one unit of the last printed digit.",
        ),
        Row(
            "the paper's pair (T, ε) on our curve",
            "ε = 8.6e-9 at T = 1.3e-7",
            f"ε(1.3e-7) = {at_theirs.distortion:.4e}",
            "–",
            same_number(at_theirs.distortion, PAPER_EPSILON, 1e-10),
            note="Margin: one unit of the last printed digit. The curve ε(T) is the paper's; the "
            "temperature at which it is said to end is not where our entropy vanishes.",
        ),
        Row(
            "T_K, where the clusters of the branch condense",
            "1.3e-7 (for s = 0)",
            f"{point.temperature:.4e}: the complexity at m = 1 vanishes, s = "
            f"{point.state.entropy:.4f}, ε = {point.state.distortion:.3e}",
            "–",
            new=True,
            note="Reported, not judged: the paper's T would fit T_K better than the temperature of "
            "s = 0, but its ε is not that at T_K.",
        ),
        _judge_end(data),
        _judge_slower(data),
    ]


def _judge_end(data: Data) -> Row:
    """Compare the distortion at which the trapped runs stop with the claimed limit."""
    parts = []
    for run, trapped, size, rate in _runs(data):
        if int(trapped.sum()):
            level = float(run["distortion"].isel(mu=-1).where(trapped).median())
            parts.append(
                f"N = {size}, {rate}: {level:.1e} (median of {int(trapped.sum())} trapped of "
                f"{int(run['n_samples'])})"
            )
    slow = data["freezing-slow"].isel(size=-1)
    ends = slow["final_distortion"].where(slow["final_mse"] > FOUND).dropna("sample").to_numpy()
    verdict = too_few(f"{ends.size} trapped runs")
    if ends.size >= MIN_SAMPLES:
        logs = Estimate([np.log10(np.maximum(ends, 1e-30))], [1])
        verdict = within(logs, np.log10(PAPER_EPSILON), np.log10(2.0), " decades")
    return Row(
        "ε that trapped runs reach",
        "8.6e-9 is the limit achievable in practical times",
        "–",
        "end of the runs, " + "; ".join(parts),
        verdict,
        note="Margin: a factor of two, of the geometric mean of the slower runs.",
    )


def _judge_slower(data: Data) -> Row:
    """Judge whether slower cooling ends lower, on instances that trap both."""
    both = [data[name] for name in ("freezing", "freezing-slow")]
    size = int(np.intersect1d(both[0]["size"], both[1]["size"]).max())
    trapped = [d["final_distortion"].where(d["final_mse"] > FOUND).sel(size=size) for d in both]
    rapid, slow = shared_samples(*trapped)
    verdict = too_few(f"{rapid.size} instances trap both")
    if rapid.size >= MIN_SAMPLES:
        verdict = larger(Estimate([np.log10(rapid / slow)], [1]), unit=" decades")
    return Row(
        f"slower cooling stops lower, N = {size}",
        "–",
        "–",
        f"log10 of the ratio of final ε, {rapid.size} instances in which both runs are trapped",
        verdict,
        new=True,
    )


FIGURE = ReportFigure(
    name="freezing",
    title="Cooling the trapped state further: α = 0.75, ρ = 0.65, ρ̂ = 0.5",
    caption=(
        "The same annealing, continued to T = 1e-9; points are medians of the runs that stay "
        "trapped. Their distortion leaves the theory's line well above the temperature at which its "
        "entropy vanishes. The table compares rapid and slower runs on the same instances."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
