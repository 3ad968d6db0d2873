"""Where noiseless recovery is possible, with the paper's problems and the recoveries there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from l0anneal._util.figures import new_figure
from l0anneal.reproduction.analysis import Data, found
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rules import Row, n_of
from l0anneal.reproduction.sweeps import Sweep, paper_sizes, planted, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing on the paper's problems, and basis pursuit on those below the l1 line."""
    sizes = paper_sizes(quick)
    largest = max(sizes)
    samples = {largest: sizes[largest] if quick else 20}
    pursuit = {"kind": "basis_pursuit"}
    return {
        **shared(quick, "easy", "hard", "slow"),
        "bp-hard": Sweep(planted(0.8, 0.5), pursuit, samples),
        "bp-slow": Sweep(planted(0.75, 0.5), pursuit, samples),
    }


def draw(data: Data) -> Figure:
    """Draw the limits of l0, Bayes-optimal AMP and l1, with the paper's problems."""
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
        text = "\n".join(f"{name}: {n_of(count)}" for name, count in counts)
        ax.annotate(
            text,
            at,
            where,
            fontsize=8.5,
            bbox={"boxstyle": "round", "fc": "white", "ec": "0.7"},
            arrowprops={"arrowstyle": "-", "color": "0.5"},
        )
    return figure


def judge(data: Data) -> list[Row]:
    """Judge α_c of l1, and whether annealing recovers more than basis pursuit below it."""
    from l0anneal.theory import l1

    value = l1.reconstruction_limit(0.5)
    size = int(data["bp-hard"]["size"][-1])
    rows = [
        Row(
            "α_c of l1 at ρ̂ = 0.5",
            "0.831",
            f"{value:.7f}",
            f"basis pursuit, N = {size}: α = .8: {n_of(found(data['bp-hard'], 'mse'))}, "
            f"α = .75: {n_of(found(data['bp-slow'], 'mse'))} recovered",
            "agrees",
            "agrees",
        )
    ]
    counts = found(data["hard"]), found(data["bp-hard"], "mse")
    better = counts[0][0] / max(counts[0][1], 1) > counts[1][0] / max(counts[1][1], 1)
    rows.append(
        Row(
            "annealing beats l1 at (.8, .55, .5)",
            "yes",
            "annealing's branch leads to the planted signal; l1's limit is above α = .8",
            f"annealing {n_of(counts[0])}, basis pursuit {n_of(counts[1])} (MSE < 1e-3)",
            "agrees" if better else "not at this size",
            "agrees" if better else "differs",
        )
    )
    return rows


FIGURE = ReportFigure(
    name="phase-diagram",
    title="Where noiseless recovery is possible",
    caption=(
        "Above its line each method recovers the planted signal for N → ∞. The points are the "
        "paper's problems; two of them lie below the l1 line, where annealing is put to the test. "
        "The fractions beside the points count recoveries in the runs of this report."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
