"""The paper's figures: distortion, error, free energy and entropy against temperature."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Theory, entropy, mean_and_error
from l0anneal.reproduction.drawing import (
    T_LABEL,
    Data,
    finish,
    limits,
    lines,
    points,
    size_style,
    thin,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

EPS, MSE = "distortion ε = E/M", "mean squared error per column"
LOW, HIGH = 7.5e-5, 12.0


def draw(name: str, data: Data) -> Figure:
    """Draw one figure of the report from the sweeps that it needs."""
    from l0anneal.reproduction import figures_beyond

    makers: dict[str, Callable[[Data], Figure]] = {
        "easy": _easy,
        "hard": _hard,
        "metastable": _metastable,
        "entropy": _entropy,
        "slow": _slow,
        "freezing": _freezing,
        "noise-only": _noise_only,
        "phase-diagram": figures_beyond.phase_diagram,
        "time": figures_beyond.time,
        "rho": figures_beyond.rho,
        "noisy": figures_beyond.noisy,
        "seeded": figures_beyond.seeded,
    }
    if name not in makers:
        raise ValueError(f"there is no figure {name}; there are {', '.join(makers)}")
    return makers[name](data)


def _curve(ax: Axes, data: Data, sweep: str, name: str, title: str) -> None:
    """One log-log panel: theory as a line, the sweep's points on it."""
    theory = Theory(data[sweep].attrs)
    points(ax, data[sweep], name, low=LOW, high=HIGH)
    lines(ax, theory, name, LOW, HIGH)
    finish(ax, T_LABEL, EPS if name == "distortion" else MSE, title, logx=True, logy=True)
    limits(ax, theory.line("cooled", LOW, HIGH)[name])


def _easy(data: Data) -> Figure:
    figure = new_figure(13, 4.0)
    left, middle, right = figure.subplots(1, 3)
    _curve(left, data, "easy", "distortion", "distortion")
    theory = Theory(data["easy"].attrs)
    points(middle, data["easy"], "distortion", low=0.0, high=0.105, label="")
    lines(middle, theory, "distortion", LOW, 0.105)
    finish(middle, T_LABEL, EPS, "distortion, magnified, linear axes")
    middle.set_xlim(0, 0.1)
    middle.set_ylim(0, 0.0065)
    _curve(right, data, "easy", "mse", "error of the coefficients")
    left.legend(frameon=False, fontsize=8)
    return figure


def _hard(data: Data) -> Figure:
    figure = new_figure(9, 4.0)
    left, right = figure.subplots(1, 2)
    _curve(left, data, "hard", "distortion", "distortion")
    _curve(right, data, "hard", "mse", "error of the coefficients")
    left.legend(frameon=False, fontsize=8)
    return figure


def _metastable(data: Data) -> Figure:
    figure = new_figure(10, 4.8)
    theory = Theory(data["metastable"].attrs)
    low = 2e-5
    for ax, name, label in zip(figure.subplots(1, 2), ("distortion", "mse"), (EPS, MSE)):
        points(ax, data["metastable"], name, low=LOW, high=HIGH, label="cooled, N = {size} ({n})")
        heated = data["heated"]
        end = theory.exact.spinodals().planted or 1.0
        largest = heated.isel(size=[-1])
        shown = thin(largest, low, 1.6 * end, n=22)
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
        lines(ax, theory, name, low, HIGH)
        finish(ax, T_LABEL, label, logx=True, logy=True)
        limits(ax, theory.line("planted", low, end)[name], theory.line("cooled", low, HIGH)[name])
    figure.axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _entropy(data: Data) -> Figure:
    figure = new_figure(10, 7.4)
    theory = Theory(data["metastable"].attrs)
    transition, frozen = theory.exact.transition(), theory.exact.freezing("cooled")
    assert transition is not None
    assert frozen is not None
    measured = {
        "cooled": (entropy(data["metastable"], planted=False), data["metastable"]),
        "planted": (entropy(data["heated"], planted=True), data["heated"]),
    }
    colors = {"cooled": COLORS["red"], "planted": COLORS["blue"]}
    marks = {"cooled": "o", "planted": "v"}
    numbers = {"cooled": "2", "planted": "1"}
    axes = figure.subplots(2, 2)
    for row, (name, label) in enumerate(
        (("free_entropy", "free energy g = log G / N (nats)"), ("entropy", "entropy s (nats)"))
    ):
        for column, ax in enumerate(axes[row]):
            low, high = ((1e-6, 1.3e-3), (3e-8, 3.0))[column]
            for branch, (values, source) in measured.items():
                line = theory.line(branch, low, high, 80)
                text = f"branch {numbers[branch]} ({branch}), theory"
                ax.plot(line["temperature"], line[name], color=colors[branch], lw=1.5, label=text)
                end = theory.exact.spinodals().planted
                stop = end if branch == "planted" and end is not None else high
                shown = thin(values.assign_coords(temperature=source["temperature"]), low, stop, 24)
                largest = shown[name].isel(size=-1)
                mean, error = mean_and_error(largest)
                n = int(source["n_samples"][-1])
                ax.errorbar(
                    shown["temperature"],
                    mean,
                    error,
                    ls="none",
                    marker=marks[branch],
                    ms=4,
                    lw=0.9,
                    color=colors[branch],
                    mfc="white",
                    label=f"measured, N = {int(source['size'][-1])} ({n} samples)",
                )
            ax.axvline(transition.temperature, color="0.6", ls=":", lw=1.0)
            if column:
                ax.axvline(frozen.temperature, color=COLORS["orange"], ls="--", lw=1.0)
            ax.axhline(0.0, color="0.8", lw=0.8)
            finish(ax, T_LABEL, label, logx=bool(column))
            if not column:
                ax.set_xlim(0, high)
                # the branches differ by little near T_c: look there
                lo, hi = (0.30, 0.43) if name == "free_entropy" else (0.28, 0.48)
                ax.set_ylim(lo, hi)
                ax.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    axes[0, 0].plot([], [], color="0.6", ls=":", label=f"T_c = {transition.temperature:.3g}")
    axes[0, 0].plot(
        [], [], color=COLORS["orange"], ls="--", label=f"s = 0 at T = {frozen.temperature:.3g}"
    )
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def _slow(data: Data) -> Figure:
    figure = new_figure(10, 7.4)
    axes = figure.subplots(2, 2, sharey="col")
    for row, (sweep, tau) in enumerate((("rapid", 5), ("slow", 100))):
        for ax, name in zip(axes[row], ("distortion", "mse")):
            what = "distortion" if name == "distortion" else "error of the coefficients"
            _curve(ax, data, sweep, name, f"{what}, τ = {tau}")
        axes[row, 0].legend(frameon=False, fontsize=8)
    return figure


