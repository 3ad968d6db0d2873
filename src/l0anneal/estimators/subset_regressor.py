"""Linear regression on a few columns, chosen by annealing, in the style of scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from l0anneal._util.checks import check_integer, check_positive
from l0anneal.estimators.columns import check_free_columns, column_indices
from l0anneal.estimators.criteria import CRITERIA, choose_size
from l0anneal.estimators.path import SubsetPath, folds_of, subset_path_in
from l0anneal.problem.projected import counting_as
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.evidence.anneal import evidence_anneal_in
from l0anneal.samplers.evidence.draws import CredibleSet
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.greedy import NOT_BEGUN
from l0anneal.samplers.kicks.search import kick_search_in
from l0anneal.samplers.run import OnInterrupt, OutOfTime, Run, RunStopped

__all__ = ["AnnealedSubsetRegressor"]

WORDS = ("auto", *CRITERIA)
LONGEST_PATH = 50
SEARCH = 0.85  # part of a time limit for the search; the rest is for the probabilities
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class AnnealedSubsetRegressor(RegressorMixin, SelectorMixin, BaseEstimator):
    """Linear regression on the best few columns, found by annealing.

    Minimises ½‖y − Xβ − β₀‖² + ½α‖β‖² over β with few non-zeros. The class is a regressor and, with
    ``transform``, a feature selector. Every fit starts from scratch, so that the same seed gives
    the same result.

    Parameters
    ----------
    n_nonzero_coefs : int or {"auto", "evidence", "bic", "ebic", "cv"}
        How many columns to choose, including those of ``always_include``. With "auto", evidence
        annealing finds which columns matter, and how many, from their posterior probabilities. With
        the name of a criterion, the best support of each size is found and the criterion chooses
        the size; see `choose_size`. "cv" uses 5 folds, each of which selects its own columns, and
        the one-standard-error rule.
    fit_intercept : bool
        Whether to fit an intercept, which has no penalty and does not count as a column.
    always_include : array of indices, a mask, or names of columns of a DataFrame, optional
        Columns that are part of every support. They are projected out of y and of the other columns
        before the others are chosen.
    alpha : float
        Ridge penalty ½α‖β‖² on the coefficients of the columns as they are given.
    averaging : {"auto", True, False}
        Which coefficients ``predict`` uses: ``averaged_coef_`` (True), ``coef_`` (False), or the
        former if ``n_nonzero_coefs`` is "auto" and the latter otherwise. The average over supports
        predicts better if the data do not decide between supports, because there is much noise or
        because columns are correlated. If one support has nearly all the probability, the two
        agree, and ``coef_`` is the simpler model. A fit always computes both.
    max_nonzero_coefs : int, optional
        The largest number of columns that the criteria consider. By default, up to 50 columns are
        considered in addition to those always included, but no more than half the number of samples
        and no more than there are columns to choose from.
    time_limit : float, optional
        Wall-clock time of the whole fit in seconds, including all folds but not the compilation of
        kernels.
    n_chains : int
        Number of independent chains if ``n_nonzero_coefs`` is a number; the best chain is used.
    n_jobs : int
        Number of threads (−1: all cores). The result does not depend on it.
    random_state : None, int, RandomState, SeedSequence or Generator
        Seed of the random numbers. Without a time limit, the same seed gives the same result for
        any ``n_jobs``. None draws a new seed, which ``result_`` stores as ``seed``.
    progress : bool
        Show a progress bar.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does during ``fit``: raise KeyboardInterrupt, or keep the best columns found so far,
        with a warning and ``interrupted_`` set.
    replay : dict, optional
        ``replay_`` of an earlier fit with a time limit. With the seed of that fit, and without a time
        limit, it repeats the fit exactly.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features_in_,) and float
        Least squares (with the ridge, if there is one) on ``support_``; zero elsewhere.
    support_ : ndarray
        Indices of the chosen columns, sorted. ``get_support()`` has the mask.
    inclusion_probability_ : ndarray of shape (n_features_in_,)
        Posterior probability that a column belongs to the support, among supports of all sizes
        ("auto") or of the chosen size. It is one for columns that are always included. It is zero
        for columns that cannot be chosen because they are constant (if there is an intercept) or
        linear combinations of the columns always included.
    averaged_coef_, averaged_intercept_ : ndarray of shape (n_features_in_,) and float
        Posterior mean over supports and coefficients. Within a support, coefficients are shrunk
        towards zero: that of a column with t-statistic t by about a fraction 1/t².
    path_ : SubsetPath or None
        The best support of each size, if ``n_nonzero_coefs`` is a criterion.
    result_ : EvidenceResult, KickResult or SubsetPath
        The result of the run that chose the columns. In an EvidenceResult or KickResult, column j
        is column ``candidates_[j]`` of X. None if there was no column to choose.
    evidence_ : EvidenceResult or None
        The result of the run that gave the probabilities and the average. None if there was no
        column to choose, if the fit was interrupted, or if there are too few samples to infer a
        noise level: the support then counts as certain.
    candidates_ : ndarray
        Indices of the columns of X that could be chosen.
    n_nonzero_coefs_ : int
        Size of the support.
    interrupted_ : bool
        Whether Ctrl-C ended the fit.
    replay_ : dict
        The numbers of steps that the fit made, for ``replay``.

    Notes
    -----
    ``sample_weight`` counts repetitions: a row of weight 2 is two rows, and the number of samples
    is the sum of the weights. (The folds of "cv" consist of rows, so two copies of a row can be in
    different folds.) If the weights are so small that no degree of freedom is left at the chosen
    number of columns, for instance if they sum to one, the probabilities count each row once
    instead.

    Sparse X stays sparse, also with an intercept, because only its Gram matrix is corrected for the
    means. The Gram matrix is kept in memory for up to 5792 columns. With more columns, its rows are
    computed when they are needed. A dense copy of X is kept for this purpose if it takes no more
    than 512 MiB; without this copy, chains are slow at high temperatures.

    With a ridge penalty, X is extended internally by as many rows as it has columns. For dense X
    with more than about ten thousand columns, this takes much memory.

    Of two equal columns at most one is chosen, and the seed decides which. A column that is a
    linear combination of other columns in the support is never chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import AnnealedSubsetRegressor
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
        progress: bool = False,
        on_interrupt: OnInterrupt = "raise",
        replay: Mapping[str, Any] | None = None,
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
        self.progress = progress
        self.on_interrupt = on_interrupt
        self.replay = replay

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
        began = time.perf_counter()
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
        with Run(
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            progress=self.progress,
            on_interrupt=self.on_interrupt,
        ) as run:
            run.count_from(began)
            self._choose(run, X, target, weights)
            self.interrupted_ = run.interrupted
        if self.interrupted_:
            warnings.warn(
                "the fit was interrupted: these are the best columns found so far",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Floats:
        """Predict with ``averaged_coef_`` or ``coef_``, depending on ``averaging``.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            The columns, as in the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=np.float64, reset=False)
        averaged = self.averaging
        if averaged == "auto":
            averaged = self.n_nonzero_coefs == "auto"
        coef = self.averaged_coef_ if averaged else self.coef_
        intercept = self.averaged_intercept_ if averaged else self.intercept_
        return np.asarray(X @ coef + intercept)

    def credible_sets(self, coverage: float = 0.95, min_purity: float = 0.5) -> list[CredibleSet]:
        """Return disjoint sets of columns, each with at least one member in the support.

        If columns are correlated, the data may show that one of them matters without showing which
        one. Columns that are always included are in no set.

        Parameters
        ----------
        coverage : float
            Least posterior probability that at least one member belongs to the support.
        min_purity : float
            Least absolute correlation between two members of a set, after regression on the
            intercept and the columns always included.

        Returns
        -------
        list of CredibleSet
            The columns are those of X; the sets have ``names`` if X was a DataFrame.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import AnnealedSubsetRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 20))
        >>> X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(100)  # a near copy
        >>> y = X[:, 0] + X[:, 9] + rng.standard_normal(100)
        >>> model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
        >>> [sorted(found.columns.tolist()) for found in model.credible_sets()]
        [[9], [0, 1]]
        """
        check_is_fitted(self)
        if self.evidence_ is None:
            return []
        names = getattr(self, "feature_names_in_", None)
        found = []
        for one in self.evidence_.credible_sets(coverage, min_purity):
            columns = self.candidates_[one.columns]
            labels = () if names is None else tuple(str(names[j]) for j in columns)
            found.append(replace(one, columns=columns, names=labels))
        return found

    # ------------------------------------------------------------ ways to choose

    def _choose(self, run: Run, X: Any, y: Floats, weights: Floats | None) -> None:
        """Choose columns inside a run, and set the fitted attributes."""
        names = getattr(self, "feature_names_in_", None)
        options: dict[str, Any] = {
            "fit_intercept": bool(self.fit_intercept),
            "forced": column_indices(self.always_include, X.shape[1], names),
            "alpha": float(self.alpha),
        }
        design = Design.of(X, y, weights=weights, **options)
        self.path_: SubsetPath | None = None
        self.result_: Any = None
        self.evidence_: EvidenceResult | None = None
        self.replay_: dict[str, Any] = {}
        if self.n_nonzero_coefs == "auto":
            support = self._by_evidence(run, design)
        else:
            search = run.part(SEARCH * run.left)
            if isinstance(self.n_nonzero_coefs, str):
                folds = None
                if self.n_nonzero_coefs == "cv":
                    folds = folds_of(run, min(5, design.n_rows), X, y, weights, options)
                support = self._by_path(search, design, folds, names)
            else:
                support = self._by_number(search, design)
            with suppress(RunStopped):  # the support is found; without probabilities it is certain
                self._sample_around(run.part(), design, support.size)
        self._keep(design, support)

    def _by_evidence(self, run: Run, design: Design) -> Indices:
        problem = design.counted()
        if design.n_samples - design.n_projected < 1:
            raise ValueError(
                f"n_nonzero_coefs='auto' needs more samples: weights that sum to "
                f"{design.n_samples:g} leave nothing beside the intercept and the "
                "columns always included"
            )
        if design.candidates.size == 0:
            return np.zeros(0, dtype=np.int64)
        if (self.replay or {}).get("schedule", "") is None:
            raise ValueError(
                "the fit of this replay had no time to begin: give a longer time_limit"
            )
        self.result_ = self.evidence_ = self._sampled(run, problem)
        if self.evidence_.state == "trapped" and not run.interrupted:
            why = (
                "the search found neither an exact representation nor a noise level that it could "
            )
            why += "confirm: do not trust these columns; "
            if self.evidence_.ended == NOT_BEGUN:
                why = (
                    "time_limit was too short for the search: these columns were chosen greedily; "
                )
            raise_limit = "" if self.time_limit is None else "raise time_limit, "
            warnings.warn(
                f"{why}{raise_limit}collect more samples, or choose n_nonzero_coefs",
                ConvergenceWarning,
                stacklevel=4,
            )
        if self.evidence_.state == "disagreed" and not run.interrupted:
            warnings.warn(
                "independent chains found different columns (inclusion probabilities differ by up to "
                f"{self.evidence_.disagreement:.2f}): the probabilities are uncertain; collect more "
                "samples, or choose n_nonzero_coefs",
                ConvergenceWarning,
                stacklevel=4,
            )
        # the sampler's slab allows for two equal columns in a support; least squares does not
        return design.independent(self.evidence_.support, self.evidence_.inclusion_probability)

    def _by_number(self, run: Run, design: Design) -> Indices:
        free = check_free_columns("n_nonzero_coefs", self.n_nonzero_coefs, design)
        if free == 0:
            return np.zeros(0, dtype=np.int64)
        n_kicks = (self.replay or {}).get("n_kicks")
        self.result_ = kick_search_in(run, design.problem, free, n_kicks, n_chains=self.n_chains)
        self.replay_["n_kicks"] = self.result_.n_kicks.tolist()
        return self.result_.support

    def _by_path(self, run: Run, design: Design, folds: Any, names: Any) -> Indices:
        criterion = str(self.n_nonzero_coefs)
        most = self.max_nonzero_coefs
        if most is None:
            half = max(1, round(design.n_samples - design.n_projected) // 2)
            most = design.forced.size + min(design.most, LONGEST_PATH, half)
        free = check_free_columns("max_nonzero_coefs", most, design)
        names = None if names is None else tuple(names)
        steps = (self.replay or {}).get("steps")
        path = subset_path_in(run, design, free, folds, steps=steps, names=names)
        self.path_ = self.result_ = path
        self.replay_["steps"] = path.steps
        if criterion not in path.criteria:  # the cross-validation was interrupted
            criterion = "evidence"
        size = choose_size(path, criterion)
        if size == most and size == design.forced.size + LONGEST_PATH:
            warnings.warn(
                f"{criterion} chose the largest size that it considered, {most}: "
                "raise max_nonzero_coefs",
                stacklevel=4,
            )
        chosen = np.setdiff1d(path.support(size), design.forced)
        return np.searchsorted(design.candidates, chosen)

    def _sampled(self, run: Run, problem: Any, size: int | None = None) -> EvidenceResult:
        schedule = (self.replay or {}).get("schedule")
        if schedule is None and "schedule" in (self.replay or {}):
            raise OutOfTime  # as in the fit that is replayed
        result = evidence_anneal_in(run, problem, size, schedule=schedule)
        begun = result.ended != NOT_BEGUN
        self.replay_["schedule"] = result.schedule if begun else None
        return result

    def _sample_around(self, run: Run, design: Design, size: int) -> None:
        """Sample supports of the chosen size, for probabilities and the average."""
        rows = design.n_rows - design.n_projected
        n_samples = round(design.n_samples) - design.n_projected
        if n_samples <= size:
            n_samples = rows
        if 0 < size < min(n_samples, design.candidates.size):
            problem = counting_as(design.problem, n_samples)
            evidence = self._sampled(run, problem, size)
            if not run.interrupted and evidence.ended != NOT_BEGUN:
                self.evidence_ = evidence

    def _keep(self, design: Design, support: NDArray[np.int64]) -> None:
        """Set the fitted attributes."""
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

    # ------------------------------------------------------------ what scikit-learn requires

    def _check_parameters(self) -> None:
        k = self.n_nonzero_coefs
        if isinstance(k, str):
            if k not in WORDS:
                words = ", ".join(repr(word) for word in WORDS)
                raise ValueError(f"n_nonzero_coefs must be an integer or one of {words}; got {k!r}")
        else:
            check_integer("n_nonzero_coefs", k, 0)
        if not (self.averaging == "auto" or isinstance(self.averaging, (bool, np.bool_))):
            raise ValueError(f"averaging must be 'auto', True or False; got {self.averaging!r}")
        check_positive("alpha", self.alpha, zero=True)
        check_integer("n_chains", self.n_chains, 1)
        if self.replay is not None and self.time_limit is not None:
            raise ValueError("give replay or a time limit, not both: replay repeats an earlier fit")

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
