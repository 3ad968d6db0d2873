"""Compile kernels on first use, and print a notice while the user waits."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
from numba.core import event

from l0anneal.engine.assistant import run_steps
from l0anneal.engine.kernel_choice import KERNELS, MOVES
from l0anneal.engine.moves import new_tally
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["compile_notice", "tiny_problem", "warm_up", "workspace_steps"]

NOTICE_AFTER = 1.0  # seconds of compilation; less is not worth a notice


class _Notice(event.Listener):
    """Says that kernels of this package are being compiled, which of them, and how long that took.

    Numba starts this event when it has not found a kernel in its cache, never when it loads one. A
    kernel compiles those that it calls, so events are nested; Numba compiles in one thread at a time.
    """

    def __init__(self) -> None:
        self.blocks = 0  # ``with`` blocks that are open
        self._forget()

    def _forget(self) -> None:
        self.names: list[str] = []
        self.open: list[bool] = []  # whether each event going on is about a kernel of this package
        self.seconds = 0.0
        self.began = 0.0
        self.timer: threading.Timer | None = None
        self.printed = False

    def on_start(self, event: event.Event) -> None:
        function = event.data["dispatcher"].py_func
        ours = (function.__module__ or "").startswith("l0anneal.")
        if ours:
            self.names.append(function.__name__)
            if not any(self.open):
                self.began = time.perf_counter()
                if not self.printed:
                    self.timer = threading.Timer(NOTICE_AFTER - self.seconds, self._print)
                    self.timer.daemon = True
                    self.timer.start()
        self.open.append(ours)

    def on_end(self, event: event.Event) -> None:
        if self.open:  # not so if the block was entered while another thread was compiling
            self.open.pop()
        if self.timer is not None and not any(self.open):
            self.timer.cancel()
            self.timer = None
        if self.began and not any(self.open):
            self.seconds += time.perf_counter() - self.began
            self.began = 0.0

    def close(self) -> None:
        """Say how long it took, at the end of the outermost block."""
        if self.printed:
            n = len(set(self.names))
            print(
                f"l0anneal: compiled {n} kernel{'s' * (n > 1)} in {self.seconds:.0f} s; "
                "the next process will load them",
                file=sys.stderr,
                flush=True,
            )
        self._forget()

    def _print(self) -> None:
        if any(self.open):
            self.printed = True
            print(
                f"l0anneal: compiling the kernel {self.names[0]} and those that it needs; "
                "this happens once and takes about twenty seconds",
                file=sys.stderr,
                flush=True,
            )


_notice = _Notice()
_lock = threading.RLock()


@contextmanager
def compile_notice() -> Iterator[None]:
    """Print a notice on stderr if the kernels called in the ``with`` block have to be compiled.

    Blocks may be nested or run in several threads at once; the notice is printed once.
    """
    with _lock:
        _notice.blocks += 1
        if _notice.blocks == 1:
            event.register("numba:compile", _notice)
    try:
        yield
    finally:
        with _lock:
            _notice.blocks -= 1
            if _notice.blocks == 0:
                event.unregister("numba:compile", _notice)
                _notice.close()


def tiny_problem() -> SparseProblem:
    """Return a problem that is just large enough to compile the kernels on."""
    return SparseProblem(np.eye(3, 4) + 0.5, np.ones(3))


@cache
def warm_up(move: str | None = "pair flip") -> None:
    """Compile the kernels of a workspace and of a move, or load them, once per process."""
    with compile_notice():
        run_steps(workspace_steps, move)


def workspace_steps(move: str | None) -> list[Callable[[], object]]:
    """Return functions that compile, in any order, the kernels of a workspace and of a move."""
    moves = MOVES[move] if move else ()
    return [_fill, _search, *(partial(_propose_nothing, name) for name in moves)]


def _fill() -> None:
    workspace = Workspace(tiny_problem(), 2)
    workspace.fill(2, np.arange(4))
    workspace.remove_worst()


def _search() -> None:
    workspace = Workspace(tiny_problem(), 2)
    workspace.fill_greedily(2)
    workspace.descend()


def _propose_nothing(name: str) -> None:
    state = stream(np.random.SeedSequence(0))
    Workspace(tiny_problem(), 2).run(KERNELS[name], state, 0.0, 0, np.zeros(1), new_tally())
