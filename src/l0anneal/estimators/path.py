"""Every size, and which one: the best support for each k, and criteria to choose k by."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_X_y
from sklearn.utils.validation import _check_sample_weight

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.seeds import RandomState, child, seed_of
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.path_search import best_of_every_size

__all__ = ["CRITERIA", "SubsetPath", "choose_size", "subset_path"]

CRITERIA = ("evidence", "bic", "ebic", "cv")
PERFECT = 1e-20  # a residual below this part of ‖y‖² is rounding, and log RSS stops there
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SubsetPath:
    """The best support of each size.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of columns, ascending by one; the first is that of the columns always included.
    supports : tuple of ndarrays
        The columns chosen at each size, sorted, with those always included.
    energies : ndarray of shape (n_sizes,)
        ½‖y − Xβ − β₀‖² (rows weighted, and with ½α‖β‖² if there is a ridge): never rising.
    coefs, intercepts : ndarrays of shape (n_sizes, n_columns) and (n_sizes,)
        Least squares on each support.
    criteria : dict of str to ndarray
        By size, the lower the better: ``"evidence"`` (−2 log marginal likelihood of the support, slab
        and noise variance at their best, with the prior of its size), ``"bic"``, ``"ebic"`` (with the
        number of columns there were to choose from) and, if it was asked for, ``"cv"``.
    cv_error : ndarray or None
        Standard error over the folds of ``criteria["cv"]``.
    leave_one_out : ndarray
        Mean squared error of leaving each row out with the support kept fixed. It knows nothing of
        the selection, is therefore too low, and never chooses k.
    n_samples : float
        Rows, or the sum of their weights.
    """

    sizes: Indices
    supports: tuple[Indices, ...]
    energies: Floats
    coefs: Floats
    intercepts: Floats
    criteria: dict[str, Floats]
    leave_one_out: Floats
    n_samples: float
    seed: int
    cv_error: Floats | None = None
    feature_names: tuple[str, ...] | None = field(default=None)

    @property
    def distortions(self) -> Floats:
        """Energy per sample."""
        return self.energies / self.n_samples

    def support(self, size: int) -> Indices:
        """The support of a size.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal.estimators.path import subset_path
        >>> path = subset_path(
        ...     np.eye(4), [0.0, 3.0, 0.0, 1.0], 2, fit_intercept=False, random_state=0
        ... )
        >>> path.support(1)
        array([1])
        """
        return self.supports[self.index(size)]

    def index(self, size: int) -> int:
        """Where a size stands in ``sizes``."""
        place = int(size) - int(self.sizes[0])
        if not 0 <= place < self.sizes.size:
            raise ValueError(
                f"the path has sizes from {self.sizes[0]} to {self.sizes[-1]}; got {size}"
            )
        return place


def subset_path(
    X: Any,
    y: ArrayLike,
    k_max: int,
    *,
    fit_intercept: bool = True,
    always_include: ArrayLike | None = None,
    alpha: float = 0.0,
    sample_weight: ArrayLike | None = None,
    cv: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> SubsetPath:
    """Find the best columns for each size up to ``k_max`` in one run through the sizes.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (M, N)
        Columns to choose from.
    y : array of shape (M,)
        What they are to approximate.
    k_max : int
        The largest size, columns always included among it. The path ends earlier if there are not
        so many linearly independent columns.
    fit_intercept : bool
        Whether an intercept is fitted; it does not count as a column.
    always_include : array of indices, a mask, or names of columns of a DataFrame, optional
        Columns of every support.
    alpha : float
        Ridge: adds ½α‖β‖² to the energy.
    sample_weight : array of shape (M,), optional
        A row of weight w counts as w rows.
    cv : int, splitter or iterable of (train, test), optional
        Cross-validate: in each fold the columns of every size are selected anew from its training
        rows. An integer means that many folds of shuffled rows.
    time_limit : float, optional
        Seconds for the search, and again for that of each fold.
    n_jobs : int
        Folds at a time (joblib). The result does not depend on it.
    random_state : None, int, SeedSequence or Generator
        One seed, one result.

    Returns
    -------
    SubsetPath

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal.estimators.path import choose_size, subset_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 30))
    >>> y = X[:, [3, 7]] @ [1.0, -2.0] + 0.5 * rng.standard_normal(80)
    >>> path = subset_path(X, y, 6, random_state=0)
    >>> choose_size(path, "ebic"), path.support(2)
    (2, array([3, 7]))
    """
    names = feature_names(X)
    X, target = check_X_y(X, y, accept_sparse=["csr", "csc"], dtype=np.float64, y_numeric=True)
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not (isinstance(alpha, numbers.Real) and math.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha must be a number ≥ 0; got {alpha!r}")
    forced = column_indices(always_include, X.shape[1], names)
    seed = seed_of(random_state)
    make: dict[str, Any] = {"fit_intercept": fit_intercept, "forced": forced, "alpha": float(alpha)}
    design = Design.of(X, target, weights=weights, **make)
    path = _path(design, check_k_max(k_max, design), seed, time_limit)
    free = len(path["supports"]) - 1
    if cv is None:
        return SubsetPath(**path, feature_names=names)
    folds = _folds(cv, X, target, seed)
    errors = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_fold_errors)(
            X, target, weights, make, train, test, free, (seed, i + 1), time_limit
        )
        for i, (train, test) in enumerate(folds)
    )
    errors = np.array(errors)
    path["criteria"]["cv"] = errors.mean(axis=0)
    spread = errors.std(axis=0, ddof=1) / math.sqrt(len(folds))
    return SubsetPath(**path, cv_error=spread, feature_names=names)


def choose_size(path: SubsetPath, criterion: str = "evidence") -> int:
    """Choose the number of columns by a criterion.

    Parameters
    ----------
    path : SubsetPath
        The best support of each size.
    criterion : {"evidence", "bic", "ebic", "cv"}
        The size of the lowest criterion; for "cv" the smallest size whose error is within one
        standard error of the lowest. BIC does not know from how many columns they were chosen, and
        chooses too many where these are many; "ebic" and "evidence" do know.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal.estimators.path import choose_size, subset_path
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((60, 20))
    >>> path = subset_path(X, 3 * X[:, 4] + rng.standard_normal(60), 5, cv=5, random_state=0)
    >>> choose_size(path, "cv")
    1
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is one of {', '.join(CRITERIA)}; got {criterion!r}")
    if criterion not in path.criteria:
        raise ValueError("the path was made without cross-validation: give subset_path cv=5")
    values = path.criteria[criterion]
    best = int(np.argmin(values))
    if criterion == "cv":
        assert path.cv_error is not None
        best = int(np.flatnonzero(values <= values[best] + path.cv_error[best])[0])
    return int(path.sizes[best])


