"""The search for a better support of one signal: exchanges of atoms, kicks, and descents.

The tableau of `coding_state` gives the energy of every exchange. The entries change with an exchange as
`pivots` says; here the sums run over slots and the loops over atoms.

Errors. Before an exchange, the rows that it uses are compared with the equations that they should
satisfy, in O(k). From the differences follows the error of the new energy, the *fault*. The tableau is
recomputed by Cholesky before an exchange that would bring the sum of faults above `FAULT_LIMIT`, and
after `MOVES_PER_ATOM` k + `MOVES_AT_LEAST` exchanges. At the end of a descent the energy is computed
as x·(½ G_SS x − b_S), in which an error of x has no effect to first order; if it differs from the sum
of the changes, the tableau is recomputed and the descent goes on.
"""

import numpy as np
from numba import int64, uint64

from l0anneal.engine.coding_state import (
    CODE_TABLEAU,
    DICTIONARY,
    ENERGY,
    ENTERING,
    FAULT,
    G_ROW,
    GAIN,
    LEAVING,
    MOVES,
    SIZE,
    STEP,
    U_ROW,
    V_ROW,
    back_substitute,
    combine,
    factorise,
)
from l0anneal.engine.kernel import inlined, inner, separate
from l0anneal.engine.rng import below
from l0anneal.engine.vectors import dot, largest, position_of
from l0anneal.problem.admissibility import PIVOT

__all__ = ["RESOLUTION", "exchange", "open_tableau", "renew", "search"]

KICKED = 3
TRIES = 4  # draws of an atom for a kick that may be nearly dependent
CLEAR_OF = 1e-3  # squared distance from the span that an atom in a kick should have
RESOLUTION = 1e-13  # as in `moves.descent`
FAULT_LIMIT = 5e-11
MOVES_PER_ATOM = 20
MOVES_AT_LEAST = 100
_ROUNDS = 100  # largest number of steps per slot, in case rounding makes the descent cycle


@inlined
def _set_inside(t):
    """Write the columns of the atoms inside, which are known exactly."""
    n = t.counts[SIZE]
    for k in range(n):
        j = t.inside[k]
        for m in range(n):
            t.W[m, j] = 0.0
        t.W[k, j] = 1.0
        t.r[j] = t.gamma[j] = 0.0


@inlined
def _invert_factor(L, inverse, U, n):
    """Write the inverse of L Lᵀ to U."""
    for i in range(n):
        row = inverse[i]
        for j in range(i):
            row[j] = 0.0
        for m in range(i):
            factor, above = L[i, m] * L[i, i], inverse[m]
            for j in range(m + 1):
                row[j] -= factor * above[j]
        row[i] = L[i, i]
        for m in range(n):
            U[i, m] = 0.0
    for i in range(n):
        row = inverse[i]
        for m in range(i + 1):
            factor, U_m = row[m], U[m]
            for j in range(i + 1):
                U_m[j] += factor * row[j]


@inner
def open_tableau(t):
    """Change what a pursuit left in ``t`` into the tableau of its support."""
    n = t.counts[SIZE]
    for m in range(n):
        t.x[m] = t.z[m]
    back_substitute(t.L, t.x, n)
    factors = t.short[G_ROW]
    for k in range(n - 1, -1, -1):
        for m in range(k + 1, n):
            factors[m] = t.L[m, k]
        row, scale = t.W[k], t.L[k, k]
        combine(row, t.W, t.slots, factors, k + 1, n)
        for p in range(row.size):
            row[p] *= scale
    _invert_factor(t.L, t.inverse, t.U, n)
    _set_inside(t)
    t.counts[MOVES] = 1  # not as accurate as after `renew`
    t.values[FAULT] = 0.0


@inlined
def _energy(d, t):
    """Return x·(½ G_SS x − b_S), the energy of the coefficients of the tableau."""
    n = t.counts[SIZE]
    energy = 0.0
    for m in range(n):
        row = d.gram[t.inside[m]]
        product = 0.0
        for l in range(n):
            product += row[t.inside[l]] * t.x[l]
        energy += t.x[m] * (0.5 * product - t.b[t.inside[m]])
    return energy


