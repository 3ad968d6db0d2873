"""Checks of what `sparse_encode` is given, and signals that are read in batches."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

__all__ = ["Signals", "check_matrix", "check_out", "check_rank", "release_pages"]

BATCH = 8192  # signals that are read, encoded and stored at a time
BATCH_NUMBERS = 2**22  # largest size of a batch of signals or of their codes
Floats = NDArray[np.float64]


def check_matrix(values: ArrayLike, name: str, shape: str, least_rows: int) -> Floats:
    """Return a matrix of finite numbers in double precision, or raise ValueError."""
    M = values if _has_shape(values) else np.asarray(values)
    _check_kind(M, name, shape, least_rows)
    M = np.ascontiguousarray(np.asarray(M), dtype=np.float64)
    if not np.isfinite(M).all():
        raise ValueError(f"{name} contains NaN or infinity; it needs finite numbers")
    return M


def _has_shape(values: Any) -> bool:
    needed = "shape", "dtype", "ndim", "__getitem__"
    return scipy.sparse.issparse(values) or all(hasattr(values, name) for name in needed)


def _check_kind(M: Any, name: str, shape: str, least_rows: int) -> None:
    if scipy.sparse.issparse(M):
        raise ValueError(f"{name} must be a dense array; got a sparse matrix: give its toarray()")
    if len(M.shape) != 2:
        raise ValueError(f"{name} must be a matrix of shape {shape}; got shape {M.shape}")
    if np.dtype(M.dtype).kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got dtype {M.dtype}")
    if M.shape[0] < least_rows or M.shape[1] < 1:
        raise ValueError(f"{name} of shape {M.shape} is empty; the shape is {shape}")


def check_rank(k: int, atoms: Floats) -> None:
    """Raise ValueError if k exceeds the rank of the dictionary."""
    n_atoms, n_features = atoms.shape
    few = atoms[: 2 * k + 10]
    if len(few) < n_atoms and np.linalg.matrix_rank(few) >= k:
        return  # without the singular values of a large dictionary
    rank = int(np.linalg.matrix_rank(atoms))
    if k > rank:
        raise ValueError(
            f"n_nonzero_coefs = {k} exceeds the rank of the dictionary ({n_atoms} atoms of "
            f"{n_features} features), which is {rank}: no {k} atoms are linearly independent"
        )


def check_out(out: Any, shape: tuple[int, int], X: Any) -> None:
    """Raise ValueError if codes of this shape cannot be written to ``out``."""
    needed = f"an array of shape {shape} and dtype float64 or float32"
    if not (_has_shape(out) and hasattr(out, "__setitem__")):
        raise ValueError(f"out must be {needed}; got {type(out).__name__}")
    if tuple(out.shape) != shape or np.dtype(out.dtype) not in (np.float64, np.float32):
        raise ValueError(
            f"out must be {needed}; got shape {tuple(out.shape)} and dtype {out.dtype}"
        )
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError(f"out must be {needed} that can be written; this one is read-only")
        if isinstance(X, np.ndarray) and np.may_share_memory(out, X):
            raise ValueError("out shares memory with the signals: give it an array of its own")


class Signals:
    """The rows of a matrix, of which memory maps and other arrays on disk are read in batches.

    Parameters
    ----------
    X : array of shape (n_signals, n_features)
        An array, or anything with a shape, a dtype and slices of rows, such as a memory map or a dataset
        of an HDF5 file. What is not in memory is checked batch by batch.
    n_features : int
        Number of features that the signals have to have.
    """

    def __init__(self, X: Any, n_features: int) -> None:
        shape = "(n_signals, n_features)"
        self.on_disk = isinstance(X, np.memmap) or (
            not isinstance(X, np.ndarray) and _has_shape(X) and not hasattr(X, "__dataframe__")
        )
        if self.on_disk:
            _check_kind(X, "signals", shape, 0)
        else:
            X = check_matrix(X, "signals", shape, 0)
        self.source = X
        self.n_features = X.shape[1]
        if self.n_features != n_features:
            raise ValueError(
                f"signals have {self.n_features} features, but the atoms of the dictionary have "
                f"{n_features}"
            )

    def __len__(self) -> int:
        return int(self.source.shape[0])

    def batches(self, n_atoms: int) -> list[slice]:
        """Return the rows of each batch; these depend on shapes alone."""
        size = max(1, min(BATCH, BATCH_NUMBERS // max(self.n_features, n_atoms)))
        return [slice(i, min(len(self), i + size)) for i in range(0, len(self), size)]

    def read(self, rows: slice) -> Floats:
        """Return some rows; raise ValueError if one of them has a number that is not finite."""
        if not self.on_disk:
            return np.asarray(self.source[rows])
        Y: Floats = np.array(self.source[rows], dtype=np.float64, order="C")
        if not np.isfinite(Y).all():
            row = rows.start + int(np.flatnonzero(~np.isfinite(Y).all(axis=1))[0])
            raise ValueError(
                f"signals contains NaN or infinity in row {row}; it needs finite numbers"
            )
        return Y


def release_pages(array: Any, rows: slice) -> None:
    """Let the system take back the memory of rows of a memory map that were read or written.

    Their content stays in the file. Without this, the pages of the file would count as memory of the
    process for as long as the system has enough of it.
    """
    source = getattr(array, "_mmap", None)
    advice = getattr(mmap, "MADV_DONTNEED", None)
    if source is None or advice is None or array.mode == "c" or not array.flags.c_contiguous:
        return  # of a copy-on-write map, the changes would be lost
    base = np.frombuffer(source, dtype=np.uint8).ctypes.data
    part = array[rows]
    start = -(-(part.ctypes.data - base) // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (part.ctypes.data - base + part.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if stop > start:
        source.madvise(advice, start, stop - start)
