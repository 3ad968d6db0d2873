"""How long it takes to find the planted signal, as the system grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import FOUND, Data, only_solvable
from l0anneal.reproduction.drawing import finish, size_style, size_ticks
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.figures.waiting import RUNS, binomial_interval
from l0anneal.reproduction.growth import (
    Law,
    Trials,
    compare_laws,
    fit_growth,
    half_time,
    resampled_rates,
)
from l0anneal.reproduction.rows import Row, n_of
from l0anneal.reproduction.rules import Verdict, larger, too_few
from l0anneal.reproduction.sweeps import Sweep, annealed, planted, shared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

Floats = NDArray[np.float64]

TAUS = (5, 20, 100, 400)
KICKS = np.array([4.0, 16.0, 64.0, 256.0, 1024.0, 4000.0])
METHODS = {"annealing": "τ", "walk": "kicks"}
LAWS: dict[Law, str] = {"exponential": "-", "power": "--"}  # with line styles


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing at several rates, walks over minima and evidence annealing, at many sizes."""
    ensemble = planted(0.75, 0.5)
    small = {20: 5, 40: 5} if quick else {40: 100, 60: 100, 80: 100}
    found = shared(quick, *(name for by_tau in RUNS.values() for name in by_tau.values()))
    for rho in RUNS:
        for tau in TAUS[: 2 if quick else None]:
            solver = annealed(rho, {"kind": "paper", "tau": tau})
            found[f"escape-{rho}-{tau}"] = Sweep(ensemble, solver, small, "escape")
        walk = {"kind": "kicks", "rho": rho, "n_chains": 1, "n_kicks": 400 if quick else 4000}
        sizes = {20: 8, 40: 8} if quick else {40: 100, 60: 100, 80: 100, 100: 100, 200: 50, 400: 20}
        found[f"escape-{rho}-kicks"] = Sweep(ensemble, walk, sizes, "escape")
    sizes = {20: 4, 40: 4} if quick else {40: 100, 60: 100, 80: 100, 100: 100, 200: 100, 400: 50}
    evidence = {"kind": "evidence", "max_attempts": 1, "n_draws": 100}
    found["escape-evidence"] = Sweep(ensemble, evidence, sizes, "escape")
    return found


# ---------------------------------------------------------------- analysis


def _outcomes(source: xr.Dataset, size: int) -> Floats:
    """Return whether each instance was solved: 1, 0, or NaN if it has no solution or no run."""
    error = only_solvable(source)["final_mse"].sel(size=size).to_numpy()
    return np.where(np.isfinite(error), error < FOUND, np.nan)


def _run_sizes(source: xr.Dataset) -> list[int]:
    """Return the sizes at which an instance that has a solution was run."""
    counts = only_solvable(source)["n_samples"]
    return [int(size) for size in counts["size"] if int(counts.sel(size=size))]


def _annealed(data: Data, rho: float) -> dict[int, tuple[Floats, Floats, Floats]]:
    """Return by size: τ, the outcomes by instance and τ, and the mean processor seconds by τ."""
    columns: dict[int, list[tuple[float, Floats, float]]] = {}
    for tau in TAUS:
        for name in (RUNS[rho].get(tau), f"escape-{rho}-{tau}"):
            if name is None or name not in data:
                continue
            for size in _run_sizes(data[name]):
                seconds = float(data[name]["seconds"].sel(size=size).mean())
                column = (float(tau), _outcomes(data[name], int(size)), seconds)
                columns.setdefault(int(size), []).append(column)
    found = {}
    for size in sorted(columns):
        n = max(len(outcome) for _, outcome, _ in columns[size])
        table = np.full((n, len(columns[size])), np.nan)
        for j, (_, outcome, _) in enumerate(columns[size]):
            table[: len(outcome), j] = outcome
        taus = np.array([tau for tau, _, _ in columns[size]])
        found[size] = (taus, table, np.array([seconds for _, _, seconds in columns[size]]))
    return found


def _walked(data: Data, rho: float) -> dict[int, tuple[Floats, Floats, Floats]]:
    """Return by size: kicks, whether so many sufficed by instance, and their processor seconds."""
    source = data[f"escape-{rho}-kicks"]
    found = {}
    for size in _run_sizes(source):
        solved = _outcomes(source, int(size))
        made = source["chain_kicks"].sel(size=size).isel(part=0).to_numpy()
        seconds = float(source["seconds"].sel(size=size).sum() / np.nansum(made))
        known = np.isfinite(solved)[:, None]
        table = np.where(known, (solved == 1)[:, None] & (made[:, None] <= KICKS), np.nan)
        reached = max(float(np.nanmax(made)), KICKS[0]) >= KICKS
        found[int(size)] = (KICKS[reached], table[:, reached], seconds * KICKS[reached])
    return found


