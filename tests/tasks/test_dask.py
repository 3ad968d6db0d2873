"""A real Dask cluster of several processes, also one that loses a worker in the middle of a task."""

import os
import signal
import threading

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_val_score

from l0anneal import AnnealedSubsetRegressor
from l0anneal.tasks import Store, StoredTask, collect

distributed = pytest.importorskip("distributed")
PATIENCE = 120  # seconds, after which a test that waits for an event has failed


class Search(StoredTask):
    """A search whose data and random numbers follow from the content of the task."""

    format = "Search/1"

    def __init__(self, number):
        self.number = number

    def content(self):
        return {"number": self.number}


TASKS = [Search(i) for i in range(6)]


def search_function():
    """Return the function that runs a task; Dask sends such a function by value to its workers."""

    def search(task):
        from l0anneal import ensembles, kick_search

        instance = ensembles.planted(60, 0.6, 0.15, support="fixed", random_state=task.seed)
        found = kick_search(instance.problem, 9, n_kicks=50, random_state=task.seed)
        return {"support": found.support, "coef": found.coef}, 0.0

    return search


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Return the results of this process."""
    store = Store(tmp_path_factory.mktemp("expected"))
    assert collect(TASKS, store, search_function(), n_jobs=1).n_run == len(TASKS)
    return store


@pytest.fixture(scope="module")
def client():
    """Start two workers, each a process of its own."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def assert_same_bits(store, expected):
    for task in TASKS:
        found, wanted = store.read(task).arrays, expected.read(task).arrays
        for name in ("support", "coef"):
            assert found[name].tobytes() == wanted[name].tobytes()


def test_an_error_on_a_worker_leaves_the_other_results(client, expected, tmp_path):
    search = search_function()

    def failing(task):
        if task.number == 2:
            raise ValueError("block 2 has NaN in column 7")
        return search(task)

    store = Store(tmp_path)
    with parallel_config("dask"):
        done = collect(TASKS, store, failing)
        (failure,) = done.failures
        assert failure.error == "ValueError: block 2 has NaN in column 7"
        assert done.n_run == len(TASKS) - 1
        again = collect(TASKS, store, search)
    assert (again.n_run, again.n_skipped) == (1, len(TASKS) - 1)
    assert_same_bits(store, expected)


@pytest.mark.slow  # the workers import scikit-learn and load the kernels of the regressor
def test_folds_of_scikit_learn_run_on_the_cluster(client):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10))
    y = X[:, 3] - X[:, 8] + 0.5 * rng.standard_normal(60)
    replay = {"n_kicks": [20], "schedule": None}  # 20 kicks, and no sampling of probabilities
    model = AnnealedSubsetRegressor(2, random_state=0, replay=replay)
    alone = cross_val_score(model, X, y, cv=3, n_jobs=1)
    with parallel_config("dask"):
        together = cross_val_score(model, X, y, cv=3)
    assert np.all(alone > 0.5)
    assert alone.tobytes() == together.tobytes()


def test_a_killed_worker_loses_nothing(client, expected, tmp_path):
    search = search_function()

    def interrupted_search(task):
        if task.number == 3 and not distributed.Event("begun").is_set():
            distributed.Variable("victim").set(os.getpid())
            distributed.Event("begun").set()
            distributed.Event("never").wait()
        return search(task)

    killed = []

    def kill():
        if distributed.Event("begun", client=client).wait(timeout=PATIENCE):
            killed.append(distributed.Variable("victim", client=client).get(timeout=PATIENCE))
            os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    store = Store(tmp_path)
    with parallel_config("dask"):
        done = collect(TASKS, store, interrupted_search)
    thread.join()
    assert len(killed) == 1
    assert killed[0] != os.getpid()
    assert (done.n_run, done.failures) == (len(TASKS), [])
    assert_same_bits(store, expected)
