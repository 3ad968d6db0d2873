"""Root and minimum of a function of one variable, by SciPy.

``scipy.optimize`` takes longer to import than the rest of the theory, so it is imported on the
first call.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["brentq", "minimum"]


def brentq(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = 8.9e-16,
    maxiter: int = 500,
) -> float:
    """Return the root between ``low`` and ``high``, where ``function`` changes sign.

    Examples
    --------
    >>> print(f"{brentq(lambda x: x * x - 2.0, 1.0, 2.0):.9f}")
    1.414213562
    """
    from scipy.optimize import brentq as solve

    rtol = max(rtol, 8.9e-16)  # SciPy accepts no less than four units of rounding
    return float(solve(function, low, high, xtol=xtol, rtol=rtol, maxiter=maxiter))


def minimum(
    function: Callable[[float], float], low: float, high: float, *, xatol: float
) -> tuple[float, float]:
    """Return the position and the value of the minimum of ``function`` between two bounds."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": xatol}
    )
    return float(found.x), float(found.fun)
