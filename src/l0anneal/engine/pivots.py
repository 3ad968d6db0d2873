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

from l0anneal.engine.inverse_vectors import open_slot, regress
from l0anneal.engine.kernel import inlined, inner, separate
from l0anneal.engine.refresh import refreshed_for
from l0anneal.engine.symmetric import change, change_and_multiply, read_row, write_row
from l0anneal.engine.tableau import (
    ENERGY,
    FACTOR_U,
    FACTOR_V,
    MOVES,
    OF_G,
    OF_U,
    SINGULARITY,
    SIZE,
    TABLEAU,
    careful_swap,
    copy_row,
    is_near_singular,
    measure_entering,
    measure_leaving,
    read_gram_row,
)
from l0anneal.engine.vectors import dot, dot_block, subtract_block, subtract_block_and_dot
from l0anneal.problem.admissibility import PIVOT

__all__ = [
    "add",
    "add_inverse",
    "clear_slot",
    "prepare_swap",
    "read_diagonals",
    "remove",
    "remove_inverse",
    "singularity_with",
    "swap",
    "swap_inverse",
    "swap_inverse_and_multiply",
]


@inlined
def read_diagonals(t):
    """Copy the diagonals of U and of G_SS to their rows of ``work``."""
    n_inside = t.counts[SIZE]
    of_U, of_G = t.work[OF_U, :n_inside], t.work[OF_G, :n_inside]
    for m in range(n_inside):
        of_U[m] = t.U[m, m]
        of_G[m] = t.diag[t.inside[m]]


@inlined
def prepare_swap(t, k, j, gamma, freed, u, v):
    """Test whether column j may enter slot k, and change v into its regression on S without slot k.

    v is the regression of column j on S, gamma is γ', and `read_diagonals` has been called for this
    support. Returns the largest U_mm G_mm after the exchange, or −1 if the support would not be
    admissible.
    """
    if gamma <= PIVOT * t.diag[j]:
        return -1.0
    inverse = 1.0 / gamma
    least = t.diag[j] * inverse
    singularity = regress(v, u, t.work[OF_U], t.work[OF_G], k, freed, inverse, least)
    return singularity if singularity * PIVOT < 1.0 else -1.0


@inlined
def clear_slot(t, k, u):
    """Set row and column k of U to zero, as `swap_inverse` expects them.

    A processor waits if it has to read as one vector what was just written as single numbers, so that
    this is best done some time before.
    """
    write_row(t.U, k, u, 0.0)


@inlined
def _open_slot(t, k, u, v, freed, inverse, r):
    """Update x for an exchange, and fill in a and b for the change a uᵀ + b vᵀ of U.

    With zeros in row and column k of U, u_k = 0 and v_k = −1, the change fills this row and column too.
    """
    open_slot(
        u,
        v,
        t.x,
        t.work[FACTOR_U],
        t.work[FACTOR_V],
        k,
        freed,
        inverse,
        t.x[k] * freed,
        r * inverse,
    )


@inlined
def swap_inverse(t, k, u, v, freed, inverse, r):
    """Update U and x for an exchange after `clear_slot`; u and v are changed."""
    _open_slot(t, k, u, v, freed, inverse, r)
    change(t.U, t.work[FACTOR_U], u, t.work[FACTOR_V], v, t.work[OF_U])


@inlined
def swap_inverse_and_multiply(t, k, u, v, freed, inverse, r, g, w):
    """Do `swap_inverse`, and set w = U g with the U that results."""
    _open_slot(t, k, u, v, freed, inverse, r)
    change_and_multiply(t.U, t.work[FACTOR_U], u, t.work[FACTOR_V], v, t.work[OF_U], g, w)


@inner
def _swap_rows(W, gamma, r, outside, row, g, u, v, k, w, freed, inverse, x_k, r_new):
    """Update W, γ and r of the outside columns, where a run spends nearly all of its time.

    The arguments are arrays and not the tableau, so that the compiler can tell what does not change.
    """
    n_inside = g.size
    fours = outside.size & -4
    dots = dot_block(W, 0, g) if fours > 0 else (0.0, 0.0, 0.0, 0.0)
    for l in range(0, fours, 4):
        w_k = (W[l, k], W[l + 1, k], W[l + 2, k], W[l + 3, k])
        s = (w_k[0] * freed, w_k[1] * freed, w_k[2] * freed, w_k[3] * freed)
        a = row[outside[l]] - dots[0] + s[0] * w
        b = row[outside[l + 1]] - dots[1] + s[1] * w
        c = row[outside[l + 2]] - dots[2] + s[2] * w
        d = row[outside[l + 3]] - dots[3] + s[3] * w
        q = (a * inverse, b * inverse, c * inverse, d * inverse)
        if l + 4 < fours:
            dots = subtract_block_and_dot(W, l, s, u, q, v, g)
        else:
            subtract_block(W, l, s, u, q, v)
        correlation = (a, b, c, d)
        for i in range(4):
            W[l + i, k] = q[i]
            gamma[l + i] += w_k[i] * s[i] - correlation[i] * q[i]
            r[l + i] += s[i] * x_k - q[i] * r_new
    for l in range(fours, outside.size):
        W_l = W[l, :n_inside]
        w_l = W[l, k]
        s_l = w_l * freed
        c_l = row[outside[l]] - dot(g, W_l) + s_l * w
        q_l = c_l * inverse
        for m in range(n_inside):
            W_l[m] -= s_l * u[m] + q_l * v[m]
        W[l, k] = q_l
        gamma[l] += w_l * s_l - c_l * q_l
        r[l] += s_l * x_k - q_l * r_new


