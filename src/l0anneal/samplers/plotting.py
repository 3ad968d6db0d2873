"""Figures of schedules and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from l0anneal.samplers.annealing.result import AnnealResult
    from l0anneal.samplers.evidence.result import EvidenceResult
    from l0anneal.samplers.population.result import PopulationResult
    from l0anneal.samplers.result import Result
    from l0anneal.samplers.schedule import Schedule
    from l0anneal.samplers.tempering.result import TemperResult

__all__ = [
    "plot_anneal",
    "plot_bars",
    "plot_coefficients",
    "plot_evidence",
    "plot_population",
    "plot_schedule",
    "plot_tempering",
]


def plot_bars(
    names: list[str],
    values: NDArray[np.float64],
    label: str,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draw named numbers as horizontal bars, the first on top."""
    figure = new_figure(4.5, 0.6 + 0.2 * len(names))
    ax = figure.subplots()
    short = [name if len(name) <= 24 else name[:23] + "…" for name in names]
    places = np.arange(len(names))[::-1]
    ax.barh(places, values, color=COLORS["blue"])
    ax.set_yticks(places, short, fontsize=8)
    ax.set_xlabel(label, fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    if limits is not None:
        ax.set_xlim(*limits)
    ax.axvline(0.0, color=COLORS["black"], lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def plot_schedule(schedule: Schedule, ax: Axes | None = None) -> Axes:
    """Draw temperature against sweeps done."""
    if ax is None:
        ax = new_figure(5, 3.5).subplots()
    mu = np.array(schedule.mu)
    positive = mu > 0
    ends = np.cumsum(schedule.tau)
    edges = np.concatenate(([0], ends))
    temperature = np.where(positive, 1.0 / np.where(positive, mu, 1.0), np.nan)
    ax.stairs(temperature, edges, baseline=None, color=COLORS["blue"], lw=1.5)
    if np.any(positive):
        ax.set_yscale("log")
    ax.set_xlabel("sweeps (of N proposals)")
    ax.set_ylabel("temperature T = 1/μ (units of energy)")
    ax.set_title(f"{schedule.name} schedule, {len(schedule)} temperatures")
    return ax


def plot_anneal(result: AnnealResult) -> Figure:
    """Draw distortion, acceptance and entropy of a run against temperature."""
    trajectory = result.trajectory
    mu = trajectory["mu"].to_numpy()
    # one axis for all three: μ = 0 is at infinite temperature and has no place on a log axis
    shown = mu > 1e-6 * mu[-1]
    if not shown.any():
        raise ValueError("the run has no temperature but infinity: there is nothing to draw")
    temperature = 1.0 / mu[shown]
    entropy = trajectory["entropy"].to_numpy()[shown]
    panels = 3 if np.isfinite(entropy).any() else 2
    figure = new_figure(4.0 * panels, 3.4)
    axes = figure.subplots(1, panels)

    for run in result.chains["distortion"].to_numpy():
        axes[0].plot(temperature, run[shown], color=COLORS["sky"], lw=0.8, alpha=0.7)
    axes[0].plot(
        temperature,
        trajectory["distortion"].to_numpy()[shown],
        "o",
        ms=3,
        color=COLORS["blue"],
        label="mean at each temperature",
    )
    axes[0].axhline(
        result.distortion, color=COLORS["red"], ls="--", lw=1.2, label="the support returned"
    )
    if trajectory["distortion"].to_numpy()[shown].min() > 0:
        axes[0].set_yscale("log")
    axes[0].set_ylabel("distortion ε = ‖y − Ax‖² / 2M")
    axes[0].legend(frameon=False, fontsize=8)

    axes[1].plot(
        temperature, trajectory["acceptance"].to_numpy()[shown], "o-", ms=3, color=COLORS["green"]
    )
    axes[1].set_ylim(-0.03, 1.03)
    axes[1].set_ylabel("accepted proposals (fraction)")

    if panels == 3:
        axes[2].plot(temperature, entropy, "o-", ms=3, color=COLORS["purple"])
        axes[2].axhline(0.0, color=COLORS["black"], lw=0.8)
        axes[2].set_ylabel("entropy per column s (nats)")
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel("temperature T = 1/μ (units of energy)")
        ax.spines[["top", "right"]].set_visible(False)
    k, n = result.support.size, result.n_columns
    figure.suptitle(f"{k} of {n} columns, distortion {result.distortion:.4g}", fontsize=11)
    return figure


def plot_population(result: PopulationResult) -> Figure:
    """Draw distortion, entropy and family sizes of a population against temperature."""
    trajectory = result.trajectory
    mu = trajectory["mu"].to_numpy()
    shown = mu > 1e-6 * mu[-1]
    values = {name: trajectory[name].to_numpy()[shown] for name in trajectory}
    temperature = values["temperature"]
    figure = new_figure(12.0, 3.4)
    axes = figure.subplots(1, 3)
    bars = {"fmt": "o", "ms": 3, "lw": 1.0}
    axes[0].errorbar(
        temperature,
        values["distortion"],
        values["distortion_error"],
        color=COLORS["blue"],
        label="mean at each temperature",
        **bars,
    )
    axes[0].axhline(
        result.distortion, color=COLORS["red"], ls="--", lw=1.2, label="the support returned"
    )
    if np.all(values["distortion"] > 0):
        axes[0].set_yscale("log")
    axes[0].set_ylabel("distortion ε = ‖y − Ax‖² / 2M")
    axes[0].legend(frameon=False, fontsize=8)

    if np.isfinite(values["entropy"]).any():
        axes[1].errorbar(
            temperature, values["entropy"], values["entropy_error"], color=COLORS["purple"], **bars
        )
        axes[1].axhline(0.0, color=COLORS["black"], lw=0.8)
    axes[1].set_ylabel("entropy per column s (nats)")

    axes[2].plot(temperature, values["families"], "o-", ms=3, color=COLORS["green"], label="left")
    axes[2].plot(
        temperature,
        result.population / values["rho_t"],
        "s-",
        ms=3,
        color=COLORS["orange"],
        label="effective, R/ρ_t",
    )
    axes[2].set_yscale("log")
    axes[2].set_ylabel("families")
    axes[2].legend(frameon=False, fontsize=8)
    for ax in axes:
        if np.any(shown):
            ax.set_xscale("log")
        ax.set_xlabel("temperature T = 1/μ (units of energy)")
        ax.spines[["top", "right"]].set_visible(False)
    k, n = result.support.size, result.n_columns
    figure.suptitle(f"{k} of {n} columns, distortion {result.distortion:.4g}", fontsize=11)
    return figure


def plot_tempering(result: TemperResult) -> Figure:
    """Draw distortion, exchange rates and autocorrelation times along the ladder."""
    shown = result.ladder > 1e-6 * result.ladder[-1]
    temperature = 1.0 / result.ladder[shown]
    figure = new_figure(12.0, 3.4)
    axes = figure.subplots(1, 3)
    axes[0].errorbar(
        temperature,
        result.mean_energy[shown] / result.n_samples,
        result.energy_error[shown] / result.n_samples,
        fmt="o",
        ms=3,
        lw=1.0,
        color=COLORS["blue"],
    )
    axes[0].axhline(result.distortion, color=COLORS["red"], ls="--", lw=1.2)
    axes[0].set_ylabel("distortion ε = ‖y − Ax‖² / 2M")
    between = np.sqrt(np.maximum(result.ladder[:-1], 1e-6 * result.ladder[-1]) * result.ladder[1:])
    axes[1].plot(1.0 / between, result.exchange_rate, "o-", ms=3, color=COLORS["green"])
    axes[1].set_ylim(-0.03, 1.03)
    axes[1].set_ylabel("exchanges accepted (fraction)")
    axes[2].plot(temperature, result.autocorrelation[shown], "o-", ms=3, color=COLORS["purple"])
    axes[2].set_yscale("log")
    axes[2].set_ylabel("autocorrelation time (sweeps)")
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel("temperature T = 1/μ (units of energy)")
        ax.spines[["top", "right"]].set_visible(False)
    state = "too short to be trusted" if result.refusals else f"{result.round_trips} round trips"
    figure.suptitle(f"{result.ladder.size} rungs, {result.n_sweeps} sweeps, {state}", fontsize=11)
    return figure


def plot_coefficients(result: Result) -> Figure:
    """Draw the coefficients of the chosen columns."""
    figure = new_figure(6.4, 3.4)
    ax = figure.subplots()
    ax.vlines(result.support, 0.0, result.coef[result.support], color=COLORS["blue"], lw=1.2)
    ax.plot(result.support, result.coef[result.support], "o", ms=4, color=COLORS["blue"])
    ax.axhline(0.0, color=COLORS["black"], lw=0.8)
    ax.set_xlim(-0.02 * result.n_columns - 0.5, 1.02 * result.n_columns - 0.5)
    ax.set_xlabel("column")
    ax.set_ylabel("coefficient (units of signal / column)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(
        f"{result.support.size} of {result.n_columns} columns, distortion {result.distortion:.4g}",
        fontsize=11,
    )
    return figure


def plot_evidence(result: EvidenceResult) -> Figure:
    """Draw inclusion probabilities, the number of columns, and the cooling."""
    figure = new_figure(12.0, 3.4)
    axes = figure.subplots(1, 3)
    p = result.inclusion_probability
    columns = np.arange(p.size)
    axes[0].vlines(columns, 0.0, p, color=COLORS["sky"], lw=1.0)
    sets = [found for found in result.likely_sets() if found.columns.size > 1]
    in_sets = np.concatenate([np.zeros(0, dtype=np.int64), *(found.columns for found in sets)])
    alone = np.setdiff1d(result.support, in_sets)
    axes[0].plot(alone, p[alone], "o", ms=4, color=COLORS["blue"], label="chosen")
    for i, found in enumerate(sets):
        color = COLORS[("orange", "green", "purple", "black")[i % 4]]
        label = "one of a set" if i == 0 else None
        axes[0].plot(found.columns, p[found.columns], "s", ms=4, color=color, label=label)
    axes[0].axhline(0.5, color=COLORS["red"], ls="--", lw=1.0, label="one half")
    axes[0].set_ylim(0.0, 1.05)
    axes[0].set_xlabel("column")
    axes[0].set_ylabel("inclusion probability")
    axes[0].legend(frameon=False, fontsize=8)

    axes[1].bar(np.arange(result.size_posterior.size), result.size_posterior, color=COLORS["green"])
    axes[1].set_xlabel("number of columns")
    axes[1].set_ylabel("posterior probability")

    temperature = result.trajectory["temperature"].to_numpy()
    axes[2].plot(temperature, ".-", ms=4, color=COLORS["purple"], label="of each step")
    if result.noise_variance > 0:
        axes[2].axhline(
            result.noise_variance, color=COLORS["red"], ls="--", lw=1.0, label="inferred"
        )
    axes[2].set_yscale("log")
    axes[2].set_xlabel("step of the cooling")
    axes[2].set_ylabel("noise variance T (units of signal²)")
    axes[2].legend(frameon=False, fontsize=8)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{result.support.size} of {result.n_columns} columns, "
        f"noise variance {result.noise_variance:.3g}, state: {result.state}",
        fontsize=11,
    )
    return figure
