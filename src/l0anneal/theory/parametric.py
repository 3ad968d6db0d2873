r"""Solve for all branches together, as a curve T(a).

At given a, the saddle point is one equation for Δ,

    F(log Δ, log a) = log{σξ² + E[(x̂ - p h/√α)²]} - log Δ = 0,

and the temperature is explicit, T = (1/a - D)/S0 with D = E[p(1-p)h²]/(α-ρ) (docs/theory.md,
section 3).  The zero set of F is followed by arclength, which passes through folds.  Thermodynamic
branches are the segments with T > 0 between the extrema of T; these extrema are the spinodals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from l0anneal.theory.channel import Channel, Model
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.roots import brentq

__all__ = [
    "T_COLD",
    "T_HOT",
    "Point",
    "Segment",
    "between",
    "curve",
    "evaluate",
    "smallest_root",
    "trace",
    "zero_between",
]

#: The curve is traced between these temperatures, in units of the variance of y.
T_HOT = 1e6
T_COLD = 1e-12

_STEP = 0.2
_MAX_POINTS = 4000

#: Where a D - 1 exceeds this value, the curve is far below T = 0 and does not return.
_DEEP = 8.0


@dataclass(frozen=True)
class Point:
    """A point of the curve, with its temperature and dT/ds along the curve."""

    x: float  # log Δ
    log_a: float
    temperature: float
    slope: float
    tangent: tuple[float, float]
    channel: Channel

    @property
    def position(self) -> np.ndarray:
        """(log Δ, log a)."""
        return np.array([self.x, self.log_a])


@dataclass(frozen=True)
class Segment:
    """A segment of the curve on which T is positive and monotone, in the direction of growing s.

    ``cold_end`` and ``hot_end`` name the kind of end: "spinodal", "zero" (T = 0 is reached at
    finite a, where a D = 1), or "open" (the branch continues beyond the traced temperatures).
    """

    points: tuple[Point, ...]
    stable: bool
    cold_end: str
    hot_end: str

    @property
    def t_low(self) -> float:
        """Lowest temperature of the branch; zero if the branch reaches T = 0."""
        low = min(self.points[0].temperature, self.points[-1].temperature)
        return 0.0 if self.cold_end != "spinodal" else low

    @property
    def t_high(self) -> float:
        """Highest temperature of the branch; infinite if the branch is open."""
        high = max(self.points[0].temperature, self.points[-1].temperature)
        return np.inf if self.hot_end == "open" else high

    def at(self, temperature: float) -> Point:
        """Return the point of this segment at ``temperature``."""
        heat = np.array([p.temperature for p in self.points])
        rising = heat[-1] > heat[0]
        order = heat if rising else heat[::-1]
        i = int(np.searchsorted(order, temperature))
        if (i == 0 and temperature < order[0]) or i == len(order):
            raise ValueError(
                f"T={temperature:.6g} is not on this segment of the curve, which runs from "
                f"T={order[0]:.6g} to T={order[-1]:.6g}"
            )
        j = max(i, 1)
        first, second = (j - 1, j) if rising else (len(order) - 1 - j, len(order) - j)
        left, right = self.points[first], self.points[second]
        for end in (left, right):
            if end.temperature == temperature:
                return end
        return zero_between(left, right, lambda p: p.temperature - temperature)

    def with_temperatures(self, temperatures: Iterable[float]) -> list[Point]:
        """Return all points, and those at ``temperatures`` on this segment, in order along it."""
        ends = sorted((self.points[0].temperature, self.points[-1].temperature))
        added = [self.at(t) for t in temperatures if ends[0] < t < ends[1]]
        rising = self.points[-1].temperature > self.points[0].temperature
        return sorted([*self.points, *added], key=lambda p: p.temperature, reverse=not rising)


def evaluate(
    model: Model, x: float, log_a: float, direction: np.ndarray, guess: float | None = None
) -> tuple[float, Point]:
    """Return F and the point at (log Δ, log a), with the tangent oriented along ``direction``."""
    channel = Channel.at(model, float(np.exp(x)), float(np.exp(log_a)), guess)
    f = float(np.log(channel.delta_rhs) - x)
    (gx, ga), (dx, da) = channel.delta_gradient, channel.d_gradient
    normal = np.array([gx / channel.delta_rhs - 1.0, ga / channel.delta_rhs])
    tangent = np.array([-normal[1], normal[0]]) / np.hypot(*normal)
    if tangent @ direction < 0.0:
        tangent = -tangent
    inverse = float(np.exp(-log_a))
    temperature = (inverse - channel.d_rhs) / model.s0
    slope = float((-dx * tangent[0] - (inverse + da) * tangent[1]) / model.s0)
    point = Point(x, log_a, temperature, slope, (float(tangent[0]), float(tangent[1])), channel)
    return f, point


def _correct(
    model: Model, guess: np.ndarray, direction: np.ndarray, lam: float | None = None
) -> Point | None:
    """Return to the curve by Newton, on the line through ``guess`` across ``direction``."""
    across = np.array([-direction[1], direction[0]])
    position = guess
    best = np.inf
    for _ in range(25):
        f, point = evaluate(model, float(position[0]), float(position[1]), direction, lam)
        lam = point.channel.lam
        if abs(f) <= 1e-13 and abs(f) >= 0.5 * best:
            return point
        best = min(best, abs(f))
        # Derivative of F along the line.
        gx, ga = point.channel.delta_gradient
        rhs = point.channel.delta_rhs
        rate = (gx / rhs - 1.0) * across[0] + ga / rhs * across[1]
        if abs(f) <= 1e-15:
            return point
        if rate == 0.0 or abs(f / rate) > 1.0:
            return None
        position = position - (f / rate) * across
    return None


def between(left: Point, right: Point) -> Callable[[float], Point]:
    """Return the curve between two neighbours as a function of a fraction from 0 to 1."""
    chord = right.position - left.position
    length = float(np.hypot(*chord))
    direction = chord / length
    t0, t1 = np.array(left.tangent) * length, np.array(right.tangent) * length
    model = left.channel.model

    def on_curve(u: float) -> Point:
        # The tangents are known at both ends, so the predictor is a cubic Hermite polynomial.
        guess = (
            (1 + 2 * u) * (1 - u) ** 2 * left.position
            + u * (1 - u) ** 2 * t0
            + u * u * (3 - 2 * u) * right.position
            + u * u * (u - 1) * t1
        )
        point = _correct(model, guess, direction, left.channel.lam)
        if point is None:
            raise ConvergenceError(
                f"the curve F=0 was lost between a={np.exp(left.log_a):.6g} and "
                f"a={np.exp(right.log_a):.6g} ({model})"
            )
        return point

    return on_curve


def zero_between(left: Point, right: Point, function: Callable[[Point], float]) -> Point:
    """Return the point between two neighbours where ``function`` changes sign."""
    if function(left) == 0.0:
        return left
    if function(right) == 0.0:
        return right
    on_curve = between(left, right)
    root = brentq(lambda u: function(on_curve(u)), 0.0, 1.0, xtol=1e-15, rtol=1e-14)
    return on_curve(float(root))


def trace(
    model: Model,
    start: np.ndarray,
    direction: np.ndarray,
    *,
    t_hot: float = T_HOT,
    t_cold: float = T_COLD,
    longest: float = _STEP,
) -> list[Point]:
    """Follow F = 0 from ``start`` until the curve leaves the range of temperatures."""
    a_cold = -np.log(model.s0 * t_cold)
    a_hot = -np.log(model.s0 * t_hot)
    x_top = np.log(model.infinite_temperature()[0]) + 8.0
    first = _correct(model, start, np.array([0.0, 1.0]))
    if first is None:
        raise ConvergenceError(
            f"found no point of the curve F=0 near log(Delta, a)={start} ({model})"
        )
    _, first = evaluate(model, first.x, first.log_a, direction)
    points = [first]
    step = longest
    while len(points) < _MAX_POINTS:
        last = points[-1]
        tangent = np.array(last.tangent)
        point = _correct(model, last.position + step * tangent, tangent, last.channel.lam)
        bend = 1.0 if point is None else 1.0 - float(tangent @ np.array(point.tangent))
        if point is None or bend > 0.02:
            step *= 0.5
            if step < 1e-7 and last.temperature < 0.0:
                return points  # this part has T < 0 and is not used
            if step < 1e-7:
                raise ConvergenceError(
                    f"the curve F=0 could not be followed beyond Delta={np.exp(last.x):.6g}, "
                    f"a={np.exp(last.log_a):.6g} ({model})"
                )
            continue
        points.append(point)
        if bend < 0.005:
            step = min(2.0 * step, longest)
        if len(points) > 10 and np.hypot(*(point.position - first.position)) < 0.5 * step:
            points.append(first)  # the curve is closed
            return points
        outside = point.log_a > a_cold or point.log_a < a_hot - 1.0 or point.x > x_top
        if outside or -point.temperature * model.s0 * np.exp(point.log_a) > _DEEP:
            return points
    raise ConvergenceError(f"the curve F=0 did not end within {_MAX_POINTS} points ({model})")


def _split(points: list[Point], end: str = "open") -> list[Segment]:
    """Cut a traced curve at its spinodals and where it crosses T = 0; keep the parts with T > 0."""
    marked: list[tuple[Point, str]] = [(points[0], end)]
    for left, right in pairwise(points):
        cuts = []
        if (left.slope > 0.0) != (right.slope > 0.0):
            cuts.append((zero_between(left, right, lambda p: p.slope), "spinodal"))
        stops = [left, *[c[0] for c in cuts], right]
        for p0, p1 in pairwise(stops):
            if (p0.temperature > 0.0) != (p1.temperature > 0.0):
                cuts.append((zero_between(p0, p1, lambda p: p.temperature), "zero"))
        along = right.position - left.position
        cuts.sort(key=lambda c: float(along @ c[0].position))
        marked.extend(cuts)
        marked.append((right, ""))
    marked[-1] = (marked[-1][0], end)
    segments = []
    run: list[tuple[Point, str]] = []
    for item in marked:
        run.append(item)
        if item[1] and len(run) > 1:
            middle = run[len(run) // 2][0] if len(run) > 2 else None
            inside = middle.temperature if middle else 0.5 * sum(p.temperature for p, _ in run)
            if inside > 0.0:
                segments.append(_segment(run))
            run = [item]
    return segments


def _segment(run: list[tuple[Point, str]]) -> Segment:
    points = tuple(p for p, _ in run)
    rising = points[-1].temperature > points[0].temperature
    ends = (run[0][1], run[-1][1])
    cold, hot = ends if rising else ends[::-1]
    return Segment(points, _is_stable(points[len(points) // 2]), cold, hot)


def _is_stable(point: Point) -> bool:
    """Whether iteration at fixed T converges here: both eigenvalues of the map are below one."""
    channel = point.channel
    slope = -channel.a * channel.d_rhs  # ∂log a/∂log D at fixed T
    gx, ga = (g / channel.delta_rhs for g in channel.delta_gradient)
    dx, da = (g / channel.d_rhs for g in channel.d_gradient)
    determinant = (gx - 1.0) * (da * slope - 1.0) - ga * slope * dx
    return determinant > 0.0 and gx + da * slope < 2.0


def smallest_root(model: Model, log_a: float) -> np.ndarray | None:
    """Return (log Δ, log a) at the smallest Δ with F = 0, or None if that is above Δ(T = ∞).

    F > 0 as Δ → 0, so the search increases Δ until the sign changes.
    """
    top = float(np.log(model.infinite_temperature()[0]))
    along = np.array([0.0, 1.0])
    f, _ = evaluate(model, min(-1.5 * log_a - 12.0, top - 12.0), log_a, along)
    x = float(min(-1.5 * log_a - 12.0, top - 12.0) + f) - 0.5  # log of the right-hand side at Δ → 0
    while x < top:
        f, _ = evaluate(model, x, log_a, along)
        if f <= 0.0:
            left = x - 0.5

            def residual(x: float) -> float:
                return evaluate(model, x, log_a, along)[0]

            if residual(left) <= 0.0:
                return None
            return np.array([brentq(residual, left, x, xtol=1e-12), log_a])
        x += 0.5
    return None


def curve(model: Model) -> list[Segment]:
    """Return all segments with T > 0, from the high-temperature end to the planted end."""
    delta, d = model.infinite_temperature()
    start = np.array([np.log(delta), -np.log(T_HOT * model.s0 + d)])
    up, down = np.array([0.0, 1.0]), np.array([0.0, -1.0])
    points = trace(model, start, up)
    segments = _split(points)
    hot = len(segments)
    cold = -np.log(model.s0 * T_COLD)
    if not model.planted or points[-1].log_a > cold:
        return segments
    # The planted branch may be a separate curve, not joined to the hot one even below T = 0.
    known = np.array([p.position for p in points])
    for log_a in np.arange(cold - 0.5, points[0].log_a, -1.0):
        root = smallest_root(model, float(log_a))
        if root is None or np.hypot(*(known - root).T).min() < 2.0 * _STEP:
            continue
        if evaluate(model, float(root[0]), float(root[1]), up)[1].temperature <= 0.0:
            continue
        piece = trace(model, root, up)
        if piece[-1] is piece[0]:
            # Cut a closed curve at its coldest point, which is below T = 0 or at a spinodal.
            coldest = min(range(len(piece) - 1), key=lambda i: piece[i].temperature)
            piece = piece[coldest:-1] + piece[: coldest + 1]
            segments += _split(piece, end="spinodal")
        else:
            piece = [_reverse(p) for p in trace(model, root, down)[:0:-1]] + piece
            segments += _split(piece)
        known = np.concatenate((known, [p.position for p in piece]))
    # Order: first the hot curve, then the others by decreasing Δ, towards the planted state.
    return segments[:hot] + sorted(segments[hot:], key=lambda s: -min(p.x for p in s.points))


def _reverse(point: Point) -> Point:
    tangent = (-point.tangent[0], -point.tangent[1])
    return replace(point, slope=-point.slope, tangent=tangent)
