"""The pivot tableau of a support: every energy change at hand, at O(1) per proposal.

For a support S of K columns in slots 0, ..., K−1 and the N − K columns Z outside, it keeps

    U = (G_SS)⁻¹,   x = U b_S                    coefficients, by slot
    W = G_ZS U                                   every outside column regressed on the support
    r = b_Z − G_ZS x                             its correlation with the residual
    γ = G_ZZ's diagonal − (W ∘ G_ZS) 1           its squared length off the support's span

with G = AᵀA (+ a ridge on the diagonal) and b = Aᵀy. The energy ½‖y − Ax‖² then changes by

    remove slot k                ½ x_k² / U_kk
    add outside column p         −½ r_p² / γ_p
    swap slot k for column p     ½ x_k²/U_kk − ½ (r_p + W_pk x_k/U_kk)² / (γ_p + W_pk²/U_kk)

An accepted move costs one fused pass over W, O((N − K) K); a rejected one costs nothing.

Units. The kernels expect columns of unit norm and a signal of unit norm (`problem.py` sees to it),
so all numbers here are of order one. Only ``diag``, never the stored Gram rows, holds the diagonal.

Which supports exist. A support is *admissible* if each of its columns keeps more than `PIVOT` of
its squared length off the span of the others, that is if all U_mm G_mm < 1/PIVOT. This is a
property of the support, not of the move, so a chain that refuses to leave the admissible supports
still obeys detailed balance, and its law is the Gibbs law on them. Zero columns, and two copies of
one column, are never admissible.

Energy. The running energy counts from the empty support, so that it is accurate also where most of
the signal is out of the dictionary's reach; ½‖y‖² is added outside.

Errors. Rounding grows with accepted moves, exponentially so where supports are near-singular. Each
move therefore measures, for O(K), how well the rows that it is about to use satisfy the equations
above. The largest such defect since the last refresh is the *gauge*; what these defects do to the
energy of the new support, the *fault*, is known before the move is made. The rule: `refresh`, which
recomputes everything by Cholesky, comes before a move that would bring the sum of faults above
`FAULT_LIMIT` ‖y‖², and after a move if the gauge exceeds `DEFECT_LIMIT` or `MOVES_PER_COLUMN` K +
`MOVES_AT_LEAST` moves were made. A fresh tableau of a near-singular support is itself off by its
condition number times 1e-16. Where the present or the proposed support has a column with less than
`CAREFUL` off the others' span, changes of the energy are therefore computed by `careful_swap`, in
O(K²), from formulas whose error is quadratic in that of the tableau.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.dot import dot
from l0anneal.engine.kernel import inlined, kernel
from l0anneal.problem.admissibility import PIVOT

CAREFUL = 1e-3
DEFECT_LIMIT = 1e-8
FAULT_LIMIT = 5e-11
MOVES_PER_COLUMN = 20
MOVES_AT_LEAST = 100

# indices into Tableau.counts and Tableau.values
SIZE, MOVES, REFRESHES, CLOCK, STALE = range(5)
ENERGY, DEFECT, FAULT, SINGULARITY = range(4)


class Tableau(NamedTuple):
    """Plain arrays; see the module's text for what they hold."""

    gram: NDArray[np.float64]  # rows of G; row_of[j] says which one is column j's, −1: not there
    row_of: NDArray[np.int64]
    columns: NDArray[np.float64]  # the unit columns as rows, or empty where all of G is there
    diag: NDArray[np.float64]  # G_jj + ridge
    b: NDArray[np.float64]
    inside: NDArray[np.int64]  # slot → column
    outside: NDArray[np.int64]  # outside position → column
    U: NDArray[np.float64]  # lower triangle
    W: NDArray[np.float64]
    x: NDArray[np.float64]
    r: NDArray[np.float64]
    gamma: NDArray[np.float64]
    work: NDArray[np.float64]  # scratch, rows of K
    used: NDArray[np.int64]  # when each row of gram was last used, by counts[CLOCK]
    counts: NDArray[np.int64]
    values: NDArray[np.float64]


