r"""The l1 relaxation: what the LASSO and basis pursuit achieve at large N.

The results follow from the zero-temperature state evolution of min ½‖y - Ax‖² + λ‖x‖₁
(docs/theory.md, section 6).  With the Gaussian density φ and tail Qf, the second moment that
remains after soft thresholding is

    E2(θ) = E[(|z| - θ)₊²] = 2[(1 + θ²) Qf(θ) - θ φ(θ)].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, ndtr, ndtri

from l0anneal.theory.checks import (
    check_fraction,
    check_positive,
    check_selection,
    check_signal_or_noise,
    check_variance,
)
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.roots import brentq

__all__ = [
    "Lasso",
    "distortion",
    "distortion_after_least_squares",
    "lasso",
    "optimal_threshold",
    "reconstruction_limit",
]


def _phi(t: float) -> float:
    return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


def _tails(t: float) -> float:
    """P(|z| > t)."""
    return 2.0 * float(ndtr(-t))


def _e2(t: float) -> float:
    """E[(|z| - t)₊²], by an asymptotic series where the closed form cancels."""
    if t > 8.0:
        t2 = t * t
        return 4.0 * _phi(t) / t**3 * (1.0 - 6.0 / t2 + 45.0 / t2**2 - 420.0 / t2**3)
    return (1.0 + t * t) * _tails(t) - 2.0 * t * _phi(t)


# -- basis pursuit ---------------------------------------------------------------------------


def optimal_threshold(rho_hat: float) -> float:
    """Return the θ that minimises ρ̂(1+θ²) + (1-ρ̂)E2(θ).

    It is the soft threshold of basis pursuit at its reconstruction limit.

    Parameters
    ----------
    rho_hat : float
        Fraction of nonzero coefficients, 0 < ρ̂ < 1.

    Returns
    -------
    float

    See Also
    --------
    l0anneal.theory.l1.reconstruction_limit : The limit at this threshold.

    Examples
    --------
    >>> print(f"{optimal_threshold(0.5):.5f}")
    0.43633
    """
    rho_hat = check_fraction("rho_hat", rho_hat, ends=False)
    weight = rho_hat / (1.0 - rho_hat)
    return brentq(
        lambda t: t * (weight + _tails(t)) - 2.0 * _phi(t), 0.0, 40.0, xtol=1e-15, rtol=1e-15
    )


def reconstruction_limit(rho_hat: float) -> float:
    """Return α_c(ρ̂) = min_θ {ρ̂(1+θ²) + (1-ρ̂)E2(θ)}; basis pursuit recovers x̂ for α > α_c.

    There is no noise, and α_c does not depend on the law of the nonzero coefficients.

    Parameters
    ----------
    rho_hat : float
        Fraction of nonzero coefficients.

    Returns
    -------
    float

    See Also
    --------
    l0anneal.theory.l1.optimal_threshold : The threshold that reaches it.
    l0anneal.theory.bayes.amp_threshold : The limit of message passing.
    l0anneal.baselines.basis_pursuit : The algorithm.

    Examples
    --------
    >>> print(f"{reconstruction_limit(0.5):.7f}")
    0.8312999
    """
    rho_hat = check_fraction("rho_hat", rho_hat)
    if rho_hat in (0.0, 1.0):
        return rho_hat
    theta = optimal_threshold(rho_hat)
    return rho_hat * (1.0 + theta**2) + (1.0 - rho_hat) * _e2(theta)


# -- noise only ------------------------------------------------------------------------------


def distortion(alpha: float, rho: float, *, sigma_xi2: float = 1.0) -> float:
    """Return ε of the LASSO solution with ρN nonzero coefficients if y is pure noise.

    θ solves 2Qf(θ) = ρ;  Δ = σξ²/(1 - E2/α);  ε = ½Δ(1 - ρ/α)².

    Parameters
    ----------
    alpha : float
        Measurements per column, M/N.
    rho : float
        Fraction of nonzero coefficients in the solution, 0 < ρ < α.
    sigma_xi2 : float, default=1
        Variance of the noise.

    Returns
    -------
    float

    See Also
    --------
    l0anneal.theory.l1.distortion_after_least_squares : The same after a refit.
    l0anneal.theory.rsb.ground_state : The lowest distortion of any support.

    Examples
    --------
    >>> print(f"{distortion(0.5, 0.2):.7f}")
    0.2136015
    """
    check_selection(alpha, rho)
    check_positive("sigma_xi2", sigma_xi2)
    delta = sigma_xi2 / (1.0 - _e2(-float(ndtri(0.5 * rho))) / alpha)
    return 0.5 * delta * (1.0 - rho / alpha) ** 2


def distortion_after_least_squares(alpha: float, rho: float, *, sigma_xi2: float = 1.0) -> float:
    """Return ε of least squares on the LASSO's support of ρN columns if y is pure noise.

    The LASSO and the refit are two coupled systems.  The refit also responds to the LASSO through
    the boundary of the support, with response b = 2θφ(θ)/(α-ρ); without b, ε is wrong by a factor
    of ten.

    Parameters
    ----------
    alpha : float
        Measurements per column, M/N.
    rho : float
        Fraction of columns in the LASSO's support, 0 < ρ < α.
    sigma_xi2 : float, default=1
        Variance of the noise.

    Returns
    -------
    float

    See Also
    --------
    l0anneal.theory.l1.distortion : The same before the refit.
    l0anneal.baselines.refit : The refit.

    Examples
    --------
    >>> print(f"{distortion_after_least_squares(0.5, 0.2):.7f}")
    0.0965908
    """
    check_selection(alpha, rho)
    check_positive("sigma_xi2", sigma_xi2)
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


# -- LASSO with a planted signal and noise ---------------------------------------------------


@dataclass(frozen=True)
class Lasso:
    """The LASSO solution at large N.

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

    See Also
    --------
    l0anneal.theory.l1.lasso : Compute it.

    Examples
    --------
    >>> fit = lasso(0.6, 0.2, sigma_xi2=0.1, active_fraction=0.25)
    >>> print(f"{fit.penalty:.4f} {fit.theta:.4f} {fit.mse:.4f}")
    0.2654 1.3258 0.0962
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
    """Solve the state evolution of the LASSO for a planted signal in noise.

    x = soft(x̂ + sqrt(Δ/α) z; θ sqrt(Δ/α)),  Δ = σξ² + E[(x - x̂)²],  λ = θ sqrt(αΔ)(1 - ρ_act/α).

    Exactly one of ``theta``, ``penalty`` and ``active_fraction`` selects the point on the LASSO
    path.

    Parameters
    ----------
    alpha : float
        Measurements per column, M/N.
    rho_hat : float, default=0
        Fraction of columns in the planted support.
    sigma_x2 : float, default=1
        Variance of the planted coefficients.
    sigma_xi2 : float, default=0
        Variance of the noise.
    theta : float, optional
        Threshold θ in units of the effective noise sqrt(Δ/α).
    penalty : float, optional
        Penalty λ.
    active_fraction : float, optional
        Fraction ρ_act of nonzero coefficients in the solution.

    Returns
    -------
    Lasso

    See Also
    --------
    l0anneal.theory.l1.Lasso : The result.
    l0anneal.theory.l1.reconstruction_limit : The limit without noise.
    l0anneal.baselines.l1 : The algorithm.

    Examples
    --------
    >>> fit = lasso(0.6, 0.2, sigma_xi2=0.1, theta=1.2)
    >>> print(f"{fit.penalty:.6f} {fit.active_fraction:.6f} {fit.distortion:.7f} {fit.mse:.7f}")
    0.210546 0.294189 0.0256536 0.0975040
    """
    check_positive("alpha", alpha)
    rho_hat = check_fraction("rho_hat", rho_hat)
    check_variance("sigma_x2", sigma_x2)
    check_variance("sigma_xi2", sigma_xi2)
    check_signal_or_noise(rho_hat, sigma_x2, sigma_xi2)
    given = [
        (name, value)
        for name, value in (
            ("theta", theta),
            ("penalty", penalty),
            ("active_fraction", active_fraction),
        )
        if value is not None
    ]
    if len(given) != 1:
        raise ValueError(
            "give exactly one of theta, penalty and active_fraction; got "
            + (", ".join(name for name, _ in given) or "none of them")
        )

    def at(t: float) -> Lasso | None:
        return _lasso_at(alpha, rho_hat, sigma_x2, sigma_xi2, t)

    ((name, value),) = given
    if name == "theta":
        return _at_threshold(at, value)
    return _on_path(at, name, value, alpha)


