r"""The scalar channel behind the replica-symmetric equations.

The rest of the system acts on one coefficient as a field h, whose law is a Gaussian mixture
(docs/theory.md, section 2):

    h ~ (1-ρ̂) N(0, V0) + ρ̂ N(0, V1),    V0 = Δ,   V1 = Δ + α σx²,
    p(h) = sigmoid(Λ + a h²/2) = Prob(c = 1 | h),     E[p] = ρ  fixes Λ.

For both solvers, this module computes the two right-hand sides of the saddle-point equations at
a given (Δ, a), and their gradients.  Variances are in units of the variance of one component of
y, P = σξ² + ρ̂ σx².
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, xlogy

from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import Array, sigmoid_grid

__all__ = ["Channel", "Model"]


@dataclass(frozen=True)
class Model:
    """The parameters of a problem in units where P = σξ² + ρ̂ σx² = 1."""

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
        """α - ρ, the fraction of measurements that the selected columns leave free."""
        return self.alpha - self.rho

    @property
    def planted(self) -> bool:
        """Whether y contains a planted signal."""
        return self.rho_hat * self.sigma_x2 > 0.0

    def infinite_temperature(self) -> tuple[float, float]:
        """Return the exact Δ and D at μ = 0."""
        power = self.rho_hat * self.sigma_x2
        numerator = self.sigma_xi2 + power * (1.0 - self.rho) ** 2
        delta = numerator / (1.0 - self.rho**2 / self.alpha)
        return delta, self.rho * (1.0 - self.rho) * (delta + self.alpha * power) / self.gap


@dataclass(frozen=True)
class _Component:
    """One Gaussian of the mixture: its nodes, and the sigmoid on them at one Λ."""

    weight: float
    variance: float
    gain: float  # A = a V
    z2: Array
    measure: Array
    p: Array
    q: Array  # 1 - p, computed without subtraction

    def mean(self, values: Array) -> float:
        return float(self.measure @ values)


#: One Gaussian of the mixture: weight, variance, and on its nodes z², measure and Λ + a h²/2.
_Grid = tuple[float, float, Array, Array, Array]


def _grids(model: Model, delta: float, a: float, lam: float) -> list[_Grid]:
    """Return the nodes of both Gaussians, refined for this Λ."""
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
    """Return the Λ with E[p] = ρ, its distance from the Λ of the grids, and the grids.

    Newton's method acts on logit E[p], which is nearly linear in Λ both at small and at large A.
    It stays inside a bracket that shrinks with every evaluation, because E[p] increases with Λ.
    """
    target = float(np.log(model.rho) - np.log1p(-model.rho))
    high, low = target, -np.inf  # Λ ≤ logit ρ because a h² ≥ 0
    lam = target - 0.5 * a * delta if guess is None else min(guess, target)
    grids: list[_Grid] = []
    made_for = np.inf
    for _ in range(200):
        if not abs(lam - made_for) <= 0.25:  # a unit of Λ shifts the step by its own width
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
        if abs(step) <= 1e-9:  # Newton converges quadratically: the next step is below rounding
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
    """Return by how much E[p] exceeds ρ, on a logarithmic scale, and its derivative in Λ."""
    ep, eq = sum(selected), sum(left_out)
    if ep <= 0.0 or eq <= 0.0:
        return ep - eq, 0.0
    error = float(np.log(ep) - np.log(eq)) - target
    if len(selected) == 1 or abs(error) > 0.1:
        return error, sum(spread) / (ep * eq)
    # Compare selected zeros with left-out nonzeros: near ρ = ρ̂ both are small, whereas E[p] - ρ
    # is a difference of nearly equal numbers.
    room = model.rho - model.rho_hat
    zeros, nonzeros = selected[0] + max(-room, 0.0), left_out[1] + max(room, 0.0)
    if zeros <= 0.0 or nonzeros <= 0.0:
        return error, sum(spread) / (ep * eq)
    return float(np.log(zeros / nonzeros)), spread[0] / zeros + spread[1] / nonzeros


@dataclass(slots=True)
class _Average:
    """An average over the mixture, its derivative in Λ, and its gradient in (log Δ, log a)."""

    value: float
    by_lam: float = 0.0
    gradient: Array = field(default_factory=lambda: np.zeros(2))


@dataclass(slots=True)
class _Terms:
    """Products on the nodes of one component that several averages use."""

    f: Array  # a h²/2
    mz: Array  # measure z²
    mv: Array  # measure z² p(1-p)
    v: Array  # p(1-p)
    chain: Array  # ∂log A/∂(log Δ, log a)

    @classmethod
    def of(cls, c: _Component, delta: float) -> _Terms:
        v = c.p * c.q
        mz = c.measure * c.z2
        return cls((0.5 * c.gain) * c.z2, mz, mz * v, v, np.array([delta / c.variance, 1.0]))


def _add_spread(
    mass: _Average, spread: _Average, c: _Component, terms: _Terms, delta: float
) -> None:
    """Add one component to the derivatives of E[p] and to E[p(1-p) h²]."""
    pq = float(terms.mv.sum())
    mass.by_lam += c.weight * float(c.measure @ terms.v)
    mass.gradient += c.weight * (0.5 * c.gain) * pq * terms.chain
    skew = terms.mv * (c.q - c.p)
    spread.value += c.weight * c.variance * pq
    spread.by_lam += c.weight * c.variance * float(skew.sum())
    spread.gradient += c.weight * c.variance * float(skew @ terms.f) * terms.chain
    spread.gradient[0] += c.weight * delta * pq


def _add_error_of_zeros(
    rhs: _Average, c: _Component, terms: _Terms, model: Model, delta: float
) -> None:
    """Add E[(p h/√α)²] over the zero coefficients, where all of p h/√α is error."""
    scale = c.weight * delta / model.alpha
    value = scale * float(terms.mz @ (c.p * c.p))
    slope = 2.0 * scale * terms.mv * c.p
    rhs.value += value
    rhs.by_lam += float(slope.sum())
    rhs.gradient += float(slope @ terms.f) * terms.chain
    rhs.gradient[0] += value


def _add_error_of_nonzeros(
    rhs: _Average, c: _Component, terms: _Terms, model: Model, delta: float
) -> None:
    """Add E[(x̂ - p h/√α)²] over the nonzero coefficients.

    It is the posterior variance σx² Δ/V1 plus the square of (B q - Δ p) z, a sum of positive
    terms; the equal expression P - 2m + q cancels near the planted state.
    """
    b = model.alpha * model.sigma_x2
    e = b * c.q - delta * c.p
    scale = c.weight / (model.alpha * c.variance)
    value = scale * float(terms.mz @ (e * e))
    slope = -2.0 * scale * c.variance * terms.mv * e
    rhs.value += value + c.weight * model.sigma_x2 * delta / c.variance
    rhs.by_lam += float(slope.sum())
    rhs.gradient += float(slope @ terms.f) * terms.chain
    rhs.gradient[0] += (
        c.weight * model.sigma_x2 * delta * b / c.variance**2
        - value * delta / c.variance
        - 2.0 * scale * delta * float(terms.mz @ (e * c.p))
    )


@dataclass(frozen=True)
class Channel:
    """The scalar channel at (Δ, a), with both right-hand sides and their gradients.

    Attributes
    ----------
    delta_rhs : float
        σξ² + E[(x̂ - p h/√α)²], which equals Δ at the saddle point.
    d_rhs : float
        E[p(1-p) h²]/(α-ρ), which equals D at the saddle point.
    delta_gradient, d_gradient : tuple of float
        Derivatives of the right-hand sides with respect to (log Δ, log a) at E[p] = ρ.
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
        """Solve E[p] = ρ for Λ, starting from ``guess``, and compute the averages."""
        lam, shift, grids = _multiplier(model, delta, a, guess)
        components = []
        mass, rhs, spread = _Average(0.0), _Average(model.sigma_xi2), _Average(0.0)
        for k, (weight, variance, z2, measure, exponent) in enumerate(grids):
            u = exponent + shift
            component = _Component(weight, variance, a * variance, z2, measure, expit(u), expit(-u))
            components.append(component)
            terms = _Terms.of(component, delta)
            _add_spread(mass, spread, component, terms, delta)
            if k == 0:
                _add_error_of_zeros(rhs, component, terms, model, delta)
            else:
                _add_error_of_nonzeros(rhs, component, terms, model, delta)
        lam_gradient = -mass.gradient / mass.by_lam
        rhs.gradient += rhs.by_lam * lam_gradient
        spread.gradient += spread.by_lam * lam_gradient
        return cls(
            model,
            delta,
            a,
            lam,
            tuple(components),
            rhs.value,
            spread.value / model.gap,
            (float(rhs.gradient[0]), float(rhs.gradient[1])),
            (float(spread.gradient[0] / model.gap), float(spread.gradient[1] / model.gap)),
        )

    def entropy_of_selection(self) -> float:
        """Return E[H2(p)], the binary entropy of one selection variable."""
        return sum(c.weight * c.mean(-xlogy(c.p, c.p) - xlogy(c.q, c.q)) for c in self.components)

    def log_partition(self) -> float:
        """Return E[log(1 + exp(Λ + a h²/2))]."""
        return sum(
            c.weight * c.mean(np.logaddexp(0.0, self.lam + (0.5 * c.gain) * c.z2))
            for c in self.components
        )

    def replicon(self) -> float:
        """Return E[(p + a p(1-p) h²)²]/α; replica symmetry is locally stable where it is below 1."""
        return (
            sum(c.weight * c.mean((c.p + c.gain * c.z2 * c.p * c.q) ** 2) for c in self.components)
            / self.model.alpha
        )

    def hits(self) -> float:
        """Return ρ̂ E_1[p], the fraction of columns that are selected and in the planted support."""
        if not self.model.planted:
            return 0.0
        last = self.components[-1]
        return last.weight * last.mean(last.p)

    def deficit(self) -> float:
        """Return W = ρ̂ σx² - m = ρ̂ σx² E_1[(1-p) z²], the part missing from the overlap m."""
        if not self.model.planted:
            return 0.0
        last = self.components[-1]
        return last.weight * self.model.sigma_x2 * last.mean(last.q * last.z2)
