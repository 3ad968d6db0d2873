"""The pivot tableau of a support, from which any change of the energy is computed in O(1).

For a support S of K columns in slots 0, ..., K−1 and the N − K columns Z outside, the tableau holds

    U = (G_SS)⁻¹,   x = U b_S                    coefficients, by slot
    W = G_ZS U                                   each outside column regressed on the support
    r = b_Z − G_ZS x                             its correlation with the residual
    γ = diag(G_ZZ) − (W ∘ G_ZS) 1                its squared distance from the support's span

with G = AᵀA (plus a ridge on the diagonal) and b = Aᵀy. The energy ½‖y − Ax‖² then changes by

    remove slot k                ½ x_k² / U_kk
    add outside column p         −½ r_p² / γ_p
    swap slot k for column p     ½ x_k²/U_kk − ½ (r_p + W_pk x_k/U_kk)² / (γ_p + W_pk²/U_kk)

An accepted move costs one pass over W, O((N − K) K); a rejected move leaves the tableau as it is.

Units. The kernels expect columns and a signal of unit norm, which `SparseProblem` provides, so that
all numbers here are of order one. The diagonal of G is read from ``diag`` only, never from the stored
rows of G, because the ridge is added to ``diag`` alone.

Admissible supports. A support is *admissible* if, for each of its columns, the squared distance from
the span of the others is more than `PIVOT` times its squared norm, that is if all U_mm G_mm < 1/PIVOT.
This is a property of the support and not of the move that leads to it. A chain that rejects moves to
inadmissible supports therefore obeys detailed balance, and its law is the Gibbs law on the admissible
ones. A support with a zero column, or with two copies of one column, is never admissible.

Energy. The tableau's energy is relative to that of the empty support, ½‖y‖², so that it is accurate
even where most of the signal is out of the dictionary's reach. `Workspace.to_energy` adds ½‖y‖².

Errors. Rounding errors grow with the number of accepted moves, and exponentially so where supports are
near-singular. Each move therefore measures, in O(K), how well the rows that it is about to use satisfy
the equations above. The largest deviation since the last refresh is the *defect*. The error that these
deviations cause in the energy of the new support is the *fault*, which is known before the move is
made. The tableau is recomputed by Cholesky (`refresh`)

- before a move that would bring the sum of faults above `FAULT_LIMIT` ‖y‖²,
- after a move, if the defect exceeds `DEFECT_LIMIT`,
- after `MOVES_PER_COLUMN` K + `MOVES_AT_LEAST` moves.

Even a fresh tableau of a near-singular support has errors of its condition number times 1e-16. A
support counts as near-singular if, for one of its columns, the squared distance from the span of the
others is at most `CAREFUL` times its squared norm. Where the present or the proposed support is
near-singular, `careful_swap` computes the change of the energy in O(K²), from formulas whose error is
quadratic in that of the tableau.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64, typeof
from numpy.typing import NDArray

from l0anneal.engine.kernel import allocating, inlined, inner, separate
from l0anneal.engine.symmetric import read_row
from l0anneal.engine.vectors import dot
from l0anneal.problem.admissibility import PIVOT

CAREFUL = 1e-3
DEFECT_LIMIT = 1e-8
FAULT_LIMIT = 5e-11
MOVES_PER_COLUMN = 20
MOVES_AT_LEAST = 100

# Indices into Tableau.counts: columns in the support, moves since the last refresh, refreshes, a clock
# that advances when a row of G is used, and whether W, r and γ are stale.
SIZE, MOVES, REFRESHES, CLOCK, STALE = range(5)
# Indices into Tableau.values: the energy, the defect and the sum of faults since the last refresh, and
# the largest U_mm G_mm.
ENERGY, DEFECT, FAULT, SINGULARITY = range(4)

# Rows of Tableau.work that have a meaning of their own, after the first nine: the factors of a change
# of U, the diagonals of U and of G_SS, and the first of five that `pair_flip_direct` keeps.
FACTOR_U, FACTOR_V, OF_U, OF_G, KEPT = 9, 10, 11, 12, 13


class Tableau(NamedTuple):
    """The arrays of a tableau; the module's docstring defines U, W, x, r, gamma and b."""

    gram: NDArray[np.float64]  # rows of G, not necessarily all of them
    row_of: NDArray[np.int64]  # column → its row of ``gram``, −1 if that row is not held
    columns: NDArray[np.float64]  # the unit columns as rows; empty if not needed
    diag: NDArray[np.float64]  # G_jj + ridge
    b: NDArray[np.float64]
    inside: NDArray[np.int64]  # slot → column
    outside: NDArray[np.int64]  # outside position → column
    U: NDArray[np.float64]  # see `symmetric` for the part that is kept
    W: NDArray[np.float64]
    x: NDArray[np.float64]
    r: NDArray[np.float64]
    gamma: NDArray[np.float64]
    work: NDArray[np.float64]  # scratch rows of length K
    inner: NDArray[np.float64]  # G_SS by slot, where ``known`` has all columns of the support
    known: NDArray[np.int64]  # slot → the column for which ``inner`` was filled
    place: NDArray[np.int64]  # column → the column of a stale W that has its row of G, or −1
    used: NDArray[np.int64]  # the value of counts[CLOCK] when each row of ``gram`` was last used
    counts: NDArray[np.int64]
    values: NDArray[np.float64]


