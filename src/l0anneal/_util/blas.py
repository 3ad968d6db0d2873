"""Limit BLAS to one thread, because splitting a product over threads may change its last digit."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the libraries are listed)
from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.RLock()
_depth = 0
_limit: Any = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; nests, and may be entered from several threads at once.

    The limit belongs to the process, so the first to enter sets it and the last to leave lifts it.
    """
    global _depth, _limit
    with _lock:
        if _depth == 0:
            _limit = _controller().limit(limits=1)
            _limit.__enter__()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _limit.__exit__(None, None, None)
                _limit = None
