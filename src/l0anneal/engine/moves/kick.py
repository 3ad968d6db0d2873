"""Kick and descend: exchange a few random columns, descend, and accept or refuse the new minimum."""

import math

from l0anneal.engine.kernel import loop
from l0anneal.engine.moves.descent import RESOLUTION, descend
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import below
from l0anneal.engine.tableau import ENERGY, SIZE, copy_row, copy_tableau

__all__ = ["BEST", "FLOOR", "KICKS", "PLACES", "kick"]

FEWEST, MOST = 2, 4  # columns that a kick exchanges
STAYS = 0.9  # target fraction of kicks whose new minimum is accepted
STEERING = 0.1  # scale of the change of log slack at each kick
# Indices into ``levels``: the energy of the present minimum, the lowest energy so far, by how much the
# energy may rise at a kick, and the energy at which nothing more can be gained.
HERE, BEST, SLACK, FLOOR = range(4)
# Indices into ``at``, whose first four elements are a tally: kicks so far, the present phase, and the
# exchanges left to make in this kick; PLACES is the length of ``at``.
KICKS, PHASE, LEFT, PLACES = 4, 5, 6, 7
READY, KICKING, DESCENDING = range(3)


@loop
def kick(t, held, state, stop, levels, best, at):
    """Kick and descend until ``at[KICKS]`` is ``stop`` or the floor is reached; return an outcome.

    Each kick exchanges `FEWEST` to `MOST` random columns of the support for random ones outside. The
    minimum that the descent reaches is accepted if its energy is at most ``levels[SLACK]`` above that
    of the previous minimum, whose tableau is in ``held``; otherwise the chain returns to that minimum.
    The slack grows at each refusal and shrinks at each acceptance, so that a fraction `STAYS` of the
    kicks is accepted whatever the scale of the energies. (A chain that accepted lower energies only
    would be trapped in the first funnel, and one that accepted all would lose what it had found.)
    ``best`` receives the support of the lowest energy, unsorted.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    tally = at[:KICKS]
    while at[KICKS] < stop and levels[BEST] > levels[FLOOR]:
        if at[PHASE] == READY:
            for m in range(n_inside):  # rows of a support returned to may have been replaced
                if t.row_of[t.inside[m]] < 0:
                    return t.inside[m]
            copy_tableau(t, held)
            at[LEFT] = FEWEST + below(state, MOST - FEWEST + 1)
            at[PHASE] = KICKING
            tally[SLOT] = -1
        if at[PHASE] == KICKING:
            while at[LEFT] > 0:
                if tally[SLOT] < 0:
                    tally[SLOT], tally[OUTSIDE] = below(state, n_inside), below(state, n_outside)
                k, p = tally[SLOT], tally[OUTSIDE]
                j = t.outside[p]
                if t.row_of[j] < 0:
                    return j
                tally[SLOT] = -1
                at[LEFT] -= 1
                if swap(t, k, p) and refresh_due(t) and not refresh(t):
                    return SINGULAR
            at[PHASE] = DESCENDING
            tally[PROPOSED] = tally[ACCEPTED] = tally[OUTSIDE] = 0
        while tally[PROPOSED] < n_outside:
            outcome = descend(t, n_outside, tally)
            if outcome != DONE:
                return outcome
        energy = t.values[ENERGY]
        if energy < levels[BEST] - RESOLUTION:
            levels[BEST] = energy
            copy_row(t.inside[:n_inside], best)
        if energy <= levels[HERE] + levels[SLACK]:
            levels[HERE] = energy
            levels[SLACK] *= math.exp(-(1.0 - STAYS) * STEERING)
        else:
            copy_tableau(held, t)
            levels[SLACK] *= math.exp(STAYS * STEERING)
        levels[SLACK] = max(levels[SLACK], RESOLUTION)
        at[PHASE] = READY
        at[KICKS] += 1
    return DONE
