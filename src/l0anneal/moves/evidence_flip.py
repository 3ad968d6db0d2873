"""Flip single columns, or exchange two, under the evidence of a spike-and-slab model.

With noise variance T = 1/mu, a Gaussian slab of variance σ² on the coefficients of the chosen
unit-norm columns and the coefficients integrated out, a support has the weight

    (odds)^K  det(I + G_SS/λ)^(−1/2)  exp(−mu E_λ),     λ = T/σ²,  odds = ρ/(1 − ρ),

where E_λ = min_x ½‖y − Ax‖² + ½ λ‖x‖² is the tableau's energy if λ stands on its diagonal. The
determinant's ratios are the tableau's own γ and U_kk, so a proposal costs O(1) here too.
"""

import math

import numpy as np

from l0anneal._kernel import inlined, loop
from l0anneal.moves.outcome import ACCEPTED, DONE, FULL, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.pivots import add, remove, swap
from l0anneal.rng import below, uniform
from l0anneal.tableau import PIVOT, SIZE, delta_swap, refresh, refresh_due

__all__ = ["evidence_flip", "log_odds_in", "log_odds_out", "log_odds_swap"]


@inlined
def log_odds_in(t, p, mu, log_ridge, log_odds):  # type: ignore[no-untyped-def]
    """Log ratio of the weights with and without outside column p."""
    gamma = t.gamma[p]
    if gamma <= PIVOT * t.diag[t.zeros[p]]:
        return -np.inf
    return log_odds - 0.5 * (math.log(gamma) - log_ridge) + 0.5 * mu * t.r[p] * t.r[p] / gamma


@inlined
def log_odds_out(t, k, mu, log_ridge, log_odds):  # type: ignore[no-untyped-def]
    """Log ratio of the weights without and with slot k."""
    u = t.U[k, k]
    return -0.5 * (math.log(u) + log_ridge) - 0.5 * mu * t.x[k] * t.x[k] / u - log_odds


@inlined
def log_odds_swap(t, k, p, mu):  # type: ignore[no-untyped-def]
    """Log ratio of the weights after and before slot k is exchanged for outside column p."""
    w = t.W[p, k]
    gamma = t.gamma[p] + w * w / t.U[k, k]
    if gamma <= PIVOT * t.diag[t.zeros[p]]:
        return -np.inf
    return -0.5 * math.log(gamma * t.U[k, k]) - mu * delta_swap(t, k, p)


@loop
def evidence_flip(t, state, mu, log_ridge, log_odds, largest, stop, tally):  # type: ignore[no-untyped-def]
    """Metropolis on supports of at most ``largest`` columns, or, with ``largest`` 0, of one size.

    Each proposal is, with probability one half each, the flip of a column drawn uniformly from all
    N, or the exchange of a random column of the support for a random one outside; with ``largest``
    0, an exchange always. ``log_ridge`` is log λ; the other arguments and the return value are those
    of `pair_flip`, and `FULL` is returned when the tableau has no room for another column.
    """
    n_columns = t.b.size
    flips = largest > 0
    while tally[PROPOSED] < stop:
        n_ones = t.counts[SIZE]
        n_zeros = n_columns - n_ones
        if flips and n_ones == t.ones.size and n_ones < largest:
            return FULL
        waiting = tally[OUTSIDE] >= 0
        if waiting:
            k, p = tally[SLOT], tally[OUTSIDE]
            tally[OUTSIDE] = -1
        elif flips and uniform(state) < 0.5:
            c = below(state, n_columns)
            k, p = (c, -1) if c < n_ones else (-1, c - n_ones)
        elif n_ones > 0 and n_zeros > 0:
            k, p = below(state, n_ones), below(state, n_zeros)
        else:
            k, p = -1, -1
        if not waiting:
            if k >= 0 and p >= 0:
                gain = log_odds_swap(t, k, p, mu)
            elif k >= 0:
                gain = log_odds_out(t, k, mu, log_ridge, log_odds)
            elif p >= 0 and n_ones < largest:
                gain = log_odds_in(t, p, mu, log_ridge, log_odds)
            else:
                gain = -np.inf
        if waiting or uniform(state) < math.exp(min(gain, 0.0)):
            if p >= 0 and t.row_of[t.zeros[p]] < 0:
                tally[SLOT], tally[OUTSIDE] = k, p
                return t.zeros[p]
            moved = True
            if k >= 0 and p >= 0:
                moved = swap(t, k, p)
            elif p >= 0:
                moved = add(t, p)
            else:
                remove(t, k)
            if moved:
                tally[ACCEPTED] += 1
                if refresh_due(t) and not refresh(t):
                    return SINGULAR
        tally[PROPOSED] += 1
    return DONE
