"""A second process that compiles kernels from the other end of the list, while the user waits.

Numba compiles in one thread at a time, but processes share its cache on disk. If an *assistant* makes
the same steps in reverse order, each of the two processes finds the other's kernels in the cache when it
comes to them, and the user waits little more than half as long. Nothing depends on the assistant: if it
cannot be started, or fails, the caller compiles everything.

The assistant is started when a step finds a kernel that is not in the cache and other steps are left. It
is killed when the caller has made all steps. This is safe at any time: Numba replaces files as a whole,
a kernel whose file is missing is compiled again, and no file of another version has the same name (see
`kernel`). Numba numbers the signatures of a kernel in the order in which they are compiled, so different
steps must not compile different signatures of one kernel.

Set the environment variable `SWITCH` to 0 to do without an assistant.
"""

import json
import multiprocessing
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib
from numba.core import config, event

__all__ = ["SWITCH", "assist", "run_steps"]

SWITCH = "L0ANNEAL_COMPILE_ASSISTANT"
Steps = Callable[..., Sequence[Callable[[], object]]]

_CODE = (
    "import json, sys; path, arguments = json.loads(sys.argv[1]); sys.path[:] = path; "
    f"from {__name__} import assist; assist(*arguments)"
)
_INTERPRETER = re.compile(r"python(w|_d)?[\d.]*t?(\.exe)?", re.IGNORECASE)
_only_one = threading.Lock()


def run_steps(steps: Steps, *arguments: Any) -> None:
    """Call the functions that ``steps(*arguments)`` returns; they compile kernels, in any order.

    ``steps`` must be a function of a module, and ``arguments`` must be strings, numbers, truth values or
    None, so that the assistant can call it too.
    """
    functions = steps(*arguments)
    if not _is_welcome() or not _only_one.acquire(blocking=False):
        for function in functions:
            function()
        return
    starter = _Starter([steps.__module__, steps.__qualname__, *arguments], len(functions))
    try:
        with event.install_listener("numba:compile", starter):
            for function in functions:
                starter.n_begun += 1
                function()
    finally:
        starter.dismiss()
        _only_one.release()


def assist(n_begun: int, module: str, name: str, *arguments: Any) -> None:
    """Make the steps that the caller has not begun, from the last on; the assistant calls this."""
    steps = getattr(import_module(module), name)(*arguments)
    for step in reversed(steps[n_begun:]):
        step()


class _Starter(event.Listener):
    """Starts the assistant when Numba begins to compile a kernel of this package in this thread."""

    def __init__(self, called: list[Any], n_steps: int) -> None:
        self.called, self.n_steps = called, n_steps
        self.n_begun = 0
        self.thread = threading.get_ident()
        self.was_started = False
        self.process: subprocess.Popen[bytes] | None = None

    def on_start(self, event: event.Event) -> None:
        if self.was_started or self.n_begun == self.n_steps:
            return
        module = event.data["dispatcher"].py_func.__module__ or ""
        if module.startswith("l0anneal.") and threading.get_ident() == self.thread:
            self.was_started = True
            self.process = _start([self.n_begun, *self.called])

    def on_end(self, event: event.Event) -> None:
        """Nothing ends with a compilation."""

    def dismiss(self) -> None:
        """End the assistant."""
        if self.process is not None:
            self.process.kill()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5.0)


def _is_welcome() -> bool:
    """Whether there is a core for the assistant, and an interpreter that can be started.

    Processes that others have started, such as the workers of a cluster, have none: there are many of
    them, and the machine is theirs.
    """
    name = Path(sys.executable or "").name
    return (
        os.environ.get(SWITCH) != "0"
        and not getattr(sys, "frozen", False)
        and _INTERPRETER.fullmatch(name) is not None
        and multiprocessing.parent_process() is None
        and joblib.cpu_count() > 1
    )


def _start(arguments: list[Any]) -> "subprocess.Popen[bytes] | None":
    """Start the assistant with the arguments of `assist`; return None where that is not possible."""
    settings = {name: getattr(config, name, None) for name in ("CACHE_DIR", "CPU_NAME")}
    environment = os.environ | {f"NUMBA_{k}": str(value) for k, value in settings.items() if value}
    path = [entry for entry in sys.path if isinstance(entry, str)]
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _CODE, json.dumps([path, arguments])],
            env=environment | {SWITCH: "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, RuntimeError, TypeError, ValueError):  # the caller compiles everything
        return None
