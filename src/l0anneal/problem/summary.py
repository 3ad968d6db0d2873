"""Problems from summary statistics: z-scores, or effects with standard errors, and correlations.

Geneticists and meta-analysts often have no rows, but for each column the result of a simple regression
(with an intercept) of the signal on that column, the correlations R of the columns, and the number of
samples n. These determine the regression on all columns. Let s_j² and σ² be the variances of column j
and of the signal, both with n − 1 in the denominator. The simple regression on column j has the slope
β_j, its standard error e_j, and z_j = β_j/e_j, where

    β_j = r_j σ/s_j,      e_j² = (1 − r_j²) σ² / ((n − 2) s_j²),      r_j = correlation with the signal,

so that r_j² = z_j² / (z_j² + n − 2). With the *adjusted* z-score

    z̃_j = z_j √((n − 1) / (z_j² + n − 2)) = √(n − 1) r_j,

the sums over the centred rows are

    G = (n − 1) diag(s) R diag(s),      b = √(n − 1) σ diag(s) z̃,      ‖y‖² = (n − 1) σ².

With z-scores alone, s_j = 1 and σ = 1: coefficients are in standard deviations of the signal per
standard deviation of the column. With effects, s_j² = σ²/(e_j² (z_j² + n − 2)): coefficients are in the
units of the effects, whatever σ is. The intercept costs one degree of freedom: the problem has n − 1
samples.

The equations are exact if z and R come from the same n rows. They hold approximately for z-scores of
other models with many samples, such as logistic regression, and for R from similar rows. Whether z and
R belong together is the subject of `l0anneal.problem.summary_check`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_integer, check_positive
from l0anneal.problem.arrays import check_real, check_vector

__all__ = ["Summary", "adjusted", "check_correlations", "read_summary", "rounding_of"]

DECIMALS = 1e-3  # correlations may have been rounded to three decimals
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Summary:
    """Checked summary statistics: z-scores, given and adjusted, R, n, and the columns' scales."""

    scores: Floats
    z: Floats
    R: Floats
    n: int
    column_std: Floats
    signal_variance: float

    def statistics(self) -> tuple[Floats, Floats, float]:
        """Return AᵀA, Aᵀy and ‖y‖² of the centred rows."""
        std, rows = self.column_std, self.n - 1
        gram = rows * std[:, None] * self.R * std
        correlation = math.sqrt(rows * self.signal_variance) * std * self.z
        return gram, correlation, rows * self.signal_variance

    def explained(self) -> float:
        """Return the share of the signal's variance that all columns explain; impossible above 1.

        R counts as R + εI with ε from `rounding_of`, which lowers the share: a part of z outside the
        range of R counts with 1/ε, and rounded numbers do not exceed 1 (see `check_possible` in
        `l0anneal.problem.gram`).
        """
        R = self.R + rounding_of(len(self.R)) * np.eye(len(self.R))
        with one_blas_thread():
            factor = scipy.linalg.cholesky(R, lower=True, check_finite=False)
            projection = scipy.linalg.solve_triangular(factor, self.z, lower=True)
        return float(projection @ projection) / (self.n - 1)


def read_summary(
    z: ArrayLike | None,
    R: ArrayLike | None,
    n: int | None,
    effect: ArrayLike | None = None,
    standard_error: ArrayLike | None = None,
    signal_variance: float = 1.0,
) -> Summary:
    """Check the arguments of `SparseProblem.from_summary` one by one, and adjust the z-scores.

    Examples
    --------
    >>> summary = read_summary(None, np.eye(2), 102, effect=[3.0, 0.0], standard_error=[0.3, 0.5])
    >>> summary.z.round(3), summary.column_std.round(3)
    (array([7.106, 0.   ]), array([0.236, 0.2  ]))
    """
    if R is None or n is None:
        raise ValueError(
            "summary statistics need R, the correlations of the columns, and n, the number of "
            f"samples; got {'no R' if R is None else 'no n'}: give both"
        )
    n = check_integer("n", n, 3)
    sigma2 = check_positive("signal_variance", signal_variance)
    R = check_correlations(R)
    N = len(R)
    why = f"R has {N} columns"
    if (z is None) == (effect is None and standard_error is None):
        raise ValueError(
            "summary statistics need z, or effect and standard_error; got "
            f"{'none of them' if z is None else 'both'}: give one or the other"
        )
    if z is not None:
        scores = check_vector(z, "z", N, why)
        return Summary(scores, adjusted(scores, n), R, n, np.ones(N), sigma2)
    if effect is None or standard_error is None:
        missing = "effect" if effect is None else "standard_error"
        raise ValueError(f"effect and standard_error belong together; got no {missing}: give both")
    effects = check_vector(effect, "effect", N, why)
    errors = check_vector(standard_error, "standard_error", N, why)
    if not np.all(errors > 0):
        raise ValueError(
            f"standard errors must be positive; got {np.min(errors):g} at column "
            f"{np.argmin(errors)}: drop the columns without one"
        )
    scores = effects / errors
    column_std = np.sqrt(sigma2) / (errors * np.sqrt(scores**2 + n - 2))
    return Summary(scores, adjusted(scores, n), R, n, column_std, sigma2)


