"""Standard errors of statistics of correlated series, from blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["N_BLOCKS", "block_error", "jackknife_error"]

N_BLOCKS = 20
Floats = NDArray[np.float64]


def jackknife_error(estimates: Floats) -> Floats:
    """Return the standard error, given the estimates that leave out one block (rows) each."""
    n = len(estimates)
    spread: Floats = np.sum((estimates - estimates.mean(axis=0)) ** 2, axis=0)
    return np.sqrt((n - 1) / n * spread)


def block_error(series: Floats, statistic: Callable[[Floats], Floats]) -> Floats:
    """Return the standard error of a statistic of a series, whose rows are steps.

    The series is cut into 20 blocks, and the statistic is computed without each of them in turn (the
    jackknife). Blocks must be several times as long as the autocorrelation time to count as
    independent.
    """
    blocks = np.array_split(np.arange(len(series)), min(N_BLOCKS, len(series)))
    return jackknife_error(np.stack([statistic(np.delete(series, b, axis=0)) for b in blocks]))
