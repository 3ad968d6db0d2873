"""Grow a support greedily, each time by the column that lowers the energy most."""

from l0anneal.engine.kernel import loop
from l0anneal.engine.moves.protocol import DONE, FULL
from l0anneal.engine.pivots import add
from l0anneal.engine.tableau import SIZE
from l0anneal.problem.admissibility import PIVOT

__all__ = ["pursue"]


@loop
def pursue(t, size):
    """Run orthogonal least squares until the support has ``size`` columns; return an outcome.

    The outcome is `FULL` if the best column is not admissible, or if no column is left to add.
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
