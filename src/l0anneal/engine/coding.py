"""Sparse coding of many signals in one dictionary: pursuit, descent, then kicks and descents.

This is the zero-temperature limit of annealing. Each thread has one tableau, which it uses for one
signal after another, and a second tableau for the best support so far:

1. Orthogonal matching pursuit: the column that correlates most with the residual is added, k times.
2. Descent by slots: each slot in turn takes the outside column that lowers the energy most, until no
   exchange of one column lowers the energy.
3. A kick, which exchanges `KICKED` random pairs, and another descent. If the new support is worse than
   the best one so far, the search returns to the best one. The caller chooses the number of kicks.

On patches of images this finds lower energies than a cold anneal of the same duration: a kick costs
about ten exchanges, and its descent ends in another local minimum. `kick_search`, which has seconds for
one signal, descends column by column and accepts most of the minima it reaches. For sparse coding, with
some hundred microseconds per signal, that gains as much per kick at 12 and 20 atoms, but takes twice as
long.

The coefficients returned come from a Cholesky factorisation of G_SS, refined with residuals of the
columns themselves until they have the accuracy of QR. So do the energies that decide between nearly
equal supports.
"""

import math

import numpy as np
from numba import boolean, float64, int64, uint64

from l0anneal.engine.kernel import inner, kernel, separate
from l0anneal.engine.pivots import add, swap
from l0anneal.engine.refresh import refresh, refresh_due
from l0anneal.engine.rng import below
from l0anneal.engine.tableau import (
    ENERGY,
    MOVES,
    SIZE,
    TABLEAU,
    copy_row,
    copy_tableau,
)
from l0anneal.engine.vectors import dot
from l0anneal.problem.admissibility import PIVOT

_VECTOR, _MATRIX = float64[::1], float64[:, ::1]

__all__ = ["encode", "sizes_of_pursuit"]

KICKED = 3
RESOLUTION = 1e-13  # as in `moves.descent`
NOTHING = 1e-12  # correlations below this, of unit columns with a unit signal, are rounding
CLEAR = 1e-9  # gains above this need no check by the refined energies
_ROUNDS = 100  # largest number of steps per slot, in case rounding makes the descent cycle
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _mix(word):
    """Mix the bits of a word: the finaliser of SplitMix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def _seed(state, key, y):
    """Set ``state`` to the random stream for signal y and ``key``."""
    bits = y.view(np.uint64)
    word = key[0]
    for i in range(bits.size):
        word = _mix(word ^ bits[i]) + _GOLDEN
    for i in range(state.size):
        word += _GOLDEN
        state[i] = _mix(word) ^ key[i]


@inner
def _restart(t):
    """Reset the tableau to the empty support for the present ``t.b``."""
    t.counts[SIZE] = 0
    t.counts[MOVES] = 0
    for i in range(t.values.size):
        t.values[i] = 0.0
    for j in range(t.b.size):
        t.r[j] = t.b[j]
        t.gamma[j] = t.diag[j]
        t.outside[j] = j


@separate(TABLEAU, _MATRIX, _VECTOR, _VECTOR)
def _begin(t, atoms, signal, y):
    """Write the signal of unit norm to y, and reset the tableau to the empty support for it.

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
    reach = 0.0
    for j in range(t.b.size):
        t.b[j] = dot(atoms[j], y)
        reach += t.b[j] * t.b[j]
    if reach <= NOTHING * NOTHING:
        return largest, length, 0.0
    # the unit of energy is what the atoms can reach of the signal, as in `SparseProblem`
    reach = min(reach, 1.0)
    for j in range(t.b.size):
        t.b[j] /= math.sqrt(reach)
    _restart(t)
    return largest, length, reach


@separate(TABLEAU, int64, float64, boolean[::1])
def _pursue(t, n_nonzero, enough, barred):
    """Run orthogonal matching pursuit to a number of columns or to an energy.

    Returns False if it skipped a nearly dependent column.
    """
    for j in range(barred.size):
        barred[j] = False
    straight = True
    while t.counts[SIZE] < n_nonzero and t.values[ENERGY] > enough:
        most = NOTHING
        n_outside = t.b.size - t.counts[SIZE]
        chosen = n_outside  # none
        for p in range(n_outside):
            if abs(t.r[p]) > most and not barred[t.outside[p]]:
                most = abs(t.r[p])
                chosen = p
        if chosen == n_outside:
            break
        column = t.outside[chosen]
        if not add(t, chosen):
            barred[column] = True
            straight = False
    return straight


