"""Put the results of a sweep into one dataset, with the grid as its dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.tasks.store import Record
from l0anneal.tasks.task import canonical_json

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["coordinate", "dataset_of"]

Index = tuple[int, ...]


def dataset_of(
    records: Sequence[tuple[Index, Record]],
    coords: Mapping[str, NDArray[Any]],
    dims: Mapping[str, Sequence[str]],
) -> xr.Dataset:
    """Return the results as a dataset.

    Parameters
    ----------
    records : sequence of (index, Record)
        Finished results, and the place of each in the grid.
    coords : mapping of str to ndarray
        The dimensions of the grid with their values, in the order of the index. Values without a
        dimension belong to the whole sweep.
    dims : mapping of str to sequence of str
        Names for the dimensions of results that are arrays.
    """
    import xarray as xr

    names = [name for name, values in coords.items() if values.ndim]
    shape = tuple(coords[name].size for name in names)
    found: dict[str, list[tuple[Index, NDArray[Any]]]] = {}
    seconds = np.full(shape, np.nan)
    for index, record in records:
        seconds[index] = record.seconds
        for name, values in record.arrays.items():
            found.setdefault(name, []).append((index, values))
    if unknown := sorted(set(dims) - set(found)):
        raise ValueError(
            f"dims names {', '.join(unknown)}, which is no result; the results are {', '.join(found)}"
        )
    data = xr.Dataset(coords={name: _variable(name, values) for name, values in coords.items()})
    for name, placed in found.items():
        extra = _extra_dims(name, {values.ndim for _, values in placed}, dims)
        data[name] = ([*names, *extra], _table(shape, placed))
    data["seconds"] = (names, seconds, {"units": "processor seconds of the solver"})
    return data


def coordinate(values: Any) -> NDArray[Any]:
    """Return values of a parameter as a coordinate: numbers and texts as they are, others as JSON.

    Examples
    --------
    >>> coordinate([1, 2.5]).tolist(), coordinate([{"tau": 1}, None]).tolist()
    ([1.0, 2.5], ['{"tau":1}', 'null'])
    """
    array = np.asarray(values) if _is_plain(values) else None
    if array is not None and array.dtype.kind in "biufU":
        return array
    if isinstance(values, list):
        return np.array([v if isinstance(v, str) else canonical_json(v) for v in values])
    return np.array(canonical_json(values))


def _is_plain(values: Any) -> bool:
    """Whether values are of one kind: numbers, or texts, or truth values."""
    items = values if isinstance(values, list) else [values]
    kinds = {np.asarray(v).dtype.kind if np.isscalar(v) else "O" for v in items}
    return kinds <= set("iuf") or kinds <= {"U"} or kinds <= {"b"}


def _variable(name: str, values: NDArray[Any]) -> Any:
    return (name, values) if values.ndim else values.item()


def _extra_dims(name: str, ndims: set[int], dims: Mapping[str, Sequence[str]]) -> list[str]:
    if len(ndims) > 1:
        raise ValueError(
            f"{name} has {' or '.join(map(str, sorted(ndims)))} dimensions, depending on the task; "
            "return arrays with the same number of dimensions"
        )
    (n,) = ndims
    extra = list(dims.get(name, [f"{name}_{axis}" for axis in range(n)]))
    if len(extra) != n:
        raise ValueError(f"{name} has {n} dimensions; dims has {len(extra)} names for them")
    return extra


def _table(shape: Index, placed: Iterable[tuple[Index, NDArray[Any]]]) -> NDArray[Any]:
    """Put arrays in their places; NaN fills the places of missing tasks and the ends of short arrays."""
    placed = list(placed)
    longest = tuple(max(sizes) for sizes in zip(*(values.shape for _, values in placed)))
    kind = np.result_type(np.float64, *{values.dtype for _, values in placed})
    table = np.full((*shape, *longest), np.nan, dtype=kind)
    for index, values in placed:
        part: tuple[int | slice, ...] = (*index, *(slice(n) for n in values.shape))
        table[part] = values
    return table
