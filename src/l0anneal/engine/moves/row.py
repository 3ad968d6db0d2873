"""The energies of all exchanges that bring in one outside column, in one pass over its row of W.

`delta_swap` answers one question; the moves that ask it for every slot at once use these kernels,
whose inner loops are contiguous. What depends on the slots alone is worked out once per support.
"""

import math

import numpy as np

from l0anneal.engine.kernel import inlined, kernel
from l0anneal.engine.tableau import CAREFUL, SINGULARITY, SIZE, delta_swap
from l0anneal.problem.admissibility import PIVOT

__all__ = ["joins_easily", "quick_row", "reach", "slot_terms", "swap_row"]


@kernel
def slot_terms(t, freed, lost, room):  # type: ignore[no-untyped-def]
    """Fill in 1/U_kk, the energy ½ x_k²/U_kk that slot k saves, and by how much U_kk may grow."""
    for k in range(t.counts[SIZE]):
        freed[k] = 1.0 / t.U[k, k]
        lost[k] = 0.5 * t.x[k] * t.x[k] * freed[k]
        room[k] = 1.0 / (CAREFUL * t.diag[t.inside[k]]) - t.U[k, k]


@kernel
def _swap_row(w, x, freed, lost, gamma, r, least, delta):  # type: ignore[no-untyped-def]
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
def swap_row(t, p, freed, lost, delta):  # type: ignore[no-untyped-def]
    """Fill ``delta`` with `delta_swap` of outside column p against every slot.

    The present support must not be near-singular. New supports that are, are asked for singly.
    """
    n_inside = delta.size
    w, x = t.W[p, :n_inside], t.x[:n_inside]
    least = CAREFUL * t.diag[t.outside[p]]
    if _swap_row(w, x, freed, lost, t.gamma[p], t.r[p], least, delta) > 0:
        for k in range(n_inside):
            if delta[k] == np.inf:
                delta[k] = delta_swap(t, k, p)


@inlined
def quick_row(t, p, freed, lost, delta):  # type: ignore[no-untyped-def]
    """As `swap_row`, but by the quick formulas wherever the exchange is admissible for column p."""
    n_inside = delta.size
    least = PIVOT * t.diag[t.outside[p]]
    _swap_row(t.W[p, :n_inside], t.x[:n_inside], freed, lost, t.gamma[p], t.r[p], least, delta)


@kernel
def _all_within(w, inverse, room):  # type: ignore[no-untyped-def]
    beyond = 0
    for m in range(room.size):
        beyond += w[m] * w[m] * inverse >= room[m]
    return beyond == 0


@inlined
def joins_easily(t, p, room):  # type: ignore[no-untyped-def]
    """Whether each column of support and outside column p keeps `CAREFUL` off the others' span.

    This is a property of the K + 1 columns, whichever of them is the one outside, and if they have
    it then so has each part of them. The diagonal of their Gram matrix's inverse is
    U_mm + W_pm²/γ_p, and 1/γ_p: O(K).
    """
    gamma = t.gamma[p]
    if t.values[SINGULARITY] * CAREFUL >= 1.0 or gamma <= CAREFUL * t.diag[t.outside[p]]:
        return False
    return _all_within(t.W[p, : room.size], 1.0 / gamma, room)


@kernel
def reach(mu, n):  # type: ignore[no-untyped-def]
    """How far above the lowest of n energies another may lie and still weigh anything.

    All that lie higher have together less than 2⁻⁵³ of the total Gibbs weight, which is the
    rounding of the total.
    """
    return (53.0 * math.log(2.0) + math.log(n)) / mu if mu > 0.0 else np.inf
