"""Exchange several columns of the support for as many outside columns at once."""

import math

import numpy as np

from l0anneal.engine.kernel import allocating, inner, kernel
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, PAIRS, PROPOSED, SINGULAR, SPARE_ROWS
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import accepts, below, uniform
from l0anneal.engine.tableau import (
    CAREFUL,
    ENERGY,
    SINGULARITY,
    SIZE,
    copy_row,
    delta_swap,
)
from l0anneal.engine.vectors import dot

__all__ = ["MOST_PAIRS", "delta_exchange", "multi_flip"]

MOST_PAIRS = SPARE_ROWS  # a proposal needs the Gram rows of all its outside columns at once


@inner
def _factor(B, least):
    """Overwrite the lower triangle of B with its Cholesky factor; False if a pivot is too small."""
    for a in range(least.size):
        for b in range(a + 1):
            total = B[a, b]
            for c in range(b):
                total -= B[a, c] * B[b, c]
            if b < a:
                B[a, b] = total / B[b, b]
            elif total > least[a]:
                B[a, a] = math.sqrt(total)
            else:
                return False
    return True


@inner
def _solve(L, z):
    """Overwrite z with L⁻¹ z."""
    for a in range(z.size):
        for b in range(a):
            z[a] -= L[a, b] * z[b]
        z[a] /= L[a, a]


@inner
def delta_exchange(t, slots, outs, scratch):
    """Return the energy change when outside columns ``outs`` take ``slots``; infinite if refused.

    With I the slots and J the columns, removing I costs ½ x_Iᵀ (U_II)⁻¹ x_I. The Gram matrix of J off
    the span of the columns that stay, and the correlations of J with the residual, are then

        Γ' = Γ_JJ + W_JI (U_II)⁻¹ W_JIᵀ,    r' = r_J + W_JI (U_II)⁻¹ x_I,    Γ = G_JJ − W_JS G_SJ,

    and adding J gains ½ r'ᵀ Γ'⁻¹ r'. A pivot of Γ' is the squared distance of a column of J from the
    span of some columns of the new support, and thus at least its distance from the span of all the
    others. An exchange with a pivot of at most `CAREFUL` is refused, because the new support would be
    near-singular. For n pairs the cost is O(n² K), and the Gram rows of all columns of J but the first
    are needed.
    """
    n = slots.size
    n_inside = t.counts[SIZE]
    B, Z, C = scratch[0, :n, :n], scratch[1, :n, :n], scratch[2, :n, :n]
    x, r, least = scratch[3, 0, :n], scratch[3, 1, :n], scratch[3, 2, :n]
    for a in range(n):
        x[a] = t.x[slots[a]]
        least[a] = 0.0
        for b in range(n):
            B[a, b] = t.U[max(slots[a], slots[b]), min(slots[a], slots[b])]
            Z[a, b] = t.W[outs[a], slots[b]]
    if not _factor(B, least):
        return np.inf
    _solve(B, x)
    for a in range(n):
        _solve(B, Z[a])
    g = t.work[0, :n_inside]
    for a in range(n):
        j = t.outside[outs[a]]
        r[a] = t.r[outs[a]]
        least[a] = CAREFUL * t.diag[j]
        C[a, a] = t.gamma[outs[a]]
        if a > 0:
            row = t.gram[t.row_of[j]]
            for m in range(n_inside):
                g[m] = row[t.inside[m]]
            for b in range(a):
                C[a, b] = row[t.outside[outs[b]]] - dot(g, t.W[outs[b]])
        for c in range(n):
            r[a] += Z[a, c] * x[c]
            for b in range(a + 1):
                C[a, b] += Z[a, c] * Z[b, c]
    if not _factor(C, least):
        return np.inf
    _solve(C, r)
    change = 0.0
    for a in range(n):
        change += 0.5 * (x[a] * x[a] - r[a] * r[a])
    return change


@allocating
def _swap_in_turn(t, slots, outs):
    """Swap pair by pair, each column into the free slot where it is farthest from the span."""
    taken = np.zeros(slots.size, dtype=np.bool_)
    for p in outs:
        best, farthest = -1, -np.inf
        for a in range(slots.size):
            w = t.W[p, slots[a]]
            gamma = t.gamma[p] + w * w / t.U[slots[a], slots[a]]
            if not taken[a] and gamma > farthest:
                best, farthest = a, gamma
        if best < 0 or not swap(t, slots[best], p):
            return False
        taken[best] = True
    return True


