"""The best support of every size, and their errors on held-out rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_X_y
from sklearn.utils.validation import _check_sample_weight

from l0anneal._util.checks import check_positive, check_verbose
from l0anneal._util.seeds import RandomState, check_same_seed
from l0anneal.estimators.columns import check_free_columns, column_indices, feature_names
from l0anneal.estimators.criteria import choose_size, criteria_of
from l0anneal.estimators.folds import Fold, folds_of
from l0anneal.estimators.path_searches import AllRows, KeptSearches, search
from l0anneal.problem.joint_data import JointDesign, design_of
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.path_search import TO_THE_END, Supports
from l0anneal.samplers.result import Record
from l0anneal.samplers.run import OnInterrupt, Run

__all__ = ["SubsetPath", "subset_path", "subset_path_in"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SubsetPath(Record):
    """The best support of each size.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of columns, in steps of one. The first is the number of columns that are always
        included.
    supports : tuple of ndarrays
        The columns chosen at each size, sorted, including those that are always included.
    energies : ndarray of shape (n_sizes,)
        ½‖y − Xβ − β₀‖² at each size, which never increases with the size. Rows are weighted if
        there are weights, and ½α‖β‖² is added if there is a ridge penalty.
    coefs, intercepts : ndarrays of shape (n_sizes, n_columns) and (n_sizes,)
        Least squares on each support. If y has two dimensions, their shapes are (n_sizes, n_outputs,
        n_columns) and (n_sizes, n_outputs), and energies and errors are sums over the outputs.
    criteria : dict of str to ndarray
        The criteria at each size; lower is better. They are ``"evidence"`` (−2 log posterior probability
        of the support, up to a constant, with the model and the prior of `evidence_anneal`), ``"bic"``,
        ``"ebic"`` (which takes into account how many columns there were to choose from) and, if
        cross-validation was asked for,
        ``"cv"``, the mean squared error on held-out rows.
    cv_error : ndarray or None
        Standard error of ``criteria["cv"]``, from the spread over the folds.
    leave_one_out : ndarray
        Mean squared leave-one-out error with the support kept fixed. It is too low, because it
        ignores that the support was selected on the same rows, and no criterion uses it. NaN if the
        rows were read in blocks.
    n_samples : float
        The number of rows, or the sum of their weights.
    steps : tuple of int
        Numbers of steps of the search on all rows and of the search in each fold; −1 stands for a
        search that was not cut short, and lower numbers for one whose first pass was. Passed to
        `subset_path` together with the seed, they replay a run with a time limit exactly.
    seed, seconds, interrupted, ended
        The run: its seed, wall-clock time, whether the user stopped it, and why it ended.

    See Also
    --------
    subset_path : Compute a path.
    choose_size : Choose the number of columns.
    SubsetPathDisplay : Draw a path.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import subset_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 30))
    >>> y = X[:, [3, 7]] @ [1.0, -2.0] + 0.5 * rng.standard_normal(80)
    >>> path = subset_path(X, y, 6, random_state=0)
    >>> path.sizes, path.support(1)
    (array([0, 1, 2, 3, 4, 5, 6]), array([7]))
    """

    sizes: Indices
    supports: tuple[Indices, ...]
    energies: Floats
    coefs: Floats
    intercepts: Floats
    criteria: dict[str, Floats]
    leave_one_out: Floats
    n_samples: float
    steps: tuple[int, ...] = (-1,)
    cv_error: Floats | None = None
    feature_names: tuple[str, ...] | None = None

    @property
    def distortions(self) -> Floats:
        """The energies divided by the number of samples."""
        return self.energies / self.n_samples

    def support(self, size: int) -> Indices:
        """Return the support of a size.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import subset_path
        >>> path = subset_path(
        ...     np.eye(4), [0.0, 3.0, 0.0, 1.0], 2, fit_intercept=False, random_state=0
        ... )
        >>> path.support(1)
        array([1])
        """
        return self.supports[self.index(size)]

    def index(self, size: int) -> int:
        """Return the position of a size in ``sizes``."""
        place = int(size) - int(self.sizes[0])
        if not 0 <= place < self.sizes.size:
            raise ValueError(
                f"the path has sizes from {self.sizes[0]} to {self.sizes[-1]}; got {size}"
            )
        return place

    def plot(self) -> Any:
        """Draw the path; `SubsetPathDisplay` has more options. Returns a matplotlib figure."""
        from l0anneal.estimators.display import SubsetPathDisplay

        return SubsetPathDisplay.from_path(self).figure_

    def figure(self) -> Any:
        """Return the plot, for notebooks."""
        return self.plot()

    def to_dict(self) -> dict[str, Any]:
        """Return the path as plain data that JSON can hold."""
        return {
            "sizes": self.sizes.tolist(),
            "supports": [support.tolist() for support in self.supports],
            "energies": self.energies.tolist(),
            "criteria": {name: values.tolist() for name, values in self.criteria.items()},
            "steps": list(self.steps),
            **super().to_dict(),
        }

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("sizes", f"{self.sizes[0]} … {self.sizes[-1]} columns")]
        for name in [*self.criteria, *(["cv_min"] if "cv" in self.criteria else [])]:
            size = choose_size(self, name)
            shown = ", ".join(self._name(j) for j in self.support(size)[:8])
            more = ", …" if size > 8 else ""
            columns = f"{size} column{'s' * (size != 1)}"
            lines.append((name, f"{columns}: {shown}{more}" if shown else columns))
        return lines

    def table(self) -> list[dict[str, str]]:
        return [
            {"columns": str(size), "distortion": f"{distortion:.4g}"}
            | {name: f"{values[i]:.4g}" for name, values in self.criteria.items()}
            for i, (size, distortion) in enumerate(zip(self.sizes, self.distortions))
        ]

    def _name(self, j: int) -> str:
        return str(j) if self.feature_names is None else self.feature_names[j]


def subset_path(
    X: Any,
    y: ArrayLike,
    max_nonzero: int,
    *,
    fit_intercept: bool = True,
    always_include: ArrayLike | None = None,
    alpha: float = 0.0,
    sample_weight: ArrayLike | None = None,
    cv: Any = None,
    time_limit: float | None = None,
    steps: tuple[int, ...] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    verbose: bool | int = False,
    on_interrupt: OnInterrupt = "raise",
) -> SubsetPath:
    """Find the best columns for each size up to ``max_nonzero`` in one run.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (M, N)
        Columns to choose from.
    y : array of shape (M,) or (M, n_outputs)
        The target, or several of them. The supports of the path are then the same for all outputs: each
        has the smallest sum of squared errors over all of them. Outputs are not scaled, as in
        scikit-learn's ``MultiTaskLasso``, so that one with a large variance counts more; divide them by
        their standard deviations if all are to count alike.
    max_nonzero : int
        The largest number of columns, including those that are always included. The path ends
        earlier if there are fewer linearly independent columns.
    fit_intercept : bool
        Whether to fit an intercept, which does not count as a column.
    always_include : array of indices, a mask, or names of columns of a DataFrame, optional
        Columns that are part of every support.
    alpha : float
        Ridge penalty: ½α‖β‖² is added to half the squared error.
    sample_weight : array of shape (M,), optional
        A row of weight w counts as w rows.
    cv : int, splitter or iterable of (train, test), optional
        Cross-validate: each fold selects the columns of every size anew from its training rows. An
        integer means that many folds of shuffled rows.
    time_limit : float, optional
        Wall-clock seconds of the whole call, folds included, without the compilation of kernels. The
        first pass through the sizes, of the path and of each fold, is always made.
    steps : tuple of int, optional
        The ``steps`` of an earlier path with a time limit. Together with the seed of that run they
        replay it exactly. Give them in place of the time limit.
    checkpoint : path, optional
        A folder in which each search, the path's and each fold's, is kept as soon as it has ended. The
        same call with the same seed and the same folds continues where an earlier one was interrupted.
        With ``n_jobs``, the searches then run on joblib's workers, which are processes unless
        `joblib.parallel_config` says otherwise, for example ``parallel_config("dask")`` for those of a
        cluster.
    n_jobs : int
        Number of threads that the folds run in, or of workers if there is a checkpoint (−1: all
        cores). The result does not depend on it.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers. Without a time limit, the same seed gives the same result for
        any ``n_jobs``. None draws a new seed, which the path stores as ``seed``.
    progress : bool
        Show a progress bar on stderr: which part of the search is under way, and at which size.
    verbose : bool or int
        scikit-learn's word for the same: the bar is shown if either is true.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the path found so far. If cross-validation
        is interrupted, ``criteria`` has no "cv".

    Returns
    -------
    SubsetPath

    See Also
    --------
    choose_size : Choose the number of columns.
    SubsetPath : The result.
    SubsetPathDisplay : Draw a path.
    AnnealedSubsetRegressor : Path, choice and fit in one.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import choose_size, subset_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 30))
    >>> y = X[:, [3, 7]] @ [1.0, -2.0] + 0.5 * rng.standard_normal(80)
    >>> path = subset_path(X, y, 6, random_state=0)
    >>> choose_size(path, "ebic"), path.support(2)
    (2, array([3, 7]))

    One support for two outputs, of which each depends on one column:

    >>> Y = X[:, [3, 7]] + 0.5 * rng.standard_normal((80, 2))
    >>> path = subset_path(X, Y, 6, random_state=0)
    >>> path.support(2), path.coefs.shape
    (array([3, 7]), (7, 2, 30))
    """
    began, names = time.perf_counter(), feature_names(X)
    X, target = check_X_y(
        X,
        y,
        accept_sparse=["csr", "csc"],
        dtype=np.float64,
        y_numeric=True,
        multi_output=np.ndim(y) == 2,
    )
    target = np.asarray(target, dtype=np.float64)
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_positive("alpha", alpha, zero=True)
    if steps is not None and not isinstance(steps, (tuple, list)):
        raise ValueError(f"steps must be path.steps of an earlier run; got {steps!r}")
    if steps is not None and time_limit is not None:
        raise ValueError("give steps or a time limit, not both: steps replay an earlier run")
    if checkpoint is not None and (time_limit, steps, on_interrupt) != (None, None, "raise"):
        raise ValueError(
            f"a checkpoint keeps searches that have come to their end; got time_limit = {time_limit}, "
            f"steps = {steps} and on_interrupt = {on_interrupt!r}: leave these out, interrupt the "
            "call when you like, and repeat it"
        )
    if checkpoint is not None:
        check_same_seed(random_state)
    shown = progress or check_verbose(verbose)
    forced = column_indices(always_include, X.shape[1], names)
    options: dict[str, Any] = {
        "fit_intercept": fit_intercept,
        "forced": forced,
        "alpha": float(alpha),
    }
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=shown and checkpoint is None,
        on_interrupt=on_interrupt,
        unit="size",
    ) as run:
        run.count_from(began)
        run.note("preparing the data")
        design = design_of(X, target, weights=weights, **options)
        free = check_free_columns("max_nonzero", max_nonzero, design)
        folds = None if cv is None else folds_of(run, cv, X, target, weights, options)
        kept = None
        if checkpoint is not None:
            everything = AllRows(X, target, weights, options)
            kept = KeptSearches(checkpoint, everything, n_jobs, shown)
        return subset_path_in(run, design, free, folds, steps=steps, names=names, kept=kept)


def subset_path_in(
    run: Run,
    design: Design | JointDesign,
    free: int,
    folds: Sequence[Fold] | None = None,
    *,
    steps: tuple[int, ...] | None = None,
    names: tuple[str, ...] | None = None,
    kept: KeptSearches | None = None,
) -> SubsetPath:
    """Search inside a run that has begun, with arguments that have been checked."""
    folds = list(folds or [])
    if steps is not None and len(steps) != 1 + len(folds):
        raise ValueError(f"steps needs {1 + len(folds)} numbers, one a search; got {len(steps)}")
    each: list[int | None] = [None] * (1 + len(folds)) if steps is None else list(steps)
    n_rounds = 1 + math.ceil(len(folds) / run.n_threads)
    afterwards = _packing_seconds(run, design, free)
    if kept is None:
        found = search(run.part(run.left / n_rounds - afterwards), design, free, each[0])
    else:
        (found,) = kept.find([(kept.rows, free, run.seed)])
    path = _fields(design, found.supports)
    used, ended = [found.n_steps], found.ended
    if folds and not run.stopped:

        def seconds(index: int) -> float:
            """Return the time of a fold that begins now; those that end early leave theirs to it."""
            return run.left / max(1, n_rounds - 1 - (index - 1) // run.n_threads)

        jobs = list(zip(range(1, 1 + len(folds)), folds, each[1:]))
        largest = len(found.supports) - 1
        run.note(f"cross-validation, {len(folds)} folds")
        if kept is None:
            done = run.map(lambda job: _fold_errors(run, largest, seconds(job[0]), *job), jobs)
        else:
            each_found = kept.find([(fold, largest, _fold_seed(run, i)) for i, fold, _ in jobs])
            done = [
                (_errors(fold, fold.design(), supports, largest), supports.n_steps)
                for (_, fold, _), supports in zip(jobs, each_found)
            ]
        used += [n_steps for _, n_steps in done]
        if not run.interrupted:
            errors = np.array([errors for errors, _ in done])
            path["criteria"]["cv"] = errors.mean(axis=0)
            path["cv_error"] = errors.std(axis=0, ddof=1) / math.sqrt(len(folds))
    if not ended.startswith("time limit") and any(n_steps != TO_THE_END for n_steps in used):
        ended = "time limit"
    return SubsetPath(**path, **run.record(ended), steps=tuple(used), feature_names=names)


# ---------------------------------------------------------------- searches


def _packing_seconds(run: Run, design: Design | JointDesign, free: int) -> float:
    """Estimate how long `_fields` takes, from supports of a few sizes and from none."""
    if run.time_limit is None or free == 0:
        return 0.0

    def seconds(supports: list[Indices]) -> float:
        began = run.now()
        _fields(design, supports)
        return run.now() - began

    sizes = np.unique(np.linspace(0, free, 5, dtype=np.int64))
    some = seconds([np.arange(size) for size in sizes])
    once = seconds([])  # the prior, for example, is made once for all supports
    return once + (free + 1) / sizes.size * max(0.0, some - once)


def _fields(design: Design | JointDesign, supports: list[Indices]) -> dict[str, Any]:
    """Return everything that follows from the supports, as fields of a `SubsetPath`."""
    solved = [design.solve(support) for support in supports]
    energies = np.minimum.accumulate([energy for _, _, energy in solved])  # identity up to rounding
    chosen = [np.union1d(design.forced, design.candidates[support]) for support in supports]
    return {
        "sizes": design.forced.size + np.arange(len(supports)),
        "supports": tuple(columns.astype(np.int64) for columns in chosen),
        "energies": energies,
        "coefs": np.array([coef for coef, _, _ in solved]),
        "intercepts": np.array([intercept for _, intercept, _ in solved]),
        "criteria": criteria_of(design, supports, energies),
        "leave_one_out": np.array([design.leave_one_out(support) for support in supports]),
        "n_samples": design.n_samples,
    }


def _fold_seed(run: Run, index: int) -> int:
    words = run.stream("path fold", index).generate_state(2)
    return int(words[0]) << 32 | int(words[1])


def _fold_errors(
    run: Run, largest: int, seconds: float, index: int, fold: Fold, n_steps: int | None
) -> tuple[Floats, int]:
    """Select all columns on the training rows; return the errors and the steps of the search."""
    design = fold.design()
    part = run.part(seconds, random_state=_fold_seed(run, index), n_threads=1)
    found = search(part, design, min(largest, design.most), n_steps)
    return _errors(fold, design, found, largest), found.n_steps


def _errors(fold: Fold, design: Design | JointDesign, found: Supports, largest: int) -> Floats:
    """Return mean squared errors on the test rows by size."""
    errors = np.empty(largest + 1)
    for size in range(largest + 1):  # a fold with a lower rank uses its largest support
        support = found.supports[min(size, len(found.supports) - 1)]
        coef, intercept, _ = design.solve(support)
        errors[size] = fold.error(coef, intercept)
    return errors
