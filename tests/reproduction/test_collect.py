import sys
import threading

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info

from helpers.tasks import ANNEAL, NOISE, assert_same_arrays, tasks
from l0anneal.reproduction import Store, Task, collect, shard_of, solvers

MODULE = sys.modules["l0anneal.reproduction.collect"]  # the package exports the function


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Return the results of one undisturbed worker, in the given order."""
    store = Store(tmp_path_factory.mktemp("reference"))
    assert collect(tasks(), store, n_jobs=1).n_run == len(tasks())
    return store


def test_finished_tasks_are_skipped(reference, tmp_path):
    store = Store(tmp_path)
    first = collect(tasks()[:5], store, n_jobs=1)
    stamps = {task.id: store.path(task).stat().st_mtime_ns for task in tasks()[:5]}
    second = collect(tasks(), store, n_jobs=1)
    assert (first.n_run, first.n_skipped) == (5, 0)
    assert (second.n_run, second.n_skipped) == (len(tasks()) - 5, 5)
    assert stamps == {task.id: store.path(task).stat().st_mtime_ns for task in tasks()[:5]}
    assert_same_arrays(reference, store, tasks())


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_two_workers_give_the_bits_of_one(reference, tmp_path, backend):
    store = Store(tmp_path)
    with parallel_config(backend):
        done = collect(list(reversed(tasks())), store, n_jobs=2)
    assert done.n_run == len(tasks())
    assert_same_arrays(reference, store, tasks())


@pytest.mark.slow
def test_a_dask_cluster_gives_the_bits_of_one(reference, tmp_path):
    distributed = pytest.importorskip("distributed")
    store = Store(tmp_path)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        parallel_config("dask"),
    ):
        done = collect(tasks(), store)
    assert done.n_run == len(tasks())
    assert_same_arrays(reference, store, tasks())


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_shards_partition_the_tasks(n):
    every = tasks(3)
    shares = [shard_of(every, (i, n)) for i in range(1, n + 1)]
    assert sorted(t.id for share in shares for t in share) == sorted(t.id for t in every)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    # order and duplicates in the list do not matter
    again = [shard_of([*reversed(every), *every], (i, n)) for i in range(1, n + 1)]
    assert [[t.id for t in share] for share in shares] == [[t.id for t in s] for s in again]


def test_shards_together_run_every_task(reference, tmp_path):
    store = Store(tmp_path)
    counts = [collect(tasks(), store, n_jobs=1, shard=(i, 3)).n_run for i in (1, 2, 3)]
    assert sum(counts) == len(tasks())
    assert collect(tasks(), store, n_jobs=1).n_run == 0
    assert_same_arrays(reference, store, tasks())


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 0)])
def test_impossible_shards_are_refused(shard):
    with pytest.raises(ValueError, match="1 ≤ i ≤ n"):
        shard_of(tasks(), shard)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failed_task_is_reported_and_loses_nothing(reference, tmp_path, n_jobs):
    store = Store(tmp_path)
    bad = Task(NOISE, {**ANNEAL, "rho": 0.9}, 7)  # more columns than rows
    done = collect([*tasks(), bad], store, n_jobs=n_jobs)
    assert done.n_run == len(tasks())
    assert [failure.task for failure in done.failures] == [bad]
    text = str(done.failures[0])
    assert "rank" in text
    assert '"rho":0.9' in text
    assert '"sample":7' in text
    assert "Traceback" in done.failures[0].details
    assert bad not in store
    assert_same_arrays(reference, store, tasks())


def test_blas_has_one_thread_in_a_worker(tmp_path, monkeypatch):
    seen = []

    def spy(task):
        seen.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
        return {"x": np.zeros(1)}, 1.0

    monkeypatch.setattr(MODULE, "run", spy)
    collect(tasks()[:1], Store(tmp_path), n_jobs=1)
    assert seen
    assert set(seen) == {1}


def test_kernels_are_ready_before_the_workers_start(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(MODULE, "warm_up", lambda: order.append("compiled"))
    real = solvers.run

    def spy(task):
        order.append("ran")
        return real(task)

    monkeypatch.setattr(MODULE, "run", spy)
    collect(tasks()[:2], Store(tmp_path), n_jobs=1)
    assert order == ["compiled", "ran", "ran"]
    collect(tasks()[:2], Store(tmp_path), n_jobs=1)
    assert order == ["compiled", "ran", "ran"]  # nothing to do, nothing to compile


def test_the_bar_counts_tasks_with_rate_and_time_left(tmp_path, capfd):
    collect(tasks(1)[:2], Store(tmp_path), n_jobs=1)
    capfd.readouterr()
    collect(tasks(1), Store(tmp_path), n_jobs=1, progress=True)
    shown = capfd.readouterr().err
    assert "7/7" in shown
    assert "2/7" in shown  # the bar starts at the finished tasks
    assert "task/s" in shown or "s/task" in shown
    assert "<" in shown  # between the time elapsed and the time left


def test_an_interruption_keeps_finished_tasks(reference, tmp_path, monkeypatch):
    real, count = solvers.run, threading.Semaphore(3)

    def interrupted(task):
        if not count.acquire(blocking=False):
            raise KeyboardInterrupt
        return real(task)

    monkeypatch.setattr(MODULE, "run", interrupted)
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        collect(tasks(), store, n_jobs=1)
    monkeypatch.undo()
    assert len(tasks()) - len(store.missing(tasks())) == 3
    assert collect(tasks(), store, n_jobs=1).n_run == len(tasks()) - 3
    assert_same_arrays(reference, store, tasks())
