"""Add, remove or exchange columns with the evidence of a spike-and-slab model as the weight.

With noise variance T = 1/mu, a Gaussian slab of variance σ² for the coefficients of the unit-norm
columns in the support, and the coefficients integrated out, a support has the weight

    (odds)^K  det(I + G_SS/λ)^(−1/2)  exp(−mu E_λ),     λ = T/σ²,  odds = ρ/(1 − ρ),

where E_λ = min_x ½‖y − Ax‖² + ½ λ‖x‖² is the tableau's energy with the ridge λ on the diagonal. The
ratios of determinants are γ and U_kk of the tableau, so a proposal costs O(1) here too.

The slab may have two humps, at m and −m, each of variance σ², to describe coefficients of similar
magnitude, among which small ones are unlikely. Each column of the support has a sign s_j that says
which hump its coefficient belongs to. Given the signs, the model is Gaussian: the *pull* λm times s_j
is added to the column's correlation b_j with the signal, and the tableau's energy is
E_λ = min_x ½‖y − Ax‖² + ½ λ‖x − m s‖² minus ½ λ m² K. A column with r and γ is proposed with the weight
of both signs together, which is the weight above times

    exp(½ mu (λm)² (1/γ − 1/λ))  cosh(mu λm r/γ),

and draws its sign when it enters the support.
"""

import math

import numpy as np

from l0anneal.engine.kernel import inlined, kernel, loop
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, FULL, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.pivots import add, remove, swap
from l0anneal.engine.rng import below, uniform
from l0anneal.engine.tableau import SIZE, delta_swap, refresh, refresh_due
from l0anneal.problem.admissibility import PIVOT

__all__ = ["enter", "evidence_flip", "leave", "log_humps", "log_odds_out"]


@inlined
def log_humps(r, gamma, mu, log_ridge, pull):
    """Return the log of the factor of two humps in the weight of a column with r and γ."""
    if pull == 0.0:
        return 0.0
    lean = abs(mu * pull * r / gamma)
    log_cosh = lean + math.log1p(math.exp(-2.0 * lean)) - math.log(2.0)
    return log_cosh + 0.5 * mu * pull * pull * (1.0 / gamma - math.exp(-log_ridge))


@inlined
def log_odds_in(t, p, mu, log_ridge, log_odds, pull):
    """Return the log ratio of the weights with and without outside column p."""
    gamma, r = t.gamma[p], t.r[p]
    if gamma <= PIVOT * t.diag[t.outside[p]]:
        return -np.inf
    gain = log_odds - 0.5 * (math.log(gamma) - log_ridge) + 0.5 * mu * r * r / gamma
    return gain + log_humps(r, gamma, mu, log_ridge, pull)


@inlined
def log_odds_out(t, k, mu, log_ridge, log_odds, pull, signs):
    """Return the log ratio of the weights without and with the column in slot k."""
    u = t.U[k, k]
    x = t.x[k] - u * pull * signs[t.inside[k]]  # the coefficient without the pull of its hump
    gain = -0.5 * (math.log(u) + log_ridge) - 0.5 * mu * x * x / u - log_odds
    return gain - log_humps(x / u, 1.0 / u, mu, log_ridge, pull)


@inlined
def log_odds_swap(t, k, p, mu, log_ridge, pull, signs):
    """Return the log ratio of the weights after and before outside column p takes slot k."""
    w, u = t.W[p, k], t.U[k, k]
    gamma = t.gamma[p] + w * w / u
    if gamma <= PIVOT * t.diag[t.outside[p]]:
        return -np.inf
    gain = -0.5 * math.log(gamma * u) - mu * delta_swap(t, k, p)
    if pull == 0.0:
        return gain
    x = t.x[k] - u * pull * signs[t.inside[k]]
    gain += 0.5 * mu * (t.x[k] * t.x[k] - x * x) / u
    gain += log_humps(t.r[p] + w * t.x[k] / u, gamma, mu, log_ridge, pull)
    return gain - log_humps(x / u, 1.0 / u, mu, log_ridge, pull)


