"""The folds of a cross-validation: which rows train, which test, and the error on the latter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, check_cv

from l0anneal.problem.joint_data import JointDesign, design_of
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.run import Run

__all__ = ["Fold", "RowFold", "folds_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Fold(Protocol):
    """One fold of a cross-validation."""

    def design(self) -> Design | JointDesign:
        """Return the training data."""
        ...

    def error(self, coef: Floats, intercept: Any) -> float:
        """Return the mean squared error of a fit on the test data."""
        ...


@dataclass(frozen=True)
class RowFold:
    """A fold that consists of rows, and how to prepare them."""

    X: Any
    y: Floats
    weights: Floats | None
    options: dict[str, Any]
    train: Indices
    test: Indices

    def design(self) -> Design | JointDesign:
        """Return the training rows."""
        train = self.train
        weights = _rows(self.weights, train)
        return design_of(self.X[train], self.y[train], weights=weights, **self.options)

    def error(self, coef: Floats, intercept: Any) -> float:
        """Return the mean squared error of a fit on the test rows."""
        test = self.test
        used = np.flatnonzero(np.any(np.atleast_2d(coef) != 0, axis=0))
        residual = self.y[test] - intercept - self.X[test][:, used] @ coef.T[used]
        squares = residual.reshape(len(residual), -1) ** 2
        return float(np.average(squares.sum(axis=1), weights=_rows(self.weights, test)))


def folds_of(
    run: Run, cv: Any, X: Any, y: Floats, weights: Floats | None, options: dict[str, Any]
) -> list[RowFold]:
    """Return the folds of a cross-validation.

    An integer means folds of shuffled rows. Rows of weight zero are in none of these folds.
    """
    counted = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= counted.size:
            positive = "" if weights is None else " of positive weight"
            raise ValueError(
                f"cv needs between 2 folds and one per sample{positive}, {counted.size}; got {cv}"
            )
        words = run.stream("path shuffle").generate_state(1)
        shuffled = KFold(int(cv), shuffle=True, random_state=int(words[0])).split(counted)
        splits = [(counted[train], counted[test]) for train, test in shuffled]
    else:
        every = np.arange(len(y))
        splits = [(every[train], every[test]) for train, test in check_cv(cv).split(X, y)]
    if len(splits) < 2:
        raise ValueError(f"cv needs at least 2 folds; got {len(splits)}")
    for i, (train, test) in enumerate(splits):
        for part, rows in (("training", train), ("test", test)):
            if weights is not None and not np.any(weights[rows] > 0):
                raise ValueError(
                    f"the {part} rows of fold {i} of cv all have a sample weight of zero: give "
                    "folds with rows of positive weight in both parts"
                )
    return [RowFold(X, y, weights, options, train, test) for train, test in splits]


def _rows(weights: Floats | None, rows: Indices) -> Floats | None:
    return None if weights is None else weights[rows]
