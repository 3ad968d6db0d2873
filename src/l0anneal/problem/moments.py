"""Sums over rows, from which a regression follows: counts, means, and products of deviations.

Let z = (x, y) be a row with its target, and w its weight. The sums kept are the number of rows, W = Σw,
the means z̄ = Σwz / W, and the scatter S = Σw (z − z̄)(z − z̄)ᵀ. Two sets of rows a and b are merged by

    S = S_a + S_b + W_a W_b / (W_a + W_b) · (z̄_a − z̄_b)(z̄_a − z̄_b)ᵀ

(Chan, Golub and LeVeque 1983), in which nothing cancels. Means are kept as differences from a shift, a
vector close to them, so that a large offset does not cost digits of the differences between means. What
rounding loses of S in each sum is added up beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread

__all__ = ["CompactRows", "Moments", "Statistics", "merged"]

ROUNDING = 1e-13  # what is left of a constant column, as a fraction of its norm
SMALLEST = 1e-290  # squares below this have lost digits
SLAB = 2**17  # numbers of a matrix that are added at a time, so that temporary arrays stay small

Floats = NDArray[np.float64]


class Statistics(NamedTuple):
    """AᵀA, Aᵀy and ‖y‖², of deviations from the means if there is an intercept, and the means."""

    gram: Floats
    correlation: Floats
    signal_energy: float
    column_means: Floats
    signal_mean: float


class CompactRows(NamedTuple):
    """No more than N + 2 rows that have the same sums as the original ones.

    The products of the columns of (roots, X, y) are those of (1, X, y) on all rows, with their weights.
    Least squares on any columns, with an intercept or without, therefore gives the same coefficients and
    the same energy.
    """

    roots: Floats
    X: Floats
    y: Floats


@dataclass(eq=False)
class Moments:
    """Sums over rows of (x, y), to which other rows can be added.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    weight : float
        The sum of their weights.
    shift, offset : ndarrays of shape (N + 1,)
        The means are shift + offset; the last element is that of y.
    scatter, lost : ndarrays of shape (N + 1, N + 1)
        Weighted products of the deviations from the means; the exact sum is scatter + lost.
    vanished : ndarray of bool of shape (N + 1,)
        Columns with deviations so small that their squares have lost digits.
    lowest, highest : float
        The extremes of y.
    two_valued : bool
        Whether y has no other values than 0 and 1.
    """

    n_rows: int
    weight: float
    shift: Floats
    offset: Floats
    scatter: Floats
    lost: Floats
    vanished: NDArray[np.bool_]
    lowest: float
    highest: float
    two_valued: bool

    @classmethod
    def of(cls, rows: Floats, weights: Floats | None, shift: Floats) -> Moments:
        """Return the sums over some rows (x, y) with positive weights; ``shift`` is close to them.

        Examples
        --------
        >>> import numpy as np
        >>> sums = Moments.of(np.array([[1.0, 2.0], [3.0, 4.0]]), None, np.zeros(2))
        >>> sums.offset, sums.scatter[0, 1].item()
        (array([2., 3.]), 2.0)
        """
        n_rows = len(rows)
        each = np.ones(n_rows) if weights is None else weights
        total = float(np.sum(each))
        with one_blas_thread(), np.errstate(over="ignore", under="ignore", invalid="ignore"):
            left = rows - shift
            offset = each @ left / total
            left -= offset
            offset = offset + each @ left / total
            if weights is not None:
                left *= np.sqrt(weights)[:, None]
            scatter = left.T @ left
        small = np.diag(scatter) < SMALLEST
        vanished = np.zeros(small.size, dtype=bool)
        vanished[small] = np.any(left[:, small] != 0, axis=0)
        y = rows[:, -1]
        return cls(
            n_rows,
            total,
            shift,
            offset,
            scatter,
            np.zeros_like(scatter),
            vanished,
            float(y.min()),
            float(y.max()),
            bool(np.all((y == 0) | (y == 1))),
        )

    def add(self, other: Moments) -> None:
        """Add the rows of ``other``, in place."""
        theirs = other.offset + (other.shift - self.shift)
        between = theirs - self.offset
        total = self.weight + other.weight
        factor = self.weight * (other.weight / total)
        n = between.size
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for first in range(0, n, max(1, SLAB // n)):
                cut = slice(first, first + max(1, SLAB // n))
                slab, lost = self.scatter[cut], self.lost[cut]
                between_sets = factor * between[cut, None] * between[None, :]
                for term in (other.scatter[cut], between_sets):
                    added = slab + term
                    part = added - slab
                    lost += (slab - (added - part)) + (term - part)  # exactly what rounding lost
                    slab[:] = added
                lost += other.lost[cut]
        self.offset = self.offset + between * (other.weight / total)
        self.weight = total
        self.n_rows += other.n_rows
        self.vanished = self.vanished | other.vanished
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        self.two_valued = self.two_valued and other.two_valued

    def copy(self) -> Moments:
        """Return sums to which rows can be added without changing these."""
        return Moments(
            self.n_rows,
            self.weight,
            self.shift,
            self.offset,
            self.scatter.copy(),
            self.lost.copy(),
            self.vanished,
            self.lowest,
            self.highest,
            self.two_valued,
        )

    @property
    def means(self) -> Floats:
        """The weighted means of the columns and, last, of y."""
        return self.shift + self.offset

    @property
    def has_classes(self) -> bool:
        """Whether y has the values 0 and 1, both of them and no others."""
        return self.two_valued and self.lowest < self.highest

    def out_of_range(self) -> NDArray[np.int64]:
        """Return columns (N stands for y) whose squares are too large or too small for a float."""
        spread = np.diag(self.scatter)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = spread + self.weight * self.means**2
        bad = ~np.isfinite(diagonal) | (self.vanished & (spread < SMALLEST))
        return np.flatnonzero(bad)

    def deviations(self) -> Floats:
        """Return the scatter, with zeros for columns of which only rounding errors are left."""
        S = self.scatter + self.lost
        S = 0.5 * (S + S.T)
        diagonal = np.diag(S)
        gone = diagonal <= ROUNDING**2 * (diagonal + self.weight * self.means**2)
        S[gone] = 0.0
        S[:, gone] = 0.0
        return S

    def statistics(self, intercept: bool) -> Statistics:
        """Return the Gram matrix, correlations and energy that define a problem.

        Examples
        --------
        >>> import numpy as np
        >>> sums = Moments.of(np.array([[1.0, 2.0], [3.0, 5.0]]), None, np.zeros(2))
        >>> sums.statistics(True)[:3], sums.statistics(False)[:3]
        ((array([[2.]]), array([3.]), 4.5), (array([[10.]]), array([17.]), 29.0))
        """
        means = self.means
        S = self.deviations()
        if not intercept:
            S += self.weight * np.outer(means, means)
        gram = np.ascontiguousarray(S[:-1, :-1])
        return Statistics(gram, S[:-1, -1].copy(), float(S[-1, -1]), means[:-1], float(means[-1]))

    def compact(self) -> CompactRows:
        """Return few rows with the same sums, by a Cholesky factorisation with pivoting.

        Of y, what is left beside all columns is taken as zero if it is less than about 10⁻⁷ of the
        norm of y, because products of columns do not show less.

        Examples
        --------
        >>> import numpy as np
        >>> sums = Moments.of(np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]), None, np.zeros(2))
        >>> rows = sums.compact()
        >>> np.column_stack(rows).T @ np.column_stack(rows)
        array([[ 3.,  8., 11.],
               [ 8., 26., 33.],
               [11., 33., 45.]])
        """
        S, means, n = self.deviations(), self.means, len(self.offset) - 1
        norms = np.sqrt(np.diag(S))
        scale = np.where(norms > 0, norms, 1.0)
        S = S / scale[:, None] / scale[None, :]
        tolerance = 8 * max(n, 16) * np.finfo(np.float64).eps
        with one_blas_thread():
            factor, order, rank, _ = scipy.linalg.lapack.dpstrf(S[:-1, :-1], tol=tolerance)
            order = order - 1
            factor = np.triu(factor)[:rank]
            along = scipy.linalg.solve_triangular(
                factor[:, :rank], S[order[:rank], -1], trans="T", check_finite=False
            )
        beside = (1.0 if norms[-1] else 0.0) - float(along @ along)
        X = np.zeros((rank + 2, n))
        y = np.zeros(rank + 2)
        roots = np.zeros(rank + 2)
        roots[0] = np.sqrt(self.weight)
        X[0], y[0] = roots[0] * means[:-1], roots[0] * means[-1]
        X[1:-1, order] = factor
        X[1:-1] *= scale[:-1]
        y[1:-1] = along * scale[-1]
        y[-1] = scale[-1] * np.sqrt(beside) if beside > tolerance else 0.0
        return CompactRows(roots, X, y)


def merged(parts: Iterable[Moments]) -> Moments:
    """Return the sums over the rows of all ``parts``, which stay as they are."""
    total: Moments | None = None
    for part in parts:
        if total is None:
            total = part.copy()
        else:
            total.add(part)
    if total is None:
        raise ValueError("there are no rows to add up; at least one part is needed")
    return total
