"""Pivots: update the tableau after an accepted move.

Let the column in slot k leave and outside column p, which is column j, enter. With u = U_k:,
w = W_pk, v = W_p: − (w/U_kk) u, γ' = γ_p + w²/U_kk and r' = r_p + w x_k/U_kk, the entries of each
outside column l change as follows:

    s = W_lk/U_kk,   c = G_jl − W_l:·G_jS + s w,   q = c/γ'
    W_lm ← W_lm − s u_m − q v_m (m ≠ k),   W_lk ← q
    γ_l ← γ_l + W_lk s − c q,              r_l ← r_l + s x_k − q r'

U and x of the support change by the two rank-one steps of the paper's matrix-inversion formula.
"""

from numba import int64

from l0anneal.engine.dot import dot
from l0anneal.engine.kernel import inner, separate
from l0anneal.engine.refresh import refreshed_for
from l0anneal.engine.tableau import (
    ENERGY,
    MOVES,
    SINGULARITY,
    SIZE,
    TABLEAU,
    careful_swap,
    copy_row,
    gram_row,
    inverse_row,
    is_near_singular,
    measure_entering,
    measure_leaving,
)
from l0anneal.problem.admissibility import PIVOT

__all__ = [
    "add",
    "add_inverse",
    "prepare_swap",
    "remove",
    "remove_inverse",
    "singularity_with",
    "swap",
    "swap_inverse",
]


@inner
def prepare_swap(t, k, j, gamma, freed, u, v):
    """Test whether column j may enter slot k, and change v into its regression on S without slot k.

    v is the regression of column j on S, and gamma is γ'. Returns the largest U_mm G_mm after the
    exchange, or −1 if the new support is not admissible.
    """
    if gamma <= PIVOT * t.diag[j]:
        return -1.0
    largest = t.diag[j] / gamma
    w = v[k]
    for m in range(u.size):
        v[m] -= w * freed * u[m]
    v[k] = 0.0
    for m in range(u.size):
        if m != k:
            pivot = t.U[m, m] - u[m] * u[m] * freed + v[m] * v[m] / gamma
            largest = max(largest, pivot * t.diag[t.inside[m]])
    return largest if largest * PIVOT < 1.0 else -1.0


@inner
def swap_inverse(t, k, u, v, freed, inverse, r):
    """Update U and x for an exchange."""
    n_inside = u.size
    x_k = t.x[k]
    for m in range(n_inside):
        s = u[m] * freed
        q = v[m] * inverse
        U_m = t.U[m, : m + 1]
        for n in range(m + 1):
            U_m[n] += q * v[n] - s * u[n]
        t.x[m] -= x_k * s + r * q
    for m in range(k):
        t.U[k, m] = -v[m] * inverse
    for m in range(k + 1, n_inside):
        t.U[m, k] = -v[m] * inverse
    t.U[k, k] = inverse
    t.x[k] = r * inverse


@inner
def _swap_rows(W, gamma, r, outside, row, g, u, v, k, w, freed, inverse, x_k, r_new):
    """Update W, γ and r of the outside columns, where a run spends nearly all of its time.

    The arguments are arrays and not the tableau, so that the compiler can tell what does not change.
    """
    n_inside = g.size
    for l in range(outside.size):
        w_l = W[l, :n_inside]
        w_lk = w_l[k]
        s = w_lk * freed
        c = row[outside[l]] - dot(g, w_l) + s * w
        q = c * inverse
        for m in range(n_inside):
            w_l[m] -= s * u[m] + q * v[m]
        w_l[k] = q
        gamma[l] += w_lk * s - c * q
        r[l] += s * x_k - q * r_new


