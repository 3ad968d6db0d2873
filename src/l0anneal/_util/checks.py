"""Checks of arguments that several samplers take: what was given, what is needed."""

import math
from typing import Any

import numpy as np

__all__ = ["check_integer", "check_time_limit"]


def check_integer(name: str, value: Any, least: int) -> int:
    """Return an integer argument, or raise ValueError if it is none or too small."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer ≥ {least}; got {value!r}")
    return int(value)


def check_time_limit(time_limit: float | None) -> None:
    """Raise ValueError if it is not a number of seconds."""
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise ValueError(f"time_limit is in seconds, positive and finite; got {time_limit!r}")
