"""Kill -9 at any moment, run again: the arrays are those of an undisturbed run."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers.tasks import assert_same_arrays, assert_same_data
from l0anneal.reproduction import Store, collect
from l0anneal.reproduction.paper import plan, tasks_of
from l0anneal.reproduction.report import write_report


@pytest.fixture
def start(tmp_path):
    """Start the command; its workers, which outlive a kill of it, are ended after the test."""
    started = []

    def run(out, *args):
        command = ["reproduce", *args, "--quick", "--out", str(out), "--jobs", "2"]
        # a file and not a pipe: orphaned workers would hold a pipe open
        with (tmp_path / f"printed-{len(started)}").open("w") as printed:
            process = subprocess.Popen(
                [sys.executable, "-m", "l0anneal", *command],
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(process)
        process.printed = tmp_path / f"printed-{len(started) - 1}"
        return process

    yield run
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finish(process):
    process.wait(timeout=600)
    printed = process.printed.read_text()
    assert process.returncode == 0, printed
    assert "The report is " in printed
    return printed


def n_files(out):
    return sum(1 for _ in (out / "tasks").rglob("*.npz"))


def kill_after(process, out, n_new, patience=120.0):
    """Kill the process alone, not its workers, once it has finished some more tasks."""
    goal, end = n_files(out) + n_new, time.monotonic() + patience
    while process.poll() is None and n_files(out) < goal and time.monotonic() < end:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return process.returncode == -signal.SIGKILL


def assert_every_file_is_whole(out):
    for path in (out / "tasks").rglob("*.npz"):
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name] is not None for name in file.files)


def test_killed_runs_end_in_the_arrays_of_an_undisturbed_one(start, tmp_path):
    figure = "noise-only"
    tasks = tasks_of(plan([figure], quick=True))
    undisturbed = Store(tmp_path / "undisturbed" / "tasks")
    collect(tasks, undisturbed, n_jobs=1)
    write_report(tmp_path / "undisturbed", undisturbed, [figure], quick=True)

    out = tmp_path / "killed"
    for n_new in (1, 25):
        assert kill_after(start(out, figure), out, n_new)
        assert 0 < n_files(out) < len(tasks)
        assert_every_file_is_whole(out)
    printed = finish(start(out, figure))
    assert "were finished before, 0 failed" in printed
    assert_same_arrays(undisturbed, Store(out / "tasks"), tasks)
    assert_same_data(tmp_path / "undisturbed" / "data", out / "data")


@pytest.mark.slow
def test_twenty_kills_at_random_moments(start, tmp_path):
    """The whole quick reproduction, also killed while it draws and writes the report."""
    tasks = tasks_of(plan(quick=True))
    finish(start(tmp_path / "undisturbed"))
    out, moments = tmp_path / "killed", random.Random(20)
    killed = 0
    while killed < 20:
        process = start(out)
        time.sleep(moments.uniform(0.5, 20.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += process.returncode == -signal.SIGKILL
        assert_every_file_is_whole(out)
    finish(start(out))
    assert_same_arrays(Store(tmp_path / "undisturbed" / "tasks"), Store(out / "tasks"), tasks)
    assert_same_data(tmp_path / "undisturbed" / "data", out / "data")
