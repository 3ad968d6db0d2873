"""The first support of a tableau: none, or several columns at once."""

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.refresh import refresh
from l0anneal.engine.tableau import MOVES, REFRESHES, SINGULARITY, SIZE, Tableau
from l0anneal.problem.admissibility import PIVOT

__all__ = ["clear", "set_support"]


def clear(t: Tableau) -> None:
    """Remove all columns from the support."""
    t.counts[SIZE] = t.counts[MOVES] = 0
    t.outside[:] = np.arange(t.b.size)
    t.r[:], t.gamma[:] = t.b, t.diag
    t.values[:] = 0.0


def set_support(t: Tableau, columns: NDArray[np.int64]) -> bool:
    """Give an empty tableau, which must hold the whole Gram matrix, a support.

    Returns False, and leaves the support empty, unless all columns could also be added one after
    another, with the same outcome.
    """
    if not len(set(columns.tolist())) == columns.size <= t.inside.size:
        return False
    place, outside = np.arange(t.b.size).tolist(), np.arange(t.b.size).tolist()
    for j in columns.tolist():
        i = outside.pop()  # the last outside column takes the position of the one that leaves
        if i != j:
            outside[place[j]], place[i] = i, place[j]
    t.inside[: columns.size], t.outside[: len(outside)] = columns, outside
    t.counts[SIZE] = columns.size
    refreshes = t.counts[REFRESHES]
    # U_mm grows with each column, so that a support is admissible only if all before it were; by the
    # factor of two, rounding errors cannot decide otherwise than one by one
    if refresh(t) and 2.0 * PIVOT * t.values[SINGULARITY] < 1.0:
        return True
    clear(t)
    t.counts[REFRESHES] = refreshes
    return False