@separate(TABLEAU, int64, int64)
def swap(t, k, p):
    """Exchange the column in slot k for outside column p; the former takes outside position p.

    Returns False, and leaves the support as it is, if the new support is not admissible.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    j = t.outside[p]
    i = t.inside[k]
    while True:
        w = t.W[p, k]
        freed = 1.0 / t.U[k, k]
        x_k = t.x[k]
        gamma = t.gamma[p] + w * w * freed
        r = t.r[p] + w * x_k * freed
        delta = 0.5 * x_k * x_k * freed - 0.5 * r * r / gamma
        careful = is_near_singular(t, gamma, j)
        if careful:
            delta, _, gamma, r = careful_swap(t, k, j, t.W[p, :n_inside])
        u = inverse_row(t, k)
        v = t.work[2, :n_inside]
        copy_row(t.W[p, :n_inside], v)
        singularity = prepare_swap(t, k, j, gamma, freed, u, v)
        if singularity < 0.0:
            return False
        inverse = 1.0 / gamma
        g = gram_row(t, j, 0)
        fault = measure_entering(t, p, g, r * inverse)
        fault += measure_leaving(t, k, u, gram_row(t, i, 3))
        if not refreshed_for(t, 0.0 if careful else fault):
            break

    t.values[ENERGY] += delta
    t.values[SINGULARITY] = singularity
    left_over = t.gamma[p] * freed * inverse  # γ of the leaving column, without cancellation
    row = t.gram[t.row_of[j]]
    _swap_rows(t.W, t.gamma, t.r, t.outside[:n_outside], row, g, u, v, k, w, freed, inverse, x_k, r)

    q = w * freed * inverse
    w_p = t.W[p, :n_inside]
    for m in range(n_inside):
        w_p[m] = -freed * u[m] - q * v[m]
    w_p[k] = q
    t.gamma[p] = left_over
    t.r[p] = x_k * freed - q * r

    swap_inverse(t, k, u, v, freed, inverse, r)
    t.inside[k] = j
    t.outside[p] = i
    t.counts[MOVES] += 1
    return True


@inner
def singularity_with(t, j, v, inverse):
    """Return the largest U_mm G_mm after adding column j, with regression v and 1/γ = ``inverse``."""
    largest = t.diag[j] * inverse
    for m in range(t.counts[SIZE]):
        largest = max(largest, (t.U[m, m] + v[m] * v[m] * inverse) * t.diag[t.inside[m]])
    return largest


@inner
def add_inverse(t, j, v, inverse, r):
    """Update U, x and the slots for the addition of column j."""
    n_inside = t.counts[SIZE]
    for m in range(n_inside):
        q = v[m] * inverse
        U_m = t.U[m, : m + 1]
        for n in range(m + 1):
            U_m[n] += q * v[n]
        t.U[n_inside, m] = -q
        t.x[m] -= r * q
    t.U[n_inside, n_inside] = inverse
    t.x[n_inside] = r * inverse
    t.inside[n_inside] = j
    t.counts[SIZE] += 1


@inner
def remove_inverse(t, k, u, freed):
    """Update U, x and the slots for the removal of slot k; the last slot's column moves to slot k."""
    last = t.counts[SIZE] - 1
    x_k = t.x[k]
    for m in range(last + 1):
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
    t.inside[k] = t.inside[last]
    t.counts[SIZE] = last
    t.values[SINGULARITY] = 0.0
    for m in range(last):
        t.values[SINGULARITY] = max(t.values[SINGULARITY], t.U[m, m] * t.diag[t.inside[m]])


@separate(TABLEAU, int64)
def add(t, p):
    """Add outside column p in a new last slot; the last outside column takes position p.

    Returns False, and leaves the support as it is, if the new support is not admissible.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    j = t.outside[p]
    while True:
        gamma = t.gamma[p]
        if gamma <= PIVOT * t.diag[j]:
            return False
        inverse = 1.0 / gamma
        v = t.work[2, :n_inside]
        copy_row(t.W[p, :n_inside], v)
        singularity = singularity_with(t, j, v, inverse)
        if singularity * PIVOT >= 1.0:
            return False
        r = t.r[p]
        g = gram_row(t, j, 0)
        fault = measure_entering(t, p, g, r * inverse)
        if not refreshed_for(t, fault):
            break

    t.values[ENERGY] -= 0.5 * r * r * inverse
    t.values[SINGULARITY] = singularity
    row = t.gram[t.row_of[j]]
    for l in range(n_outside):
        w_l = t.W[l, :n_inside]
        c = row[t.outside[l]] - dot(g, w_l)
        q = c * inverse
        for m in range(n_inside):
            w_l[m] -= q * v[m]
        t.W[l, n_inside] = q
        t.gamma[l] -= c * q
        t.r[l] -= q * r

    last = n_outside - 1
    copy_row(t.W[last, : n_inside + 1], t.W[p])
    t.gamma[p] = t.gamma[last]
    t.r[p] = t.r[last]
    t.outside[p] = t.outside[last]

    add_inverse(t, j, v, inverse, r)
    t.counts[MOVES] += 1
    return True


@separate(TABLEAU, int64)
def remove(t, k):
    """Remove the column in slot k to the last outside position; the last slot's column moves to k."""
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    i = t.inside[k]
    last = n_inside - 1
    u = inverse_row(t, k)
    if refreshed_for(t, measure_leaving(t, k, u, gram_row(t, i, 3))):
        u = inverse_row(t, k)
    freed = 1.0 / u[k]
    x_k = t.x[k]
    t.values[ENERGY] += 0.5 * x_k * x_k * freed

    for l in range(n_outside):
        w_l = t.W[l, :n_inside]
        w_lk = w_l[k]
        s = w_lk * freed
        for m in range(n_inside):
            w_l[m] -= s * u[m]
        w_l[k] = w_l[last]
        t.gamma[l] += w_lk * s
        t.r[l] += s * x_k
    w_i = t.W[n_outside, :n_inside]
    for m in range(n_inside):
        w_i[m] = -freed * u[m]
    w_i[k] = w_i[last]
    t.gamma[n_outside] = freed
    t.r[n_outside] = x_k * freed
    t.outside[n_outside] = i

    remove_inverse(t, k, u, freed)
    t.counts[MOVES] += 1
