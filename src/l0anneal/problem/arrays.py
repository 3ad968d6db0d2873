"""Validation and norms of the arrays that define a problem."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BLOCK_BYTES",
    "check_dictionary",
    "check_names",
    "check_real",
    "check_vector",
    "column_norms",
    "divide_columns",
]

BLOCK_BYTES = 32 * 2**20  # dense and memory-mapped arrays are read in blocks of this size

Floats = NDArray[np.float64]


def check_dictionary(A: Any) -> Any:
    """Return A as a dense array, or as a float64 CSC array if it is sparse; raise ValueError if unfit.

    Dense input keeps its type and is not copied.
    """
    if scipy.sparse.issparse(A):
        _check_matrix(A)
        A = scipy.sparse.csc_array(A).astype(np.float64, copy=False)
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        values = A.data
    else:
        if isinstance(A, np.ma.MaskedArray):
            raise ValueError(
                "A is a masked array; A needs all values: fill or drop the masked ones"
            )
        A = values = A if isinstance(A, np.ndarray) else np.asarray(A)
        _check_matrix(A)
    if min(A.shape) < 1:
        raise ValueError(f"A needs at least one row and one column; got shape {A.shape}")
    if not _all_finite(values):
        raise ValueError(_not_finite("A"))
    return A


def check_names(names: Sequence[str], n_columns: int) -> tuple[str, ...]:
    """Return names of all columns, or raise ValueError if their number is wrong."""
    if len(names) != n_columns:
        raise ValueError(
            f"feature_names has {len(names)} names, but A has {n_columns} columns; give one for each"
        )
    return tuple(str(name) for name in names)


def check_vector(values: ArrayLike, name: str, length: int, why: str) -> Floats:
    """Return a vector of finite float64 of the given length, or raise ValueError."""
    v = np.asarray(values)
    if v.ndim != 1:
        raise ValueError(f"{name} must be one vector of length {length}; got shape {v.shape}")
    if v.size != length:
        raise ValueError(f"{name} has length {v.size}, but {why}; give {name} that length")
    return check_real(v, name)


def check_real(values: NDArray[Any], name: str) -> Floats:
    """Return an array as finite float64, or raise ValueError."""
    _check_dtype(values, name)
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(_not_finite(name))
    return values


def column_norms(block: Floats) -> Floats:
    """Return the norms of columns, computed so that no square overflows or underflows."""
    largest = np.max(np.abs(block), axis=0)
    safe = np.where(largest > 0, largest, 1.0)
    return largest * np.sqrt(np.sum((block / safe) ** 2, axis=0))


def divide_columns(A: Any, divisors: Floats) -> Any:
    """Divide each column of a CSC matrix by a number, which may be as small as a float can be."""
    A = A.copy()
    A.data = A.data / np.repeat(divisors, np.diff(A.indptr))
    return A


def _check_matrix(A: Any) -> None:
    if A.ndim != 2:
        raise ValueError(f"A must be a matrix of shape (M, N); got {A.ndim} dimension(s)")
    _check_dtype(A, "A")


def _check_dtype(values: Any, name: str) -> None:
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got dtype {values.dtype}")


def _not_finite(name: str) -> str:
    return f"{name} contains NaN or infinity; it needs finite numbers: drop or impute the others"


def _all_finite(values: NDArray[Any]) -> bool:
    """Whether all values are finite, tested in blocks so that a memory map is never held whole."""
    if values.dtype.kind != "f":
        return True
    width = max(1, BLOCK_BYTES // (8 * max(1, math.prod(values.shape[1:]))))
    return all(
        bool(np.isfinite(values[start : start + width]).all())
        for start in range(0, values.shape[0], width)
    )
