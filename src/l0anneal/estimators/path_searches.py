"""The searches of a path: one on all rows, one for each fold; and how they are kept on disk."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal._util.provenance import ENGINE
from l0anneal.engine.warm_up import warm_up
from l0anneal.estimators.folds import RowFold
from l0anneal.problem.joint_data import JointDesign, design_of
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.joint_search import joint_path
from l0anneal.samplers.path_search import TO_THE_END, Supports, best_of_every_size
from l0anneal.samplers.run import Run
from l0anneal.tasks.collect import collect
from l0anneal.tasks.store import Store
from l0anneal.tasks.task import StoredTask, array_digest

__all__ = ["AllRows", "KeptSearches", "search"]


def search(
    run: Run, design: Design | JointDesign, free: int, n_steps: int | None = None
) -> Supports:
    """Find the best support of each size up to ``free`` columns that may be chosen."""
    if design.candidates.size == 0:
        return Supports([np.zeros(0, dtype=np.int64)], TO_THE_END, "there is no column to choose")
    if isinstance(design, JointDesign):
        return joint_path(run, design.problem, design.correlations(), free, n_steps)
    return best_of_every_size(run, design.problem, free, n_steps)


@dataclass(frozen=True)
class AllRows:
    """All rows of a problem, and how to prepare them."""

    X: Any
    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    options: dict[str, Any]

    def design(self) -> Design | JointDesign:
        """Return the prepared rows."""
        return design_of(self.X, self.y, weights=self.weights, **self.options)


@dataclass(frozen=True, eq=False)
class PathSearch(StoredTask):
    """The best supports of some rows, identified by everything that they depend on."""

    rows: AllRows | RowFold
    data: str
    free: int
    seed_of_run: int
    format = "PathSearch/1"

    @property
    def engine(self) -> int:
        """The engine of this version."""
        return ENGINE

    def content(self) -> Mapping[str, Any]:
        """Return hashes of the data and of the rows that are searched, the size and the seed."""
        return {
            "data": self.data,
            "rows": array_digest(self.rows.train) if isinstance(self.rows, RowFold) else "all",
            "free": self.free,
            "seed": str(self.seed_of_run),
        }


def _run_search(task: PathSearch) -> tuple[dict[str, NDArray[Any]], float]:
    """Search, on any worker."""
    began = time.process_time()
    design = task.rows.design()
    with Run(random_state=task.seed_of_run, n_jobs=1) as run:
        found = search(run, design, min(task.free, design.most))
    arrays = {
        "columns": np.concatenate(found.supports),
        "sizes": np.array([support.size for support in found.supports]),
        "ended": np.array(found.ended),
    }
    return arrays, time.process_time() - began


class KeptSearches:
    """Searches that run on joblib's workers, and whose supports are kept in a folder.

    Parameters
    ----------
    directory : path
        The folder. Searches that it has are not run again.
    rows : AllRows
        The data.
    n_jobs : int, optional
        The number of workers.
    progress : bool
        Show a bar that counts searches.
    """

    def __init__(
        self, directory: str | PathLike[str], rows: AllRows, n_jobs: int | None, progress: bool
    ) -> None:
        self.store, self.rows = Store(directory), rows
        self.n_jobs, self.progress = n_jobs, progress
        self.data = _data_digest(rows)
        self.store.directory.mkdir(parents=True, exist_ok=True)

    def find(self, searches: Sequence[tuple[Any, int, int]]) -> list[Supports]:
        """Return the supports for rows, number of free columns and seed of each search."""
        tasks = [PathSearch(rows, self.data, free, seed) for rows, free, seed in searches]
        done = collect(
            tasks,
            self.store,
            _run_search,
            prepare=lambda: warm_up("auto"),
            n_jobs=self.n_jobs,
            progress=self.progress,
            unit="search",
        )
        if done.failures:
            failure = done.failures[0]
            raise RuntimeError(
                f"{len(done.failures)} of {len(tasks)} searches failed, the first with "
                f"{failure.error}; the others are kept in {self.store.directory}, and the same call "
                f"tries these again\n{failure.details}"
            )
        return [self._supports(task) for task in tasks]

    def _supports(self, task: PathSearch) -> Supports:
        arrays = self.store.read(task).arrays
        ends = np.cumsum(arrays["sizes"])[:-1]
        supports = np.split(np.asarray(arrays["columns"], dtype=np.int64), ends)
        return Supports(supports, TO_THE_END, str(arrays["ended"]))


def _data_digest(rows: AllRows) -> str:
    """Return a hash of the data of a path and of how they are prepared."""
    X, options, parts = rows.X, rows.options, [rows.X]
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X, copy=True)  # one form, whatever that of the user
        X.sum_duplicates()
        parts = [X.data, X.indices, X.indptr]
    parts += [rows.y, options["forced"]] + ([] if rows.weights is None else [rows.weights])
    prepared = f"{X.shape} {options['fit_intercept']} {float(options['alpha']).hex()}"
    return " ".join([prepared, *(array_digest(np.asarray(part)) for part in parts)])
