r"""Bayes-optimal estimation with a known Bernoulli-Gaussian prior, as a reference.

x is zero with probability 1-ρ̂ and N(0, σx²) otherwise, and is observed as r = x + sqrt(v) z
(docs/theory.md, section 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from l0anneal.theory.checks import check_fraction, check_positive, check_variance
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import even_gaussian, sigmoid_panels
from l0anneal.theory.roots import minimum

__all__ = ["MessagePassing", "amp_threshold", "information_limit", "message_passing", "mmse"]


def mmse(v: float, rho_hat: float, *, sigma_x2: float = 1.0) -> float:
    r"""Return the minimum mean squared error of x given x + sqrt(v) z.

    With t = σx²/(σx²+v) and π(r) the posterior probability of a nonzero,
    mmse = ρ̂(v t + t²(v+σx²) E_1[(1-π)²z²]) + (1-ρ̂) t² v E_0[π²z²].

    Parameters
    ----------
    v : float
        Variance of the observation noise.
    rho_hat : float
        Fraction of nonzero coefficients.
    sigma_x2 : float, default=1
        Variance of the nonzero coefficients.

    Returns
    -------
    float

    See Also
    --------
    l0anneal.theory.bayes.message_passing : Iterate it.

    Examples
    --------
    >>> print(f"{mmse(1.0, 1.0):.6f} {mmse(0.1, 0.2):.6f}")
    0.500000 0.035277
    """
    check_fraction("rho_hat", rho_hat)
    check_positive("sigma_x2", sigma_x2)
    check_variance("v", v)
    if v == 0.0 or rho_hat == 0.0:
        return 0.0
    total = v + sigma_x2
    t = sigma_x2 / total
    if rho_hat == 1.0:
        return v * t
    offset = math.log(rho_hat) - math.log1p(-rho_hat) + 0.5 * math.log(v / total)
    slope = sigma_x2 / (v * total)  # 1/v - 1/(v+σx²) without cancellation

    def average(variance: float, power_of_zero: bool) -> float:
        z, weight = even_gaussian(sigmoid_panels(slope * variance, offset))
        u = offset + 0.5 * slope * variance * z * z
        return float(weight @ ((expit(-u) if power_of_zero else expit(u)) ** 2 * z * z))

    nonzero = v * t + t * t * total * average(total, True)
    return rho_hat * nonzero + (1.0 - rho_hat) * t * t * v * average(v, False)


def information_limit(rho_hat: float) -> float:
    """Return the α below which no method recovers x̂.

    It is α = ρ̂, where there are as many equations as nonzero coefficients.

    Parameters
    ----------
    rho_hat : float
        Fraction of nonzero coefficients.

    Returns
    -------
    float

    See Also
    --------
    l0anneal.theory.bayes.amp_threshold : The limit of message passing.

    Examples
    --------
    >>> information_limit(0.5)
    0.5
    """
    return check_fraction("rho_hat", rho_hat)


def amp_threshold(rho_hat: float) -> float:
    """Return α_BP = max_v mmse(v)/v; Bayes-optimal message passing recovers x̂ for α > α_BP.

    There is no noise, and α_BP does not depend on σx², which only sets the scale of v.

    Parameters
    ----------
    rho_hat : float
        Fraction of nonzero coefficients.

    Returns
    -------
    float

    See Also
    --------
    l0anneal.theory.bayes.message_passing : The iteration.
    l0anneal.theory.bayes.information_limit : The limit of any method.
    l0anneal.theory.l1.reconstruction_limit : The limit of ℓ1.

    Examples
    --------
    >>> print(f"{amp_threshold(0.5):.6f}")
    0.685698
    """
    rho_hat = check_fraction("rho_hat", rho_hat)
    if rho_hat in (0.0, 1.0):
        return rho_hat
    grid = np.linspace(math.log(1e-12), math.log(1e4), 120)
    ratio = np.array([mmse(math.exp(x), rho_hat) / math.exp(x) for x in grid])
    best = int(ratio.argmax())
    if best in (0, len(grid) - 1):
        return max(rho_hat, float(ratio[best]))  # the ratio is monotone: its supremum is at v → 0
    _, value = minimum(
        lambda x: -mmse(math.exp(x), rho_hat) / math.exp(x),
        grid[best - 1],
        grid[best + 1],
        xatol=1e-10,
    )
    return max(rho_hat, -value)


@dataclass(frozen=True)
class MessagePassing:
    """The fixed point that Bayes-optimal message passing reaches from an uninformed start.

    Attributes
    ----------
    effective_noise : float
        v, the variance of the noise that each coefficient sees.
    mse : float
        Mean squared error per column.

    See Also
    --------
    l0anneal.theory.bayes.message_passing : Compute it.

    Examples
    --------
    >>> found = message_passing(0.6, 0.2, sigma_xi2=0.1)
    >>> print(f"{found.effective_noise:.4f} {found.mse:.4f}")
    0.3200 0.0920
    """

    effective_noise: float
    mse: float


def message_passing(
    alpha: float, rho_hat: float, *, sigma_x2: float = 1.0, sigma_xi2: float = 0.0
) -> MessagePassing:
    """Iterate the state evolution v ← (σξ² + mmse(v))/α from v = ∞.

    Parameters
    ----------
    alpha : float
        Measurements per column, M/N.
    rho_hat : float
        Fraction of nonzero coefficients.
    sigma_x2 : float, default=1
        Variance of the nonzero coefficients.
    sigma_xi2 : float, default=0
        Variance of the noise.

    Returns
    -------
    MessagePassing

    Raises
    ------
    ConvergenceError
        If α is so close to the threshold that 100000 iterations do not reach the fixed point.

    See Also
    --------
    l0anneal.theory.bayes.MessagePassing : The result.
    l0anneal.theory.bayes.amp_threshold : Where it recovers the signal.
    l0anneal.baselines.bayes_amp : The algorithm.

    Examples
    --------
    >>> stuck = message_passing(0.65, 0.5)
    >>> solved = message_passing(0.75, 0.5)
    >>> print(f"{stuck.mse:.3f} {solved.mse:.0e}")
    0.086 0e+00
    """
    check_positive("alpha", alpha)
    check_fraction("rho_hat", rho_hat)
    check_positive("sigma_x2", sigma_x2)
    check_variance("sigma_xi2", sigma_xi2)
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
        f"state evolution did not converge in 100000 iterations at alpha={alpha}, "
        f"rho_hat={rho_hat}; choose an alpha that is not so close to the threshold"
    )