@inner
def _best_for_slot(W, gamma, r, diag, outside, k, freed, x_k):
    """Return the outside position that gains most in slot k, and its r'²/γ' (see `pivots`)."""
    most = 0.0
    chosen = -1
    for p in range(outside.size):
        w = W[p, k]
        s = w * freed
        gamma_p = gamma[p] + w * s
        r_p = r[p] + s * x_k
        gain = r_p * r_p / gamma_p
        if gain > most and gamma_p > PIVOT * diag[outside[p]]:
            most = gain
            chosen = p
    return chosen, most


@separate(TABLEAU, int64)
def _descend(t, first):
    """Give each slot in turn its best column, starting at slot ``first``, until no slot gains.

    Exchanges are chosen by the quick formulas, even at near-singular supports. There, `swap` computes
    the energy carefully, and that energy decides whether the exchange was a gain. Returns False if the
    support became singular.
    """
    n_inside = t.counts[SIZE]
    n_outside = t.b.size - n_inside
    k = first
    idle = 0
    for _ in range(_ROUNDS * n_inside):
        freed = 1.0 / t.U[k, k]
        outside = t.outside[:n_outside]
        p, gain = _best_for_slot(t.W, t.gamma, t.r, t.diag, outside, k, freed, t.x[k])
        before = t.values[ENERGY]
        idle += 1
        if p >= 0 and 0.5 * (gain - t.x[k] * t.x[k] * freed) > RESOLUTION and swap(t, k, p):
            if before - t.values[ENERGY] > RESOLUTION:
                idle = 1
            if refresh_due(t) and not refresh(t):
                return False
        if idle >= n_inside:
            break
        k = k + 1 if k + 1 < n_inside else 0
    return True


@inner
def _kick(t, state):
    """Exchange random pairs; return False if the support became singular."""
    n_inside = t.counts[SIZE]
    for _ in range(min(KICKED, n_inside)):
        k = below(state, n_inside)
        if swap(t, k, below(state, t.b.size - n_inside)) and refresh_due(t) and not refresh(t):
            return False
    return True


@separate(TABLEAU, TABLEAU, int64, uint64[::1])
def _search(t, best, n_kicks, state):
    """Descend, then kick and descend ``n_kicks`` times; ``best`` ends with the best support."""
    copy_tableau(t, best)
    sound = _descend(t, np.int64(0))
    for kick in range(n_kicks + 1):
        if sound and t.values[ENERGY] < best.values[ENERGY] - RESOLUTION:
            copy_tableau(t, best)
        elif not sound or t.values[ENERGY] > best.values[ENERGY] + RESOLUTION:
            copy_tableau(best, t)
        if kick < n_kicks:
            sound = _kick(t, state) and _descend(t, below(state, t.counts[SIZE]))


@separate(TABLEAU, _MATRIX, _VECTOR, int64[::1], _VECTOR, _MATRIX, _VECTOR, allocates=True)
def _refit(t, atoms, y, support, x, L, residual):
    """Solve least squares on ``support`` into x; return ‖y − Ax‖², infinite for dependent columns.

    G_SS = L Lᵀ is factorised once and solved three times, each time for the residual so far.
    """
    n = support.size
    for i in range(n):
        row = t.gram[support[i]]
        for j in range(i):
            L[i, j] = (row[support[j]] - dot(L[i, :j], L[j])) * L[j, j]
        pivot = t.diag[support[i]] - dot(L[i, :i], L[i])
        if pivot <= 1e-14:
            return np.inf
        L[i, i] = 1.0 / math.sqrt(pivot)  # the diagonal holds reciprocals
    copy_row(y, residual)
    for i in range(n):
        x[i] = 0.0
    step = np.empty(n)
    for _ in range(3):
        for i in range(n):
            step[i] = (dot(atoms[support[i]], residual) - dot(L[i, :i], step)) * L[i, i]
        for i in range(n - 1, -1, -1):
            step[i] *= L[i, i]
            for j in range(i):
                step[j] -= L[i, j] * step[i]
        copy_row(y, residual)
        for i in range(n):
            x[i] += step[i]
            for m in range(residual.size):
                residual[m] -= x[i] * atoms[support[i], m]
    return dot(residual, residual)


