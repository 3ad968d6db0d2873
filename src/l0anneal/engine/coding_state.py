"""What the kernels of sparse coding work on: a dictionary, and the tableau of one signal.

The tableau is the one of `tableau`, laid out for speed: all loops over atoms run along contiguous
rows. W has one row for each slot, and its columns are all atoms, those of the support included: for
the atom in slot k, the column of W is the k-th unit vector, and r and γ are zero. The update of a swap
keeps these columns exact, so no loop has to tell inside from outside. The number of atoms is padded
with zero atoms to a multiple of `LANES`, so that no loop has a remainder.

During a pursuit, the same rows hold something else. Let q_0, q_1, ... be the chosen atoms made
orthonormal, one after the other. Row m of W is then q_mᵀA, and with L from G_SS = L Lᵀ, z = L⁻¹ b_S,

    r = b − Σ_m z_m q_mᵀA,    γ = diag(G) − Σ_m (q_mᵀA)²,    W = L⁻ᵀ (q_mᵀA)_m.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int64, typeof
from numpy.typing import NDArray

from l0anneal.engine.kernel import inlined, inner, separate
from l0anneal.engine.vectors import dot
from l0anneal.problem.admissibility import PIVOT

__all__ = [
    "CodeTableau",
    "CodingDictionary",
    "back_substitute",
    "coding_dictionary",
    "combine",
    "correlate",
    "empty_code_tableau",
    "factorise",
    "leave_residual",
    "refine",
    "refit",
]

LANES = 16
SMALL_PIVOT = 1e-4  # squared distances below this need one more step of refinement
# Indices into CodeTableau.counts and CodeTableau.values.
SIZE, MOVES = range(2)
ENERGY, FAULT = range(2)
# Rows of CodeTableau.long, of the length of the atoms, and of CodeTableau.short, of the slots.
GAIN, ENTERING, LEAVING, OPEN = range(4)
U_ROW, V_ROW, G_ROW, STEP = range(4)


class CodingDictionary(NamedTuple):
    """A dictionary of unit-norm atoms, padded with zero atoms."""

    atoms: NDArray[np.float64]  # one atom per row
    features: NDArray[np.float64]  # the transpose, one feature per row
    gram: NDArray[np.float64]
    diag: NDArray[np.float64]  # 1, or 0 for a zero atom
    floor: NDArray[np.float64]  # γ must be above this for an atom to enter


class CodeTableau(NamedTuple):
    """The arrays for one signal after another; see the docstrings of this module and of `tableau`."""

    b: NDArray[np.float64]
    r: NDArray[np.float64]
    gamma: NDArray[np.float64]
    W: NDArray[np.float64]
    U: NDArray[np.float64]
    L: NDArray[np.float64]  # its diagonal holds reciprocals
    inverse: NDArray[np.float64]  # of L; scratch
    x: NDArray[np.float64]
    z: NDArray[np.float64]
    inside: NDArray[np.int64]  # slot → atom
    slots: NDArray[np.int64]  # 0, 1, ...
    long: NDArray[np.float64]
    short: NDArray[np.float64]
    counts: NDArray[np.int64]
    values: NDArray[np.float64]


def coding_dictionary(atoms: NDArray[np.float64]) -> CodingDictionary:
    """Prepare a dictionary of unit-norm or zero atoms, given as rows."""
    n_atoms, n_features = atoms.shape
    padded = np.zeros((-(-n_atoms // LANES) * LANES, n_features))
    padded[:n_atoms] = atoms
    diag = np.any(padded != 0, axis=1).astype(np.float64)
    gram = np.ascontiguousarray(padded @ padded.T)
    np.fill_diagonal(gram, diag)
    floor = np.where(diag > 0, PIVOT * diag, np.inf)
    return CodingDictionary(padded, np.ascontiguousarray(padded.T), gram, diag, floor)


def empty_code_tableau(dictionary: CodingDictionary, capacity: int) -> CodeTableau:
    """Return a tableau with room for ``capacity`` atoms."""
    n = dictionary.diag.size
    return CodeTableau(
        b=np.zeros(n),
        r=np.zeros(n),
        gamma=np.zeros(n),
        W=np.zeros((capacity, n)),
        U=np.zeros((capacity, capacity)),
        L=np.zeros((capacity, capacity)),
        inverse=np.zeros((capacity, capacity)),
        x=np.zeros(capacity),
        z=np.zeros(capacity),
        inside=np.zeros(capacity, dtype=np.int64),
        slots=np.arange(capacity),
        long=np.zeros((4, n)),
        short=np.zeros((4, capacity)),
        counts=np.zeros(2, dtype=np.int64),
        values=np.zeros(2),
    )


# the types of all dictionaries and tableaus, and of vectors, for functions that are compiled separately
DICTIONARY = typeof(coding_dictionary(np.ones((1, 1))))
CODE_TABLEAU = typeof(empty_code_tableau(coding_dictionary(np.ones((1, 1))), 1))
NUMBERS, COLUMNS = float64[::1], int64[::1]


# ---------------------------------------------------------------- loops along contiguous rows


@inner
def correlate(d, y, b):
    """Write the products of all atoms with a signal to b."""
    n_features = y.size
    for p in range(b.size):
        b[p] = 0.0
    m = 0
    while m + 8 <= n_features:
        d0, d1, d2, d3 = d.features[m], d.features[m + 1], d.features[m + 2], d.features[m + 3]
        d4, d5, d6, d7 = d.features[m + 4], d.features[m + 5], d.features[m + 6], d.features[m + 7]
        y0, y1, y2, y3 = y[m], y[m + 1], y[m + 2], y[m + 3]
        y4, y5, y6, y7 = y[m + 4], y[m + 5], y[m + 6], y[m + 7]
        for p in range(b.size):
            first = (y0 * d0[p] + y1 * d1[p]) + (y2 * d2[p] + y3 * d3[p])
            second = (y4 * d4[p] + y5 * d5[p]) + (y6 * d6[p] + y7 * d7[p])
            b[p] += first + second
        m += 8
    while m < n_features:
        d0, y0 = d.features[m], y[m]
        for p in range(b.size):
            b[p] += y0 * d0[p]
        m += 1


@inner
def combine(target, rows, at, factors, start, stop):
    """Subtract from ``target`` the rows at[m], m = start, ..., stop − 1, each times factors[m]."""
    m = start
    while m + 4 <= stop:
        a0, a1, a2, a3 = rows[at[m]], rows[at[m + 1]], rows[at[m + 2]], rows[at[m + 3]]
        f0, f1, f2, f3 = factors[m], factors[m + 1], factors[m + 2], factors[m + 3]
        for p in range(target.size):
            target[p] -= (f0 * a0[p] + f1 * a1[p]) + (f2 * a2[p] + f3 * a3[p])
        m += 4
    while m < stop:
        a0, f0 = rows[at[m]], factors[m]
        for p in range(target.size):
            target[p] -= f0 * a0[p]
        m += 1


# ---------------------------------------------------------------- least squares on a support


@inner
def factorise(d, support, L):
    """Compute L with G_SS = L Lᵀ; return its smallest squared pivot, 0 if the atoms are dependent."""
    least = 1.0
    for i in range(support.size):
        row = d.gram[support[i]]
        for j in range(i):
            L[i, j] = (row[support[j]] - dot(L[i, :j], L[j])) * L[j, j]
        pivot = d.diag[support[i]] - dot(L[i, :i], L[i])
        if pivot <= 1e-14:
            return 0.0
        least = min(least, pivot)
        L[i, i] = 1.0 / math.sqrt(pivot)
    return least


@inlined
def back_substitute(L, x, n):
    """Solve Lᵀ x = z, where x holds z on entry."""
    for i in range(n - 1, -1, -1):
        x[i] *= L[i, i]
        row, x_i = L[i], x[i]
        for j in range(i):
            x[j] -= row[j] * x_i


@inlined
def leave_residual(d, y, support, x, residual):
    """Write y − A_S x to ``residual``."""
    for m in range(y.size):
        residual[m] = y[m]
    for i in range(support.size):
        atom, x_i = d.atoms[support[i]], x[i]
        for m in range(y.size):
            residual[m] -= x_i * atom[m]


@inner
def refine(d, y, support, L, x, step, residual, n_steps):
    """Add ``n_steps`` least-squares solutions for the residual so far to x; return ‖y − A_S x‖²."""
    n = support.size
    for _ in range(n_steps):
        for i in range(n):
            step[i] = (dot(d.atoms[support[i]], residual) - dot(L[i, :i], step)) * L[i, i]
        back_substitute(L, step, n)
        for i in range(n):
            x[i] += step[i]
        leave_residual(d, y, support, x, residual)
    return dot(residual, residual)


@separate(DICTIONARY, CODE_TABLEAU, NUMBERS, COLUMNS, NUMBERS, NUMBERS)
def refit(d, t, y, support, x, residual):
    """Solve least squares on ``support`` into x; return ‖y − A_S x‖², infinite for dependent atoms.

    G_SS is factorised once and solved two or three times, each time for the residual so far, after which
    the coefficients have the accuracy of QR.
    """
    least = factorise(d, support, t.L)
    if least == 0.0:
        return np.inf
    for i in range(support.size):
        x[i] = 0.0
    for m in range(y.size):
        residual[m] = y[m]
    n_steps = 2 if least > SMALL_PIVOT else 3
    return refine(d, y, support, t.L, x, t.short[STEP], residual, n_steps)
