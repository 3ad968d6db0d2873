"""Subtract means and apply weights, so that a problem has an intercept."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from l0anneal.problem.arrays import check_vector, is_large
from l0anneal.problem.stored import StoredColumns

__all__ = ["Centred", "centre", "constant_share"]

ROUNDING = 1e-13  # what is left of a constant column, as a fraction of its norm

Floats = NDArray[np.float64]


class Centred(NamedTuple):
    """Columns and signal after centring and weighting, the means, and how many rows they count as."""

    A: Any
    y: Floats
    column_means: Floats | None
    signal_mean: float
    n_samples: int


def centre(A: Any, y: Floats, intercept: bool, weights: ArrayLike | None = None) -> Centred:
    """Return columns and signal minus their weighted means, times the roots of the weights.

    A row of weight w counts as w rows, and rows of weight zero are dropped. With an intercept, one
    sample is used up by it. A large A (`arrays.is_large`) is not copied: its columns become those of a
    `StoredColumns`, and rows of weight zero stay, as rows of zeros.

    Parameters
    ----------
    A : array or sparse matrix of shape (M, N)
        The columns.
    y : array of shape (M,)
        The signal.
    intercept : bool
        Whether to subtract the means.
    weights : array of shape (M,), optional
        Weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> data = centre(np.array([[1.0], [2.0], [6.0]]), np.array([1.0, 2.0, 3.0]), True)
    >>> data.A.ravel(), data.y, data.column_means, data.signal_mean, data.n_samples
    (array([-2., -1.,  3.]), array([-1.,  0.,  1.]), array([3.]), 2.0, 2)
    """
    sparse = scipy.sparse.issparse(A)
    if sparse and intercept:
        raise ValueError(
            "an intercept needs columns minus their means, but a sparse A would become dense: give "
            "A.toarray(), or use AnnealedSubsetRegressor, which keeps A sparse"
        )
    w = None if weights is None else _check_weights(weights, y.size)
    if is_large(A):
        return _centre_stored(A, y, intercept, w)
    roots, n = None, float(y.size)
    if w is not None:
        keep = w > 0
        A, y, roots, n = A[keep], y[keep], np.sqrt(w[keep]), float(w.sum())
    means, mean = None, 0.0
    if intercept:
        A = np.asarray(A, dtype=np.float64)
        share = np.full(y.size, 1.0 / y.size) if roots is None else roots**2 / n
        means, mean = share @ A, float(share @ y)
        A, y = _without_rounding(A - means, A), _without_rounding((y - mean)[:, None], y[:, None])
        y = y[:, 0]
    if roots is not None:
        scaled = scipy.sparse.diags_array(roots) @ A if sparse else roots[:, None] * A
        A = scipy.sparse.csc_array(scaled) if sparse else scaled
        y = roots * y
    return Centred(A, y, means, mean, max(1, round(n) - int(intercept)))


def _check_weights(weights: ArrayLike, n_rows: int) -> Floats:
    w = check_vector(weights, "weights", n_rows, f"A has {n_rows} rows")
    if np.any(w < 0) or not np.any(w > 0):
        raise ValueError(
            f"weights must be ≥ 0, and one of them positive; got {w.min():g} to {w.max():g}"
        )
    return w


def _centre_stored(A: Any, y: Floats, intercept: bool, weights: Floats | None) -> Centred:
    """Do the same without a copy of A: centring is a projection off the roots of the weights."""
    roots = None if weights is None else np.sqrt(weights)
    n = float(y.size if weights is None else weights.sum())
    left = y if roots is None else roots * y
    if not intercept:
        return Centred(StoredColumns(A, roots=roots), left, None, 0.0, max(1, round(n)))
    basis = ((np.ones(y.size) if roots is None else roots) / np.sqrt(n))[:, None]
    columns = StoredColumns(A, roots=roots, basis=basis)
    mean = float(basis[:, 0] @ left / np.sqrt(n))
    left = _without_rounding((left - np.sqrt(n) * mean * basis[:, 0])[:, None], left[:, None])[:, 0]
    means = columns.along[0] / np.sqrt(n)
    return Centred(columns, left, means, mean, max(1, round(n) - 1))


def constant_share(y: Floats) -> float:
    """Return the fraction of ‖y‖² that a constant explains."""
    largest = float(np.max(np.abs(y), initial=0.0))
    if not largest:
        return 0.0
    scaled = y / largest
    return float(scaled.sum() ** 2 / (scaled @ scaled) / y.size)


def _without_rounding(left: Floats, before: Floats) -> Floats:
    """Return centred columns, with zeros for those of which only rounding errors are left."""
    gone = np.linalg.norm(left, axis=0) <= ROUNDING * np.linalg.norm(before, axis=0)
    return np.where(gone, 0.0, left) if np.any(gone) else left
