"""What a fit of one target learns from: rows, or the sums over rows that were read in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from l0anneal.estimators.folds import Fold, folds_of
from l0anneal.estimators.targets import only_zeros_and_ones
from l0anneal.problem.moments import Moments, merged
from l0anneal.problem.regression_data import Design
from l0anneal.problem.row_sums import RowSums
from l0anneal.samplers.run import Run

__all__ = ["N_FOLDS", "Rows", "SummedRows", "TrainingData"]

N_FOLDS = 5
Floats = NDArray[np.float64]


class TrainingData(Protocol):
    """Everything that a fit asks of its data."""

    @property
    def extra_frames(self) -> int:
        """Frames of the stack between `fit_target` and the method that users call, for warnings."""
        ...

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        ...

    @property
    def has_classes(self) -> bool:
        """Whether y has only the values 0 and 1."""
        ...

    def design(self, options: dict[str, Any]) -> Design:
        """Return the data prepared for the engine."""
        ...

    def folds(self, run: Run, options: dict[str, Any]) -> Sequence[Fold]:
        """Return the folds of a cross-validation."""
        ...

    def r2(self, coef: Floats, intercept: float) -> float:
        """Return the part of the variance of y that a fit explains."""
        ...


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their weights."""

    X: Any
    y: Floats
    weights: Floats | None
    extra_frames: int = 0

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    @property
    def has_classes(self) -> bool:
        """Whether y has only the values 0 and 1."""
        return only_zeros_and_ones(self.y)

    def design(self, options: dict[str, Any]) -> Design:
        """Return the data prepared for the engine."""
        return Design.of(self.X, self.y, weights=self.weights, **options)

    def folds(self, run: Run, options: dict[str, Any]) -> Sequence[Fold]:
        """Return folds of shuffled rows, of positive weight."""
        n_rows = len(self.y) if self.weights is None else int(np.sum(self.weights > 0))
        if n_rows < 2:
            raise ValueError(
                "n_nonzero_coefs='cv' needs at least 2 rows of positive weight, to fit one and predict "
                f"the other; got {n_rows}: give more rows, or the number of columns"
            )
        return folds_of(run, min(N_FOLDS, n_rows), self.X, self.y, self.weights, options)

    def r2(self, coef: Floats, intercept: float) -> float:
        """Return the part of the variance of y that a fit explains."""
        fitted = self.X @ coef + intercept
        return float(r2_score(self.y, fitted, sample_weight=self.weights))


@dataclass(frozen=True, eq=False)
class SummedRows:
    """Sums over rows, by fold if there is a cross-validation."""

    sums: RowSums
    extra_frames: int = 1

    @cached_property
    def total(self) -> Moments:
        """The sums over all rows."""
        return self.sums.total()

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.total.offset) - 1

    @property
    def has_classes(self) -> bool:
        """Whether y has only the values 0 and 1."""
        return self.total.has_classes

    def design(self, options: dict[str, Any]) -> Design:
        """Return the data prepared for the engine."""
        return Design.of_sums(self.total, **options)

    def folds(self, run: Run, options: dict[str, Any]) -> Sequence[Fold]:
        """Return the folds into which the rows were divided when they were read."""
        return [SumFold(self.sums.folds, i, options) for i in range(len(self.sums.folds))]

    def r2(self, coef: Floats, intercept: float) -> float:
        """Return the part of the variance of y that a fit explains."""
        left = squared_error(self.total, coef, intercept)
        total = float(self.total.deviations()[-1, -1])
        if total == 0:
            return 1.0 if left == 0 else 0.0  # as in scikit-learn
        return 1.0 - left / total


@dataclass(frozen=True, eq=False)
class SumFold:
    """A fold whose training data are the sums over the other folds."""

    parts: tuple[Moments, ...]
    test: int
    options: dict[str, Any]

    def design(self) -> Design:
        """Return the training data."""
        others = merged(part for i, part in enumerate(self.parts) if i != self.test)
        return Design.of_sums(others, **self.options)

    def error(self, coef: Floats, intercept: Any) -> float:
        """Return the mean squared error of a fit on the test data."""
        part = self.parts[self.test]
        return squared_error(part, coef, float(intercept)) / part.weight


def squared_error(sums: Moments, coef: Floats, intercept: float) -> float:
    """Return Σw (y − xᵀβ − β₀)² from sums over rows."""
    S, means = sums.scatter + sums.lost, sums.means
    direction = np.append(-coef, 1.0)
    used = np.flatnonzero(direction)
    among = float(direction[used] @ S[np.ix_(used, used)] @ direction[used])
    of_means = float(direction @ means) - intercept
    return max(0.0, among) + sums.weight * of_means**2
