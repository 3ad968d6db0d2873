"""Sparse coding of many signals in one dictionary: pursuit, descent, then kicks and descents.

This is the zero-temperature limit of annealing. Each thread has one tableau, which it uses for one
signal after another, and a second tableau for the best support so far:

1. Orthogonal matching pursuit: the atom that correlates most with the residual is added, k times.
2. Descent by slots: each slot in turn takes the outside atom that lowers the energy most, until no
   exchange of one atom lowers the energy.
3. A kick, which exchanges a few random pairs, and another descent. If the new support is worse than
   the best one so far, the search returns to the best one. The caller chooses the number of kicks.

Without a search, the pursuit is the order-recursive one, which adds the atom that lowers the energy
most.

On patches of images this finds lower energies than a cold anneal of the same duration: a kick costs
about ten exchanges, and its descent ends in another local minimum. `kick_search`, which has seconds for
one signal, descends column by column and accepts most of the minima it reaches. For sparse coding, with
some tens of microseconds per signal, that gains as much per kick at 12 and 20 atoms, but takes twice as
long.

The coefficients returned come from a Cholesky factorisation of G_SS, refined with residuals of the
atoms themselves until they have the accuracy of QR. So do the energies that decide between nearly
equal supports.
"""

import math

import numpy as np
from numba import float64, int64, uint64

from l0anneal.engine.coding_pursuit import (
    BY_CORRELATION,
    BY_ENERGY,
    NOTHING,
    pursue,
    pursue_plainly,
    solve_pursuit,
)
from l0anneal.engine.coding_search import RESOLUTION, open_tableau, search
from l0anneal.engine.coding_state import (
    CODE_TABLEAU,
    DICTIONARY,
    ENERGY,
    NUMBERS,
    SIZE,
    correlate,
    refit,
)
from l0anneal.engine.kernel import allocating, inner, kernel, separate
from l0anneal.engine.vectors import dot

__all__ = ["OMP", "PURSUIT", "encode", "sizes_of_pursuit"]

