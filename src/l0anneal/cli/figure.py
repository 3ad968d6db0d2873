"""Draw an answer with the names of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.cli.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_answer"]

MOST = 40  # rows that fit a page


def plot_answer(answer: Answer) -> Figure:
    """Draw coefficients with error bars and probabilities, one row for each likely column.

    Coefficients are multiplied by the standard deviation of their column, so that columns in
    different units can be compared.
    """
    rows = answer.rows()[:MOST]
    several = any(row.probability is not None for row in rows)
    figure = new_figure(10.0 if several else 6.4, 2.0 + 0.28 * max(3, len(rows)))
    axes = figure.subplots(1, 2 if several else 1, sharey=True, squeeze=False)[0]
    place = np.arange(len(rows))
    index = [row.index for row in rows]
    scale = answer.problem.column_norms[index] / np.sqrt(answer.result.n_samples)
    coef = np.array([row.coef for row in rows]) * scale
    std = np.array([row.std or 0.0 for row in rows]) * scale
    for chosen, color in ((True, COLORS["blue"]), (False, "0.6")):
        some = np.array([row.chosen == chosen for row in rows], dtype=bool)
        label = "chosen" if chosen else "not chosen"
        if some.any():
            axes[0].errorbar(
                coef[some], place[some], xerr=std[some], fmt="o", ms=4, color=color, label=label
            )
            if several:
                p = np.array([row.probability or 0.0 for row in rows])[some]
                axes[1].barh(place[some], p, color=color, height=0.6, label=label)
    axes[0].axvline(0.0, color=COLORS["black"], lw=0.8)
    what = "standard deviation" if answer.has_intercept else "root mean square"
    axes[0].set_xlabel(f"coefficient × {what} of the column")
    sets = [f" [{row.set}]" if row.set else "" for row in rows]
    names = [row.name if len(row.name) <= 30 else row.name[:29] + "…" for row in rows]
    axes[0].set_yticks(place, [name + mark for name, mark in zip(names, sets)])
    axes[0].set_ylim(max(len(rows), 1) - 0.4, -0.6)
    if several:
        axes[1].axvline(0.5, color=COLORS["red"], ls="--", lw=1.0, label="one half")
        axes[1].set_xlim(0.0, 1.02)
        axes[1].set_xlabel("probability that the column belongs")
        figure.legend(
            *axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
        )
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    k, n = answer.result.support.size, answer.result.n_columns
    figure.suptitle(f"{answer.target}: {k} of {n} columns, R² = {answer.r2:.3g}", fontsize=11)
    return figure
