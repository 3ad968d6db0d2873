"""The other figures: phase diagram, time, choice of ρ, noise, and the seeded dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Theory, fitted_order, mean_and_error
from l0anneal.reproduction.drawing import T_LABEL, Data, finish, points
from l0anneal.reproduction.paper import RHOS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["noisy", "phase_diagram", "rho", "seeded", "time"]

#: A run whose mean squared error is below this has found the planted solution; the paper's schedule
#: ends at T = 8e-5, where a few columns still come and go.
FOUND = 1e-3
PAPER_SECONDS = {100: 6.0, 200: 15.0, 400: 38.0}
COOL = 0.2  # the temperature of the comparison with theory over ρ


def found(data: xr.Dataset, name: str = "final_mse", size: int | None = None) -> tuple[int, int]:
    """How many runs of a size (the largest) found the planted solution, of how many."""
    chosen = data.isel(size=-1) if size is None else data.sel(size=size)
    return int((chosen[name] < FOUND).sum()), int(chosen["n_samples"])


def phase_diagram(data: Data) -> Figure:
    """The limits of l0, Bayes-optimal AMP and l1, with the paper's problems."""
    from l0anneal import theory

    figure = new_figure(6.8, 5.6)
    ax = figure.subplots()
    theory.plot_phase_diagram(
        ax,
        data=theory.phase_diagram(np.linspace(0.02, 0.98, 33)),
        points=[(0.2, 0.8), (0.5, 0.8), (0.5, 0.75)],
    )
    notes = (
        ((0.2, 0.8), (0.02, 0.62), [("annealing", found(data["easy"]))]),
        (
            (0.5, 0.8),
            (0.2, 0.925),
            [("annealing", found(data["hard"])), ("l1", found(data["bp-hard"], "mse"))],
        ),
        (
            (0.5, 0.75),
            (0.6, 0.5),
            [("annealing, τ = 100", found(data["slow"])), ("l1", found(data["bp-slow"], "mse"))],
        ),
    )
    for at, where, counts in notes:
        text = "\n".join(f"{name}: {good} of {n}" for name, (good, n) in counts)
        ax.annotate(
            text,
            at,
            where,
            fontsize=8.5,
            bbox={"boxstyle": "round", "fc": "white", "ec": "0.7"},
            arrowprops={"arrowstyle": "-", "color": "0.5"},
        )
    return figure


def median_seconds(data: Data, *names: str) -> tuple[list[int], list[float]]:
    """Median seconds at each size, over sweeps of one solver."""
    pairs = {
        int(size): float(data[name]["seconds"].sel(size=size).median())
        for name in names
        for size in data[name]["size"].to_numpy()
        if int(data[name]["n_samples"].sel(size=size)) > 0
    }
    return sorted(pairs), [pairs[size] for size in sorted(pairs)]


def time(data: Data) -> Figure:
    """Seconds against N."""
    figure = new_figure(6.4, 4.6)
    ax = figure.subplots()
    paper = list(PAPER_SECONDS), list(PAPER_SECONDS.values())
    for label, (sizes, seconds), color, marker in (
        ("annealing, paper (MATLAB)", paper, "black", "s"),
        ("annealing, here", median_seconds(data, "noise", "noise-large"), "blue", "o"),
        ("l1 path (LARS), scikit-learn", median_seconds(data, "l1", "l1-large"), "orange", "^"),
        ("OMP, scikit-learn", median_seconds(data, "omp", "omp-large"), "green", "v"),
    ):
        if len(sizes) > 1:
            label += f": N^{fitted_order(sizes, seconds):.1f}"
        ax.plot(sizes, seconds, marker=marker, ms=5, lw=1.2, color=COLORS[color], label=label)
    finish(ax, "columns N", "processor seconds for one run (median)", logx=True, logy=True)
    ticks = sorted({*PAPER_SECONDS, *median_seconds(data, "noise", "noise-large")[0]})
    ax.set_xticks(ticks, [str(size) for size in ticks])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)
    return figure


