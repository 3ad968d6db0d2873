"""The paper's move: exchange a random column of the support for a random column outside."""

from l0anneal.engine.kernel import separate
from l0anneal.engine.moves.protocol import ACCEPTED, DONE, MOVE, OUTSIDE, PROPOSED, SINGULAR, SLOT
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import accepts, below, uniform
from l0anneal.engine.tableau import ENERGY, SIZE, delta_swap

__all__ = ["pair_flip"]


@separate(*MOVE)
def pair_flip(t, state, mu, stop, energies, tally):
    """Run Algorithm 1 of the paper (with min where it has max): Metropolis at inverse temperature mu.

    Each proposal draws i from the support and j from outside, both uniformly, and is accepted with
    probability min(1, exp(−mu ΔE)). The move leaves the Gibbs law exp(−mu E) on the admissible
    supports of this size invariant (see `tableau`).

    Parameters
    ----------
    t : Tableau
        The support and its tableau; changed in place.
    state : uint64 array
        State of the random number generator; changed in place.
    mu : float
        Inverse temperature, in units of one over the tableau's energy.
    stop : int
        Number of proposals, as counted by ``tally``, after which to return.
    energies : float array
        Receives the energy after each sweep of N proposals.
    tally : int array
        From `new_tally`, one for each temperature: counts, and the proposal that waits for a row of the
        Gram matrix. A kernel that is called again with its tally resumes exactly where it stopped.

    Returns
    -------
    int
        `DONE`, `SINGULAR`, or the column whose Gram row is needed before the kernel is called again.
    """
    n_inside = t.counts[SIZE]
    n_columns = t.b.size
    n_outside = n_columns - n_inside
    while tally[PROPOSED] < stop:
        if n_inside > 0 and n_outside > 0:
            waiting = tally[SLOT] >= 0
            if waiting:
                k, p = tally[SLOT], tally[OUTSIDE]
                tally[SLOT] = -1
            else:
                k = below(state, n_inside)
                p = below(state, n_outside)
            if waiting or accepts(uniform(state), mu * delta_swap(t, k, p)):
                j = t.outside[p]
                if t.row_of[j] < 0:
                    tally[SLOT], tally[OUTSIDE] = k, p
                    return j
                if swap(t, k, p):
                    tally[ACCEPTED] += 1
                    if refresh_due(t) and not refresh(t):
                        return SINGULAR
        tally[PROPOSED] += 1
        if tally[PROPOSED] % n_columns == 0:
            energies[tally[PROPOSED] // n_columns - 1] = t.values[ENERGY]
    return DONE