# Given as a number of kicks: a pursuit without a search, by energy or by correlation.
PURSUIT, OMP = -1, -2
CLEAR = 1e-9  # gains above this need no check by the refined energies
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inner
def _mix(word):
    """Mix the bits of a word: the finaliser of SplitMix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@allocating
def _seed(state, key, y):
    """Set ``state`` to the random stream for signal y and ``key``."""
    bits = y.view(np.uint64)
    word = key[0]
    for i in range(bits.size):
        word = _mix(word ^ bits[i]) + _GOLDEN
    for i in range(state.size):
        word += _GOLDEN
        state[i] = _mix(word) ^ key[i]


@separate(DICTIONARY, NUMBERS, NUMBERS, NUMBERS)
def _begin(d, b, signal, y):
    """Write the signal of unit norm to y, and its products with the atoms to b.

    Returns the largest element, the norm of the signal divided by it, and the part of ‖y‖² that the
    atoms can reach, which is 0 if there is nothing to represent.
    """
    largest = 0.0
    for m in range(y.size):
        largest = max(largest, abs(signal[m]))
    if largest == 0.0:
        return largest, 0.0, 0.0
    for m in range(y.size):
        y[m] = signal[m] / largest + 0.0  # −0 becomes 0: equal signals have equal bits
    length = math.sqrt(dot(y, y))
    for m in range(y.size):
        y[m] /= length
    correlate(d, y, b)
    reach = dot(b, b)
    if reach <= NOTHING * NOTHING:
        return largest, length, 0.0
    # the unit of energy is what the atoms can reach of the signal, as in `SparseProblem`
    reach = min(reach, 1.0)
    scale = 1.0 / math.sqrt(reach)
    for j in range(b.size):
        b[j] *= scale
    return largest, length, reach


@separate(
    DICTIONARY,
    CODE_TABLEAU,
    CODE_TABLEAU,
    NUMBERS,
    float64,
    int64,
    int64,
    int64,
    uint64[::1],
    float64[:, ::1],
    int64[:, ::1],
)
def _search_support(d, t, spare, y, reach, n_atoms, n_nonzero, n_kicks, state, rows, supports):
    """Find the support of one signal, its coefficients and its error, by pursuit and search.

    Row 0 of ``supports`` receives the support, row 0 of ``rows`` the coefficients; the other rows are
    scratch. Returns the size of the support and the error.
    """
    x, x_first, residual = rows[0], rows[1], rows[2, : y.size]
    best, first = supports[0], supports[1]
    straight = pursue(d, t, n_nonzero, -np.inf, BY_CORRELATION)
    size = size_first = t.counts[SIZE]
    for m in range(size):
        best[m] = first[m] = t.inside[m]
    begun = lowest = t.values[ENERGY]
    if n_kicks >= 0 and 0 < size < n_atoms and 0.5 / reach + begun > RESOLUTION:
        open_tableau(t)
        for p in range(t.b.size):
            spare.b[p] = t.b[p]
        search(d, t, spare, n_atoms, n_kicks, state)
        if spare.values[ENERGY] < lowest:
            lowest = spare.values[ENERGY]
            for m in range(size):
                best[m] = spare.inside[m]
    error = refit(d, t, y, best[:size], x, residual)
    if not straight or lowest > begun - CLEAR:
        # the support of the pursuit may be better, by less than the tableau can resolve
        if not straight:
            size_first = pursue_plainly(d, t, y, first[:n_nonzero], x_first, residual)
        error_first = refit(d, t, y, first[:size_first], x_first, residual)
        if error_first < error:
            error = error_first
            size = size_first
            for m in range(size):
                best[m] = first[m]
                x[m] = x_first[m]
    return size, error


@inner
def _sort(support, x):
    """Sort a support, and its coefficients with it."""
    for m in range(1, support.size):
        j, x_j, l = support[m], x[m], m
        while l > 0 and support[l - 1] > j:
            support[l], x[l] = support[l - 1], x[l - 1]
            l -= 1
        support[l], x[l] = j, x_j


@kernel
def encode(d, t, spare, norms, signals, n_nonzero, n_kicks, key, supports, coefs, sizes, errors):
    """Compute the codes of some signals.

    Parameters
    ----------
    d : CodingDictionary
        The unit-norm atoms.
    t, spare : CodeTableau
        Two tableaux with room for ``n_nonzero`` atoms.
    norms : float array
        The norms of the atoms in the caller's units; there are as many as atoms before the padding.
    signals : float array
        One signal per row.
    n_nonzero, n_kicks : int
        Number of atoms per signal, and number of kicks, or `PURSUIT` or `OMP`.
    key : uint64 array of 4
        The seed. The random stream of a signal depends on this key and on the signal alone.
    supports, coefs : int and float arrays of shape (n_signals, n_nonzero)
        Receive the atoms of each code in ascending order, and their coefficients.
    sizes : int array
        Receives the numbers of atoms. What is beyond them in ``supports`` and ``coefs`` has no meaning.
    errors : float array
        Receives the part of ‖y‖² that each code leaves.
    """
    n_features = d.atoms.shape[1]
    y = np.empty(n_features)
    rows = np.empty((3, max(n_features, n_nonzero)))
    found = np.empty((2, n_nonzero), dtype=np.int64)
    state = np.empty(4, dtype=np.uint64)
    for i in range(signals.shape[0]):
        largest, length, reach = _begin(d, t.b, signals[i], y)
        sizes[i] = 0
        errors[i] = 0.0 if largest == 0.0 else 1.0
        if reach == 0.0:
            continue
        if n_kicks == PURSUIT:
            pursue(d, t, n_nonzero, -np.inf, BY_ENERGY)
            size = t.counts[SIZE]
            for m in range(size):
                found[0, m] = t.inside[m]
            error = solve_pursuit(d, t, y, math.sqrt(reach), rows[0], rows[2, :n_features])
        else:
            if n_kicks > 0:
                _seed(state, key, y)
            size, error = _search_support(
                d, t, spare, y, reach, norms.size, n_nonzero, n_kicks, state, rows, found
            )
        _sort(found[0, :size], rows[0])
        sizes[i] = size
        errors[i] = error
        for m in range(size):
            j = found[0, m]
            supports[i, m] = j
            coefs[i, m] = rows[0, m] * length * (largest / norms[j])


@kernel
def sizes_of_pursuit(d, t, signals, parts, n_nonzero, sizes):
    """Find out how many atoms orthogonal matching pursuit needs for each signal.

    Parameters
    ----------
    d, t, signals
        As for `encode`.
    parts : float array
        The part of ‖y‖² that each code may leave.
    n_nonzero : int
        The largest number of atoms.
    sizes : int array
        Receives the numbers, at most ``n_nonzero``, also where these do not suffice.
    """
    y = np.empty(d.atoms.shape[1])
    for i in range(signals.shape[0]):
        sizes[i] = 0
        if parts[i] < 1.0:
            _, _, reach = _begin(d, t.b, signals[i], y)
            if reach > 0.0:
                pursue(d, t, n_nonzero, 0.5 * (parts[i] - 1.0) / reach, BY_CORRELATION)
                sizes[i] = t.counts[SIZE]
