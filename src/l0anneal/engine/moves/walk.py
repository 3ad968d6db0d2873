"""What the walks over minima share: where they are, what may not move, and when they are shaken.

There are two, `kick` and `ranked_kick`, and one can go on where the other has stopped.
"""

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel import inlined, inner
from l0anneal.engine.moves.protocol import SLOT
from l0anneal.engine.rng import below

__all__ = [
    "BEST",
    "CLOCK",
    "DESCENDING",
    "FLOOR",
    "FOUND",
    "GOOD",
    "HERE",
    "HUGE",
    "KICKS",
    "LEFT",
    "LEVELS",
    "MADE",
    "N_GOOD",
    "PHASE",
    "RANKED",
    "REFUSED",
    "SAME",
    "SHAKING",
    "SLOW",
    "STEPS",
    "STRETCHES",
    "UNTIL",
    "WALKING",
    "end_step",
    "patience_of",
    "period",
    "start_of_walk",
]

STEPS = 25  # steps of `kick` that count as one kick
PATIENCE = 5  # the walk is shaken after this many steps per column without a new lowest energy,
MOST_PATIENCE = 1000  # but after at most this many, and 100 more for each column of the support
STRENGTH = 4  # a shake exchanges one column, and one in this number
GOOD = 4  # exchanges of the last scan that `kick` remembers
SAME = 1e-12  # changes of the energy up to this, in the engine's units, are those of a copy
HUGE = 1e8  # more than any change of the energy, which is at most one
SLOW = 10**6  # N K above which the clock is read after each step

# Indices into ``levels``: the lowest energy since the last shake, the lowest of all minima, and the
# energy at which nothing more can be gained.
HERE, BEST, FLOOR, LEVELS = 0, 1, 2, 3
# Indices into ``at``, whose first four elements are a tally: kicks so far, the present phase, the
# exchanges left to make in this shake, all steps, the step of the last new lowest energy, all exchanges
# made, plus one, how many stretches between shakes have ended, and whether the ranking of `ranked_kick`
# is that of the present support; how often the last scan of `kick` found a better exchange, and slots
# and outside positions of the `GOOD` last ones. PLACES is the length of ``at``.
KICKS, PHASE, LEFT, CLOCK, FOUND, MADE, STRETCHES, RANKED, N_GOOD = range(4, 13)
PLACES = N_GOOD + 1 + 2 * GOOD
WALKING, SHAKING, DESCENDING = range(3)
# Rows of ``marks``: the step before which a column may not move, and the value of ``at[MADE]`` when it
# was last refused as not admissible.
UNTIL, REFUSED = range(2)


def start_of_walk(n_columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ``marks`` and ``at`` of a walk that has not begun."""
    at = np.zeros(PLACES, dtype=np.int64)
    at[SLOT], at[MADE] = -1, 1
    return np.zeros((2, n_columns), dtype=np.int64), at


@inlined
def patience_of(n_columns, n_inside):
    """Return after how many steps without a new lowest energy `kick` is shaken."""
    return min(PATIENCE * n_columns, MOST_PATIENCE + 100 * n_inside)


@inner
def period(state, least):
    """Draw for how many steps a column stays where it is."""
    return least + below(state, max(1, least))


@inlined
def end_step(at, patience, steps, n_inside):
    """End a step, of which ``steps`` are a kick; return whether a shake is due.

    It is due where nothing was found for ``patience`` steps.
    """
    due = at[PHASE] == WALKING and at[CLOCK] - at[FOUND] >= patience
    if due:
        at[PHASE] = SHAKING
        at[LEFT] = 1 + n_inside // STRENGTH
        at[STRETCHES] += 1
    if at[CLOCK] % steps == 0:
        at[KICKS] += 1
    return due
