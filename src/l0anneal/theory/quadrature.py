"""Gaussian averages of functions with a narrow step, by composite Gauss-Legendre quadrature.

The averages of replica theory are E[f(z)] over a standard normal z, where f contains the sigmoid
p(z) = sigmoid(Λ + A z²/2).  The sigmoid has a narrow dip around z = 0 when A is large and a narrow
step at z = sqrt(-2Λ/A) when Λ is very negative.  The panels are refined around both
(docs/theory.md, section 5); a Gauss-Hermite rule resolves neither.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Z_MAX", "Array", "composite", "even_gaussian", "sigmoid_grid", "sigmoid_panels"]

Array = NDArray[np.float64]

#: Integrals end at twelve standard deviations, where the Gaussian weight is 5e-32.
Z_MAX = 12.0

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_UNIT = np.arange(0.0, Z_MAX + 0.5)
_DIP = np.array([0.1, 0.3, 1.0, 2.0, 3.0, 4.5, 6.0, 9.0])
_STEP = np.array([0.0, 1.5, 3.0, 5.0, 8.0, 12.0, 18.0, 26.0, 40.0])
_STEP = np.concatenate((-_STEP[:0:-1], _STEP))


def composite(breaks: Array) -> tuple[Array, Array]:
    """Return nodes and weights of ∫ f(z) dz, with 16 points between neighbouring ``breaks``."""
    left, width = breaks[:-1], np.diff(breaks)
    keep = width > 0.0
    left, half = left[keep], 0.5 * width[keep]
    nodes = (left + half)[:, None] + half[:, None] * _POINTS
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()


def even_gaussian(breaks: Array) -> tuple[Array, Array]:
    """Return nodes z ≥ 0 and weights of E[f(z)] for even f and standard normal z.

    Examples
    --------
    >>> z, w = even_gaussian(np.arange(13.0))
    >>> print(f"{w.sum():.12f} {w @ z**4:.12f}")
    1.000000000000 3.000000000000
    """
    z, w = composite(breaks)
    return z, w * np.exp(-0.5 * z * z) * np.sqrt(2.0 / np.pi)


def sigmoid_grid(gain: float, offset: float) -> tuple[Array, Array, Array]:
    """Return z², weights and offset + gain z²/2 on the nodes of E[f(z)] for even f.

    Around a step at z0 the exponent is computed as gain (z-z0)(z+z0)/2 with an exact z-z0,
    because offset + gain z²/2 loses digits where the step is narrow compared with z0.
    """
    breaks = sigmoid_panels(gain, offset)
    step = np.sqrt(-2.0 * offset / gain) if gain > 0.0 > offset else np.inf
    if step >= Z_MAX:
        z, weights = even_gaussian(breaks)
        return z * z, weights, offset + (0.5 * gain) * z * z
    distances = np.concatenate((breaks[breaks < step] - step, _STEP / (gain * step)))
    distances = np.concatenate((distances, breaks[breaks > step] - step))
    from_step, weights = composite(np.sort(np.clip(distances, -step, Z_MAX - step)))
    z = step + from_step
    weights = weights * np.exp(-0.5 * z * z) * np.sqrt(2.0 / np.pi)
    return z * z, weights, gain * from_step * (step + 0.5 * from_step)


def sigmoid_panels(gain: float, offset: float) -> Array:
    """Return panel boundaries in [0, 12] that resolve sigmoid(offset + gain z²/2)."""
    parts = [_UNIT]
    if gain > 0.0:
        parts.append(_DIP / np.sqrt(gain))
        if offset < 0.0:
            step = np.sqrt(-2.0 * offset / gain)
            if step < 3.0 * Z_MAX:
                parts.append(step + _STEP / (gain * step))
    return np.sort(np.clip(np.concatenate(parts), 0.0, Z_MAX))