@inlined
def enter(t, state, j, r, gamma, mu, pull, signs):
    """Draw the sign of the entering column j, with r and γ, and return the pull on it."""
    if pull == 0.0:
        return 0.0
    plus = 1.0 / (1.0 + math.exp(-2.0 * mu * pull * r / gamma))
    signs[j] = 1.0 if uniform(state) < plus else -1.0
    t.b[j] += pull * signs[j]
    return pull * signs[j]


@inlined
def leave(t, i, pull, signs):
    """Release the leaving column i from its hump, and return the pull that was on it."""
    if pull == 0.0:
        return 0.0
    pulled = pull * signs[i]
    t.b[i] -= pulled
    signs[i] = 0.0
    return pulled


@kernel
def _move(t, state, k, p, mu, pull, signs):
    """Remove slot k (p < 0), add outside column p (k < 0) or exchange them; False if inadmissible."""
    if p < 0:
        i = t.inside[k]
        remove(t, k)
        t.r[t.b.size - t.counts[SIZE] - 1] -= leave(t, i, pull, signs)
        return True
    j = t.outside[p]
    if k < 0:
        t.r[p] += enter(t, state, j, t.r[p], t.gamma[p], mu, pull, signs)
        if add(t, p):
            return True
    else:
        i = t.inside[k]
        w = t.W[p, k] / t.U[k, k]
        r, gamma = t.r[p] + w * t.x[k], t.gamma[p] + w * t.W[p, k]
        t.r[p] += enter(t, state, j, r, gamma, mu, pull, signs)
        if swap(t, k, p):
            t.r[p] -= leave(t, i, pull, signs)
            return True
    t.r[p] -= leave(t, j, pull, signs)
    return False


@loop
def evidence_flip(t, state, mu, log_ridge, log_odds, pull, signs, largest, stop, tally):
    """Run Metropolis on supports of at most ``largest`` columns, or of one size if ``largest`` is 0.

    With probability one half each, a proposal adds or removes a column drawn uniformly from all N, or
    exchanges a random column of the support for a random one outside. With ``largest`` 0, every
    proposal is an exchange. ``log_ridge`` is log λ; ``pull`` is λm, and 0 for a slab with one hump;
    ``signs`` holds the signs of the support's columns, indexed by column. The other arguments and the
    return value are those of `pair_flip`; `FULL` means that the tableau has no room for another column.
    """
    n_columns = t.b.size
    flips = largest > 0
    while tally[PROPOSED] < stop:
        n_inside = t.counts[SIZE]
        n_outside = n_columns - n_inside
        if flips and n_inside == t.inside.size and n_inside < largest:
            return FULL
        waiting = tally[OUTSIDE] >= 0
        if waiting:
            k, p = tally[SLOT], tally[OUTSIDE]
            tally[OUTSIDE] = -1
        elif flips and uniform(state) < 0.5:
            c = below(state, n_columns)
            k, p = (c, -1) if c < n_inside else (-1, c - n_inside)
        elif n_inside > 0 and n_outside > 0:
            k, p = below(state, n_inside), below(state, n_outside)
        else:
            k, p = -1, -1
        if not waiting:
            if k >= 0 and p >= 0:
                gain = log_odds_swap(t, k, p, mu, log_ridge, pull, signs)
            elif k >= 0:
                gain = log_odds_out(t, k, mu, log_ridge, log_odds, pull, signs)
            elif p >= 0 and n_inside < largest:
                gain = log_odds_in(t, p, mu, log_ridge, log_odds, pull)
            else:
                gain = -np.inf
        if waiting or uniform(state) < math.exp(min(gain, 0.0)):
            if p >= 0 and t.row_of[t.outside[p]] < 0:
                tally[SLOT], tally[OUTSIDE] = k, p
                return t.outside[p]
            if _move(t, state, k, p, mu, pull, signs):
                tally[ACCEPTED] += 1
                if refresh_due(t) and not refresh(t):
                    return SINGULAR
        tally[PROPOSED] += 1
    return DONE
