"""Columns for a run that has no time to begin: chosen one by one, each the best beside those before it.

This is orthogonal least squares, written so that every step needs one row of the Gram matrix and nothing
else: no tableau, and not the whole Gram matrix, which may take longer than the time limit. With r the
correlations of all columns with the residual, γ their squared distances from the span of the chosen
columns, and G_j the row of the chosen column j,

    w = (G_j − Σ_i w_i w_ij) / √γ_j,     γ ← γ − w²,     r ← r − w r_j / √γ_j,

where the sum runs over the columns chosen before, and column j lowers the energy by r_j²/(2γ_j).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.chance import UNLIKELY, log_chance
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.run import Run
from l0anneal.samplers.schedule import Schedule

__all__ = ["NOT_BEGUN", "NO_SCHEDULE", "Greedy", "completed", "counted_order", "greedy_order"]

NOT_BEGUN = "time limit, before the first step: the columns were chosen greedily"
NO_SCHEDULE = Schedule((0.0,), (1,), "not begun")
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Greedy:
    """Columns that are chosen one by one.

    Attributes
    ----------
    chosen : list of int
        The columns so far, in the order in which they were chosen.

    Examples
    --------
    >>> import numpy as np
    >>> greedy = Greedy(SparseProblem(np.eye(3), [3.0, 0.0, 1.0]))
    >>> greedy.step(), greedy.step(), greedy.chosen
    (True, True, [0, 2])
    """

    def __init__(self, problem: SparseProblem, usable: NDArray[np.bool_] | None = None) -> None:
        self.problem = problem
        self.chosen: list[int] = []
        self.correlations = problem.unit_correlation.copy()
        self.distances = problem.unit_diagonal()
        if usable is not None:
            self.distances[~usable] = 0.0
        self.left = 2.0 * problem.unit_signal  # ‖residual‖² in the engine's units
        self._directions: list[Floats] = []

    @property
    def gains(self) -> Floats:
        """By how much each column would lower ‖residual‖²; −1 where it is not admissible."""
        open_ = self.distances > PIVOT
        return np.where(open_, self.correlations**2 / np.maximum(self.distances, PIVOT), -1.0)

    def step(self, only_clear: bool = False) -> bool:
        """Choose the next column; return False if there is none.

        With ``only_clear``, columns that may explain as much by chance are not chosen.
        """
        gains = self.gains
        j = int(np.argmax(gains))
        n_chosen, problem = len(self.chosen), self.problem
        if gains[j] < 0 or n_chosen >= problem.n_samples:
            return False
        if only_clear:
            left = 1.0 - float(gains[j]) / self.left if self.left > 0 else 1.0
            n, m = problem.n_columns - n_chosen, problem.n_samples - n_chosen
            if log_chance(n, m, 1, max(left, 1e-15)) >= UNLIKELY:
                return False
        direction = problem.fresh_row(j).copy()
        for w in self._directions:
            direction -= w[j] * w
        direction /= math.sqrt(self.distances[j])
        self.left -= float(gains[j])
        self.correlations -= direction * (self.correlations[j] / math.sqrt(self.distances[j]))
        self.distances -= direction**2
        self.distances[j] = 0.0
        self._directions.append(direction)
        self.chosen.append(j)
        return True


def greedy_order(
    run: Run, problem: SparseProblem, size: int | None, usable: NDArray[np.bool_] | None = None
) -> Indices:
    """Return ``size`` columns, the best first, as well as the rest of the time limit allows.

    Columns for which there is no time are those that lower the energy most by themselves. If ``size`` is
    None, columns are chosen while they explain clearly more than chance would. ``usable`` tells which
    columns may be chosen.
    """
    return counted_order(run, problem, size, usable)[0]


def counted_order(
    run: Run,
    problem: SparseProblem,
    size: int | None,
    usable: NDArray[np.bool_] | None = None,
    replay: int | None = None,
) -> tuple[Indices, int]:
    """Return the columns of `greedy_order`, and how many of them there was time to choose one by one.

    This number, passed as ``replay``, gives the same columns again.
    """
    greedy = Greedy(problem, usable)
    took = 0.0
    while size is None or len(greedy.chosen) < size:
        began = run.now()
        late = began + took > run.deadline if replay is None else len(greedy.chosen) >= replay
        if run.stopped or late or not greedy.step(size is None):
            break
        took = run.now() - began
        run.note(f"no time to begin: {len(greedy.chosen)} greedy columns")
    chosen = np.array(greedy.chosen, dtype=np.int64)
    return (chosen if size is None else completed(chosen, greedy.gains, size)), chosen.size


def completed(chosen: Indices, gains: Floats, size: int) -> Indices:
    """Return the chosen columns and, up to ``size``, the others with the largest gains."""
    others = np.argsort(-gains, kind="stable")
    others = others[~np.isin(others, chosen)]
    return np.concatenate([chosen, others[: max(0, size - chosen.size)]]).astype(np.int64)
