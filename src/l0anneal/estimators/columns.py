"""Checks of columns shared by the regressor and the path, in scikit-learn's terms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.checks import check_integer
from l0anneal.problem.joint_data import JointDesign
from l0anneal.problem.regression_data import Design

__all__ = ["check_columns", "check_free_columns", "column_indices", "feature_names"]

Indices = NDArray[np.int64]


def check_columns(X: Any) -> None:
    """Raise ValueError if a DataFrame has columns that are no numbers, or two of one name.

    Examples
    --------
    >>> import pandas as pd
    >>> check_columns(pd.DataFrame({"age": [1, 2], "sex": ["f", "m"]}))
    Traceback (most recent call last):
    ...
    ValueError: columns that are not numbers: 'sex'. Turn categories into dummies, for instance ...
    """
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    names = list(X.columns)
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"column names that occur more than once: {', '.join(map(repr, twice))}")
    no_numbers = [
        repr(str(name)) for name, dtype in zip(names, X.dtypes) if not _is_number(X[name], dtype)
    ]
    if no_numbers:
        raise ValueError(
            f"columns that are not numbers: {', '.join(no_numbers)}. Turn categories into dummies, for "
            "instance by scikit-learn's OneHotEncoder, and name the dummies of a column in groups; turn "
            "dates into numbers; or leave these columns out"
        )


def _is_number(column: Any, dtype: Any) -> bool:
    if getattr(dtype, "kind", "O") in "biufc":
        return True
    try:
        values = np.asarray(column)
        if values.dtype.kind in "mM":
            return False
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def feature_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of a DataFrame's columns, if all of them are strings."""
    from sklearn.utils.validation import _get_feature_names

    names = _get_feature_names(X)
    return None if names is None else tuple(names)


def column_indices(
    columns: ArrayLike | None,
    n_columns: int,
    names: Iterable[str] | None,
    argument: str = "always_include",
) -> Indices:
    """Return sorted indices of columns that are given as indices, as a mask or by name."""
    given = np.zeros(0) if columns is None else np.atleast_1d(np.asarray(columns))
    if given.size == 0:
        return np.zeros(0, dtype=np.int64)
    if given.ndim != 1:
        raise ValueError(f"{argument} must be a list of columns; got {given.ndim} dimensions")
    if given.dtype.kind in "UOT" and all(isinstance(name, str) for name in given):
        given = _indices_by_name(given, names, argument)
    elif given.dtype.kind == "b":
        if given.size != n_columns:
            raise ValueError(
                f"{argument} as a mask needs {n_columns} entries, one per column; got {given.size}"
            )
        given = np.flatnonzero(given)
    elif given.dtype.kind not in "iu":
        raise ValueError(f"{argument} must be indices, a mask or names; got {columns!r}")
    if given.size and (given.min() < 0 or given.max() >= n_columns):
        raise ValueError(
            f"{argument} needs indices from 0 to {n_columns - 1}; "
            f"got {given.min()} to {given.max()}"
        )
    return np.unique(given).astype(np.int64)


def _indices_by_name(given: NDArray[Any], names: Iterable[str] | None, argument: str) -> Indices:
    if names is None:
        raise ValueError(
            f"{argument} has names, but X has none: give X as a DataFrame, or give indices"
        )
    where = {name: j for j, name in enumerate(names)}
    missing = [str(name) for name in given if name not in where]
    if missing:
        raise ValueError(f"{argument} names columns that X does not have: {missing}")
    return np.array([where[name] for name in given])


def check_free_columns(name: str, k: Any, design: Design | JointDesign) -> int:
    """Return how many columns remain to be chosen besides the forced ones, or raise ValueError."""
    n_forced, n_columns = design.forced.size, design.n_columns
    check_integer(name, k, 0)
    if not n_forced <= k <= n_columns:
        least = f"{n_forced}, the columns always included," if n_forced else "0"
        raise ValueError(
            f"{name} must lie between {least} and the number of features, {n_columns}; got {k}"
        )
    free = int(k) - n_forced
    if free > design.most:
        most = design.most + n_forced
        if design.most == design.candidates.size:
            raise ValueError(
                f"{name} = {k} is too large: only {most} columns are neither constant beside the "
                "intercept nor combinations of those always included"
            )
        beside = " beside the intercept" if design.fit_intercept else ""
        raise ValueError(
            f"{name} = {k} is too large for {design.n_rows} samples: at most {most} columns{beside}"
        )
    return free
