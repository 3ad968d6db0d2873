"""Recompute a tableau by Cholesky, before rounding errors add up; `tableau` says when."""

import math

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel import allocating, inlined, inner, separate
from l0anneal.engine.symmetric import copy, multiply
from l0anneal.engine.tableau import (
    DEFECT,
    DEFECT_LIMIT,
    ENERGY,
    FAULT,
    FAULT_LIMIT,
    MOVES,
    MOVES_AT_LEAST,
    MOVES_PER_COLUMN,
    REFRESHES,
    SINGULARITY,
    SIZE,
    STALE,
    TABLEAU,
    Tableau,
    copy_row,
    support_gram,
)
from l0anneal.engine.vectors import dot, dot_rows

__all__ = ["drift", "refresh", "refresh_due", "refresh_inverse", "refreshed_for"]


@inlined
def refresh_due(t):
    """Whether the tableau must be refreshed after a move, by the rule in the module's docstring."""
    # a fresh tableau has a defect of the order of its condition number times 1e-16
    fresh = 1e-14 * t.counts[SIZE] * t.values[SINGULARITY]
    return (
        t.values[DEFECT] > DEFECT_LIMIT + fresh
        or t.counts[MOVES] >= MOVES_PER_COLUMN * t.counts[SIZE] + MOVES_AT_LEAST
    )


@allocating
def _invert(G, U):
    """Write the inverse of a positive definite matrix to U; return False if it is not definite.

    With the Cholesky factor G = L Lᵀ, the inverse is the product of the inverse of L, transposed, with
    itself.
    """
    n = G.shape[0]
    L = np.empty((n, n))
    for j in range(n):
        L_j = L[j, :j]
        total = G[j, j] - dot(L_j, L_j)
        if not total > 0.0:
            return False
        L[j, j] = 1.0 / math.sqrt(total)  # the diagonal of L holds reciprocals
        fours = n - (n - j - 1) % 4
        for i in range(j + 1, fours, 4):
            dots = dot_rows(L, i, L_j)
            for l in range(4):
                L[i + l, j] = (G[i + l, j] - dots[l]) * L[j, j]
        for i in range(fours, n):
            L[i, j] = (G[i, j] - dot(L_j, L[i])) * L[j, j]
    inverse = np.zeros((n, n))  # of L
    factors = np.empty(n)
    first = np.int64(0)  # for a literal zero, `_add_rows` would be compiled again
    for i in range(n):
        for m in range(i):
            factors[m] = -L[i, m] * L[i, i]
        _add_rows(inverse[i, :i], inverse, factors, first, i)
        inverse[i, i] = L[i, i]
    for m in range(n):
        row = U[m, : m + 1]
        for j in range(m + 1):
            row[j] = 0.0
        for i in range(m, n):
            factors[i] = inverse[i, m]
        _add_rows(row, inverse, factors, m, n)
    for i in range(n):
        for j in range(i):
            U[j, i] = U[i, j]
    return True


@inner
def _add_rows(row, matrix, factors, first, last):
    """Add rows of a lower triangle times factors to ``row``, one after another, but read in fours."""
    fours = last - (last - first) % 4
    for m in range(first, fours, 4):
        a, b, c, d = matrix[m], matrix[m + 1], matrix[m + 2], matrix[m + 3]
        of_a, of_b, of_c, of_d = factors[m], factors[m + 1], factors[m + 2], factors[m + 3]
        for j in range(min(row.size, m + 4)):
            row[j] = (((row[j] + of_a * a[j]) + of_b * b[j]) + of_c * c[j]) + of_d * d[j]
    for m in range(fours, last):
        a, of_a = matrix[m], factors[m]
        for j in range(min(row.size, m + 1)):
            row[j] += of_a * a[j]


@separate(TABLEAU, allocates=True)
def refresh_inverse(t):
    """Recompute U, x and the energy of the present support, but not W, r and γ.

    Returns False, and leaves the tableau as it is, if the support is singular to working precision.
    """
    n_inside = t.counts[SIZE]
    G = support_gram(t)
    U = np.empty((n_inside, n_inside))
    if not _invert(G, U):
        return False
    x, b, left = np.empty(n_inside), np.empty(n_inside), np.empty(n_inside)
    for m in range(n_inside):
        b[m] = t.b[t.inside[m]]
        x[m] = 0.0
        left[m] = b[m]
    energy = 0.0
    for _ in range(2):  # solve, and one step of refinement
        for m in range(n_inside):
            x[m] += dot(U[m], left)
        energy = 0.0
        for m in range(n_inside):
            Gx = dot(G[m], x)
            left[m] = b[m] - Gx
            energy += x[m] * (0.5 * Gx - b[m])
    copy(U, n_inside, t.U)
    copy_row(x, t.x)
    t.values[ENERGY] = energy
    t.values[SINGULARITY] = 0.0
    for m in range(n_inside):
        t.values[SINGULARITY] = max(t.values[SINGULARITY], U[m, m] * t.diag[t.inside[m]])
    t.counts[MOVES] = 0
    t.counts[REFRESHES] += 1
    t.values[DEFECT] = 0.0
    t.values[FAULT] = 0.0
    return True


@separate(TABLEAU, allocates=True)
def refresh(t):
    """Recompute the whole tableau of the present support; return False if that is singular."""
    if not refresh_inverse(t):
        return False
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    g = t.work[0, :n_inside]
    for l in range(n_outside):
        j = t.outside[l]
        w = t.W[l, :n_inside]
        for m in range(n_inside):
            g[m] = t.gram[t.row_of[t.inside[m]], j]
        multiply(t.U, g, w)
        t.gamma[l] = t.diag[j] - dot(g, w)
        t.r[l] = t.b[j] - dot(g, t.x)
    t.counts[STALE] = 0
    for j in range(t.place.size):
        t.place[j] = -1  # W no longer has rows of G
    return True


@inlined
def refreshed_for(t, fault):
    """Add a move's fault to the sum, or refresh the tableau if the sum would become too large.

    Returns True after a refresh: the move must then be computed and measured again.
    """
    if t.values[FAULT] + fault > FAULT_LIMIT and t.counts[MOVES] > 0 and refresh(t):
        return True
    t.values[FAULT] += fault
    return False


def drift(t: Tableau) -> dict[str, float]:
    """Compare a tableau with a freshly computed one of the same support.

    Returns the largest absolute differences in ``energy``, ``coefficients`` (x) and ``regressions``
    (W), in the engine's units (unit columns, unit signal).
    """
    shared = ("gram", "row_of", "columns", "diag", "b")
    fresh = t._replace(
        **{name: getattr(t, name).copy() for name in t._fields if name not in shared}
    )
    if not refresh(fresh):
        raise ValueError(
            "the support of this tableau is singular to working precision; drift needs a support "
            "that can be refreshed"
        )
    n_inside = int(t.counts[SIZE])
    n_outside = t.b.size - n_inside

    def largest(difference: NDArray[np.float64]) -> float:
        return float(np.max(np.abs(difference), initial=0.0))

    return {
        "energy": float(abs(t.values[ENERGY] - fresh.values[ENERGY])),
        "coefficients": largest(t.x[:n_inside] - fresh.x[:n_inside]),
        "regressions": largest(t.W[:n_outside, :n_inside] - fresh.W[:n_outside, :n_inside]),
    }
