"""From a table to numbers: the target, the columns to choose from, dummies, and missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.advice import option
from l0anneal._util.checks import check_choice
from l0anneal.problem.table import Table, as_table
from l0anneal.problem.table_cells import Column, is_text, n_missing
from l0anneal.problem.table_parts import (
    Part,
    check_finite,
    count,
    dummies,
    filling,
    in_words,
    listed,
    new_values,
    shortened,
    values_of,
)

__all__ = ["TableData", "TableDesign", "design_table"]

IMPUTATIONS = ("mean", "median")
MOST_LEVELS = 50  # a text column with more different words than this is no category
MOST_CLASSES = 20  # a text target with no more words than this has classes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TableDesign:
    """How the columns of a table become the columns of a problem.

    Attributes
    ----------
    target : str
        The name of the column to explain.
    feature_names : tuple of str
        Names of the problem's columns; a dummy is called ``name=level``.
    groups : tuple of tuples of int
        Dummies of one variable, which enter and leave the support together.
    notes : tuple of str
        What was found in the table and done about it, without being asked.
    remarks : tuple of str
        What was done because an argument asked for it.
    """

    target: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the problem's columns."""
        return tuple(name for part in self.parts for name in part.feature_names)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Dummies of one variable, as column indices."""
        groups, start = [], 0
        for part in self.parts:
            width = len(part.feature_names)
            if width > 1:
                groups.append(tuple(range(start, start + width)))
            start += width
        return tuple(groups)

    def matrix(self, frame: Any, *, header: bool | None = None) -> Floats:
        """Return the columns of another table in the order of ``feature_names``, for predictions.

        Parameters
        ----------
        frame : path, DataFrame or mapping
            A table with the same columns; others, such as the target, may be there or not.
        header : bool, optional
            Whether the first row of a text file has the names; by default this is found out.
        """
        table = as_table(frame, header=header)
        missing = [part.name for part in self.parts if part.name not in table.names]
        if missing:
            raise ValueError(
                f"{table.source} needs the columns of the fit, but has no {listed(missing)}: add "
                f"{'it' if len(missing) == 1 else 'them'}, or fit again without "
                f"({option('drop', missing[0] if len(missing) == 1 else 'NAMES')})"
            )
        return np.column_stack([new_values(table, part) for part in self.parts])


class TableData(NamedTuple):
    """The numbers of a table."""

    design: TableDesign
    A: Floats
    y: Floats
    weights: Floats | None


def design_table(
    table: Table,
    target: str | int,
    *,
    columns: Sequence[str | int] | str | None = None,
    drop: Sequence[str | int] | str | None = None,
    weights: str | int | None = None,
    impute: str | None = None,
    one_hot: bool = False,
    drop_rows: bool = False,
    intercept: bool = True,
) -> TableData:
    """Return the numbers of a table, or raise ValueError that names the column in the way.

    The parameters are those of `SparseProblem.from_table`.
    """
    if impute is not None:
        check_choice("impute", impute, IMPUTATIONS)
    notes, remarks = list(table.notes), []
    goal = table.find(target, "target")
    if str(target) != goal:
        remarks.append(f"the target, column {target}, is {goal!r}")
    weight = None if weights is None else table.find(weights, "weights")
    if weight == goal:
        raise ValueError(
            f"column {goal!r} is the target and cannot also have the weights: give another column to "
            "one of them"
        )
    chosen = _chosen(table, goal, weight, columns, drop)
    rows = _rows(table, [goal, *([weight] if weight else [])], chosen, drop_rows, remarks)
    y = _target(table, goal, rows, intercept)
    if np.all((y == 0.0) | (y == 1.0)) and np.ptp(y) == 1.0:
        notes.append(
            f"the target {goal!r} has only the values 0 and 1: least squares is fitted to them, which "
            "predicts neither classes nor probabilities; use it to choose columns, and classify with "
            "these, for instance by scikit-learn's LogisticRegression"
        )
    parts, values = _candidates(table, chosen, rows, impute, one_hot, intercept, notes, remarks)
    for part, block in zip(parts, values):
        if part.levels is None and intercept and _is_copy(block[:, 0], y):
            notes.append(
                f"column {part.name!r} is the target up to a factor and an offset; if it was "
                f"computed from the target, give {option('drop', part.name)}"
            )
    w = None if weight is None else _weights(table, weight, rows)
    if w is not None and weight is not None:
        remarks.append(
            f"the weights {weight!r} count repetitions: {w.size} rows count as {w.sum():.6g}; if they "
            f"are relative weights, divide them by their mean, {w.mean():.4g}"
        )
    design = TableDesign(goal, tuple(parts), tuple(notes), tuple(remarks))
    return TableData(design, np.hstack(values), y, w)


# ------------------------------------------------------------ which columns and rows


def _chosen(
    table: Table,
    goal: str,
    weight: str | None,
    columns: Sequence[str | int] | str | None,
    drop: Sequence[str | int] | str | None,
) -> list[str]:
    """Return the names of the columns to choose from."""
    dropped = _names(table, drop, "drop")
    if goal in dropped:
        raise ValueError(
            f"column {goal!r} is the target and cannot be left out: take it out of drop, or choose "
            "another target"
        )
    if columns is None:
        chosen = [name for name in table.names if name != table.index]
    else:
        chosen = _names(table, columns, "columns")
        if goal in chosen:
            raise ValueError(
                f"column {goal!r} is the target and cannot explain itself: take it out of columns"
            )
    chosen = [name for name in chosen if name not in (goal, weight, *dropped)]
    if not chosen:
        raise ValueError(
            f"{table.source} has no column left to choose from besides the target {goal!r}; at least "
            "one is needed"
        )
    return chosen


def _names(table: Table, given: Sequence[str | int] | str | None, what: str) -> list[str]:
    """Return the names of several columns; a text may list them with commas."""
    if given is None:
        return []
    words: list[str | int] = []
    for item in [given] if isinstance(given, (str, int)) else given:
        if isinstance(item, str) and item not in table.names and "," in item:
            words += [word.strip() for word in item.split(",") if word.strip()]
        else:
            words.append(item)
    return list(dict.fromkeys(table.find(word, what) for word in words))


def _rows(
    table: Table, needed: list[str], chosen: list[str], drop_rows: bool, remarks: list[str]
) -> NDArray[np.bool_]:
    """Return a mask of the rows to use; the columns in ``needed`` may have no missing values."""
    rows = np.ones(table.n_rows, dtype=bool)
    if drop_rows:
        for name in (*needed, *chosen):
            rows &= ~_missing(table[name])
        if not rows.any():
            emptiest = max((*needed, *chosen), key=lambda name: n_missing(table[name]))
            raise ValueError(
                f"{table.source} has a missing value in every row, most of them in {emptiest!r}: give "
                f"{option('drop', emptiest)} instead, or {option('impute', 'mean')}"
            )
        if not rows.all():
            have = "has" if np.sum(~rows) == 1 else "have"
            remarks.append(f"{np.sum(~rows)} of {rows.size} rows {have} missing values: left out")
        return rows
    for name in needed:
        if n_missing(table[name]):
            raise ValueError(
                f"column {name!r} has {_values(n_missing(table[name]))} in {rows.size} rows, "
                f"but it is needed in every row: leave out the other rows with {option('drop_rows')}"
            )
    return rows


def _missing(column: Column) -> NDArray[np.bool_]:
    if is_text(column):
        return np.array([value is None for value in column])
    return np.isnan(column)


# ------------------------------------------------------------ numbers


def _target(table: Table, goal: str, rows: NDArray[np.bool_], intercept: bool) -> Floats:
    column = table[goal]
    if is_text(column):
        words = sorted({str(value) for value in column[rows] if value is not None})
        todo = "code it as numbers"
        if len(words) <= MOST_CLASSES:
            todo = (
                f"if these are classes, make a column that is 1 where {goal} is {words[-1]!r} and 0 "
                "elsewhere, and use the columns chosen for it in a classifier such as "
                "scikit-learn's LogisticRegression"
            )
        raise ValueError(
            f"the target {goal!r} must be a number; it is {in_words(column)}: {todo}, or choose "
            "another target"
        )
    y = np.asarray(column[rows], dtype=np.float64)
    check_finite(goal, y)
    least = 3 if intercept else 2
    if y.size < least:
        raise ValueError(
            f"{table.source} has {y.size} usable row{'s' * (y.size != 1)}; at least {least} are needed"
            + (" for an intercept and a column: add rows" if intercept else ": add rows")
        )
    if intercept and np.all(y == y[0]):
        raise ValueError(
            f"the target {goal!r} is {y[0]:g} in every row: there is nothing to explain; choose "
            "another target"
        )
    return y


def _weights(table: Table, name: str, rows: NDArray[np.bool_]) -> Floats:
    column = table[name]
    if is_text(column):
        raise ValueError(f"the weights {name!r} must be numbers; the column is {in_words(column)}")
    return np.asarray(column[rows], dtype=np.float64)


def _candidates(
    table: Table,
    chosen: list[str],
    rows: NDArray[np.bool_],
    impute: str | None,
    one_hot: bool,
    intercept: bool,
    notes: list[str],
    remarks: list[str],
) -> tuple[list[Part], list[Floats]]:
    """Return the columns to choose from, and their numbers."""
    _check_text(table, chosen, one_hot)
    _check_missing(table, chosen, rows, impute)
    parts, values, constant, filled = [], [], [], []
    full = not intercept  # without an intercept, the first variable has a dummy for every level
    for name in chosen:
        column = table[name][rows]
        if n_missing(column) == column.size:
            notes.append(f"column {name!r} is empty: left out")
            continue
        if is_text(column):
            part = dummies(name, column, full)
            full = False
            if part.base is not None and part.levels:
                remarks.append(
                    f"{name!r} enters as {count(len(part.levels), 'dummy', 'dummies')}, to be "
                    f"compared with {part.base!r}"
                )
        else:
            part = Part(name, filling(column, impute), None, None)
            if n_missing(column):
                filled.append(f"{name!r} ({n_missing(column)})")
        block = values_of(name, column, part)
        if not block.shape[1] or (np.all(block == block[0]) and (intercept or not block.any())):
            constant.append(name)
            continue
        parts.append(part)
        values.append(block)
    if filled:
        remarks.append(
            f"missing values replaced by the {impute} of the column: {shortened(filled)}"
        )
    if constant:
        notes.append(
            f"{count(len(constant), 'column is', 'columns are')} constant, left out: "
            + shortened([repr(name) for name in constant])
        )
    if not parts:
        raise ValueError(
            f"{table.source} has no column left to choose from: all others are constant or empty; "
            "at least one must vary"
        )
    return parts, values


def _check_text(table: Table, chosen: list[str], one_hot: bool) -> None:
    text = [name for name in chosen if is_text(table[name])]
    if text and not one_hot:
        rest = f" (and {len(text) - 1} more: {listed(text[1:])})" if len(text) > 1 else ""
        recur = any(_n_words(table[name]) <= min(MOST_LEVELS, table.n_rows // 2) for name in text)
        dummies = f", or make dummies with {option('one_hot')}" if recur else ""
        raise ValueError(
            f"column {text[0]!r} is {in_words(table[text[0]])}{rest}; numbers are needed: leave "
            f"{'it' if len(text) == 1 else 'them'} out with {option('drop', ','.join(text))}{dummies}"
        )
    for name in text:
        levels = _n_words(table[name])
        if levels > MOST_LEVELS or levels == table.n_rows:
            raise ValueError(
                f"column {name!r} has {levels} different words in {table.n_rows} rows; dummies can be "
                f"made of at most {MOST_LEVELS} words that recur: give {option('drop', name)}"
            )


def _n_words(column: Column) -> int:
    return len(set(column))


def _values(n: int) -> str:
    return count(n, "missing value", "missing values")


def _check_missing(
    table: Table, chosen: list[str], rows: NDArray[np.bool_], impute: str | None
) -> None:
    for name in chosen:
        column = table[name][rows]
        if is_text(column) or n_missing(column) == column.size:
            continue
        check_finite(name, column)
        if n_missing(column) and impute is None:
            holes = [other for other in chosen if n_missing(table[other][rows])]
            others = count(len(holes) - 1, "other column has", "other columns have")
            rest = f" (and {others} some)" if len(holes) > 1 else ""
            raise ValueError(
                f"column {name!r} has {_values(n_missing(column))} in {column.size} rows{rest}; "
                f"every value is needed: fill them with {option('impute', 'mean')}, leave out the "
                f"rows with {option('drop_rows')}, or the column with {option('drop', name)}"
            )


def _is_copy(a: Floats, y: Floats) -> bool:
    """Whether y is a linear function of a, up to rounding."""
    a, y = a - a.mean(), y - y.mean()
    product = float(a @ y)
    return product**2 >= (1 - 1e-12) * float(a @ a) * float(y @ y) > 0.0