def aligned_zeros(shape: tuple[int, ...], dtype: type[np.floating]) -> NDArray[Any]:
    """Return an array of zeros that begins at a multiple of 64 bytes.

    A vector of 64 bytes is then never divided between two lines of the processor's cache, if rows have
    as many bytes as one or more lines.
    """
    item = np.dtype(dtype).itemsize
    size = math.prod(shape)
    room = np.zeros(size + 64 // item, dtype=dtype)
    begin = -room.ctypes.data % 64 // item
    return room[begin : begin + size].reshape(shape)


def aligned_rows(n: int, length: int) -> NDArray[np.float64]:
    """Return n rows of zeros with room for ``length``; each begins at a multiple of 64 bytes."""
    return aligned_zeros((n, -(-length // 8) * 8), np.float64)


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
        U=aligned_rows(capacity, capacity),
        W=aligned_rows(n, capacity),
        x=np.zeros(capacity),
        r=b.copy(),
        gamma=diag.copy(),
        work=aligned_rows(KEPT + 5, capacity),
        inner=np.zeros((capacity, capacity)),
        known=np.full(capacity, -1, dtype=np.int64),
        place=np.full(n, -1, dtype=np.int64),
        used=np.zeros(gram.shape[0], dtype=np.int64),
        counts=np.zeros(5, dtype=np.int64),
        values=np.zeros(4),
    )


def grown_tableau(t: Tableau, capacity: int) -> Tableau:
    """Return the same tableau with room for ``capacity`` columns in the support."""
    old = t.inside.size
    inside = np.full(capacity, -1, dtype=np.int64)
    x = np.zeros(capacity)
    U, W = aligned_rows(capacity, capacity), aligned_rows(t.b.size, capacity)
    inside[:old], x[:old] = t.inside, t.x
    U[:old, : t.U.shape[1]], W[:, : t.W.shape[1]] = t.U, t.W
    work = aligned_rows(t.work.shape[0], capacity)
    inner, known = np.zeros((capacity, capacity)), np.full(capacity, -1, dtype=np.int64)
    inner[:old, :old], known[:old] = t.inner, t.known
    return t._replace(inside=inside, U=U, x=x, W=W, work=work, inner=inner, known=known)


# the type of all tableaus, for functions that are compiled separately
TABLEAU = typeof(
    empty_tableau(
        np.empty((1, 1)),
        np.empty(1, dtype=np.int64),
        np.empty((1, 1)),
        np.empty(1),
        np.empty(1),
        capacity=1,
    )
)


@inner
def copy_row(source, target):
    """Copy ``source`` to the beginning of ``target``.

    Numba's slice assignment does the same, but brings its error messages, and the functions on strings
    that make them, into each kernel.
    """
    for i in range(source.size):
        target[i] = source[i]


@allocating
def support_gram(t):
    """Return G_SS as far as it is known, else from rows of G if all are held, else from the columns."""
    n_inside = t.counts[SIZE]
    known = there = True
    for m in range(n_inside):
        known = known and t.known[m] == t.inside[m]
        there = there and t.row_of[t.inside[m]] >= 0
    G = np.empty((n_inside, n_inside))
    for m in range(n_inside):
        if known:
            copy_row(t.inner[m, :n_inside], G[m])
        elif there:
            row = t.gram[t.row_of[t.inside[m]]]
            for n in range(n_inside):
                G[m, n] = row[t.inside[n]]
        else:
            column = t.columns[t.inside[m]]
            for n in range(m):
                G[m, n] = G[n, m] = dot(column, t.columns[t.inside[n]])
        G[m, m] = t.diag[t.inside[m]]
    return G


@separate(TABLEAU, int64, int64, float64[::1], allocates=True)
def careful_swap(t, k, j, w_j):
    """Compute the energy change when column j takes slot k, accurately for near-singular supports.

    w_j is the regression of j on the support. Let a and v be the regressions of the leaving and the
    entering column on the columns that stay, and x the coefficients of these. The squared distances
    G_jj − 2 v·g + v·Gv and the correlations b_j − v·b − x·g + x·Gv are stationary in v, a and x, so
    that errors in v, a and x have no effect to first order. Returns the energy change, the squared
    distances of the leaving and of the entering column, and the correlation of the entering one.
    """
    n_inside = t.counts[SIZE]
    i = t.inside[k]
    G = support_gram(t)
    u, a, v = np.empty(n_inside), np.empty(n_inside), np.empty(n_inside)
    read_row(t.U, k, u)
    freed = 1.0 / u[k]
    for m in range(n_inside):
        a[m] = -freed * u[m] if m != k else 0.0
        v[m] = w_j[m] + w_j[k] * a[m] if m != k else 0.0
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


@inner
def delta_remove(t, k):
    """Return the energy change when the column in slot k is removed."""
    return 0.5 * t.x[k] * t.x[k] / t.U[k, k]


@inner
def delta_add(t, p):
    """Return the energy change when outside column p is added; infinite if that is inadmissible."""
    gamma = t.gamma[p]
    if gamma <= PIVOT * t.diag[t.outside[p]]:
        return np.inf
    return -0.5 * t.r[p] * t.r[p] / gamma


@inlined
def is_near_singular(t, gamma, j):
    """Whether the present support, or the one with column j at distance γ, is near-singular."""
    return gamma <= CAREFUL * t.diag[j] or t.values[SINGULARITY] * CAREFUL >= 1.0


@inlined
def weigh_swap(t, k, j, g, v):
    """Weigh the exchange of slot k for column j without W, r and γ, from g = G_jS and v = U g.

    Returns the change of the energy, γ' and r' of column j once slot k is empty, and whether
    `careful_swap` was needed.
    """
    gamma = t.diag[j] - dot(g, v)
    r = t.b[j] - dot(g, t.x)
    freed = 1.0 / t.U[k, k]
    w, x_k = v[k], t.x[k]
    gamma += w * w * freed
    r += w * freed * x_k
    if is_near_singular(t, gamma, j):
        delta, _, gamma, r = careful_swap(t, k, j, v)
        return delta, gamma, r, True
    return 0.5 * x_k * x_k * freed - 0.5 * r * r / gamma, gamma, r, False


@separate(TABLEAU, int64, int64, float64)
def _delta_swap_carefully(t, k, p, gamma):
    if gamma <= 0.01 * PIVOT and t.values[SINGULARITY] * CAREFUL < 1.0:
        return np.inf  # a copy of a column of the support
    return careful_swap(t, k, t.outside[p], t.W[p, : t.counts[SIZE]])[0]


@inlined
def delta_swap(t, k, p):
    """Return the energy change when outside column p takes slot k; infinite if inadmissible."""
    w = t.W[p, k]
    freed = w / t.U[k, k]
    gamma = t.gamma[p] + w * freed
    # the condition of `is_near_singular`, written out because a call would dominate the cost
    if gamma <= CAREFUL * t.diag[t.outside[p]] or t.values[SINGULARITY] * CAREFUL >= 1.0:
        return _delta_swap_carefully(t, k, p, gamma)
    r = t.r[p] + freed * t.x[k]
    return 0.5 * t.x[k] * t.x[k] / t.U[k, k] - 0.5 * r * r / gamma


@inlined
def read_gram_row(t, j, g):
    """Copy G_jS to g, and record that row j of G was used."""
    t.counts[CLOCK] += 1
    t.used[t.row_of[j]] = t.counts[CLOCK]
    row = t.gram[t.row_of[j]]
    for m in range(g.size):
        g[m] = row[t.inside[m]]


@inlined
def measure_entering(t, p, g, x_new):
    """Measure the defect of outside column p's row, and return the fault that it causes.

    g is G_jS, and x_new = r/γ the coefficient that the column will have. The gain ½ r²/γ is wrong by
    x_new δr + ½ x_new² δγ.
    """
    j = t.outside[p]
    gamma = abs(t.diag[j] - t.gamma[p] - dot(g, t.W[p]))
    r = abs(t.b[j] - t.r[p] - dot(g, t.x))
    t.values[DEFECT] = max(t.values[DEFECT], gamma, r)
    return abs(x_new) * r + 0.5 * x_new * x_new * gamma


@inlined
def measure_leaving(t, k, u, h):
    """Measure the defect of u, which should be row k of the inverse, and return the fault it causes.

    h is G_iS for the column i in slot k.
    """
    b = t.work[8, : u.size]
    for m in range(u.size):
        b[m] = t.b[t.inside[m]]
    return measure_leaving_with(t, k, u, h, b)


@inlined
def measure_leaving_with(t, k, u, h, b):
    """Do `measure_leaving`, where the correlations b_S are known."""
    unit = abs(u[k] * (t.diag[t.inside[k]] - h[k]) - 1.0 + dot(u, h))
    x = abs(dot(u, b) - t.x[k])
    t.values[DEFECT] = max(t.values[DEFECT], unit)
    return abs(t.x[k]) / u[k] * (x + abs(t.x[k]) * unit)
