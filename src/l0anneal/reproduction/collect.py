"""Run the tasks of the reproduction that a store does not have yet."""

from __future__ import annotations

from collections.abc import Sequence

from l0anneal.engine.warm_up import warm_up
from l0anneal.reproduction.solvers import run
from l0anneal.reproduction.task import Task
from l0anneal.tasks.collect import Collected
from l0anneal.tasks.collect import collect as collect_tasks
from l0anneal.tasks.store import Store

__all__ = ["collect"]


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
    n_jobs, shard, progress
        As in `l0anneal.tasks.collect`.

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
    # compile once, before the workers start and load the compiled kernels
    return collect_tasks(
        tasks, store, run, prepare=warm_up, n_jobs=n_jobs, shard=shard, progress=progress
    )