@inner
def _swap_outside(t, k, p, freed, inverse, w, x_k, r):
    """Update W, γ and r for the exchange of slot k for outside column p.

    This is a function of its own because the compiler then makes faster code than inside of `swap`.
    """
    n_inside = t.counts[SIZE]
    g, u, v = t.work[0, :n_inside], t.work[1, :n_inside], t.work[2, :n_inside]
    outside = t.outside[: t.b.size - n_inside]
    left_over = t.gamma[p] * freed * inverse  # γ of the leaving column, without cancellation
    row = t.gram[t.row_of[t.outside[p]]]
    _swap_rows(t.W, t.gamma, t.r, outside, row, g, u, v, k, w, freed, inverse, x_k, r)
    q = w * freed * inverse
    w_p = t.W[p, :n_inside]
    for m in range(n_inside):
        w_p[m] = -freed * u[m] - q * v[m]
    w_p[k] = q
    t.gamma[p] = left_over
    t.r[p] = x_k * freed - q * r


@separate(TABLEAU, int64, int64)
def swap(t, k, p):
    """Exchange the column in slot k for outside column p; the former takes outside position p.

    Returns False, and leaves the support as it is, if the new support is not admissible.
    """
    n_inside = t.counts[SIZE]
    j = t.outside[p]
    i = t.inside[k]
    g, u = t.work[0, :n_inside], t.work[1, :n_inside]
    v, h = t.work[2, :n_inside], t.work[3, :n_inside]
    while True:
        read_diagonals(t)
        w = t.W[p, k]
        freed = 1.0 / t.U[k, k]
        x_k = t.x[k]
        gamma = t.gamma[p] + w * w * freed
        r = t.r[p] + w * x_k * freed
        delta = 0.5 * x_k * x_k * freed - 0.5 * r * r / gamma
        careful = is_near_singular(t, gamma, j)
        if careful:
            delta, _, gamma, r = careful_swap(t, k, j, t.W[p, :n_inside])
        read_row(t.U, k, u)
        copy_row(t.W[p, :n_inside], v)
        singularity = prepare_swap(t, k, j, gamma, freed, u, v)
        if singularity < 0.0:
            return False
        inverse = 1.0 / gamma
        read_gram_row(t, j, g)
        read_gram_row(t, i, h)
        fault = measure_entering(t, p, g, r * inverse) + measure_leaving(t, k, u, h)
        if not refreshed_for(t, 0.0 if careful else fault):
            break

    t.values[ENERGY] += delta
    t.values[SINGULARITY] = singularity
    clear_slot(t, k, u)
    _swap_outside(t, k, p, freed, inverse, w, x_k, r)
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
    a, b = t.work[FACTOR_U, :n_inside], t.work[FACTOR_V, :n_inside]
    for m in range(n_inside):
        a[m] = 0.0
        b[m] = inverse * v[m]
        t.x[m] -= r * inverse * v[m]
    change(t.U, a, v, b, v, t.work[OF_U])
    write_row(t.U, n_inside, v, -inverse)
    t.U[n_inside, n_inside] = inverse
    t.x[n_inside] = r * inverse
    t.inside[n_inside] = j
    t.counts[SIZE] += 1


@inner
def remove_inverse(t, k, u, freed):
    """Update U, x and the slots for the removal of slot k; the last slot's column moves to slot k."""
    last = t.counts[SIZE] - 1
    x_k = t.x[k]
    a, b = t.work[FACTOR_U, : last + 1], t.work[FACTOR_V, : last + 1]
    for m in range(last + 1):
        a[m] = -freed * u[m]
        b[m] = 0.0
        t.x[m] -= x_k * freed * u[m]
    change(t.U, a, u, b, u, t.work[OF_U])
    if k < last:
        read_row(t.U, last, u)
        u[k] = u[last]
        write_row(t.U, k, u[:last], 1.0)
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
    g, v = t.work[0, :n_inside], t.work[2, :n_inside]
    while True:
        gamma = t.gamma[p]
        if gamma <= PIVOT * t.diag[j]:
            return False
        inverse = 1.0 / gamma
        copy_row(t.W[p, :n_inside], v)
        singularity = singularity_with(t, j, v, inverse)
        if singularity * PIVOT >= 1.0:
            return False
        r = t.r[p]
        read_gram_row(t, j, g)
        fault = measure_entering(t, p, g, r * inverse)
        if not refreshed_for(t, fault):
            break

    t.values[ENERGY] -= 0.5 * r * r * inverse
    t.values[SINGULARITY] = singularity
    row = t.gram[t.row_of[j]]
    # as for an exchange, for a leaving column of which nothing is left
    outside = t.outside[:n_outside]
    _swap_rows(t.W, t.gamma, t.r, outside, row, g, v, v, n_inside, 0.0, 0.0, inverse, 0.0, r)

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
    u, h = t.work[1, :n_inside], t.work[3, :n_inside]
    read_row(t.U, k, u)
    read_gram_row(t, i, h)
    if refreshed_for(t, measure_leaving(t, k, u, h)):
        read_row(t.U, k, u)
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
