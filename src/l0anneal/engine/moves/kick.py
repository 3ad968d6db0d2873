"""Walk over minima: the best exchange that does not undo a recent one, and kicks where nothing is found.

A descent ends in the first minimum that it meets. The walk goes on: at each step it makes the exchange
with the lowest energy, even if that is higher than the present one, and for some time neither lets the
column that left return nor lets the column that entered leave (a *tabu search*). An exchange that leads
below the lowest energy since the last kick is always allowed. If the walk has not found such a one for
long, a kick exchanges a part of the columns at random, and a descent leads to where the walk continues.
"""

from l0anneal.engine.kernel import inner, loop
from l0anneal.engine.moves.descent import RESOLUTION, descend
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.moves.row import slot_terms
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import below
from l0anneal.engine.tableau import ENERGY, SIZE, copy_row
from l0anneal.engine.vectors import largest
from l0anneal.problem.admissibility import PIVOT

__all__ = ["BEST", "CLOCK", "FLOOR", "FOUND", "HERE", "KICKS", "LEVELS", "PLACES", "kick"]

STEPS = 25  # exchanges that count as one kick
# For how many steps a column may not return, and may not leave, in units of 1/16 of K: between once and
# twice this number, at random.
RETURN, LEAVE = 2, 1
PATIENCE = 5  # the walk is kicked after this many steps per column without a new lowest energy
STRENGTH = 4  # a kick exchanges K over this number of columns
HUGE = 1e8  # more than any change of the energy, which is at most one

# Indices into ``levels``: the lowest energy since the last kick, the lowest of all, and the energy at
# which nothing more can be gained.
HERE, BEST, FLOOR, LEVELS = 0, 1, 2, 3
# Indices into ``at``, whose first four elements are a tally: steps so far in units of `STEPS`, the
# present phase, the exchanges left to make in this kick, all steps so far, and the step of the last new
# lowest energy; PLACES is the length of ``at``.
KICKS, PHASE, LEFT, CLOCK, FOUND, PLACES = 4, 5, 6, 7, 8, 9
WALKING, KICKING, DESCENDING = range(3)


@inner
def _measure(w, x, freed, lost, gamma, r, bound, excess):
    """Fill in how far each exchange is below ``bound``, times 2γ: positive if its change is lower."""
    for k in range(excess.size):
        s = w[k] * freed[k]
        gamma_k = gamma + w[k] * s
        r_k = r + s * x[k]
        excess[k] = r_k * r_k - 2.0 * gamma_k * (lost[k] - bound)


@inner
def _choose(t, until, now, sensation, tally):
    """Write the best exchange that is allowed to ``tally``; return False if none is.

    Columns may neither leave nor enter before their step in ``until``. A column that may not enter does
    so all the same, in any slot, if the energy then changes by less than ``sensation``.
    """
    n_inside = t.counts[SIZE]
    freed, lost = t.work[4, :n_inside], t.work[5, :n_inside]
    free, excess = t.work[6, :n_inside], t.work[7, :n_inside]
    x = t.x[:n_inside]
    slot_terms(t, freed, lost, free)
    for k in range(n_inside):
        free[k] = lost[k] if until[t.inside[k]] <= now else HUGE
    best = 0.5 * HUGE
    found = False
    for p in range(t.b.size - n_inside):
        j = t.outside[p]
        w, gamma, r = t.W[p, :n_inside], t.gamma[p], t.r[p]
        price = free
        bound = best
        if until[j] > now:
            price = lost
            bound = min(best, sensation)
        _measure(w, x, freed, price, gamma, r, bound, excess)
        if largest(excess, 0.0) > 0.0:
            for k in range(n_inside):
                if excess[k] > 0.0:
                    s = w[k] * freed[k]
                    gamma_k = gamma + w[k] * s
                    r_k = r + s * x[k]
                    change = price[k] - 0.5 * r_k * r_k / gamma_k
                    if change < bound and gamma_k > PIVOT * t.diag[j]:
                        best = bound = change
                        tally[SLOT], tally[OUTSIDE] = k, p
                        found = True
    return found


@inner
def _period(state, n_inside, unit):
    """Draw for how many steps a column stays where it is."""
    least = unit * n_inside // 16
    return least + below(state, max(1, least))


@inner
def _note(t, levels, best, at):
    """Note the energy if it is the lowest since the last kick, and the support if it is the best."""
    energy = t.values[ENERGY]
    if energy < levels[HERE] - RESOLUTION:
        levels[HERE] = energy
        at[FOUND] = at[CLOCK]
    if energy < levels[BEST] - RESOLUTION:
        levels[BEST] = energy
        copy_row(t.inside[: t.counts[SIZE]], best)


@loop
def kick(t, state, stop, levels, best, until, at):
    """Walk until ``at[KICKS]`` is ``stop`` or the floor is reached; return an outcome.

    ``best`` receives the support of the lowest energy, unsorted, and ``until`` the step before which
    each column may not move. The kernel may be stopped after any number of kicks, and resumes exactly
    where it stopped.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    tally = at[:KICKS]
    while at[KICKS] < stop and levels[BEST] > levels[FLOOR]:
        if at[PHASE] == DESCENDING:
            while tally[PROPOSED] < n_outside:
                outcome = descend(t, n_outside, tally)
                if outcome != DONE:
                    return outcome
            levels[HERE] = t.values[ENERGY] + 2.0 * RESOLUTION
            _note(t, levels, best, at)
            at[PHASE] = WALKING
            tally[SLOT] = -1
        if tally[SLOT] < 0:
            sensation = levels[HERE] - t.values[ENERGY] - RESOLUTION
            if at[PHASE] == KICKING or not _choose(t, until, at[CLOCK], sensation, tally):
                tally[SLOT], tally[OUTSIDE] = below(state, n_inside), below(state, n_outside)
        k, p = tally[SLOT], tally[OUTSIDE]
        i, j = t.inside[k], t.outside[p]
        if t.row_of[j] < 0:
            return j
        tally[SLOT] = -1
        at[CLOCK] += 1
        if swap(t, k, p):
            until[i] = at[CLOCK] + _period(state, n_inside, RETURN)
            until[j] = at[CLOCK] + _period(state, n_inside, LEAVE)
            if refresh_due(t) and not refresh(t):
                return SINGULAR
        else:  # not admissible, which the next choice would not know
            until[j] = at[CLOCK] + 1 + _period(state, n_inside, RETURN)
        if at[PHASE] == KICKING:
            at[LEFT] -= 1
            if at[LEFT] == 0:
                at[PHASE] = DESCENDING
                tally[PROPOSED] = tally[ACCEPTED] = tally[OUTSIDE] = 0
        else:
            _note(t, levels, best, at)
            if at[CLOCK] - at[FOUND] >= PATIENCE * t.b.size:
                at[PHASE] = KICKING
                at[LEFT] = 1 + n_inside // STRENGTH
        if at[CLOCK] % STEPS == 0:
            at[KICKS] += 1
    return DONE
