"""The pivot tableau of a support: every energy change at hand, at O(1) per proposal.

For a support S of K columns in slots 0, ..., K−1 and the N − K columns outside it, the tableau keeps

    U = (G_SS)⁻¹,   x = U b_S                    coefficients, by slot
    W = G_ZS U                                   every outside column regressed on the support
    r = b_Z − G_ZS x                             its correlation with the residual
    γ = G_ZZ's diagonal − (W ∘ G_ZS) 1           its squared length off the support's span

with G = AᵀA (+ a ridge on the diagonal) and b = Aᵀy. The energy ½‖y − Ax‖² then changes by

    remove slot k                ½ x_k² / U_kk
    add outside column p         −½ r_p² / γ_p
    swap slot k for column p     ½ x_k²/U_kk − ½ (r_p + W_pk x_k/U_kk)² / (γ_p + W_pk²/U_kk)

An accepted move costs one fused pass over W, O((N − K) K); a rejected one costs nothing.

Units. The kernels expect columns of unit norm and a signal of unit norm (`problem.py` sees to it), so
all numbers here are of order one. Only ``diag``, never the stored Gram rows, holds the diagonal.

Which supports exist. A support is *admissible* if each of its columns keeps more than `PIVOT` of its
squared length off the span of the others, that is if all U_mm G_mm < 1/PIVOT. This is a property of
the support, not of the move, so a chain that refuses to leave the admissible supports still obeys
detailed balance, and its law is the Gibbs law on them. Zero columns, and two copies of one column,
are never admissible.

Errors. Rounding grows with accepted moves, exponentially so where supports are near-singular. Each
move therefore measures, for O(K), how well the rows that it is about to use satisfy the equations
above (the *gauge*); `refresh` recomputes everything by Cholesky as soon as the gauge exceeds
`GAUGE_LIMIT`, and after `MOVES_PER_COLUMN` K + `MOVES_AT_LEAST` accepted moves in any case.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

PIVOT = 1e-10
GAUGE_LIMIT = 1e-9
MOVES_PER_COLUMN = 20
MOVES_AT_LEAST = 100

# indices into Tableau.count and Tableau.value
SIZE, MOVES, REFRESHES, CLOCK = range(4)
ENERGY, GAUGE, SIGNAL = range(3)

_MATH = {"reassoc", "contract", "arcp", "nsz"}  # SIMD sums; NaN and infinity keep their meaning


class Tableau(NamedTuple):
    """Plain arrays; see the module's text for what they hold."""

    gram: NDArray[np.float64]  # rows of G; row_of[j] says which one is column j's, −1: not there
    row_of: NDArray[np.int64]
    diag: NDArray[np.float64]  # G_jj + ridge
    b: NDArray[np.float64]
    ones: NDArray[np.int64]  # slot → column
    zeros: NDArray[np.int64]  # outside position → column
    U: NDArray[np.float64]  # lower triangle
    W: NDArray[np.float64]
    x: NDArray[np.float64]
    r: NDArray[np.float64]
    gamma: NDArray[np.float64]
    work: NDArray[np.float64]  # scratch, three rows of K
    used: NDArray[np.int64]  # when each row of gram was last used, by count[CLOCK]
    count: NDArray[np.int64]
    value: NDArray[np.float64]


def empty_tableau(
    gram: NDArray[np.float64],
    row_of: NDArray[np.int64],
    diag: NDArray[np.float64],
    b: NDArray[np.float64],
    signal_energy: float,
    capacity: int,
) -> Tableau:
    """Return the tableau of the empty support, with room for ``capacity`` columns."""
    n = b.size
    return Tableau(
        gram=gram,
        row_of=row_of,
        diag=diag,
        b=b,
        ones=np.full(capacity, -1, dtype=np.int64),
        zeros=np.arange(n, dtype=np.int64),
        U=np.zeros((capacity, capacity)),
        W=np.zeros((n, capacity)),
        x=np.zeros(capacity),
        r=b.copy(),
        gamma=diag.copy(),
        work=np.zeros((3, capacity)),
        used=np.zeros(gram.shape[0], dtype=np.int64),
        count=np.zeros(4, dtype=np.int64),
        value=np.array([0.5 * signal_energy, 0.0, signal_energy]),
    )


@njit(cache=True, nogil=True, fastmath=_MATH)
def delta_remove(t, k):  # type: ignore[no-untyped-def]
    """Energy change when slot k is emptied."""
    return 0.5 * t.x[k] * t.x[k] / t.U[k, k]


@njit(cache=True, nogil=True, fastmath=_MATH)
def delta_add(t, p):  # type: ignore[no-untyped-def]
    """Energy change when outside column p joins; infinite if it may not."""
    gamma = t.gamma[p]
    if gamma <= PIVOT * t.diag[t.zeros[p]]:
        return np.inf
    return -0.5 * t.r[p] * t.r[p] / gamma


