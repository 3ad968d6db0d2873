"""Add, remove or exchange columns with the evidence of a spike-and-slab model as the weight.

With noise variance T = 1/mu, a Gaussian slab of variance σ² for the coefficients of the unit-norm
columns in the support, and the coefficients integrated out, a support has the weight

    π(S)  det(I + G_SS/λ)^(−1/2)  exp(−mu E_λ),     λ = T/σ²,

where π(S) is the prior weight of the support and E_λ = min_x ½‖y − Ax‖² + ½ λ‖x‖² is the tableau's
energy with the ridge λ on the diagonal. The ratios of determinants are γ and U_kk of the tableau, so a
proposal costs O(1) here too.

The prior is a product of a function of the size and of factors of the columns: ``size_odds[K]`` is the
log ratio of the prior weights of supports of K + 1 and of K columns, and ``column_odds[j]`` is added to
it for column j. A column whose ``column_odds`` are −∞ stays where it is, inside or outside.

The noise variance can be integrated out, too, if the slab is given in its units (σ² = g T, λ = 1/g)
and log T is uniform a priori. Then E_λ^(−M/2) takes the place of exp(−mu E_λ). The kernels do so if
``half`` = M/2 is not 0; ``base`` is ½‖y‖², which energies of the tableau leave out.

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

from l0anneal.engine.kernel import inlined, inner, loop
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, FULL, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.pivots import add, remove, swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import below, uniform
from l0anneal.engine.tableau import ENERGY, SIZE, delta_swap
from l0anneal.problem.admissibility import PIVOT

__all__ = [
    "enter",
    "evidence_flip",
    "leave",
    "locate",
    "log_fit",
    "log_humps",
    "log_odds_out",
    "proposal_odds",
    "propose",
    "relocate",
    "swap_odds",
]


@inlined
def log_humps(r, gamma, mu, log_ridge, pull):
    """Return the log of the factor of two humps in the weight of a column with r and γ."""
    if pull == 0.0:
        return 0.0
    lean = abs(mu * pull * r / gamma)
    log_cosh = lean + math.log1p(math.exp(-2.0 * lean)) - math.log(2.0)
    return log_cosh + 0.5 * mu * pull * pull * (1.0 / gamma - math.exp(-log_ridge))


@inlined
def log_fit(t, change, mu, base, half):
    """Return the log ratio of likelihoods after and before the energy changes by ``change``."""
    if half == 0.0:
        return -mu * change
    return -half * math.log1p(max(change / (base + t.values[ENERGY]), -1.0 + 1e-15))


@inlined
def log_odds_in(t, p, mu, base, half, log_ridge, size_odds, column_odds, pull):
    """Return the log ratio of the weights with and without outside column p."""
    gamma, r = t.gamma[p], t.r[p]
    if gamma <= PIVOT * t.diag[t.outside[p]]:
        return -np.inf
    log_odds = size_odds[t.counts[SIZE]] + column_odds[t.outside[p]]
    gain = log_odds - 0.5 * (math.log(gamma) - log_ridge)
    gain += log_fit(t, -0.5 * r * r / gamma, mu, base, half)
    return gain + log_humps(r, gamma, mu, log_ridge, pull)


@inlined
def log_odds_out(t, k, mu, base, half, log_ridge, size_odds, column_odds, pull, signs):
    """Return the log ratio of the weights without and with the column in slot k."""
    log_odds = size_odds[t.counts[SIZE] - 1] + column_odds[t.inside[k]]
    if log_odds == -np.inf:
        return -np.inf
    u = t.U[k, k]
    x = t.x[k] - u * pull * signs[t.inside[k]]  # the coefficient without the pull of its hump
    gain = -0.5 * (math.log(u) + log_ridge) - log_odds
    gain += log_fit(t, 0.5 * x * x / u, mu, base, half)
    return gain - log_humps(x / u, 1.0 / u, mu, log_ridge, pull)


@inlined
def swap_odds(t, k, p, column_odds):
    """Return the log ratio of the prior weights after and before outside column p takes slot k."""
    leaving = column_odds[t.inside[k]]
    if leaving == -np.inf:
        return -np.inf
    return column_odds[t.outside[p]] - leaving


@inlined
def log_odds_swap(t, k, p, mu, base, half, log_ridge, column_odds, pull, signs):
    """Return the log ratio of the weights after and before outside column p takes slot k."""
    odds = swap_odds(t, k, p, column_odds)
    if odds == -np.inf:
        return -np.inf
    w, u = t.W[p, k], t.U[k, k]
    gamma = t.gamma[p] + w * w / u
    if gamma <= PIVOT * t.diag[t.outside[p]]:
        return -np.inf
    gain = odds - 0.5 * math.log(gamma * u)
    gain += log_fit(t, delta_swap(t, k, p), mu, base, half)
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


@inner
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


@inlined
def locate(t, where):
    """Write the outside position of each column to ``where``, and −1 for the columns inside."""
    for j in range(where.size):
        where[j] = -1
    for p in range(t.b.size - t.counts[SIZE]):
        where[t.outside[p]] = p


@inlined
def relocate(t, j, p, where):
    """Update ``where`` after column j entered from outside position p, or a column left (p < 0)."""
    n_outside = t.b.size - t.counts[SIZE]
    if p < 0:
        where[t.outside[n_outside - 1]] = n_outside - 1
        return
    if p < n_outside:
        where[t.outside[p]] = p
    where[j] = -1


@inlined
def propose(t, state, flips, share, alias, where):
    """Draw a proposal: a slot and an outside position; −1 stands for none, and both for no proposal.

    With probability ½ a column is exchanged; with probability ¼ each, one is added or removed. Without
    ``flips``, every proposal is an exchange. Entering columns are drawn from the law of ``share`` and
    ``alias``, and leaving ones uniformly. A drawn column that is inside already is no proposal.
    """
    n_inside = t.counts[SIZE]
    kind = uniform(state) if flips else 1.0
    k = p = -1
    if n_inside > 0 and kind >= 0.25:
        k = below(state, n_inside)
    if kind < 0.25 or kind >= 0.5:
        j = below(state, t.b.size)
        if uniform(state) >= share[j]:
            j = alias[j]
        p = where[j]
        if p < 0 or (kind >= 0.5 and k < 0):
            return -1, -1
    return k, p


@inlined
def proposal_odds(t, k, p, log_share):
    """Return the log ratio of the probabilities of the reverse proposal and of this one."""
    n_inside = t.counts[SIZE]
    odds = 0.0 if k < 0 else log_share[t.inside[k]]
    if p >= 0:
        odds -= log_share[t.outside[p]]
    if k < 0:
        odds -= math.log(n_inside + 1.0)
    elif p < 0:
        odds += math.log(n_inside + 0.0)
    return odds


@loop
def evidence_flip(
    t,
    state,
    mu,
    base,
    half,
    log_ridge,
    size_odds,
    column_odds,
    share,
    alias,
    log_share,
    where,
    pull,
    signs,
    largest,
    stop,
    tally,
):
    """Run Metropolis on supports of at most ``largest`` columns, or of one size if ``largest`` is 0.

    Proposals are those of `propose`. A column j is drawn to enter with the probability
    exp(``log_share[j]``) by Walker's method: a uniformly drawn j is kept with probability ``share[j]``
    and replaced by ``alias[j]`` otherwise. ``where`` is an array of N integers to work with.
    ``log_ridge`` is log λ; ``size_odds`` and ``column_odds`` are the prior; ``pull`` is λm, and 0 for a
    slab with one hump; ``signs`` holds the signs of the support's columns, indexed by column. The other
    arguments and the return value are those of `pair_flip`; `FULL` means that the tableau has no room
    for another column.
    """
    flips = largest > 0
    locate(t, where)
    while tally[PROPOSED] < stop:
        n_inside = t.counts[SIZE]
        if flips and n_inside == t.inside.size and n_inside < largest:
            return FULL
        waiting = tally[OUTSIDE] >= 0
        if waiting:
            k, p = tally[SLOT], tally[OUTSIDE]
            tally[OUTSIDE] = -1
        else:
            k, p = propose(t, state, flips, share, alias, where)
            if k >= 0 and p >= 0:
                gain = log_odds_swap(t, k, p, mu, base, half, log_ridge, column_odds, pull, signs)
            elif k >= 0:
                gain = log_odds_out(
                    t, k, mu, base, half, log_ridge, size_odds, column_odds, pull, signs
                )
            elif p >= 0 and n_inside < largest:
                gain = log_odds_in(t, p, mu, base, half, log_ridge, size_odds, column_odds, pull)
            else:
                gain = -np.inf
            if gain > -np.inf:
                gain += proposal_odds(t, k, p, log_share)
        if waiting or (gain > -np.inf and uniform(state) < math.exp(min(gain, 0.0))):
            j = t.outside[p] if p >= 0 else -1
            if p >= 0 and t.row_of[j] < 0:
                tally[SLOT], tally[OUTSIDE] = k, p
                return j
            if _move(t, state, k, p, mu, pull, signs):
                relocate(t, j, p, where)
                tally[ACCEPTED] += 1
                if refresh_due(t) and not refresh(t):
                    return SINGULAR
        tally[PROPOSED] += 1
    return DONE
