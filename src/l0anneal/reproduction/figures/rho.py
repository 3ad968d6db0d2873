"""How distortion and error depend on ρ, the fraction of columns that is selected."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, Theory, mean_and_error
from l0anneal.reproduction.drawing import DISTORTION_LABEL, MSE_LABEL, finish
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rules import Row, pm
from l0anneal.reproduction.sweeps import Sweep, annealed, noise_only, planted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

Floats = NDArray[np.float64]

COOL = 0.2  # the temperature at which runs on pure noise are compared with theory
RHO_LABEL = "selected fraction ρ = k/N"


class Group(NamedTuple):
    """Sweeps that differ in ρ alone."""

    alpha: float
    rho_hat: float
    rhos: tuple[float, ...]


GROUPS = {
    "rho-noise-a": Group(0.5, 0.0, (0.05, 0.1, 0.2, 0.3, 0.4)),
    "rho-noise-b": Group(0.8, 0.0, (0.1, 0.2, 0.4, 0.6, 0.7)),
    "rho-planted-a": Group(0.75, 0.5, (0.5, 0.525, 0.55, 0.575, 0.6, 0.62, 0.65, 0.7)),
    "rho-planted-b": Group(0.8, 0.5, (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)),
}


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing at many ρ, without and with a planted signal."""
    samples = {50: 4} if quick else {200: 10}
    found = {}
    for name, (alpha, rho_hat, rhos) in GROUPS.items():
        ensemble = planted(alpha, rho_hat) if rho_hat else noise_only(alpha)
        for rho in rhos[::2] if quick else rhos:
            found[f"{name}-{rho:g}"] = Sweep(ensemble, annealed(rho), samples, group=name)
    return found


# ---------------------------------------------------------------- values over ρ


def _rhos(data: Data, group: str) -> list[float]:
    """Return the ρ at which a group was run."""
    return [rho for rho in GROUPS[group].rhos if f"{group}-{rho:g}" in data]


def _over_rho(data: Data, group: str, name: str, at: float | None) -> tuple[Floats, Floats, Floats]:
    """Return ρ with means and errors of a curve at the temperature nearest to ``at``.

    With None, take the number at the end of the runs.
    """
    rhos, means, errors = [], [], []
    for rho in _rhos(data, group):
        chosen = data[f"{group}-{rho:g}"].isel(size=-1)
        if at is None:
            values = chosen[f"final_{name}"]
        else:
            values = chosen[name].isel(mu=int(np.argmin(np.abs(chosen["mu"].to_numpy() - 1 / at))))
        mean, error = mean_and_error(values)
        rhos.append(rho)
        means.append(float(mean))
        errors.append(float(error))
    return np.array(rhos), np.array(means), np.array(errors)


def _nearest_temperature(data: Data, group: str, at: float) -> float:
    """Return the schedule's temperature nearest to ``at`` in μ."""
    mu = data[f"{group}-{_rhos(data, group)[0]:g}"]["mu"].to_numpy()
    return float(1 / mu[np.argmin(np.abs(mu - 1 / at))])


def _theory_over_rho(group: str, name: str, temperature: float | None, rhos: list[float]) -> Floats:
    """Return the cooled branch over ρ at a temperature, or where the entropy vanishes (None).

    If the cooled branch ends above the temperature, the run falls into the planted branch.
    """
    alpha, rho_hat, _ = GROUPS[group]
    values = []
    for rho in rhos:
        exact = Theory(
            {
                "alpha": alpha,
                "rho": rho,
                "rho_hat": rho_hat,
                "sigma_x2": float(rho_hat > 0),
                "sigma_xi2": float(rho_hat == 0),
            }
        ).exact
        if temperature is None:
            state = exact.freezing("cooled")
        else:
            end = exact.spinodals().cooling
            ended = end is not None and temperature <= end
            state = exact.at(temperature, "planted" if ended else "cooled")
        values.append(np.nan if state is None else getattr(state, name))
    return np.array(values)


# ---------------------------------------------------------------- drawing


def draw(data: Data) -> Figure:
    """Draw distortion and error over ρ, without and with a planted signal."""
    figure = new_figure(13, 4.4)
    left, middle, right = figure.subplots(1, 3)
    for group, color, marker in (("rho-noise-a", "blue", "o"), ("rho-noise-b", "orange", "s")):
        _draw_noise(left, data, group, COLORS[color], marker)
    finish(left, RHO_LABEL, DISTORTION_LABEL, "pure noise", logy=True)
    _draw_planted(middle, data, "distortion", DISTORTION_LABEL)
    _draw_planted(right, data, "mse", MSE_LABEL)
    left.set_ylim(bottom=2e-9)
    left.legend(frameon=False, fontsize=7.5, ncols=2, loc="lower left")
    middle.legend(frameon=False, fontsize=7.5)
    return figure


