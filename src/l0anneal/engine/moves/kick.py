"""Walk over minima: the best exchange that undoes no recent one, and a shake where nothing is found.

A descent ends in the first minimum that it meets. The walk goes on: at each step it makes the exchange
with the lowest energy, even if that is higher than the present one, and for some time neither lets the
column that left return nor lets the column that entered leave (a *tabu search*). An exchange that leads
below the lowest energy since the last shake is always allowed. If the walk has not found such a one for
long, it is shaken: some columns are exchanged at random, and a descent leads to where it continues.
Exchanges of a column for a copy of it lead nowhere and are left out.
"""

from l0anneal.engine.kernel import inlined, inner, loop
from l0anneal.engine.moves.descent import RESOLUTION, descend
from l0anneal.engine.moves.protocol import (
    ACCEPTED,
    DONE,
    OUTSIDE,
    PAUSED,
    PROPOSED,
    SINGULAR,
    SLOT,
)
from l0anneal.engine.moves.row import slot_terms
from l0anneal.engine.moves.walk import (
    BEST,
    CLOCK,
    DESCENDING,
    FLOOR,
    FOUND,
    GOOD,
    HERE,
    HUGE,
    KICKS,
    LEFT,
    MADE,
    N_GOOD,
    PHASE,
    RANKED,
    REFUSED,
    SAME,
    SHAKING,
    SLOW,
    STEPS,
    UNTIL,
    WALKING,
    end_step,
    patience_of,
    period,
)
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import below
from l0anneal.engine.tableau import ENERGY, SIZE, copy_row
from l0anneal.engine.vectors import gaining_rows
from l0anneal.problem.admissibility import PIVOT

__all__ = ["kick"]

ROUNDING = 1e-14  # gains are computed in two ways, which agree up to this


@inlined
def _change(t, k, p, freed, lost):
    """Return the change of the energy by an exchange, and the distance γ of the column that enters."""
    w = t.W[p, k]
    s = w * freed[k]
    gamma = t.gamma[p] + w * s
    r = t.r[p] + s * t.x[k]
    return lost[k] - 0.5 * r * r / gamma, gamma


@inlined
def _expected(t, marks, now, made, sensation, freed, lost, at):
    """Return the lowest change by exchanges that were good at the last step, or `HUGE`."""
    n_inside = t.counts[SIZE]
    best = HUGE
    for n in range(min(at[N_GOOD], GOOD)):
        k, p = at[N_GOOD + 1 + 2 * n], at[N_GOOD + 2 + 2 * n]
        if k < n_inside and p < t.b.size - n_inside:
            j = t.outside[p]
            change, gamma = _change(t, k, p, freed, lost)
            free = marks[UNTIL, t.inside[k]] <= now and marks[UNTIL, j] <= now
            apart = gamma > PIVOT * t.diag[j] and abs(change) > SAME
            if apart and (free or change < sensation) and marks[REFUSED, j] != made:
                best = min(best, change)
    return best


@inner
def _scan(t, marks, now, made, sensation, best, at):
    """Do the work of `_choose`, among exchanges that change the energy by less than ``best``."""
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    strict = t.work[3, :n_inside]  # `margin` of a column that may not enter yet
    freed, lost = t.work[4, :n_inside], t.work[5, :n_inside]
    margin, slope = t.work[6, :n_inside], t.work[7, :n_inside]
    excess, free = t.work[0, :n_inside], t.work[1, :n_inside]
    at[N_GOOD] = 0
    fresh = True  # whether the margins must be computed
    fours = n_outside & -4
    gaining = 0
    for p in range(n_outside):
        if fresh:
            for k in range(n_inside):
                strict[k] = 2.0 * (lost[k] - min(best, sensation))
            for k in range(n_inside):
                margin[k] = 2.0 * (lost[k] - best) if free[k] != 0.0 else strict[k]
            fresh = False
        # `margin` is at most `strict`: a row without a gain beyond it has none at all
        if p & 3 == 0:
            gaining = 15
            if p < fours:
                gaining = gaining_rows(t.W, p, slope, freed, margin, t.gamma, t.r, -ROUNDING)
        j = t.outside[p]
        if gaining >> (p & 3) & 1 == 0 or marks[REFUSED, j] == made:
            continue
        w, x, gamma, r = t.W[p, :n_inside], t.x, t.gamma[p], t.r[p]
        needed = margin if marks[UNTIL, j] <= now else strict
        for k in range(n_inside):
            s = w[k] * freed[k]
            gamma_k = gamma + w[k] * s
            r_k = r + s * x[k]
            excess[k] = r_k * r_k - gamma_k * needed[k]
        for k in range(n_inside):
            if excess[k] > 0.0:
                change, gamma_k = _change(t, k, p, freed, lost)
                if change < best and gamma_k > PIVOT * t.diag[j] and abs(change) > SAME:
                    best = change
                    n = at[N_GOOD] % GOOD
                    at[N_GOOD + 1 + 2 * n], at[N_GOOD + 2 + 2 * n] = k, p
                    at[N_GOOD] += 1
                    at[SLOT], at[OUTSIDE] = k, p
                    fresh = True
    return best if at[N_GOOD] > 0 else HUGE


