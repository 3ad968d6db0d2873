"""Columns of a table: numbers with NaN for missing ones, or words with None for missing ones."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "as_column", "is_integer", "is_missing", "is_number", "is_text", "n_missing"]

Column = NDArray[Any]  # float64, or objects: str and None

_MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "?", ".", "-", "nat", "<na>"))
_TRUTH = {"true": "1", "false": "0"}
_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")


def is_missing(cell: str) -> bool:
    """Whether a cell of a text file stands for a missing value."""
    return cell.strip().lower() in _MISSING


def is_number(cell: str) -> bool:
    """Whether a cell of a text file is a number that is not missing."""
    try:
        return not is_missing(cell) and float(cell) is not None
    except ValueError:
        return False


def is_integer(cell: str) -> bool:
    """Whether a cell of a text file is an integer, written without a point."""
    return re.fullmatch(r"[+-]?\d+", cell.strip()) is not None


def is_text(column: Column) -> bool:
    """Whether a column holds words."""
    return column.dtype == object


def n_missing(column: Column) -> int:
    """Return how many values of a column are missing."""
    if is_text(column):
        return sum(value is None for value in column)
    return int(np.isnan(column).sum())


def as_column(values: Any, decimal_comma: bool = False) -> Column:
    """Return values as numbers if all of them are, or else as words.

    Parameters
    ----------
    values : sequence
        Numbers, truth values, or cells of a text file.
    decimal_comma : bool
        Whether the numbers may be written as 3,14.

    Examples
    --------
    >>> as_column(["1", "NA", "2.5"]), as_column(["3,5", "4"], decimal_comma=True)
    (array([1. , nan, 2.5]), array([3.5, 4. ]))
    >>> as_column(["red", "", "3"])
    array(['red', None, '3'], dtype=object)
    """
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        return np.asarray(values).astype(np.float64)
    cells = [_cell(value) for value in np.asarray(values, dtype=object).ravel()]
    plain = [_TRUTH.get(cell.lower(), cell) for cell in cells]
    plain = ["nan" if is_missing(cell) else cell for cell in plain]
    attempts = [plain]
    if decimal_comma and all(cell == "nan" or _COMMA.fullmatch(cell) for cell in plain):
        attempts.append([cell.replace(",", ".") for cell in plain])
    for attempt in attempts:
        column = _numbers(attempt)
        if column is not None:
            return column
    words = np.empty(len(cells), dtype=object)
    words[:] = [None if is_missing(cell) else cell for cell in cells]
    return words


def _numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def _cell(value: Any) -> str:
    """Return any value as the text that a file would have."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, numbers.Real):
        return repr(float(value))
    return str(value).strip()