def adjusted(z: Floats, n: int) -> Floats:
    """Return z̃ = √(n − 1) r, from the z-scores of simple regressions with n samples."""
    return z * np.sqrt((n - 1) / (z**2 + n - 2))


def rounding_of(n_columns: int) -> float:
    """Return the size of an eigenvalue that rounding R to three decimals can make or hide.

    The errors of the elements are then uniform with a standard deviation of 1e-3/√12, and a symmetric
    matrix of such errors has eigenvalues up to 2√N times that.

    Examples
    --------
    >>> round(rounding_of(100), 5)
    0.00577
    """
    return 2.0 * DECIMALS / math.sqrt(12.0) * math.sqrt(n_columns)


def check_correlations(R: ArrayLike) -> Floats:
    """Return a correlation matrix as float64, exactly symmetric and without negative eigenvalues.

    Eigenvalues down to −`rounding_of` are taken for rounding errors: R is then mixed with as much of the
    identity as makes the smallest one zero.
    """
    matrix = np.asarray(R)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"R must be a square matrix of correlations; got shape {matrix.shape}")
    matrix = check_real(matrix, "R")
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.max() > DECIMALS:
        i, j = divmod(int(np.argmax(asymmetry)), len(matrix))
        raise ValueError(
            f"R must be symmetric; got {matrix[i, j]:.4g} at ({i}, {j}) and {matrix[j, i]:.4g} at "
            f"({j}, {i}): give the full matrix, not a triangle"
        )
    off = np.abs(np.diag(matrix) - 1.0)
    if off.max() > DECIMALS:
        j = int(np.argmax(off))
        raise ValueError(
            f"R must have ones on its diagonal; got {matrix[j, j]:.4g} at column {j}: give "
            "correlations, not covariances, and drop columns that are constant"
        )
    if np.abs(matrix).max() > 1.0 + DECIMALS:
        i, j = divmod(int(np.argmax(np.abs(matrix))), len(matrix))
        raise ValueError(
            f"correlations must lie between −1 and 1; got {matrix[i, j]:.4g} at ({i}, {j}): give "
            "correlations r, not covariances"
        )
    matrix = 0.5 * (matrix + matrix.T)
    np.fill_diagonal(matrix, 1.0)
    with one_blas_thread():
        try:  # much cheaper than the eigenvalue, which is needed only if this fails
            scipy.linalg.cholesky(matrix + 1e-10 * np.eye(len(matrix)), check_finite=False)
        except np.linalg.LinAlgError:
            return _without_negative_eigenvalues(matrix)
    return matrix


def _without_negative_eigenvalues(R: Floats) -> Floats:
    smallest = float(scipy.linalg.eigvalsh(R, subset_by_index=(0, 0))[0])
    if smallest < -rounding_of(len(R)):
        raise ValueError(
            f"R must be positive semidefinite; its smallest eigenvalue is {smallest:.3g}, and "
            f"rounding explains no more than −{rounding_of(len(R)):.2g}: compute all "
            "correlations from the same rows, not pair by pair"
        )
    if smallest < 0:
        R = R / (1.0 - smallest)
        np.fill_diagonal(R, 1.0)
    return R
