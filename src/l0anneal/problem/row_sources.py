"""Rows from where they are kept: Parquet files and Dask collections.

The packages that read them are optional, and are imported when they are needed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.checks import check_integer
from l0anneal.problem.row_blocks import Block, partial_sums, sum_rows
from l0anneal.problem.row_sums import Folds, PartialSums, RowSums

__all__ = ["Roles", "is_dask", "sum_dask", "sum_parquet"]


class Roles(NamedTuple):
    """Which column of a table is what."""

    target: str
    columns: tuple[str, ...]
    weights: str | None

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        source: str,
        target: str,
        columns: Sequence[str] | None,
        weights: str | None,
    ) -> Roles:
        """Find the columns in the names of a table; by default all others are chosen from.

        Examples
        --------
        >>> Roles.of(["a", "b", "price", "n"], "houses.parquet", "price", None, "n").columns
        ('a', 'b')
        """
        names = [str(name) for name in names]
        special = [target] if weights is None else [target, weights]
        if isinstance(columns, str):
            columns = [columns]
        chosen = [n for n in names if n not in special] if columns is None else list(columns)
        for name in [*special, *chosen]:
            if name not in names:
                close = difflib.get_close_matches(str(name), names, 3, 0.6)
                shown = " or ".join(map(repr, close or names[:6]))
                ask = "did you mean" if close else "its columns are"
                raise ValueError(f"{source} has no column {name!r}; {ask} {shown}")
        both = [name for name in chosen if name in special]
        if both:
            raise ValueError(
                f"columns has {both[0]!r}, which is the target or the weights: leave it out of columns"
            )
        if not chosen:
            raise ValueError(f"{source} has no columns to choose from besides the target")
        return cls(target, tuple(chosen), weights)

    @property
    def all(self) -> list[str]:
        """The names of all columns that are needed."""
        return [*self.columns, self.target, *([] if self.weights is None else [self.weights])]


# ---------------------------------------------------------------- Parquet


def sum_parquet(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    target: str,
    *,
    columns: Sequence[str] | None = None,
    weights: str | None = None,
    batch_size: int = 65536,
    folds: Folds | None = None,
) -> RowSums:
    """Add up the rows of a Parquet file, of a folder of them, or of a list of files."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ImportError(
            "reading Parquet files in batches needs pyarrow: pip install 'l0anneal[tables]'"
        ) from None
    batch_size = check_integer("batch_size", batch_size, 1)
    files = _parquet_files(path)
    with _opened(files[0]) as first:
        roles = Roles.of(first.schema_arrow.names, str(files[0]), target, columns, weights)
    return sum_rows(_batches(files, roles, batch_size), names=roles.columns, folds=folds)


def _parquet_files(path: Any) -> list[Path]:
    given = [path] if isinstance(path, (str, PathLike)) else list(path)
    files: list[Path] = []
    for one in map(Path, given):
        if one.is_dir():
            found = sorted(
                file
                for file in one.rglob("*.parquet")
                if not any(part.startswith((".", "_")) for part in file.relative_to(one).parts)
            )
            if not found:
                raise ValueError(
                    f"{one}: this folder has no .parquet files; at least one is needed"
                )
            files += found
        elif one.exists():
            files.append(one)
        else:
            raise FileNotFoundError(2, "no such file", str(one))
    if not files:
        raise ValueError("the list of Parquet files is empty; at least one is needed")
    return files