@separate(TABLEAU, _MATRIX, _VECTOR, int64[::1], _VECTOR, _MATRIX, _VECTOR, boolean[::1])
def _pursue_plainly(t, atoms, y, support, x, L, residual, marks):
    """Run orthogonal matching pursuit with any column that is independent in floating point.

    This is for signals whose pursuit includes columns that the tableau refuses. Returns the number of
    columns chosen.
    """
    for j in range(marks.size):
        marks[j] = False
    copy_row(y, residual)
    for n in range(support.size):
        most = NOTHING
        chosen = -1
        for j in range(t.b.size):
            r = abs(dot(atoms[j], residual))
            if r > most and not marks[j]:
                most = r
                chosen = j
        if chosen < 0:
            return n
        support[n] = chosen
        marks[chosen] = True
        if _refit(t, atoms, y, support[: n + 1], x, L, residual) == np.inf:
            return n
    return support.size


@kernel
def encode(t, spare, atoms, norms, signals, n_nonzero, n_kicks, key, codes, errors):
    """Compute the codes of some signals.

    Parameters
    ----------
    t : Tableau
        A tableau of the unit-norm atoms, with the whole Gram matrix and room for ``n_nonzero``
        columns; its ``b`` is overwritten.
    spare : Tableau
        A second tableau with arrays of the same shapes.
    atoms, norms : float arrays
        The unit-norm atoms as rows, and their norms in the caller's units.
    signals : float array
        One signal per row.
    n_nonzero, n_kicks : int
        Number of atoms per signal, and number of kicks; with −1 kicks the codes are those of the
        pursuit, without a descent.
    key : uint64 array of 4
        The seed. The random stream of a signal depends on this key and on the signal alone.
    codes : float array
        One row per signal, filled with zeros by the caller; receives the coefficients.
    errors : float array
        Receives the part of ‖y‖² that each code leaves.
    """
    n_atoms, n_features = atoms.shape
    y, residual = np.empty(n_features), np.empty(n_features)
    L = np.empty((n_nonzero, n_nonzero))
    x, x_first = np.empty(n_nonzero), np.empty(n_nonzero)
    best, first = np.empty(n_nonzero, dtype=np.int64), np.empty(n_nonzero, dtype=np.int64)
    marks = np.empty(n_atoms, dtype=np.bool_)
    state = np.empty(4, dtype=np.uint64)
    for i in range(signals.shape[0]):
        largest, length, reach = _begin(t, atoms, signals[i], y)
        errors[i] = 0.0 if largest == 0.0 else 1.0
        if reach == 0.0:
            continue
        straight = _pursue(t, n_nonzero, -np.inf, marks)
        size = t.counts[SIZE]
        size_first = size
        copy_row(t.inside[:size], first)
        begun = t.values[ENERGY]
        lowest = begun
        if n_kicks >= 0 and 0 < size < n_atoms and 0.5 / reach + begun > RESOLUTION:
            _seed(state, key, y)
            _search(t, spare, n_kicks, state)
            lowest = spare.values[ENERGY]
            copy_row(spare.inside[:size], best)
        else:
            copy_row(first[:size], best)
        error = _refit(t, atoms, y, best[:size], x, L, residual)
        if not straight or lowest > begun - CLEAR:
            # the support of the pursuit may be better, by less than the tableau can resolve
            if not straight:
                size_first = _pursue_plainly(t, atoms, y, first, x_first, L, residual, marks)
            error_first = _refit(t, atoms, y, first[:size_first], x_first, L, residual)
            if error_first < error:
                error = error_first
                size = size_first
                copy_row(first[:size], best)
                copy_row(x_first[:size], x)
        errors[i] = error
        for m in range(size):
            codes[i, best[m]] = x[m] * length * (largest / norms[best[m]])


@kernel
def sizes_of_pursuit(t, atoms, signals, parts, n_nonzero, sizes):
    """Find out how many atoms orthogonal matching pursuit needs for each signal.

    Parameters
    ----------
    t, atoms, signals
        As for `encode`.
    parts : float array
        The part of ‖y‖² that each code may leave.
    n_nonzero : int
        The largest number of atoms.
    sizes : int array
        Receives the numbers, at most ``n_nonzero``, also where these do not suffice.
    """
    y = np.empty(atoms.shape[1])
    marks = np.empty(atoms.shape[0], dtype=np.bool_)
    for i in range(signals.shape[0]):
        sizes[i] = 0
        if parts[i] < 1.0:
            _, _, reach = _begin(t, atoms, signals[i], y)
            if reach > 0.0:
                _pursue(t, n_nonzero, 0.5 * (parts[i] - 1.0) / reach, marks)
                sizes[i] = t.counts[SIZE]
