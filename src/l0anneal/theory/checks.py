"""Checks of the parameters that the functions of the theory share."""

import math

__all__ = [
    "check_fraction",
    "check_positive",
    "check_selection",
    "check_signal_or_noise",
    "check_variance",
]


def check_positive(name: str, value: float) -> None:
    """Raise ValueError unless ``value`` is positive and finite."""
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a positive finite number; got {value!r}")


def check_variance(name: str, value: float) -> None:
    """Raise ValueError unless ``value`` can be a variance."""
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{name} is a variance and must be finite and ≥ 0; got {value!r}")


def check_fraction(name: str, value: float, *, ends: bool = True) -> float:
    """Return a fraction as a float; ``ends`` says whether 0 and 1 are allowed."""
    if not (0.0 <= value <= 1.0 if ends else 0.0 < value < 1.0):
        between = "between 0 and 1" if ends else "strictly between 0 and 1"
        raise ValueError(f"{name} is a fraction and must lie {between}; got {value!r}")
    return float(value)


def check_selection(alpha: float, rho: float) -> None:
    """Raise ValueError unless fewer columns are selected than there are measurements."""
    check_positive("alpha", alpha)
    check_fraction("rho", rho, ends=False)
    if not rho < alpha:
        raise ValueError(
            f"rho must be smaller than alpha; got rho={rho!r} and alpha={alpha!r}. "
            "Select fewer columns or take more measurements"
        )


def check_signal_or_noise(rho_hat: float, sigma_x2: float, sigma_xi2: float) -> None:
    """Raise ValueError if y would be zero because there is neither signal nor noise."""
    if sigma_xi2 + rho_hat * sigma_x2 == 0.0:
        raise ValueError(
            f"y would be zero with rho_hat={rho_hat!r}, sigma_x2={sigma_x2!r} and "
            f"sigma_xi2={sigma_xi2!r}. Give a signal (rho_hat and sigma_x2 above 0) or noise "
            "(sigma_xi2 above 0)"
        )
