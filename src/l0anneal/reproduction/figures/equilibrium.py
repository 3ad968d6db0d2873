"""Equilibrium through the first-order transition, by replica exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, Theory
from l0anneal.reproduction.beyond import MSE_EDGES
from l0anneal.reproduction.coexistence import (
    densities_near,
    half_temperature,
    limit_of_halves,
    overlaps_at,
    pseudo_values,
    resampled_limits,
    shared_columns,
)
from l0anneal.reproduction.drawing import T_LABEL, finish, size_style
from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import (
    MIN_SAMPLES,
    WHY_MARGIN,
    Row,
    against_theory,
    judged_sizes,
    pm,
    samples_text,
)
from l0anneal.reproduction.rules import Verdict, larger, too_few, within
from l0anneal.reproduction.sweeps import Sweep, planted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from l0anneal.theory import ReplicaSymmetric

__all__ = ["FIGURE"]

Floats = NDArray[np.float64]
PLANTED = 0.1  # a support with a smaller mean squared error belongs to the planted phase
OTHERS = (10**-1.5, 10**-0.5)  # to see what depends on that choice
MARGIN = 0.17  # of log T
SAME = 0.1  # of a probability
HOT, COLD = 1e-3, 1e-4  # temperatures at which one phase has most of the weight


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return replica exchange through T_c, twice on each instance: from random and planted supports.

    With 1.2 N² sweeps, runs from both starts agree on each of a few instances at N = 60, 80 and 100
    up to their noise, after 30 to 450 round trips. N = 120 has a sweep of its own, because more levels
    of the overlap would make other tasks of the smaller sizes.
    """
    solver = {
        "kind": "temper",
        "rho": 0.65,
        "t_max": 2e-3,
        "t_min": 4e-5,
        "n": 12,
        "sweeps_per_square": 0.2 if quick else 1.2,
        "levels": 65,
    }
    ensemble = planted(0.75, 0.5, support="fixed")
    if quick:
        return {"tempered": Sweep(ensemble, solver, {20: 5, 40: 5})}
    return {
        "tempered": Sweep(ensemble, solver, {40: 60, 60: 60, 80: 50, 100: 50}),
        "tempered-120": Sweep(ensemble, {**solver, "levels": 78}, {120: 50}),
    }


# ---------------------------------------------------------------- analysis


def _all_sizes(data: Data) -> xr.Dataset:
    """Return all sizes in one dataset; values that a size does not have are NaN."""
    parts = [
        data[name].drop_vars(("checksum", "finished", "origin"), errors="ignore")
        for name in ("tempered", "tempered-120")
        if name in data
    ]
    room = {dim: max(part.sizes[dim] for part in parts) for dim in ("sample", "overlap_bin")}
    padded = [
        part.pad({dim: (0, n - part.sizes[dim]) for dim, n in room.items()}) for part in parts
    ]
    # kinds of processors differ in the last digit of temperatures: those of the first part are taken
    return xr.concat(
        padded, "size", join="override", coords="minimal", compat="override",
        combine_attrs="override",
    )  # fmt: skip


def _curves(source: xr.Dataset, values: xr.DataArray) -> dict[int, Floats]:
    """Return the curves of the finished instances by size, for sizes with enough of them."""
    found = {}
    for size in judged_sizes(source)[0]:
        own = values.sel(size=size).transpose("sample", ...).to_numpy()
        found[int(size)] = own[np.isfinite(own).all(axis=1)]
    return found


def _mean_of_runs(source: xr.Dataset, name: str) -> xr.DataArray:
    """Average both runs of each instance."""
    return 0.5 * (source[name] + source[f"{name}_truth"])


def _below(source: xr.Dataset, bound: float = PLANTED) -> xr.DataArray:
    """Return the probability of a mean squared error below a bound, which is an edge of a bin."""
    n_bins = int(np.argmin(np.abs(np.log(MSE_EDGES / bound))))
    return (
        source["mse_histogram"]
        .isel(mse_histogram_bin=slice(0, n_bins))
        .sum("mse_histogram_bin", skipna=False)
    )


def _halves(source: xr.Dataset, values: xr.DataArray) -> dict[int, float]:
    """Return T_c(N), where the mean probability of the planted phase is ½."""
    t = source["temperature"].to_numpy()
    curves = _curves(source, values)
    return {size: half_temperature(t, own.mean(axis=0)) for size, own in curves.items()}


