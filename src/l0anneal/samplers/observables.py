"""Functions of the coefficients that a sampler averages beside the energy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["Observable", "check_observables", "observe"]

Observable = Callable[[NDArray[np.float64]], float]

# variables and dimensions of the samplers' datasets
RESERVED = frozenset(
    {"mu", "sweeps", "temperature", "distortion", "distortion_std", "acceptance", "free_entropy"}
    | {"entropy", "energy", "support", "agrees", "chain", "slot", "kernel", "inclusion", "coef"}
    | {"autocorrelation", "log_g_ratio", "size", "specific_heat", "ess", "families", "family"}
    | {
        "free_entropy_bias",
        "free_entropy_integrated",
        "rho_t",
        "draw",
        "column",
        "sweep",
        "replica",
    }
)


def check_observables(observables: Mapping[str, Observable] | None) -> dict[str, Observable]:
    """Return a mapping of names to functions, or raise ValueError."""
    checked = dict(observables or {})
    for name, function in checked.items():
        # the error of an observable is called <name>_error
        plain = str(name).removesuffix("_error")
        if name in RESERVED or (plain != name and (plain in RESERVED or plain in checked)):
            raise ValueError(
                f"an observable cannot be called {name!r}: the trajectory has a variable of that name"
            )
        if not callable(function):
            raise ValueError(
                f"observables maps names to functions of the coefficients; got {function!r} "
                f"as {name!r}"
            )
    return checked


def observe(observables: Mapping[str, Observable], coef: NDArray[np.float64]) -> dict[str, float]:
    """Return the value of each observable at dense coefficients, in the caller's units."""
    return {name: float(function(coef)) for name, function in observables.items()}