@separate(DICTIONARY, CODE_TABLEAU)
def renew(d, t):
    """Recompute the tableau of the present support; return False if that is singular."""
    n = t.counts[SIZE]
    support = t.inside[:n]
    if factorise(d, support, t.L) == 0.0:
        return False
    _invert_factor(t.L, t.inverse, t.U, n)
    step, x, factors = t.short[STEP], t.x, t.short[G_ROW]
    for m in range(n):
        x[m] = 0.0
        step[m] = t.b[support[m]]
    for _ in range(2):  # solve, and one step of refinement
        for m in range(n):
            x[m] += dot(t.U[m, :n], step)
        for m in range(n):
            row = d.gram[support[m]]
            step[m] = t.b[support[m]]
            for l in range(n):
                step[m] -= row[support[l]] * x[l]
    for p in range(t.r.size):
        t.r[p] = t.b[p]
    combine(t.r, d.gram, support, x, np.int64(0), n)
    for p in range(t.r.size):
        t.gamma[p] = d.diag[p]
    for k in range(n):
        row, gram, gamma = t.W[k], d.gram[support[k]], t.gamma
        for m in range(n):
            factors[m] = -t.U[k, m]
        for p in range(row.size):
            row[p] = 0.0
        combine(row, d.gram, support, factors, np.int64(0), n)
        for p in range(row.size):
            gamma[p] -= row[p] * gram[p]
    _set_inside(t)
    t.counts[MOVES] = 0
    t.values[FAULT] = 0.0
    t.values[ENERGY] = _energy(d, t)
    return True


@inlined
def _fault(d, t, k, j, entering, freed):
    """Return the error of the energy after an exchange; row `G_ROW` receives G_jS.

    ``entering`` is the coefficient that the atom j will have. As in `measure_entering` and
    `measure_leaving` of `tableau`.
    """
    n = t.counts[SIZE]
    g, row, leaving = t.short[G_ROW], d.gram[j], d.gram[t.inside[k]]
    gamma = d.diag[j] - t.gamma[j]
    r = t.b[j] - t.r[j]
    unit = -1.0
    for m in range(n):
        g[m] = row[t.inside[m]]
        gamma -= g[m] * t.W[m, j]
        r -= g[m] * t.x[m]
        unit += t.U[k, m] * leaving[t.inside[m]]
    fault = abs(entering * r) + 0.5 * entering * entering * abs(gamma)
    return fault + t.x[k] * t.x[k] * freed * abs(unit)


@inlined
def _change_rows(t, gram, k, j, gamma_j, r_j, freed):
    """Update W, r and γ for an exchange; the rows of ``short`` are prepared."""
    n = t.counts[SIZE]
    u, v, g = t.short[U_ROW], t.short[V_ROW], t.short[G_ROW]
    c, s, r, gamma, W_k = t.long[ENTERING], t.long[LEAVING], t.r, t.gamma, t.W[k]
    w, x_k, scale = W_k[j], t.x[k], 1.0 / gamma_j
    for p in range(c.size):
        c[p] = gram[p]
    combine(c, t.W, t.slots, g, np.int64(0), n)
    for p in range(c.size):
        s[p] = W_k[p] * freed
    for p in range(c.size):
        c[p] += w * s[p]
    for p in range(c.size):
        gamma[p] += W_k[p] * s[p] - c[p] * (c[p] * scale)
    for p in range(c.size):
        c[p] *= scale
    for p in range(c.size):
        r[p] += s[p] * x_k - c[p] * r_j
    for m in range(n):
        row, u_m, v_m = t.W[m], u[m], v[m]
        if m != k:
            for p in range(c.size):
                row[p] -= u_m * s[p] + v_m * c[p]
        row[j] = 0.0
    for p in range(c.size):
        W_k[p] = c[p]
    W_k[j] = 1.0
    r[j] = gamma[j] = 0.0


@inlined
def _change_inverse(t, k, gamma_j, r_j, freed):
    """Update U and x for an exchange."""
    n = t.counts[SIZE]
    u, v = t.short[U_ROW], t.short[V_ROW]
    x_k, scale = t.x[k], 1.0 / gamma_j
    for m in range(n):
        row, u_m, v_m = t.U[m], u[m] * freed, v[m] * scale
        for l in range(n):
            row[l] += v_m * v[l] - u_m * u[l]
        t.x[m] -= x_k * u_m + r_j * v_m
    for m in range(n):
        t.U[m, k] = t.U[k, m] = -v[m] * scale
    t.U[k, k] = scale
    t.x[k] = r_j * scale


@separate(DICTIONARY, CODE_TABLEAU, int64, int64)
def exchange(d, t, k, j):
    """Let atom j take slot k; return False, and change no support, if the new one is not admissible."""
    n = t.counts[SIZE]
    while True:
        freed = 1.0 / t.U[k, k]
        w = t.W[k, j] * freed
        gamma_j = t.gamma[j] + t.W[k, j] * w
        r_j = t.r[j] + w * t.x[k]
        if not gamma_j > d.floor[j]:
            return False
        fault = _fault(d, t, k, j, r_j / gamma_j, freed)
        if t.values[FAULT] + fault > FAULT_LIMIT and t.counts[MOVES] > 0 and renew(d, t):
            continue
        break
    u, v = t.short[U_ROW], t.short[V_ROW]
    for m in range(n):
        u[m] = t.U[k, m]
        v[m] = t.W[m, j] - w * u[m]
    v[k] = 0.0
    for m in range(n):
        pivot = t.U[m, m] - u[m] * u[m] * freed + v[m] * v[m] / gamma_j
        if m != k and pivot * PIVOT >= 1.0:
            return False
    t.values[ENERGY] += 0.5 * (t.x[k] * t.x[k] * freed - r_j * r_j / gamma_j)
    t.values[FAULT] += fault
    _change_rows(t, d.gram[j], k, j, gamma_j, r_j, freed)
    _change_inverse(t, k, gamma_j, r_j, freed)
    t.inside[k] = j
    t.counts[MOVES] += 1
    return True