# ---------------------------------------------------------------- shared with the estimator


def feature_names(X: Any) -> tuple[str, ...] | None:
    """Names of a DataFrame's columns, if all of them are strings."""
    from sklearn.utils.validation import _get_feature_names

    names = _get_feature_names(X)
    return None if names is None else tuple(names)


def column_indices(
    columns: ArrayLike | None, n_columns: int, names: Iterable[str] | None
) -> Indices:
    """Indices of columns that are given as such, as a mask or by name; sorted."""
    if columns is None:
        return np.zeros(0, dtype=np.int64)
    given = np.atleast_1d(np.asarray(columns))
    if given.size == 0:
        return np.zeros(0, dtype=np.int64)
    if given.ndim != 1:
        raise ValueError(f"always_include is a list of columns; got {given.ndim} dimensions")
    if given.dtype.kind in "UOT" and all(isinstance(name, str) for name in given):
        if names is None:
            raise ValueError(
                "always_include has names, but X has none: give a DataFrame or indices"
            )
        where = {name: j for j, name in enumerate(names)}
        missing = [str(name) for name in given if name not in where]
        if missing:
            raise ValueError(f"always_include names columns that X does not have: {missing}")
        given = np.array([where[name] for name in given])
    elif given.dtype.kind == "b":
        if given.size != n_columns:
            raise ValueError(
                f"always_include as a mask needs {n_columns} entries, one per column; got {given.size}"
            )
        given = np.flatnonzero(given)
    elif given.dtype.kind not in "iu":
        raise ValueError(f"always_include has indices, a mask or names; got {columns!r}")
    if given.min() < 0 or given.max() >= n_columns:
        raise ValueError(
            f"always_include has indices from 0 to {n_columns - 1}; "
            f"got {given.min()} to {given.max()}"
        )
    return np.unique(given).astype(np.int64)