@njit(cache=True, nogil=True, fastmath=_MATH)
def delta_swap(t, k, p):  # type: ignore[no-untyped-def]
    """Energy change when outside column p takes slot k; infinite if it may not."""
    w = t.W[p, k]
    freed = w / t.U[k, k]
    gamma = t.gamma[p] + w * freed
    if gamma <= PIVOT * t.diag[t.zeros[p]]:
        return np.inf
    r = t.r[p] + freed * t.x[k]
    return 0.5 * t.x[k] * t.x[k] / t.U[k, k] - 0.5 * r * r / gamma


@njit(cache=True, nogil=True, fastmath=_MATH)
def _inverse_row(t, k):  # type: ignore[no-untyped-def]
    """Put row k of U, of which only the lower triangle is kept, into scratch and return it."""
    n_ones = t.count[SIZE]
    u = t.work[1, :n_ones]
    u[: k + 1] = t.U[k, : k + 1]
    for m in range(k + 1, n_ones):
        u[m] = t.U[m, k]
    return u


@njit(cache=True, nogil=True, fastmath=_MATH)
def _gram_row(t, j):  # type: ignore[no-untyped-def]
    """Put G_jS into scratch and return it; note that column j's row of G was used."""
    n_ones = t.count[SIZE]
    t.count[CLOCK] += 1
    t.used[t.row_of[j]] = t.count[CLOCK]
    row = t.gram[t.row_of[j]]
    g = t.work[0, :n_ones]
    for m in range(n_ones):
        g[m] = row[t.ones[m]]
    return g


@njit(cache=True, nogil=True, fastmath=_MATH)
def _measure_entering(t, p, g):  # type: ignore[no-untyped-def]
    """Gauge: does outside column p's row of the tableau satisfy its equations? g is G_jS."""
    j = t.zeros[p]
    gamma = t.diag[j]
    r = t.b[j]
    for m in range(t.count[SIZE]):
        gamma -= t.W[p, m] * g[m]
        r -= t.x[m] * g[m]
    t.value[GAUGE] = max(t.value[GAUGE], abs(gamma - t.gamma[p]), abs(r - t.r[p]))


@njit(cache=True, nogil=True, fastmath=_MATH)
def _measure_leaving(t, k, u):  # type: ignore[no-untyped-def]
    """Gauge: is u still row k of the inverse?"""
    i = t.ones[k]
    row = t.gram[t.row_of[i]]
    unit = u[k] * t.diag[i]
    for m in range(t.count[SIZE]):
        if m != k:
            unit += u[m] * row[t.ones[m]]
    t.value[GAUGE] = max(t.value[GAUGE], abs(unit - 1.0))


@njit(cache=True, nogil=True, fastmath=_MATH)
def _swap_rows(W, gamma, r, zeros, row, g, u, v, k, w, freed, inverse, x_k, r_new):  # type: ignore[no-untyped-def]
    """The pass over the outside columns: nearly all of a run's time is spent here.

    It takes arrays, not the tableau, because the compiler then sees what does not change.
    """
    n_ones = g.size
    for l in range(zeros.size):
        w_l = W[l, :n_ones]
        w_lk = w_l[k]
        s = w_lk * freed
        d = 0.0
        for m in range(n_ones):
            d += w_l[m] * g[m]
        c = row[zeros[l]] - d + s * w
        q = c * inverse
        for m in range(n_ones):
            w_l[m] -= s * u[m] + q * v[m]
        w_l[k] = q
        gamma[l] += w_lk * s - c * q
        r[l] += s * x_k - q * r_new


