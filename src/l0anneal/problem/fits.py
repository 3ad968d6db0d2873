"""What supports explain of a signal, in numbers without units.

All energies here are fractions of ‖y‖², and columns have unit norm, so that nothing changes if a
column or the signal is rescaled. The columns are taken from A, because AᵀA squares the condition
number; a problem that was given by AᵀA is treated by Cholesky factorisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = [
    "columns_of",
    "left_after",
    "losses",
    "partial_correlations",
    "rounding",
    "spread_of_fits",
    "triangular",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def rounding(problem: SparseProblem) -> float:
    """Return the fraction of ‖y‖² below which the energy of a support is a rounding error.

    A problem that is given by AᵀA has no residuals, and its energies are differences of squares.
    """
    return 1e-28 if problem.A is not None else 1e-14


def triangular(problem: SparseProblem, support: Indices) -> tuple[Floats, Floats]:
    """Return R and Qᵀy of the QR factorisation of the columns, which must be independent.

    Examples
    --------
    >>> import numpy as np
    >>> R, z = triangular(SparseProblem(np.eye(3), [3.0, 0.0, 4.0]), np.array([2, 0]))
    >>> np.abs(z)
    array([0.8, 0.6])
    """
    norm = math.sqrt(problem.signal_energy) or 1.0
    with one_blas_thread():
        if problem.A is None:
            b = problem.unit_correlation[support] * (math.sqrt(problem.unit_energy) / norm)
            R = scipy.linalg.cholesky(problem.gram[np.ix_(support, support)])
            return R, scipy.linalg.solve_triangular(R, b, trans="T") if b.size else b
        Q, R = scipy.linalg.qr(_unit_columns(problem, support), mode="economic")
        return R, Q.T @ (_signal(problem) / norm)


def losses(R: Floats, z: Floats) -> Floats:
    """Return what each column explains that the others cannot, from what `triangular` returned.

    Examples
    --------
    >>> import numpy as np
    >>> losses(np.eye(2), np.array([0.8, 0.6])).round(2)
    array([0.64, 0.36])
    """
    if z.size == 0:
        return np.zeros(0)
    inverse = scipy.linalg.solve_triangular(R, np.eye(z.size))
    return np.asarray((inverse @ z) ** 2 / np.sum(inverse**2, axis=1))


def left_after(problem: SparseProblem, support: Indices) -> tuple[Indices, Floats]:
    """Sort the columns by their `losses`, the largest first; tell what the first 0, 1, ..., k leave.

    Examples
    --------
    >>> import numpy as np
    >>> order, left = left_after(SparseProblem(np.eye(3), [3.0, 0.0, 4.0]), np.array([0, 2]))
    >>> order, left.round(2)
    (array([2, 0]), array([1.  , 0.36, 0.  ]))
    """
    order = support[np.argsort(-losses(*triangular(problem, support)), kind="stable")]
    _, z = triangular(problem, order)
    norm = problem.signal_energy or 1.0
    last = max(2.0 * problem.energy(support) / norm, rounding(problem))
    return order, last + np.append(np.cumsum(z[::-1] ** 2)[::-1], 0.0)


def spread_of_fits(problem: SparseProblem, supports: Sequence[Indices]) -> float:
    """Return the mean of ½‖A(x_a − x_b)‖² over pairs of at least two supports.

    It is computed as Σ ‖A(x_a − x̄)‖² / (n − 1) with the mean x̄ of the coefficients of n supports.

    Examples
    --------
    >>> import numpy as np
    >>> problem = SparseProblem(np.eye(3), [3.0, 0.0, 4.0])
    >>> round(spread_of_fits(problem, [np.array([0]), np.array([2])]), 2)
    0.5
    """
    norm = math.sqrt(problem.signal_energy) or 1.0
    used = np.unique(np.concatenate([*supports]))
    coefs = np.zeros((len(supports), used.size))
    for row, support in zip(coefs, supports):
        row[np.searchsorted(used, support)] = problem.least_squares(support)[0] / norm
    apart = (coefs - coefs.mean(axis=0)) * problem.column_norms[used]
    with one_blas_thread():
        if problem.A is not None:
            squares = float(np.sum((apart @ _unit_columns(problem, used).T) ** 2))
        else:
            squares = float(np.sum((apart @ problem.gram[np.ix_(used, used)]) * apart))
    return max(0.0, squares) / (len(supports) - 1)


def partial_correlations(problem: SparseProblem, columns: Indices, given: Indices) -> Floats:
    """Return the correlations of columns after regression on the columns ``given``.

    A column in the span of ``given`` has correlation 0 with all others. The means are not
    subtracted: add a constant column to ``given`` for that.

    Examples
    --------
    >>> import numpy as np
    >>> problem = SparseProblem(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 0.0]]), [1.0, 1.0])
    >>> partial_correlations(problem, np.array([1, 2]), np.array([0])).round(2)
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    together = np.concatenate((given, columns))
    with one_blas_thread():
        if problem.A is None:
            G = problem.gram[np.ix_(together, together)]
        else:
            unit = _unit_columns(problem, together)
            G = unit.T @ unit
        g = given.size
        left = G[g:, g:]
        if g:
            left = left - G[g:, :g] @ np.linalg.pinv(G[:g, :g], hermitian=True) @ G[:g, g:]
    length = np.sqrt(np.maximum(np.diag(left), 0.0))
    length = np.where(length > 1e-6, length, np.inf)
    return np.asarray(left / length[:, None] / length)


def columns_of(problem: SparseProblem, support: Indices) -> tuple[Floats, Floats]:
    """Return the unit-norm columns of a support and the signal, as dense arrays."""
    return _unit_columns(problem, support), _signal(problem)


def _signal(problem: SparseProblem) -> Floats:
    assert problem.y is not None
    return problem.y


def _unit_columns(problem: SparseProblem, support: Indices) -> Floats:
    norms = problem.column_norms[support]
    return np.asarray(problem._columns(support) / np.where(norms > 0, norms, 1.0))
