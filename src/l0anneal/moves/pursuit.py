"""Grow a support greedily: each time by the column that lowers the energy most."""

from l0anneal._kernel import loop
from l0anneal.moves.outcome import DONE, FULL
from l0anneal.pivots import add
from l0anneal.tableau import PIVOT, SIZE

__all__ = ["pursue"]


@loop
def pursue(t, size):  # type: ignore[no-untyped-def]
    """Orthogonal least squares up to ``size`` columns; outcome as of a move.

    `FULL` is returned when the best column may not join, or none is left that could.
    """
    while t.counts[SIZE] < size:
        most = -1.0
        n_zeros = t.b.size - t.counts[SIZE]
        chosen = n_zeros  # none
        for p in range(n_zeros):
            if t.gamma[p] > PIVOT * t.diag[t.zeros[p]]:
                gain = t.r[p] * t.r[p] / t.gamma[p]
                if gain > most:
                    most = gain
                    chosen = p
        if chosen == n_zeros:
            return FULL
        if t.row_of[t.zeros[chosen]] < 0:
            return t.zeros[chosen]
        if not add(t, chosen):
            return FULL
    return DONE
