"""Turn regression data into a problem for the engine, and its answer into coefficients.

A row of weight w counts as w rows: it is multiplied by √w, and the number of samples is the sum of the
weights. A ridge α on the coefficients (but not on the intercept) is √α times the identity appended below
X, and zeros below y. The intercept and the columns that are always included are projected out (see
`projected`). Rows that were added up are replaced by a few rows with the same sums (see `moments`).
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
from l0anneal.problem.moments import Moments
from l0anneal.problem.projected import counting_as, off_span, orthonormal_basis, projected_problem
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Design"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Design:
    """Regression data, prepared for the engine.

    Attributes
    ----------
    problem : SparseProblem
        The problem of choosing among the candidates, with the other columns projected out.
    candidates : ndarray
        Columns of X that can be chosen: those that are not forced and do not lie in the span of the
        forced columns and the intercept.
    forced : ndarray
        Columns of X that are always included.
    n_samples : float
        Sum of the weights.
    n_rows : int
        Rows of positive weight.
    n_equations : int
        Rows of the least-squares problem: these and, with a ridge, one for each column.
    compact : bool
        Whether X and y are not the rows themselves, but fewer with the same sums.
    n_projected : int
        Dimensions projected out: independent forced columns and the intercept.
    """

    X: Any
    y: Floats
    roots: Floats  # square roots of the weights, by row; zero for the rows of the ridge
    fit_intercept: bool
    forced: Indices
    candidates: Indices
    C: Floats
    Q: Floats
    problem: SparseProblem
    n_samples: float
    n_rows: int
    n_equations: int
    compact: bool = False

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
        roots, n_samples = np.ones(y.size), float(y.size)
        if weights is not None:
            X, y, roots, n_samples = _apply_weights(X, y, weights)
        options: dict[str, Any] = {"fit_intercept": fit_intercept, "forced": forced, "alpha": alpha}
        return cls._prepared(X, y, roots, n_samples=n_samples, n_rows=y.size, **options)

    @classmethod
    def of_sums(
        cls,
        sums: Moments,
        *,
        fit_intercept: bool = True,
        forced: Indices | None = None,
        alpha: float = 0.0,
    ) -> Design:
        """Prepare rows that were added up."""
        roots, X, y = sums.compact()
        forced = np.zeros(0, dtype=np.int64) if forced is None else forced
        options: dict[str, Any] = {"fit_intercept": fit_intercept, "forced": forced, "alpha": alpha}
        return cls._prepared(
            X, y, roots, n_samples=sums.weight, n_rows=sums.n_rows, compact=True, **options
        )

    @classmethod
    def _prepared(
        cls,
        X: Any,
        y: Floats,
        roots: Floats,
        *,
        fit_intercept: bool,
        forced: Indices,
        alpha: float,
        n_samples: float,
        n_rows: int,
        compact: bool = False,
    ) -> Design:
        """Append the ridge to weighted rows, and project out what is always included."""
        n_columns, n_equations = X.shape[1], n_rows
        sparse = scipy.sparse.issparse(X)
        if alpha:
            X = _append_ridge(X, alpha)
            y = np.concatenate([y, np.zeros(n_columns)])
            roots = np.concatenate([roots, np.zeros(n_columns)])
            n_equations += n_columns
        X = scipy.sparse.csc_array(X) if sparse else X
        C = _dense(X[:, forced])
        if fit_intercept:
            C = np.column_stack([roots, C])
        Q = orthonormal_basis(C)
        n_free = n_equations - Q.shape[1]
        others = np.setdiff1d(np.arange(n_columns), forced)
        # without a column to choose from, a zero column gives the engine a problem all the same
        columns = X if others.size == n_columns else X[:, others]
        problem = projected_problem(columns, y, Q, n_free) if others.size else None
        usable = np.flatnonzero(problem.column_norms) if problem is not None else others
        if problem is None or usable.size < others.size:
            others = others[usable]
            columns = X[:, others] if others.size else np.zeros((y.size, 1))
            problem = projected_problem(columns, y, Q, n_free)
        return cls(
            X,
            y,
            roots,
            fit_intercept,
            forced,
            others,
            C,
            Q,
            problem,
            n_samples,
            n_rows,
            n_equations,
            compact,
        )

    @property
    def outputs(self) -> tuple[Design, ...]:
        """The data of each output: here of the only one."""
        return (self,)

    @property
    def n_projected(self) -> int:
        """Dimensions projected out."""
        return int(self.Q.shape[1])

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def most(self) -> int:
        """Largest possible size of a support, given the numbers of candidates and rows."""
        return max(0, min(self.candidates.size, self.n_equations - self.n_projected))

    def counted(self) -> SparseProblem:
        """Return the problem with the sum of the weights as its number of samples."""
        return counting_as(self.problem, round(self.n_samples) - self.n_projected)

    def solve(self, support: Indices) -> tuple[Floats, float, float]:
        """Return coefficients of all columns, intercept and energy of a support of candidates."""
        x, energy = self.problem.least_squares(support)
        coef, intercept = self.complete(self.spread(x, support))
        return coef, intercept, energy

    def spread(self, values: Floats, support: Indices | None = None) -> Floats:
        """Return values of all candidates, or of a support, as an array over all columns of X."""
        places = self.candidates if support is None else self.candidates[support]
        out = np.zeros(self.n_columns)
        out[places] = values
        return out

    def complete(self, coef: Floats) -> tuple[Floats, float]:
        """Add the least-squares coefficients of forced columns and intercept to the given ones."""
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
        """Return the projected columns of a support as a dense array of unit-norm columns."""
        columns = off_span(_dense(self.X[:, self.candidates[support]]), self.Q)
        return columns / np.linalg.norm(columns, axis=0)

    def independent(self, support: Indices, weight: Floats) -> Indices:
        """Return the sorted support without columns in the span of those with larger ``weight``."""
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
        """Return the mean squared leave-one-out error of a fixed support.

        It is computed from one fit: the error of row i is e_i / (1 − h_i), where e_i is its residual
        and h_i the squared norm of row i of an orthonormal basis of the columns. A row of weight w
        loses one of its w copies, and a row of weight w < 1 is left out entirely. It is NaN if the rows
        were added up, because it needs each of them.
        """
        if self.compact:
            return float("nan")
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


def _apply_weights(X: Any, y: Floats, weights: Floats) -> tuple[Any, Floats, Floats, float]:
    """Return X and y times the roots of the positive weights, the roots, and the sum of weights."""
    positive = weights > 0
    if not np.any(positive):
        raise ValueError("all sample weights are zero; at least one must be positive")
    X, y, weights = X[positive], y[positive], weights[positive]
    roots = np.sqrt(weights)
    X = scipy.sparse.diags_array(roots) @ X if scipy.sparse.issparse(X) else roots[:, None] * X
    return X, roots * y, roots, float(weights.sum())


def _append_ridge(X: Any, alpha: float) -> Any:
    """Append √α times the identity below X."""
    if scipy.sparse.issparse(X):
        return scipy.sparse.vstack([X, np.sqrt(alpha) * scipy.sparse.eye_array(X.shape[1])])
    return np.vstack([X, np.sqrt(alpha) * np.eye(X.shape[1])])


def _dense(columns: Any) -> Floats:
    dense = columns.toarray() if scipy.sparse.issparse(columns) else columns
    return np.asarray(dense, dtype=np.float64)
