"""From a table of data to a problem for the engine, and from its answer back to coefficients.

A row of weight w counts as w rows: it is multiplied by √w, and the number of samples is the sum of
the weights. A ridge α on the coefficients (not on the intercept) is √α times the identity below X
and zeros below y. Intercept and columns that are always included are projected out (`projected`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.projected import counting_as, off_span, orthonormal_basis, projected_problem
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Design"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Design:
    """Validated data, ready for the engine.

    Attributes
    ----------
    problem : SparseProblem
        Of the columns that can be chosen, with the others projected out.
    candidates : ndarray
        Which columns of X those are: not the forced ones, nor those without anything left.
    forced : ndarray
        Columns of X that are always included.
    n_samples : float
        Sum of the weights.
    n_projected : int
        Dimensions projected out: independent forced columns and the intercept.
    """

    X: Any
    y: Floats
    roots: Floats  # of the weights, by row; zero on the ridge's rows
    fit_intercept: bool
    forced: Indices
    candidates: Indices
    C: Floats
    Q: Floats
    problem: SparseProblem
    n_samples: float
    n_rows: int

    @classmethod
    def of(
        cls,
        X: Any,
        y: Floats,
        *,
        fit_intercept: bool = True,
        forced: Indices | None = None,
        alpha: float = 0.0,
        weights: Floats | None = None,
    ) -> Design:
        """Prepare X of shape (M, N), dense or sparse, and y; rows of weight zero are dropped."""
        forced = np.zeros(0, dtype=np.int64) if forced is None else forced
        sparse = scipy.sparse.issparse(X)
        X = scipy.sparse.csr_array(X) if sparse else np.asarray(X, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        roots = np.ones(y.size)
        if weights is not None:
            there = weights > 0
            if not np.any(there):
                raise ValueError("all sample weights are zero; at least one must be positive")
            X, y, weights = X[there], y[there], weights[there]
            roots = np.sqrt(weights)
            X = scipy.sparse.diags_array(roots) @ X if sparse else roots[:, None] * X
            y = roots * y
        n_rows, n_columns = X.shape
        n_samples = float(n_rows if weights is None else weights.sum())
        if alpha:
            if sparse:
                below = np.sqrt(alpha) * scipy.sparse.eye_array(n_columns)
                X = scipy.sparse.vstack([X, below])
            else:
                X = np.vstack([X, np.sqrt(alpha) * np.eye(n_columns)])
            y = np.concatenate([y, np.zeros(n_columns)])
            roots = np.concatenate([roots, np.zeros(n_columns)])
        X = scipy.sparse.csc_array(X) if sparse else X
        C = _dense(X[:, forced])
        if fit_intercept:
            C = np.column_stack([roots, C])
        Q = orthonormal_basis(C)
        n_free = y.size - Q.shape[1]
        others = np.setdiff1d(np.arange(n_columns), forced)
        # a signal for the engine also where there is no column to choose
        problem = projected_problem(X[:, others], y, Q, n_free) if others.size else None
        usable = np.flatnonzero(problem.column_norms) if problem is not None else others
        if problem is None or usable.size < others.size:
            others = others[usable]
            columns = X[:, others] if others.size else np.zeros((y.size, 1))
            problem = projected_problem(columns, y, Q, n_free)
        return cls(X, y, roots, fit_intercept, forced, others, C, Q, problem, n_samples, n_rows)

    @property
    def n_projected(self) -> int:
        """Dimensions projected out."""
        return int(self.Q.shape[1])

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    @property
    def most(self) -> int:
        """Candidates that a support can have, as far as rows (with those of a ridge) go."""
        return max(0, min(self.candidates.size, self.y.size - self.n_projected))

    def counted(self) -> SparseProblem:
        """The problem counted in weights: for what depends on how many samples there are."""
        return counting_as(self.problem, round(self.n_samples) - self.n_projected)

    def solve(self, support: Indices) -> tuple[Floats, float, float]:
        """Coefficients of all columns, intercept and energy of candidates ``support``."""
        x, energy = self.problem.least_squares(support)
        coef, intercept = self.complete(self.spread(x, support))
        return coef, intercept, energy

    def spread(self, values: Floats, support: Indices | None = None) -> Floats:
        """Values of candidates (all, or those of a support) in their places among all columns."""
        places = self.candidates if support is None else self.candidates[support]
        out = np.zeros(self.n_columns)
        out[places] = values
        return out

    def complete(self, coef: Floats) -> tuple[Floats, float]:
        """Add what is best of the forced columns and the intercept to the others' coefficients."""
        if self.C.shape[1] == 0:
            return coef, 0.0
        used = np.flatnonzero(coef)
        residual = self.y - self.X[:, used] @ coef[used]
        norms = np.linalg.norm(self.C, axis=0)
        norms = np.where(norms > 0, norms, 1.0)
        c = np.zeros(norms.size)
        with one_blas_thread():
            for _ in range(2):
                left = residual - self.C @ (c / norms)
                c += scipy.linalg.lstsq(self.C / norms, left, cond=1e-7, lapack_driver="gelsy")[0]
        c = c / norms
        coef = coef.copy()
        coef[self.forced] = c[1:] if self.fit_intercept else c
        return coef, float(c[0]) if self.fit_intercept else 0.0

    def columns(self, support: Indices) -> Floats:
        """The columns of a support, projected, dense and of unit norm."""
        columns = off_span(_dense(self.X[:, self.candidates[support]]), self.Q)
        return columns / np.linalg.norm(columns, axis=0)

    def independent(self, support: Indices, weight: Floats) -> Indices:
        """The support without columns that those of larger weight span; sorted."""
        ordered = support[np.argsort(-weight[support], kind="stable")]
        columns = self.columns(ordered)
        basis = np.zeros((columns.shape[0], 0))
        kept = []
        for j in range(ordered.size):
            left = off_span(columns[:, j : j + 1], basis)
            length = float(np.linalg.norm(left))
            if length**2 > PIVOT:
                basis = np.hstack([basis, left / length])
                kept.append(j)
        return np.sort(ordered[kept])

    def leave_one_out(self, support: Indices) -> float:
        """Mean squared error of predicting each row by a fit of this fixed support without it.

        From one fit: e_i / (1 − h_i), with h_i the squared length of row i of an orthonormal basis
        of the columns. A row of weight w loses one of its w copies; of w < 1, all of it.
        """
        S = self.candidates[support]
        with one_blas_thread():
            columns = np.column_stack([self.C, _dense(self.X[:, S])])
            basis = orthonormal_basis(columns)
            residual = (self.y - basis @ (basis.T @ self.y))[: self.n_rows]
        roots = self.roots[: self.n_rows]
        leverage = np.sum(basis[: self.n_rows] ** 2, axis=1) / np.maximum(1.0, roots**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = residual / roots / (1.0 - leverage)
        error = np.where(leverage < 1 - 1e-12, error, np.inf)
        return float(np.sum(roots**2 * error**2) / self.n_samples)


def _dense(columns: Any) -> Floats:
    dense = columns.toarray() if scipy.sparse.issparse(columns) else columns
    return np.asarray(dense, dtype=np.float64)
