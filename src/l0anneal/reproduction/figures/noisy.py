"""With noise, the error of the coefficients is least at a temperature above zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, Theory, mean_and_error
from l0anneal.reproduction.drawing import MSE_LABEL, T_LABEL, finish, points
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import (
    WHY_MARGIN,
    Row,
    against_theory,
    estimate_of,
    samples_text,
)
from l0anneal.reproduction.rules import larger, too_few
from l0anneal.reproduction.sweeps import Sweep, annealed, planted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

NOISE_VARIANCES = {"weak": 0.02, "strong": 0.1}
LOW, HIGH = 2e-3, 5.0  # temperatures that are drawn and judged


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return many small runs and one large run, at two noise variances."""
    samples, one = ({100: 10}, {200: 1}) if quick else ({100: 100, 200: 100, 400: 100}, {800: 1})
    slower = {"kind": "paper", "tau": 5 if quick else 20, "n": 90}
    found = {}
    for name, sigma_xi2 in NOISE_VARIANCES.items():
        ensemble = planted(0.6, 0.2, sigma_xi2=sigma_xi2)
        found[f"noisy-{name}"] = Sweep(ensemble, annealed(0.3), samples)
        found[f"noisy-{name}-one"] = Sweep(ensemble, annealed(0.3, slower), one)
    return found


def _theory_line(theory: Theory) -> xr.Dataset:
    return theory.line("cooled", LOW, HIGH, 60)


def _least(line: xr.Dataset) -> xr.Dataset:
    """Return the state of least error."""
    return line.isel(temperature=int(np.argmin(line["mse"].to_numpy())))


def _single_run(one: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return temperatures and errors of the one large run."""
    t = one["temperature"].to_numpy()
    inside = (t >= LOW) & (t <= HIGH)
    return t[inside], one["mse"].isel(size=0, sample=0).to_numpy()[inside]


def draw(data: Data) -> Figure:
    """Draw the error over temperature, one panel for each noise variance."""
    figure = new_figure(10, 5.0)
    for ax, name in zip(figure.subplots(1, 2), NOISE_VARIANCES):
        _draw_panel(ax, data[f"noisy-{name}"], data[f"noisy-{name}-one"])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=4)
    return figure


def _draw_panel(ax: Axes, source: xr.Dataset, one: xr.Dataset) -> None:
    line = _theory_line(Theory(source.attrs))
    ax.plot(line["temperature"], line["mse"], color=COLORS["black"], lw=1.5)
    ax.plot([], [], color=COLORS["black"], lw=1.5, label="theory, N → ∞")
    best = float(_least(line)["temperature"])
    ax.axvline(best, color="0.6", ls=":", lw=1.1)
    ax.plot([], [], color="0.6", ls=":", label="least in theory")
    points(ax, source, "mse", low=LOW, high=HIGH)
    label = f"one run, N = {int(one['size'][0])}"
    unstable = Theory(source.attrs).exact.at_instability("cooled")
    if unstable is not None:
        ax.axvline(unstable.temperature, color=COLORS["red"], ls=(0, (1, 3)), lw=1.3)
        ax.plot([], [], color=COLORS["red"], ls=(0, (1, 3)), label="RS unstable below (AT)")
    ax.plot(*_single_run(one), color=COLORS["sky"], lw=1.0, label=label)
    title = f"noise variance {source.attrs['sigma_xi2']:g}"
    finish(ax, T_LABEL, MSE_LABEL, title, logx=True)
    ax.set_ylim(0, 1.15 * float(line["mse"].max()))


def judge(data: Data) -> list[Row]:
    """Judge whether the error is less at the theory's best temperature than at a cold one."""
    rows = []
    for name in NOISE_VARIANCES:
        source = data[f"noisy-{name}"]
        rows += [_judge_minimum(source, data[f"noisy-{name}-one"]), _judge_curve(source)]
    return rows


def _judge_minimum(source: xr.Dataset, one: xr.Dataset) -> Row:
    line = _theory_line(Theory(source.attrs))
    best = _least(line)
    t = source["temperature"].to_numpy()
    # the temperature is the theory's: the least of the measured means would be least by chance
    warm, cold = (
        int(np.argmin(np.abs(np.log(t[1:] / x)))) + 1 for x in (float(best["temperature"]), LOW)
    )
    last = source.isel(size=[-1])
    gain = estimate_of(last, (last["mse"].isel(mu=cold) - last["mse"].isel(mu=warm)))
    mean, _ = mean_and_error(last["mse"].isel(size=0))
    inside = np.flatnonzero((t >= LOW) & (t <= HIGH))
    least = inside[int(np.argmin(mean.to_numpy()[inside]))]
    single_t, single = _single_run(one)
    return Row(
        f"MSE least at T > 0, noise variance {source.attrs['sigma_xi2']:g}",
        "finite temperatures “may be more suitable”; no figure",
        f"least {float(best['mse']):.4f} at T = {float(best['temperature']):.3g}; "
        f"{float(line['mse'][0]):.4f} at T = {LOW:g}",
        f"N = {int(last['size'][0])}: MSE at T = {t[cold]:.2g} minus MSE at {t[warm]:.2g}, paired. "
        f"Least mean at T = {t[least]:.2g}; one run at N = {int(one['size'][0])}: least at "
        f"T = {single_t[np.argmin(single)]:.2g}",
        too_few(samples_text(last)) if gain is None else larger(gain),
        note="The warm temperature is the theory's best one, the cold one the fixed lower end of the "
        "figure. RS is unstable there, so that its value is no prediction.",
    )


def _judge_curve(source: xr.Dataset) -> Row:
    unstable = Theory(source.attrs).exact.at_instability("cooled")
    low = LOW if unstable is None else unstable.temperature
    return Row(
        f"MSE(T), noise variance {source.attrs['sigma_xi2']:g}, {low:.2g} ≤ T ≤ {HIGH:g}",
        "–",
        "RS line" + ("" if unstable is None else ", stable down to the lower end"),
        samples_text(source),
        against_theory(source, "mse", low, HIGH),
        new=True,
        note=WHY_MARGIN,
    )


FIGURE = ReportFigure(
    name="noisy",
    title="Finite temperature is better when there is noise: α = 0.6, ρ = 0.3, ρ̂ = 0.2",
    caption=(
        "In theory the error of the coefficients is least at a temperature above zero, because "
        "colder supports fit the noise. The means show it at both noise variances. A single run (thin "
        "line) shows at 0.1 that it loses by cooling far, but not where the minimum is, and at 0.02 "
        "it shows neither."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
