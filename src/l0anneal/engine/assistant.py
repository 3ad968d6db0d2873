"""A second process that compiles kernels from the other end of the list, while the user waits.

Numba compiles in one thread at a time, but processes share its cache on disk. If an *assistant* runs the
same steps in reverse order, each of the two processes finds the other's kernels in the cache when it
comes to them, and the user waits little more than half as long. Nothing depends on the assistant: if it
cannot be started, or fails, the caller compiles everything.

The assistant is started when the first kernel is not found in the cache, and never where all are there.
Set the environment variable `SWITCH` to 0 to do without one.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from numba.core import event

__all__ = ["SWITCH", "assist", "run_steps"]

SWITCH = "L0ANNEAL_COMPILE_ASSISTANT"
Steps = Callable[..., Sequence[Callable[[], object]]]


def run_steps(steps: Steps, *arguments: Any) -> None:
    """Call the functions that ``steps(*arguments)`` returns; they compile kernels, in any order.

    ``steps`` must be a function of a module, and ``arguments`` must have a literal representation.
    """
    with _assisted(steps, arguments):
        for step in steps(*arguments):
            step()


def assist(module: str, name: str, *arguments: Any) -> None:
    """Run the same steps from the last to the first; this is what the assistant does."""
    for step in reversed(getattr(import_module(module), name)(*arguments)):
        step()


class _Starter(event.Listener):
    """Starts the assistant when Numba begins to compile a kernel of this package."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.is_due = True

    def on_start(self, event: event.Event) -> None:
        if self.is_due and event.data["dispatcher"].py_func.__module__.startswith("l0anneal."):
            self.is_due = False
            self.process = _start(self.command)

    def on_end(self, event: event.Event) -> None:
        """Nothing ends with a compilation."""


@contextmanager
def _assisted(steps: Steps, arguments: tuple[Any, ...]) -> Iterator[None]:
    """Let an assistant help if a kernel has to be compiled in the ``with`` block."""
    if not _is_welcome():
        yield
        return
    names = ", ".join(map(repr, (steps.__module__, steps.__qualname__, *arguments)))
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import assist; assist({names})"
    starter = _Starter([sys.executable, "-c", code])
    event.register("numba:compile", starter)
    try:
        yield
    finally:
        event.unregister("numba:compile", starter)
        if starter.process is not None:
            starter.process.kill()
            starter.process.wait()


def _is_welcome() -> bool:
    """Whether there is a core for the assistant, and an interpreter that can be started."""
    if os.environ.get(SWITCH) == "0" or getattr(sys, "frozen", False):
        return False
    try:
        n_cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not have it
        n_cores = os.cpu_count() or 1
    return n_cores > 1 and "python" in Path(sys.executable or "").name.lower()


def _start(command: list[str]) -> "subprocess.Popen[bytes] | None":
    """Start the assistant; return None where no process can be started."""
    try:
        return subprocess.Popen(
            command,
            env=os.environ | {SWITCH: "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:  # the caller compiles everything
        return None