def _freezing(data: Data) -> Figure:
    figure = new_figure(6.4, 4.6)
    ax = figure.subplots()
    source = data["freezing"]
    theory = Theory(source.attrs)
    frozen = theory.exact.freezing("cooled")
    assert frozen is not None
    line = theory.line("cooled", frozen.temperature, HIGH, 70)
    ax.plot(line["temperature"], line["distortion"], color=COLORS["red"], lw=1.5, ls="--")
    ax.plot([], [], color=COLORS["red"], lw=1.5, ls="--", label="theory, cooled branch")
    ax.hlines(frozen.distortion, 1e-9, frozen.temperature, color=COLORS["black"], lw=1.5)
    ax.plot([], [], color=COLORS["black"], label=f"theory, frozen: ε = {frozen.distortion:.2g}")
    ax.axhline(8.6e-9, color=COLORS["orange"], ls=":", lw=1.4, label="paper: ε = 8.6e-9")
    runs = [(source, int(size), "τ = 5") for size in source["size"].to_numpy()]
    slow = data["freezing-slow"]
    runs += [(slow, int(size), "slower") for size in slow["size"].to_numpy()]
    for rank, (run, size, rate) in enumerate(runs):
        shown = thin(run, 8e-10, HIGH, 40)
        trapped = shown["final_mse"].sel(size=size) > 1e-3
        values = shown["distortion"].sel(size=size).where(trapped)
        n = int(trapped.sum())
        if n == 0:
            continue
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
    finish(ax, T_LABEL, EPS, logx=True, logy=True)
    ax.set_ylim(1e-10, 30.0)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _noise_only(data: Data) -> Figure:
    from l0anneal.theory import l1, rsb

    source = data["noise"]
    theory = Theory(source.attrs)
    frozen = theory.exact.freezing("cooled")
    unstable = theory.exact.at_instability("cooled")
    assert frozen is not None
    assert unstable is not None
    ground = rsb.ground_state(theory.exact).distortion
    final, _ = mean_and_error(source["final_distortion"].isel(size=-1))
    omp, _ = mean_and_error(data["omp"]["distortion"].isel(size=-1))
    size = int(source["size"][-1])
    figure = new_figure(11, 5.2)
    axes = figure.subplots(1, 2)
    for ax, high in zip(axes, (2.1, 0.105)):
        levels = [
            (l1.distortion(0.5, 0.2), "l1, theory", "orange", "-."),
            (l1.distortion_after_least_squares(0.5, 0.2), "l1 + LS, theory", "purple", "--"),
            (float(omp), f"OMP, measured, N = {size}", "green", (0, (4, 1, 1, 1))),
            (float(final), f"annealing's end, N = {size}", "blue", (0, (1, 1))),
            (ground, "ground state, 1RSB", "red", "-"),
        ]
        for value, label, color, style in levels:
            if value < 0.25 and (high > 1 or value < 0.06):
                text = f"{label}: {value:.4f}"
                ax.axhline(value, color=COLORS[color], ls=style, lw=1.3, label=text)
        points(ax, source, "distortion", low=7e-5, high=high, label="N = {size} ({n})")
        line = theory.line("cooled", frozen.temperature, high, 60)
        ax.plot(line["temperature"], line["distortion"], color=COLORS["black"], lw=1.5)
        ax.hlines(frozen.distortion, 0, frozen.temperature, color=COLORS["black"], lw=1.5)
        ax.plot([], [], color=COLORS["black"], label=f"theory, RS; limit {frozen.distortion:.4f}")
        if high < 1:
            ax.axvline(frozen.temperature, color="0.6", ls=":", lw=1.0)
        finish(ax, T_LABEL, EPS, "magnified" if high < 1 else "")
        ax.set_xlim(0, high)
        ax.set_ylim(0, 0.3 if high > 1 else 0.06)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8.5, loc="outside lower center", ncols=4)
    return figure
