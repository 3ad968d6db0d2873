"""Exchange, add or remove columns: a chain on supports of several sizes, with a weight for each size."""

import math

import numpy as np

from l0anneal.engine.kernel import loop
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.pivots import add, remove, swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import below, uniform
from l0anneal.engine.tableau import ENERGY, SIZE, delta_add, delta_remove, delta_swap

__all__ = ["size_flip"]


@loop
def size_flip(t, state, mu, weights, least, gain, visits, stop, energies, tally):
    """Run Metropolis on the supports of ``least`` to ``least + weights.size − 1`` columns.

    A proposal is an exchange of two columns with probability ½, and the addition or the removal of one
    column with probability ¼ each; columns are drawn uniformly. An addition to K columns is accepted
    with probability

        min(1, exp(−mu ΔE + w_{K+1} − w_K) (N − K)/(K + 1)),

    where the last factor is the ratio of the probabilities of the reverse proposal and of this one. A
    removal is accepted with the inverse ratio in place of the second argument of min. The move leaves
    P(S) ∝ exp(−mu E(S) + w_|S|) on the admissible supports of these sizes invariant.

    With ``gain`` > 0 the weights are learnt by the method of Wang and Landau: after each proposal the
    weight of the present size decreases by ``gain``, and no law is left invariant. ``visits`` counts,
    for each size, the proposals after which the support had that size. The other arguments and the
    return value are those of `pair_flip`.
    """
    n_columns = t.b.size
    most = least + weights.size - 1
    while tally[PROPOSED] < stop:
        n_inside = t.counts[SIZE]
        n_outside = n_columns - n_inside
        here = n_inside - least
        k, p = -1, -1
        accepted = tally[OUTSIDE] >= 0
        if accepted:  # an accepted proposal was waiting for a row of the Gram matrix
            k, p = tally[SLOT], tally[OUTSIDE]
            tally[OUTSIDE] = -1
        else:
            kind = uniform(state)
            delta = np.inf
            bonus = 0.0
            if kind < 0.5:
                if n_inside > 0 and n_outside > 0:
                    k, p = below(state, n_inside), below(state, n_outside)
                    delta = delta_swap(t, k, p)
            elif kind < 0.75:
                if n_inside < most:
                    p = below(state, n_outside)
                    delta = delta_add(t, p)
                    bonus = weights[here + 1] - weights[here] + math.log(n_outside / (n_inside + 1))
            elif n_inside > least:
                k = below(state, n_inside)
                delta = delta_remove(t, k)
                bonus = weights[here - 1] - weights[here] + math.log(n_inside / (n_outside + 1))
            if delta < np.inf:
                accepted = uniform(state) < math.exp(min(bonus - mu * delta, 0.0))
        if accepted:
            if p >= 0 and t.row_of[t.outside[p]] < 0:
                tally[SLOT], tally[OUTSIDE] = k, p
                return t.outside[p]
            moved = True
            if p < 0:
                remove(t, k)
            elif k < 0:
                moved = add(t, p)
            else:
                moved = swap(t, k, p)
            if moved:
                tally[ACCEPTED] += 1
                if refresh_due(t) and not refresh(t):
                    return SINGULAR
        here = t.counts[SIZE] - least
        visits[here] += 1
        if gain > 0.0:
            weights[here] -= gain
        tally[PROPOSED] += 1
        if tally[PROPOSED] % n_columns == 0:
            energies[tally[PROPOSED] // n_columns - 1] = t.values[ENERGY]
    return DONE