@inner
def _choose(t, marks, now, made, sensation, at):
    """Write the best exchange that is allowed to ``at``; return its change of the energy, or `HUGE`.

    Columns may neither leave nor enter before their step in ``marks``, unless the energy then changes by
    less than ``sensation``. An exchange that was good at the last step is a bound from the beginning, so
    that fewer others have to be looked at closely.
    """
    n_inside = t.counts[SIZE]
    freed, lost = t.work[4, :n_inside], t.work[5, :n_inside]
    margin, slope, free = t.work[6, :n_inside], t.work[7, :n_inside], t.work[1, :n_inside]
    slot_terms(t, freed, lost, margin)
    for k in range(n_inside):
        slope[k] = freed[k] * t.x[k]
        free[k] = marks[UNTIL, t.inside[k]] <= now
    bound = _expected(t, marks, now, made, sensation, freed, lost, at) + SAME
    best = _scan(t, marks, now, made, sensation, bound, at)
    if best == HUGE and bound < HUGE:  # rounding errors hid what was expected
        best = _scan(t, marks, now, made, sensation, HUGE, at)
    return best


@inner
def _exchange(t, state, marks, at):
    """Make the exchange in the tally, and mark its columns; return False if the tableau is singular."""
    n_inside = t.counts[SIZE]
    k, p = at[SLOT], at[OUTSIDE]
    i, j = t.inside[k], t.outside[p]
    at[SLOT] = -1
    at[CLOCK] += 1
    if not swap(t, k, p):
        marks[REFUSED, j] = at[MADE]
        return True
    at[MADE] += 1
    marks[UNTIL, i] = at[CLOCK] + period(state, 6 + n_inside // 16)
    marks[UNTIL, j] = at[CLOCK] + period(state, min(n_inside // 4, 1 + n_inside // 20))
    return not refresh_due(t) or refresh(t)


@inner
def _look(t, marks, levels, best, at):
    """Choose the next step, and return whether there is one; note the support if it is a new best."""
    energy = t.values[ENERGY]
    if energy < levels[HERE] - RESOLUTION:
        levels[HERE] = energy
        at[FOUND] = at[CLOCK]
    sensation = levels[HERE] - energy - RESOLUTION
    change = _choose(t, marks, at[CLOCK], at[MADE], sensation, at)
    if change >= -RESOLUTION and energy < levels[BEST] - RESOLUTION:
        levels[BEST] = energy
        copy_row(t.inside[: t.counts[SIZE]], best)
    return change < HUGE


@loop
def kick(t, state, stop, levels, best, marks, at):
    """Walk until ``at[KICKS]`` is ``stop``, a shake is due or the floor is reached; return an outcome.

    ``best`` receives the support of the lowest minimum, unsorted. The kernel resumes exactly where it
    stopped, also where it waits for a row of the Gram matrix.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    patience = patience_of(t.b.size, n_inside)
    slow = n_inside * t.b.size > SLOW
    tally = at[:KICKS]
    at[RANKED] = 0
    while at[KICKS] < stop:
        if at[PHASE] == DESCENDING:
            while tally[PROPOSED] < n_outside:
                outcome = descend(t, 64 if slow else n_outside, tally)
                if outcome != DONE:
                    return outcome
                if slow:
                    return PAUSED
            levels[HERE] = HUGE  # so that the present energy is a new lowest one
            at[PHASE] = WALKING
            tally[SLOT] = -1
        if tally[SLOT] < 0:
            none = at[PHASE] == WALKING and not _look(t, marks, levels, best, at)
            if levels[BEST] <= levels[FLOOR]:
                at[KICKS] += 1  # the one that has begun, so that as many kicks lead here again
                break
            if none or at[PHASE] == SHAKING:
                tally[SLOT], tally[OUTSIDE] = below(state, n_inside), below(state, n_outside)
        j = t.outside[tally[OUTSIDE]]
        if t.row_of[j] < 0:
            return j
        if not _exchange(t, state, marks, at):
            return SINGULAR
        if at[PHASE] == SHAKING:
            at[LEFT] -= 1
            if at[LEFT] == 0:
                at[PHASE] = DESCENDING
                tally[PROPOSED] = tally[ACCEPTED] = tally[OUTSIDE] = 0
        if end_step(at, patience, STEPS, n_inside):
            break
        if slow:
            return PAUSED
    return DONE