@inner
def _relabel(t, slots, outs, inside, outside):
    """Put given columns into slots and outside positions, and refresh; return False if singular."""
    for a in range(slots.size):
        t.inside[slots[a]] = inside[a]
        t.outside[outs[a]] = outside[a]
    return refresh(t)


@allocating
def _exchange(t, slots, outs):
    """Make the exchange if the new support allows it; return 1 if made, 0 if not, or SINGULAR.

    One pair is a swap. Several pairs need a new support that is not near-singular. The swaps that lead
    to it may pass through inadmissible supports; if they do, the tableau of the new support is computed
    from scratch, so that only the new support itself decides.
    """
    if slots.size == 1:
        return np.int64(swap(t, slots[0], outs[0]))
    inside, outside = np.empty_like(slots), np.empty_like(outs)
    for a in range(slots.size):
        inside[a], outside[a] = t.inside[slots[a]], t.outside[outs[a]]
    there = _swap_in_turn(t, slots, outs) or _relabel(t, slots, outs, outside, inside)
    if there and t.values[SINGULARITY] * CAREFUL < 1.0:
        return np.int64(1)
    return np.int64(0 if _relabel(t, slots, outs, inside, outside) else SINGULAR)


@inner
def _draw_distinct(state, n, drawn):
    """Fill ``drawn`` with distinct integers below n; all ordered choices are equally likely."""
    a = 0
    while a < drawn.size:
        drawn[a] = below(state, n)
        new = True
        for b in range(a):
            new = new and drawn[b] != drawn[a]
        if new:
            a += 1


@kernel
def multi_flip(t, state, mu, stop, energies, tally):
    """Run Metropolis with exchanges of up to m pairs; arguments and return value as in `pair_flip`.

    m is ``tally[PAIRS]``, and at most `MOST_PAIRS`. Each proposal draws a number n from 1, ..., m (but
    at most K and N − K), then n columns of the support and n outside, all uniformly. It is accepted
    with probability min(1, exp(−mu ΔE)) if the new support is admissible and, for more than one pair,
    neither the present nor the new support is near-singular (see `tableau`). Single pairs are among
    the proposals so that every support can be reached that the pair flip reaches. With 2K columns, for
    example, exchanges of exactly K of them would only lead to the complement and back.

    The move leaves the Gibbs law exp(−mu E) on the admissible supports of this size invariant. The
    reverse proposal is equally likely, and whether a proposal can be accepted is a symmetric function
    of the two supports: it does not depend on the order of the swaps, nor on the supports between
    (`_exchange`).

    A proposal of n pairs costs O(n² K), and accepting it O(n (N − K) K). If a row of the Gram matrix
    is missing, the random stream is reset to its state before the proposal, so that the same proposal
    is drawn again once the row is there.
    """
    n_inside = t.counts[SIZE]
    n_columns = t.b.size
    n_outside = n_columns - n_inside
    most = min(tally[PAIRS], n_inside, n_outside)
    all_slots, all_outs = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    before = np.empty_like(state)
    scratch = np.empty((4, max(most, 3), most))
    while tally[PROPOSED] < stop:
        if most > 0:
            copy_row(state, before)
            n = 1 + below(state, most)
            slots, outs = all_slots[:n], all_outs[:n]
            _draw_distinct(state, n_inside, slots)
            _draw_distinct(state, n_outside, outs)
            chance = uniform(state)
            for p in outs[1:]:
                if t.row_of[t.outside[p]] < 0:
                    copy_row(before, state)
                    return t.outside[p]
            if n == 1:
                delta = delta_swap(t, slots[0], outs[0])
            elif t.values[SINGULARITY] * CAREFUL >= 1.0:
                delta = np.inf
            else:
                delta = delta_exchange(t, slots, outs, scratch)
            if delta < np.inf and accepts(chance, mu * delta):
                if t.row_of[t.outside[outs[0]]] < 0:
                    copy_row(before, state)
                    return t.outside[outs[0]]
                made = _exchange(t, slots, outs)
                if made == SINGULAR:
                    return SINGULAR
                if made == 1:
                    tally[ACCEPTED] += 1
                    if refresh_due(t) and not refresh(t):
                        return SINGULAR
        tally[PROPOSED] += 1
        if tally[PROPOSED] % n_columns == 0:
            energies[tally[PROPOSED] // n_columns - 1] = t.values[ENERGY]
    return DONE
