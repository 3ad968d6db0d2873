r"""The scalar channel behind the replica-symmetric equations.

One coefficient, seen through the rest of the system, is a Gaussian mixture (docs/theory.md,
section 2)

    h ~ (1-ρ̂) N(0, V0) + ρ̂ N(0, V1),    V0 = Δ,   V1 = Δ + α σx²,
    p(h) = sigmoid(Λ + a h²/2) = Prob(c = 1 | h),     E[p] = ρ  fixes Λ.

Both solvers, the one at fixed temperature and the parametric one, ask this module for the two
right-hand sides of the saddle-point equations at a given (Δ, a), and for their gradients.
All variances here are in units of the variance of one component of y, P = σξ² + ρ̂ σx².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import Array, sigmoid_grid


@dataclass(frozen=True)
class Model:
    """Parameters in units where P = σξ² + ρ̂ σx² = 1."""

    alpha: float
    rho: float
    rho_hat: float
    sigma_x2: float
    sigma_xi2: float

    @property
    def s0(self) -> float:
        """S at infinite temperature, α/(α-ρ)."""
        return self.alpha / (self.alpha - self.rho)

    @property
    def gap(self) -> float:
        """α - ρ."""
        return self.alpha - self.rho

    @property
    def planted(self) -> bool:
        """Whether there is a signal to find."""
        return self.rho_hat * self.sigma_x2 > 0.0

    def infinite_temperature(self) -> tuple[float, float]:
        """Δ and D at μ = 0, exact."""
        power = self.rho_hat * self.sigma_x2
        numerator = self.sigma_xi2 + power * (1.0 - self.rho) ** 2
        delta = numerator / (1.0 - self.rho**2 / self.alpha)
        return delta, self.rho * (1.0 - self.rho) * (delta + self.alpha * power) / self.gap


@dataclass(frozen=True)
class _Component:
    """One Gaussian of the mixture at fixed Λ: its nodes and the sigmoid on them."""

    weight: float
    variance: float
    gain: float  # A = a V
    z2: Array
    measure: Array
    p: Array
    q: Array  # 1 - p, without cancellation

    def mean(self, values: Array) -> float:
        return float(self.measure @ values)


#: Of one Gaussian of the mixture: weight, variance, z², measure, and Λ + a h²/2 on the nodes.
_Grid = tuple[float, float, Array, Array, Array]


def _grids(model: Model, delta: float, a: float, lam: float) -> list[_Grid]:
    """Panels made for this Λ."""
    variance1 = delta + model.alpha * model.sigma_x2
    mixture = [(1.0, delta)]
    if model.planted:
        mixture = [(1.0 - model.rho_hat, delta), (model.rho_hat, variance1)]
    grids = []
    for weight, variance in mixture:
        grids.append((weight, variance, *sigmoid_grid(a * variance, lam)))
    return grids


def _multiplier(
    model: Model, delta: float, a: float, guess: float | None
) -> tuple[float, float, list[_Grid]]:
    """Λ with E[p] = ρ, how far it is from the Λ the grids were made for, and the grids.

    Newton on logit E[p], which is close to linear in Λ both at small and at large A, inside a
    bracket that shrinks with every evaluation (E[p] is increasing in Λ).
    """
    target = float(np.log(model.rho) - np.log1p(-model.rho))
    high, low = target, -np.inf  # Λ ≤ logit ρ because a h² ≥ 0
    lam = target - 0.5 * a * delta if guess is None else min(guess, target)
    grids: list[_Grid] = []
    made_for = np.inf
    for _ in range(200):
        if not abs(lam - made_for) <= 0.25:  # the step moves by one width per unit of Λ
            grids = _grids(model, delta, a, lam)
            made_for = lam
        selected, left_out, spread = [], [], []
        for weight, _, _, measure, exponent in grids:
            u = exponent + (lam - made_for)
            p, q = expit(u), expit(-u)
            selected.append(weight * float(measure @ p))
            left_out.append(weight * float(measure @ q))
            spread.append(weight * float(measure @ (p * q)))
        error, rate = _excess(model, target, selected, left_out, spread)
        if error > 0.0:
            high = min(high, lam)
        else:
            low = max(low, lam)
        step = -error / rate if rate > 0.0 else np.nan
        if abs(step) <= 4e-15 * (1.0 + abs(lam)) or abs(error) <= 4e-16:
            return float(lam), lam - made_for, grids
        if abs(step) <= 1e-9:  # Newton squares it: the next one is below rounding
            return float(lam + step), lam + step - made_for, grids
        new = lam + step
        if not low < new < high:
            new = 0.5 * (low + high) if np.isfinite(low) else 2.0 * lam - target - 1.0
        if new == lam or (low < new and high - low <= 4e-16 * (1.0 + abs(lam))):
            return float(lam), lam - made_for, grids
        lam = new
    raise ConvergenceError(
        f"the multiplier of E[p] = rho did not converge at Delta={delta:.6g}, a={a:.6g} ({model})"
    )


def _excess(
    model: Model, target: float, selected: list[float], left_out: list[float], spread: list[float]
) -> tuple[float, float]:
    """How much too large E[p] is, on a logarithmic scale, and the derivative of that in Λ."""
    ep, eq = sum(selected), sum(left_out)
    if ep <= 0.0 or eq <= 0.0:
        return ep - eq, 0.0
    error = float(np.log(ep) - np.log(eq)) - target
    if len(selected) == 1 or abs(error) > 0.1:
        return error, sum(spread) / (ep * eq)
    # Selected zeros against left-out nonzeros: near ρ = ρ̂ these are small, and E[p] - ρ cancels.
    room = model.rho - model.rho_hat
    zeros, nonzeros = selected[0] + max(-room, 0.0), left_out[1] + max(room, 0.0)
    if zeros <= 0.0 or nonzeros <= 0.0:
        return error, sum(spread) / (ep * eq)
    return float(np.log(zeros / nonzeros)), spread[0] / zeros + spread[1] / nonzeros


@dataclass(frozen=True)
class Channel:
    """The channel at (Δ, a): Λ, both right-hand sides, their gradients.

    Attributes
    ----------
    delta_rhs : float
        σξ² + E[(x̂ - p h/√α)²], which the saddle point equates with Δ.
    d_rhs : float
        E[p(1-p) h²]/(α-ρ), which the saddle point equates with D.
    delta_gradient, d_gradient : tuple of float
        Their derivatives with respect to (log Δ, log a), Λ following E[p] = ρ.
    """

    model: Model
    delta: float
    a: float
    lam: float
    components: tuple[_Component, ...]
    delta_rhs: float
    d_rhs: float
    delta_gradient: tuple[float, float]
    d_gradient: tuple[float, float]

    @classmethod
    def at(cls, model: Model, delta: float, a: float, guess: float | None = None) -> Channel:
        """Solve for Λ, starting from ``guess``, and average."""
        lam, shift, grids = _multiplier(model, delta, a, guess)
        alpha, b = model.alpha, model.alpha * model.sigma_x2
        components = []
        # Of each average: its value, _l its derivative in Λ, _g its gradient in (log Δ, log a).
        mass_l = 0.0
        mass_g = np.zeros(2)
        rhs, rhs_l, rhs_g = model.sigma_xi2, 0.0, np.zeros(2)
        var, var_l, var_g = 0.0, 0.0, np.zeros(2)
        for k, (weight, variance, z2, measure, exponent) in enumerate(grids):
            gain = a * variance
            f = (0.5 * gain) * z2
            u = exponent + shift
            p, q = expit(u), expit(-u)
            components.append(_Component(weight, variance, gain, z2, measure, p, q))
            v = p * q
            mz = measure * z2
            mv = mz * v
            chain = np.array([delta / variance, 1.0])  # ∂log A/∂(log Δ, log a)
            half = 0.5 * gain
            pq = float(mv.sum())
            mass_l += weight * float(measure @ v)
            mass_g += weight * half * pq * chain
            # E[p(1-p) h²]
            skew = mv * (q - p)
            var += weight * variance * pq
            var_l += weight * variance * float(skew.sum())
            var_g += weight * variance * float(skew @ f) * chain
            var_g[0] += weight * delta * pq
            if k == 0:
                # The coefficient is zero: all of p h/√α is error.
                scale = weight * delta / alpha
                value = scale * float(mz @ (p * p))
                slope = 2.0 * scale * mv * p
                rhs += value
                rhs_l += float(slope.sum())
                rhs_g += float(slope @ f) * chain
                rhs_g[0] += value
            else:
                # E[(x̂ - p h/√α)²] given a nonzero: the posterior variance σx² Δ/V1 plus the square
                # of (B q - Δ p) z; never as P - 2m + q, which cancels near the planted state.
                e = b * q - delta * p
                scale = weight / (alpha * variance)
                value = scale * float(mz @ (e * e))
                slope = -2.0 * scale * variance * mv * e
                rhs += value + weight * model.sigma_x2 * delta / variance
                rhs_l += float(slope.sum())
                rhs_g += float(slope @ f) * chain
                rhs_g[0] += (
                    weight * model.sigma_x2 * delta * b / variance**2
                    - value * delta / variance
                    - 2.0 * scale * delta * float(mz @ (e * p))
                )
        lam_g = -mass_g / mass_l
        rhs_g += rhs_l * lam_g
        var_g += var_l * lam_g
        return cls(
            model,
            delta,
            a,
            lam,
            tuple(components),
            rhs,
            var / model.gap,
            (float(rhs_g[0]), float(rhs_g[1])),
            (float(var_g[0] / model.gap), float(var_g[1] / model.gap)),
        )

    def entropy_of_selection(self) -> float:
        """E[H2(p)], the binary entropy of one selection variable."""
        return sum(c.weight * c.mean(-xlogy(c.p, c.p) - xlogy(c.q, c.q)) for c in self.components)

    def log_partition(self) -> float:
        """E[log(1 + exp(Λ + a h²/2))]."""
        return sum(
            c.weight * c.mean(np.logaddexp(0.0, self.lam + (0.5 * c.gain) * c.z2))
            for c in self.components
        )

    def replicon(self) -> float:
        """E[(p + a p(1-p) h²)²]/α; replica symmetry is locally stable where this is below one."""
        return (
            sum(c.weight * c.mean((c.p + c.gain * c.z2 * c.p * c.q) ** 2) for c in self.components)
            / self.model.alpha
        )

    def hits(self) -> float:
        """ρ̂ E_1[p]: selected and truly nonzero, as a fraction of all columns."""
        if not self.model.planted:
            return 0.0
        last = self.components[-1]
        return last.weight * last.mean(last.p)

    def deficit(self) -> float:
        """W = ρ̂ σx² - m = ρ̂ σx² E_1[(1-p) z²], what is missing of the overlap."""
        if not self.model.planted:
            return 0.0
        last = self.components[-1]
        return last.weight * self.model.sigma_x2 * last.mean(last.q * last.z2)
