"""Run calls on joblib's workers so that Ctrl-C ends them at once and without a traceback."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, Literal

from joblib import Parallel

__all__ = ["results_of", "shield_children_from_interrupts"]


@contextmanager
def results_of(
    calls: Iterable[Any], n_jobs: int | None, return_as: Literal["generator", "generator_unordered"]
) -> Iterator[Generator[Any]]:
    """Iterate over the results of delayed calls; end the workers if the caller leaves early.

    Parameters
    ----------
    calls : iterable of joblib.delayed calls
    n_jobs : int, optional
        As in `joblib.Parallel`.
    return_as : {"generator", "generator_unordered"}
        Whether results arrive in the order of the calls, or as they are ready.
    """
    results: Generator[Any] | None = None
    try:
        with shield_children_from_interrupts():
            results = Parallel(n_jobs=n_jobs, return_as=return_as)(calls)
        yield results
    finally:
        with warnings.catch_warnings():
            # after an interruption joblib warns that unused results are lost, which is intended
            warnings.simplefilter("ignore")
            if results is not None:
                results.close()


@contextmanager
def shield_children_from_interrupts() -> Iterator[None]:
    """Start processes that ignore SIGINT, and handle a SIGINT that arrives meanwhile at the end.

    A terminal sends SIGINT to all processes of a command. The main process handles the signal and
    ends its workers, which would otherwise print a traceback each.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    with _postponed_interrupts():
        resource_tracker.ensure_running()  # starting the tracker later would unblock SIGINT
        previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield  # children inherit the signal mask
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@contextmanager
def _postponed_interrupts() -> Iterator[None]:
    """Handle SIGINT at the end, also one that another thread received for the process."""
    handler = signal.getsignal(signal.SIGINT)
    # only the main thread handles signals, and a handler not set by Python cannot be restored
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    arrived: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)