def _at_threshold(at: Callable[[float], Lasso | None], theta: float) -> Lasso:
    if not 0.0 <= theta < math.inf:
        raise ValueError(f"theta must be a finite number ≥ 0; got {theta!r}")
    fit = at(theta)
    if fit is None:
        raise ValueError(
            f"theta={theta!r} is below the LASSO path, where more than M coefficients would be "
            "active; choose a larger theta"
        )
    return fit


def _on_path(at: Callable[[float], Lasso | None], name: str, wanted: float, alpha: float) -> Lasso:
    """Return the point of the LASSO path whose attribute ``name`` is ``wanted``."""
    if name == "penalty":
        check_positive("penalty", wanted)
    elif not 0.0 < wanted < min(alpha, 1.0):
        raise ValueError(f"active_fraction must lie between 0 and min(alpha, 1); got {wanted!r}")
    sign = 1.0 if name == "penalty" else -1.0

    def excess(t: float) -> float:
        fit = at(t)
        return -1.0 if fit is None else sign * (getattr(fit, name) / wanted - 1.0)

    high = 1.0
    while excess(high) < 0.0:
        high *= 1.5
        if high > 1e4:
            raise ConvergenceError(f"found no LASSO solution with {name}={wanted}")
    if excess(0.0) >= 0.0:
        fit = at(0.0)
    else:
        fit = at(brentq(excess, 0.0, high, xtol=1e-15, rtol=1e-14, maxiter=500))
    if fit is None or abs(getattr(fit, name) - wanted) > 1e-9 * wanted + 1e-14:
        raise ValueError(
            f"the LASSO path has no point with {name}={wanted!r} at these parameters; "
            "choose the point by theta instead"
        )
    return fit


