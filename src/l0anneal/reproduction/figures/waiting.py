"""How often the planted signal is found, over N and τ: with and without a metastable state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from l0anneal._util.figures import new_figure
from l0anneal.reproduction.analysis import Data, found, only_solvable
from l0anneal.reproduction.drawing import finish, size_style, size_ticks
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.rows import Row, n_of
from l0anneal.reproduction.rules import Verdict, more_often, not_less_often, too_few
from l0anneal.reproduction.sweeps import Sweep, shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE"]

Count = tuple[int, int]  # found, and runs

#: The sweeps by ρ, and by τ.
RUNS = {
    0.55: {5: "rapid", 20: "rapid-20", 100: "slow"},
    0.65: {5: "metastable", 20: "metastable-20", 100: "metastable-100"},
}
MARGIN = 0.2


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing at three rates, at a ρ without a metastable state and at one with it."""
    return shared(quick, *(name for by_tau in RUNS.values() for name in by_tau.values()))


def _counts(data: Data, name: str) -> dict[int, Count]:
    """Return found and solvable instances by size."""
    source = only_solvable(data[name])
    counts = {int(size): found(source, size=int(size)) for size in source["size"]}
    return {size: count for size, count in counts.items() if count[1]}


def binomial_interval(count: Count, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a rate (Clopper and Pearson).

    Examples
    --------
    >>> low, high = binomial_interval((0, 100))
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    from scipy.stats import beta

    k, n = count
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(1 - tail, k + 1, n - k)) if k < n else 1.0
    return low, high


def draw(data: Data) -> Figure:
    """Draw the fraction of instances that are solved over N, one panel for each ρ."""
    figure = new_figure(10, 4.4)
    for ax, (rho, by_tau) in zip(figure.subplots(1, 2, sharey=True), RUNS.items()):
        sizes: set[int] = set()
        for rank, (tau, name) in enumerate(by_tau.items()):
            counts = _counts(data, name)
            sizes |= set(counts)
            rates = np.array([good / n for good, n in counts.values()])
            ends = np.array([binomial_interval(count) for count in counts.values()])
            x = np.array(list(counts)) * (1 + 0.03 * (rank - 1))
            bars = np.abs(ends.T - rates)
            ax.errorbar(x, rates, bars, label=f"τ = {tau}", ms=5, lw=1.2, **size_style(rank))
        title = f"ρ = {rho:g}: " + ("a metastable state" if rho > 0.6 else "no metastable state")
        finish(ax, "columns N", "fraction of instances solved", title, logx=True)
        size_ticks(ax, sizes)
        ax.set_ylim(-0.03, 1.03)
        ax.legend(frameon=False, fontsize=9, loc="lower left" if rho < 0.6 else "upper right")
    return figure


def judge(data: Data) -> list[Row]:
    """Judge whether success falls with N where there is a metastable state, and only there."""
    rows = []
    for tau, name in RUNS[0.65].items():
        counts = _counts(data, name)
        rows.append(
            Row(
                f"found less often as N grows, (.75, .65, .5), τ = {tau}",
                "the required τ rapidly grows as N increases",
                "a first-order transition: trapped for N → ∞",
                _listed(counts),
                _of_ends(counts, more_often),
                note="The consequence at a fixed τ is tested: smallest against largest N. Only "
                "instances with at most k planted columns.",
            )
        )
    counts = _counts(data, RUNS[0.55][100])
    rapid = "; ".join(f"τ = {tau}: {_listed(_counts(data, RUNS[0.55][tau]))}" for tau in (5, 20))
    rows.append(
        Row(
            "as often found as N grows, (.75, .55, .5), τ = 100",
            "qualitatively different from that caused by the metastable state",
            "no transition",
            _listed(counts),
            _of_ends(counts, lambda first, last: not_less_often(last, first, MARGIN)),
            note=f"Margin: the rate at the largest N may be lower by {MARGIN:g} at most. Only "
            f"instances with at most k planted columns. At smaller τ it falls as well: {rapid}.",
        )
    )
    return rows


def _listed(counts: dict[int, Count]) -> str:
    return ", ".join(f"N = {size}: {n_of(count)}" for size, count in counts.items())


def _of_ends(counts: dict[int, Count], rule: Callable[[Count, Count], Verdict]) -> Verdict:
    """Apply a rule to the counts at the smallest and at the largest size."""
    if len(counts) < 2:
        return too_few("two sizes are needed")
    return rule(counts[min(counts)], counts[max(counts)])


FIGURE = ReportFigure(
    name="waiting",
    title="Waiting longer, for larger systems: α = 0.75, ρ̂ = 0.5",
    caption=(
        "The fraction of instances whose planted signal is found, with 95 % binomial intervals, for "
        "5, 20 and 100 sweeps at each temperature. The paper says that τ has to grow with N where a "
        "metastable state exists (right), and that the slow runs needed where none exists (left) "
        "are of a different kind. Instances with more than k planted columns, which have no exact "
        "solution of k columns, are not counted."
    ),
    sweeps=sweeps,
    draw=draw,
    judge=judge,
)
