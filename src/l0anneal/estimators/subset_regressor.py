"""Linear regression on a few columns, chosen by annealing, in the style of scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from l0anneal._util.checks import check_integer, check_positive, check_verbose
from l0anneal._util.seeds import seed_of, stream_of
from l0anneal.estimators.columns import check_columns
from l0anneal.estimators.criteria import CRITERIA
from l0anneal.estimators.fitted_regression import FittedRegression
from l0anneal.estimators.joint_targets import fit_jointly
from l0anneal.estimators.single_target import CROSS_VALIDATED, fit_target
from l0anneal.estimators.targets import check_target
from l0anneal.estimators.training_data import N_FOLDS, Rows, SummedRows
from l0anneal.problem.row_blocks import labelled, sum_rows
from l0anneal.problem.row_sources import is_dask, sum_dask
from l0anneal.problem.row_sums import Folds, RowSums
from l0anneal.samplers.run import OnInterrupt, Run

__all__ = ["AnnealedSubsetRegressor"]

WORDS = ("auto", *CRITERIA)
INTERRUPTED = "the fit was interrupted: these are the best columns found so far"


class AnnealedSubsetRegressor(FittedRegression, RegressorMixin, SelectorMixin, BaseEstimator):
    """Linear regression on the best few columns, found by annealing.

    Minimises ½‖y − Xβ − β₀‖² + ½α‖β‖² over β with few non-zeros. The class is a regressor and, with
    ``transform``, a feature selector. Every fit starts from scratch, so that the same seed gives
    the same result.

    Parameters
    ----------
    n_nonzero_coefs : int or {"auto", "evidence", "bic", "ebic", "cv", "cv_min"}
        How many columns to choose, including those of ``always_include``. With "auto", evidence
        annealing finds which columns matter, and how many, from their posterior probabilities. With
        the name of a criterion, the best support of each size is found and the criterion chooses
        the size; see `choose_size`. "cv" and "cv_min" use 5 folds, each of which selects its own
        columns; "cv_min" takes the size with the lowest error, and "cv" the smallest size within one
        standard error of it.
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
    rho : float, pair of floats, or array of shape (n_features,), optional
        What is known of the columns before the fit, with "auto" only: the probability that a column
        matters; or the parameters (a, b) of a Beta prior on it, as a tuple; or a probability for each
        column, where 0 excludes a column and 1 always includes it. By default it is learned; see
        `evidence_anneal`.
    groups : list of lists of columns, optional
        Columns that enter and leave together, such as the dummies of one variable, by index or by name,
        with "auto" only. A group counts as one column.
    slab : {"learned", "one hump", "two humps"}
        The shape of the prior on the coefficients of unit-norm columns, with "auto" only: Gaussian
        around zero, Gaussian around plus and minus a learned size, or learned from the data.
    noise_variance : float, optional
        The variance of y around the regression, if it is known, with "auto" only; by default it is
        inferred. It is that of each row or, with ``sample_weight``, of each of its repetitions.
    joint : bool
        If y has several columns, whether to choose one support for all of them: the columns with the
        smallest sum of squared errors over all outputs. The outputs are not scaled, as in scikit-learn's
        ``MultiTaskLasso``, so that one with a large variance counts more. ``n_nonzero_coefs`` must be a
        number or a criterion; "auto" fits the columns of y one by one. The chosen support counts as
        certain: there are no probabilities between 0 and 1, and no average over supports.
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
        Show a progress bar on stderr: what the fit is doing, and for how long.
    verbose : bool or int
        scikit-learn's word for the same: the bar is shown if either is true.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does during ``fit``: raise KeyboardInterrupt, or keep the best columns found so far,
        with a warning and ``interrupted_`` set.
    replay : dict, optional
        ``replay_`` of an earlier fit with a time limit. With the seed of that fit, and without a time
        limit, it repeats the fit exactly.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,) and float
        Least squares (with the ridge, if there is one) on ``support_``; zero elsewhere.
    support_ : ndarray
        Indices of the chosen columns, sorted. ``get_support()`` has the mask.
    inclusion_probability_ : ndarray of shape (n_features,)
        Posterior probability that a column belongs to the support, among supports of all sizes
        ("auto") or of the chosen size. It is one for columns that are always included. It is zero
        for columns that cannot be chosen because they are constant (if there is an intercept) or
        linear combinations of the columns always included.
    averaged_coef_, averaged_intercept_ : ndarray of shape (n_features,) and float
        Posterior mean over supports and coefficients. Within a support, coefficients are shrunk
        towards zero: that of a column with t-statistic t by about a fraction 1/t².
    coef_std_, intercept_std_ : ndarray of shape (n_features,) and float
        Posterior standard deviations. If ``evidence_`` is None, they are those of least squares on
        the chosen columns.
    noise_variance_ : float
        Variance of y around the regression; NaN if there are as many coefficients as samples.
    r2_ : float
        Part of the variance of y that ``coef_`` explains on the rows of the fit.
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
    two_valued_ : bool
        Whether y had only the values 0 and 1.
    estimators_ : list of AnnealedSubsetRegressor
        Only if y has two dimensions: a fitted regressor for each column of y. The attributes above are
        then stacked (``coef_`` has shape (n_outputs, n_features)), ``path_``, ``result_`` and
        ``evidence_`` are lists, and ``support_`` is the union of all supports.
    interrupted_ : bool
        Whether Ctrl-C ended the fit.
    replay_ : dict
        The numbers of steps that the fit made, for ``replay``.

    See Also
    --------
    subset_path : The best columns of every size.
    stability : How the choice depends on the rows.
    evidence_anneal : The sampler behind the probabilities.
    diagnose : Decide whether to trust the result.

    Notes
    -----
    ``sample_weight`` counts repetitions: a row of weight 2 is two rows, and the number of samples
    is the sum of the weights. (The folds of "cv" consist of rows, so two copies of a row can be in
    different folds.) If the weights are so small that no degree of freedom is left at the chosen
    number of columns, for instance if they sum to one, the probabilities count each row once
    instead.

    Without ``joint``, columns of a y with two dimensions are fitted one by one, each as if it were the
    only one and with the same seed, so that each has its own support, for a number of columns as for
    "auto". They share the time limit. Ctrl-C keeps the best so far only during the last of them.

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

    Three columns for two outputs together:

    >>> Y = X[:, [3, 30]] + X[:, [8]] + 0.5 * rng.standard_normal((100, 2))
    >>> model = AnnealedSubsetRegressor(3, joint=True, random_state=0).fit(X, Y)
    >>> model.support_, model.coef_.shape
    (array([ 3,  8, 30]), (2, 40))
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
        rho: float | tuple[float, float] | ArrayLike | None = None,
        groups: Sequence[ArrayLike] | None = None,
        slab: str = "learned",
        noise_variance: float | None = None,
        joint: bool = False,
        time_limit: float | None = None,
        n_chains: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
        verbose: bool | int = False,
        on_interrupt: OnInterrupt = "raise",
        replay: Mapping[str, Any] | None = None,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.fit_intercept = fit_intercept
        self.always_include = always_include
        self.alpha = alpha
        self.averaging = averaging
        self.max_nonzero_coefs = max_nonzero_coefs
        self.rho = rho
        self.groups = groups
        self.slab = slab
        self.noise_variance = noise_variance
        self.joint = joint
        self.time_limit = time_limit
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.verbose = verbose
        self.on_interrupt = on_interrupt
        self.replay = replay

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> AnnealedSubsetRegressor:
        """Choose columns and fit them.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            The columns to choose from. A Dask array or data frame is read partition by partition, as
            by ``fit_blocks``; y and the weights must then have the same partitions.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            The target, or several of them, which are fitted one by one unless ``joint`` is true.
        sample_weight : array of shape (n_samples,), optional
            How many rows each row counts for.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X):
            return self._fit_sums(lambda folds: sum_dask(X, y, weights=sample_weight, folds=folds))
        began = time.perf_counter()
        check_columns(X)
        X, target = validate_data(
            self,
            X,
            check_target(y),
            accept_sparse=["csr", "csc"],
            dtype=np.float64,
            y_numeric=True,
            multi_output=True,
            ensure_min_samples=2,
        )
        target = np.asarray(target, dtype=np.float64)
        columns = target[:, None] if target.ndim == 1 else target
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        each = [Rows(X, column, weights) for column in columns.T]
        with self._run(self.random_state) as run:
            run.count_from(began)
            run.note("preparing the data")
            together = bool(self.joint) and columns.shape[1] > 1
            fits = []
            if together:
                fits = fit_jointly(self, run, X, columns, weights, dict(self.replay or {}))
            for i, replay in enumerate([] if together else self._replays(columns.shape[1])):
                if len(columns.T) > 1:
                    run.note(f"output {i + 1} of {columns.shape[1]}")
                part = run.part(run.left / (columns.shape[1] - i)) if len(columns.T) > 1 else run
                fits.append(fit_target(self, part, each[i], replay))
            interrupted = run.interrupted
        self.interrupted_ = interrupted
        if target.ndim == 1:
            self._keep(fits[0], each[0])
        else:
            self._keep_all(fits, each, getattr(y, "columns", None))
            if together:
                self.replay_ = fits[0].replay
        if interrupted:
            warnings.warn(INTERRUPTED, ConvergenceWarning, stacklevel=2)
        return self

    def fit_blocks(
        self, blocks: Iterable[Any], *, feature_names: Sequence[str] | None = None
    ) -> AnnealedSubsetRegressor:
        """Choose columns and fit them, from blocks of rows that are read once and not kept.

        The fitted attributes and ``predict`` are those of ``fit`` on all rows together, up to rounding.
        Only sums of products are kept: a matrix of shape (n_features, n_features) and, for "cv", five of
        them.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            The blocks: X of shape (rows, n_features), an array, sparse matrix or DataFrame, and y of
            shape (rows,).
        feature_names : sequence of str, optional
            Names of the columns; by default those of the first block, if it is a DataFrame.

        Returns
        -------
        self

        Notes
        -----
        What needs the rows again is not there: ``leave_one_out`` of ``path_`` is NaN, and y has one
        column only. The folds of "cv" are drawn at random row by row, so that they differ from those of
        ``fit``. ``time_limit`` is for the search and begins when all rows have been read. Products of
        columns do not show noise below 10⁻⁷ of the norm of y; a fit that leaves less counts as exact.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import AnnealedSubsetRegressor
        >>> def blocks():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(10):
        ...         X = rng.standard_normal((1000, 20))
        ...         yield X, 3.0 + X[:, 4] - X[:, 7] + rng.standard_normal(1000)
        >>> model = AnnealedSubsetRegressor(random_state=0).fit_blocks(blocks())
        >>> model.support_, round(model.intercept_, 1)
        (array([4, 7]), 3.0)
        """
        self._check_parameters()
        return self._fit_sums(
            lambda folds: sum_rows(labelled(blocks), names=feature_names, folds=folds)
        )

    def _fit_sums(self, read: Callable[[Folds | None], RowSums]) -> AnnealedSubsetRegressor:
        """Add up rows, divided into folds if these are needed, and fit the sums."""
        seed, folds = seed_of(self.random_state), None
        if self.n_nonzero_coefs in CROSS_VALIDATED:
            words = stream_of(seed, "path shuffle").generate_state(4)
            folds = Folds(N_FOLDS, tuple(words.tolist()))
        data = SummedRows(read(folds))
        if data.total.n_rows < 2:
            raise ValueError("the blocks have 1 row of positive weight; a fit needs at least 2")
        self.n_features_in_ = data.n_columns
        if data.sums.names is not None:
            self.feature_names_in_ = np.array(data.sums.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        with self._run(seed) as run:
            run.note("preparing the data")
            fit = fit_target(self, run, data, self._replays(1)[0])
            self.interrupted_ = run.interrupted
        self._keep(fit, data)
        if self.interrupted_:
            warnings.warn(INTERRUPTED, ConvergenceWarning, stacklevel=3)
        return self

    def _run(self, random_state: Any) -> Run:
        return Run(
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            random_state=random_state,
            progress=bool(self.progress) or check_verbose(self.verbose),
            on_interrupt=self.on_interrupt,
        )

    def _replays(self, n_outputs: int) -> list[dict[str, Any]]:
        """Return what to replay of each target."""
        replay = dict(self.replay or {})
        if "outputs" not in replay:
            return [replay] * n_outputs
        if len(replay["outputs"]) != n_outputs:
            raise ValueError(
                f"replay is of a fit with {len(replay['outputs'])} columns of y; got {n_outputs}"
            )
        return list(replay["outputs"])

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
        if self.joint and k == "auto":
            raise ValueError(
                "joint=True needs a number of columns or a criterion as n_nonzero_coefs; 'auto' fits "
                "the columns of y one by one: give, for instance, n_nonzero_coefs='evidence'"
            )
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
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