def _limit(source: xr.Dataset, values: xr.DataArray) -> Estimate | None:
    """Estimate log T_c for N → ∞."""
    return limit_of_halves(source["temperature"].to_numpy(), _curves(source, values))


def _peaks(theory: ReplicaSymmetric) -> tuple[float, float]:
    """Return the overlap within each phase at T_c: the cooled one and the planted one."""
    transition = theory.transition()
    assert transition is not None
    given = (theory.alpha, theory.rho, theory.rho_hat, theory.sigma_x2)
    return shared_columns(transition.cooled, *given), shared_columns(transition.planted, *given)


# ---------------------------------------------------------------- drawing


def draw(data: Data) -> Figure:
    """Draw energy, phases, overlaps and specific heat over T, and T_c over 1/N."""
    source = _all_sizes(data)
    theory = Theory(source.attrs)
    figure = new_figure(13.5, 8.2)
    axes = figure.subplots(2, 3)
    transition = theory.exact.transition()
    assert transition is not None
    t = source["temperature"]
    _draw_means(axes[0, 0], source, _mean_of_runs(source, "distortion") / t)
    _draw_means(axes[0, 1], source, _below(source))
    _draw_means(axes[1, 1], source, _mean_of_runs(source, "specific_heat"))
    _draw_means(axes[1, 2], source, source["below_tenth_truth"] - source["below_tenth"])
    _draw_theory(axes[0, 0], axes[1, 1], theory)
    _draw_halves(axes[0, 2], source, transition.temperature)
    _draw_overlaps(axes[1, 0], source, theory.exact)
    for ax, label, title in (
        (axes[0, 0], "distortion over temperature, ε/T", "energy"),
        (axes[0, 1], f"probability of MSE < {PLANTED:g}", "the planted phase"),
        (axes[1, 1], "specific heat dε/dT = μ² var(E)/M", "specific heat"),
        (axes[1, 2], "difference of probabilities", "started at the truth − at random"),
    ):
        finish(ax, T_LABEL, label, title, logx=True)
        ax.axvline(transition.temperature, color="0.6", ls=":", lw=1.0)
    axes[0, 1].axhline(0.5, color="0.6", lw=0.8)
    axes[1, 2].axhline(0.0, color="0.6", lw=0.8)
    axes[0, 0].set_ylim(0, 0.1)
    axes[1, 1].set_ylim(0, None)
    axes[0, 0].plot([], [], color="0.6", ls=":", label=f"T_c = {transition.temperature:.3g}")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=5)
    return figure


def _draw_means(ax: Axes, source: xr.Dataset, values: xr.DataArray) -> None:
    for rank, (size, curves) in enumerate(_curves(source, values).items()):
        ax.errorbar(
            source["temperature"],
            curves.mean(axis=0),
            curves.std(axis=0) / np.sqrt(len(curves) - 1),
            ms=4,
            lw=0.9,
            label=f"N = {size} ({len(curves)} instances)",
            **size_style(rank),
        )


def _draw_theory(energy: Axes, heat: Axes, theory: Theory) -> None:
    for branch, color, style, label in (
        ("cooled", "black", "-", "theory, cooled branch"),
        ("planted", "sky", "--", "theory, planted branch"),
    ):
        line = theory.line(branch, 4e-5, 2e-3, 80)
        t, e = line["temperature"].to_numpy(), line["distortion"].to_numpy()
        how: dict[str, Any] = {"color": COLORS[color], "ls": style, "lw": 1.7, "zorder": 5}
        energy.plot(t, e / t, label=label, **how)
        rising = np.gradient(e, t)
        heat.plot(t[rising < 0.2], rising[rising < 0.2], **how)


def _draw_halves(ax: Axes, source: xr.Dataset, at: float) -> None:
    """Draw T_c(N) from both runs and from each, and the line in 1/N."""
    t = source["temperature"].to_numpy()
    curves = _curves(source, _below(source))
    for rank, (size, own) in enumerate(curves.items()):
        centre = half_temperature(t, own.mean(axis=0))
        spread = pseudo_values(t, own)
        error = centre * float(spread.std(ddof=1)) / np.sqrt(len(own))
        ax.errorbar(1 / size, centre, error, ms=7, lw=1.2, capsize=3, **size_style(rank))
    for name, marker, label in (
        ("below_tenth", "v", "started at random alone"),
        ("below_tenth_truth", "^", "started at the truth alone"),
    ):
        each = _halves(source, source[name])
        x = 1 / np.array(list(each))
        ax.plot(
            x, list(each.values()), ls="none", marker=marker, mfc="none", color="0.45", label=label
        )
    estimate = _limit(source, _below(source))
    if estimate is not None:
        centre = float(np.exp(estimate.mean[0]))
        error = centre * float(estimate.error[0])
        label = f"N → ∞: {pm(centre, error)}"
        ax.errorbar(0, centre, error, fmt="k*", ms=11, capsize=3, label=label)
    ax.axhline(at, color=COLORS["black"], lw=1.5, label=f"theory: {at:.4g}")
    finish(ax, "1/N", "temperature of equal probability, T_c(N)", "T_c", logy=True)
    ax.legend(frameon=False, fontsize=8)


