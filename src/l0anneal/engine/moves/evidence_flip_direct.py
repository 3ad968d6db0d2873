"""The evidence flip without W, r and γ of the outside columns.

This is to `evidence_flip` what `pair_flip_direct` is to `pair_flip`. Where many proposals are accepted,
it is cheaper to compute the one regression that each proposal needs, O(K²), than to update the
regressions of all outside columns, O((N − K) K), after each accepted move.

Where the columns themselves are not in memory, a column can only enter when its row of the Gram matrix
is held, and the rows of the support give the regressions of all others.
"""

import math

import numpy as np

from l0anneal.engine.kernel import inner, loop
from l0anneal.engine.moves.evidence_flip import (
    enter,
    leave,
    locate,
    log_fit,
    log_humps,
    log_odds_out,
    proposal_odds,
    propose,
    relocate,
    swap_odds,
)
from l0anneal.engine.moves.protocol import (
    ACCEPTED,
    DONE,
    FULL,
    OUTSIDE,
    PROPOSED,
    SINGULAR,
    SLOT,
    direct,
)
from l0anneal.engine.near_gram import cross_near, know_last, know_slot, open_near
from l0anneal.engine.pivots import (
    add_inverse,
    clear_slot,
    prepare_swap,
    read_diagonals,
    remove_inverse,
    singularity_with,
    swap_inverse,
)
from l0anneal.engine.refresh import refresh_due, refresh_inverse
from l0anneal.engine.rng import uniform
from l0anneal.engine.symmetric import multiply, read_row
from l0anneal.engine.tableau import (
    ENERGY,
    FAULT,
    FAULT_LIMIT,
    MOVES,
    SINGULARITY,
    SIZE,
    measure_leaving,
    weigh_swap,
)
from l0anneal.engine.vectors import dot
from l0anneal.problem.admissibility import PIVOT

__all__ = ["evidence_flip_direct"]

ROW = -2  # the outcome of a proposal that waits for a row of the Gram matrix


@inner
def _leaving_fault(t, k, u):
    """Return the fault of removing slot k: the energy error from errors in row k of the inverse."""
    return measure_leaving(t, k, u, t.inner[k, : u.size])


@inner
def _exchange(t, state, k, p, mu, base, half, log_ridge, column_odds, pull, signs, chance):
    """Try to exchange slot k for outside column p.

    ``chance`` is the log of a uniform random number, less the log ratio of the proposals. Returns 1 if
    the exchange was made, 0 if it was rejected, −1 if the tableau must be refreshed before another try,
    and `ROW` if the exchange is accepted as soon as the row of the entering column is held.
    """
    odds = swap_odds(t, k, p, column_odds)
    if odds == -np.inf:
        return 0
    n_inside = t.counts[SIZE]
    j, i = t.outside[p], t.inside[k]
    g, v = t.work[0, :n_inside], t.work[2, :n_inside]
    cross_near(t, j, g)
    multiply(t.U, g, v)
    freed = 1.0 / t.U[k, k]
    delta, gamma, r, careful = weigh_swap(t, k, j, g, v)
    if gamma <= PIVOT * t.diag[j]:
        return 0
    gain = odds - 0.5 * math.log(gamma * t.U[k, k]) + log_fit(t, delta, mu, base, half)
    if pull != 0.0:
        x = t.x[k] - pull * signs[i] / freed
        gain += 0.5 * mu * (t.x[k] * t.x[k] - x * x) * freed
        gain += log_humps(r, gamma, mu, log_ridge, pull)
        gain -= log_humps(x * freed, freed, mu, log_ridge, pull)
    if chance >= gain:
        return 0
    u = t.work[1, :n_inside]
    read_row(t.U, k, u)
    read_diagonals(t)
    singularity = prepare_swap(t, k, j, gamma, freed, u, v)
    if singularity < 0.0:
        return 0
    fault = _leaving_fault(t, k, u)
    if not careful and t.values[FAULT] + fault > FAULT_LIMIT and t.counts[MOVES] > 0:
        return -1
    if t.columns.size == 0 and t.row_of[j] < 0:
        return ROW
    t.values[FAULT] += 0.0 if careful else fault
    clear_slot(t, k, u)
    entering = enter(t, state, j, r, gamma, mu, pull, signs)
    leave(t, i, pull, signs)
    swap_inverse(t, k, u, v, freed, 1.0 / gamma, r + entering)
    t.values[ENERGY] += delta - entering * (r + 0.5 * entering) / gamma
    t.values[SINGULARITY] = singularity
    t.inside[k] = j
    t.outside[p] = i
    know_slot(t, k, j, g)
    return 1


