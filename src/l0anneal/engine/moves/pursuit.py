"""Grow a support greedily: each time by the column that lowers the energy most."""

from l0anneal.engine.kernel import loop
from l0anneal.engine.moves.outcome import DONE, FULL
from l0anneal.engine.pivots import add
from l0anneal.engine.tableau import SIZE
from l0anneal.problem.admissibility import PIVOT

__all__ = ["pursue"]


@loop
def pursue(t, size):  # type: ignore[no-untyped-def]
    """Orthogonal least squares up to ``size`` columns; outcome as of a move.

    `FULL` is returned when the best column may not join, or none is left that could.
    """
    while t.counts[SIZE] < size:
        most = -1.0
        n_outside = t.b.size - t.counts[SIZE]
        chosen = n_outside  # none
        for p in range(n_outside):
            if t.gamma[p] > PIVOT * t.diag[t.outside[p]]:
                gain = t.r[p] * t.r[p] / t.gamma[p]
                if gain > most:
                    most = gain
                    chosen = p
        if chosen == n_outside:
            return FULL
        if t.row_of[t.outside[chosen]] < 0:
            return t.outside[chosen]
        if not add(t, chosen):
            return FULL
    return DONE