@njit(cache=True, nogil=True, fastmath=_MATH)
def swap(t, k, p):  # type: ignore[no-untyped-def]
    """Put outside column p into slot k; the slot's column takes position p outside.

    Returns False, and changes nothing, if the support would not be admissible.
    """
    n_ones = t.count[SIZE]
    n_zeros = t.b.size - n_ones
    j = t.zeros[p]
    i = t.ones[k]
    w = t.W[p, k]
    freed = 1.0 / t.U[k, k]
    gamma = t.gamma[p] + w * w * freed
    if gamma <= PIVOT * t.diag[j]:
        return False
    inverse = 1.0 / gamma
    u = _inverse_row(t, k)
    v = t.work[2, :n_ones]
    for m in range(n_ones):
        v[m] = t.W[p, m] - w * freed * u[m]
    v[k] = 0.0
    for m in range(n_ones):
        pivot = t.U[m, m] - u[m] * u[m] * freed + v[m] * v[m] * inverse
        if pivot * t.diag[t.ones[m]] * PIVOT >= 1.0:
            return False
    g = _gram_row(t, j)
    _measure_entering(t, p, g)
    _measure_leaving(t, k, u)

    x_k = t.x[k]
    r = t.r[p] + w * x_k * freed
    left_over = t.gamma[p] * freed * inverse  # γ of the leaving column, free of cancellation
    t.value[ENERGY] += 0.5 * x_k * x_k * freed - 0.5 * r * r * inverse

    row = t.gram[t.row_of[j]]
    _swap_rows(t.W, t.gamma, t.r, t.zeros[:n_zeros], row, g, u, v, k, w, freed, inverse, x_k, r)

    q = w * freed * inverse
    w_p = t.W[p, :n_ones]
    for m in range(n_ones):
        w_p[m] = -freed * u[m] - q * v[m]
    w_p[k] = q
    t.gamma[p] = left_over
    t.r[p] = x_k * freed - q * r

    for m in range(n_ones):
        s = u[m] * freed
        q = v[m] * inverse
        U_m = t.U[m, : m + 1]
        for n in range(m + 1):
            U_m[n] += q * v[n] - s * u[n]
        t.x[m] -= x_k * s + r * q
    for m in range(k):
        t.U[k, m] = -v[m] * inverse
    for m in range(k + 1, n_ones):
        t.U[m, k] = -v[m] * inverse
    t.U[k, k] = inverse
    t.x[k] = r * inverse
    t.ones[k] = j
    t.zeros[p] = i
    t.count[MOVES] += 1
    return True


@njit(cache=True, nogil=True, fastmath=_MATH)
def add(t, p):  # type: ignore[no-untyped-def]
    """Put outside column p into a new last slot; the last outside column takes position p.

    Returns False, and changes nothing, if the support would not be admissible.
    """
    n_ones = t.count[SIZE]
    n_zeros = t.b.size - n_ones
    j = t.zeros[p]
    gamma = t.gamma[p]
    if gamma <= PIVOT * t.diag[j]:
        return False
    inverse = 1.0 / gamma
    v = t.work[2, :n_ones]
    v[:] = t.W[p, :n_ones]
    for m in range(n_ones):
        if (t.U[m, m] + v[m] * v[m] * inverse) * t.diag[t.ones[m]] * PIVOT >= 1.0:
            return False
    g = _gram_row(t, j)
    _measure_entering(t, p, g)
    r = t.r[p]
    t.value[ENERGY] -= 0.5 * r * r * inverse

    row = t.gram[t.row_of[j]]
    for l in range(n_zeros):
        w_l = t.W[l, :n_ones]
        d = 0.0
        for m in range(n_ones):
            d += w_l[m] * g[m]
        c = row[t.zeros[l]] - d
        q = c * inverse
        for m in range(n_ones):
            w_l[m] -= q * v[m]
        t.W[l, n_ones] = q
        t.gamma[l] -= c * q
        t.r[l] -= q * r

    last = n_zeros - 1
    t.W[p, : n_ones + 1] = t.W[last, : n_ones + 1]
    t.gamma[p] = t.gamma[last]
    t.r[p] = t.r[last]
    t.zeros[p] = t.zeros[last]

    for m in range(n_ones):
        q = v[m] * inverse
        U_m = t.U[m, : m + 1]
        for n in range(m + 1):
            U_m[n] += q * v[n]
        t.U[n_ones, m] = -q
        t.x[m] -= r * q
    t.U[n_ones, n_ones] = inverse
    t.x[n_ones] = r * inverse
    t.ones[n_ones] = j
    t.count[SIZE] += 1
    t.count[MOVES] += 1
    return True


@njit(cache=True, nogil=True, fastmath=_MATH)
def remove(t, k):  # type: ignore[no-untyped-def]
    """Empty slot k; the last slot's column takes its place, the removed one goes outside, last."""
    n_ones = t.count[SIZE]
    n_zeros = t.b.size - n_ones
    i = t.ones[k]
    last = n_ones - 1
    u = _inverse_row(t, k)
    _measure_leaving(t, k, u)
    freed = 1.0 / u[k]
    x_k = t.x[k]
    t.value[ENERGY] += 0.5 * x_k * x_k * freed

    for l in range(n_zeros):
        w_l = t.W[l, :n_ones]
        w_lk = w_l[k]
        s = w_lk * freed
        for m in range(n_ones):
            w_l[m] -= s * u[m]
        w_l[k] = w_l[last]
        t.gamma[l] += w_lk * s
        t.r[l] += s * x_k
    w_i = t.W[n_zeros, :n_ones]
    for m in range(n_ones):
        w_i[m] = -freed * u[m]
    w_i[k] = w_i[last]
    t.gamma[n_zeros] = freed
    t.r[n_zeros] = x_k * freed
    t.zeros[n_zeros] = i

    for m in range(n_ones):
        s = u[m] * freed
        U_m = t.U[m, : m + 1]
        for n in range(m + 1):
            U_m[n] -= s * u[n]
        t.x[m] -= x_k * s
    for m in range(k):
        t.U[k, m] = t.U[last, m]
    for m in range(k + 1, last):
        t.U[m, k] = t.U[last, m]
    t.U[k, k] = t.U[last, last]
    t.x[k] = t.x[last]
    t.ones[k] = t.ones[last]
    t.count[SIZE] -= 1
    t.count[MOVES] += 1


