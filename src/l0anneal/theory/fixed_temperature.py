r"""Solver one: the saddle point at a given temperature, by iteration and Newton.

Unknowns are (log Δ, log D); the map is the right-hand sides of the saddle-point equations with
a = 1/(T S0 + D) (docs/theory.md, section 2).  A branch is followed from where it is known in
closed form: the cooled branch from μ = 0, the planted branch from its T → 0 asymptotics.
Nothing here knows of the parametric curve, so the two solvers check each other.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from l0anneal.theory.channel import Channel, Model
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import composite

#: Largest relative residual of both saddle-point equations in a returned solution.
TOLERANCE = 2e-13

#: Newton steps longer than this in log Δ or log D may change branch and are refused.
_MAX_STEP = 0.3

#: Ratio of neighbouring temperatures on a branch's ladder, and its coldest rung.
_RUNG = 10.0**0.25
_T_HOT = 1e6
_T_COLD = 1e-12


def residual(
    model: Model, temperature: float, point: np.ndarray, guess: float | None = None
) -> tuple[np.ndarray, np.ndarray, Channel]:
    """Residual and Jacobian of the map minus identity at point = (log Δ, log D)."""
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
    """Newton from ``start``; None when it leaves the neighbourhood or does not converge."""
    point = start
    best = np.inf
    lam: float | None = None
    for _ in range(iterations):
        value, jacobian, channel = residual(model, temperature, point, lam)
        lam = channel.lam
        size = float(np.abs(value).max())
        # Two more steps than needed cost little; stop when rounding, not Newton, decides.
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
    model: Model, temperature: float, start: np.ndarray, sweeps: int = 400
) -> tuple[np.ndarray, Channel]:
    """The damped map from ``start``, polished by Newton as soon as that is safe.

    Raises
    ------
    ConvergenceError
        When neither arrives.
    """
    point = np.asarray(start, dtype=float)
    lam: float | None = None
    for sweep in range(sweeps):
        value, _, channel = residual(model, temperature, point, lam)
        lam = channel.lam
        point = point + 0.5 * value
        size = float(np.abs(value).max())
        if size < 1e-6 or (size < 0.05 and sweep % 20 == 19):
            solved = newton(model, temperature, point)
            if solved is not None and np.abs(solved[0] - point).max() < _MAX_STEP:
                return solved
    raise ConvergenceError(
        f"the saddle point did not converge at T={temperature:.6g} ({model}): residual "
        f"{size:.2e} after {sweeps} damped sweeps"
    )


def planted_asymptotics(model: Model, temperature: float) -> np.ndarray:
    """(log Δ, log D) of the planted branch as T → 0: both ~ T^{3/2}.

    Noiseless case with ρ̂ < ρ (docs/theory.md, section 4).
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
    """Whether the planted state has zero distortion at T = 0: no noise, room for the signal."""
    return model.planted and model.sigma_xi2 == 0.0 and model.rho > model.rho_hat


class Ladder:
    """Solutions on a fixed ladder of temperatures along one branch, climbed as far as asked.

    The rungs are always visited in the same order, so what :meth:`solve` returns does not depend
    on what was asked before.

    Parameters
    ----------
    model : Model
    planted : bool
        Heat the planted state from low temperature, instead of cooling from μ = 0.
    start : tuple, optional
        Where the planted branch is entered, (T, (log Δ, log D)), when it has no asymptotics in
        closed form: with noise, or where ρ leaves no room for the signal.
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
            raise ValueError("this planted branch needs a start")
        temperature, point = self._start
        return temperature, relax(model, temperature, point)[0]

    def _advance(
        self, now: float, point: np.ndarray, back: tuple[float, np.ndarray] | None, goal: float
    ) -> tuple[np.ndarray, Channel]:
        """Continue from ``point`` at ``now`` to ``goal``, halving the step where Newton refuses."""
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
            f"T={np.exp(x):.6g} to T={goal:.6g} ({self.model}); a spinodal may lie between"
        )

    def solve(self, temperature: float) -> tuple[np.ndarray, Channel]:
        """(log Δ, log D) and the channel at ``temperature`` on this branch."""
        if not self._points:
            first, point = self._first()
            self._temperatures.append(first)
            self._points.append(point)
        hotter = _RUNG if self.heating else 1.0 / _RUNG
        sign = 1.0 if self.heating else -1.0
        goal = max(temperature, _T_COLD)  # colder than that, no branch bends any more
        while sign * np.log(goal / (self._temperatures[-1] * hotter)) > 0.0:
            now = self._temperatures[-1]
            back = (self._temperatures[-2], self._points[-2]) if len(self._points) > 1 else None
            point, _ = self._advance(now, self._points[-1], back, now * hotter)
            self._temperatures.append(now * hotter)
            self._points.append(point)
        # The last rung passed before the temperature; further rungs play no part.
        passed = [i for i, t in enumerate(self._temperatures) if sign * (temperature - t) >= 0.0]
        i = passed[-1] if passed else 0
        back = (self._temperatures[i - 1], self._points[i - 1]) if i else None
        if temperature == self._temperatures[i]:
            solved = newton(self.model, temperature, self._points[i])
            if solved is not None:
                return solved
        return self._advance(self._temperatures[i], self._points[i], back, temperature)