def over_rho(data: Data, group: str, name: str, at: float | None) -> tuple[np.ndarray, ...]:
    """Means and errors over ρ of a final number, or of a curve at the temperature nearest."""
    rhos, means, errors = [], [], []
    for value in rhos_of(data, group):
        chosen = data[f"{group}-{value:g}"].isel(size=-1)
        if at is None:
            values = chosen[f"final_{name}"]
        else:
            values = chosen[name].isel(mu=int(np.argmin(np.abs(chosen["mu"].to_numpy() - 1 / at))))
        mean, error = mean_and_error(values)
        rhos.append(value)
        means.append(float(mean))
        errors.append(float(error))
    return np.array(rhos), np.array(means), np.array(errors)


def rhos_of(data: Data, group: str) -> list[float]:
    """The ρ at which a group was run."""
    return [value for value in RHOS[group][2] if f"{group}-{value:g}" in data]


def nearest_temperature(data: Data, group: str, at: float) -> float:
    """The schedule's temperature nearest to ``at`` in μ."""
    mu = data[f"{group}-{rhos_of(data, group)[0]:g}"]["mu"].to_numpy()
    return float(1 / mu[np.argmin(np.abs(mu - 1 / at))])


def theory_over_rho(
    group: str, name: str, temperature: float | None, grid: list[float]
) -> np.ndarray:
    """The cooled branch over ρ at a temperature, or where the entropy vanishes (None).

    Where the cooled branch has ended before, the run falls into the planted one.
    """
    alpha, rho_hat, _ = RHOS[group]
    values = []
    for value in grid:
        exact = Theory(
            {
                "alpha": alpha,
                "rho": value,
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


def rho(data: Data) -> Figure:
    """Distortion and error against ρ, without and with a planted signal."""
    from scipy.interpolate import PchipInterpolator

    figure = new_figure(13, 4.4)
    left, middle, right = figure.subplots(1, 3)
    for group, color, marker in (("rho-noise-a", "blue", "o"), ("rho-noise-b", "orange", "s")):
        alpha, grid = RHOS[group][0], rhos_of(data, group)
        t = nearest_temperature(data, group, COOL)
        style = {"color": COLORS[color]}
        fine = np.linspace(grid[0], grid[-1], 60)
        for at, dash, label in ((t, "-", f"theory, T = {t:.2g}"), (None, "--", "theory, s = 0")):
            values = np.log(theory_over_rho(group, "distortion", at, grid))
            smooth = np.exp(PchipInterpolator(grid, values)(fine))
            left.plot(fine, smooth, ls=dash, lw=1.3, label=label, **style)
        for at, face, label in (
            (t, COLORS[color], f"α = {alpha:g}"),
            (None, "white", "at the end"),
        ):
            x, mean, error = over_rho(data, group, "distortion", at)
            left.errorbar(
                x, mean, error, ls="none", marker=marker, ms=4.5, mfc=face, label=label, **style
            )
    finish(left, "selected fraction ρ = k/N", "distortion ε = E/M", "pure noise", logy=True)
    _planted_over_rho(middle, data, "distortion", "distortion ε = E/M")
    _planted_over_rho(right, data, "mse", "mean squared error per column")
    left.set_ylim(bottom=2e-9)
    left.legend(frameon=False, fontsize=7.5, ncols=2, loc="lower left")
    middle.legend(frameon=False, fontsize=7.5)
    return figure


def _planted_over_rho(ax: Axes, data: Data, name: str, label: str) -> None:
    for group, color, marker in (("rho-planted-a", "blue", "o"), ("rho-planted-b", "orange", "s")):
        alpha, grid = RHOS[group][0], rhos_of(data, group)
        temperature = nearest_temperature(data, group, 1e-3)
        values = theory_over_rho(group, name, temperature, grid)
        ax.plot(grid, values, lw=1.4, color=COLORS[color], label=f"theory, α = {alpha:g}")
        x, mean, error = over_rho(data, group, name, 1e-3)
        n = int(data[f"{group}-{grid[0]:g}"]["n_samples"][-1])
        size = int(data[f"{group}-{grid[0]:g}"]["size"][-1])
        text = f"N = {size} ({n} samples each)"
        ax.errorbar(
            x, mean, error, ls="none", marker=marker, ms=4.5, color=COLORS[color], label=text
        )
    title = f"planted, ρ̂ = 0.5, at T = {temperature:.2g}"
    finish(ax, "selected fraction ρ = k/N", label, title, logy=True)


def noisy(data: Data) -> Figure:
    """Error against temperature with noise: its minimum is not at T = 0."""
    figure = new_figure(10, 4.4)
    for ax, name in zip(figure.subplots(1, 2), ("weak", "strong")):
        source, one = data[f"noisy-{name}"], data[f"noisy-{name}-one"]
        theory = Theory(source.attrs)
        low, high = 2e-3, 5.0
        line = theory.line("cooled", low, high, 60)
        ax.plot(line["temperature"], line["mse"], color=COLORS["black"], lw=1.5)
        ax.plot([], [], color=COLORS["black"], lw=1.5, label="theory, N → ∞")
        best = line.isel(temperature=int(np.argmin(line["mse"].to_numpy())))
        ax.axvline(float(best["temperature"]), color="0.6", ls=":", lw=1.1)
        ax.plot([], [], color="0.6", ls=":", label=f"least at T = {float(best['temperature']):.2g}")
        points(ax, source, "mse", low=low, high=high)
        t = one["temperature"].to_numpy()
        inside = (t >= low) & (t <= high)
        ax.plot(
            t[inside],
            one["mse"].isel(size=0, sample=0).to_numpy()[inside],
            color=COLORS["sky"],
            lw=1.0,
            label=f"one run, N = {int(one['size'][0])}",
        )
        title = f"noise variance {source.attrs['sigma_xi2']:g}"
        finish(ax, T_LABEL, "mean squared error per column", title, logx=True)
        ax.set_ylim(0, 1.25 * float(line["mse"].max()))
        ax.legend(frameon=False, fontsize=8)
    return figure


def seeded(data: Data) -> Figure:
    """Recoveries on i.i.d. and seeded dictionaries, and the error along the chain."""
    figure = new_figure(10.5, 4.4)
    left, right = figure.subplots(1, 2)
    sizes = [int(size) for size in data["seeded-iid-a"]["size"]]
    cells = [(label, rho_value, size) for label, rho_value in _SEEDED_RHOS for size in sizes]
    kinds = (("iid", "i.i.d.", "orange", "s"), ("chain", "seeded", "blue", "o"))
    for shift, (kind, label, color, marker) in zip((-0.19, 0.19), kinds):
        counts = [found(data[f"seeded-{kind}-{c}"], size=size) for c, _, size in cells]
        fractions = [good / n if n else 0.0 for good, n in counts]
        x = np.arange(len(cells)) + shift
        left.bar(x, fractions, width=0.36, color=COLORS[color], label=label)
        for xi, fraction, (good, n) in zip(x, fractions, counts):
            left.text(xi, fraction + 0.015, f"{good}/{n}", ha="center", fontsize=8)
        source = data[f"seeded-{kind}-a"].sel(size=sizes[-1])
        mean, error = mean_and_error(source["final_mse_by_eighth"])
        n = int(source["n_samples"])
        right.errorbar(
            np.arange(8) / 8 + 1 / 16,
            mean,
            error,
            marker=marker,
            ms=4.5,
            lw=1.1,
            color=COLORS[color],
            label=f"{label} ({n} samples)",
        )
    names = [f"ρ = {value:g}\nN = {size}" for _, value, size in cells]
    left.set_xticks(np.arange(len(cells)), names, fontsize=8.5)
    left.legend(frameon=False, fontsize=8)
    finish(left, "", "fraction of runs that found the plan")
    left.set_ylim(0, 1.08)
    right.legend(frameon=False, fontsize=8, loc="upper left")
    title = f"ρ = {_SEEDED_RHOS[0][1]:g}, N = {sizes[-1]}"
    finish(right, "place in the dictionary (column / N)", "mean squared error", title)
    right.set_ylim(0, 1.25 * right.get_ylim()[1])
    return figure


_SEEDED_RHOS = (("a", 0.62), ("b", 0.65))
