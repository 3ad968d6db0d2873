"""Independent columns of a support, without a tableau over all columns of a large problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.workspace import Workspace
from l0anneal.problem.fits import columns_of
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["correlations", "independent"]

FEW = 1000  # columns whose tableau is certainly small
Indices = NDArray[np.int64]


def independent(problem: SparseProblem, order: Indices, size: int | None = None) -> Indices:
    """Return the first ``size`` columns in the given order, without those in the span of others.

    Where the Gram matrix has not been computed, because it is not whole or because there was no time, a
    tableau over all columns would be costly. The tableau is then one of the given columns alone.
    """
    size = order.size if size is None else size
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    if problem.A is not None and not problem.gram_is_ready and size <= FEW:
        some = order[: 2 * size + 10]
        found = _by_tableau(SparseProblem(*columns_of(problem, some)), np.arange(some.size), size)
        if found.size == size or some.size == order.size:
            return np.sort(some[found])
    return _by_tableau(problem, order, size)


def _by_tableau(problem: SparseProblem, order: Indices, size: int) -> Indices:
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
    if problem.A is None or problem.gram_is_ready:
        found = np.array([problem.gram_row(int(j))[columns] for j in columns])
    else:
        dense, _ = columns_of(problem, columns)
        found = dense.T @ dense
    np.fill_diagonal(found, 1.0)
    return found
