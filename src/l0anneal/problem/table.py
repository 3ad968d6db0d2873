"""A table of named columns: from a file, a data frame, or a mapping of names to columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from l0anneal._util.advice import option
from l0anneal.problem.files import FORMATS as ARRAYS
from l0anneal.problem.files import read_matrix
from l0anneal.problem.table_cells import Column, as_column, is_text, n_missing
from l0anneal.problem.table_text import read_text_table

__all__ = ["FORMATS", "Table", "as_table", "read_table"]

_TEXT = (".csv", ".tsv", ".tab", ".txt")
_FRAMES = {
    ".parquet": ("read_parquet", "pandas and pyarrow"),
    ".feather": ("read_feather", "pandas and pyarrow"),
    ".xlsx": ("read_excel", "pandas and openpyxl"),
}
FORMATS = (".csv", ".tsv", ".txt", *_FRAMES)
_INDEX_NAMES = ("index", "level_0", "rownames", "row_names", "id")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns with names.

    Attributes
    ----------
    names : tuple of str
        The names, all different. A column without a name is called by its position.
    columns : tuple of ndarray
        Numbers, with NaN for missing ones, or words, with None for missing ones.
    source : str
        What to call the table in a message.
    notes : tuple of str
        What was done to the table while it was read.
    repeated : frozenset of str
        Names that several columns had.
    index : str or None
        The column that is a saved index, which counts or labels the rows.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    source: str = "the table"
    notes: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()
    index: str | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0])

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    def find(self, column: str | int, what: str) -> str:
        """Return the name of a column that is given by name or by position, counted from 0.

        Parameters
        ----------
        column : str or int
            A name or, if there is no such name, a position; −1 is the last column.
        what : str
            The argument that gives it, for the message if there is no such column.
        """
        name = str(column)
        if name in self.repeated and not isinstance(column, int):
            first = self.names.index(name)
            raise ValueError(
                f"{self.source} has several columns named {name!r}, and {what} needs one: give its "
                f"position, such as {option(what, str(first))}, or rename the others"
            )
        if name in self.names:
            return name
        if name.lstrip("+-").isdigit():
            n = len(self.names)
            if not -n <= int(name) < n:
                raise ValueError(
                    f"{self.source} has {n} columns, numbered from 0 to {n - 1}; {what} is {name}"
                )
            return self.names[int(name)]
        close = difflib.get_close_matches(name, self.names, 3, 0.6)
        known = close or [repr(other) for other in self.names[:6]]
        more = ", …" if not close and len(self.names) > 6 else ""
        ask = "did you mean" if close else "its columns are"
        shown = " or ".join(map(repr, close)) + "?" if close else ", ".join(known) + more
        raise ValueError(f"{self.source} has no column {name!r} for {what}; {ask} {shown}")


def as_table(frame: Any, *, header: bool | None = None) -> Table:
    """Return a table from a path, a data frame, a mapping of names to columns, or a table.

    Parameters
    ----------
    frame : path, DataFrame, mapping or Table
        The table.
    header : bool, optional
        Whether the first row of a text file has the names; by default this is found out.

    Examples
    --------
    >>> table = as_table({"age": [30, 41, None], "city": ["Rome", "Oslo", "Rome"]})
    >>> table.names, table["age"]
    (('age', 'city'), array([30., 41., nan]))
    """
    if isinstance(frame, Table):
        return frame
    if isinstance(frame, (str, PathLike)):
        return read_table(Path(frame), header)
    if isinstance(frame, Mapping):
        return _table(list(map(str, frame)), [as_column(values) for values in frame.values()])
    if hasattr(frame, "iloc"):  # pandas, where names can repeat
        columns = [as_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
        return _table([str(name) for name in frame.columns], columns)
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        names = list(frame.columns)
        return _table([str(name) for name in names], [as_column(frame[name]) for name in names])
    raise ValueError(
        "a table must be a DataFrame, a mapping of names to columns, or a path; "
        f"got {type(frame).__name__}: for an array without names, use SparseProblem(A, y)"
    )


def read_table(path: Path, header: bool | None = None) -> Table:
    """Read a table from a file: text (also compressed by gzip), Parquet, Feather or Excel."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = next((s for s in reversed(suffixes) if s != ".gz"), "")
    if not path.exists():
        raise FileNotFoundError(2, "no such file", str(path))
    if path.is_dir():
        raise ValueError(f"{path}: it is a directory; a file is needed")
    if suffix in _TEXT:
        text = read_text_table(path, header)
        return _table(text.names, text.columns, path.name, text.notes)
    if suffix in _FRAMES:
        return _read_frame(path, suffix)
    if suffix in ARRAYS:
        A = read_matrix(path)
        A = np.asarray(A.toarray() if hasattr(A, "toarray") else A)
        if A.ndim != 2 or A.dtype.kind not in "fiub":
            raise ValueError(f"{path}: a matrix of numbers is needed; got shape {A.shape}")
        return _table(None, [as_column(column) for column in A.T], path.name)
    raise ValueError(
        f"{path}: unknown format {suffix!r}; save the table as one of {', '.join(FORMATS)}"
    )