def empty_tableau(
    gram: NDArray[np.float64],
    row_of: NDArray[np.int64],
    columns: NDArray[np.float64],
    diag: NDArray[np.float64],
    b: NDArray[np.float64],
    capacity: int,
) -> Tableau:
    """Return the tableau of the empty support, with room for ``capacity`` columns."""
    n = b.size
    return Tableau(
        gram=gram,
        row_of=row_of,
        columns=columns,
        diag=diag,
        b=b,
        inside=np.full(capacity, -1, dtype=np.int64),
        outside=np.arange(n, dtype=np.int64),
        U=np.zeros((capacity, capacity)),
        W=np.zeros((n, capacity)),
        x=np.zeros(capacity),
        r=b.copy(),
        gamma=diag.copy(),
        work=np.zeros((8, capacity)),
        used=np.zeros(gram.shape[0], dtype=np.int64),
        counts=np.zeros(5, dtype=np.int64),
        values=np.zeros(4),
    )


@kernel
def copy_tableau(source, target):  # type: ignore[no-untyped-def]
    """Make one tableau the copy of another of the same problem, which is faster than a refresh.

    What they share, the rows of the Gram matrix and when they were used, stays as it is.
    """
    target.inside[:] = source.inside
    target.outside[:] = source.outside
    target.U[:] = source.U
    target.W[:] = source.W
    target.x[:] = source.x
    target.r[:] = source.r
    target.gamma[:] = source.gamma
    clock = max(source.counts[CLOCK], target.counts[CLOCK])
    target.counts[:] = source.counts
    target.counts[CLOCK] = clock
    target.values[:] = source.values


@kernel
def inverse_row(t, k):  # type: ignore[no-untyped-def]
    """Put row k of U, of which only the lower triangle is kept, into scratch and return it."""
    n_inside = t.counts[SIZE]
    u = t.work[1, :n_inside]
    u[: k + 1] = t.U[k, : k + 1]
    for m in range(k + 1, n_inside):
        u[m] = t.U[m, k]
    return u


@kernel
def _support_gram(t):  # type: ignore[no-untyped-def]
    """G_SS, from the rows of G if they are there, and from the columns if not."""
    n_inside = t.counts[SIZE]
    there = True
    for m in range(n_inside):
        there = there and t.row_of[t.inside[m]] >= 0
    if there:
        G = np.empty((n_inside, n_inside))
        for m in range(n_inside):
            row = t.gram[t.row_of[t.inside[m]]]
            for n in range(n_inside):
                G[m, n] = row[t.inside[n]]
    else:
        chosen = np.empty((n_inside, t.columns.shape[1]))
        for m in range(n_inside):
            chosen[m] = t.columns[t.inside[m]]
        G = np.dot(chosen, chosen.T)
    for m in range(n_inside):
        G[m, m] = t.diag[t.inside[m]]
    return G


@kernel
def careful_swap(t, k, j, w_j):  # type: ignore[no-untyped-def]
    """Energy change when column j takes slot k, and what makes it up, for near-singular supports.

    w_j is j's regression on the support. With the regressions a of the leaving and v of the entering
    column on what stays, and the coefficients x there, the squared distances G_jj − 2 v·g + v·Gv and
    the correlations b_j − v·b − x·g + x·Gv are stationary in v, a and x: their errors do not count.
    Returns the change, the leaving column's distance, the entering one's, and its correlation.
    """
    n_inside = t.counts[SIZE]
    i = t.inside[k]
    G = _support_gram(t)
    u = inverse_row(t, k)
    freed = 1.0 / u[k]
    a = -freed * u
    a[k] = 0.0
    v = w_j + w_j[k] * a
    v[k] = 0.0
    leaving = t.diag[i]
    entering = t.diag[j]
    r_i = t.b[i]
    r_j = t.b[j]
    for m in range(n_inside):
        if m == k:
            continue
        G_m = G[m]
        x_m = t.x[m] + t.x[k] * a[m]
        column = t.inside[m]
        if t.row_of[column] >= 0:
            g_m = t.gram[t.row_of[column], j]
        else:
            g_m = dot(t.columns[column], t.columns[j])
        Ga = dot(a, G_m)
        Gv = dot(v, G_m)
        leaving += a[m] * (Ga - 2.0 * G_m[k])
        entering += v[m] * (Gv - 2.0 * g_m)
        r_i += x_m * (Ga - G_m[k]) - a[m] * t.b[column]
        r_j += x_m * (Gv - g_m) - v[m] * t.b[column]
    if entering <= PIVOT * t.diag[j] or leaving <= 0.0:
        return np.inf, leaving, entering, r_j
    return 0.5 * r_i * r_i / leaving - 0.5 * r_j * r_j / entering, leaving, entering, r_j


