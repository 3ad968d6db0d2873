"""The figures of the report, one file each, in the order of the report."""

from __future__ import annotations

from collections.abc import Iterable

from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.figures import (
    computation_time,
    easy,
    entropy,
    equilibrium,
    escape,
    freezing,
    ground_state,
    hard,
    metastable,
    noise_only,
    noisy,
    phase_diagram,
    population,
    rho,
    seeded,
    slow,
    waiting,
)
from l0anneal.reproduction.sweeps import Sweep

__all__ = ["FIGURES", "figure_names", "sweeps_of"]

FIGURES: dict[str, ReportFigure] = {
    module.FIGURE.name: module.FIGURE
    for module in (
        easy,
        phase_diagram,
        hard,
        metastable,
        entropy,
        slow,
        waiting,
        freezing,
        noise_only,
        computation_time,
        rho,
        noisy,
        seeded,
        equilibrium,
        escape,
        ground_state,
        population,
    )
}


def figure_names(figures: Iterable[str] = (), quick: bool = False) -> list[str]:
    """Return the given names or, if none is given, those of all figures of the (quick) report.

    Examples
    --------
    >>> figure_names(["slow"]), len(figure_names()), len(figure_names(quick=True))
    (['slow'], 17, 13)
    """
    names = list(figures) or [
        name for name, figure in FIGURES.items() if figure.in_quick or not quick
    ]
    if unknown := [name for name in names if name not in FIGURES]:
        raise ValueError(f"there is no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    return names


def sweeps_of(figures: Iterable[str] = (), quick: bool = False) -> dict[str, Sweep]:
    """Return the sweeps that the given figures need, by name; of the whole report if none is given.

    Examples
    --------
    >>> sorted(sweeps_of(["slow"]))
    ['rapid', 'slow']
    """
    return {
        name: sweep
        for figure in figure_names(figures, quick)
        for name, sweep in FIGURES[figure].sweeps(quick).items()
    }
