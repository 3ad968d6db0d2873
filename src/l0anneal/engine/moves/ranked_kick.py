"""Walk over minima: the column that gains most enters, and the one that is then worth least leaves.

`kick` weighs all exchanges at each step, for which it needs the N × K regressions W. This walk takes
about a third of the time for a step, because it weighs the exchanges of one column only: of the one
that gains most if it is added, as a `ranking` in single precision says. On dictionaries whose columns
are hardly correlated it comes as far as `kick` does in as many steps. On coherent ones it does not:
there the best exchange is often that of a column for a neighbour of it, which gains little as long as
both are in the support. The caller therefore tries both walks (`samplers.kicks.search`).

What may not move, and when the walk is shaken, is as for `kick`, except that the patience is longer. U,
x and the energy are those of a tableau in double precision. Exchanges that lead to a near-singular
support are left out, so that no careful formulas are needed. All rows of the Gram matrix must be held,
and the first support must not be near-singular.
"""

from l0anneal.engine.kernel import inlined, inner, loop
from l0anneal.engine.moves.descent import RESOLUTION
from l0anneal.engine.moves.pair_flip_direct import cross
from l0anneal.engine.moves.protocol import DONE, OUTSIDE, PAUSED, SINGULAR, SLOT, direct
from l0anneal.engine.moves.walk import (
    BEST,
    CLOCK,
    DESCENDING,
    FOUND,
    HERE,
    HUGE,
    KICKS,
    LEFT,
    MADE,
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
from l0anneal.engine.pivots import clear_slot, prepare_swap, read_diagonals, swap_inverse
from l0anneal.engine.ranking import ZERO, fill_ranking, rank_after_swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import below
from l0anneal.engine.symmetric import multiply, read_row
from l0anneal.engine.tableau import (
    CAREFUL,
    ENERGY,
    FAULT,
    FAULT_LIMIT,
    KEPT,
    MOVES,
    OF_G,
    OF_U,
    SINGULARITY,
    SIZE,
    STALE,
    measure_leaving_with,
)
from l0anneal.engine.vectors import dot

__all__ = ["ranked_kick"]

FASTER = 3  # about so many steps take the time of one of `kick`; a kick has as many more of them
PATIENCE = 4  # times that of `kick`, in steps
# Rows of ``work`` beside those of the pivots: the changes of the energy by slot, and b_S.
CHANGES, OF_B = 6, KEPT


@inner
def _read_slots(t):
    """Copy the diagonals of U and G_SS, and b_S, to their rows of ``work``."""
    n_inside = t.counts[SIZE]
    read_diagonals(t)
    b = t.work[OF_B, :n_inside]
    for m in range(n_inside):
        b[m] = t.b[t.inside[m]]


@inner
def _renew(t, ranking):
    """Refresh the tableau and make the ranking again; return False if the tableau is singular."""
    if not refresh(t):
        return False
    fill_ranking(t, ranking)
    _read_slots(t)
    return True


@inner
def _best_column(ranking, until, refused, now, made):
    """Return the outside column with the largest gain among those that may enter, or −1."""
    best, least = -1, ZERO
    for j in range(ranking.position.size):
        may_enter = ranking.gain[j] > least and until[j] <= now and refused[j] != made
        if may_enter and ranking.position[j] >= 0:  # rounding leaves a gain to columns inside
            best, least = j, ranking.gain[j]
    return best


@inner
def _changes(gamma, r, least, v, x, of_U, change):
    """Fill in the change of the energy if a column with regression v enters, by slot."""
    for k in range(v.size):
        freed = 1.0 / of_U[k]
        s = v[k] * freed
        gamma_k = gamma + v[k] * s
        r_k = r + s * x[k]
        lost = 0.5 * x[k] * x[k] * freed - 0.5 * r_k * r_k / gamma_k
        change[k] = lost if gamma_k > least else HUGE


@inlined
def _choose(t, marks, now, made, sensation, at, ranking):
    """Write the exchange to make to ``at``; return its change of the energy, or `HUGE`.

    A column that entered lately may leave only if the energy then changes by less than ``sensation``.
    G_jS of the column that enters and its regression are left in ``work``, for `_exchange`.
    """
    j = _best_column(ranking, marks[UNTIL], marks[REFUSED], now, made)
    if j < 0:
        return HUGE
    n_inside = t.counts[SIZE]
    g, v, change = t.work[0, :n_inside], t.work[2, :n_inside], t.work[CHANGES, :n_inside]
    cross(t, j, g)
    multiply(t.U, g, v)
    gamma, r = t.diag[j] - dot(g, v), t.b[j] - dot(g, t.x)
    _changes(gamma, r, CAREFUL * t.diag[j], v, t.x, t.work[OF_U], change)
    best = HUGE
    for k in range(n_inside):
        may_leave = marks[UNTIL, t.inside[k]] <= now or change[k] < sensation
        if may_leave and change[k] < best and abs(change[k]) > SAME:
            best = change[k]
            at[SLOT], at[OUTSIDE] = k, ranking.position[j]
    return best


@inlined
def _exchange(t, state, marks, at, ready, ranking):
    """Make the exchange in the tally, and mark its columns; return False if the tableau is singular.

    ``ready`` says whether `_choose` has left G_jS and the regression of column j in ``work``.
    """
    n_inside = t.counts[SIZE]
    k, p = at[SLOT], at[OUTSIDE]
    i, j = t.inside[k], t.outside[p]
    g, u = t.work[0, :n_inside], t.work[1, :n_inside]
    v, h, b = t.work[2, :n_inside], t.work[3, :n_inside], t.work[OF_B, :n_inside]
    at[SLOT] = -1
    at[CLOCK] += 1
    while True:
        if not ready:
            cross(t, j, g)
            multiply(t.U, g, v)
        freed, x_k = 1.0 / t.U[k, k], t.x[k]
        s = v[k] * freed
        gamma = t.diag[j] - dot(g, v) + v[k] * s
        r = t.b[j] - dot(g, t.x) + s * x_k
        read_row(t.U, k, u)
        singularity = prepare_swap(t, k, j, gamma, freed, u, v)
        if singularity < 0.0 or singularity * CAREFUL >= 1.0:
            marks[REFUSED, j] = at[MADE]
            return True
        cross(t, i, h)
        t.values[FAULT] += measure_leaving_with(t, k, u, h, b)
        if t.values[FAULT] <= FAULT_LIMIT or t.counts[MOVES] == 0:
            break
        if not _renew(t, ranking):
            return False
        ready = False
    clear_slot(t, k, u)
    rank_after_swap(t, k, j, u, v, freed, 1.0 / gamma, x_k, r, ranking)
    swap_inverse(t, k, u, v, freed, 1.0 / gamma, r)
    t.inside[k], t.outside[p] = j, i
    ranking.position[i], ranking.position[j] = p, -1
    b[k], t.work[OF_G, k] = t.b[j], t.diag[j]
    t.values[ENERGY] += 0.5 * x_k * x_k * freed - 0.5 * r * r / gamma
    t.values[SINGULARITY] = singularity
    t.counts[STALE] = 1
    t.counts[MOVES] += 1
    at[MADE] += 1
    marks[UNTIL, i] = at[CLOCK] + period(state, 6 + n_inside // 16)
    marks[UNTIL, j] = at[CLOCK] + period(state, min(n_inside // 4, 2 + n_inside // 20))
    return not refresh_due(t) or _renew(t, ranking)


@direct
@loop
def ranked_kick(t, state, stop, levels, marks, at, ranking):
    """Walk until ``at[KICKS]`` is ``stop``, or a shake or a descent is due; return an outcome.

    A descent is due (``at[PHASE]`` is `DESCENDING`) where no step gains, but the energy is below the
    lowest of all minima. The caller makes it, because it needs the whole tableau, and continues with
    `WALKING`. The kernel resumes exactly where it stopped.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    patience = PATIENCE * patience_of(t.b.size, n_inside)
    slow = n_inside * t.b.size > SLOW
    if at[RANKED] == 0:
        at[RANKED] = 1
        if t.counts[STALE] == 1 and not refresh(t):
            return SINGULAR
        fill_ranking(t, ranking)
    _read_slots(t)
    while at[KICKS] < stop:
        ready = False
        if at[PHASE] == WALKING:
            energy = t.values[ENERGY]
            if energy < levels[HERE] - RESOLUTION:
                levels[HERE] = energy
                at[FOUND] = at[CLOCK]
            sensation = levels[HERE] - energy - RESOLUTION
            change = _choose(t, marks, at[CLOCK], at[MADE], sensation, at, ranking)
            if energy < levels[BEST] - RESOLUTION and change >= -RESOLUTION:
                at[PHASE], at[SLOT] = DESCENDING, -1
                break
            ready = change < HUGE
        if not ready:
            at[SLOT], at[OUTSIDE] = below(state, n_inside), below(state, n_outside)
        if not _exchange(t, state, marks, at, ready, ranking):
            return SINGULAR
        if at[PHASE] == SHAKING:
            at[LEFT] -= 1
            if at[LEFT] == 0:
                at[PHASE] = WALKING
                at[FOUND] = at[CLOCK]
                levels[HERE] = HUGE  # so that the present energy is a new lowest one
        if end_step(at, patience, FASTER * STEPS, n_inside):
            break
        if slow:
            return PAUSED
    return DONE