@kernel
def delta_remove(t, k):  # type: ignore[no-untyped-def]
    """Energy change when slot k is emptied."""
    return 0.5 * t.x[k] * t.x[k] / t.U[k, k]


@kernel
def delta_add(t, p):  # type: ignore[no-untyped-def]
    """Energy change when outside column p joins; infinite if it may not."""
    gamma = t.gamma[p]
    if gamma <= PIVOT * t.diag[t.outside[p]]:
        return np.inf
    return -0.5 * t.r[p] * t.r[p] / gamma


@kernel
def is_near_singular(t, gamma, j):  # type: ignore[no-untyped-def]
    """Whether the present support, or the one with column j at distance gamma, calls for care."""
    return gamma <= CAREFUL * t.diag[j] or t.values[SINGULARITY] * CAREFUL >= 1.0


@kernel
def _delta_swap_carefully(t, k, p, gamma):  # type: ignore[no-untyped-def]
    if gamma <= 0.01 * PIVOT and t.values[SINGULARITY] * CAREFUL < 1.0:
        return np.inf  # a copy of what is there
    return careful_swap(t, k, t.outside[p], t.W[p, : t.counts[SIZE]])[0]


@inlined
def delta_swap(t, k, p):  # type: ignore[no-untyped-def]
    """Energy change when outside column p takes slot k; infinite if it may not."""
    w = t.W[p, k]
    freed = w / t.U[k, k]
    gamma = t.gamma[p] + w * freed
    # `is_near_singular`, which as a call would cost more than all the rest
    if gamma <= CAREFUL * t.diag[t.outside[p]] or t.values[SINGULARITY] * CAREFUL >= 1.0:
        return _delta_swap_carefully(t, k, p, gamma)
    r = t.r[p] + freed * t.x[k]
    return 0.5 * t.x[k] * t.x[k] / t.U[k, k] - 0.5 * r * r / gamma


@kernel
def refresh_due(t):  # type: ignore[no-untyped-def]
    """The rule of the module's text."""
    # a fresh tableau has a gauge of the order of its condition number times 1e-16
    fresh = 1e-14 * t.counts[SIZE] * t.values[SINGULARITY]
    return (
        t.values[DEFECT] > DEFECT_LIMIT + fresh
        or t.counts[MOVES] >= MOVES_PER_COLUMN * t.counts[SIZE] + MOVES_AT_LEAST
    )


@kernel
def _inverse(G):  # type: ignore[no-untyped-def]
    """Inverse of a positive definite matrix by Cholesky, G = L Lᵀ; False if not definite."""
    n = G.shape[0]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = G[i, j] - dot(L[i, :j], L[j])
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


@kernel
def refresh_inverse(t):  # type: ignore[no-untyped-def]
    """Recompute U, x and the energy of the present support, but not what concerns the others.

    Returns False, and leaves all as it is, if the support is singular to working precision.
    """
    n_inside = t.counts[SIZE]
    G = _support_gram(t)
    definite, U = _inverse(G)
    if not definite:
        return False
    b = np.empty(n_inside)
    for m in range(n_inside):
        b[m] = t.b[t.inside[m]]
    x = np.dot(U, b)
    x += np.dot(U, b - np.dot(G, x))  # one step of refinement
    t.U[:n_inside, :n_inside] = U
    t.x[:n_inside] = x
    t.values[ENERGY] = 0.5 * np.dot(x, np.dot(G, x)) - np.dot(b, x)
    t.values[SINGULARITY] = 0.0
    for m in range(n_inside):
        t.values[SINGULARITY] = max(t.values[SINGULARITY], U[m, m] * t.diag[t.inside[m]])
    t.counts[MOVES] = 0
    t.counts[REFRESHES] += 1
    t.values[DEFECT] = 0.0
    t.values[FAULT] = 0.0
    return True


