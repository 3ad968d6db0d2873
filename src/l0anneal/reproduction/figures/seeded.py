"""Seeded dictionaries against the metastable state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.reproduction.analysis import Data, found, mean_and_error
from l0anneal.reproduction.drawing import finish
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import Row, n_of
from l0anneal.reproduction.rules import more_often, more_often_together
from l0anneal.reproduction.sweeps import Sweep, annealed, planted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

RHOS = {"a": 0.62, "b": 0.65}


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return the same annealing on i.i.d. and on seeded dictionaries."""
    samples = {80: 4} if quick else {100: 100, 200: 100}
    chain = {"kind": "seeded", "alpha": 0.75, "rho_hat": 0.5}
    sweeps = {}
    for name, rho in RHOS.items():
        solver = annealed(rho, {"kind": "paper", "tau": 10, "n": 110})
        sweeps[f"seeded-iid-{name}"] = Sweep(planted(0.75, 0.5), solver, samples)
        sweeps[f"seeded-chain-{name}"] = Sweep(chain, solver, samples)
    return sweeps


def draw(data: Data) -> Figure:
    """Draw recoveries on both kinds of dictionary, and the error along the dictionary."""
    figure = new_figure(10.5, 4.4)
    left, right = figure.subplots(1, 2)
    sizes = [int(size) for size in data["seeded-iid-a"]["size"]]
    cells = [(name, rho, size) for name, rho in RHOS.items() for size in sizes]
    kinds = (("iid", "i.i.d.", "orange", "s"), ("chain", "seeded", "blue", "o"))
    for shift, (kind, label, color, marker) in zip((-0.19, 0.19), kinds):
        counts = [found(data[f"seeded-{kind}-{name}"], size=size) for name, _, size in cells]
        fractions = [good / n if n else 0.0 for good, n in counts]
        x = np.arange(len(cells)) + shift
        left.bar(x, fractions, width=0.36, color=COLORS[color], label=label)
        for xi, fraction, (good, n) in zip(x, fractions, counts):
            left.text(xi, fraction + 0.015, f"{good}/{n}", ha="center", fontsize=9)
        source = data[f"seeded-{kind}-a"].sel(size=sizes[-1])
        mean, error = mean_and_error(source["final_mse_by_eighth"])
        right.errorbar(
            np.arange(8) / 8 + 1 / 16,
            mean,
            error,
            marker=marker,
            ms=4.5,
            lw=1.1,
            color=COLORS[color],
            label=f"{label} ({int(source['n_samples'])} samples)",
        )
    names = [f"ρ = {rho:g}\nN = {size}" for _, rho, size in cells]
    left.set_xticks(np.arange(len(cells)), names, fontsize=9.5)
    left.legend(frameon=False, fontsize=9)
    finish(left, "", "fraction of runs that found the planted signal")
    left.set_ylim(0, 1.08)
    right.legend(frameon=False, fontsize=9, loc="upper left")
    title = f"ρ = {RHOS['a']:g}, N = {sizes[-1]}"
    finish(right, "place in the dictionary (column / N)", "mean squared error", title)
    right.set_ylim(0, 1.25 * right.get_ylim()[1])
    return figure


def judge(data: Data) -> list[Row]:
    """Judge whether seeding helps, in each case."""
    rows, cases = [], []
    for name, rho in RHOS.items():
        iid, chain = data[f"seeded-iid-{name}"], data[f"seeded-chain-{name}"]
        for size in iid["size"].to_numpy():
            counts = found(iid, size=int(size)), found(chain, size=int(size))
            rows.append(
                Row(
                    f"seeding helps at (.75, {rho:g}, .5), N = {size}, τ = 10",
                    "a good candidate",
                    "–",
                    f"planted signal found: i.i.d. {n_of(counts[0])}, seeded {n_of(counts[1])}",
                    more_often(counts[1], counts[0]),
                    new=True,
                )
            )
            cases.append((counts[1], counts[0]))
    together = Row(
        "seeding helps, all cases together",
        "a good candidate",
        "–",
        "conditional on the signals found in each case",
        more_often_together(cases),
        new=True,
    )
    return [*rows, together]


FIGURE = ReportFigure(
    name="seeded",
    title="A seeded dictionary against the metastable state: α = 0.75, ρ̂ = 0.5",
    caption=(
        "Bars count the runs that found the planted solution, on i.i.d. and on seeded dictionaries "
        "of the same size. Right: the mean error along the dictionary. Seeding lowers it near the seed, "
        "which is the left end, and raises it at the far end."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
