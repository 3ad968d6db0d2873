"""Compile kernels on first use, and print a notice while the user waits."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from numba.core import event

from l0anneal.engine.kernel_choice import KERNELS, MOVES
from l0anneal.engine.moves import new_tally
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["compile_notice", "tiny_problem", "warm_up"]

NOTICE_AFTER = 1.0  # seconds; a kernel that compiles in less is not worth a notice
NOTICE = "l0anneal: compiling its kernels; this happens once and takes about a minute"


class _Notice(event.Listener):
    """Prints the notice if kernels are being compiled, and not just loaded from the cache."""

    def __init__(self) -> None:
        self.depth = 0
        self.timer: threading.Timer | None = None

    def on_start(self, event: event.Event) -> None:
        if self.timer is None:
            self.timer = threading.Timer(NOTICE_AFTER, self._print)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: event.Event) -> None:
        """Kernels compile one another; the timer goes on until the ``with`` block ends."""

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _print(self) -> None:
        print(NOTICE, file=sys.stderr, flush=True)


_notice = _Notice()
_lock = threading.RLock()


@contextmanager
def compile_notice() -> Iterator[None]:
    """Print a notice on stderr if the kernels called in the ``with`` block have to be compiled.

    Blocks may be nested or run in several threads at once; the notice is printed once.
    """
    with _lock:
        _notice.depth += 1
        if _notice.depth == 1:
            event.register("numba:compile", _notice)
    try:
        yield
    finally:
        with _lock:
            _notice.depth -= 1
            if _notice.depth == 0:
                event.unregister("numba:compile", _notice)
                _notice.stop()


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
        workspace.remove_worst()
        workspace.fill_greedily(2)
