"""Run the tasks that a store does not have yet, on one core or on a cluster."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal.engine.warm_up import warm_up
from l0anneal.reproduction.solvers import run
from l0anneal.reproduction.store import Store
from l0anneal.reproduction.task import Task
from l0anneal.reproduction.workers import results_of

__all__ = ["Collected", "Failure", "collect", "shard_of"]

# the task's text, its arrays, its seconds, and the line and traceback of an exception
Outcome = tuple[str, dict[str, NDArray[np.generic]], float, tuple[str, str] | None]


@dataclass(frozen=True)
class Failure:
    """A task that raised an exception: the exception's line, and its traceback as details."""

    task: Task
    error: str
    details: str

    def __str__(self) -> str:
        return f"{self.error}\n    in {self.task.to_json()}"


@dataclass
class Collected:
    """The outcome of `collect`: how many tasks it ran and skipped, and which failed."""

    n_run: int = 0
    n_skipped: int = 0
    failures: list[Failure] = field(default_factory=list)


def shard_of(tasks: Iterable[Task], shard: tuple[int, int]) -> list[Task]:
    """Return share i of n of the tasks, with i from 1, for jobs that run independently.

    The shares are disjoint, together they contain every task, and their sizes differ by at most
    one. They depend on the tasks alone, not on which of them are finished.

    Examples
    --------
    >>> tasks = [Task({"kind": "e"}, {"kind": "s"}, i) for i in range(5)]
    >>> [len(shard_of(tasks, (i, 2))) for i in (1, 2)]
    [3, 2]
    """
    i, n = shard
    if not 1 <= i <= n:
        raise ValueError(f"shard must be (i, n) with 1 ≤ i ≤ n; got {shard}")
    # sorting by hash mixes long and short tasks, so that all shares take about the same time
    return sorted(set(tasks), key=lambda task: task.id)[i - 1 :: n]


def collect(
    tasks: Sequence[Task],
    store: Store,
    *,
    n_jobs: int | None = None,
    shard: tuple[int, int] = (1, 1),
    progress: bool = False,
) -> Collected:
    """Run the tasks that the store does not have, and store their results.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks; finished ones are skipped.
    store : Store
        Where results are read and written.
    n_jobs : int, optional
        The number of workers; −1 for all cores. `joblib.parallel_config` chooses whether these are
        processes, threads, or workers of a Dask cluster.
    shard : (i, n)
        Run only this share of the tasks.
    progress : bool
        Show a progress bar that counts tasks.

    Returns
    -------
    Collected
        Tasks that raised an exception are its ``failures``; all others are finished and stored.

    Notes
    -----
    Stored arrays are the same, bit for bit, for any number of workers, any backend, any order, and
    after any interruption, on one kind of CPU and one set of library versions. On KeyboardInterrupt
    the workers are ended and stored results are kept.

    Examples
    --------
    >>> import tempfile
    >>> ensemble = {"kind": "noise_only", "n_columns": 40, "alpha": 0.5}
    >>> tasks = [Task(ensemble, {"kind": "omp", "rho": 0.2}, sample) for sample in range(3)]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     first = collect(tasks, Store(directory))
    ...     again = collect(tasks, Store(directory))
    >>> first.n_run, again.n_run, again.n_skipped
    (3, 0, 3)
    """
    mine = shard_of(tasks, shard)
    store.sweep_temporaries()
    missing = store.missing(mine)
    collected = Collected(n_skipped=len(mine) - len(missing))
    if not missing:
        return collected
    warm_up()  # compile once, before the workers start and load the compiled kernels
    bar = tqdm(
        total=len(mine),
        initial=collected.n_skipped,
        unit="task",
        disable=not progress,
        file=sys.stderr,
        smoothing=0.05,
    )
    calls = (delayed(_attempt)(task.to_json()) for task in missing)
    with bar, results_of(calls, n_jobs, "generator_unordered") as outcomes:
        for text, arrays, seconds, error in outcomes:
            task = Task.from_json(text)
            if error is None:
                store.write(task, arrays, seconds=seconds)
                collected.n_run += 1
            else:
                collected.failures.append(Failure(task, *error))
            bar.update()
    return collected


def _attempt(text: str) -> Outcome:
    """Run one task on a worker and return its exception, which would stop all other tasks."""
    if multiprocessing.parent_process() is not None:
        # tqdm's default lock is a semaphore of the system, which a killed worker leaves behind
        tqdm.set_lock(threading.RLock())
    try:
        with one_blas_thread():
            arrays, seconds = run(Task.from_json(text))
    except Exception as error:
        return text, {}, 0.0, (f"{type(error).__name__}: {error}", traceback.format_exc())
    return text, arrays, seconds, None
