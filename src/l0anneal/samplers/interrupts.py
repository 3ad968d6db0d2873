"""Ctrl-C during a run that returns what it has found so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """The handler of SIGINT that a run puts in the place of another one."""

    def __init__(self) -> None:
        self._outer_handler: Any = None  # while the run has its own

    @contextmanager
    def ending(self, stop: Callable[[], None]) -> Iterator[None]:
        """Let the first Ctrl-C call ``stop``; a second one raises KeyboardInterrupt as usual."""
        before = signal.getsignal(signal.SIGINT)
        ignored = before in (signal.SIG_IGN, None)
        if ignored or not _in_main_thread():
            yield
            return

        def end(number: int, frame: FrameType | None) -> None:
            stop()
            signal.signal(signal.SIGINT, before)
            if getattr(before, "ends_a_run", False):  # this run is inside another one
                before(number, frame)  # type: ignore[operator, misc]

        end.ends_a_run = True  # type: ignore[attr-defined]

        self._outer_handler = before
        signal.signal(signal.SIGINT, end)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self._outer_handler = None

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Let Ctrl-C do what it did before the run began."""
        if self._outer_handler is None or not _in_main_thread():
            yield
            return
        ours = signal.signal(signal.SIGINT, self._outer_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, ours)


def _in_main_thread() -> bool:
    """Whether this thread may set handlers of signals."""
    return threading.current_thread() is threading.main_thread()
