"""Gram matrices of unit-norm columns: computed from A, checked, and solved.

Forming AᵀA squares the condition number, so the functions here are for the engine and for problems that
are given by AᵀA alone.
"""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.arrays import BLOCK_BYTES, check_real, divide_columns

__all__ = ["check_gram", "check_scaled_gram", "gram_matrix", "solve_gram"]

Floats = NDArray[np.float64]


def gram_matrix(A: Any, scale: Floats) -> Floats:
    """Return the Gram matrix of the columns of A divided by ``scale``."""
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
        return G


def check_gram(gram: ArrayLike) -> tuple[Floats, float]:
    """Return a given AᵀA as float64, and the relative error that its type allows."""
    G = np.asarray(gram)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or G.shape[0] == 0:
        raise ValueError(f"gram must be a square matrix AᵀA; got shape {G.shape}")
    tolerance = 1e-3 if G.dtype.itemsize < 8 and G.dtype.kind == "f" else 1e-8
    G = check_real(G, "gram")
    if np.min(np.diag(G)) < 0:
        raise ValueError("gram has a negative number on its diagonal; AᵀA cannot have one")
    return G, tolerance


def check_scaled_gram(G: Floats, tolerance: float) -> Floats:
    """Return a Gram matrix of unit-norm columns made exactly symmetric, or raise ValueError."""
    if np.max(np.abs(G - G.T)) > tolerance:
        raise ValueError("gram must be symmetric (AᵀA); the one given is not")
    if np.max(np.abs(G)) > 1 + tolerance:
        raise ValueError("gram is not AᵀA of any A: some |gram_ij| exceeds √(gram_ii gram_jj)")
    return 0.5 * (G + G.T)


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
