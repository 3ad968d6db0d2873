"""Checks of the target of a regression: classes are no numbers, and 0 and 1 are two classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

__all__ = ["check_target", "only_zeros_and_ones", "warn_of_classes"]


def check_target(y: Any) -> Any:
    """Return the target as it is, or raise ValueError if it holds classes."""
    if y is None:
        return y  # scikit-learn has a message for this
    if scipy.sparse.issparse(y):
        raise ValueError("y is a sparse matrix, but a dense array is needed: give y.toarray()")
    values = np.asarray(y)
    if values.dtype.kind in "US" or (values.dtype.kind == "O" and _holds_text(values)):
        first = next(value for value in values.ravel() if isinstance(value, (str, bytes)))
        try:
            float(first)
        except ValueError:
            raise ValueError(
                f"y holds text such as {str(first)!r}, but a regression needs numbers. If these are "
                f"classes, give y == {str(first)!r} as the target (a fit of 0 and 1 to choose columns "
                "by), and classify with the chosen columns: make_pipeline(AnnealedSubsetRegressor(5), "
                "LogisticRegression())"
            ) from None
    return y


def only_zeros_and_ones(y: NDArray[np.float64]) -> bool:
    """Return whether y has the values 0 and 1, both of them and no others."""
    return bool(np.all((y == 0) | (y == 1)) and np.ptp(y) == 1)


def warn_of_classes(stacklevel: int) -> None:
    """Warn that a least-squares fit to classes predicts neither classes nor probabilities."""
    warnings.warn(
        "y has only the values 0 and 1: the predictions are a least-squares fit to them, not classes "
        "or probabilities, and can be below 0 or above 1. To classify, use the model to choose "
        "columns: make_pipeline(AnnealedSubsetRegressor(5), LogisticRegression())",
        UserWarning,
        stacklevel=stacklevel,
    )


def _holds_text(values: NDArray[Any]) -> bool:
    return any(isinstance(value, (str, bytes)) for value in values.ravel())
