"""With noise, the error of the coefficients is least at a temperature above zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, Theory, mean_and_error
from l0anneal.reproduction.drawing import MSE_LABEL, T_LABEL, finish, points
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rules import SIGMAS, Row, compare, describe, pm
from l0anneal.reproduction.sweeps import Sweep, annealed, planted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

NOISE_VARIANCES = {"weak": 0.02, "strong": 0.1}
LOW, HIGH = 2e-3, 5.0  # temperatures that are drawn and judged


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return many small runs and one large run, at two noise variances."""
    samples, one = ({100: 10}, {200: 1}) if quick else ({200: 100}, {800: 1})
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
    figure = new_figure(10, 4.4)
    for ax, name in zip(figure.subplots(1, 2), NOISE_VARIANCES):
        _draw_panel(ax, data[f"noisy-{name}"], data[f"noisy-{name}-one"])
    return figure


def _draw_panel(ax: Axes, source: xr.Dataset, one: xr.Dataset) -> None:
    line = _theory_line(Theory(source.attrs))
    ax.plot(line["temperature"], line["mse"], color=COLORS["black"], lw=1.5)
    ax.plot([], [], color=COLORS["black"], lw=1.5, label="theory, N → ∞")
    best = float(_least(line)["temperature"])
    ax.axvline(best, color="0.6", ls=":", lw=1.1)
    ax.plot([], [], color="0.6", ls=":", label=f"least at T = {best:.2g}")
    points(ax, source, "mse", low=LOW, high=HIGH)
    label = f"one run, N = {int(one['size'][0])}"
    ax.plot(*_single_run(one), color=COLORS["sky"], lw=1.0, label=label)
    title = f"noise variance {source.attrs['sigma_xi2']:g}"
    finish(ax, T_LABEL, MSE_LABEL, title, logx=True)
    ax.set_ylim(0, 1.25 * float(line["mse"].max()))
    ax.legend(frameon=False, fontsize=8)


def judge(data: Data) -> list[Row]:
    """Judge the temperature of least error, in theory and in the runs."""
    return [
        _judge_minimum(data[f"noisy-{name}"], data[f"noisy-{name}-one"]) for name in NOISE_VARIANCES
    ]


def _judge_minimum(source: xr.Dataset, one: xr.Dataset) -> Row:
    theory = Theory(source.attrs)
    line = _theory_line(theory)
    best = _least(line)
    unstable = theory.exact.at_instability("cooled")
    doubt = "" if unstable is None else f"; RS unstable below T = {unstable.temperature:.2g}"
    shown = source.sel(mu=(source["temperature"] >= LOW) & (source["temperature"] <= HIGH))
    mean, _ = mean_and_error(shown["mse"].isel(size=-1))
    least = int(np.argmin(mean.to_numpy()))
    # both temperatures have the same samples, so the error bar is that of the difference
    gain, error = mean_and_error(
        (shown["mse"].isel(mu=-1) - shown["mse"].isel(mu=least)).isel(size=-1)
    )
    both = compare(source, "mse", LOW, HIGH)
    t, single = _single_run(one)
    at = t[np.argmin(single)]
    clear = float(gain) > SIGMAS * float(error)
    return Row(
        f"MSE least at T > 0, noise variance {source.attrs['sigma_xi2']:g}",
        "claimed, no figure",
        f"least {float(best['mse']):.4f} at T = {float(best['temperature']):.3g}; "
        f"{float(line['mse'][0]):.4f} at T = 0.002{doubt}",
        f"least {float(mean[least]):.4f} at T = {float(shown['temperature'][least]):.3g}, "
        f"by {pm(float(gain), float(error))} below T = 0.002; one run at N = "
        f"{int(one['size'][0])}: at T = {at:.2g}. " + describe(source, *both),
        "agrees: colder is worse" if clear else "not clear with these samples",
        "agrees" if clear else "partly",
    )


FIGURE = ReportFigure(
    name="noisy",
    title="Finite temperature is better when there is noise: α = 0.6, ρ = 0.3, ρ̂ = 0.2",
    caption=(
        "The error of the coefficients is least at a temperature above zero, in theory and in the "
        "runs, because colder supports fit the noise. The thin line is a single annealing run: its "
        "supports at the best temperature can be used as they are."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
