"""The rows of the Gram matrix that a chain holds for its kernels.

Where the whole Gram matrix fits into memory, chains share it and nothing in this module is needed but
`first_rows`. Otherwise a tableau has room for some rows, and a new one takes the place of the row that
no kernel has used for longest.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.moves.protocol import SPARE_ROWS
from l0anneal.engine.tableau import CLOCK, SIZE, Tableau
from l0anneal.problem import scaled
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["ROWS_AT_ONCE", "first_rows", "fresh_rows", "hold_row", "with_room_for_rows"]

ROWS_AT_ONCE = 32  # rows of the Gram matrix that are computed between two looks at the clock

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def first_rows(problem: SparseProblem, capacity: int) -> tuple[Floats, Indices]:
    """Return ``gram`` and ``row_of`` of a new tableau: all rows of G, or room for rows."""
    n = problem.n_columns
    if problem.gram_is_whole:
        return problem.gram, np.arange(n, dtype=np.int64)
    n_rows = max(capacity + SPARE_ROWS, min(n, scaled.ROW_CACHE_BYTES // (8 * n)))
    return np.empty((n_rows, n)), np.full(n, -1, dtype=np.int64)


def fresh_rows(
    problem: SparseProblem, columns: Indices, pause: Callable[[], object]
) -> Iterator[tuple[slice, Floats]]:
    """Compute rows of the Gram matrix in blocks, and yield each with the slice of its columns."""
    for start in range(0, columns.size, ROWS_AT_ONCE):
        pause()
        cut = slice(start, start + ROWS_AT_ONCE)
        yield cut, problem.fresh_rows(columns[cut])


def hold_row(t: Tableau, j: int, row: Floats) -> None:
    """Hold row j of the Gram matrix, in place of the row unused for longest."""
    age = t.used.copy()
    rows = t.row_of[t.inside[: t.counts[SIZE]]]
    age[rows[rows >= 0]] = np.iinfo(np.int64).max  # rows of the support stay
    slot = int(np.argmin(age))
    t.row_of[t.row_of == slot] = -1
    t.gram[slot] = row
    t.counts[CLOCK] += 1
    t.used[slot] = t.counts[CLOCK]
    t.row_of[j] = slot


def with_room_for_rows(t: Tableau, n_rows: int) -> Tableau:
    """Return the tableau with room for ``n_rows`` rows of the Gram matrix, if it has less."""
    old = t.used.size
    if n_rows <= old:
        return t
    gram, used = np.empty((n_rows, t.b.size)), np.zeros(n_rows, dtype=np.int64)
    gram[:old], used[:old] = t.gram, t.used
    return t._replace(gram=gram, used=used)
