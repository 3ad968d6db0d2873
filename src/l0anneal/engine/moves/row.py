"""The energies of all exchanges in which one outside column enters, in one pass over its row of W.

`delta_swap` computes the energy of a single exchange. Moves that need it for every slot use these
kernels instead, whose inner loops are contiguous. Terms that depend on the slots alone are computed once
per support.
"""

import math

import numpy as np

from l0anneal.engine.kernel import inlined, inner
from l0anneal.engine.tableau import CAREFUL, SINGULARITY, SIZE, delta_swap
from l0anneal.problem.admissibility import PIVOT

__all__ = ["joins_easily", "quick_row", "reach", "slot_terms", "swap_row"]


@inner
def slot_terms(t, freed, lost, room):
    """Fill in 1/U_kk, the energy ½ x_k²/U_kk lost without slot k, and by how much U_kk may grow."""
    for k in range(t.counts[SIZE]):
        freed[k] = 1.0 / t.U[k, k]
        lost[k] = 0.5 * t.x[k] * t.x[k] * freed[k]
        room[k] = 1.0 / (CAREFUL * t.diag[t.inside[k]]) - t.U[k, k]


@inner
def _swap_row(w, x, freed, lost, gamma, r, least, delta):
    left_out = 0
    for k in range(delta.size):
        s = w[k] * freed[k]
        gamma_k = gamma + w[k] * s
        r_k = r + s * x[k]
        change = lost[k] - 0.5 * r_k * r_k / gamma_k
        left_out += gamma_k <= least
        delta[k] = change if gamma_k > least else np.inf
    return left_out


@inlined
def swap_row(t, p, freed, lost, delta):
    """Fill ``delta`` with `delta_swap` of outside column p for every slot.

    The present support must not be near-singular. For new supports that are near-singular, the energy
    is computed by `delta_swap` itself.
    """
    n_inside = delta.size
    w, x = t.W[p, :n_inside], t.x[:n_inside]
    least = CAREFUL * t.diag[t.outside[p]]
    if _swap_row(w, x, freed, lost, t.gamma[p], t.r[p], least, delta) > 0:
        for k in range(n_inside):
            if delta[k] == np.inf:
                delta[k] = delta_swap(t, k, p)


@inlined
def quick_row(t, p, freed, lost, delta):
    """Fill ``delta`` like `swap_row`, but by the quick formulas also for near-singular supports."""
    n_inside = delta.size
    least = PIVOT * t.diag[t.outside[p]]
    _swap_row(t.W[p, :n_inside], t.x[:n_inside], freed, lost, t.gamma[p], t.r[p], least, delta)


@inner
def _all_within(w, inverse, room):
    beyond = 0
    for m in range(room.size):
        beyond += w[m] * w[m] * inverse >= room[m]
    return beyond == 0


@inlined
def joins_easily(t, p, room):
    """Whether the support together with outside column p is not near-singular (see `tableau`).

    This is a property of the K + 1 columns, whichever of them is the one outside, and each subset of
    columns that have the property has it too. The diagonal of the inverse of their Gram matrix is
    U_mm + W_pm²/γ_p, and 1/γ_p, so the test costs O(K).
    """
    gamma = t.gamma[p]
    if t.values[SINGULARITY] * CAREFUL >= 1.0 or gamma <= CAREFUL * t.diag[t.outside[p]]:
        return False
    return _all_within(t.W[p, : room.size], 1.0 / gamma, room)


@inner
def reach(mu, n):
    """Return how far above the lowest of n energies another one may lie and still have any weight.

    All energies above that have together less than 2⁻⁵³ of the total Gibbs weight, which is the
    rounding error of the total.
    """
    return (53.0 * math.log(2.0) + math.log(n)) / mu if mu > 0.0 else np.inf
