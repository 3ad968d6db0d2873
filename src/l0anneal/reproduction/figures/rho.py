"""How distortion and error depend on ρ, the fraction of columns that is selected."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import FOUND, Data, Theory, found, mean_and_error, only_solvable
from l0anneal.reproduction.drawing import DISTORTION_LABEL, MSE_LABEL, finish
from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import MIN_SAMPLES, Row, n_of, pm, shared_samples
from l0anneal.reproduction.rules import larger, more_often_paired, too_few
from l0anneal.reproduction.sweeps import Sweep, annealed, noise_only, planted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from l0anneal.theory import State

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
    "rho-noise-c": Group(0.3, 0.0, (0.03, 0.06, 0.12, 0.18, 0.24)),
    "rho-planted-a": Group(0.75, 0.5, (0.5, 0.525, 0.55, 0.575, 0.6, 0.62, 0.65, 0.7)),
    "rho-planted-b": Group(0.8, 0.5, (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)),
}
NOISE = tuple(name for name, group in GROUPS.items() if not group.rho_hat)
PLANTED = tuple(name for name, group in GROUPS.items() if group.rho_hat)
SUPPRESSED = {"rho-planted-a": (0.55, 0.65), "rho-planted-b": (0.6, 0.7)}  # ρ to compare
OTHERS = {"omp": "OMP", "l1": "l1 + LS"}
#: Slow runs at the largest ρ of a group, where rapid ones end above OMP: the sweep, and its τ.
SLOW = {"rho-noise-c": ("rho-noise-c-0.24-slow", 100)}


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing at many ρ, and on pure noise OMP and l1 on the same instances."""
    samples = {50: 6} if quick else {200: 100}
    found = {}
    for name, (alpha, rho_hat, rhos) in GROUPS.items():
        ensemble = planted(alpha, rho_hat) if rho_hat else noise_only(alpha)
        for rho in rhos[::2] if quick else rhos:
            found[f"{name}-{rho:g}"] = Sweep(ensemble, annealed(rho), samples, group=name)
            for kind in () if rho_hat else OTHERS:
                other = {"kind": kind, "rho": rho}
                found[f"{name}-{rho:g}-{kind}"] = Sweep(ensemble, other, samples, group=name)
        if name in SLOW:
            slow, tau = SLOW[name]
            schedule = {"kind": "paper", "tau": tau}
            found[slow] = Sweep(ensemble, annealed(rhos[-1], schedule), samples)
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
    states = [_state(alpha, float(rho), rho_hat, temperature) for rho in rhos]
    return np.array([np.nan if state is None else getattr(state, name) for state in states])


@cache
def _state(alpha: float, rho: float, rho_hat: float, temperature: float | None) -> State | None:
    parameters = {
        "alpha": alpha,
        "rho": rho,
        "rho_hat": rho_hat,
        "sigma_x2": float(rho_hat > 0),
        "sigma_xi2": float(rho_hat == 0),
    }
    exact = Theory(parameters).exact
    if temperature is None:
        return exact.freezing("cooled")
    end = exact.spinodals().cooling
    ended = end is not None and temperature <= end
    return exact.at(temperature, "planted" if ended else "cooled")


def _fine(rhos: list[float]) -> list[float]:
    """Return a fine grid over ρ that has the ρ of the runs; coarser if these are few."""
    n = 25 if len(rhos) > 4 else 4
    return np.unique([*np.linspace(rhos[0], rhos[-1], n).round(6), *rhos]).tolist()


# ---------------------------------------------------------------- drawing


