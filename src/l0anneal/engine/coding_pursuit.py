"""Matching pursuits for sparse coding: atoms are chosen one by one, and none is given back.

A step makes the new atom orthogonal to those before, in products with all atoms at once: one row of
length N, from which the rows so far are subtracted. k steps take O(k² N) operations on contiguous
rows.
"""

import math

import numpy as np
from numba import float64, int64

from l0anneal.engine.coding_state import (
    CODE_TABLEAU,
    DICTIONARY,
    ENERGY,
    GAIN,
    OPEN,
    SIZE,
    SMALL_PIVOT,
    STEP,
    back_substitute,
    combine,
    leave_residual,
    refine,
    refit,
)
from l0anneal.engine.kernel import inner, separate
from l0anneal.engine.vectors import dot, largest, position_of

__all__ = ["BY_CORRELATION", "BY_ENERGY", "NOTHING", "pursue", "pursue_plainly", "solve_pursuit"]

# How a pursuit chooses. Python integers would compile it once for each.
BY_CORRELATION, BY_ENERGY = np.int64(0), np.int64(1)
NOTHING = 1e-12  # correlations below this, of unit atoms with a unit signal, are rounding


@inner
def _include(d, t, n, j):
    """Make atom j the n-th of the support; return the part of the signal that it adds."""
    row = t.L[n]
    for m in range(n):
        row[m] = t.W[m, j]
    new, gram = t.W[n], d.gram[j]
    for p in range(new.size):
        new[p] = gram[p]
    combine(new, t.W, t.slots, row, np.int64(0), n)
    scale = 1.0 / math.sqrt(t.gamma[j])
    for p in range(new.size):
        new[p] *= scale
    for m in range(n):
        new[t.inside[m]] = 0.0  # the atoms before are in the span that was taken out
    row[n] = scale
    z = t.r[j] * scale
    t.z[n] = z
    t.inside[n] = j
    r, gamma = t.r, t.gamma
    for p in range(new.size):
        r[p] -= z * new[p]
    for p in range(new.size):
        gamma[p] -= new[p] * new[p]
    r[j] = gamma[j] = 0.0
    return z


@separate(DICTIONARY, CODE_TABLEAU, int64, float64, int64)
def pursue(d, t, n_nonzero, enough, rule):
    """Choose atoms one by one, up to a number of them or down to an energy.

    By energy, the next atom is the one that lowers the error most (order-recursive matching pursuit),
    else the one that correlates most with the residual (orthogonal matching pursuit). Returns False if
    the latter passed over a nearly dependent atom.
    """
    r, gamma, gain, free = t.r, t.gamma, t.long[GAIN], t.long[OPEN]
    for p in range(r.size):
        r[p] = t.b[p]
    for p in range(r.size):
        gamma[p] = d.diag[p]
    if rule == BY_CORRELATION:
        for p in range(r.size):
            free[p] = 1.0
    straight = True
    n = np.int64(0)  # a literal would compile what is called with it twice
    energy = 0.0
    while n < n_nonzero and energy > enough:
        if rule == BY_ENERGY:
            for p in range(r.size):
                square = r[p] * r[p]
                ratio = square / gamma[p]
                possible = (gamma[p] > d.floor[p]) & (square > NOTHING * NOTHING)
                gain[p] = ratio if possible else 0.0
        else:
            for p in range(r.size):
                gain[p] = free[p] * (r[p] * r[p])
        most = largest(gain, 0.0)
        if most <= NOTHING * NOTHING:
            break
        j = position_of(gain, most)
        if gamma[j] <= d.floor[j]:
            free[j] = 0.0
            straight = False
            continue
        z = _include(d, t, n, j)
        energy -= 0.5 * z * z
        n += 1
    t.counts[SIZE] = n
    t.values[ENERGY] = energy
    return straight


@inner
def solve_pursuit(d, t, y, scale, x, residual):
    """Compute the coefficients of the support that `pursue` left; return the squared error.

    ``scale`` is what the correlations of y were divided by.
    """
    n = t.counts[SIZE]
    least = 1.0
    for i in range(n):
        x[i] = t.z[i] * scale
        least = min(least, 1.0 / (t.L[i, i] * t.L[i, i]))
    back_substitute(t.L, x, n)
    support = t.inside[:n]
    leave_residual(d, y, support, x, residual)
    n_steps = 1 if least > SMALL_PIVOT else 3
    return refine(d, y, support, t.L, x, t.short[STEP], residual, n_steps)


@inner
def pursue_plainly(d, t, y, support, x, residual):
    """Run orthogonal matching pursuit with any atom that is independent in floating point.

    This is for signals whose pursuit includes atoms that the tableau refuses. Returns the number of
    atoms chosen.
    """
    free = t.long[OPEN]
    for j in range(free.size):
        free[j] = 1.0
    for m in range(y.size):
        residual[m] = y[m]
    for n in range(support.size):
        most = NOTHING
        chosen = -1
        for j in range(free.size):
            r = free[j] * abs(dot(d.atoms[j], residual))
            if r > most:
                most = r
                chosen = j
        if chosen < 0:
            return n
        support[n] = chosen
        free[chosen] = 0.0
        if refit(d, t, y, support[: n + 1], x, residual) == np.inf:
            return n
    return support.size