def _lasso_at(
    alpha: float, rho_hat: float, sigma_x2: float, sigma_xi2: float, theta: float
) -> Lasso | None:
    """Return the fixed point at θ, or None below the path (Δ diverges, or ρ_act ≥ α)."""
    e2 = _e2(theta)
    if e2 >= alpha:
        return None
    if sigma_xi2 == 0.0:
        slope = (rho_hat * (1.0 + theta**2) + (1.0 - rho_hat) * e2) / alpha
        if slope <= 1.0:
            # The map is concave, so perfect reconstruction is its only fixed point.
            active = (1.0 - rho_hat) * _tails(theta) + rho_hat
            return None if active >= alpha else Lasso(0.0, theta, active, 0.0, 0.0, 0.0)

    def error(delta: float) -> float:
        """E[(x - x̂)²], written without subtracting σx² from itself at small Δ."""
        v = delta / alpha
        w = v + sigma_x2
        t = theta * math.sqrt(v / w)
        # σx² + w E2(t) - 2σx² P(|z|>t), with 1 - P(|z|>t) - 2tφ(t) = E[z²; |z|<t]
        lost = float(gammainc(1.5, 0.5 * t * t)) + t * t * _tails(t)
        planted = sigma_x2 * lost + v * _e2(t)
        return (1.0 - rho_hat) * v * e2 + rho_hat * planted

    delta = _fixed_point(error, sigma_xi2, sigma_xi2 + rho_hat * sigma_x2)
    if delta is None:
        return None
    v = delta / alpha
    t = theta * math.sqrt(v / (v + sigma_x2))
    active = (1.0 - rho_hat) * _tails(theta) + rho_hat * _tails(t)
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


def _fixed_point(error: Callable[[float], float], sigma_xi2: float, power: float) -> float | None:
    """Return the Δ with Δ = σξ² + error(Δ), or None if Δ diverges."""
    low = sigma_xi2 if sigma_xi2 > 0.0 else 1e-12 * power
    high = power
    while error(high) + sigma_xi2 > high:
        high *= 4.0
        if high > 1e30 * power:
            return None
    while error(low) + sigma_xi2 < low:
        low *= 0.25
    log_delta = brentq(
        lambda x: math.log(error(math.exp(x)) + sigma_xi2) - x,
        math.log(low),
        math.log(high),
        xtol=1e-15,
        rtol=1e-15,
    )
    return float(np.exp(log_delta))
