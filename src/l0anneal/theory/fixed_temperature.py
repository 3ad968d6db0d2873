r"""Solve the saddle point at a given temperature, by damped iteration and Newton's method.

The unknowns are (log Δ, log D).  The map is given by the right-hand sides of the saddle-point
equations with a = 1/(T S0 + D) (docs/theory.md, section 2).  Each branch is followed from a point
that is known in closed form: the cooled branch from μ = 0, the planted branch from its T → 0
asymptotics.  This module does not use the parametric curve, so the two solvers check each other.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from l0anneal.theory.channel import Channel, Model
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import composite

__all__ = [
    "TOLERANCE",
    "Ladder",
    "has_planted_asymptotics",
    "newton",
    "planted_asymptotics",
    "relax",
    "residual",
]

#: Largest relative residual of both saddle-point equations in a returned solution.
TOLERANCE = 2e-13

#: A longer Newton step in log Δ or log D could lead to another branch, so Newton gives up.
_MAX_STEP = 0.3

#: Ratio of neighbouring temperatures on a ladder, and its hottest and coldest rungs.
_RUNG = 10.0**0.25
_T_HOT = 1e6
_T_COLD = 1e-12


def residual(
    model: Model, temperature: float, point: np.ndarray, guess: float | None = None
) -> tuple[np.ndarray, np.ndarray, Channel]:
    """Return residual and Jacobian of the map minus identity at point = (log Δ, log D)."""
    delta, d = np.exp(point)
    a = 1.0 / (temperature * model.s0 + d)
    channel = Channel.at(model, float(delta), float(a), guess)
    value = np.array([np.log(channel.delta_rhs), np.log(channel.d_rhs)]) - point
    slope = -a * d  # ∂log a/∂log D
    (gx, ga), (dx, da) = channel.delta_gradient, channel.d_gradient
    jacobian = np.array(
        [
            [gx / channel.delta_rhs - 1.0, ga * slope / channel.delta_rhs],
            [dx / channel.d_rhs, da * slope / channel.d_rhs - 1.0],
        ]
    )
    return value, jacobian, channel


def newton(
    model: Model, temperature: float, start: np.ndarray, iterations: int = 30
) -> tuple[np.ndarray, Channel] | None:
    """Return the Newton solution near ``start``, or None if Newton strays or does not converge."""
    point = start
    best = np.inf
    lam: float | None = None
    for _ in range(iterations):
        value, jacobian, channel = residual(model, temperature, point, lam)
        lam = channel.lam
        size = float(np.abs(value).max())
        # An extra step costs little: stop when rounding keeps the residual from shrinking.
        if size <= TOLERANCE and size >= 0.5 * best:
            return point, channel
        best = min(best, size)
        if size <= 1e-15:
            return point, channel
        determinant = jacobian[0, 0] * jacobian[1, 1] - jacobian[0, 1] * jacobian[1, 0]
        if determinant == 0.0:
            return None
        step = np.array(
            [
                jacobian[0, 1] * value[1] - jacobian[1, 1] * value[0],
                jacobian[1, 0] * value[0] - jacobian[0, 0] * value[1],
            ]
        )
        step = step / determinant
        if not np.abs(step).max() <= _MAX_STEP:
            return None
        point = point + step
    return None


def relax(
    model: Model, temperature: float, start: np.ndarray, iterations: int = 400
) -> tuple[np.ndarray, Channel]:
    """Iterate the damped map from ``start``, and finish with Newton once the residual is small.

    Raises
    ------
    ConvergenceError
        If neither the map nor Newton converges.
    """
    point = np.asarray(start, dtype=float)
    lam: float | None = None
    for i in range(iterations):
        value, _, channel = residual(model, temperature, point, lam)
        lam = channel.lam
        point = point + 0.5 * value
        size = float(np.abs(value).max())
        if size < 1e-6 or (size < 0.05 and i % 20 == 19):
            solved = newton(model, temperature, point)
            if solved is not None and np.abs(solved[0] - point).max() < _MAX_STEP:
                return solved
    raise ConvergenceError(
        f"the saddle point did not converge at T={temperature:.6g} ({model}): residual "
        f"{size:.2e} after {iterations} damped iterations"
    )


def planted_asymptotics(model: Model, temperature: float) -> np.ndarray:
    """Return (log Δ, log D) of the planted branch as T → 0, where both fall as T^{3/2}.

    Valid without noise and for ρ̂ < ρ (docs/theory.md, section 4).
    """
    r0 = (model.rho - model.rho_hat) / (1.0 - model.rho_hat)
    offset = np.log(r0) - np.log1p(-r0)
    t, weight = composite(np.arange(0.0, 60.5))
    p, q = expit(offset + 0.5 * t * t), expit(-offset - 0.5 * t * t)
    j1 = 2.0 * float(weight @ (p * q * t * t))
    j2 = 2.0 * float(weight @ (q * q * t * t))
    alpha, rho_hat = model.alpha, model.rho_hat
    c = 1.0 / np.sqrt(2.0 * np.pi * alpha * model.sigma_x2)
    a = 1.0 / (temperature * model.s0)
    loss = 1.0 - rho_hat / alpha - (1.0 - rho_hat) * r0**2 / alpha
    delta = a**-1.5 * c * rho_hat * j2 / alpha / loss
    d = ((1.0 - rho_hat) * r0 * (1.0 - r0) * delta + rho_hat * c * a**-1.5 * j1) / model.gap
    return np.array([np.log(delta), np.log(d)])


def has_planted_asymptotics(model: Model) -> bool:
    """Whether the planted state has zero distortion at T = 0: no noise, and ρ̂ < ρ."""
    return model.planted and model.sigma_xi2 == 0.0 and model.rho > model.rho_hat


class Ladder:
    """Solutions along one branch at a fixed ladder of temperatures, computed on demand.

    The rungs are always visited in the same order, so the result of :meth:`solve` does not depend
    on earlier calls.

    Parameters
    ----------
    model : Model
        Parameters of the problem.
    planted : bool
        Heat the planted state from low temperature, instead of cooling from μ = 0.
    start : tuple, optional
        A point (T, (log Δ, log D)) on the planted branch.  Needed if the branch has no asymptotics
        in closed form, that is with noise or for ρ ≤ ρ̂.
    """

    def __init__(
        self, model: Model, *, planted: bool, start: tuple[float, np.ndarray] | None = None
    ) -> None:
        self.model = model
        self.heating = planted
        self._start = start
        self._temperatures: list[float] = []
        self._points: list[np.ndarray] = []

    def _first(self) -> tuple[float, np.ndarray]:
        model = self.model
        if not self.heating:
            start = np.log(np.array(model.infinite_temperature()))
            return _T_HOT, relax(model, _T_HOT, start)[0]
        if has_planted_asymptotics(model):
            return _T_COLD, relax(model, _T_COLD, planted_asymptotics(model, _T_COLD))[0]
        if self._start is None:
            raise ValueError(
                "this planted branch has no closed form at T = 0; pass a point on it as start"
            )
        temperature, point = self._start
        return temperature, relax(model, temperature, point)[0]

    def _advance(
        self, now: float, point: np.ndarray, back: tuple[float, np.ndarray] | None, goal: float
    ) -> tuple[np.ndarray, Channel]:
        """Continue from ``point`` at ``now`` to ``goal``, halving the step where Newton gives up."""
        x, target = np.log(now), np.log(goal)
        slope = None if back is None else (point - back[1]) / (x - np.log(back[0]))
        step = target - x
        solved = None
        for _ in range(400):
            guess = point if slope is None else point + slope * step
            there = x + step
            reached = abs(target - there) <= 1e-15 * max(1.0, abs(target))
            solved = newton(self.model, goal if reached else float(np.exp(there)), guess)
            jump = np.inf if solved is None else float(np.abs(solved[0] - guess).max())
            if solved is None or jump > 0.1 + 0.5 * abs(step):
                step *= 0.5
                if abs(step) < 1e-9:
                    break
                continue
            if reached:
                return solved
            slope = (solved[0] - point) / step
            point, x = solved[0], there
            step = target - x if abs(target - x) <= 2.0 * abs(step) else 2.0 * step
        raise ConvergenceError(
            f"the {'planted' if self.heating else 'cooled'} branch could not be followed from "
            f"T={np.exp(x):.6g} to T={goal:.6g} ({self.model}); there may be a spinodal in between"
        )

    def solve(self, temperature: float) -> tuple[np.ndarray, Channel]:
        """Return (log Δ, log D) and the channel at ``temperature`` on this branch."""
        if not self._points:
            first, point = self._first()
            self._temperatures.append(first)
            self._points.append(point)
        ratio = _RUNG if self.heating else 1.0 / _RUNG
        sign = 1.0 if self.heating else -1.0
        goal = max(temperature, _T_COLD)  # below _T_COLD every branch is straight
        while sign * np.log(goal / (self._temperatures[-1] * ratio)) > 0.0:
            now = self._temperatures[-1]
            back = (self._temperatures[-2], self._points[-2]) if len(self._points) > 1 else None
            point, _ = self._advance(now, self._points[-1], back, now * ratio)
            self._temperatures.append(now * ratio)
            self._points.append(point)
        # Start from the last rung before the temperature, whatever rungs exist beyond it.
        passed = [i for i, t in enumerate(self._temperatures) if sign * (temperature - t) >= 0.0]
        i = passed[-1] if passed else 0
        back = (self._temperatures[i - 1], self._points[i - 1]) if i else None
        if temperature == self._temperatures[i]:
            solved = newton(self.model, temperature, self._points[i])
            if solved is not None:
                return solved
        return self._advance(self._temperatures[i], self._points[i], back, temperature)
