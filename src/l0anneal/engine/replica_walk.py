"""Kernels that move many supports through one tableau, for `Replicas`.

A replica is a support and a random stream. Its tableau is computed by Cholesky before each walk, which
costs as much as K accepted moves, and discarded afterwards, so that the memory needed does not grow with
the number of replicas.
"""

import numpy as np
from numba import boolean, int64

from l0anneal.engine.kernel import inner, kernel, separate
from l0anneal.engine.moves.pair_flip import pair_flip
from l0anneal.engine.moves.pair_flip_direct import pair_flip_direct
from l0anneal.engine.moves.protocol import (
    ACCEPTED,
    DONE,
    FULL,
    OUTSIDE,
    PAUSED,
    PROPOSED,
    SINGULAR,
    SLOT,
)
from l0anneal.engine.refresh import refresh, refresh_inverse
from l0anneal.engine.rng import below
from l0anneal.engine.tableau import ENERGY, SIZE, STALE, TABLEAU, copy_row
from l0anneal.problem.admissibility import PIVOT

__all__ = ["draw", "settle", "walk"]

TRIES = 1000  # draws of one uniform support before `draw` gives up


@inner
def _copy_sorted(columns, target):
    """Copy columns to ``target`` in increasing order, by insertion."""
    for m in range(columns.size):
        n = m
        while n > 0 and target[n - 1] > columns[m]:
            target[n] = target[n - 1]
            n -= 1
        target[n] = columns[m]


@separate(TABLEAU, int64[::1], boolean)
def settle(t, support, direct):
    """Make ``t`` the tableau of a sorted support; return an outcome.

    With ``direct``, compute only the part that `pair_flip_direct` needs.
    """
    n_inside = support.size
    t.counts[SIZE] = n_inside
    copy_row(support, t.inside)
    outside = 0
    m = 0
    for j in range(t.b.size):
        if m < n_inside and support[m] == j:
            m += 1
        else:
            t.outside[outside] = j
            outside += 1
    if direct:
        t.counts[STALE] = 1
        return DONE if refresh_inverse(t) else SINGULAR
    for j in support:
        if t.row_of[j] < 0:
            return j
    return DONE if refresh(t) else SINGULAR


@kernel
def draw(t, supports, states, direct, at):
    """Draw each replica's support uniformly from the admissible ones, by rejection.

    ``at`` holds the index of the present replica, whether its latest draw is still to be tested, the
    number of draws for this replica, and the number of draws for all. The outcome is `FULL` if a
    replica has been drawn `TRIES` times without success.
    """
    n_columns = t.b.size
    n_inside = supports.shape[1]
    order = np.arange(n_columns)
    while at[0] < supports.shape[0]:
        i = at[0]
        if at[1] == 0:
            if at[2] == TRIES:
                return FULL
            for m in range(n_inside):
                l = m + below(states[i], n_columns - m)
                order[m], order[l] = order[l], order[m]
            _copy_sorted(order[:n_inside], supports[i])
            at[1] = 1
            at[2] += 1
            at[3] += 1
        outcome = settle(t, supports[i], direct)
        if outcome >= 0:
            return outcome
        at[1] = 0
        fair = outcome == DONE
        for m in range(n_inside):
            fair = fair and t.U[m, m] * t.diag[t.inside[m]] * PIVOT < 1.0
        if fair:
            at[0] += 1
            at[2] = 0
    return DONE


@kernel
def walk(t, supports, states, mu, n_sweeps, chunk, direct, lasts, means, tally, at):
    """Move each replica by ``n_sweeps`` sweeps of pair flips; return an outcome.

    ``supports`` (sorted rows) and ``states`` are changed in place. ``lasts`` and ``means`` receive the
    energy of each replica after its last sweep, and its mean over the sweeps. ``at`` holds the index of
    the present replica, whether its tableau has been computed, and its tally, so that the kernel can
    resume where it stopped. After ``chunk`` proposals of a replica the outcome is `PAUSED`.
    """
    series = np.zeros(n_sweeps)
    own = np.empty(4, dtype=np.int64)
    stop = n_sweeps * t.b.size
    while at[0] < supports.shape[0]:
        i = at[0]
        if at[1] == 0:
            outcome = settle(t, supports[i], direct)
            if outcome != DONE:
                return outcome
            at[1] = 1
            at[2 + PROPOSED] = at[2 + ACCEPTED] = 0
            at[2 + SLOT] = at[2 + OUTSIDE] = -1
            means[i] = 0.0
        copy_row(at[2:], own)
        before = own[PROPOSED] // t.b.size
        here = min(stop, own[PROPOSED] + chunk)
        if direct:
            outcome = pair_flip_direct(t, states[i], mu, here, series, own)
        else:
            outcome = pair_flip(t, states[i], mu, here, series, own)
        for sweep in range(before, own[PROPOSED] // t.b.size):
            means[i] += series[sweep] / n_sweeps
        copy_row(own, at[2:])
        if outcome != DONE:
            return outcome
        if own[PROPOSED] < stop:
            return PAUSED
        _copy_sorted(t.inside[: t.counts[SIZE]], supports[i])
        lasts[i] = t.values[ENERGY]
        tally[PROPOSED] += own[PROPOSED]
        tally[ACCEPTED] += own[ACCEPTED]
        at[1] = 0
        at[0] += 1
    return DONE
