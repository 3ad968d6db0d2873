"""Gram matrices of unit-norm columns: computed from A, checked, and solved.

Forming AᵀA squares the condition number, so the functions here are for the engine and for problems that
are given by AᵀA alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.arrays import BLOCK_BYTES, check_real, divide_columns

__all__ = [
    "Rounding",
    "check_gram",
    "check_possible",
    "check_scaled_gram",
    "gram_matrix",
    "seconds_of_gram_matrix",
    "solve_gram",
]

Floats = NDArray[np.float64]
QUICK = 1e9  # multiplications that take less than a second


def gram_matrix(A: Any, scale: Floats, pause: Callable[[], object] = lambda: None) -> Floats:
    """Return the Gram matrix of the columns of A divided by ``scale``.

    ``pause`` is called between pieces of work, and may raise an exception to stop the computation.
    """
    n = A.shape[1]
    with one_blas_thread():
        if scipy.sparse.issparse(A):
            scaled = divide_columns(A, scale)
            return np.ascontiguousarray((scaled.T @ scaled).toarray())
        G = np.zeros((n, n))
        rows = max(1, BLOCK_BYTES // (8 * n))
        for start in range(0, A.shape[0], rows):
            block = np.asarray(A[start : start + rows], dtype=np.float64) / scale
            G += block.T @ block
            pause()
        return G


def seconds_of_gram_matrix(A: Any, scale: Floats) -> float:
    """Estimate how long `gram_matrix` takes, from the product of a few columns."""
    m, n = A.shape
    if not scipy.sparse.issparse(A) and m * n**2 < QUICK:
        return 0.0
    sparse = scipy.sparse.issparse(A)
    few = slice(0, min(n, max(64, n // 16) if sparse else 512))
    rows = slice(0, m if sparse else 256)
    part, part_scale = A[rows, few], scale[few]
    shortest = math.inf
    for _ in range(2):  # the first product may have to wait for memory
        began = time.thread_time()  # on a busy machine, waiting would be multiplied too
        gram_matrix(part, part_scale)
        shortest = min(shortest, time.thread_time() - began)
    filling = 2e-8 * n**2  # new memory for the whole matrix can take longer than the products
    return shortest * (m / part.shape[0]) * (n / part.shape[1]) ** 2 + filling


@dataclass(frozen=True)
class Rounding:
    """The errors that Gram statistics may have, in units of the columns' and the signal's norms.

    Attributes
    ----------
    element : float
        Error of an element of AᵀA or Aᵀy.
    spectrum : float
        Spectral norm of the error of AᵀA.
    signal : float
        Norm of the error of Aᵀy.
    """

    element: float
    spectrum: float
    signal: float

    @classmethod
    def of(cls, *arrays: NDArray[Any]) -> Rounding:
        """Return the errors of statistics that were computed in the precision of these arrays.

        The first one is AᵀA. Numbers that are stored in double precision but have only the digits
        of single precision were computed in single precision.
        """
        with np.errstate(over="ignore"):
            single = any(
                a.dtype.kind == "f" and np.array_equal(a, a.astype(np.float32)) for a in arrays
            )
        n = len(arrays[0])
        if single:
            return cls(1e-3, 1e-3 + 1e-5 * n, 1e-5 * math.sqrt(n))
        return cls(1e-8, 1e-6 + 1e-8 * n, 1e-8 * math.sqrt(n))


def check_gram(gram: ArrayLike) -> Floats:
    """Return a given AᵀA as float64, or raise ValueError."""
    G = np.asarray(gram)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or G.shape[0] == 0:
        raise ValueError(f"gram must be a square matrix AᵀA; got shape {G.shape}")
    G = check_real(G, "gram")
    if np.min(np.diag(G)) < 0:
        raise ValueError("gram has a negative number on its diagonal; AᵀA cannot have one")
    return G


def check_scaled_gram(G: Floats, tolerance: float) -> Floats:
    """Return a Gram matrix of unit-norm columns made exactly symmetric, or raise ValueError."""
    if np.max(np.abs(G - G.T)) > tolerance:
        raise ValueError("gram must be symmetric (AᵀA); the one given is not")
    if np.max(np.abs(G)) > 1 + tolerance:
        raise ValueError("gram is not AᵀA of any A: some |gram_ij| exceeds √(gram_ii gram_jj)")
    return 0.5 * (G + G.T)


def check_possible(G: Floats, b: Floats, rounding: Rounding) -> None:
    """Raise ValueError if no unit-norm columns and unit-norm signal have the statistics G and b.

    Such statistics satisfy G ⪰ 0 and bᵀG⁺b ≤ 1, because bᵀG⁺b is the energy of the signal's projection
    on the columns. If ε bounds the rounding error of G, then G + εI is no smaller than the exact G, and

        bᵀ(G + εI)⁻¹b ≤ 1

    holds for exact b. The left-hand side is large if b explains too much, and also if a part of b lies
    outside the range of G. The cost is one Cholesky factorisation, N³/3 multiplications.
    """
    with one_blas_thread():
        try:
            factor = scipy.linalg.cholesky(
                G + rounding.spectrum * np.eye(len(G)), lower=True, check_finite=False
            )
        except np.linalg.LinAlgError:
            smallest = float(scipy.linalg.eigvalsh(G, subset_by_index=(0, 0))[0])
            raise ValueError(
                "gram must be AᵀA, which has no negative eigenvalue; the smallest one of the given "
                f"matrix, for columns of unit norm, is {smallest:.3g}: compute all elements from "
                "the same rows, without missing values"
            ) from None
        projection = scipy.linalg.solve_triangular(factor, b, lower=True, check_finite=False)
    explained = float(projection @ projection)
    if math.sqrt(explained) <= 1.0 + rounding.signal / math.sqrt(rounding.spectrum):
        return
    eigenvalues, vectors = scipy.linalg.eigh(G, check_finite=False)
    parts = (vectors.T @ b) ** 2 / (np.maximum(eigenvalues, 0.0) + rounding.spectrum)
    outside = float(np.sum(parts[eigenvalues <= rounding.spectrum]))
    if outside > 0.5 * explained:
        share = math.sqrt(outside * rounding.spectrum) / float(np.linalg.norm(b))
        raise ValueError(
            "correlation must be Aᵀy, which lies in the range of gram; a part of the given one, "
            f"{share:.2g} of its norm, lies outside: compute gram and correlation from the same rows"
        )
    raise ValueError(
        "gram, correlation and signal_energy must come from one (A, y); with the given ones, the "
        f"columns would explain {explained:.3g} times signal_energy: compute all three from the "
        "same rows, and signal_energy as y @ y, not half of it and not the variance"
    )


def solve_gram(G: Floats, b: Floats) -> Floats:
    """Solve G x = b by Cholesky with iterative refinement; raise ValueError if G is singular."""
    x = np.zeros(b.size)
    if b.size:
        with one_blas_thread():
            try:
                factor = scipy.linalg.cho_factor(G)
            except np.linalg.LinAlgError:
                raise ValueError(
                    "the columns of this support are linearly dependent; a support needs "
                    "independent columns: remove some of them"
                ) from None
            for _ in range(4):
                x = x + scipy.linalg.cho_solve(factor, b - G @ x)
    return x