@kernel
def refresh(t):  # type: ignore[no-untyped-def]
    """Recompute the whole tableau of the present support; False if that is singular."""
    if not refresh_inverse(t):
        return False
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    U = np.empty((n_inside, n_inside))
    for m in range(n_inside):
        for n in range(m + 1):
            U[m, n] = t.U[m, n]
            U[n, m] = t.U[m, n]
    cross = np.empty((n_outside, n_inside))
    for m in range(n_inside):
        row = t.gram[t.row_of[t.inside[m]]]
        for l in range(n_outside):
            cross[l, m] = row[t.outside[l]]
    W = np.dot(cross, U)
    for l in range(n_outside):
        t.W[l, :n_inside] = W[l]
        t.gamma[l] = t.diag[t.outside[l]] - dot(W[l], cross[l])
        t.r[l] = t.b[t.outside[l]] - dot(cross[l], t.x)
    t.counts[STALE] = 0
    return True


@kernel
def gram_row(t, j, scratch):  # type: ignore[no-untyped-def]
    """Put G_jS into the given scratch row and return it; note that column j's row was used."""
    n_inside = t.counts[SIZE]
    t.counts[CLOCK] += 1
    t.used[t.row_of[j]] = t.counts[CLOCK]
    row = t.gram[t.row_of[j]]
    g = t.work[scratch, :n_inside]
    for m in range(n_inside):
        g[m] = row[t.inside[m]]
    return g


@kernel
def measure_entering(t, p, g, x_new):  # type: ignore[no-untyped-def]
    """Gauge of outside column p's row, and the fault it makes with the coefficient x_new.

    g is G_jS. The gain ½ r²/γ is off by x δr + ½ x² δγ, where x = r/γ.
    """
    j = t.outside[p]
    gamma = abs(t.diag[j] - t.gamma[p] - dot(g, t.W[p]))
    r = abs(t.b[j] - t.r[p] - dot(g, t.x))
    t.values[DEFECT] = max(t.values[DEFECT], gamma, r)
    return abs(x_new) * r + 0.5 * x_new * x_new * gamma


@kernel
def measure_leaving(t, k, u, h):  # type: ignore[no-untyped-def]
    """Gauge of u, which ought to be row k of the inverse, and the fault it makes.

    h is G_iS for the slot's column i.
    """
    unit = abs(u[k] * (t.diag[t.inside[k]] - h[k]) - 1.0 + dot(u, h))
    x = -t.x[k]
    for m in range(t.counts[SIZE]):
        x += u[m] * t.b[t.inside[m]]
    x = abs(x)
    t.values[DEFECT] = max(t.values[DEFECT], unit)
    return abs(t.x[k]) / u[k] * (x + abs(t.x[k]) * unit)


@kernel
def refreshed_for(t, fault):  # type: ignore[no-untyped-def]
    """Book a move's fault, or refresh first and return True: the move must be measured again."""
    if t.values[FAULT] + fault > FAULT_LIMIT and t.counts[MOVES] > 0 and refresh(t):
        return True
    t.values[FAULT] += fault
    return False


def drift(t: Tableau) -> dict[str, float]:
    """Compare a tableau with a fresh one of the same support.

    Returns the largest absolute differences in ``energy``, ``coefficients`` (x) and ``regressions``
    (W), in the tableau's own units (unit columns, unit signal).
    """
    shared = ("gram", "row_of", "columns", "diag", "b")
    fresh = t._replace(
        **{name: getattr(t, name).copy() for name in t._fields if name not in shared}
    )
    if not refresh(fresh):
        raise ValueError("the support is singular to working precision: it has no fresh tableau")
    n_inside = int(t.counts[SIZE])
    n_outside = t.b.size - n_inside

    def largest(difference: NDArray[np.float64]) -> float:
        return float(np.max(np.abs(difference), initial=0.0))

    return {
        "energy": float(abs(t.values[ENERGY] - fresh.values[ENERGY])),
        "coefficients": largest(t.x[:n_inside] - fresh.x[:n_inside]),
        "regressions": largest(t.W[:n_outside, :n_inside] - fresh.W[:n_outside, :n_inside]),
    }
