"""Run the tasks that are missing from a store, on one core or on a cluster."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal.engine.warm_up import warm_up
from l0anneal.reproduction.solvers import run
from l0anneal.reproduction.store import Store
from l0anneal.reproduction.task import Task

__all__ = ["Collected", "Failure", "collect", "shard_of"]


@dataclass(frozen=True)
class Failure:
    """A task that raised, and what it raised."""

    task: Task
    error: str
    details: str

    def __str__(self) -> str:
        return f"{self.error}\n    in {self.task.to_json()}"


@dataclass
class Collected:
    """What a call of `collect` did: tasks run now, found finished, and failed."""

    n_run: int = 0
    n_skipped: int = 0
    failures: list[Failure] = field(default_factory=list)


def shard_of(tasks: Iterable[Task], shard: tuple[int, int]) -> list[Task]:
    """Return share i of n, i from 1, for jobs that know nothing of each other.

    The shares are disjoint, together they are everything, and their sizes differ by at most one.
    They depend on the tasks alone, not on what is finished.

    Examples
    --------
    >>> tasks = [Task({"kind": "e"}, {"kind": "s"}, i) for i in range(5)]
    >>> [len(shard_of(tasks, (i, 2))) for i in (1, 2)]
    [3, 2]
    """
    i, n = shard
    if not 1 <= i <= n:
        raise ValueError(f"a shard is i of n with 1 ≤ i ≤ n; got {i}/{n}")
    # hash order mixes long and short tasks, so that shares and the time left come out even
    return sorted(set(tasks), key=lambda task: task.id)[i - 1 :: n]


def collect(
    tasks: Sequence[Task],
    store: Store,
    *,
    n_jobs: int | None = None,
    shard: tuple[int, int] = (1, 1),
    progress: bool = False,
) -> Collected:
    """Run the tasks that the store does not have, and put their results there.

    Parameters
    ----------
    tasks : sequence of Task
    store : Store
    n_jobs : int, optional
        Workers (−1: all cores). No backend is named here: `joblib.parallel_config` chooses
        processes, threads, or a Dask cluster.
    shard : (i, n)
        Run only this share of the tasks.
    progress : bool
        Show a bar that counts tasks, with rate and time left.

    Returns
    -------
    Collected
        A task that raised is among its ``failures``; all others are finished and stored.

    Notes
    -----
    Arrays in the store are the same, bit for bit, for any number of workers, any backend, any
    order, and after any interruption, on one kind of CPU and one set of library versions.

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
    done = Collected(n_skipped=len(mine) - len(missing))
    if not missing:
        return done
    warm_up()  # compiled once, here; workers load what is compiled
    bar = tqdm(
        total=len(mine),
        initial=done.n_skipped,
        unit="task",
        disable=not progress,
        file=sys.stderr,
        smoothing=0.05,
    )
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_attempt)(task.to_json()) for task in missing
    )
    with bar:
        for text, arrays, seconds, error in outcomes:
            task = Task.from_json(text)
            if error is None:
                store.write(task, arrays, seconds=seconds)
                done.n_run += 1
            else:
                done.failures.append(Failure(task, *error))
            bar.update()
    return done


def _attempt(
    text: str,
) -> tuple[str, dict[str, NDArray[np.generic]], float, tuple[str, str] | None]:
    """Run one task on a worker. It never raises: an exception here would stop all the others."""
    try:
        with one_blas_thread():
            arrays, seconds = run(Task.from_json(text))
    except Exception as error:
        return text, {}, 0.0, (f"{type(error).__name__}: {error}", traceback.format_exc())
    return text, arrays, seconds, None
