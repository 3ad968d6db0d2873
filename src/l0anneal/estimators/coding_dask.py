"""Codes of Dask arrays: one lazy block of codes for each block of signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

__all__ = ["encode_dask"]

INSTEAD = {
    "out": "store the lazy result, for example with its to_zarr or dask.array.store",
    "checkpoint": "store the lazy result, for example with its to_zarr or dask.array.store",
    "time_limit": "blocks are encoded when the result is computed, each by itself: leave it out",
    "return_finished": "without a time limit all codes are finished: leave it out",
}


def encode_dask(
    X: Any,
    D: NDArray[np.float64],
    encode: Callable[..., Any],
    options: dict[str, Any],
    refused: dict[str, Any],
) -> Any:
    """Return the lazy codes of a Dask array.

    Parameters
    ----------
    X : dask.array.Array
        One signal per row, in chunks of known sizes.
    D : ndarray of shape (n_atoms, n_features)
        The dictionary.
    encode : callable
        `sparse_encode`, which encodes a block.
    options : dict
        Its keyword arguments; the seed is an integer.
    refused : dict
        Arguments that have no meaning here; an error is raised if one of them is given.
    """
    for name, given in refused.items():
        if given is not None and given is not False:
            raise ValueError(f"{name} does not go with a Dask array: {INSTEAD[name]}")
    if not (hasattr(X, "map_blocks") and hasattr(X, "rechunk")):
        raise ValueError(
            f"signals must be an array; got {type(X).__module__}.{type(X).__name__}: give its "
            "to_dask_array(lengths=True)"
        )
    if X.ndim != 2:
        raise ValueError(
            f"signals must be a matrix of shape (n_signals, n_features); got shape {X.shape}"
        )
    if np.isnan([size for sizes in X.chunks for size in sizes]).any():
        raise ValueError(
            "signals are a Dask array with chunks of unknown sizes; known ones are needed: call its "
            "compute_chunk_sizes() first"
        )
    if X.shape[1] != D.shape[1]:
        raise ValueError(
            f"signals have {X.shape[1]} features, but the atoms of the dictionary have {D.shape[1]}"
        )
    X = X.rechunk({1: -1})
    sparse = options["sparse_output"]
    return X.map_blocks(
        encode,
        dictionary=D,
        **options,
        dtype=np.float64,
        chunks=(X.chunks[0], (D.shape[0],)),
        meta=scipy.sparse.csr_array((0, 0)) if sparse else np.empty((0, 0)),
    )