def _draw_overlaps(ax: Axes, source: xr.Dataset, theory: ReplicaSymmetric) -> None:
    halves = _halves(source, _below(source))
    for rank, (size, at) in enumerate(halves.items()):
        if not np.isfinite(at):
            continue
        own = overlaps_at(source, size, at)
        k = own.shape[1] - 1
        error = own.std(axis=0) / np.sqrt(max(len(own) - 1, 1))
        style = {**size_style(rank), "ms": 3, "lw": 0.9}
        ax.errorbar(np.arange(k + 1) / k, k * own.mean(axis=0), k * error, **style)
    for place, name in zip(_peaks(theory), ("cooled phase", "planted phase")):
        ax.axvline(place, color="0.5", ls="--", lw=0.9)
        ax.annotate(
            f"{name}, theory ",
            (place, 0.02),
            xycoords=("data", "axes fraction"),
            rotation=90,
            ha="right",
            va="bottom",
            fontsize=7,
            color="0.35",
        )
    finish(ax, "overlap q = |S ∩ S'| / k", "density P(q)", "overlap of both runs at T_c(N)")
    ax.set_xlim(0.4, 1.0)


# ---------------------------------------------------------------- judgement


def judge(data: Data) -> list[Row]:
    """Judge T_c, whether equilibrium was reached, the overlaps, and the energy on both sides."""
    source = _all_sizes(data)
    exact = Theory(source.attrs).exact
    transition = exact.transition()
    assert transition is not None
    energy = source.assign(distortion=_mean_of_runs(source, "distortion"))
    rows = [_judge_transition(source, transition.temperature)]
    rows += [_judge_starts(source, int(size)) for size in judged_sizes(source)[0]]
    rows.append(_judge_overlaps(source, exact))
    for name, branch, low, high in (
        (f"T ≥ {HOT:g}", "cooled", HOT, 2.1e-3),
        (f"T ≤ {COLD:g}", "planted", 3.9e-5, COLD),
    ):
        rows.append(
            Row(
                f"ε(T) in equilibrium, {name}",
                "–",
                f"RS line of the {branch} branch",
                samples_text(source),
                against_theory(energy, "distortion", low, high, branch),
                new=True,
                note=WHY_MARGIN,
            )
        )
    return rows


def _judge_transition(source: xr.Dataset, at: float) -> Row:
    estimate = _limit(source, _below(source))
    verdict = too_few("a size has no temperature of equal probability")
    if estimate is not None:
        verdict = within(estimate, np.log(at), MARGIN, " %", 100.0)
    return Row(
        "T_c in equilibrium, where the planted phase has probability ½",
        "3e-4",
        f"{at:.4e}",
        _transition_text(source),
        verdict,
        new=True,
        note="In the limit N → ∞, by a line in 1/N for log T_c(N). Margin: half a unit of the paper's "
        f"only digit. The planted phase is MSE < {PLANTED:g}; with other bounds: "
        + "; ".join(
            f"{bound:.2g}: {_limit_text(source, _below(source, bound))}" for bound in OTHERS
        )
        + ". From runs started at random alone: "
        + f"{_limit_text(source, source['below_tenth'])}, at the truth alone: "
        + f"{_limit_text(source, source['below_tenth_truth'])}.",
    )


def _transition_text(source: xr.Dataset) -> str:
    """List T_c(N) with the errors from sample to sample, and the limit."""
    t = source["temperature"].to_numpy()
    parts = []
    for size, own in _curves(source, _below(source)).items():
        centre = half_temperature(t, own.mean(axis=0))
        error = centre * float(pseudo_values(t, own).std(ddof=1)) / np.sqrt(len(own))
        parts.append(f"N = {size} ({len(own)} instances): {pm(centre, error)}")
    return ", ".join([*parts, f"N → ∞: {_limit_text(source, _below(source))}"])