def draw(data: Data) -> Figure:
    """Draw distortion and error over ρ, without and with a planted signal."""
    figure = new_figure(11, 5.2)
    left, middle, right = figure.subplots(1, 3)
    styles = (("blue", "o"), ("orange", "s"), ("green", "^"))
    for group, (color, marker) in zip(NOISE, styles):
        _draw_noise(left, data, group, COLORS[color], marker)
    t = _nearest_temperature(data, NOISE[0], COOL)
    for dash, label in (("-", f"theory, T = {t:.2g}"), ("--", "theory, s = 0")):
        left.plot([], [], color="black", ls=dash, lw=1.3, label=label)
    finish(left, RHO_LABEL, DISTORTION_LABEL, "pure noise", logy=True)
    _draw_planted(middle, data, "distortion", DISTORTION_LABEL)
    _draw_planted(right, data, "mse", MSE_LABEL)
    left.set_ylim(bottom=2e-9)
    handles, labels = (
        a + b for a, b in zip(*(x.get_legend_handles_labels() for x in (left, middle)))
    )
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=4)
    return figure


def _draw_noise(ax: Axes, data: Data, group: str, color: str, marker: str) -> None:
    """Draw the distortion of pure noise at a temperature and at the end of the runs."""
    rhos = _rhos(data, group)
    t = _nearest_temperature(data, group, COOL)
    fine, alpha = _fine(rhos), GROUPS[group].alpha
    for at, dash, face, label in (
        (t, "-", color, f"α = {alpha:g}, T = {t:.2g}"),
        (None, "--", "white", f"α = {alpha:g}, end of the runs"),
    ):
        values = _theory_over_rho(group, "distortion", at, fine)
        ax.plot(fine, values, ls=dash, lw=1.3, color=color)
        x, mean, error = _over_rho(data, group, "distortion", at)
        ax.errorbar(
            x, mean, error, ls="none", marker=marker, ms=4.5, mfc=face, label=label, color=color
        )


def _draw_planted(ax: Axes, data: Data, name: str, label: str) -> None:
    """Draw a quantity at T = 1e-3 for the planted signals."""
    for group, color, marker in (("rho-planted-a", "blue", "o"), ("rho-planted-b", "orange", "s")):
        alpha, rhos = GROUPS[group].alpha, _rhos(data, group)
        temperature = _nearest_temperature(data, group, 1e-3)
        fine = _fine(rhos)
        values = _theory_over_rho(group, name, temperature, fine)
        ax.plot(fine, values, lw=1.4, color=COLORS[color], label=f"planted, theory, α = {alpha:g}")
        x, mean, error = _over_rho(data, group, name, 1e-3)
        n = int(data[f"{group}-{rhos[0]:g}"]["n_samples"][-1])
        size = int(data[f"{group}-{rhos[0]:g}"]["size"][-1])
        text = f"α = {alpha:g}, N = {size} ({n} samples)"
        ax.errorbar(
            x, mean, error, ls="none", marker=marker, ms=4.5, color=COLORS[color], label=text
        )
    title = f"planted, ρ̂ = 0.5, at T = {temperature:.2g}"
    finish(ax, RHO_LABEL, label, title, logy=True)


# ---------------------------------------------------------------- judgement


def judge(data: Data) -> list[Row]:
    """Judge ε over ρ, the order of the methods at each ρ, and the trap at large ρ."""
    return [
        *(row for group in NOISE for row in _judge_noise(data, group)),
        *(_judge_falling(data, group) for group in PLANTED),
        *(_judge_planted(data, group) for group in PLANTED),
    ]


def _final_distortions(data: Data, group: str) -> list[xr.DataArray]:
    """Return ε at the end of the runs for each ρ."""
    return [
        data[f"{group}-{rho:g}"].isel(size=-1)["final_distortion"] for rho in _rhos(data, group)
    ]


def _judge_falling(data: Data, group: str) -> Row:
    """Judge whether ε at the end of the runs falls with ρ, on shared instances."""
    rhos, by_rho = _rhos(data, group), _final_distortions(data, group)
    falls = _enough(np.column_stack(shared_samples(*by_rho)))
    between = [f"ρ = {a:g} and {b:g}" for a, b in pairwise(rhos)]
    falling = too_few("fewer than five shared instances")
    if falls is not None:
        falling = larger(Estimate([-np.diff(falls, axis=1)], [1]), places=between)
    ends = ", ".join(f"{rho:g}: {float(v.mean()):.2g}" for rho, v in zip(rhos, by_rho))
    alpha, rho_hat, _ = GROUPS[group]
    return Row(
        f"ε falls with ρ, {'planted' if rho_hat else 'noise only'}, α = {alpha:g}",
        "larger ρ, less distortion",
        "–" if rho_hat else "falls with ρ at every T",
        f"N = {int(by_rho[0]['size'])}, final ε by ρ: {ends}",
        falling,
        note="Claimed: at every step to the next ρ, on shared instances.",
    )