def _read_frame(path: Path, suffix: str) -> Table:
    reader, needed = _FRAMES[suffix]
    install = f"{path}: to read {suffix}, install {needed}: pip install 'l0anneal[tables]'"
    try:
        import pandas
    except ImportError:
        raise ValueError(f"{install}, or save the table as .csv") from None
    try:
        frame = getattr(pandas, reader)(path)
    except ImportError:
        raise ValueError(f"{install}, or save the table as .csv") from None
    except Exception as error:  # each reader fails on a damaged file in its own way
        raise ValueError(f"{path}: not a readable {suffix} file ({error})") from error
    if frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    columns = [as_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
    return _table([str(name) for name in frame.columns], columns, path.name)


def _table(
    names: Any, columns: Any, source: str = "the table", notes: tuple[str, ...] = ()
) -> Table:
    """Return a table with names that differ, and its saved index."""
    if not len(columns):
        raise ValueError(f"{source}: it has no columns; a table needs a target and other columns")
    lengths = [len(column) for column in columns]
    if min(lengths) == 0:
        raise ValueError(f"{source}: it has no rows; a table needs rows of values")
    if min(lengths) != max(lengths):
        j = lengths.index(min(lengths))
        raise ValueError(
            f"{source}: all columns need the same length; column {j} has {min(lengths)} values and "
            f"another one has {max(lengths)}"
        )
    said = list(notes)
    if names is None:
        names = [str(j) for j in range(len(columns))]
        if not said:
            said.append(f"{source} has no names of columns: they are numbered from 0")
        return Table(tuple(names), tuple(columns), source, tuple(said))
    unique, repeated = _different([name.strip() for name in names])
    for name in sorted(repeated):
        n = sum(other.strip() == name for other in names)
        said.append(f"{n} columns are named {name!r}: here they are {name!r}, '{name}.1', …")
    index = _saved_index(names[0].strip(), columns[0]) if len(columns) > 1 else False
    if index:
        said.append(
            f"column {unique[0]!r} {index}: it is left out as a saved index "
            f"({option('columns', unique[0])} would keep it)"
        )
    saved = unique[0] if index else None
    return Table(unique, tuple(columns), source, tuple(said), repeated, saved)


def _different(names: list[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return names that differ, as pandas makes them, and the names that were repeated."""
    taken, unique, repeated = set(names), [], set()
    seen: set[str] = set()
    for j, name in enumerate(names):
        new = name or f"Unnamed: {j}"
        if new in seen:
            repeated.add(new)
            i = 1
            while f"{new}.{i}" in taken:
                i += 1
            new = f"{new}.{i}"
            taken.add(new)
        seen.add(new)
        unique.append(new)
    return tuple(unique), frozenset(repeated)


def _saved_index(name: str, column: Column) -> str:
    """Return what the first column does to the rows if it is a saved index, or an empty string."""
    nameless = not name or name.startswith("Unnamed: 0")
    if not nameless and name.lower() not in _INDEX_NAMES:
        return ""
    if n_missing(column):
        return ""
    if is_text(column):
        return "labels the rows" if nameless else ""
    steps = np.diff(column)
    if np.all(steps == 1.0) and column[0] == np.round(column[0]):
        return "counts the rows"
    distinct = np.unique(column).size == column.size and np.all(column == np.round(column))
    return "numbers the rows" if nameless and distinct else ""
