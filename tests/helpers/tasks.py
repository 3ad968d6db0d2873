"""Small tasks of every kind, comparisons of their results, and commands that run them."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np

from l0anneal.reproduction import Store, Task

NOISE = {"kind": "noise_only", "n_columns": 40, "alpha": 0.5}
PLANTED = {"kind": "planted", "n_columns": 40, "alpha": 0.8, "rho_hat": 0.2, "support": "fixed"}
SEEDED = {"kind": "seeded", "n_columns": 48, "alpha": 0.75, "rho_hat": 0.25}
SCHEDULE = {"kind": "paper", "n": 20, "tau": 2}
ANNEAL = {"kind": "anneal", "rho": 0.3, "schedule": SCHEDULE}
HEAT = {"kind": "heat", "rho": 0.3, "mu_max": 1e6, "mu_min": 10.0, "n": 6, "tau": 3}

# A child that is to receive SIGINT restores its handler, which is off if the parent ignores SIGINT.
RESTORE_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
COMMAND_LINE = "import sys; from l0anneal.cli.app import main; main(sys.argv[1:])\n"


def tasks(n_samples=2):
    """Return every solver on every ensemble that it serves."""
    pairs = [
        (NOISE, ANNEAL),
        (PLANTED, ANNEAL),
        (SEEDED, ANNEAL),
        (PLANTED, HEAT),
        (NOISE, {"kind": "omp", "rho": 0.2}),
        (NOISE, {"kind": "l1", "rho": 0.2}),
        (PLANTED, {"kind": "basis_pursuit"}),
    ]
    return [Task(e, s, i) for e, s in pairs for i in range(n_samples)]


def assert_same_arrays(first: Store, second: Store, tasks) -> None:
    """Compare stored arrays bit for bit; NaN equals NaN."""
    for task in tasks:
        a, b = first.read(task).arrays, second.read(task).arrays
        assert set(a) == set(b)
        assert a
        for name in a:
            assert a[name].dtype == b[name].dtype
            assert a[name].shape == b[name].shape
            assert a[name].tobytes() == b[name].tobytes(), (task.to_json(), name)


def assert_same_data(first, second) -> None:
    """Compare the .nc files of two reports, except for times and the checksums that include them."""
    import xarray as xr

    names = sorted(path.name for path in first.glob("*.nc"))
    assert names
    assert names == sorted(path.name for path in second.glob("*.nc"))
    for name in names:
        with xr.open_dataset(first / name) as a, xr.open_dataset(second / name) as b:
            assert a.sizes == b.sizes
            assert set(a.variables) == set(b.variables)
            for variable in set(a.variables) - {"seconds", "finished", "checksum"}:
                np.testing.assert_array_equal(a[variable].to_numpy(), b[variable].to_numpy())


@contextlib.contextmanager
def running(*args, printed, prelude=""):
    """Run the command line in a session of its own, and end all its processes at the end.

    Parameters
    ----------
    args
        Arguments of the command line.
    printed : path
        A file for stdout and stderr. A pipe would stay open as long as any worker lives.
    prelude : str
        Python code that runs first.
    """
    with printed.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", RESTORE_SIGINT + prelude + COMMAND_LINE, *map(str, args)],
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition, process=None, patience=600.0):
    """Wait until a condition holds; fail if the process ends first, or if patience does."""
    end = time.monotonic() + patience
    while not condition():
        assert process is None or process.poll() is None, "the process ended too early"
        assert time.monotonic() < end, f"waited {patience:g} s in vain"
        time.sleep(0.01)


def session_has_ended(process):
    """Tell whether the process and all processes that it started are gone."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False
