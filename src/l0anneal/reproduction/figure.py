"""The parts of a figure of the report: its text, its sweeps, its drawing and its judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from l0anneal.reproduction.analysis import Data
from l0anneal.reproduction.rows import Row
from l0anneal.reproduction.sweeps import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ReportFigure"]


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report.

    Attributes
    ----------
    name : str
        Names the figure on the command line and its files.
    title, caption : str
        The heading, and what the reader should see in the figure.
    sweeps : callable
        Takes ``quick`` (small sizes and few samples) and returns the sweeps that the figure needs,
        by name.
    draw, judge : callable
        Take the measured data of these sweeps by name. ``draw`` returns the drawing, ``judge`` the
        figure's rows of the verdict table.
    findings : callable, optional
        Takes the same data and returns sentences with numbers that follow the caption.
    in_quick : bool
        Whether the quick report has the figure even if nobody asks for it: few samples of small sizes
        should show something.
    """

    name: str
    title: str
    caption: str
    sweeps: Callable[[bool], Mapping[str, Sweep]]
    draw: Callable[[Data], Figure]
    judge: Callable[[Data], list[Row]]
    findings: Callable[[Data], str] | None = None
    in_quick: bool = True
