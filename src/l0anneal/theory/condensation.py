r"""Where the states of a branch condense: the complexity at m = 1, and the temperature T_K.

A replica-symmetric branch may consist of exponentially many clusters of supports. In the 1RSB theory
with m = 1 the branch itself is unchanged, and the logarithm of the number of its clusters, the
complexity Σ, is what is left of its entropy after that of a single cluster (docs/theory.md,
section 8). The branch ends at T_K, where Σ vanishes, and not where its entropy does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from l0anneal.theory.branches import Branch
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import composite, even_gaussian
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.roots import brentq
from l0anneal.theory.states import State

__all__ = ["Condensation", "complexity", "condensation_point"]

Array = NDArray[np.float64]
_GRID = np.array([*np.linspace(0.0, 4.0, 9), 5.0, 6.0, 8.0, 10.0])


@dataclass(frozen=True)
class Condensation:
    """The point at which the clusters of a branch become few.

    Attributes
    ----------
    temperature : float
        T_K, where the complexity at m = 1 vanishes.
    state : State
        The replica-symmetric state at T_K.

    See Also
    --------
    l0anneal.theory.condensation.condensation_point : Compute it.

    Examples
    --------
    >>> theory = ReplicaSymmetric(0.75, 0.65, rho_hat=0.5)
    >>> point = Condensation(1.3466e-7, theory.at(1.3466e-7, "cooled"))
    >>> print(f"{point.state.entropy:.5f}")
    0.01063
    """

    temperature: float
    state: State


def complexity(theory: ReplicaSymmetric, state: State) -> float | None:
    """Return the complexity at m = 1 of a state, per column; None if it is a single cluster.

    Parameters
    ----------
    theory : ReplicaSymmetric
        The problem.
    state : State
        A state of the problem.

    See Also
    --------
    l0anneal.theory.condensation.condensation_point : Where it vanishes.
    l0anneal.theory.rsb.clusters : Clusters at zero temperature.

    Examples
    --------
    >>> theory = ReplicaSymmetric(0.75, 0.65, rho_hat=0.5)
    >>> print(f"{complexity(theory, theory.at(2e-7, 'cooled')):.4f}")
    0.0179
    """
    inside = _Inside(theory, state)
    d1 = inside.solve()
    return None if d1 is None else inside.complexity(d1)


def condensation_point(theory: ReplicaSymmetric, branch: Branch = "cooled") -> Condensation | None:
    """Return where the complexity at m = 1 of a branch vanishes, or None if there is no such T.

    The search covers two decades above the temperature at which the entropy vanishes, and takes some
    seconds.

    Parameters
    ----------
    theory : ReplicaSymmetric
        The problem.
    branch : {"equilibrium", "cooled", "planted"}
        The branch to follow.

    See Also
    --------
    l0anneal.theory.condensation.complexity : What vanishes there.
    l0anneal.theory.condensation.Condensation : The result.

    Examples
    --------
    >>> point = condensation_point(ReplicaSymmetric(0.75, 0.65, rho_hat=0.5))
    >>> print(f"T={point.temperature:.4e} eps={point.state.distortion:.4e}")
    T=1.3466e-07 eps=8.9773e-09
    """
    frozen = theory.freezing(branch)
    if frozen is None:
        return None

    def sigma(log_t: float) -> float:
        value = complexity(theory, theory.at(math.exp(log_t), branch))
        return math.nan if value is None else value

    low = math.log(frozen.temperature)
    steps = low + np.linspace(0.0, math.log(100.0), 13)
    values = [sigma(steps[0])]
    for before, after in pairwise(steps):
        values.append(sigma(after))
        if values[-2] <= 0.0 < values[-1]:
            t = math.exp(brentq(sigma, before, after, xtol=1e-10, rtol=1e-10))
            return Condensation(t, theory.at(t, branch))
        if not values[-1] <= 0.0:  # positive from the start, or a single cluster
            return None
    raise ConvergenceError(f"the complexity is negative at all temperatures tried ({theory})")


class _Inside:
    """The inside of a cluster at m = 1: its own D₁ = Q − q₁, given the state around it."""

    def __init__(self, theory: ReplicaSymmetric, state: State) -> None:
        self.theory, self.state = theory, state
        self.mu = state.mu
        self.s0 = theory.alpha / (theory.alpha - theory.rho)
        self.s = self.s0 + self.mu * state.d
        self.a = self.mu / self.s
        variances = (state.delta, state.delta + theory.alpha * theory.sigma_x2)
        weights = (1.0 - theory.rho_hat, theory.rho_hat)
        # the field h has two Gaussian parts, each on its own grid; both signs count alike
        z, w = even_gaussian(_GRID)
        parts = [(c, v) for c, v in zip(weights, variances) if c > 0.0]
        self.h: Array = np.concatenate([math.sqrt(v) * z for _, v in parts])
        self.weight: Array = np.concatenate([c * w for c, _ in parts])
        self.p = expit(state.lam + 0.5 * self.a * self.h**2)

    def _field(self, d1: float) -> tuple[Array, Array, Array]:
        """Return η ≥ 0, the weight of c = 1 at η, and u(η), so that p₁(η) = 1/(1 + e^−u)."""
        d = self.state.d - d1
        s1 = self.s0 + self.mu * d1
        a1, lam1 = self.mu / s1, self.state.lam - 0.5 * math.log(self.s / s1)
        scale = 1.0 / math.sqrt(a1)
        step = math.sqrt(max(-2.0 * lam1, 0.0)) * scale
        width = math.sqrt(d)
        top = float(self.h.max()) + 9.0 * width
        near = scale * np.array([0.25, 0.5, 1, 1.5, 2, 3, 4.5, 6, 9, 14])
        marks = np.concatenate(
            ([0.0, top], near, step + near, step - near, [step], np.arange(0.0, top, 0.5 * width))
        )
        eta, w = composite(np.unique(marks[(marks >= 0) & (marks <= top)]))
        norm = 1.0 / math.sqrt(2 * math.pi * d)
        kernel = np.exp(-0.5 * (eta[:, None] - self.h) ** 2 / d)
        kernel += np.exp(-0.5 * (eta[:, None] + self.h) ** 2 / d)
        return eta, w * norm * (kernel @ (self.weight * self.p)), lam1 + 0.5 * a1 * eta**2

    def excess(self, d1: float) -> float:
        """Return the right-hand side of the equation for D₁, divided by D₁, minus one."""
        eta, selected, u = self._field(d1)
        rhs = float(selected @ (expit(-u) * eta**2)) / (self.theory.alpha - self.theory.rho)
        return rhs / d1 - 1.0

    def solve(self) -> float | None:
        """Return the smallest D₁ < D that solves its equation, or None."""
        # D₁ = D is always a solution; another one is smaller, by orders of magnitude at low T
        grid = self.state.d * np.geomspace(1e-9, 0.95, 24)
        before: float | None = None
        for d1 in grid:
            if self.excess(float(d1)) < 0.0:
                if before is None:
                    return None
                return float(brentq(self.excess, before, float(d1), xtol=1e-300, rtol=1e-12))
            before = float(d1)
        return None

    def complexity(self, d1: float) -> float:
        """Return Σ = s − s of a cluster at the solution D₁."""
        theory, state, mu = self.theory, self.state, self.mu
        alpha, rho = theory.alpha, theory.rho
        d, s, s0 = state.d - d1, self.s, self.s0
        s1 = s0 + mu * d1
        _, selected, u = self._field(d1)
        # with c = 0 as well: its weight at η is e^−u times that of c = 1
        inner = float(selected @ ((1.0 + np.exp(-u)) * np.logaddexp(0.0, -u)))
        out = state.lam + 0.5 * self.a * self.h**2
        outer = float(self.weight @ np.logaddexp(0.0, -out))
        second = float(self.weight @ self.h**2)
        rest = float(self.weight @ ((1.0 - self.p) * (self.h**2 * s1 / s + d)))
        return (
            -0.5 * alpha * (math.log(s / s1) - 1.0 + s1 / s)
            - 0.5 * (alpha - rho) * mu * d1 / s1
            - 0.5 * self.a * (alpha * state.Q - alpha * d1 + rest - second)
            + 0.5 * math.log(s / s1)
            - inner
            + outer
        )
