"""The scikit-learn face: linear regression on a few columns, chosen by annealing."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from l0anneal._util.seeds import seed_of
from l0anneal.estimators.path import (
    SubsetPath,
    check_k_max,
    choose_size,
    column_indices,
    subset_path,
)
from l0anneal.problem.projected import counting_as
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.evidence.anneal import evidence_anneal
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.kicks.search import kick_search

__all__ = ["AnnealedSubsetRegressor"]

BY_PATH = ("evidence", "bic", "ebic", "cv")
WORDS = "'auto', 'evidence', 'bic', 'ebic' or 'cv'"
LONGEST_PATH = 50
Floats = NDArray[np.float64]


class AnnealedSubsetRegressor(RegressorMixin, SelectorMixin, BaseEstimator):
    """Linear regression on the best few columns, found by annealing.

    Minimises ½‖y − Xβ − β₀‖² + ½α‖β‖² over β with few non-zeros. It is a regressor, and by
    ``transform`` a feature selector. Every fit is from scratch: one seed, one answer.

    Parameters
    ----------
    n_nonzero_coefs : int or {"auto", "evidence", "bic", "ebic", "cv"}
        How many columns, those of ``always_include`` among them. "auto": the evidence sampler
        finds which columns and how many, from their posterior probabilities. The others choose one of
        the best supports of each size by that criterion, see `choose` ("cv": 5 folds that each select
        anew, and the one-standard-error rule).
    fit_intercept : bool
        Whether to fit an intercept; it has no penalty and does not count as a column.
    always_include : array of indices, a mask, or names of columns of a DataFrame, optional
        Columns that are always there: projected out before the others are chosen, and so honoured
        exactly.
    alpha : float
        Ridge on the coefficients of the columns as they are given.
    averaging : {"auto", True, False}
        Which coefficients ``predict`` uses: ``averaged_coef_`` (True), ``coef_`` (False), or the
        former if ``n_nonzero_coefs`` is "auto" and the latter otherwise. The average over supports
        predicts better where the data do not decide between them: much noise, correlated columns.
        Where one support has nearly all the probability the two agree, and ``coef_`` is the simpler
        model. A fit computes both in any case.
    max_nonzero_coefs : int, optional
        The largest size that the criteria look at; by default the least of 50 columns
        beside those always included, half of the samples, and all columns.
    time_limit : float, optional
        Seconds for each of the runs that a fit is made of.
    n_chains : int
        Independent chains for a given number of columns; the best wins.
    n_jobs : int
        Threads for the chains, jobs for the folds. The result does not depend on it.
    random_state : None, int, RandomState, SeedSequence or Generator
        One seed, one result.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features_in_,) and float
        Least squares (with the ridge, if there is one) on ``support_``; zero elsewhere.
    support_ : ndarray
        Indices of the chosen columns, sorted. ``get_support()`` has the mask.
    inclusion_probability_ : ndarray of shape (n_features_in_,)
        Posterior probability that a column belongs to the support, among supports of all sizes
        ("auto") or of the size chosen. One for those always included, zero for columns that cannot be
        chosen: constant beside an intercept, or combinations of those always included.
    averaged_coef_, averaged_intercept_ : ndarray of shape (n_features_in_,) and float
        Posterior mean over supports and coefficients. Given a support its coefficients are shrunk,
        by one part in t² for a column whose t-statistic is t.
    path_ : SubsetPath or None
        The best support of each size, if ``n_nonzero_coefs`` is a criterion.
    result_ : EvidenceResult, KickResult or SubsetPath
        The run that chose the columns; for the first two, column j is ``candidates_[j]`` of X. None
        if there was nothing to choose.
    evidence_ : EvidenceResult or None
        The run that the probabilities and the average are from. None if there was nothing to
        choose, or too few samples to tell a noise level: the support then counts as certain.
    candidates_ : ndarray
        Columns that could be chosen.
    n_nonzero_coefs_ : int
        Size of the support.

    Notes
    -----
    ``sample_weight`` counts repetitions: a row of weight 2 is two rows, and the number of samples is
    the sum of the weights. (Folds of "cv" are of rows: there two copies of a row can part.) Where that
    leaves no degree of freedom at a given number of columns (weights that sum to one, say), the
    probabilities count rows instead.

    Sparse X is not made dense, also with an intercept: its Gram matrix is corrected for the means. That
    matrix is held whole up to 5792 columns. Beyond, its rows are computed when a chain asks for them,
    for which the engine keeps a dense copy of X if that takes no more than 512 MiB; if it takes more
    there is none, and chains are slow where they are hot.

    A ridge is made of as many additional rows as there are columns: for dense X wider than some ten
    thousand columns that takes memory.

    Of two equal columns at most one is chosen; which of them, the seed decides. No column is chosen
    that others in the support span.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal.estimators.subset_regressor import AnnealedSubsetRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 40))
    >>> y = 5.0 + X[:, [3, 30]] @ [1.0, -2.0] + 0.5 * rng.standard_normal(100)
    >>> model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
    >>> model.support_
    array([ 3, 30])
    >>> model.coef_[model.support_].round(1)
    array([ 1. , -2.1])
    """

    def __init__(
        self,
        n_nonzero_coefs: int | str = "auto",
        *,
        fit_intercept: bool = True,
        always_include: ArrayLike | None = None,
        alpha: float = 0.0,
        averaging: bool | Literal["auto"] = "auto",
        max_nonzero_coefs: int | None = None,
        time_limit: float | None = None,
        n_chains: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.fit_intercept = fit_intercept
        self.always_include = always_include
        self.alpha = alpha
        self.averaging = averaging
        self.max_nonzero_coefs = max_nonzero_coefs
        self.time_limit = time_limit
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> AnnealedSubsetRegressor:
        """Choose columns and fit them.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            The columns to choose from.
        y : array of shape (n_samples,)
            The target.
        sample_weight : array of shape (n_samples,), optional
            How many rows each row counts for.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, target = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=np.float64,
            y_numeric=True,
            ensure_min_samples=2,
        )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        names = getattr(self, "feature_names_in_", None)
        forced = column_indices(self.always_include, X.shape[1], names)
        seed = _seed(self.random_state)
        design = Design.of(
            X,
            target,
            fit_intercept=bool(self.fit_intercept),
            forced=forced,
            alpha=float(self.alpha),
            weights=weights,
        )
        self.path_: SubsetPath | None = None
        self.result_: Any = None
        self.evidence_: EvidenceResult | None = None
        limit: dict[str, Any] = {} if self.time_limit is None else {"time_limit": self.time_limit}
        if self.n_nonzero_coefs == "auto":
            support = self._by_evidence(design, seed, limit)
        else:
            if self.n_nonzero_coefs in BY_PATH:
                support = self._by_path(design, X, target, weights, seed)
            else:
                support = self._by_number(design, seed, limit)
            self._look_around(design, support.size, seed, limit)
        self._keep(design, support)
        return self

    def predict(self, X: Any) -> Floats:
        """Predict by ``averaged_coef_`` or ``coef_``, as ``averaging`` says.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            The columns, as in the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=np.float64, reset=False)
        averaged = self.averaging
        if averaged == "auto":
            averaged = self.n_nonzero_coefs == "auto"
        coef = self.averaged_coef_ if averaged else self.coef_
        intercept = self.averaged_intercept_ if averaged else self.intercept_
        return np.asarray(X @ coef + intercept)

    # ------------------------------------------------------------ ways to choose

    def _by_evidence(self, design: Design, seed: int, limit: dict[str, Any]) -> NDArray[np.int64]:
        problem = design.counted()
        if design.n_samples - design.n_projected < 1:
            raise ValueError(
                f"n_nonzero_coefs='auto' needs more samples: weights that sum to "
                f"{design.n_samples:g} leave nothing beside the intercept and the "
                "columns always included"
            )
        if design.candidates.size == 0:
            return np.zeros(0, dtype=np.int64)
        self.result_ = self.evidence_ = evidence_anneal(problem, random_state=seed, **limit)
        if self.evidence_.state == "trapped":
            warnings.warn(
                "the search found neither an exact representation nor a noise level that it could "
                "confirm: do not trust these columns; give more time or choose n_nonzero_coefs",
                ConvergenceWarning,
                stacklevel=3,
            )
        # under its slab the sampler may have two equal columns in a support; least squares may not
        return design.independent(self.evidence_.support, self.evidence_.inclusion_probability)

    def _by_number(self, design: Design, seed: int, limit: dict[str, Any]) -> NDArray[np.int64]:
        free = check_k_max(self.n_nonzero_coefs, design, "n_nonzero_coefs")
        if free == 0:
            return np.zeros(0, dtype=np.int64)
        self.result_ = kick_search(
            design.problem,
            free,
            n_chains=self.n_chains,
            n_jobs=self.n_jobs,
            random_state=seed,
            **limit,
        )
        return self.result_.support

    def _by_path(
        self, design: Design, X: Any, y: Floats, weights: Floats | None, seed: int
    ) -> NDArray[np.int64]:
        criterion = str(self.n_nonzero_coefs)
        most = self.max_nonzero_coefs
        if most is None:
            half = max(1, round(design.n_samples - design.n_projected) // 2)
            most = design.forced.size + min(design.most, LONGEST_PATH, half)
        path = subset_path(
            X,
            y,
            most,
            fit_intercept=bool(self.fit_intercept),
            always_include=design.forced,
            alpha=float(self.alpha),
            sample_weight=weights,
            cv=min(5, design.n_rows) if criterion == "cv" else None,
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            random_state=seed,
        )
        self.path_ = self.result_ = path
        size = choose_size(path, criterion)
        if size == most and size == design.forced.size + LONGEST_PATH:
            warnings.warn(
                f"{criterion} chose the largest size looked at, {most}: raise max_nonzero_coefs",
                stacklevel=3,
            )
        chosen = np.setdiff1d(path.support(size), design.forced)
        return np.searchsorted(design.candidates, chosen)

    def _look_around(self, design: Design, size: int, seed: int, limit: dict[str, Any]) -> None:
        """Sample supports of the size chosen, for probabilities and the average."""
        rows = design.n_rows - design.n_projected
        n_samples = round(design.n_samples) - design.n_projected
        if n_samples <= size:
            n_samples = rows
        if 0 < size < min(n_samples, design.candidates.size):
            problem = counting_as(design.problem, n_samples)
            self.evidence_ = evidence_anneal(problem, size, random_state=seed, **limit)

    def _keep(self, design: Design, support: NDArray[np.int64]) -> None:
        """Set what a fit leaves behind."""
        self.candidates_ = design.candidates
        self.coef_, self.intercept_, _ = design.solve(support)
        self.support_ = np.union1d(design.forced, design.candidates[support]).astype(np.int64)
        self.n_nonzero_coefs_ = int(self.support_.size)
        if self.evidence_ is None:
            probability = design.spread(np.ones(support.size), support)
            self.averaged_coef_, self.averaged_intercept_ = self.coef_, self.intercept_
        else:
            probability = design.spread(self.evidence_.inclusion_probability)
            self.averaged_coef_, self.averaged_intercept_ = design.complete(
                design.spread(self.evidence_.averaged_coef)
            )
        probability[design.forced] = 1.0
        self.inclusion_probability_ = probability

    # ------------------------------------------------------------ what scikit-learn asks

    def _check_parameters(self) -> None:
        k = self.n_nonzero_coefs
        if isinstance(k, str):
            if k != "auto" and k not in BY_PATH:
                raise ValueError(f"n_nonzero_coefs is an integer, {WORDS}; got {k!r}")
        elif isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 0:
            raise ValueError(f"n_nonzero_coefs is an integer ≥ 0, {WORDS}; got {k!r}")
        if not (self.averaging == "auto" or isinstance(self.averaging, (bool, np.bool_))):
            raise ValueError(f"averaging is 'auto', True or False; got {self.averaging!r}")
        if not (
            isinstance(self.alpha, numbers.Real) and math.isfinite(self.alpha) and self.alpha >= 0
        ):
            raise ValueError(f"alpha is the ridge, a number ≥ 0; got {self.alpha!r}")
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, numbers.Real) and limit > 0):
            raise ValueError(f"time_limit is a number of seconds > 0, or None; got {limit!r}")

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return seed_of(random_state)