def _draw_noise(ax: Axes, data: Data, group: str, color: str, marker: str) -> None:
    """Draw the distortion of pure noise at a temperature and at the end of the runs."""
    from scipy.interpolate import PchipInterpolator

    rhos = _rhos(data, group)
    t = _nearest_temperature(data, group, COOL)
    fine = np.linspace(rhos[0], rhos[-1], 60)
    for at, dash, label in ((t, "-", f"theory, T = {t:.2g}"), (None, "--", "theory, s = 0")):
        values = np.log(_theory_over_rho(group, "distortion", at, rhos))
        smooth = np.exp(PchipInterpolator(rhos, values)(fine))
        ax.plot(fine, smooth, ls=dash, lw=1.3, label=label, color=color)
    for at, face, label in (
        (t, color, f"α = {GROUPS[group].alpha:g}"),
        (None, "white", "at the end"),
    ):
        x, mean, error = _over_rho(data, group, "distortion", at)
        ax.errorbar(
            x, mean, error, ls="none", marker=marker, ms=4.5, mfc=face, label=label, color=color
        )


def _draw_planted(ax: Axes, data: Data, name: str, label: str) -> None:
    """Draw a quantity at T = 1e-3 for the planted signals."""
    for group, color, marker in (("rho-planted-a", "blue", "o"), ("rho-planted-b", "orange", "s")):
        alpha, rhos = GROUPS[group].alpha, _rhos(data, group)
        temperature = _nearest_temperature(data, group, 1e-3)
        values = _theory_over_rho(group, name, temperature, rhos)
        ax.plot(rhos, values, lw=1.4, color=COLORS[color], label=f"theory, α = {alpha:g}")
        x, mean, error = _over_rho(data, group, name, 1e-3)
        n = int(data[f"{group}-{rhos[0]:g}"]["n_samples"][-1])
        size = int(data[f"{group}-{rhos[0]:g}"]["size"][-1])
        text = f"N = {size} ({n} samples each)"
        ax.errorbar(
            x, mean, error, ls="none", marker=marker, ms=4.5, color=COLORS[color], label=text
        )
    title = f"planted, ρ̂ = 0.5, at T = {temperature:.2g}"
    finish(ax, RHO_LABEL, label, title, logy=True)


# ---------------------------------------------------------------- judgement


def judge(data: Data) -> list[Row]:
    """Judge that more columns mean less distortion, and that a larger ρ leads into the trap."""
    return [
        *(_judge_noise(data, group) for group in ("rho-noise-a", "rho-noise-b")),
        *(_judge_planted(data, group) for group in ("rho-planted-a", "rho-planted-b")),
    ]


def _judge_noise(data: Data, group: str) -> Row:
    t = _nearest_temperature(data, group, COOL)
    x, mean, error = _over_rho(data, group, "distortion", COOL)
    z = (mean - _theory_over_rho(group, "distortion", t, list(x))) / error
    end = _over_rho(data, group, "distortion", None)[1]
    falls = bool(np.all(np.diff(end) < 0))
    return Row(
        f"ε over ρ, noise only, α = {GROUPS[group].alpha:g}",
        "larger ρ, less distortion",
        "falls with ρ at every T",
        f"final ε falls from {end[0]:.2g} (ρ = {x[0]:g}) to {end[-1]:.2g} (ρ = {x[-1]:g}); "
        f"at T = {t:.2g} within {np.max(np.abs(z)):.1f} error bars of RS",
        "agrees" if falls else "not monotone with these samples",
        "agrees" if falls else "partly",
    )


def _judge_planted(data: Data, group: str) -> Row:
    x, mse, error = _over_rho(data, group, "mse", None)
    rhos = ", ".join(f"{r:g}: {pm(m, e)}" for r, m, e in zip(x, mse, error))
    least = float(x[int(np.argmin(mse))])
    larger = bool(mse[-1] > 3 * mse.min())
    return Row(
        f"final MSE over ρ, planted, α = {GROUPS[group].alpha:g}",
        "smaller ρ ≥ ρ̂ suppresses the metastable state",
        _where_metastable(data, group),
        f"by ρ: {rhos}",
        f"{'agrees' if larger else 'not seen'}: least error at ρ = {least:g}"
        + (", not at the smallest" if least > x[0] else ""),
        "agrees" if larger else "partly",
    )


def _where_metastable(data: Data, group: str) -> str:
    """Say at which ρ of the runs the theory has a metastable state."""
    by_rho = {
        rho: Theory(data[f"{group}-{rho:g}"].attrs).exact.spinodals().planted is not None
        for rho in _rhos(data, group)
    }
    free = ", ".join(f"{rho:g}" for rho, trapped in by_rho.items() if not trapped)
    trapped = ", ".join(f"{rho:g}" for rho, trapped in by_rho.items() if trapped)
    return f"metastable state at ρ = {trapped or '–'}; none at {free or '–'}"


FIGURE = ReportFigure(
    name="rho",
    title="What ρ does",
    caption=(
        "On pure noise (left), more columns always mean less distortion, at a fixed temperature "
        "(filled) and at the end of the run (open). With a planted signal (middle, right) the "
        "theory's cooled branch jumps where the metastable state appears. Beyond this ρ the "
        "distortion goes on falling, but the error of the coefficients stays large."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
