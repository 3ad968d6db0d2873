"""Run the tasks that a store does not have yet, on one core or on a cluster."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal.tasks.store import Store, origin_now
from l0anneal.tasks.task import StoredTask
from l0anneal.tasks.workers import results_of

__all__ = ["Collected", "Failure", "collect", "shard_of"]

AnyTask = TypeVar("AnyTask", bound=StoredTask)
Arrays = dict[str, NDArray[np.generic]]
# the task's id, its arrays, its seconds, their origin, and the line and traceback of an exception
Outcome = tuple[str, Arrays, float, dict[str, str], tuple[str, str] | None]


@dataclass(frozen=True)
class Failure:
    """A task that raised an exception: the exception's line, and its traceback as details."""

    task: StoredTask
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


def shard_of(tasks: Iterable[AnyTask], shard: tuple[int, int]) -> list[AnyTask]:
    """Return share i of n of the tasks, with i from 1, for jobs that run independently.

    The shares are disjoint, together they contain every task, and their sizes differ by at most
    one. They depend on the tasks alone, not on which of them are finished.

    Examples
    --------
    >>> class Square(StoredTask):
    ...     format = "Square/1"
    ...
    ...     def __init__(self, number):
    ...         self.number = number
    ...
    ...     def content(self):
    ...         return {"number": self.number}
    >>> tasks = [Square(i) for i in range(5)]
    >>> [len(shard_of(tasks, (i, 2))) for i in (1, 2)]
    [3, 2]
    """
    i, n = shard
    if not 1 <= i <= n:
        raise ValueError(f"shard must be (i, n) with 1 ≤ i ≤ n; got {shard}")
    # sorting by hash mixes long and short tasks, so that all shares take about the same time
    return sorted(set(tasks), key=lambda task: task.id)[i - 1 :: n]


def collect(
    tasks: Sequence[AnyTask],
    store: Store,
    run: Callable[[AnyTask], tuple[Arrays, float]],
    *,
    prepare: Callable[[], Any] | None = None,
    n_jobs: int | None = None,
    shard: tuple[int, int] = (1, 1),
    progress: bool = False,
    unit: str = "task",
) -> Collected:
    """Run the tasks that the store does not have, and store their results.

    Parameters
    ----------
    tasks : sequence of StoredTask
        The tasks; finished ones are skipped.
    store : Store
        Where results are read and written.
    run : callable
        A function of a module that takes a task and returns its named arrays and its seconds. The
        arrays may depend on nothing but the content of the task.
    prepare : callable, optional
        Called once, before the workers start, if there is anything to run.
    n_jobs : int, optional
        The number of workers; −1 for all cores. `joblib.parallel_config` chooses whether these are
        processes, threads, or workers of a Dask cluster.
    shard : (i, n)
        Run only this share of the tasks.
    progress : bool
        Show a progress bar that counts tasks.
    unit : str
        What the bar calls a task.

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
    >>> class Square(StoredTask):
    ...     format = "Square/1"
    ...
    ...     def __init__(self, number):
    ...         self.number = number
    ...
    ...     def content(self):
    ...         return {"number": self.number}
    >>> def square(task):
    ...     return {"square": np.array(task.number**2)}, 0.0
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     first = collect([Square(2), Square(3)], Store(directory), square)
    ...     again = collect([Square(2), Square(3)], Store(directory), square)
    >>> first.n_run, again.n_run, again.n_skipped
    (2, 0, 2)
    """
    mine = shard_of(tasks, shard)
    store.sweep_temporaries()
    missing = store.missing(mine)
    collected = Collected(n_skipped=len(mine) - len(missing))
    if not missing:
        return collected
    if prepare is not None:
        prepare()
    bar = tqdm(
        total=len(mine),
        initial=collected.n_skipped,
        unit=unit,
        disable=not progress,
        file=sys.stderr,
        smoothing=0.05,
    )
    by_id = {task.id: task for task in missing}
    calls = (delayed(_attempt)(run, task) for task in missing)
    with bar, results_of(calls, n_jobs, "generator_unordered") as outcomes:
        for id, arrays, seconds, origin, error in outcomes:
            if error is None:
                store.write(by_id[id], arrays, seconds=seconds, origin=origin)
                collected.n_run += 1
            else:
                collected.failures.append(Failure(by_id[id], *error))
            bar.update()
    return collected


def _attempt(run: Callable[[AnyTask], tuple[Arrays, float]], task: AnyTask) -> Outcome:
    """Run one task on a worker and return its exception, which would stop all other tasks."""
    if multiprocessing.parent_process() is not None:
        # tqdm's default lock is a semaphore of the system, which a killed worker leaves behind
        tqdm.set_lock(threading.RLock())
    try:
        with one_blas_thread():
            arrays, seconds = run(task)
    except Exception as error:
        line = f"{type(error).__name__}: {error}"
        return task.id, {}, 0.0, {}, (line, traceback.format_exc())
    return task.id, arrays, seconds, origin_now(), None
