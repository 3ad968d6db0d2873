"""The number of supports."""

import math

__all__ = ["log_choose"]


def log_choose(n: int, k: int) -> float:
    """Return the log of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
