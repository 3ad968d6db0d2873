"""Columns that dwarf the rest of a signal, and the problem that is left without them.

An example is a constant column, and a signal with an offset of 10⁷ standard deviations: the rest of
the signal is 10⁻¹⁴ of ‖y‖². The engine resolves energies to 10⁻¹³ ‖y‖² and cannot tell apart the
supports that contain the constant column. By the theorem of Frisch and Waugh (see `projected`), the
best support that contains given columns D is D and the best support of the problem projected off D,
in which the engine's unit is what D leaves of ‖y‖².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.chance import UNLIKELY, log_chance
from l0anneal.problem.fits import left_after, rounding
from l0anneal.problem.projected import orthonormal_basis, projected_problem
from l0anneal.problem.scaled import COLUMN_BYTES
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Remainder", "dominant_columns", "without"]

SILENT = 1e-24  # a fraction of ‖y‖² below this one is rounding in y itself

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Remainder(NamedTuple):
    """A problem projected off some of its columns."""

    problem: SparseProblem
    removed: Indices
    candidates: Indices  # the columns of the original problem that the others stand for

    def whole(self, support: Indices) -> Indices:
        """Return a support of the original problem: the removed columns, and those of ``support``."""
        return np.sort(np.concatenate((self.removed, self.candidates[support])))


def dominant_columns(
    problem: SparseProblem, support: Indices, drop: float
) -> tuple[Indices, float]:
    """Return the columns of a support that dwarf the others, and the fraction of ‖y‖² that they leave.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary and the signal.
    support : ndarray of int
        Independent columns. Those that explain most come first.
    drop : float
        The columns up to the last one that leaves less than this fraction of what was left before
        it are dominant, unless that may be chance or nothing is left after it.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).standard_normal((20, 3))
    >>> A[:, 1] = 1.0
    >>> problem = SparseProblem(A, 1000.0 + A[:, 0] + 0.5 * A[:, 2])
    >>> columns, left = dominant_columns(problem, np.arange(3), 1e-3)
    >>> columns, 1e-7 < left < 1e-5
    (array([1]), True)
    """
    n, m, k = problem.n_columns, problem.n_samples, support.size
    if k == 0 or not problem.signal_energy:
        return np.zeros(0, dtype=np.int64), 1.0
    order, left = left_after(problem, support)
    least = SILENT if problem.A is not None else 10.0 * rounding(problem)
    for q in range(k - 1, 0, -1):
        ratio = left[q] / left[q - 1]
        by_chance = log_chance(n - q + 1, m - q + 1, 1, ratio) >= UNLIKELY
        if ratio <= drop and left[q] > least and not by_chance:
            return np.sort(order[:q]), float(left[q])
    return np.zeros(0, dtype=np.int64), 1.0


def without(problem: SparseProblem, columns: Indices) -> Remainder | None:
    """Return the problem projected off some of its columns, or None if that cannot be computed.

    Columns that are nearly in the span of the given ones (see `admissibility`) are left out. The
    result is None for a problem that was given by AᵀA, in which the rest of the signal is lost to
    rounding, for one that has been projected before and is sparse, and if a dense A exceeds
    `COLUMN_BYTES`.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.column_stack((np.ones(4), np.eye(4)))
    >>> rest = without(SparseProblem(A, [9.0, 9.0, 9.0, 10.0]), np.array([0]))
    >>> rest.problem.n_samples, rest.whole(np.array([3]))
    (3, array([0, 4]))
    """
    A, y = problem.A, problem.y
    if A is None or y is None or type(problem) is not SparseProblem:
        return None
    sparse = scipy.sparse.issparse(A)
    if not sparse and 8 * A.size > COLUMN_BYTES:
        return None
    dense = A[:, columns].toarray() if sparse else A[:, columns]
    Q = orthonormal_basis(np.asarray(dense, dtype=np.float64))
    others = np.setdiff1d(np.arange(problem.n_columns), columns)
    if others.size == 0:
        return None
    rest = projected_problem(A[:, others], y, Q, problem.n_samples - Q.shape[1])
    apart = rest.column_norms**2 > PIVOT * problem.column_norms[others] ** 2
    if not np.all(apart):
        others = others[apart]
        if others.size == 0:
            return None
        rest = projected_problem(A[:, others], y, Q, problem.n_samples - Q.shape[1])
    return Remainder(rest, columns, others)
