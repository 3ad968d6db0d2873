"""After kill -9 at any moment, a second run ends with the arrays of an undisturbed one."""

import os
import random
import signal
import time

import numpy as np
import pytest

from helpers.tasks import assert_same_arrays, assert_same_data, running
from l0anneal.reproduction import Store, collect
from l0anneal.reproduction.figures import sweeps_of
from l0anneal.reproduction.report import write_report
from l0anneal.reproduction.sweeps import tasks_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs kill -9 and process groups")

# Kill the main process alone while it writes its n-th result: written, but not yet renamed.
KILL_IN_WRITE = """
import os
left, fsync = {n}, os.fsync
def fragile(file):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(file)
os.fsync = fragile
"""


def arguments(out, *figures):
    return ("reproduce", *figures, "--quick", "--out", out, "--n-jobs", 2)


def run_to_the_end(out, printed, *figures):
    with running(*arguments(out, *figures), printed=printed) as process:
        process.wait(timeout=1200)
    text = printed.read_text()
    assert process.returncode == 0, text
    assert "The report is " in text
    return text


def n_files(out):
    return sum(1 for _ in (out / "tasks").rglob("*.npz"))


def assert_every_file_is_complete(out):
    for path in (out / "tasks").rglob("*.npz"):
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name] is not None for name in file.files)


@pytest.mark.slow
def test_a_killed_run_ends_in_the_arrays_of_an_undisturbed_one(tmp_path):
    figure, printed = "time", tmp_path / "printed"  # short tasks, and no theory to solve
    tasks = tasks_of(sweeps_of([figure], quick=True))
    undisturbed = Store(tmp_path / "undisturbed" / "tasks")
    collect(tasks, undisturbed, n_jobs=1)
    write_report(tmp_path / "undisturbed", undisturbed, [figure], quick=True)

    out, n_finished = tmp_path / "killed", 25
    prelude = KILL_IN_WRITE.format(n=n_finished + 1)
    with running(*arguments(out, figure), printed=printed, prelude=prelude) as process:
        assert process.wait(timeout=1200) == -signal.SIGKILL, printed.read_text()
    assert n_files(out) == n_finished < len(tasks)
    assert sum(1 for _ in (out / "tasks").rglob("*.tmp")) == 1
    assert_every_file_is_complete(out)
    text = run_to_the_end(out, printed, figure)
    assert f"{n_finished} were finished before, 0 failed" in text
    assert_same_arrays(undisturbed, Store(out / "tasks"), tasks)
    assert_same_data(tmp_path / "undisturbed" / "data", out / "data")


@pytest.mark.slow
def test_twenty_kills_at_random_moments(tmp_path):
    """Kill the whole quick reproduction, also while it draws and writes the report."""
    tasks, printed = tasks_of(sweeps_of(quick=True)), tmp_path / "printed"
    run_to_the_end(tmp_path / "undisturbed", printed)
    out, moments = tmp_path / "killed", random.Random(20)
    killed = 0
    while killed < 20:
        with running(*arguments(out), printed=printed) as process:
            time.sleep(moments.uniform(0.5, 20.0))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
        assert_every_file_is_complete(out)
    run_to_the_end(out, printed)
    assert_same_arrays(Store(tmp_path / "undisturbed" / "tasks"), Store(out / "tasks"), tasks)
    assert_same_data(tmp_path / "undisturbed" / "data", out / "data")