@njit(cache=True, nogil=True, fastmath=_MATH)
def refresh_due(t):  # type: ignore[no-untyped-def]
    """The rule of the module's text."""
    return (
        t.value[GAUGE] > GAUGE_LIMIT
        or t.count[MOVES] >= MOVES_PER_COLUMN * t.count[SIZE] + MOVES_AT_LEAST
    )


@njit(cache=True, nogil=True, fastmath=_MATH)
def _inverse(G):  # type: ignore[no-untyped-def]
    """Inverse of a symmetric positive definite matrix by Cholesky, G = L Lᵀ; False if not definite."""
    n = G.shape[0]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = G[i, j]
            for m in range(j):
                total -= L[i, m] * L[j, m]
            if i > j:
                L[i, j] = total * L[j, j]  # the diagonal of L holds reciprocals
            elif total > 0.0:
                L[i, i] = 1.0 / np.sqrt(total)
            else:
                return False, L
    inverse = np.zeros((n, n))  # of L, row by row
    for i in range(n):
        row = inverse[i]
        for m in range(i):
            factor = L[i, m] * L[i, i]
            above = inverse[m]
            for j in range(m + 1):
                row[j] -= factor * above[j]
        row[i] = L[i, i]
    return True, np.dot(inverse.T, inverse)


@njit(cache=True, nogil=True, fastmath=_MATH)
def refresh(t):  # type: ignore[no-untyped-def]
    """Recompute the tableau of the present support from the Gram matrix.

    Returns False, and leaves the tableau alone, if the support is singular to working precision.
    """
    n_ones = t.count[SIZE]
    n_zeros = t.b.size - n_ones
    G = np.empty((n_ones, n_ones))
    b = np.empty(n_ones)
    for m in range(n_ones):
        row = t.gram[t.row_of[t.ones[m]]]
        for n in range(n_ones):
            G[m, n] = row[t.ones[n]]
        G[m, m] = t.diag[t.ones[m]]
        b[m] = t.b[t.ones[m]]
    definite, U = _inverse(G)
    if not definite:
        return False
    x = np.dot(U, b)
    x += np.dot(U, b - np.dot(G, x))  # one step of refinement
    t.U[:n_ones, :n_ones] = U
    t.x[:n_ones] = x
    t.value[ENERGY] = 0.5 * (t.value[SIGNAL] - 2.0 * np.dot(b, x) + np.dot(x, np.dot(G, x)))

    cross = np.empty((n_zeros, n_ones))
    for m in range(n_ones):
        row = t.gram[t.row_of[t.ones[m]]]
        for l in range(n_zeros):
            cross[l, m] = row[t.zeros[l]]
    W = np.dot(cross, U)
    for l in range(n_zeros):
        gamma = t.diag[t.zeros[l]]
        r = t.b[t.zeros[l]]
        for m in range(n_ones):
            t.W[l, m] = W[l, m]
            gamma -= W[l, m] * cross[l, m]
            r -= cross[l, m] * x[m]
        t.gamma[l] = gamma
        t.r[l] = r
    t.count[MOVES] = 0
    t.count[REFRESHES] += 1
    t.value[GAUGE] = 0.0
    return True


def drift(t: Tableau) -> dict[str, float]:
    """Compare a tableau with a fresh one of the same support.

    Returns the largest absolute differences in ``energy``, ``coefficients`` (x) and ``regressions``
    (W), in the tableau's own units (unit columns, unit signal).
    """
    shared = t._fields[:4]
    fresh = Tableau(
        *(field if name in shared else field.copy() for name, field in zip(t._fields, t))
    )
    if not refresh(fresh):
        raise ValueError("the support is singular to working precision: it has no fresh tableau")
    n_ones = int(t.count[SIZE])
    n_zeros = t.b.size - n_ones

    def largest(difference: NDArray[np.float64]) -> float:
        return float(np.max(np.abs(difference), initial=0.0))

    return {
        "energy": float(abs(t.value[ENERGY] - fresh.value[ENERGY])),
        "coefficients": largest(t.x[:n_ones] - fresh.x[:n_ones]),
        "regressions": largest(t.W[:n_zeros, :n_ones] - fresh.W[:n_zeros, :n_ones]),
    }
