"""Functions that sweeps in the tests name: workers import them from here."""

import os
import threading
import time
from itertools import count
from pathlib import Path

import numpy as np

from l0anneal import SparseProblem, Sweep, ensembles

STARTED = count()


def gaussian(n_columns, noise, random_state):
    """Draw a small instance with three planted columns."""
    rng = np.random.default_rng(random_state)
    A = rng.standard_normal((n_columns // 2, n_columns))
    truth = np.zeros(n_columns)
    truth[rng.choice(n_columns, 3, replace=False)] = 1.0
    y = A @ truth + noise * rng.standard_normal(n_columns // 2)
    return ensembles.Instance(A, y, truth, random_state)


def bare_problem(n_columns, random_state):
    """Draw a problem without a truth."""
    rng = np.random.default_rng(random_state)
    return SparseProblem(rng.standard_normal((10, n_columns)), rng.standard_normal(10))


def number(random_state, a=0, b=0):
    """Draw an instance that is a number; the parameters are in it too."""
    return {"a": a, "b": b, "drawn": float(np.random.default_rng(random_state).random())}


def echo(instance, random_state, c=0):
    """Return the instance, the parameter and a random number."""
    own = float(np.random.default_rng(random_state).random())
    return {"instance": instance["drawn"], "code": code(**instance, c=c), "own": own}


def echo_again(instance, random_state, c=0):
    """Do the same under another name."""
    return echo(instance, random_state, c)


def code(a, b, c, **_):
    """Return a number from which the parameters can be read off."""
    return 10000 * a + 100 * b + c


def any_names(instance, **arguments):
    """Return the sum of all arguments but the seed."""
    return {"sum": sum(value for name, value in arguments.items() if name != "random_state")}


def fragile(instance, c):
    """Fail at one value of the parameter."""
    if c == 2:
        raise RuntimeError("the parameter is two")
    return {"answer": c}


def ragged(instance, c):
    """Return arrays of c numbers, an integer and a truth value."""
    return {"curve": np.arange(c), "count": c, "odd": bool(c % 2)}


def returns_text(instance):
    """Return what cannot be stored."""
    return {"answer": "text"}


def returns_number(instance):
    """Return no mapping."""
    return 3.0


def returns_parameter(instance, c):
    """Return a result with the name of a parameter."""
    return {"c": c}


def no_seed(n_columns):
    """Draw an instance that depends on nothing."""


def place(instance):
    """Return where the task runs."""
    thread = threading.current_thread()
    main = thread is threading.main_thread()
    return {"process": os.getpid(), "main": main, "dask": "Dask" in thread.name}


def trajectory(instance, result):
    """Measure a curve of an annealing."""
    return {"mu": result.schedule.mu, "energy": result.trajectory["distortion"]}


def waiting_echo(instance, random_state, c=0):
    """Wait for ever from the sixth task on, if the environment says so; tell when three are stored."""
    folder = os.environ.get("L0ANNEAL_TEST_FOLDER")
    if folder and next(STARTED) >= 5:
        while sum(1 for _ in Path(folder).glob("store/??/*.npz")) < 3:
            time.sleep(0.01)
        print("waiting", flush=True)
        while True:
            time.sleep(0.1)
    return echo(instance, random_state, c)


def waiting_sweep():
    """Return 24 tasks, most of which may wait."""
    return Sweep(number, waiting_echo, {"a": [1, 2], "c": [1, 2, 3, 4]}, n_samples=3)


def two_samplers():
    """Return a sweep of eight tasks with samplers of the package."""
    solvers = {
        "annealing": ("anneal", {"schedule": {"kind": "paper", "n": 10, "tau": 1}}),
        "kicks": ("kick_search", {"n_kicks": 2}),
    }
    grid = {"n_columns": 20, "n_nonzero": 3, "noise": [0.1, 1.0]}
    return Sweep(gaussian, solvers, grid, n_samples=2)
