"""Checks of arguments that several functions take."""

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_integer", "check_positive", "check_time_limit", "check_verbose"]


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return an integer argument, or raise ValueError if it is no integer or out of range."""
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        allowed = f"≥ {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be an integer {allowed}; got {value!r}")
    return int(value)


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Return a positive and finite argument (or zero, if allowed), or raise ValueError."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not (value >= 0 if zero else value > 0) or not math.isfinite(value):
        allowed = "finite and ≥ 0" if zero else "positive and finite"
        raise ValueError(f"{name} must be {allowed}; got {value!r}")
    return float(value)


def check_time_limit(time_limit: Any) -> None:
    """Raise ValueError if the argument is neither None nor a number of seconds."""
    if time_limit is not None:
        check_positive("time_limit, in seconds,", time_limit)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ValueError if the argument is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be one of {words}; got {value!r}")


def check_verbose(verbose: Any) -> bool:
    """Return whether to show a progress bar, for scikit-learn's argument of this name."""
    if isinstance(verbose, (bool, np.bool_)):
        return bool(verbose)
    return check_integer("verbose", verbose, 0) > 0
