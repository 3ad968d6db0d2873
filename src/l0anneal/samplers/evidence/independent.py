"""Independent columns of a support, without a tableau over all columns of a large problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.workspace import Workspace
from l0anneal.problem.fits import columns_of
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["correlations", "independent"]

FEW = 1000  # columns whose Gram matrix is certainly whole, also if there are twice as many
Indices = NDArray[np.int64]


def independent(problem: SparseProblem, order: Indices, size: int | None = None) -> Indices:
    """Return the first ``size`` columns in the given order, without those in the span of others.

    Where the Gram matrix is not whole, each column in a tableau costs a row of it. The tableau is then
    one of the given columns alone.
    """
    size = order.size if size is None else size
    if not problem.gram_is_whole and 0 < size <= FEW:
        dense, signal = columns_of(problem, order[: min(2 * FEW, 2 * size + 10)])
        small = SparseProblem(dense, signal)
        found = order[independent(small, np.arange(dense.shape[1]), size)]
        if found.size == size or dense.shape[1] == order.size:
            return np.sort(found)
    workspace = Workspace(problem, size)
    for j in order:
        if workspace.size == size:
            break
        workspace.add(int(j))  # skips a column in the span of the previous ones
    return workspace.support


def correlations(problem: SparseProblem, columns: Indices) -> NDArray[np.float64]:
    """Return the correlations of some unit-norm columns."""
    if columns.size == 0:
        return np.zeros((0, 0))
    if problem.gram_is_whole:
        found = np.array([problem.gram_row(int(j))[columns] for j in columns])
    else:
        dense, _ = columns_of(problem, columns)
        found = dense.T @ dense
    np.fill_diagonal(found, 1.0)
    return found
