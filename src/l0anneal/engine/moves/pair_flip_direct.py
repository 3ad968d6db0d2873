"""The pair flip without W, r and γ of the outside columns: for hot chains and very wide dictionaries.

Where most proposals are accepted, updating the regressions of all outside columns costs more than it
saves. This kernel keeps U and x only, and each proposal computes the one regression that it needs:
O(K²), or O(MK) where G is not held, against O((N − K) K) for each accepted move of `pair_flip`.
Proposals, energies and law are those of `pair_flip`; `kernel_choice` tells which of the two is cheaper.
"""

import math

from l0anneal.engine.kernel import inner, separate
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, MOVE, PROPOSED, SINGULAR, direct
from l0anneal.engine.pivots import prepare_swap, swap_inverse
from l0anneal.engine.refresh import refresh_due, refresh_inverse
from l0anneal.engine.rng import below, uniform
from l0anneal.engine.symmetric import multiply, read_row
from l0anneal.engine.tableau import (
    ENERGY,
    FAULT,
    FAULT_LIMIT,
    MOVES,
    SINGULARITY,
    SIZE,
    STALE,
    careful_swap,
    is_near_singular,
    measure_leaving,
)
from l0anneal.engine.vectors import dot

__all__ = ["cross", "pair_flip_direct"]


@inner
def cross(t, j, g):
    """Fill g with G_jS from row j of G or from the rows of S where they are held, else from columns."""
    row_of_j = t.row_of[j]
    if row_of_j >= 0:
        row = t.gram[row_of_j]
        for m in range(g.size):
            g[m] = row[t.inside[m]]
    else:
        for m in range(g.size):
            i = t.inside[m]
            if t.row_of[i] >= 0:
                g[m] = t.gram[t.row_of[i], j]
            else:
                g[m] = dot(t.columns[j], t.columns[i])


@direct
@separate(*MOVE)
def pair_flip_direct(t, state, mu, stop, energies, tally):
    """Run Algorithm 1 of the paper; arguments and return value are those of `pair_flip`.

    The kernel leaves W, r and γ of the tableau stale, and never asks for a row of the Gram matrix.
    """
    n_inside = t.counts[SIZE]
    n_columns = t.b.size
    n_outside = n_columns - n_inside
    g = t.work[0, :n_inside]
    u = t.work[1, :n_inside]
    v = t.work[2, :n_inside]
    h = t.work[3, :n_inside]
    t.counts[STALE] = 1
    while tally[PROPOSED] < stop:
        if n_inside > 0 and n_outside > 0:
            k = below(state, n_inside)
            p = below(state, n_outside)
            chance = uniform(state)
            j = t.outside[p]
            cross(t, j, g)
            proposed = True
            while proposed:  # repeated only after the tableau was refreshed for this proposal
                proposed = False
                multiply(t.U, g, v)
                gamma = t.diag[j] - dot(g, v)
                r = t.b[j] - dot(g, t.x)
                freed = 1.0 / t.U[k, k]
                w = v[k]
                gamma += w * w * freed
                r += w * freed * t.x[k]
                delta = 0.5 * t.x[k] * t.x[k] * freed - 0.5 * r * r / gamma
                careful = is_near_singular(t, gamma, j)
                if careful:
                    delta, _, gamma, r = careful_swap(t, k, j, v)
                if chance >= math.exp(-mu * delta):
                    break
                read_row(t.U, k, u)
                singularity = prepare_swap(t, k, j, gamma, freed, u, v)
                if singularity < 0.0:
                    break
                i = t.inside[k]
                cross(t, i, h)
                fault = measure_leaving(t, k, u, h)
                t.values[FAULT] += 0.0 if careful else fault
                if t.values[FAULT] > FAULT_LIMIT and t.counts[MOVES] > 0:
                    if not refresh_inverse(t):
                        return SINGULAR
                    proposed = True
                    continue
                swap_inverse(t, k, u, v, freed, 1.0 / gamma, r)
                t.values[ENERGY] += delta
                t.values[SINGULARITY] = singularity
                t.inside[k] = j
                t.outside[p] = i
                t.counts[MOVES] += 1
                tally[ACCEPTED] += 1
                if refresh_due(t) and not refresh_inverse(t):
                    return SINGULAR
        tally[PROPOSED] += 1
        if tally[PROPOSED] % n_columns == 0:
            energies[tally[PROPOSED] // n_columns - 1] = t.values[ENERGY]
    return DONE
