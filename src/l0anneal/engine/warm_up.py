"""Compile kernels on first use, and print a notice while the user waits."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from l0anneal.engine.kernel_choice import KERNELS, MOVES
from l0anneal.engine.moves import new_tally
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["compile_notice", "patience", "tiny_problem", "warm_up"]

NOTICE_AFTER = 1.0  # seconds; loading compiled kernels from the cache takes a fraction of that
NOTICE = "l0anneal: compiling its kernels; this happens once and takes about a minute"


@contextmanager
def compile_notice() -> Iterator[None]:
    """Print a notice on stderr if the kernels called in the ``with`` block have to be compiled.

    A block that takes longer than `NOTICE_AFTER` is taken to be compiling.
    """
    timer = threading.Timer(NOTICE_AFTER, print, (NOTICE,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


patience = compile_notice


def tiny_problem() -> SparseProblem:
    """Return a problem that is just large enough to compile the kernels on."""
    return SparseProblem(np.eye(3, 4) + 0.5, np.ones(3))


@cache
def warm_up(move: str = "pair flip") -> None:
    """Compile the kernels of a move, or load them from the cache, once per process."""
    with compile_notice():
        workspace = Workspace(tiny_problem(), 2)
        workspace.fill(2, np.arange(4))
        state = stream(np.random.SeedSequence(0))
        for name in MOVES[move]:
            workspace.run(KERNELS[name], state, 0.0, 4, np.zeros(1), new_tally())
        workspace.descend()
