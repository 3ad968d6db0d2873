"""A column of a table as numbers: missing values, dummies, and words about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.advice import option
from l0anneal.problem.table import Table
from l0anneal.problem.table_cells import Column, is_number, is_text, n_missing

__all__ = [
    "Part",
    "check_finite",
    "count",
    "dummies",
    "filling",
    "in_words",
    "listed",
    "new_values",
    "shortened",
    "values_of",
]

NO_WORD = "missing"  # the level of a missing word

Floats = NDArray[np.float64]


class Part(NamedTuple):
    """A column of the table, and what becomes of it: numbers, or one dummy for each level."""

    name: str
    fill: float | None  # replaces missing numbers
    levels: tuple[str, ...] | None
    base: str | None  # the level without a dummy

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns that become of it."""
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels)


def dummies(name: str, column: Column, full: bool) -> Part:
    """Return a text column as dummies, one for each word but the most frequent one, or for all."""
    levels = sorted({NO_WORD if value is None else str(value) for value in column})
    if full:
        return Part(name, None, tuple(levels), None)
    counts = Counter(NO_WORD if value is None else str(value) for value in column)
    base = min(levels, key=lambda level: (-counts[level], level))
    return Part(name, None, tuple(level for level in levels if level != base), base)


def filling(column: Column, impute: str | None) -> float | None:
    """Return the number that replaces the missing ones of a column."""
    if impute is None:
        return None
    return float(np.nanmedian(column) if impute == "median" else np.nanmean(column))


def values_of(name: str, column: Column, part: Part) -> Floats:
    """Return the numbers of one column of the table, as a matrix."""
    if part.levels is not None:
        words = np.array([NO_WORD if value is None else str(value) for value in column])
        return np.array([words == level for level in part.levels], dtype=np.float64).T.reshape(
            len(words), len(part.levels)
        )
    numbers = np.asarray(column, dtype=np.float64)
    if part.fill is not None:
        numbers = np.where(np.isnan(numbers), part.fill, numbers)
    return numbers[:, None]


def new_values(table: Table, part: Part) -> Floats:
    """Return the numbers of one column of another table."""
    column = table[part.name]
    where = f"column {part.name!r} of {table.source}"
    if part.levels is not None:
        known = {*part.levels, part.base}
        if not is_text(column):  # levels that look like numbers
            column = np.array([None if np.isnan(v) else f"{v:g}" for v in column], dtype=object)
        words = {NO_WORD if value is None else str(value) for value in column}
        if words - known:
            raise ValueError(
                f"{where} has the word {min(words - known)!r}, which the table of the fit did not "
                "have: leave out these rows"
            )
    elif is_text(column):
        raise ValueError(f"{where} is {in_words(column)}; numbers are needed, as in the fit")
    else:
        check_finite(part.name, column)
        if n_missing(column) and part.fill is None:
            raise ValueError(
                f"{where} has {count(n_missing(column), 'missing value', 'missing values')}; fill "
                "them, or fit with "
                f"{option('impute', 'mean')}"
            )
    return values_of(part.name, column, part)


def check_finite(name: str, values: Column) -> None:
    """Raise ValueError if a column has infinite values."""
    n = int(np.isinf(values).sum())
    if n:
        raise ValueError(
            f"column {name!r} has {count(n, 'infinite value', 'infinite values')}; finite numbers are "
            "needed: drop or repair them"
        )


def in_words(column: Column) -> str:
    """Say how much of a column is text, with an example."""
    words = [i for i, v in enumerate(column) if v is not None and not is_number(str(v))]
    if not words:
        return "text"
    first = str(column[words[0]])
    shown = first if len(first) <= 20 else first[:19] + "…"
    if len(words) < 0.5 * len(column):
        return f"text in {len(words)} of {len(column)} rows ({shown!r} in row {words[0]})"
    return f"text ({shown!r}, …)"


def listed(names: Iterable[str], most: int = 4) -> str:
    """Return names in quotes, at most four of them."""
    return shortened([repr(name) for name in names], most)


def shortened(words: list[str], most: int = 4) -> str:
    """Return words with commas between them, and how many more there are."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def count(n: int, one: str, several: str) -> str:
    """Return a number with its noun in the singular or the plural."""
    return f"{n} {one if n == 1 else several}"
