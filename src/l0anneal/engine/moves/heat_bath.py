"""Bring in a random outside column, then draw which of the K + 1 columns goes out."""

import math

import numpy as np

from l0anneal.engine.kernel import kernel
from l0anneal.engine.moves.outcome import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.moves.row import joins_easily, reach, slot_terms, swap_row
from l0anneal.engine.pivots import swap
from l0anneal.engine.rng import below, uniform
from l0anneal.engine.tableau import ENERGY, SIZE, delta_swap, refresh, refresh_due

__all__ = ["heat_bath"]


@kernel
def _draw_slot(state, mu, delta, weight, far):  # type: ignore[no-untyped-def]
    """Draw a slot with weight exp(−mu delta), or −1, which stands for no change, with weight 1."""
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
            chosen = k  # the last one, should rounding leave anything over
            left -= weight[k]
            if left < 0.0:
                break
    return chosen


@kernel
def heat_bath(t, state, mu, stop, energies, tally):  # type: ignore[no-untyped-def]
    """Gibbs sampling in rows; arguments and return value as `pair_flip`.

    One step draws a column j from outside, uniformly, and joins it to the support: C = S + j. Then
    one of the K + 1 columns of C is put out again, so that the support C − i is chosen with
    probability exp(−mu E(C − i)) / Z(C), where Z(C) is the sum over all of them. That is done if C
    is well conditioned (`joins_easily`), so that all these supports are admissible. If C is not,
    the step is that of the pair flip: i is drawn uniformly from S, and C − i is accepted with
    probability min(1, exp(−mu ΔE)) if it is admissible.

    The law left invariant is the Gibbs law exp(−mu E) on the admissible supports of this size. Two
    of them, S and S', are joined by a step only if they have K − 1 columns in common, and then only
    through C = S ∪ S', which is drawn with probability 1/(N − K) from either. Which of the two
    rules holds is a property of C, and so is Z(C); both rules obey detailed balance on the supports
    of C. (One rule for all C would not do: seen from S, only the entering column's distance from
    the span is at hand, and a Z that leaves out supports by that test is another one seen from S'.)

    A step counts as one proposal: a sweep draws an outside column N times, as that of the pair flip
    does, and `ACCEPTED` counts the steps that changed the support. It costs O(K), and O((N − K) K)
    more if the support changes; where supports are near-singular, what the pair flip costs there.
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
                    if not uniform(state) < math.exp(-mu * delta_swap(t, k, p)):
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
