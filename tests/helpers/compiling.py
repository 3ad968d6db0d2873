"""Something to compile, and steps for an assistant that does so, too."""

import os
import time
from functools import partial
from pathlib import Path

import numba


def compile_something(module="l0anneal.engine.something"):
    """Compile a new function, which counts as one of the given module."""

    def one_more(x):
        return x + 1

    one_more.__module__ = module
    return numba.njit(one_more)(1)


def steps(folder, caller):
    """Return two steps: compile and wait until the other was made; note who makes the other.

    Without an assistant, the first would wait in vain. The assistant does not end soon by itself.
    """
    return [partial(_compile_and_wait, folder), partial(_note, folder, caller)]


def _compile_and_wait(folder):
    compile_something()
    until = time.monotonic() + 120.0
    while not (Path(folder) / "note").exists():
        if time.monotonic() > until:
            raise TimeoutError("there was no assistant")
        time.sleep(0.01)


def _note(folder, caller):
    if os.getpid() != caller:
        (Path(folder) / "note").touch()
        time.sleep(60.0)
