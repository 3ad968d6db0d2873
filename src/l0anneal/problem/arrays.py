"""Validation and norms of the arrays that define a problem."""

import math
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BLOCK_BYTES",
    "LARGE_BYTES",
    "check_dictionary",
    "check_names",
    "check_real",
    "check_vector",
    "column_norms",
    "divide_columns",
    "is_chunked",
    "is_large",
    "open_array",
]

BLOCK_BYTES = 32 * 2**20  # dense and memory-mapped arrays are read in blocks of this size
LARGE_BYTES = 512 * 2**20  # dense arrays that would exceed this in float64 stay as they are stored

Floats = NDArray[np.float64]


def check_dictionary(A: Any) -> Any:
    """Return A as a dense array, or as a float64 CSC array if it is sparse; raise ValueError if unfit.

    Dense input keeps its type and is not copied. A path is opened, and a chunked array stays one if it
    is large; whether the numbers of a large A are finite is left to `StoredColumns`.
    """
    if isinstance(A, (str, PathLike)):
        A = open_array(A)
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
        if not isinstance(A, np.ndarray) and not (is_chunked(A) and is_large(A)):
            A = np.asarray(A[...] if is_chunked(A) else A)
        values = A
        _check_matrix(A)
    if min(A.shape) < 1:
        raise ValueError(f"A needs at least one row and one column; got shape {A.shape}")
    if not is_large(A) and not _all_finite(values):
        raise ValueError(_not_finite("A"))
    return A


def is_large(A: Any) -> bool:
    """Whether A is a dense matrix of which no copy in float64 is to be made."""
    shape = getattr(A, "shape", ())
    return not scipy.sparse.issparse(A) and len(shape) == 2 and 8 * math.prod(shape) > LARGE_BYTES


def is_chunked(A: Any) -> bool:
    """Whether A is read from elsewhere by slices, such as an array of Zarr or a data set of h5py."""
    return hasattr(A, "chunks") and hasattr(A, "dtype") and not isinstance(A, np.ndarray)


def open_array(path: str | PathLike[str]) -> Any:
    """Return the array in a .npy file, as a memory map, or in a .zarr folder, without reading it."""
    name = fspath(path)
    if name.endswith(".npy"):
        return np.load(name, mmap_mode="r")
    if not name.endswith(".zarr"):
        raise ValueError(
            f"A must be an array, or the path of a .npy file or a .zarr folder; got {name!r}: use "
            "SparseProblem.from_table for a table, and SparseProblem.from_parquet for many rows"
        )
    try:
        import zarr
    except ImportError:
        raise ImportError(
            f"reading {name} needs Zarr, which is not installed: pip install 'l0anneal[zarr]'"
        ) from None
    return zarr.open_array(name, mode="r")


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
