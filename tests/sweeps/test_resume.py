"""A sweep that was killed or interrupted continues, and ends with the bits of an undisturbed one."""

import os
import signal

import pytest

from helpers import sweeps
from helpers.processes import child
from helpers.tasks import assert_same_arrays
from l0anneal.tasks import Store

RUN = "from helpers.sweeps import waiting_sweep; waiting_sweep().run({store!r}, **{options})"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the results of a run in which no task waits."""
    store = Store(tmp_path_factory.mktemp("undisturbed"))
    assert sweeps.waiting_sweep().run(store).n_run == 24
    return store


@pytest.fixture
def run(tmp_path):
    """Return a function that starts a sweep in a process, and its store."""
    tests = os.path.dirname(os.path.dirname(__file__))
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    environment = {"L0ANNEAL_TEST_FOLDER": str(tmp_path), "PYTHONPATH": path}
    store = str(tmp_path / "store")
    return lambda **options: child(RUN.format(store=store, options=options), env=environment), store


def assert_it_continues(store, undisturbed):
    sweep = sweeps.waiting_sweep()
    before = 24 - len(sweep.missing(store))
    assert 3 <= before <= 5
    done = sweep.run(store, n_jobs=2, backend="threads")
    assert (done.n_skipped, done.n_run, done.failures) == (before, 24 - before, [])
    assert_same_arrays(undisturbed, Store(store), sweep.tasks())


def test_a_killed_sweep_continues(run, undisturbed):
    start, store = run
    with start(n_jobs=2, backend="threads") as process:
        process.wait_for("waiting")  # in the middle of a task
        process.kill()
        assert process.finish().returncode == -signal.SIGKILL
    assert_it_continues(store, undisturbed)


def test_an_interrupted_sweep_stops_at_once_and_continues(run, undisturbed):
    start, store = run
    with start() as process:
        process.wait_for("waiting")
        process.interrupt()
        ended = process.finish()
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")
    assert_it_continues(store, undisturbed)
