"""Kick and descend: exchange a few columns at random, walk down again, and see whether to stay there."""

import math

from l0anneal.engine.kernel import kernel
from l0anneal.engine.moves.descent import RESOLUTION, descend
from l0anneal.engine.moves.outcome import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.pivots import swap
from l0anneal.engine.rng import below
from l0anneal.engine.tableau import ENERGY, SIZE, copy_tableau, refresh, refresh_due

__all__ = ["BEST", "FLOOR", "KICKS", "PLACES", "kick"]

FEWEST, MOST = 2, 4  # columns that a kick exchanges
STAYS = 0.9  # part of the kicks after which it stays; the slack is steered towards it
STEERING = 0.1  # by how much log slack changes at a kick
# indices into ``levels``: energy of the minimum it is at, lowest energy, how much higher it may go, and
# the energy at which nothing is left to be gained
HERE, BEST, SLACK, FLOOR = range(4)
# indices into ``at``, after the four of a tally: kicks so far, what comes next, exchanges to be made
KICKS, PHASE, LEFT, PLACES = 4, 5, 6, 7
READY, KICKING, DESCENDING = range(3)


@kernel
def kick(t, held, state, stop, levels, best, at):  # type: ignore[no-untyped-def]
    """Kick and descend until ``at[KICKS]`` is ``stop`` or the floor is reached; outcome as of a move.

    Each kick exchanges `FEWEST` to `MOST` random columns of the support for random ones outside. The
    minimum below is accepted if it lies no higher than ``levels[SLACK]`` above the one before, whose
    tableau is in ``held``; else the chain goes back there. The slack grows at each refusal and
    shrinks at each acceptance, so that `STAYS` of the kicks are accepted, whatever the energies are.
    (Kept to descents alone the chain is caught in the first funnel; free, it forgets what it has.)
    ``best`` receives the support of the lowest energy, unsorted.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    tally = at[:KICKS]
    while at[KICKS] < stop and levels[BEST] > levels[FLOOR]:
        if at[PHASE] == READY:
            for m in range(n_inside):  # rows may have made way for others that it came back from
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
            best[:] = t.inside[:n_inside]
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
