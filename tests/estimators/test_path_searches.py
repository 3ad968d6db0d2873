"""Paths whose searches are kept in a folder: same numbers, on any worker, after any interruption."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from joblib import parallel_config

from l0anneal import subset_path
from l0anneal.estimators import path_searches

PATIENCE = 120  # seconds, after which a test that waits for an event has failed


def data(n_outputs=1):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 25))
    Y = X[:, [3, 7, 11]] @ rng.standard_normal((3, n_outputs)) + rng.standard_normal(
        (80, n_outputs)
    )
    return X, Y[:, 0] if n_outputs == 1 else Y


def assert_same(one, other):
    assert one.steps == other.steps
    for name in ("energies", "coefs", "intercepts", "leave_one_out", "cv_error"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name, values in one.criteria.items():
        np.testing.assert_array_equal(values, other.criteria[name])
    for one_support, other_support in zip(one.supports, other.supports, strict=True):
        np.testing.assert_array_equal(one_support, other_support)


@pytest.fixture
def searched(monkeypatch):
    """The searches that really ran, in this process."""
    ran = []
    run_search = path_searches._run_search

    def counted(task):
        ran.append(task)
        return run_search(task)

    monkeypatch.setattr(path_searches, "_run_search", counted)
    return ran


@pytest.mark.parametrize("kind", ["array", "sparse", "weights, forced and ridge", "two outputs"])
def test_a_checkpoint_changes_no_number(kind, searched, tmp_path):
    X, y = data(2 if kind == "two outputs" else 1)
    options = {"cv": 3, "random_state": 4}
    if kind == "sparse":
        X = scipy.sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    if kind.startswith("weights"):
        weights = np.random.default_rng(1).integers(0, 3, 80).astype(float)
        options |= {"sample_weight": weights, "always_include": [5], "alpha": 2.0}
    plain = subset_path(X, y, 6, **options)
    with parallel_config("threading"):
        first = subset_path(X, y, 6, checkpoint=tmp_path / "kept", n_jobs=2, **options)
        assert len(searched) == 4
        again = subset_path(X, y, 6, checkpoint=tmp_path / "kept", **options)
    assert len(searched) == 4  # nothing was searched again
    assert_same(plain, first)
    assert_same(plain, again)


def test_what_changes_the_answer_is_searched_again(searched, tmp_path):
    X, y = data()
    changes = [
        {},
        {"random_state": 5},
        {"max_nonzero": 5},
        {"fit_intercept": False},
        {"alpha": 1.0},
        {"always_include": [2]},
        {"sample_weight": np.arange(80.0)},
        {"y": y + 1e-9},
        {"X": X[::-1]},
    ]
    for n, change in enumerate(changes, start=1):
        arguments = {"X": X, "y": y, "max_nonzero": 6, "random_state": 4} | change
        subset_path(**arguments, checkpoint=tmp_path)
        assert len(searched) == n


def test_other_rows_and_other_entries_are_searched_again(searched, tmp_path):
    rng = np.random.default_rng(2)
    A = scipy.sparse.csr_array(np.where(rng.random((20, 20)) < 0.3, 1.0, 0.0))
    y = rng.standard_normal(20)
    for n, X in enumerate((A, A.T.tocsr(), A[:, ::-1]), start=1):
        found = subset_path(X, y, 4, random_state=4, checkpoint=tmp_path)
        assert len(searched) == n
        assert_same(found, subset_path(X, y, 4, random_state=4))
    for X in (A.tocsc(), A.T):  # the same entries in another form; the latter is csc
        subset_path(X, y, 4, random_state=4, checkpoint=tmp_path)
    assert len(searched) == 3
    for halves in ((slice(0, 10), slice(10, 20)), (slice(2, 12), slice(12, 20))):
        folds = [halves, halves[::-1]]
        found = subset_path(A, y, 4, cv=folds, random_state=4, checkpoint=tmp_path)
        plain = subset_path(A, y, 4, cv=folds, random_state=4)
        np.testing.assert_array_equal(found.criteria["cv"], plain.criteria["cv"])


def test_another_engine_searches_again(searched, monkeypatch, tmp_path):
    X, y = data()
    subset_path(X, y, 4, random_state=4, checkpoint=tmp_path)
    monkeypatch.setattr(path_searches, "ENGINE", path_searches.ENGINE + 1)
    subset_path(X, y, 4, random_state=4, checkpoint=tmp_path)
    assert len(searched) == 2


def test_an_interrupted_call_continues(searched, monkeypatch, tmp_path):
    X, y = data()
    plain = subset_path(X, y, 6, cv=4, random_state=4)
    run_search = path_searches._run_search

    def interrupted(task):
        if len(searched) == 3:
            raise KeyboardInterrupt
        return run_search(task)

    with monkeypatch.context() as patch:
        patch.setattr(path_searches, "_run_search", interrupted)
        with pytest.raises(KeyboardInterrupt):
            subset_path(X, y, 6, cv=4, random_state=4, checkpoint=tmp_path)
    assert len(searched) == 3
    path = subset_path(X, y, 6, cv=4, random_state=4, checkpoint=tmp_path)
    assert len(searched) == 5  # one on all rows, and four folds
    assert_same(plain, path)


def test_a_failure_leaves_the_others(searched, monkeypatch, tmp_path):
    X, y = data()
    run_search = path_searches._run_search

    def failing(task):
        if len(searched) == 2:
            raise MemoryError("no room for the Gram matrix")
        return run_search(task)

    with monkeypatch.context() as patch:
        patch.setattr(path_searches, "_run_search", failing)
        with pytest.raises(RuntimeError, match="MemoryError: no room for the Gram matrix; the oth"):
            subset_path(X, y, 6, cv=3, random_state=4, checkpoint=tmp_path)
    before = len(searched)
    assert_same(
        subset_path(X, y, 6, cv=3, random_state=4, checkpoint=tmp_path),
        subset_path(X, y, 6, cv=3, random_state=4),
    )
    assert len(searched) == 4 > before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time_limit": 1.0}, "searches that have come to their end; got time_limit = 1.0"),
        ({"steps": (3,)}, r"steps = \(3,\)"),
        ({"on_interrupt": "return"}, "'return': leave these out"),
        ({"random_state": None}, "checkpoint needs an integer as random_state"),
    ],
)
def test_bad_arguments(arguments, message, tmp_path):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        subset_path(X, y, 6, **{"random_state": 4, "checkpoint": tmp_path} | arguments)


@pytest.mark.slow  # the workers import scikit-learn and load the kernels
def test_folds_run_on_a_cluster_that_loses_a_worker(tmp_path):
    distributed = pytest.importorskip("distributed")
    X, y = data()
    plain = subset_path(X, y, 6, cv=4, random_state=4)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed = []
        processes = client.run(os.getpid)

        def kill():
            """Kill a worker as soon as it has a task."""
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end and not killed:
                working = client.run(lambda dask_worker: len(dask_worker.state.executing))
                killed.extend(processes[worker] for worker, n in working.items() if n)
            os.kill(killed[0], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        with parallel_config("dask"):
            path = subset_path(X, y, 6, cv=4, random_state=4, checkpoint=tmp_path)
        thread.join()
    assert killed[0] in processes.values()
    assert_same(plain, path)
