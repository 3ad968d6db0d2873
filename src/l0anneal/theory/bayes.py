r"""The Bayes-optimal yardstick: a Bernoulli-Gaussian prior that is known exactly.

x is zero with probability 1-ρ̂ and N(0, σx²) otherwise, seen as r = x + sqrt(v) z
(docs/theory.md, section 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import even_gaussian, sigmoid_panels
from l0anneal.theory.roots import minimum


def _check(rho_hat: float, sigma_x2: float) -> None:
    if not 0.0 <= rho_hat <= 1.0:
        raise ValueError(f"0 <= rho_hat <= 1 is needed, got rho_hat={rho_hat}")
    if not 0.0 < sigma_x2 < math.inf:
        raise ValueError(f"the variance sigma_x2 > 0 is needed, got {sigma_x2}")


def mmse(v: float, rho_hat: float, *, sigma_x2: float = 1.0) -> float:
    r"""Minimum mean squared error of x from x + sqrt(v) z.

    With t = σx²/(σx²+v) and π(r) the posterior probability of a nonzero,
    mmse = ρ̂(v t + t²(v+σx²) E_1[(1-π)²z²]) + (1-ρ̂) t² v E_0[π²z²].

    Examples
    --------
    >>> print(f"{mmse(1.0, 1.0):.6f} {mmse(0.1, 0.2):.6f}")
    0.500000 0.035277
    """
    _check(rho_hat, sigma_x2)
    if not 0.0 <= v < math.inf:
        raise ValueError(f"the noise variance v >= 0 is needed, got {v}")
    if v == 0.0 or rho_hat == 0.0:
        return 0.0
    total = v + sigma_x2
    t = sigma_x2 / total
    if rho_hat == 1.0:
        return v * t
    offset = math.log(rho_hat) - math.log1p(-rho_hat) + 0.5 * math.log(v / total)
    slope = sigma_x2 / (v * total)  # 1/v - 1/(v+σx²), without the subtraction

    def average(variance: float, power_of_zero: bool) -> float:
        z, weight = even_gaussian(sigmoid_panels(slope * variance, offset))
        u = offset + 0.5 * slope * variance * z * z
        return float(weight @ ((expit(-u) if power_of_zero else expit(u)) ** 2 * z * z))

    nonzero = v * t + t * t * total * average(total, True)
    return rho_hat * nonzero + (1.0 - rho_hat) * t * t * v * average(v, False)


def information_limit(rho_hat: float) -> float:
    """α = ρ̂: as many equations as unknown coefficients; below it nothing recovers x̂."""
    _check(rho_hat, 1.0)
    return float(rho_hat)


def amp_threshold(rho_hat: float) -> float:
    """α_BP = max_v mmse(v)/v: Bayes-optimal message passing recovers x̂ for α > α_BP.

    Noiseless; σx² only sets the scale of v and drops out.

    Examples
    --------
    >>> print(f"{amp_threshold(0.5):.6f}")
    0.685698
    """
    _check(rho_hat, 1.0)
    if rho_hat in (0.0, 1.0):
        return float(rho_hat)
    grid = np.linspace(math.log(1e-12), math.log(1e4), 120)
    ratio = np.array([mmse(math.exp(x), rho_hat) / math.exp(x) for x in grid])
    best = int(ratio.argmax())
    if best in (0, len(grid) - 1):
        return max(float(rho_hat), float(ratio[best]))  # monotone: the supremum is at v → 0
    _, value = minimum(
        lambda x: -mmse(math.exp(x), rho_hat) / math.exp(x),
        grid[best - 1],
        grid[best + 1],
        xatol=1e-10,
    )
    return max(float(rho_hat), -value)


@dataclass(frozen=True)
class MessagePassing:
    """The fixed point Bayes-optimal AMP reaches from no knowledge: v and the MSE there."""

    effective_noise: float
    mse: float


def message_passing(
    alpha: float, rho_hat: float, *, sigma_x2: float = 1.0, sigma_xi2: float = 0.0
) -> MessagePassing:
    """State evolution v ← (σξ² + mmse(v))/α from v = ∞.

    Examples
    --------
    >>> stuck = message_passing(0.65, 0.5)
    >>> solved = message_passing(0.75, 0.5)
    >>> print(f"{stuck.mse:.3f} {solved.mse:.0e}")
    0.086 0e+00
    """
    _check(rho_hat, sigma_x2)
    if not 0.0 < alpha < math.inf:
        raise ValueError(f"alpha > 0 is needed, got alpha={alpha}")
    if not 0.0 <= sigma_xi2 < math.inf:
        raise ValueError(f"the variance sigma_xi2 >= 0 is needed, got {sigma_xi2}")
    power = sigma_xi2 + rho_hat * sigma_x2
    v = power / alpha
    for _ in range(100_000):
        new = (sigma_xi2 + mmse(v, rho_hat, sigma_x2=sigma_x2)) / alpha
        if sigma_xi2 == 0.0 and new < 1e-14 * power:
            return MessagePassing(0.0, 0.0)  # below this the map is linear with slope ρ̂/α < 1
        if abs(new - v) <= 1e-13 * v:
            return MessagePassing(new, mmse(new, rho_hat, sigma_x2=sigma_x2))
        v = new
    raise ConvergenceError(
        f"state evolution did not settle in 100000 steps at alpha={alpha}, rho_hat={rho_hat}: "
        "alpha is within rounding of the threshold"
    )
