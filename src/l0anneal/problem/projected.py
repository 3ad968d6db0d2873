"""Problems with an intercept or with forced columns, which are projected out.

Suppose that an intercept and some forced columns F are always included when columns of X are chosen for
y. Let Q be an orthonormal basis of the span of C = (1, X_F). By the theorem of Frisch and Waugh,

    min over all coefficients of ½‖y − C c − X_S x‖²  =  min over x of ½‖(I − QQᵀ)(y − X_S x)‖²,

so that projecting y and X off this span includes the intercept and the forced columns exactly, at no
cost to the engine. A dense X is projected once. A sparse X stays sparse, and its Gram matrix is
corrected by −(QᵀX)ᵀ(QᵀX), whole or row by row. (Where the Gram matrix is not held whole, the engine also
keeps dense columns of a sparse X if they fit into `COLUMN_BYTES`, as for any sparse problem, because it
needs elements of the Gram matrix faster than sparse products can give them.)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.gram import gram_matrix
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["counting_as", "off_span", "orthonormal_basis", "projected_problem"]

ROUNDING = 1e-13  # a projected vector shorter than this fraction of the vector is a rounding error
CHUNK_BYTES = (
    2**20
)  # of products at a time: new memory for an array like X can cost more than the products
Floats = NDArray[np.float64]


def orthonormal_basis(C: Floats) -> Floats:
    """Return an orthonormal basis of the columns of C; columns dependent by `PIVOT` are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> orthonormal_basis(np.ones((4, 3))).shape
    (4, 1)
    """
    norms = np.linalg.norm(C, axis=0)
    kept = C[:, norms > 0] / norms[norms > 0]
    if kept.shape[1] == 0:
        return np.zeros((C.shape[0], 0))
    with one_blas_thread():
        Q, R, _ = scipy.linalg.qr(kept, mode="economic", pivoting=True)
    rank = int(np.sum(np.abs(np.diag(R)) > np.sqrt(PIVOT)))
    return np.asarray(Q[:, :rank])


def projected_problem(X: Any, y: Floats, Q: Floats, n_samples: int) -> SparseProblem:
    """Return the problem (X, y) projected off the span of the orthonormal columns of Q.

    Parameters
    ----------
    X : array or sparse matrix of shape (M, N)
        The columns to choose from.
    y : array of shape (M,)
        The signal.
    Q : array of shape (M, q)
        Orthonormal basis of the directions to project out.
    n_samples : int
        Number of samples of the problem, which is more than M − q where a row stands for several.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> problem = projected_problem(np.eye(3), y, np.ones((3, 1)) / np.sqrt(3.0), 2)
    >>> bool(np.isclose(2 * problem.energy([]) / 3, y.var()))
    True
    """
    y_left = off_span(y[:, None], Q)[:, 0]
    if np.linalg.norm(y_left) <= ROUNDING * np.linalg.norm(y):
        y_left = np.zeros_like(y_left)
    if scipy.sparse.issparse(X) and Q.shape[1]:
        problem: SparseProblem = _ProjectedSparse(X, y_left, Q)
    elif scipy.sparse.issparse(X):
        problem = SparseProblem(X, y_left)
    else:
        problem = SparseProblem(_left_over_columns(np.asarray(X, dtype=np.float64), Q), y_left)
    return counting_as(problem, n_samples)


def counting_as(problem: SparseProblem, n_samples: int) -> SparseProblem:
    """Return the same problem with another number of samples; the two share what is computed."""
    other = copy.copy(problem)
    other.n_samples = max(1, int(n_samples))
    return other


def off_span(columns: Floats, Q: Floats) -> Floats:
    """Project columns off the span of Q, twice, because rounding leaves a remainder the first time."""
    left = np.empty(columns.shape)
    rows = max(1, CHUNK_BYTES // (8 * max(1, columns.shape[1])))
    with one_blas_thread():
        for _ in range(2):
            along = Q.T @ columns
            for start in range(0, columns.shape[0], rows):  # without arrays of the size of X
                cut = slice(start, start + rows)
                np.subtract(columns[cut], Q[cut] @ along, out=left[cut])
            columns = left
    return left


def _left_over_columns(X: Floats, Q: Floats) -> Floats:
    if Q.shape[1] == 0:
        return X
    left = off_span(X, Q)
    within = _squares(left) <= ROUNDING**2 * _squares(X)
    if np.any(within):
        left[:, within] = 0.0
    return left


def _squares(X: Floats) -> Floats:
    return np.einsum("ij,ij->j", X, X)


class _ProjectedSparse(SparseProblem):
    """(I − QQᵀ)(A, y) with A kept sparse; y is given already projected."""

    def __init__(self, A: Any, y: Floats, Q: Floats) -> None:
        self._Q = Q
        self._QA = np.asarray((scipy.sparse.csc_array(A).T @ Q).T)
        super().__init__(A, y)

    def _norms(self) -> Floats:
        squares = super()._norms() ** 2
        left = squares - np.sum(self._QA**2, axis=0)
        # where most of a column is projected out, the difference would cancel: compute the norm
        for j in np.flatnonzero(left < 1e-3 * squares):
            left[j] = float(np.sum(self._columns(np.array([j])) ** 2))
        # the Gram matrix is a difference of squares, in which shorter columns are lost to rounding
        return np.where(left <= ROUNDING * squares, 0.0, np.sqrt(np.maximum(left, 0.0)))

    def _whole_gram(self, pause: Callable[[], object] = lambda: None) -> Floats:
        with one_blas_thread():
            QA = self._QA / self._scale
            G = gram_matrix(self.A, self._scale, pause) - QA.T @ QA
        zero = self.column_norms == 0
        G[zero] = 0.0
        G[:, zero] = 0.0
        return np.ascontiguousarray(G)

    def _column_blocks(self) -> Iterator[tuple[slice, Any]]:
        for cut, block in super()._column_blocks():
            yield cut, off_span(block, self._Q)

    def _correlate(self, v: Floats) -> Floats:
        correlation = (self.A.T @ v - self._QA.T @ (self._Q.T @ v)) / self._scale
        return np.where(self.column_norms > 0, correlation, 0.0)

    def _products(self, j: int) -> Floats:
        products = super()._products(j) - self._QA.T @ self._QA[:, j]
        there = (self.column_norms > 0) & (self.column_norms[j] > 0)
        return np.where(there, products, 0.0)

    def _columns(self, S: NDArray[np.int64]) -> Floats:
        return off_span(super()._columns(S), self._Q)
