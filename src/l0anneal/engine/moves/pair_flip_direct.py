"""The pair flip without W, r and γ of the outside columns: for hot chains and very wide dictionaries.

Where most proposals are accepted, updating the regressions of all outside columns costs more than it
saves. This kernel keeps U and x only, and each proposal computes the one regression that it needs:
O(K²), or O(MK) where G is not held, against O((N − K) K) for each accepted move of `pair_flip`. Passes
over U take most of the time, and two proposals share a pass where they can.
Proposals, energies and law are those of `pair_flip`; `kernel_choice` tells which of the two is cheaper.
"""

from numba import uint64

from l0anneal.engine.kernel import inlined, separate
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, MOVE, PROPOSED, SINGULAR, direct
from l0anneal.engine.pivots import (
    clear_slot,
    prepare_swap,
    read_diagonals,
    swap_inverse,
    swap_inverse_and_multiply,
)
from l0anneal.engine.refresh import refresh_due, refresh_inverse
from l0anneal.engine.rng import accepts, below, uniform
from l0anneal.engine.symmetric import multiply, multiply_two, read_row
from l0anneal.engine.tableau import (
    ENERGY,
    FAULT,
    FAULT_LIMIT,
    KEPT,
    MOVES,
    OF_G,
    SINGULARITY,
    SIZE,
    STALE,
    measure_leaving_with,
    weigh_swap,
)
from l0anneal.engine.vectors import dot

__all__ = ["cross", "pair_flip_direct"]


@inlined
def cross(t, j, g):
    """Fill g with G_jS from row j of G or from the rows of S where they are held, else from columns."""
    row_of_j = t.row_of[j]
    if row_of_j >= 0:
        row = t.gram[row_of_j]
        for m in range(g.size):
            g[m] = row[uint64(t.inside[m])]
    else:
        for m in range(g.size):
            i = t.inside[m]
            if t.row_of[i] >= 0:
                g[m] = t.gram[t.row_of[i], j]
            else:
                g[m] = dot(t.columns[j], t.columns[i])


@inlined
def _entry(t, j, i):
    """Return G_ji as `cross` does."""
    if t.row_of[j] >= 0:
        return t.gram[t.row_of[j], i]
    if t.row_of[i] >= 0:
        return t.gram[t.row_of[i], j]
    return dot(t.columns[j], t.columns[i])


@inlined
def _follow(t, k, p, p_next, g_next):
    """Change G_jS of the next proposal j after the exchange of slot k for outside position p."""
    if p_next == p:
        cross(t, t.outside[p], g_next)  # the column that has just left
    else:
        g_next[k] = _entry(t, t.outside[p_next], t.inside[k])


@direct
@separate(*MOVE)
def pair_flip_direct(t, state, mu, stop, energies, tally):
    """Run Algorithm 1 of the paper; arguments and return value are those of `pair_flip`.

    The kernel leaves W, r and γ of the tableau stale, and never asks for a row of the Gram matrix.

    Each proposal needs a product v = U G_Sj. The next proposal is drawn before this one is decided, and
    its product is computed in the same pass over U as that of this one, or, if this one is accepted, in
    the pass that updates U. The numbers are those of one proposal after the other.
    """
    n_inside = t.counts[SIZE]
    n_columns = t.b.size
    n_outside = n_columns - n_inside
    u, h = t.work[1, :n_inside], t.work[3, :n_inside]
    b, of_G = t.work[KEPT, :n_inside], t.work[OF_G, :n_inside]
    for m in range(n_inside):
        b[m] = t.b[t.inside[m]]
    k_next = p_next = 0
    chance_next = 0.0
    here = 0  # which of two rows of ``work`` belong to this proposal; the others belong to the next
    drawn = known = False  # whether the next proposal was drawn, and its product computed
    t.counts[STALE] = 1
    read_diagonals(t)
    while tally[PROPOSED] < stop:
        if n_inside > 0 and n_outside > 0:
            if drawn:
                here = 1 - here
                k, p, chance = k_next, p_next, chance_next
            else:
                k, p, chance = below(state, n_inside), below(state, n_outside), uniform(state)
                cross(t, t.outside[p], t.work[KEPT + 1 + here, :n_inside])
            g, v = t.work[KEPT + 1 + here, :n_inside], t.work[KEPT + 3 + here, :n_inside]
            g_next, v_next = t.work[KEPT + 2 - here, :n_inside], t.work[KEPT + 4 - here, :n_inside]
            drawn = tally[PROPOSED] + 1 < stop
            if drawn:
                k_next, p_next = below(state, n_inside), below(state, n_outside)
                chance_next = uniform(state)
                cross(t, t.outside[p_next], g_next)
            if known:
                known = False
            elif drawn and 2 * tally[ACCEPTED] <= tally[PROPOSED]:
                multiply_two(t.U, g, v, g_next, v_next)
                known = True
            else:
                multiply(t.U, g, v)
            proposed = True
            while proposed:  # repeated only after the tableau was refreshed for this proposal
                proposed = False
                i, j = t.inside[k], t.outside[p]
                delta, gamma, r, careful = weigh_swap(t, k, j, g, v)
                if not accepts(chance, mu * delta):
                    break
                freed = 1.0 / t.U[k, k]
                read_row(t.U, k, u)
                singularity = prepare_swap(t, k, j, gamma, freed, u, v)
                if singularity < 0.0:
                    break
                cross(t, i, h)
                fault = measure_leaving_with(t, k, u, h, b)
                t.values[FAULT] += 0.0 if careful else fault
                if t.values[FAULT] > FAULT_LIMIT and t.counts[MOVES] > 0:
                    if not refresh_inverse(t):
                        return SINGULAR
                    read_diagonals(t)
                    multiply(t.U, g, v)
                    known = False
                    proposed = True
                    continue
                clear_slot(t, k, u)
                t.inside[k], t.outside[p] = j, i
                b[k], of_G[k] = t.b[j], t.diag[j]
                if drawn:
                    _follow(t, k, p, p_next, g_next)
                    swap_inverse_and_multiply(t, k, u, v, freed, 1.0 / gamma, r, g_next, v_next)
                else:
                    swap_inverse(t, k, u, v, freed, 1.0 / gamma, r)
                known = drawn
                t.values[ENERGY] += delta
                t.values[SINGULARITY] = singularity
                t.counts[MOVES] += 1
                tally[ACCEPTED] += 1
                if refresh_due(t):
                    if not refresh_inverse(t):
                        return SINGULAR
                    read_diagonals(t)
                    known = False
        tally[PROPOSED] += 1
        if tally[PROPOSED] % n_columns == 0:
            energies[tally[PROPOSED] // n_columns - 1] = t.values[ENERGY]
    return DONE
