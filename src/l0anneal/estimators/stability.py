"""How often a model chooses each column if it sees only a part of the rows.

The rows are drawn in pairs of disjoint subsamples, as proposed by Shah and Samworth (Journal of the
Royal Statistical Society B 75, 55–80, 2013) for the stability selection of Meinshausen and Bühlmann
(ibid. 72, 417–473, 2010). If a model chooses q of p columns on average, a column that it chooses
with a probability of no more than q/p is no likelier to be chosen than average. Among the columns
that are chosen in more than a fraction π > ½ of the subsamples, the expected number of such columns
is at most

    q² / (p (2π − 1)),

whatever the model and the data (their theorem 1, with subsamples of half of the rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_consistent_length

from l0anneal._util.checks import check_integer
from l0anneal._util.figures import COLORS, new_figure
from l0anneal._util.seeds import RandomState
from l0anneal.samplers.result import Record
from l0anneal.samplers.run import OnInterrupt, Run, RunStopped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["StabilityResult", "stability"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StabilityResult(Record):
    """The result of `stability`.

    Attributes
    ----------
    frequency : ndarray of shape (n_columns,)
        The fraction of subsamples in which each column was chosen.
    sizes : ndarray of int
        The number of columns chosen in each subsample.
    n_rows : int
        The number of rows in each subsample.
    paired : bool
        Whether the subsamples came in disjoint pairs.
    feature_names : tuple of str
        Names of the columns, x0, x1, ... if X has none. After a pipeline that makes columns of its
        own, these are the names of its columns.
    seed, seconds, interrupted, ended
        The run: its seed, wall-clock time, whether the user stopped it, and why it ended.

    See Also
    --------
    stability : Make subsamples and count.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import OrthogonalMatchingPursuit
    >>> from l0anneal import stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 10))
    >>> y = 2 * X[:, 3] + X[:, 7] + rng.standard_normal(80)
    >>> model = OrthogonalMatchingPursuit(n_nonzero_coefs=2)
    >>> result = stability(model, X, y, n_subsamples=10, random_state=0)
    >>> result.frequency[[3, 7]], result.n_rows
    (array([1., 1.]), 40)
    """

    frequency: NDArray[np.float64]
    sizes: NDArray[np.int64]
    n_rows: int
    paired: bool
    feature_names: tuple[str, ...]

    @property
    def n_subsamples(self) -> int:
        """The number of subsamples."""
        return self.sizes.size

    @property
    def order(self) -> Indices:
        """Column indices, the most frequent first."""
        return np.argsort(-self.frequency, kind="stable")

    def chosen(self, threshold: float = 0.75) -> Indices:
        """Return the columns that were chosen in more than a fraction of the subsamples."""
        return np.flatnonzero(self.frequency > threshold)

    def expected_false(self, threshold: float = 0.75) -> float:
        """Return a bound on the expected number of columns above the threshold that are there by luck.

        These are columns that are no likelier to be chosen than the average column. The bound holds
        for disjoint pairs of halves of the rows, and for a threshold above ½; otherwise it is NaN.
        """
        if not self.paired or not 0.5 < threshold <= 1:
            return np.nan
        return float(self.sizes.mean() ** 2 / (self.frequency.size * (2.0 * threshold - 1.0)))

    def to_dict(self) -> dict[str, Any]:
        """Return the frequencies of the columns that were chosen at all, as plain data."""
        names = self.feature_names
        often = {names[j]: float(self.frequency[j]) for j in self.order if self.frequency[j]}
        counts = {"n_subsamples": self.n_subsamples, "n_rows": self.n_rows}
        return {"frequency": often, **counts, **super().to_dict()}

    def table(self) -> list[dict[str, str]]:
        return [
            {"column": self.feature_names[j], "chosen in": f"{self.frequency[j]:.0%}"}
            for j in self.order[:20]
            if self.frequency[j] > 0
        ]

    def _lines(self) -> list[tuple[str, str]]:
        ever = int(np.sum(self.frequency > 0))
        lines = [
            ("subsamples", f"{self.n_subsamples} of {self.n_rows} rows each"),
            ("size", f"{self.sizes.mean():.1f} columns on average"),
            ("columns", f"{ever} of {self.frequency.size} chosen at least once"),
        ]
        for j in self.order[: min(10, ever)]:
            lines.append((f"{self.frequency[j]:7.0%}", _shortened(self.feature_names[j])))
        if ever > 10:
            lines.append(("", f"and {ever - 10} more"))
        return lines

    def figure(self) -> Figure:
        """Return the plot, for notebooks."""
        return self.plot()

    def plot(self, *, ax: Axes | None = None, most: int = 20) -> Figure:
        """Draw how often the most frequent columns were chosen."""
        ax = (
            new_figure(6.0, 0.8 + 0.22 * min(most, self.frequency.size)).subplots()
            if ax is None
            else ax
        )
        shown = [j for j in self.order[:most] if self.frequency[j] > 0][::-1]
        ax.barh(
            [_shortened(self.feature_names[j], 30) for j in shown],
            self.frequency[shown],
            color=COLORS["blue"],
        )
        ax.axvline(0.5, color=COLORS["black"], lw=0.8, ls=":")
        ax.set(
            xlim=(0.0, 1.0),
            xlabel=f"fraction of {self.n_subsamples} subsamples of {self.n_rows} rows",
            title="How often each column is chosen",
        )
        ax.spines[["top", "right"]].set_visible(False)
        return ax.get_figure()  # type: ignore[return-value]


def stability(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_subsamples: int = 100,
    fraction: float = 0.5,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: OnInterrupt = "raise",
) -> StabilityResult:
    """Tell how often a model chooses each column from random subsamples of the rows.

    A column that the model chooses from all rows, but only from few of the subsamples, depends on a
    few rows. Where columns stand in for each other, each of them is chosen now and then.

    Parameters
    ----------
    model : scikit-learn estimator
        A regressor, classifier or selector with ``get_support()`` or ``coef_`` after ``fit``, or a
        pipeline that ends with one; it is cloned and stays as it is. Columns with a coefficient of
        zero count as not chosen. A clone whose ``random_state`` is None gets a seed of its own.
    X : array, sparse matrix or DataFrame of shape (n_rows, n_columns)
        The columns.
    y : array of shape (n_rows,)
        The target. The subsamples of a classifier have the same fractions of all classes.
    n_subsamples : int
        The number of subsamples, and of fits.
    fraction : float
        The fraction of the rows in a subsample. Up to ½, subsamples come in pairs that have no row
        in common.
    n_jobs : int, optional
        The number of threads (−1: all cores). The result does not depend on it.
    time_limit : float, optional
        Wall-clock time in seconds after which no further fit begins. At least one is made. Give the
        result's ``n_subsamples`` in place of the limit to replay the run.
    random_state : None, int, SeedSequence or Generator
        Seed of the subsamples and of the models.
    progress : bool
        Show a progress bar.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the frequencies so far when the fits
        under way have ended.

    Returns
    -------
    StabilityResult

    See Also
    --------
    StabilityResult : The result.
    diagnose : Whether the search has done its work.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import AnnealedSubsetRegressor, stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 10))
    >>> y = 2 * X[:, 3] + X[:, 7] + rng.standard_normal(80)
    >>> model = AnnealedSubsetRegressor(2)
    >>> result = stability(model, X, y, n_subsamples=10, random_state=0)
    >>> result.chosen(0.9)
    array([3, 7])
    """
    n_subsamples = check_integer("n_subsamples", n_subsamples, 1)
    check_consistent_length(X, y)
    n = len(np.asarray(y))
    n_rows = _check_fraction(fraction, n)
    X = scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X
    X = X if hasattr(X, "iloc") or scipy.sparse.issparse(X) else np.asarray(X)
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])])]
    classes = np.asarray(y) if is_classifier(model) else None
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress,
        on_interrupt=on_interrupt,
        unit="fit",
    ) as run:

        def fit(index: int) -> dict[str, bool]:
            pair, second = (index // 2, index % 2) if 2 * n_rows <= n else (index, 0)
            rng = np.random.default_rng(run.stream("subsample", pair))
            rows = _subsample(rng, n, n_rows, second, classes)
            own = _seeded(clone(model), run.stream("subsample model", index))
            own.fit(_safe_indexing(X, rows), _safe_indexing(y, rows))
            run.advance()
            return _choice(own, names)

        run.expect(n_subsamples)
        choices: list[dict[str, bool]] = []
        try:
            while len(choices) < n_subsamples and not (choices and run.over):
                last = min(n_subsamples, len(choices) + run.n_threads)
                choices += run.map(fit, range(len(choices), last))
        except RunStopped:
            run.require(choices)
        ended = "all subsamples were fitted" if len(choices) == n_subsamples else "time limit"
        # columns that a pipeline makes, if they are not columns of X
        seen = list(dict.fromkeys(name for choice in choices for name in choice))
        columns = names if set(seen) <= set(names) else seen
        chosen = np.array([[choice.get(name, False) for name in columns] for choice in choices])
        return StabilityResult(
            frequency=chosen.mean(axis=0),
            sizes=chosen.sum(axis=1),
            n_rows=n_rows,
            paired=2 * n_rows <= n,
            feature_names=tuple(columns),
            **run.record(ended),
        )


def _check_fraction(fraction: float, n: int) -> int:
    """Return the number of rows in a subsample."""
    if not 0 < fraction < 1:
        raise ValueError(
            f"fraction must be between 0 and 1, the part of the rows in a subsample; got {fraction!r}"
        )
    n_rows = int(fraction * n)
    if n_rows < 2:
        raise ValueError(
            f"a subsample needs at least 2 rows; got fraction = {fraction} of {n} rows: raise fraction"
        )
    return n_rows


def _subsample(
    rng: np.random.Generator, n: int, n_rows: int, second: int, classes: NDArray[Any] | None
) -> Indices:
    """Draw the first or the second of two disjoint subsamples; the generator decides on both."""
    order = rng.permutation(n)
    if classes is not None:
        # spread the rows of each class evenly, so that any part of the order has its share of them
        _, label = np.unique(classes, return_inverse=True)
        place = np.empty(n)
        for c in range(label.max() + 1):
            rows = order[label[order] == c]
            place[rows] = (np.arange(rows.size) + rng.random()) / rows.size
        order = np.argsort(place, kind="stable")
    return np.sort(order[second * n_rows : (second + 1) * n_rows])


def _seeded(model: Any, seeds: np.random.SeedSequence) -> Any:
    """Give each ``random_state`` of a model that is None a seed."""
    parameters = model.get_params(deep=True)
    names = sorted(name for name in parameters if name.split("__")[-1] == "random_state")
    numbers = seeds.generate_state(max(1, len(names)), np.uint32) >> 1
    return model.set_params(
        **{n: int(seed) for n, seed in zip(names, numbers) if parameters[n] is None}
    )


def _choice(model: Any, names: list[str]) -> dict[str, bool]:
    """Return the columns that a fitted model had to choose from, and whether it chose each."""
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, Pipeline):
        if len(model) > 1:
            names = [str(name) for name in model[:-1].get_feature_names_out(names)]
        return _choice(model[-1], names)
    if hasattr(model, "get_support"):
        mask = np.asarray(model.get_support(), dtype=bool)
    elif hasattr(model, "coef_"):
        dense = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
        mask = np.any(np.atleast_2d(dense) != 0, axis=0)
    else:
        raise ValueError(
            f"{type(model).__name__} does not say which columns it chose; stability needs a model "
            "with get_support() or coef_: wrap it in sklearn.feature_selection.SelectFromModel"
        )
    return dict(zip(names, mask.tolist(), strict=True))


def _shortened(name: str, most: int = 60) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
