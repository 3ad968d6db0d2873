"""The pair flip without its rejections: draw how long the chain stays, then where it moves.

At low temperature nearly all proposals of `pair_flip` are rejected. This kernel computes the weights of
all K (N − K) proposals at once, so that it can draw the number of rejections before the next acceptance
from its geometric law.
"""

import math

import numpy as np

from l0anneal.engine.kernel import allocating, inner, kernel
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.moves.row import reach, slot_terms, swap_row
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import accepts, below, uniform
from l0anneal.engine.tableau import CAREFUL, ENERGY, SINGULARITY, SIZE, delta_swap

__all__ = ["rejection_free"]

_FOREVER = 2**62


@inner
def _weigh_row(delta, mu, lowest, far):
    """Sum exp(−mu (max(0, delta) − lowest)), where ``lowest`` is updated during the pass."""
    total = 0.0
    for k in range(delta.size):
        if delta[k] < lowest + far:
            d = max(0.0, delta[k])
            if d < lowest:
                if total > 0.0:
                    total *= math.exp(mu * (d - lowest))
                lowest = d
            total += math.exp(mu * (lowest - d))
    return total, lowest


@allocating
def _weigh_all(t, mu, freed, lost, delta, weight):
    """Fill ``weight`` with the sum of acceptance probabilities of each outside column, up to a factor.

    Returns the log of the common factor and the sum of the weights.
    """
    slot_terms(t, freed, lost, delta)  # ``delta`` is scratch here and overwritten below
    n_outside = weight.size
    far = reach(mu, n_outside * delta.size)
    lowest = np.inf
    level = np.empty(n_outside)
    for p in range(n_outside):
        swap_row(t, p, freed, lost, delta)
        weight[p], lowest = _weigh_row(delta, mu, lowest, far)
        level[p] = lowest
    total = 0.0
    for p in range(n_outside):
        if weight[p] > 0.0:
            weight[p] *= math.exp(mu * (lowest - level[p]))
            total += weight[p]
    return (-mu * lowest if total > 0.0 else 0.0), total


@inner
def _draw_pair(t, state, mu, freed, lost, delta, weight, total):
    """Draw a slot and an outside position with probabilities in proportion to their weights."""
    left = uniform(state) * total
    chosen = 0
    for p in range(weight.size):
        if weight[p] > 0.0:
            chosen = p  # the last one stays chosen if rounding leaves a remainder
            if left < weight[p]:
                break
            left -= weight[p]
    swap_row(t, chosen, freed, lost, delta)
    lowest = np.inf
    for k in range(delta.size):
        lowest = min(lowest, max(0.0, delta[k]))
    far = reach(mu, delta.size)
    row, _ = _weigh_row(delta, mu, lowest, far)
    left = uniform(state) * row
    slot = 0
    for k in range(delta.size):
        if delta[k] < lowest + far:
            slot = k
            share = math.exp(mu * (lowest - max(0.0, delta[k])))
            if left < share:
                break
            left -= share
    return slot, chosen


@inner
def _draw_rejections(state, chance):
    """Draw the number of failures before the first success, each trial succeeding with ``chance``."""
    u = 1.0 - uniform(state)
    if chance >= 1.0:
        return 0
    if chance <= 0.0:
        return _FOREVER
    count = math.log(u) / math.log1p(-chance)
    return np.int64(count) if count < _FOREVER else _FOREVER


@inner
def _foresee(t, state, mu, freed, lost, delta, weight):
    """Draw the number of rejections to come, and the slot and position of the pair then accepted."""
    log_factor, total = _weigh_all(t, mu, freed, lost, delta, weight)
    if not total > 0.0:
        return _FOREVER, 0, 0
    chance = math.exp(log_factor) * (total / (delta.size * weight.size))
    rejections = _draw_rejections(state, chance)
    k, p = _draw_pair(t, state, mu, freed, lost, delta, weight, total)
    return rejections, k, p


@inner
def _propose(t, state, mu):
    """Propose like the pair flip until a pair is accepted; k = −1, p = 0 after a sweep of rejections."""
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    for rejections in range(t.b.size):
        k, p = below(state, n_inside), below(state, n_outside)
        if accepts(uniform(state), mu * delta_swap(t, k, p)):
            return rejections, k, p
    return t.b.size, -1, 0


@kernel
def rejection_free(t, state, mu, stop, energies, tally):
    """Run the chain of `pair_flip`, in law, with successive rejections taken in one step.

    The arguments are those of `pair_flip`. At support S the pair flip accepts a proposal with
    probability a = Σ min(1, exp(−mu ΔE)) / (K (N − K)), where the sum runs over all pairs, and each
    pair is the accepted one in proportion to its term. This kernel draws the number of rejections
    from the geometric law of a, then the pair, and adds the rejections to the count of proposals.
    Sweeps, energies and acceptances mean the same as for the pair flip, and the law left invariant is
    the same: the Gibbs law exp(−mu E) on the admissible supports of this size. Only the use of the
    random stream differs, so single runs differ.

    Some pairs pass the test of `delta_swap` but lead to an inadmissible support. They contribute to a,
    and when one is drawn, `swap` refuses it, which counts as one more rejected proposal, as it does
    for the pair flip. At a near-singular support, where an energy costs O(K²), pairs are proposed one
    by one instead, which is the same chain again.

    Each acceptance costs a pass over W to compute all weights, about as much as the change itself,
    O((N − K) K), however many proposals are rejected. ``tally[SLOT]`` holds the number of rejections
    still to come (−1: not drawn), and ``tally[OUTSIDE]`` the pair that is accepted after them, as
    p K + k (−1: draw again). At the end of a temperature both are discarded with the tally, which is
    correct because the geometric law has no memory.
    """
    n_inside = t.counts[SIZE]
    n_columns = t.b.size
    n_outside = n_columns - n_inside
    n_pairs = n_inside * n_outside
    freed, lost, delta = np.empty(n_inside), np.empty(n_inside), np.empty(n_inside)
    weight = np.empty(n_outside)
    while tally[PROPOSED] < stop:
        if tally[SLOT] < 0:
            tally[SLOT] = _FOREVER
            if n_pairs > 0:
                if t.values[SINGULARITY] * CAREFUL >= 1.0:
                    rejections, k, p = _propose(t, state, mu)
                else:
                    rejections, k, p = _foresee(t, state, mu, freed, lost, delta, weight)
                tally[SLOT], tally[OUTSIDE] = rejections, p * n_inside + k
        rejected = min(tally[SLOT], stop - tally[PROPOSED])
        before = tally[PROPOSED] // n_columns
        tally[SLOT] -= rejected
        tally[PROPOSED] += rejected
        for sweep in range(before, tally[PROPOSED] // n_columns):
            energies[sweep] = t.values[ENERGY]
        if tally[PROPOSED] < stop and tally[OUTSIDE] < 0:
            tally[SLOT] = -1
        elif tally[PROPOSED] < stop:
            k, p = tally[OUTSIDE] % n_inside, tally[OUTSIDE] // n_inside
            j = t.outside[p]
            if t.row_of[j] < 0:
                return j
            tally[SLOT] = -1
            if swap(t, k, p):
                tally[ACCEPTED] += 1
                if refresh_due(t) and not refresh(t):
                    return SINGULAR
            tally[PROPOSED] += 1
            if tally[PROPOSED] % n_columns == 0:
                energies[tally[PROPOSED] // n_columns - 1] = t.values[ENERGY]
    return DONE