@inner
def _gains(d, t, k):
    """Write what each atom would gain in slot k, r'²/γ', to row `GAIN`; return the largest gain."""
    W_k, gamma, r, floor, gain = t.W[k], t.gamma, t.r, d.floor, t.long[GAIN]
    freed, x_k = 1.0 / t.U[k, k], t.x[k]
    for p in range(gain.size):
        s = W_k[p] * freed
        gamma_p = gamma[p] + W_k[p] * s
        r_p = r[p] + s * x_k
        ratio = r_p * r_p / gamma_p
        gain[p] = ratio if gamma_p > floor[p] else 0.0
    return largest(gain, 0.0)


@separate(DICTIONARY, CODE_TABLEAU, int64)
def _descend(d, t, first):
    """Give each slot in turn its best atom, starting at slot ``first``, until no slot gains.

    The atom in the slot has a gain too, of x_k²/U_kk, so that a slot that has its best atom gains
    nothing. Returns False if the support became singular.
    """
    n = t.counts[SIZE]
    k = first
    idle = 0
    for _ in range(_ROUNDS * n):
        most = _gains(d, t, k)
        idle += 1
        if 0.5 * (most - t.x[k] * t.x[k] / t.U[k, k]) > RESOLUTION:
            before = t.values[ENERGY]
            exchanged = exchange(d, t, k, position_of(t.long[GAIN], most))
            if exchanged and before - t.values[ENERGY] > RESOLUTION:
                idle = 1
            due = MOVES_PER_ATOM * n + MOVES_AT_LEAST
            if t.counts[MOVES] >= due and not renew(d, t):
                return False
        if idle >= n:
            energy = _energy(d, t)
            if abs(energy - t.values[ENERGY]) <= FAULT_LIMIT or t.counts[MOVES] == 0:
                t.values[ENERGY] = energy
                return True
            if not renew(d, t):
                return False
            idle = 0
        k = k + 1 if k + 1 < n else 0
    return renew(d, t)


@inner
def _kick(d, t, n_atoms, state):
    """Exchange random pairs, with atoms that are not nearly dependent where there are such."""
    n = t.counts[SIZE]
    for _ in range(min(KICKED, n)):
        k = below(state, n)
        j = 0
        for _ in range(TRIES):
            inside = True
            while inside:
                j = below(state, n_atoms)
                inside = False
                for m in range(n):
                    inside = inside or t.inside[m] == j
            if t.gamma[j] + t.W[k, j] * t.W[k, j] / t.U[k, k] > CLEAR_OF * d.diag[j]:
                break
        exchange(d, t, k, j)


@inner
def _copy(source, target):
    """Copy the support of a tableau, and what depends on it, into another for the same signal."""
    n = source.counts[SIZE]
    for m in range(n):
        row, copied = source.W[m], target.W[m]
        for p in range(row.size):
            copied[p] = row[p]
        for l in range(n):
            target.U[m, l] = source.U[m, l]
        target.x[m] = source.x[m]
        target.inside[m] = source.inside[m]
    for p in range(source.r.size):
        target.r[p] = source.r[p]
    for p in range(source.r.size):
        target.gamma[p] = source.gamma[p]
    for i in range(source.counts.size):
        target.counts[i] = source.counts[i]
    for i in range(source.values.size):
        target.values[i] = source.values[i]


@separate(DICTIONARY, CODE_TABLEAU, CODE_TABLEAU, int64, int64, uint64[::1])
def search(d, t, best, n_atoms, n_kicks, state):
    """Descend, then kick and descend ``n_kicks`` times.

    ``t`` is the tableau of a support, and ``best`` has its correlations b too. In the end, the support
    of ``best`` is the best that was found; its energy is infinite if the first descent failed.
    """
    if not _descend(d, t, np.int64(0)):
        best.values[ENERGY] = np.inf
        return
    if n_kicks == 0:
        for m in range(t.counts[SIZE]):
            best.inside[m] = t.inside[m]
        best.values[ENERGY] = t.values[ENERGY]
        return
    _copy(t, best)
    for _ in range(n_kicks):
        _kick(d, t, n_atoms, state)
        sound = _descend(d, t, below(state, t.counts[SIZE]))
        if sound and t.values[ENERGY] < best.values[ENERGY] - RESOLUTION:
            _copy(t, best)
        elif not sound or t.values[ENERGY] > best.values[ENERGY] + RESOLUTION:
            _copy(best, t)