def _limit_text(source: xr.Dataset, values: xr.DataArray) -> str:
    """Write the limit of T_c with its error and the central 90 % of resampled instances."""
    estimate = _limit(source, values)
    if estimate is None:
        return "none"
    centre = float(np.exp(estimate.mean[0]))
    limits = resampled_limits(source["temperature"].to_numpy(), _curves(source, values))
    low, high = np.quantile(limits, [0.05, 0.95])
    return f"{pm(centre, centre * float(estimate.error[0]))} (bootstrap {low:.2g} to {high:.2g})"


def _judge_starts(source: xr.Dataset, size: int) -> Row:
    """Judge whether runs from random supports and from the planted one agree."""
    gap = _curves(source, source["below_tenth_truth"] - source["below_tenth"])[size]
    places = [f"T = {t:.2g}" for t in source["temperature"].to_numpy()]
    own = source.sel(size=size)
    trips = [own[name].median("sample") for name in ("round_trips", "round_trips_truth")]
    short = [int(own[name].sum()) for name in ("too_short", "too_short_truth")]
    verdict = within(Estimate([gap], [1]), 0.0, SAME, places=places)
    return Row(
        f"both starts have the same probability of the planted phase, N = {size}",
        "–",
        "equilibrium does not depend on the start",
        f"{len(gap)} instances; median round trips {float(trips[0]):g} from random supports and "
        f"{float(trips[1]):g} from the planted one; {short[0]} and {short[1]} runs too short by the "
        "sampler's own rule",
        verdict,
        new=True,
        note=f"Margin: {SAME:g} at every temperature. Where the starts differ, T_c(N) lies between "
        "the values of the two.",
    )


def _judge_overlaps(source: xr.Dataset, theory: ReplicaSymmetric) -> Row:
    """Judge whether P(q) has two peaks at T_c(N), at the largest size."""
    low, high = _peaks(theory)
    halves = _halves(source, _below(source))
    verdict: Verdict = too_few(f"fewer than {MIN_SAMPLES} samples at every size")
    text = "–"
    if halves and np.isfinite(halves[max(halves)]):
        size = max(halves)
        own = densities_near(
            overlaps_at(source, size, halves[size]), (low, 0.5 * (low + high), high)
        )
        gains = own[:, [0, 2]] - own[:, [1]]
        verdict = larger(Estimate([gains], [1]), places=("the cooled peak", "the planted peak"))
        text = f"N = {size}: densities " + ", ".join(
            f"{own[:, i].mean():.2f} at q = {q:.2f}"
            for i, q in enumerate((low, 0.5 * (low + high), high))
        )
    return Row(
        "P(q) at T_c(N) has two peaks",
        "–",
        f"q = {low:.3f} and {high:.3f} within the two phases",
        text,
        verdict,
        new=True,
        note="Claimed: the density at both overlaps of theory is larger than halfway between them.",
    )


def findings(data: Data) -> str:
    """Say what T_c is, whether the runs are in equilibrium, and whether P(q) has two peaks."""
    source = _all_sizes(data)
    parts = [f"T_c(N): {_transition_text(source)}."]
    low, high = _peaks(Theory(source.attrs).exact)
    for size, at in _halves(source, _below(source)).items():
        if np.isfinite(at):
            own = densities_near(overlaps_at(source, size, at), (low, 0.5 * (low + high), high))
            cooled, valley, truth = own.mean(axis=0)
            shape = "two peaks" if min(cooled, truth) > valley else "no two peaks"
            parts.append(
                f"P(q) at N = {size}: {cooled:.2f}, {valley:.2f}, {truth:.2f} at the cooled peak, "
                f"between, and at the planted peak of theory ({shape})."
            )
    gaps = _curves(source, source["below_tenth_truth"] - source["below_tenth"])
    worst = ", ".join(f"{gap.mean(axis=0).max():.2f} at N = {n}" for n, gap in gaps.items())
    parts.append(f"The starts differ by at most: {worst}.")
    return " ".join(parts)


FIGURE = ReportFigure(
    name="equilibrium",
    title="Equilibrium through T_c: α = 0.75, ρ = 0.65, ρ̂ = 0.5",
    caption=(
        "Replica exchange on instances with planted supports of fixed size, two independent runs on "
        "each: one from random supports, one from the planted support. The mean over instances moves "
        "from the cooled branch to the planted one over a wide range of temperatures, because the "
        "transition of each instance lies elsewhere. T_c(N) is where the planted phase has the mean "
        "probability ½. Error bars are from sample to sample."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
    findings=findings,
    in_quick=False,
)