def check_k_max(k: Any, design: Design, name: str = "k_max") -> int:
    """Return how many columns remain to be chosen beside the forced ones, or raise ValueError."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise ValueError(f"{name} must be an integer, the number of columns; got {k!r}")
    n_forced, n_columns = design.forced.size, design.n_columns
    if not n_forced <= k <= n_columns:
        least = f"{n_forced}, the columns always included," if n_forced else "0"
        raise ValueError(
            f"{name} must lie between {least} and the number of features, {n_columns}; got {k}"
        )
    free = int(k) - n_forced
    if free > design.most:
        if design.most == design.candidates.size:
            raise ValueError(
                f"{name} = {k} is more than there are: only {design.most + n_forced} columns are "
                "neither constant beside the intercept nor combinations of those always included"
            )
        raise ValueError(
            f"{name} = {k} is too many for {design.n_rows} samples: at most "
            f"{design.most + n_forced} columns"
            + (" beside the intercept" if design.fit_intercept else "")
        )
    return free


# ---------------------------------------------------------------- private


def _path(design: Design, free: int, seed: int, time_limit: float | None) -> dict[str, Any]:
    """Search, and everything that follows from the supports; the fields of a `SubsetPath`."""
    if design.candidates.size == 0:
        supports = [np.zeros(0, dtype=np.int64)]
    else:
        supports = best_of_every_size(design.problem, free, seed, time_limit)
    solved = [design.solve(support) for support in supports]
    energies = np.minimum.accumulate([energy for _, _, energy in solved])  # but for rounding
    n_forced = design.forced.size
    chosen = [np.union1d(design.forced, design.candidates[support]) for support in supports]
    return {
        "sizes": n_forced + np.arange(len(supports)),
        "supports": tuple(columns.astype(np.int64) for columns in chosen),
        "energies": energies,
        "coefs": np.array([coef for coef, _, _ in solved]),
        "intercepts": np.array([intercept for _, intercept, _ in solved]),
        "criteria": _criteria(design, supports, energies),
        "leave_one_out": np.array([design.leave_one_out(support) for support in supports]),
        "n_samples": design.n_samples,
        "seed": seed,
    }


def _criteria(design: Design, supports: list[Indices], energies: Floats) -> dict[str, Floats]:
    n = design.n_samples
    p = design.n_columns - design.forced.size
    k = np.arange(len(supports), dtype=np.float64)
    total = float(design.y @ design.y) or 1.0
    rss = np.maximum(2.0 * energies, PERFECT * total)
    bic = n * np.log(rss / n) + (k + design.n_projected) * math.log(n)
    log_choices = gammaln(p + 1) - gammaln(k + 1) - gammaln(p - k + 1)
    size_prior = betaln(k + 0.5, p - k + 0.5) - betaln(0.5, 0.5)
    evidence = np.array([_log_evidence(design, support) for support in supports])
    return {
        "evidence": -2.0 * (evidence + size_prior),
        "bic": bic,
        "ebic": bic + 2.0 * log_choices,
    }


def _log_evidence(design: Design, support: Indices) -> float:
    """Log marginal likelihood of a support, but for a constant; see `evidence` for the model.

    The coefficients of the unit-norm columns are integrated out under a Gaussian of variance T/λ.
    The noise variance T has its best value, 2E_λ/m, in closed form, and λ the best of a fine grid.
    """
    problem = design.counted()
    m, total = problem.n_samples, problem.signal_energy or 1.0
    if support.size == 0:
        return -0.5 * m * math.log(total)
    y = design.y - design.Q @ (design.Q.T @ design.y)
    with one_blas_thread():
        U, s, _ = scipy.linalg.svd(design.columns(support), full_matrices=False)
    explained = (U.T @ y) ** 2
    ridge = np.geomspace(1e-12, 1e4, 1000)[:, None]
    left = total - np.sum(explained * s**2 / (s**2 + ridge), axis=1)
    left = np.maximum(left, PERFECT * total)
    logs = -0.5 * np.sum(np.log1p(s**2 / ridge), axis=1) - 0.5 * m * np.log(left)
    return float(np.max(logs))


def _folds(cv: Any, X: Any, y: Floats, seed: int) -> list[tuple[Indices, Indices]]:
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= len(y):
            raise ValueError(f"cv needs between 2 folds and one per sample, {len(y)}; got {cv}")
        words = child(seed, 0).generate_state(1)
        cv = KFold(int(cv), shuffle=True, random_state=int(words[0]))
    folds = list(check_cv(cv).split(X, y))
    if len(folds) < 2:
        raise ValueError(f"cv needs at least 2 folds; got {len(folds)}")
    return folds


def _fold_errors(
    X: Any,
    y: Floats,
    weights: Floats | None,
    make: dict[str, Any],
    train: Indices,
    test: Indices,
    free: int,
    key: tuple[int, int],
    time_limit: float | None,
) -> Floats:
    """Mean squared error on the test rows by size, all columns selected on the training rows."""
    design = Design.of(X[train], y[train], weights=_rows(weights, train), **make)
    words = child(key[0], key[1]).generate_state(2)
    seed = int(words[0]) << 32 | int(words[1])
    supports = [np.zeros(0, dtype=np.int64)]
    if design.candidates.size:
        most = min(free, design.most)
        supports = best_of_every_size(design.problem, most, seed, time_limit)
    errors = np.empty(free + 1)
    for size in range(free + 1):  # where a fold has fewer columns to offer, its largest support
        coef, intercept, _ = design.solve(supports[min(size, len(supports) - 1)])
        used = np.flatnonzero(coef)
        residual = y[test] - intercept - X[test][:, used] @ coef[used]
        errors[size] = np.average(residual**2, weights=_rows(weights, test))
    return errors


def _rows(weights: Floats | None, rows: Indices) -> Floats | None:
    return None if weights is None else weights[rows]
