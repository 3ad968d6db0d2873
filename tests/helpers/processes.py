"""Child processes that a test can wait for, interrupt and be sure to end.

    with child(["-m", "l0anneal", "solve", ...]) as process:
        process.wait_for("kicks")
        process.interrupt()
        ended = process.finish()
    assert ended.returncode == 130

A test waits for what the child prints, never for a number of seconds, so it also holds on a busy
machine. Deadlines only catch a child that hangs.
"""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Child", "Ended", "child"]

# A process that was started where SIGINT is ignored (nohup, cron, a shell's "&") ignores it too.
# This program restores the default and then becomes the one that the test asked for.
_RESTORE_SIGINT = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
_ORPHANS = 5.0  # seconds that processes started by the child have to end after it


@dataclass(frozen=True)
class Ended:
    """The end of a child process.

    Attributes
    ----------
    returncode : int
        The exit code, or minus the number of the signal that ended the child.
    stdout, stderr : str
        All that the child printed.
    seconds : float
        Time from the last interrupt to the end; nan without an interrupt.
    """

    returncode: int
    stdout: str
    stderr: str
    seconds: float


class Child:
    """A running Python process in a process group of its own; see `child`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._printed = {"stdout": b"", "stderr": b""}
        self._changed = threading.Condition()
        self._interrupted_at = self._ended_at = float("nan")
        self._threads = [
            threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._printed
        ]
        for thread in self._threads:
            thread.start()
        threading.Thread(target=self._await_end, daemon=True).start()

    @property
    def stdout(self) -> str:
        """What the child has printed on stdout so far."""
        return self._printed["stdout"].decode(errors="replace")

    @property
    def stderr(self) -> str:
        """What the child has printed on stderr so far."""
        return self._printed["stderr"].decode(errors="replace")

    @property
    def running(self) -> bool:
        """Whether the child itself is alive; processes that it started may outlive it."""
        return self._process.returncode is None

    def wait_for(self, text: str | re.Pattern[str], timeout: float = 120.0) -> None:
        """Wait until ``text``, or a match, is in stdout or stderr; fail if the child ends without it."""
        with self._changed:
            self._changed.wait_for(lambda: self._has(text) or not self.running, timeout)
            if self._has(text):
                return
            still = self.running
        if not still:
            self._join_readers(_ORPHANS)  # the last words may still be in the pipe
            if self._has(text):
                return
        reason = f"did not print {text!r} in {timeout:g} s" if still else f"ended without {text!r}"
        pytest.fail(self._report(reason))

    def interrupt(self) -> None:
        """Send SIGINT to the child and to the processes it started, as Ctrl-C in a terminal does."""
        self._interrupted_at = time.monotonic()
        os.killpg(self._process.pid, signal.SIGINT)

    @property
    def seconds_since_interrupt(self) -> float:
        """Time since the last interrupt; nan without one."""
        return time.monotonic() - self._interrupted_at

    def finish(self, timeout: float = 60.0) -> Ended:
        """Wait for the end of the child; fail if it is not there in time."""
        with self._changed:
            self._changed.wait_for(lambda: not self.running, timeout)
        if self.running:
            pytest.fail(self._report(f"did not end in {timeout:g} s"))
        self._join_readers(_ORPHANS)
        self.kill()
        seconds = self._ended_at - self._interrupted_at
        return Ended(self._process.returncode, self.stdout, self.stderr, seconds)

    def kill(self) -> None:
        """End the child and every process that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with self._changed:
            self._changed.wait_for(lambda: not self.running)
        self._join_readers()

    def _has(self, text: str | re.Pattern[str]) -> bool:
        if isinstance(text, str):
            return text in self.stdout or text in self.stderr
        return any(text.search(printed) for printed in (self.stdout, self.stderr))

    def _read(self, name: str) -> None:
        with getattr(self._process, name) as stream:
            while chunk := stream.read1():
                with self._changed:
                    self._printed[name] += chunk
                    self._changed.notify_all()

    def _await_end(self) -> None:
        self._process.wait()
        with self._changed:
            self._ended_at = time.monotonic()
            self._changed.notify_all()

    def _join_readers(self, timeout: float | None = None) -> None:
        for thread in self._threads:
            thread.join(timeout)

    def _report(self, reason: str) -> str:
        return f"The child {reason}.\nstdout:\n{self.stdout}\nstderr:\n{self.stderr}"


@contextmanager
def child(
    program: str | Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
) -> Iterator[Child]:
    """Start Python and end it, with all that it started, when the block is left.

    Parameters
    ----------
    program : str or sequence of str
        Source code, or arguments of Python such as ``["-m", "l0anneal", "solve"]``.
    env : mapping, optional
        Variables to add to the environment.
    cwd : path, optional
        Directory to run in.

    The child answers SIGINT also where the test process ignores it.
    """
    if os.name != "posix":
        pytest.skip("the test sends POSIX signals to a group of processes")
    arguments = ["-c", textwrap.dedent(program)] if isinstance(program, str) else list(program)
    process = Child(
        subprocess.Popen(
            [sys.executable, "-S", "-c", _RESTORE_SIGINT, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
    )
    try:
        yield process
    finally:
        process.kill()