@inner
def _join(t, state, p, mu, base, half, log_ridge, size_odds, column_odds, pull, signs, chance):
    """Try to add outside column p; the return value is that of `_exchange`."""
    n_inside = t.counts[SIZE]
    j = t.outside[p]
    log_odds = size_odds[n_inside] + column_odds[j]
    if log_odds == -np.inf:
        return 0
    g, v = t.work[0, :n_inside], t.work[2, :n_inside]
    cross_near(t, j, g)
    multiply(t.U, g, v)
    gamma = t.diag[j] - dot(g, v)
    if gamma <= PIVOT * t.diag[j]:
        return 0
    r = t.b[j] - dot(g, t.x)
    gain = log_odds - 0.5 * (math.log(gamma) - log_ridge)
    gain += log_fit(t, -0.5 * r * r / gamma, mu, base, half)
    gain += log_humps(r, gamma, mu, log_ridge, pull)
    if chance >= gain:
        return 0
    inverse = 1.0 / gamma
    singularity = singularity_with(t, j, v, inverse)
    if singularity * PIVOT >= 1.0:
        return 0
    if t.columns.size == 0 and t.row_of[j] < 0:
        return ROW
    r += enter(t, state, j, r, gamma, mu, pull, signs)
    t.values[ENERGY] -= 0.5 * r * r * inverse
    t.values[SINGULARITY] = singularity
    add_inverse(t, j, v, inverse, r)
    know_slot(t, n_inside, j, g)
    t.outside[p] = t.outside[t.b.size - n_inside - 1]
    return 1


@inner
def _leave(t, k, mu, base, half, log_ridge, size_odds, column_odds, pull, signs, chance):
    """Try to remove the column in slot k; the return value is that of `_exchange`."""
    u_kk = t.U[k, k]
    gain = log_odds_out(t, k, mu, base, half, log_ridge, size_odds, column_odds, pull, signs)
    if chance >= gain:
        return 0
    u = t.work[1, : t.counts[SIZE]]
    read_row(t.U, k, u)
    fault = _leaving_fault(t, k, u)
    if t.values[FAULT] + fault > FAULT_LIMIT and t.counts[MOVES] > 0:
        return -1
    t.values[FAULT] += fault
    t.values[ENERGY] += 0.5 * t.x[k] * t.x[k] / u_kk
    i = t.inside[k]
    leave(t, i, pull, signs)
    remove_inverse(t, k, u, 1.0 / u[k])
    know_last(t, k)
    t.outside[t.b.size - t.counts[SIZE] - 1] = i
    return 1


@direct
@loop
def evidence_flip_direct(
    t,
    state,
    mu,
    base,
    half,
    log_ridge,
    size_odds,
    column_odds,
    share,
    alias,
    log_share,
    where,
    pull,
    signs,
    largest,
    stop,
    tally,
):
    """Run Metropolis with the arguments, the proposals and the law of `evidence_flip`.

    The kernel leaves W, r and γ of the tableau stale. It asks for rows of the Gram matrix only where the
    columns are not in memory.
    """
    flips = largest > 0
    open_near(t)
    locate(t, where)
    while tally[PROPOSED] < stop:
        n_inside = t.counts[SIZE]
        if flips and n_inside == t.inside.size and n_inside < largest:
            return FULL
        moved = -1
        if tally[OUTSIDE] >= 0:  # an accepted proposal was waiting for a row of the Gram matrix
            k, p = tally[SLOT], tally[OUTSIDE]
            tally[OUTSIDE] = -1
            chance = -np.inf
        else:
            k, p = propose(t, state, flips, share, alias, where)
            if k < 0 and (p < 0 or n_inside >= largest):
                moved = 0
            else:
                chance = math.log(uniform(state)) - proposal_odds(t, k, p, log_share)
        j = t.outside[p] if p >= 0 else -1
        while moved == -1:
            if k >= 0 and p >= 0:
                moved = _exchange(
                    t, state, k, p, mu, base, half, log_ridge, column_odds, pull, signs, chance
                )
            elif k >= 0:
                moved = _leave(
                    t, k, mu, base, half, log_ridge, size_odds, column_odds, pull, signs, chance
                )
            else:
                moved = _join(
                    t,
                    state,
                    p,
                    mu,
                    base,
                    half,
                    log_ridge,
                    size_odds,
                    column_odds,
                    pull,
                    signs,
                    chance,
                )
            if moved == ROW:
                tally[SLOT], tally[OUTSIDE] = k, p
                return j
            if moved < 0 and not refresh_inverse(t):
                return SINGULAR
        if moved > 0:
            relocate(t, j, p, where)
            t.counts[MOVES] += 1
            tally[ACCEPTED] += 1
            if refresh_due(t) and not refresh_inverse(t):
                return SINGULAR
        tally[PROPOSED] += 1
    return DONE
