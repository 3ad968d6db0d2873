"""Descent, the zero-temperature limit: exchange columns while any exchange lowers the energy."""

import numpy as np
from numba import int64

from l0anneal.engine.kernel import inner, separate
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR
from l0anneal.engine.moves.row import quick_row, slot_terms
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.tableau import SIZE, TABLEAU, delta_swap

__all__ = ["RESOLUTION", "descend"]

RESOLUTION = 1e-13  # gains below this fraction of ‖y‖² are rounding errors and do not count
WIDE = 2**14  # outside columns above which the best exchange is made, not the next one that gains
ROUNDS = 20  # the descent ends after this many gains per column, in case rounding makes it cycle


@inner
def _steepest(t, freed, lost, delta, n_outside):
    """Return the outside position with the largest gain by the quick formulas; N − K if none gains."""
    best = -RESOLUTION
    chosen = n_outside
    for p in range(n_outside):
        quick_row(t, p, freed, lost, delta)
        for k in range(delta.size):
            if delta[k] < best:
                best = delta[k]
                chosen = p
    return chosen


@separate(TABLEAU, int64, int64[::1])
def descend(t, stop, tally):
    """Descend to a swap-local minimum, where no exchange of one column lowers the energy.

    The outside columns are tried in turn, each in its best slot, until a full round brings no gain
    (or until `ROUNDS` N gains). If there are more than `WIDE`, the column that gains most is tried
    before them: a row of the Gram matrix takes much longer then than a look at all columns, and the
    best exchanges need fewer rows. The quick formulas tell which exchanges may gain, and `delta_swap`,
    which is careful at near-singular supports, whether they do.

    ``tally[OUTSIDE]`` is the outside position to try next; the caller starts it at 0.
    ``tally[PROPOSED]`` counts the columns tried since the last gain, so that the kernel can resume.
    The kernel returns after trying ``stop`` columns, and the descent has ended when
    ``tally[PROPOSED]`` reaches N − K.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    if n_inside == 0:
        tally[PROPOSED] = n_outside
    tried = 0
    freed, lost, room, delta = (
        t.work[4, :n_inside],
        t.work[5, :n_inside],
        t.work[6, :n_inside],
        t.work[7, :n_inside],
    )
    slot_terms(t, freed, lost, room)
    if tally[ACCEPTED] >= ROUNDS * t.b.size:
        tally[PROPOSED] = n_outside
    while tally[PROPOSED] < n_outside and tried < stop:
        if n_outside > WIDE and tally[PROPOSED] == 0:
            tally[OUTSIDE] = _steepest(t, freed, lost, delta, n_outside)
            if tally[OUTSIDE] == n_outside:
                tally[OUTSIDE], tally[PROPOSED] = 0, n_outside
                break
        p = tally[OUTSIDE]
        best = np.inf
        slot = n_inside  # none; with −1, callees would also be compiled for a literal integer
        quick_row(t, p, freed, lost, delta)
        for k in range(n_inside):
            if delta[k] < best:
                best = delta[k]
                slot = k
        gained = False
        if best < -RESOLUTION:
            j = t.outside[p]
            if t.row_of[j] < 0:
                return j
            gained = delta_swap(t, slot, p) < -RESOLUTION and swap(t, slot, p)
            if not gained:  # no gain after all, or inadmissible: take any other slot that gains
                for k in range(n_inside):
                    if not gained and delta[k] < -RESOLUTION and delta_swap(t, k, p) < -RESOLUTION:
                        gained = swap(t, k, p)
        if gained:
            tally[ACCEPTED] += 1
            tally[PROPOSED] = 0
            if refresh_due(t) and not refresh(t):
                return SINGULAR
            slot_terms(t, freed, lost, room)
        else:
            tally[PROPOSED] += 1
        tally[OUTSIDE] = (p + 1) % n_outside
        tried += 1
    return DONE
