"""Heat bath: let a random outside column enter, then draw which of the K + 1 columns leaves."""

import math

import numpy as np

from l0anneal.engine.kernel import inner, kernel
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.moves.row import joins_easily, reach, slot_terms, swap_row
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import accepts, below, uniform
from l0anneal.engine.tableau import ENERGY, SIZE, delta_swap

__all__ = ["heat_bath"]


@inner
def _draw_slot(state, mu, delta, weight, far):
    """Draw a slot with weight exp(−mu delta), or −1, which means no change, with weight 1."""
    lowest = 0.0
    for k in range(delta.size):
        lowest = min(lowest, delta[k])
    highest = lowest + far
    stay = math.exp(mu * lowest)
    total = stay
    for k in range(delta.size):
        weight[k] = math.exp(mu * (lowest - delta[k])) if delta[k] < highest else 0.0
        total += weight[k]
    left = uniform(state) * total - stay
    if left < 0.0:
        return -1
    chosen = -1
    for k in range(delta.size):
        if weight[k] > 0.0:
            chosen = k  # the last one stays chosen if rounding leaves a remainder
            left -= weight[k]
            if left < 0.0:
                break
    return chosen


@kernel
def heat_bath(t, state, mu, stop, energies, tally):
    """Run Gibbs sampling over rows of exchanges; arguments and return value are those of `pair_flip`.

    One step draws a column j uniformly from outside and joins it to the support: C = S + j. Then one
    of the K + 1 columns of C leaves, so that the new support is C − i with probability
    exp(−mu E(C − i)) / Z(C), where Z(C) is the sum of exp(−mu E) over all of these supports. This
    rule applies if C is well conditioned (`joins_easily`), so that all of the supports are admissible.
    Otherwise the step is a pair flip: i is drawn uniformly from S, and C − i is accepted with
    probability min(1, exp(−mu ΔE)) if it is admissible.

    The step leaves the Gibbs law exp(−mu E) on the admissible supports of this size invariant. It
    leads from S to S' only if they have K − 1 columns in common, and only through C = S ∪ S', which
    is drawn with probability 1/(N − K) from either. Which of the two rules applies is a property of
    C, and so is Z(C), and both rules obey detailed balance on the supports of C. (The first rule
    alone would be wrong. At S, only the entering column's distance from the span is known, and a Z
    without the supports that this test rejects would differ from the one computed at S'.)

    A step counts as one proposal: a sweep draws N outside columns, as a sweep of the pair flip does,
    and `ACCEPTED` counts the steps that changed the support. A step costs O(K), and O((N − K) K) more
    if the support changes; at near-singular supports it costs as much as a pair flip there.
    """
    n_inside = t.counts[SIZE]
    n_columns = t.b.size
    n_outside = n_columns - n_inside
    freed, lost, room = np.empty(n_inside), np.empty(n_inside), np.empty(n_inside)
    delta, weight = np.empty(n_inside), np.empty(n_inside)
    far = reach(mu, n_inside + 1)
    slot_terms(t, freed, lost, room)
    while tally[PROPOSED] < stop:
        if n_inside > 0 and n_outside > 0:
            if tally[SLOT] >= 0:
                k, p = tally[SLOT], tally[OUTSIDE]
                tally[SLOT] = -1
            else:
                p = below(state, n_outside)
                if joins_easily(t, p, room):
                    swap_row(t, p, freed, lost, delta)
                    k = _draw_slot(state, mu, delta, weight, far)
                else:
                    k = below(state, n_inside)
                    if not accepts(uniform(state), mu * delta_swap(t, k, p)):
                        k = -1
            if k >= 0:
                j = t.outside[p]
                if t.row_of[j] < 0:
                    tally[SLOT], tally[OUTSIDE] = k, p
                    return j
                if swap(t, k, p):
                    tally[ACCEPTED] += 1
                    if refresh_due(t) and not refresh(t):
                        return SINGULAR
                slot_terms(t, freed, lost, room)
        tally[PROPOSED] += 1
        if tally[PROPOSED] % n_columns == 0:
            energies[tally[PROPOSED] // n_columns - 1] = t.values[ENERGY]
    return DONE
