"""Entropies from population annealing, against enumeration and against replica symmetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, Theory, entropy, mean_and_error
from l0anneal.reproduction.drawing import T_LABEL, finish, size_style
from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import (
    MIN_SAMPLES,
    WHY_NATS,
    Row,
    against_theory,
    samples_text,
)
from l0anneal.reproduction.rules import too_few, within
from l0anneal.reproduction.sweeps import COOLED, Sweep, noise_only, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

Floats = NDArray[np.float64]
SYMBOLS = {"free_entropy": "g", "entropy": "s"}
EXACT_MARGIN = 0.005  # nats per column


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return population annealing and enumeration at N = 20, and populations at larger sizes."""
    solver: dict[str, Any] = {
        "kind": "population",
        "rho": 0.2,
        "population": 400,
        "tau": 5,
        **COOLED,
    }
    if quick:
        solver["population"] = 50
    few = {20: 10 if quick else 60}
    return {
        **shared(quick, "enumerated"),
        "population-small": Sweep(noise_only(0.5), solver, few),
        "population": Sweep(
            noise_only(0.5),
            solver,
            {40: 5} if quick else {50: 50, 100: 30, 200: 20},
        ),
    }


# ---------------------------------------------------------------- analysis


def _entropies(source: xr.Dataset) -> xr.Dataset:
    """Return g and s of each sample at μ > 0, beside the other data."""
    return source.assign(dict(entropy(source, planted=False).data_vars)).isel(mu=slice(1, None))


def _against_exact(data: Data, name: str) -> Floats:
    """Return population minus enumeration on shared instances (rows), at each temperature."""
    exact, found = (_entropies(data[key]) for key in ("enumerated", "population-small"))
    n = min(exact.sizes["sample"], found.sizes["sample"])
    first, second = (
        d[name].isel(size=0, sample=slice(0, n)).transpose("sample", "mu") for d in (found, exact)
    )
    gap = first.to_numpy() - second.to_numpy()
    return np.asarray(gap[np.isfinite(gap).all(axis=1)])


def _unstable(source: xr.Dataset) -> float:
    """Return the temperature below which replica symmetry is unstable."""
    unstable = Theory(source.attrs).exact.at_instability("cooled")
    assert unstable is not None
    return unstable.temperature


# ---------------------------------------------------------------- drawing


def draw(data: Data) -> Figure:
    """Draw the deviation from enumeration, s(T) with the line of theory, and the deviation from it."""
    figure = new_figure(13.5, 4.6)
    axes = figure.subplots(1, 3)
    t = _entropies(data["population-small"])["temperature"].to_numpy()
    for (name, symbol), color, marker in zip(SYMBOLS.items(), ("blue", "orange"), "os"):
        gap = _against_exact(data, name)
        error = gap.std(axis=0) / np.sqrt(max(len(gap) - 1, 1))
        label = f"{symbol}, {len(gap)} instances"
        axes[0].errorbar(
            t,
            gap.mean(axis=0),
            error,
            ms=3.5,
            lw=0.9,
            ls="none",
            marker=marker,
            color=COLORS[color],
            label=label,
        )
    axes[0].axhline(0.0, color="k", lw=1.2, label="enumeration of all supports")
    finish(axes[0], T_LABEL, "population − exact (nats per column)", "N = 20", logx=True)
    source = data["population"]
    values = _entropies(source)
    theory = Theory(source.attrs)
    frozen, unstable = theory.exact.freezing("cooled"), _unstable(source)
    assert frozen is not None
    line = theory.line("cooled", frozen.temperature, 21.0, 80)
    axes[1].plot(line["temperature"], line["entropy"], color="k", lw=1.5, label="RS, N → ∞")
    expected = theory.at("entropy", values["temperature"].to_numpy())
    mean, error = mean_and_error(values["entropy"])
    for rank, size in enumerate(source["size"].to_numpy()):
        n = int(source["n_samples"].sel(size=size))
        own, bar = mean.sel(size=size), error.sel(size=size)
        how = {"ms": 3.5, "lw": 0.9, "ls": "none", **size_style(rank)}
        axes[1].errorbar(values["temperature"], own, bar, label=f"N = {size} ({n})", **how)
        axes[2].errorbar(
            values["temperature"], own - expected, bar, label=f"N = {size} ({n})", **how
        )
    axes[2].axhline(0.0, color="k", lw=1.2, label="RS")
    for ax in axes[1:]:
        label = f"RS unstable below T = {unstable:.3f} (AT)"
        ax.axvline(unstable, color="0.5", ls=(0, (1, 3)), lw=1.3, label=label)
    finish(axes[1], T_LABEL, "entropy s (nats per column)", "population annealing", logx=True)
    finish(axes[2], T_LABEL, "s − s of theory (nats per column)", "deviation", logx=True)
    for ax in axes:
        ax.legend(frameon=False, fontsize=8)
    return figure


# ---------------------------------------------------------------- judgement


def judge(data: Data) -> list[Row]:
    """Judge g and s against enumeration at N = 20, and against theory where it is stable."""
    rows = []
    places = [
        f"T = {t:.2g}" for t in _entropies(data["population-small"])["temperature"].to_numpy()
    ]
    for name, symbol in SYMBOLS.items():
        gap = _against_exact(data, name)
        verdict = too_few("too few shared instances")
        if len(gap) >= MIN_SAMPLES:
            verdict = within(Estimate([gap], [1]), 0.0, EXACT_MARGIN, " nats", 1.0, places)
        rows.append(
            Row(
                f"{symbol}(T) of population annealing, N = 20",
                "–",
                "all supports enumerated",
                f"{len(gap)} instances, {places[0]} to {places[-1][4:]}",
                verdict,
                new=True,
                note="Margin: half (g) and a quarter (s) of those for theory.",
            )
        )
    source = _entropies(data["population"])
    low = _unstable(source)
    rows += [
        Row(
            f"{symbol}(T) of population annealing, noise only (.5, .2), T ≥ {low:.2f}",
            "–",
            "RS line",
            samples_text(source),
            against_theory(source, name, low, 11.0),
            new=True,
            note=WHY_NATS,
        )
        for name, symbol in SYMBOLS.items()
    ]
    return rows


def findings(data: Data) -> str:
    """Say how far populations are from enumeration, and how many had enough families."""
    worst = {
        symbol: float(np.abs(_against_exact(data, name).mean(axis=0)).max())
        for name, symbol in SYMBOLS.items()
    }
    source = data["population"]
    trusted = source["trusted"].isel(mu=-1)
    counts = ", ".join(
        f"{int(trusted.sel(size=n).sum())} of {int(source['n_samples'].sel(size=n))} at N = {int(n)}"
        for n in source["size"]
    )
    return (
        "The largest mean deviation from enumeration is "
        + " and ".join(f"{value:.1e} nats for {symbol}" for symbol, value in worst.items())
        + f". At the lowest temperature, T = {float(source['temperature'][-1]):g}, enough families "
        f"are left for error estimates in {counts}."
    )


FIGURE = ReportFigure(
    name="population",
    title="Entropy by population annealing, noise only: α = 0.5, ρ = 0.2",
    caption=(
        "Free entropy g and entropy s from the weights of a population of 400 replicas that is cooled "
        "from T = ∞. Left: minus the exact values of the same instances, from all supports. Middle "
        "and right: against replica symmetry, which is unstable below the dotted line; the number of "
        "supports, log C(N, k)/N, is replaced by its limit."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
    findings=findings,
    in_quick=False,
)
