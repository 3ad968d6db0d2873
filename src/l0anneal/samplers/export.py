"""Export of samples and trajectories to ArviZ, for its diagnostics and plots."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import xarray

__all__ = ["arviz_data", "columns_of", "names_of", "posterior", "stacked_by_chain"]

Integers = NDArray[np.integer]


def arviz_data(groups: Mapping[str, xarray.Dataset], seed: int) -> Any:
    """Return groups of draws in the form that the installed ArviZ works on.

    This is an ``xarray.DataTree`` for ArviZ 1, and an ``arviz.InferenceData`` for earlier versions.
    """
    try:
        with warnings.catch_warnings():
            # ArviZ 0.2x announces ArviZ 1 whenever it is imported
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError:
        raise ImportError("to_arviz needs ArviZ: pip install 'l0anneal[arviz]'") from None
    origin = {
        "inference_library": "l0anneal",
        "inference_library_version": version("l0anneal"),
        "seed": str(seed),
    }
    groups = {name: group.assign_attrs(origin) for name, group in groups.items()}
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.InferenceData(**groups)
    import xarray as xr

    return xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})


def columns_of(columns: ArrayLike | None, seen: Integers, n_columns: int) -> NDArray[np.int64]:
    """Return the columns to be exported: the given ones, or all that occur in any draw."""
    if columns is None:
        return np.unique(seen[seen >= 0]).astype(np.int64)
    chosen = np.atleast_1d(np.asarray(columns))
    if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        raise ValueError(f"columns must be a list of column indices; got {columns!r}")
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < n_columns:
        raise ValueError(f"columns must be between 0 and {n_columns - 1}; got {columns!r}")
    return chosen.astype(np.int64)


def names_of(columns: NDArray[np.int64], names: Sequence[str] | None) -> NDArray[Any]:
    """Return the names of columns, or their numbers if they have none."""
    return columns if names is None else np.array([names[j] for j in columns])


def inclusion(supports: Integers, columns: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return 1 where a support (along the last axis, padded with −1) has a column, and 0 elsewhere."""
    flat = supports.reshape(-1, supports.shape[-1])
    largest = int(max(flat.max(initial=-1), columns.max(initial=-1)))
    position = np.full(largest + 2, -1)  # the last entry is for the padding, −1
    position[columns] = np.arange(columns.size)
    at = position[flat]
    inside = np.zeros((len(flat), columns.size), dtype=np.int8)
    rows = np.nonzero(at >= 0)[0]
    inside[rows, at[at >= 0]] = 1
    return inside.reshape(*supports.shape[:-1], columns.size)


def posterior(
    supports: Integers,
    values: Mapping[str, NDArray[Any]],
    columns: NDArray[np.int64],
    names: Sequence[str] | None,
    dims: tuple[str, ...] = ("chain", "draw"),
    coords: Mapping[str, Any] | None = None,
) -> xarray.Dataset:
    """Return ``inclusion`` of the columns, and values with the same dimensions, as a dataset."""
    import xarray as xr

    variables = {name: (dims, array) for name, array in values.items()}
    shape = supports.shape[:2]
    return xr.Dataset(
        {"inclusion": ((*dims, "column"), inclusion(supports, columns)), **variables},
        coords={
            "chain": np.arange(shape[0]),
            "draw": np.arange(shape[1]),
            "column": names_of(columns, names),
            **(coords or {}),
        },
    )


def stacked_by_chain(chain: Integers) -> NDArray[np.int64]:
    """Return the indices of the draws of each chain (rows): the last ones, as many as all have."""
    each = [np.flatnonzero(chain == c) for c in np.unique(chain)]
    n = min(map(len, each))
    return np.stack([draws[len(draws) - n :] for draws in each])