def _opened(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # with pre_buffer, all batches that have been read would stay in memory
        return pq.ParquetFile(file, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(_unreadable(file, error)) from error


def _unreadable(file: Path, error: Exception) -> str:
    return (
        f"{file}: not a readable Parquet file, perhaps because writing it was cut short ({error}): "
        "write it again"
    )


def _batches(files: list[Path], roles: Roles, batch_size: int) -> Iterator[Block]:
    """Yield the batches of all files, with the number of their first row in the file."""
    n_read = 0
    for file in files:
        try:
            with _opened(file) as opened:
                _check_schema(opened.schema_arrow, roles, file)
                batches = opened.iter_batches(batch_size=batch_size, columns=roles.all)
                first_row = 0
                while (batch := _next(batches, file)) is not None:
                    X = np.empty((len(roles.columns), batch.num_rows))  # as Parquet: by column
                    for values, name in zip(X, roles.columns):
                        values[:] = _numbers(batch.column(name))
                    y = _numbers(batch.column(roles.target))
                    w = None if roles.weights is None else _numbers(batch.column(roles.weights))
                    yield Block(X.T, y, w, str(file), first_row)
                    first_row += batch.num_rows
                    n_read += batch.num_rows
        except ValueError as error:
            error.add_note(f"{n_read} rows had been read before")
            raise


def _numbers(column: Any) -> NDArray[Any]:
    """Return the numbers of an Arrow array, with NaN for missing ones."""
    import pyarrow as pa

    if not (pa.types.is_floating(column.type) and column.null_count == 0):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _next(batches: Any, file: Path) -> Any:
    import pyarrow as pa

    try:
        return next(batches, None)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(_unreadable(file, error)) from error


def _check_schema(schema: Any, roles: Roles, file: Path) -> None:
    import pyarrow.types as types

    for name in roles.all:
        if name not in schema.names:
            raise ValueError(f"{file}: it has no column {name!r}: all files need the same columns")
        kind = schema.field(name).type
        if not any(
            is_kind(kind)
            for is_kind in (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        ):
            raise ValueError(
                f"{file}: column {name!r} has the type {kind}, but numbers are needed: give the "
                "columns of numbers as columns"
            )


# ---------------------------------------------------------------- Dask


def is_dask(data: Any) -> bool:
    """Return whether something is an array or a data frame of Dask."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed")


def sum_dask(
    data: Any,
    target: Any,
    *,
    columns: Sequence[str] | None = None,
    weights: Any = None,
    folds: Folds | None = None,
) -> RowSums:
    """Add up the rows of a Dask array or data frame: each partition by itself, then all of them.

    The target and the weights are names of columns of a data frame, or Dask collections with the same
    rows as the data.
    """
    try:
        import dask
    except ImportError:
        raise ImportError("from_dask needs Dask: pip install 'l0anneal[cluster]'") from None
    if not is_dask(data):
        raise ValueError(
            f"from_dask needs a Dask array or data frame; got {type(data).__name__}: use from_table, or "
            "from_blocks with an iterable of rows"
        )
    parts, roles = _partitions(data, target, columns, weights)
    summed, joined = dask.delayed(_sum_partition, pure=False), dask.delayed(_joined, pure=False)
    sums = [summed(part, roles, i, folds) for i, part in enumerate(parts)]
    while len(sums) > 1:  # neighbours first, so that few sums are held at a time
        pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
        sums = [joined(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    found: PartialSums = dask.compute(sums[0])[0]
    return found.complete()


def _partitions(data: Any, target: Any, columns: Any, weights: Any) -> tuple[list[Any], Any]:
    """Return the delayed parts (X, y, weights) of the data; with names, X has all three."""
    if hasattr(data, "npartitions") and isinstance(target, str):
        roles = Roles.of(list(data.columns), "the data frame", target, columns, weights)
        return [(frame, None, None) for frame in data[roles.all].to_delayed()], roles
    if columns is not None:
        raise ValueError(
            "columns needs a data frame, with the target by name; select the columns beforehand instead"
        )
    others = [target] if weights is None else [target, weights]
    if hasattr(data, "rechunk"):
        data = data.rechunk({1: -1}) if data.ndim == 2 else data
        others = [_alike(other, data) for other in others]
    blocks = [list(np.ravel(one.to_delayed())) for one in (data, *others)]
    if len({len(each) for each in blocks}) > 1:
        counts = " and ".join(str(len(each)) for each in blocks)
        raise ValueError(
            f"data, target and weights need the same partitions; they have {counts}: give columns of "
            "one data frame, or repartition them"
        )
    if weights is None:
        blocks.append([None] * len(blocks[0]))
    return list(zip(*blocks)), None


def _alike(other: Any, data: Any) -> Any:
    """Return a vector in the same chunks of rows as the data."""
    import dask.array

    if not is_dask(other):
        return dask.array.from_array(np.asarray(other), chunks=(data.chunks[0],))
    if hasattr(other, "rechunk") and other.chunks[0] != data.chunks[0]:
        if np.isnan([*other.chunks[0], *data.chunks[0]]).any():
            return other  # of unknown lengths, which are compared block by block
        return other.rechunk({0: data.chunks[0]})
    return other


def _sum_partition(
    part: tuple[Any, Any, Any], roles: Roles | None, number: int, folds: Folds | None
) -> PartialSums:
    X, y, weights = part
    if roles is not None:
        weights = None if roles.weights is None else X[roles.weights]
        X, y = X[list(roles.columns)], X[roles.target]
    if folds is not None:
        folds = Folds(folds.n_folds, (*folds.seed, number))
    return partial_sums([Block(X, y, weights, f"partition {number}")], folds=folds)


def _joined(one: PartialSums, other: PartialSums) -> PartialSums:
    return one.joined(other)
