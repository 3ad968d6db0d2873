"""Kernels are compiled by the first call ever and loaded by later ones: here, and with a word."""

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

__all__ = ["patience", "tiny_problem", "warm_up"]

_PATIENCE = 1.0  # seconds; loading compiled kernels takes a fraction of that
_MESSAGE = "l0anneal: compiling its kernels; this happens once and takes about a minute"


@contextmanager
def patience() -> Iterator[None]:
    """Say on stderr that kernels are being compiled if what is done here takes long."""
    timer = threading.Timer(_PATIENCE, print, (_MESSAGE,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def tiny_problem() -> SparseProblem:
    """The problem on which kernels are compiled."""
    return SparseProblem(np.eye(3, 4) + 0.5, np.ones(3))


@cache
def warm_up(move: str = "pair flip") -> None:
    """Make a move's kernels ready, once per process; say on stderr if they have to be compiled."""
    with patience():
        workspace = Workspace(tiny_problem(), 2)
        workspace.fill(2, np.arange(4))
        state = stream(np.random.SeedSequence(0))
        for name in MOVES[move]:
            workspace.run(KERNELS[name], state, 0.0, 4, np.zeros(1), new_tally())
        workspace.descend()
