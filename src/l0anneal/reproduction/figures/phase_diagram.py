"""Where noiseless recovery is possible, with the paper's problems and the recoveries there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from l0anneal._util.figures import new_figure
from l0anneal.reproduction.analysis import FOUND, Data, found
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import Row, n_of, shared_samples
from l0anneal.reproduction.rules import bracket, more_often_paired, rate_above, same_number, too_few
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing on the paper's problems, and basis pursuit on both sides of the l1 line."""
    return shared(quick, "easy", "hard", "slow", "bp-slow", "bp-hard", "bp-above")


def draw(data: Data) -> Figure:
    """Draw the limits of l0, Bayes-optimal AMP and l1, with the paper's problems."""
    from l0anneal import theory

    figure = new_figure(6.8, 5.6)
    ax = figure.subplots()
    theory.plot_phase_diagram(
        ax,
        data=theory.phase_diagram(np.linspace(0.02, 0.98, 33)),
        points=[(0.2, 0.8), (0.5, 0.8), (0.5, 0.75), (0.5, 0.86)],
    )
    notes = (
        ((0.2, 0.8), (0.02, 0.62), [("annealing", found(data["easy"]))]),
        (
            (0.5, 0.8),
            (0.2, 0.925),
            [("annealing", found(data["hard"])), ("l1", found(data["bp-hard"], "mse"))],
        ),
        ((0.5, 0.86), (0.62, 0.97), [("l1", found(data["bp-above"], "mse"))]),
        (
            (0.5, 0.75),
            (0.52, 0.5),
            [("annealing, τ = 100", found(data["slow"])), ("l1", found(data["bp-slow"], "mse"))],
        ),
    )
    for at, where, counts in notes:
        text = "\n".join(f"{name}: {n_of(count)}" for name, count in counts)
        ax.annotate(
            text,
            at,
            where,
            fontsize=9.5,
            bbox={"boxstyle": "round", "fc": "white", "ec": "0.7"},
            arrowprops={"arrowstyle": "-", "color": "0.5"},
        )
    return figure


def judge(data: Data) -> list[Row]:
    """Judge α_c of l1, and whether annealing recovers more than basis pursuit below it."""
    from l0anneal.theory import l1

    value = l1.reconstruction_limit(0.5)
    below, above = (found(data[name], "mse") for name in ("bp-hard", "bp-above"))
    size = int(data["bp-hard"]["size"][-1])
    sa, bp = shared_samples(
        data["hard"]["final_mse"].sel(size=size), data["bp-hard"]["mse"].sel(size=size)
    )
    slower = too_few(f"no slow runs at N = {size}")
    if size in data["slow"]["size"]:
        pair = shared_samples(
            data["slow"]["final_mse"].sel(size=size), data["bp-slow"]["mse"].sel(size=size)
        )
        slower = more_often_paired(*(errors < FOUND for errors in pair))
    return [
        Row(
            "α_c of l1 at ρ̂ = 0.5, theory",
            "0.831",
            f"{value:.7f}",
            "–",
            same_number(value, 0.831, 1e-3),
            note="Margin: one unit of the last printed digit.",
        ),
        Row(
            "α_c of l1 at ρ̂ = 0.5, bracketed by basis pursuit",
            "0.831",
            f"{value:.4f}, between α = .8 and .86",
            f"N = {size}, recovered: α = .75: {n_of(found(data['bp-slow'], 'mse'))}, "
            f"α = .8: {n_of(below)}, α = .86: {n_of(above)}",
            bracket(
                rate_above((below[1] - below[0], below[1]), 0.5),
                rate_above(above, 0.5),
                "it fails for more than half at α = .8, and succeeds for more than half at .86",
            ),
            note="At finite N the rate passes one half near α_c.",
        ),
        Row(
            "annealing finds more than l1 at (.8, .55, .5)",
            "annealing can outperform l1, even with the rapid schedule",
            "annealing's branch leads to the planted signal; l1's limit is above α = .8",
            f"N = {size}: annealing {n_of(found(data['hard'], size=size))}, basis pursuit "
            f"{n_of(below)} (MSE < {FOUND:g})",
            more_often_paired(sa < FOUND, bp < FOUND),
        ),
        Row(
            "slow annealing finds more than l1 at (.75, .55, .5)",
            "annealing can outperform l1",
            "no metastable state; l1's limit is above α = .75",
            f"largest N: annealing with τ = 100 {n_of(found(data['slow']))}, basis pursuit "
            f"{n_of(found(data['bp-slow'], 'mse'))} (MSE < {FOUND:g})",
            slower,
        ),
    ]


FIGURE = ReportFigure(
    name="phase-diagram",
    title="Where noiseless recovery is possible",
    caption=(
        "Above its line each method recovers the planted signal for N → ∞. Three of the points are "
        "the paper's problems, two of them below the l1 line; the fourth, at α = .86, is above it. "
        "The fractions beside the points count recoveries at the largest N of this report. Message "
        "passing (AMP) knows the law of the signal; annealing and l1 do not."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