def _judge_noise(data: Data, group: str) -> list[Row]:
    """Judge whether ε falls with ρ, and whether annealing ends below the other methods."""
    rhos, by_rho = _rhos(data, group), _final_distortions(data, group)
    alpha = GROUPS[group].alpha
    others = {
        f"{label}, ρ = {rho:g}": data[f"{group}-{rho:g}-{kind}"].isel(size=-1)[
            "distortion" if kind == "omp" else "refit_distortion"
        ]
        for rho in rhos
        for kind, label in OTHERS.items()
    }
    values = np.column_stack(shared_samples(*by_rho, *others.values()))
    own = np.repeat(values[:, : len(rhos)], len(OTHERS), axis=1)
    better = _enough(values[:, len(rhos) :] - own)
    size = int(by_rho[0]["size"])
    pursuit = [data[f"{group}-{rho:g}-omp"].isel(size=-1)["distortion"] for rho in rhos]
    beside = ", ".join(
        f"{float(a.mean()):.2g} and {float(b.mean()):.2g} (ρ = {rho:g})"
        for rho, a, b in zip(rhos, by_rho, pursuit)
    )
    if group in SLOW:
        slow, tau = SLOW[group]
        mean, error = mean_and_error(data[slow].isel(size=-1)["final_distortion"])
        beside += f"; at the last ρ with τ = {tau}: {pm(float(mean), float(error))}"
    return [
        _judge_falling(data, group),
        Row(
            f"annealing below OMP and l1 + LS, α = {alpha:g}, ρ = {', '.join(f'{r:g}' for r in rhos)}",
            "other parameters behave alike (not shown)",
            "–",
            f"N = {size}, differences on {values.shape[0]} shared instances at each ρ",
            too_few("fewer than five shared instances")
            if better is None
            else larger(Estimate([better], [1]), places=list(others)),
            note=f"Claimed: at every ρ, against both methods. Mean ε beside OMP: {beside}.",
        ),
    ]


def _enough(samples: Floats) -> Floats | None:
    """Return the samples if there are enough of them to judge."""
    return samples if samples.shape[0] >= MIN_SAMPLES else None


def _judge_planted(data: Data, group: str) -> Row:
    alpha = GROUPS[group].alpha
    small, large = SUPPRESSED[group]
    runs = [data[f"{group}-{rho:g}"].isel(size=-1)["final_mse"] for rho in (small, large)]
    few, many = shared_samples(*runs)
    counts = ", ".join(
        f"{rho:g}: {n_of(found(only_solvable(data[f'{group}-{rho:g}'])))}"
        for rho in _rhos(data, group)
    )
    return Row(
        f"found more often at ρ = {small:g} than at {large:g}, planted, α = {alpha:g}",
        "smaller ρ ≥ ρ̂ suppresses the metastable state",
        _where_metastable(data, group),
        f"N = {int(runs[0]['size'])}, found of the instances with at most k planted columns, by ρ: "
        f"{counts}",
        more_often_paired(few < FOUND, many < FOUND),
        note="All shared instances are tested. The paper also says, as a disadvantage, that larger ρ "
        "are better for finding the planted solution; the counts fall with ρ.",
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
        "On pure noise (left), more columns mean less distortion, at a fixed temperature (filled) "
        "and at the end of the run (open). With a planted signal (middle, right) the line is the state "
        "that slow cooling reaches at this T. It jumps, the distortion upwards too, where the "
        "metastable branch survives down to this T; beyond, the distortion falls again, but the error "
        "of the coefficients stays large. Below the jump the runs lie above the line, because many "
        "of them lag, or have more than k planted columns."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
