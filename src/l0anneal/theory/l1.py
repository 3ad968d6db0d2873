r"""What the l1 relaxation achieves: the LASSO and basis pursuit at large N.

Zero-temperature state evolution of min ½‖y - Ax‖² + λ‖x‖₁ (docs/theory.md, section 6).  With φ and
Qf the Gaussian density and tail, the soft threshold removes all but

    E2(θ) = E[(|z| - θ)₊²] = 2[(1 + θ²) Qf(θ) - θ φ(θ)].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, ndtr, ndtri

from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.roots import brentq


def _phi(t: float) -> float:
    return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


def _outside(t: float) -> float:
    """P(|z| > t)."""
    return 2.0 * float(ndtr(-t))


def _e2(t: float) -> float:
    """E[(|z| - t)₊²]; the asymptotic series where the closed form cancels."""
    if t > 8.0:
        t2 = t * t
        return 4.0 * _phi(t) / t**3 * (1.0 - 6.0 / t2 + 45.0 / t2**2 - 420.0 / t2**3)
    return (1.0 + t * t) * _outside(t) - 2.0 * t * _phi(t)


def _fraction(name: str, value: float, *, closed: bool) -> float:
    value = float(value)
    inside = 0.0 <= value <= 1.0 if closed else 0.0 < value < 1.0
    if not inside:
        sign = "<=" if closed else "<"
        raise ValueError(f"0 {sign} {name} {sign} 1 is needed, got {name}={value}")
    return value


def _sizes(alpha: float, rho: float, sigma_xi2: float) -> None:
    _fraction("rho", rho, closed=False)
    if not rho < alpha < math.inf:
        raise ValueError(f"rho < alpha is needed, got rho={rho}, alpha={alpha}")
    if not 0.0 < sigma_xi2 < math.inf:
        raise ValueError(f"a noise variance sigma_xi2 > 0 is needed, got {sigma_xi2}")


# -- basis pursuit ---------------------------------------------------------------------------


def optimal_threshold(rho_hat: float) -> float:
    """θ that minimises ρ̂(1+θ²) + (1-ρ̂)E2(θ), the soft threshold at the reconstruction limit."""
    rho_hat = _fraction("rho_hat", rho_hat, closed=False)
    weight = rho_hat / (1.0 - rho_hat)
    return float(
        brentq(
            lambda t: t * (weight + _outside(t)) - 2.0 * _phi(t), 0.0, 40.0, xtol=1e-15, rtol=1e-15
        )
    )


def reconstruction_limit(rho_hat: float) -> float:
    """α_c(ρ̂) = min_θ {ρ̂(1+θ²) + (1-ρ̂)E2(θ)}: basis pursuit recovers x̂ for α > α_c.

    Noiseless; it does not depend on the law of the nonzero coefficients.

    Examples
    --------
    >>> print(f"{reconstruction_limit(0.5):.7f}")
    0.8312999
    """
    rho_hat = _fraction("rho_hat", rho_hat, closed=True)
    if rho_hat in (0.0, 1.0):
        return rho_hat
    theta = optimal_threshold(rho_hat)
    return rho_hat * (1.0 + theta**2) + (1.0 - rho_hat) * _e2(theta)


# -- noise only ------------------------------------------------------------------------------


def distortion(alpha: float, rho: float, *, sigma_xi2: float = 1.0) -> float:
    """ε of the LASSO solution with ρN nonzero coefficients, y pure noise.

    θ solves 2Qf(θ) = ρ;  Δ = σξ²/(1 - E2/α);  ε = ½Δ(1 - ρ/α)².

    Examples
    --------
    >>> print(f"{distortion(0.5, 0.2):.7f}")
    0.2136015
    """
    _sizes(alpha, rho, sigma_xi2)
    delta = sigma_xi2 / (1.0 - _e2(-float(ndtri(0.5 * rho))) / alpha)
    return 0.5 * delta * (1.0 - rho / alpha) ** 2


def distortion_after_least_squares(alpha: float, rho: float, *, sigma_xi2: float = 1.0) -> float:
    """ε of least squares on the LASSO's support of ρN columns, y pure noise.

    Two coupled systems, the LASSO and the refit; the second answers to the first also through the
    boundary of the support, with response b = 2θφ(θ)/(α-ρ).  Leaving b out is wrong by a factor
    of ten.

    Examples
    --------
    >>> print(f"{distortion_after_least_squares(0.5, 0.2):.7f}")
    0.0965908
    """
    _sizes(alpha, rho, sigma_xi2)
    theta = -float(ndtri(0.5 * rho))
    e2 = _e2(theta)
    delta1 = sigma_xi2 / (1.0 - e2 / alpha)
    boundary = 2.0 * theta * _phi(theta)
    b = boundary / (alpha - rho)
    r = (1.0 + b) * (alpha - e2) / ((alpha - rho) + b * (alpha - e2))  # Δ12/Δ11
    k, gamma = r * b / (1.0 + b), r / (1.0 + b)
    c2 = rho + boundary  # E[z²; |z| > θ]
    cross = gamma**2 * c2 + 2.0 * gamma * k * rho + k**2 * e2 - rho * r**2
    delta2 = (sigma_xi2 + delta1 / alpha * cross) / (1.0 - rho / alpha)
    return 0.5 * (delta2 - 2.0 * k * r * delta1 + k**2 * delta1) * (1.0 - rho / alpha) ** 2


# -- LASSO, planted and noisy ----------------------------------------------------------------


@dataclass(frozen=True)
class Lasso:
    """A LASSO solution at large N.

    Attributes
    ----------
    penalty : float
        λ in ½‖y - Ax‖² + λ‖x‖₁.
    theta : float
        The threshold in units of the effective noise sqrt(Δ/α).
    active_fraction : float
        Fraction of nonzero coefficients.
    distortion, mse : float
        ‖y - Ax‖²/(2M) and ‖x̂ - x‖²/N.
    delta : float
        Δ = σξ² + mse.
    """

    penalty: float
    theta: float
    active_fraction: float
    distortion: float
    mse: float
    delta: float


def lasso(
    alpha: float,
    rho_hat: float = 0.0,
    *,
    sigma_x2: float = 1.0,
    sigma_xi2: float = 0.0,
    theta: float | None = None,
    penalty: float | None = None,
    active_fraction: float | None = None,
) -> Lasso:
    """State evolution of the LASSO for a planted signal in noise.

    x = soft(x̂ + sqrt(Δ/α) z; θ sqrt(Δ/α)),  Δ = σξ² + E[(x - x̂)²],  λ = θ sqrt(αΔ)(1 - ρ_act/α).

    Parameters
    ----------
    alpha, rho_hat, sigma_x2, sigma_xi2 : float
        As in :class:`ReplicaSymmetric`.
    theta, penalty, active_fraction : float
        Exactly one of them picks the point on the LASSO path.

    Examples
    --------
    >>> fit = lasso(0.6, 0.2, sigma_xi2=0.1, theta=1.2)
    >>> print(f"{fit.penalty:.6f} {fit.active_fraction:.6f} {fit.distortion:.7f} {fit.mse:.7f}")
    0.210546 0.294189 0.0256536 0.0975040
    """
    rho_hat = _fraction("rho_hat", rho_hat, closed=True)
    if not 0.0 < alpha < math.inf:
        raise ValueError(f"alpha > 0 is needed, got alpha={alpha}")
    if not (0.0 <= sigma_x2 < math.inf and 0.0 <= sigma_xi2 < math.inf):
        raise ValueError("the variances sigma_x2 and sigma_xi2 must be finite and not negative")
    if sigma_xi2 + rho_hat * sigma_x2 == 0.0:
        raise ValueError(
            "there is no signal and no noise at all: rho_hat*sigma_x2 + sigma_xi2 > 0 is needed"
        )
    if sum(v is not None for v in (theta, penalty, active_fraction)) != 1:
        raise ValueError("give exactly one of theta, penalty and active_fraction")

    def at(t: float) -> Lasso | None:
        return _lasso_at(alpha, rho_hat, sigma_x2, sigma_xi2, t)

    if theta is not None:
        if not 0.0 <= theta < math.inf:
            raise ValueError(f"theta >= 0 is needed, got {theta}")
        fit = at(theta)
        if fit is None:
            raise ValueError(
                f"theta={theta} is below the LASSO path: more than M coefficients would be active"
            )
        return fit
    if penalty is not None:
        if not 0.0 < penalty < math.inf:
            raise ValueError(f"penalty > 0 is needed, got {penalty}")
        wanted, name, sign = penalty, "penalty", 1.0
    else:
        assert active_fraction is not None
        if not 0.0 < active_fraction < min(alpha, 1.0):
            raise ValueError(
                f"0 < active_fraction < min(alpha, 1) is needed, got {active_fraction}"
            )
        wanted, name, sign = active_fraction, "active_fraction", -1.0

    def excess(t: float) -> float:
        fit = at(t)
        value = -1.0 if fit is None else getattr(fit, name) / wanted - 1.0
        return -1.0 if fit is None else sign * value

    high = 1.0
    while excess(high) < 0.0:
        high *= 1.5
        if high > 1e4:
            raise ConvergenceError(f"no LASSO solution with {name}={wanted} was found")
    if excess(0.0) >= 0.0:
        fit = at(0.0)
    else:
        fit = at(float(brentq(excess, 0.0, high, xtol=1e-15, rtol=1e-14, maxiter=500)))
    if fit is None or abs(getattr(fit, name) - wanted) > 1e-9 * wanted + 1e-14:
        raise ValueError(f"the LASSO path has no point with {name}={wanted} at these parameters")
    return fit


def _lasso_at(
    alpha: float, rho_hat: float, sigma_x2: float, sigma_xi2: float, theta: float
) -> Lasso | None:
    """The fixed point at θ; None below the path (Δ diverges, or ρ_act ≥ α)."""
    e2 = _e2(theta)
    if e2 >= alpha:
        return None
    power = sigma_xi2 + rho_hat * sigma_x2

    def error(delta: float) -> float:
        """E[(x - x̂)²], written without subtracting σx² from itself at small Δ."""
        v = delta / alpha
        w = v + sigma_x2
        t = theta * math.sqrt(v / w)
        # σx² + w E2(t) - 2σx² P(|z|>t), with 1 - P(|z|>t) - 2tφ(t) = E[z²; |z|<t]
        lost = float(gammainc(1.5, 0.5 * t * t)) + t * t * _outside(t)
        planted = sigma_x2 * lost + v * _e2(t)
        return (1.0 - rho_hat) * v * e2 + rho_hat * planted

    if sigma_xi2 == 0.0:
        slope = (rho_hat * (1.0 + theta**2) + (1.0 - rho_hat) * e2) / alpha
        if slope <= 1.0:  # the map is concave: no other fixed point than perfect reconstruction
            active = (1.0 - rho_hat) * _outside(theta) + rho_hat
            if active >= alpha:
                return None
            return Lasso(0.0, theta, active, 0.0, 0.0, 0.0)
    low = sigma_xi2 if sigma_xi2 > 0.0 else 1e-12 * power
    high = power
    while error(high) + sigma_xi2 > high:
        high *= 4.0
        if high > 1e30 * power:
            return None
    while error(low) + sigma_xi2 < low:
        low *= 0.25
    delta = float(
        np.exp(
            brentq(
                lambda x: math.log(error(math.exp(x)) + sigma_xi2) - x,
                math.log(low),
                math.log(high),
                xtol=1e-15,
                rtol=1e-15,
            )
        )
    )
    v = delta / alpha
    t = theta * math.sqrt(v / (v + sigma_x2))
    active = (1.0 - rho_hat) * _outside(theta) + rho_hat * _outside(t)
    if active >= alpha:
        return None
    shrink = 1.0 - active / alpha
    return Lasso(
        penalty=theta * math.sqrt(alpha * delta) * shrink,
        theta=theta,
        active_fraction=active,
        distortion=0.5 * delta * shrink**2,
        mse=error(delta),
        delta=delta,
    )