def _of(data: Data, rho: float, method: str) -> dict[int, tuple[Floats, Floats, Floats]]:
    return _annealed(data, rho) if method == "annealing" else _walked(data, rho)


def _trials(data: Data, rho: float, method: str) -> Trials:
    runs = _of(data, rho, method)
    return Trials.of([(size, times, table) for size, (times, table, _) in runs.items()])


def _counts(table: Floats) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Return successes and runs of each column."""
    return np.nansum(table, axis=0).astype(int), np.isfinite(table).sum(axis=0)


# ---------------------------------------------------------------- drawing


def draw(data: Data) -> Figure:
    """Draw found fractions over τ and over processor time, and the needed time over N, for each ρ."""
    figure = new_figure(13.5, 8.2)
    for row, rho in zip(figure.subplots(2, 3), sorted(RUNS, reverse=True)):
        state = "metastable state" if rho > 0.6 else "no metastable state"
        _draw_rates(row[0], data, rho)
        finish(
            row[0],
            "sweeps at each temperature, τ",
            "fraction of instances solved",
            f"annealing, ρ = {rho:g}: {state}",
            logx=True,
        )
        _draw_methods(row[1], data, rho)
        finish(
            row[1],
            "processor seconds",
            "fraction of instances solved",
            f"three methods, ρ = {rho:g}",
            logx=True,
        )
        _draw_growth(row[2], data, rho)
        finish(
            row[2],
            "columns N",
            "τ, or kicks, that solve half",
            f"needed length, ρ = {rho:g}",
            logx=True,
            logy=True,
        )
        size_ticks(row[2], [*_annealed(data, rho), *_walked(data, rho)])
        for ax in row[:2]:
            ax.set_ylim(-0.03, 1.03)
        for ax in (row[0], row[2]):
            ax.legend(frameon=False, fontsize=7.5)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 3}
        row[1].legend(frameon=False, fontsize=7, columnspacing=1.0, **below)
    return figure


def _bars(table: Floats) -> tuple[Floats, Floats]:
    """Return rates and the ends of their 95 % binomial intervals, as distances."""
    good, n = _counts(table)
    rates = good / np.maximum(n, 1)
    ends = np.array(
        [binomial_interval((int(a), int(b))) if b else (0.0, 1.0) for a, b in zip(good, n)]
    )
    return rates, np.abs(ends.T - rates)


def _draw_rates(ax: Axes, data: Data, rho: float) -> None:
    trials = _trials(data, rho, "annealing")
    growth = fit_growth(trials, "exponential")
    for rank, (size, (taus, table, _)) in enumerate(_annealed(data, rho).items()):
        rates, bars = _bars(table)
        style = size_style(rank)
        shift = 1 + 0.02 * rank
        ax.errorbar(
            taus * shift, rates, bars, ls="none", ms=4.5, lw=0.9, label=f"N = {size}", **style
        )
        t = np.geomspace(4, 500, 60)
        half = growth.time_at(size, "exponential")
        ax.plot(t, 1 - 0.5 ** ((t / half) ** growth.steepness), color=style["color"], lw=0.8)


def _draw_methods(ax: Axes, data: Data, rho: float) -> None:
    """Draw rates over processor seconds, at a small and a large size that all methods have."""
    evidence = data["escape-evidence"]
    runs = {method: _of(data, rho, method) for method in METHODS}
    common = sorted(set(runs["annealing"]) & set(runs["walk"]) & set(evidence["size"].to_numpy()))
    chosen = dict.fromkeys([common[0], *(n for n in common if n in (100, 200)), common[-1]][:4])
    looks: dict[str, dict[str, Any]] = {
        "annealing": {"ls": "-", "marker": "o"},
        "walk": {"ls": "--", "marker": "s", "mfc": "none"},
    }
    ranks = {size: rank for rank, size in enumerate(runs["annealing"])}
    for size in chosen:
        color = size_style(ranks[size])["color"]
        for method, look in looks.items():
            _, table, seconds = runs[method][size]
            rates, bars = _bars(table)
            ax.errorbar(seconds, rates, bars, ms=4, lw=0.9, color=color, **look)
        error = evidence["final_mse"].sel(size=size).dropna("sample").to_numpy()
        rates, bars = _bars((error < FOUND).astype(float)[:, None])
        at = float(evidence["seconds"].sel(size=size).mean())
        ax.errorbar([at], rates, bars, marker="*", ms=10, ls="none", color=color)
    for method, look in looks.items():
        ax.plot([], [], color="0.4", ms=4, lw=0.9, label=method, **look)
    names = ", ".join(str(size) for size in chosen)
    label = f"evidence; N = {names} in the colours of the left"
    ax.plot([], [], marker="*", ms=10, ls="none", color="0.4", label=label)


def _draw_growth(ax: Axes, data: Data, rho: float) -> None:
    for method, color, marker in (("annealing", "blue", "o"), ("walk", "orange", "s")):
        trials = _trials(data, rho, method)
        sizes = np.unique(trials.size)
        x = np.geomspace(sizes[0], sizes[-1], 60)
        for law, style in LAWS.items():
            growth = fit_growth(trials, law)
            y = growth.time_at(x, law)
            label = f"{method} ({METHODS[method]}), {law} fit"
            ax.plot(x, y, color=COLORS[color], ls=style, lw=1.2, label=label)
        for size in sizes:
            best, low, high = half_time(trials, size, fit_growth(trials, "power").steepness)
            down, up = best - low, (high - best if np.isfinite(high) else 2 * best)
            ax.errorbar(
                size,
                best,
                [[down], [up]],
                marker=marker,
                ms=5,
                color=COLORS[color],
                lolims=not np.isfinite(high),
                capsize=2,
            )
    ax.set_ylim(0.1, 3e6)


# ---------------------------------------------------------------- judgement


def judge(data: Data) -> list[Row]:
    """Judge by which law the needed length grows, for annealing and for the walk."""
    rows = []
    claims: dict[float, Law] = {0.65: "exponential", 0.55: "power"}
    for rho, claimed in claims.items():
        for method, unit in METHODS.items():
            trials = _trials(data, rho, method)
            rows.append(
                Row(
                    f"growth of the needed {unit} of {method}: {claimed}, (.75, {rho:g}, .5)",
                    "the required τ rapidly grows" if rho > 0.6 else "qualitatively different",
                    "a first-order transition: exponential in N" if rho > 0.6 else "no transition",
                    _laws_text(trials),
                    _law_verdict(trials, claimed),
                    new=True,
                    note="Both laws have three parameters. Tested: the mean difference of the log "
                    "likelihoods of an instance (Vuong). Instances with more than k planted columns "
                    "are left out.",
                )
            )
    return rows


def _law_verdict(trials: Trials, claimed: Law) -> Verdict:
    """Claim that one law is likelier than the other."""
    if np.unique(trials.size).size < 3:
        return too_few("three sizes are needed to tell a power from an exponential")
    _, estimate = compare_laws(trials, claimed)
    if estimate is None:
        return too_few("a size has a single instance")
    return larger(estimate, unit=" nats per instance")


def _laws_text(trials: Trials) -> str:
    """Write both fitted laws with the errors from resampled instances, and their likelihoods."""
    texts = []
    for law in LAWS:
        form = "exp({}·N)" if law == "exponential" else "N^{}"
        rate = fit_growth(trials, law).rate
        spread = float(np.std(resampled_rates(trials, law)))
        texts.append(form.format(f"{rate:.3g}({spread:.1g})"))
    advantage, _ = compare_laws(trials)
    better = "exponential" if advantage > 0 else "power"
    sizes = ", ".join(f"{size:g}" for size in np.unique(trials.size))
    return (
        f"N = {sizes}, {np.unique(trials.instance).size} instances: {' or '.join(texts)}; the "
        f"{better} law is likelier by {abs(advantage):.1f} nats (AIC by {2 * abs(advantage):.1f})"
    )


def findings(data: Data) -> str:
    """Say which law is likelier, and how often evidence annealing succeeds."""
    parts = []
    for rho in sorted(RUNS, reverse=True):
        for method, unit in METHODS.items():
            text = _laws_text(_trials(data, rho, method))
            parts.append(f"Needed {unit} of {method} at ρ = {rho:g}: {text}.")
    source = data["escape-evidence"]
    counts = []
    for size in source["size"].to_numpy():
        own = source["final_mse"].sel(size=size)
        count = (int((own < FOUND).sum()), int(own.notnull().sum()))
        seconds = float(source["seconds"].sel(size=size).mean())
        counts.append(f"{n_of(count)} at N = {size} ({seconds:.2g} s)")
    parts.append(
        f"Evidence annealing, which is told neither k nor the noise, solves {', '.join(counts)}."
    )
    return " ".join(parts)


FIGURE = ReportFigure(
    name="escape",
    title="How long an escape takes: α = 0.75, ρ̂ = 0.5",
    caption=(
        "Left: the fraction of instances whose planted signal is found over τ, with 95 % binomial "
        "intervals and the exponential law fitted to all sizes. Middle: annealing, the walk of "
        "kick_search and evidence annealing over the processor time of a run, which is the common "
        "unit of what their steps cost; the walk ends at its first exact fit. Right: the length at "
        "which half of the runs succeed at each N, with the fits of an exponential and of a power law "
        "(an arrow where no or too few runs succeed)."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
    findings=findings,
    in_quick=False,
)
