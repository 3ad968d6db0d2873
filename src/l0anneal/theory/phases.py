r"""Recovery limits over ρ̂, and the range of ρ that has no metastable state.

Everything in this module is for problems without noise (docs/theory.md, section 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from l0anneal.theory import bayes, l1
from l0anneal.theory.channel import Model
from l0anneal.theory.parametric import Point, between, trace, zero_between
from l0anneal.theory.roots import brentq, minimum

if TYPE_CHECKING:
    import xarray

__all__ = ["Metastability", "metastability", "phase_diagram"]

#: Temperatures between which a metastable state is searched, in units of the variance of y.
_T_HOT, _T_COLD = 10.0, 1e-9


def phase_diagram(rho_hat: Iterable[float] | None = None) -> xarray.Dataset:
    """Compute the smallest α at which each of three methods recovers x̂, as functions of ρ̂.

    Parameters
    ----------
    rho_hat : iterable of float, optional
        Fractions of nonzero coefficients; 51 values from 0 to 1 by default.

    Returns
    -------
    xarray.Dataset
        ``alpha_l0`` (exhaustive search, α = ρ̂), ``alpha_bayes`` (Bayes-optimal message passing
        that knows the prior) and ``alpha_l1`` (basis pursuit), over ``rho_hat``.

    See Also
    --------
    l0anneal.theory.plot_phase_diagram : Draw it.
    l0anneal.theory.metastability : Where annealing is trapped.
    l0anneal.theory.l1.reconstruction_limit : One of its lines.
    l0anneal.theory.bayes.amp_threshold : Another of its lines.

    Examples
    --------
    >>> data = phase_diagram([0.5])
    >>> print(f"{data.alpha_bayes.item():.4f} {data.alpha_l1.item():.4f}")
    0.6857 0.8313
    """
    import xarray

    grid = np.linspace(0.0, 1.0, 51) if rho_hat is None else np.array([float(r) for r in rho_hat])
    curves = {
        "alpha_l0": bayes.information_limit,
        "alpha_bayes": bayes.amp_threshold,
        "alpha_l1": l1.reconstruction_limit,
    }
    data = {name: ("rho_hat", np.array([f(r) for r in grid])) for name, f in curves.items()}
    return xarray.Dataset(data, coords={"rho_hat": grid})


@dataclass(frozen=True)
class Metastability:
    """The selected fractions ρ that have a metastable state beside the planted one.

    Attributes
    ----------
    alpha, rho_hat : float
        Parameters of the problem.
    onset : float or None
        Two branches coexist for ρ above this value.  It is None if they do not coexist for any
        ρ < α, and equal to ``rho_hat`` if they coexist for every ρ.
    onset_temperature : float or None
        Temperature at which the branches begin to coexist at ρ = ``onset``, in units of σx².  It
        is None if ``onset`` is None or ``rho_hat``.
    trapped : float or None
        For ρ above this value the cooled branch continues to T = 0, and slow cooling does not find
        x̂.  Between ``onset`` and this value the cooled branch ends at a spinodal, and slow cooling
        reaches the planted state.

    See Also
    --------
    l0anneal.theory.metastability : Compute these limits.

    Examples
    --------
    >>> limits = metastability(0.6, 0.5)
    >>> limits.onset, limits.trapped
    (0.5, 0.5)
    """

    alpha: float
    rho_hat: float
    onset: float | None
    onset_temperature: float | None
    trapped: float | None


@cache
def metastability(alpha: float, rho_hat: float) -> Metastability:
    """Find which ρ between ρ̂ and α have no metastable state, without noise.

    A call takes some seconds unless every ρ has a metastable state.

    Parameters
    ----------
    alpha : float
        Measurements per column, M/N; at most 1.
    rho_hat : float
        Fraction of columns in the planted support, 0 < ρ̂ < α.

    Returns
    -------
    Metastability

    See Also
    --------
    l0anneal.theory.Metastability : The result.
    l0anneal.theory.phase_diagram : Limits of other methods.
    l0anneal.theory.ReplicaSymmetric : The curves at one point.

    Examples
    --------
    Below the threshold of Bayes-optimal message passing, every ρ has a metastable state:

    >>> limits = metastability(0.6, 0.5)
    >>> limits.onset == limits.rho_hat
    True
    """
    if not 0.0 < rho_hat < alpha <= 1.0:
        raise ValueError(
            "alpha and rho_hat must satisfy 0 < rho_hat < alpha <= 1; "
            f"got rho_hat={rho_hat!r} and alpha={alpha!r}"
        )

    def hot(rho: float) -> list[Point]:
        model = Model(alpha, rho, rho_hat, 1.0 / rho_hat, 0.0)
        delta, d = model.infinite_temperature()
        start = np.array([math.log(delta), -math.log(_T_HOT * model.s0 + d)])
        up = np.array([0.0, 1.0])
        return trace(model, start, up, t_hot=_T_HOT, t_cold=_T_COLD, longest=0.4)

    low, high = (rho_hat + part * (alpha - rho_hat) for part in (1e-3, 1.0 - 1e-3))
    onset: float | None
    temperature = trapped = None
    if _steepest(hot(high))[0] <= 0.0:
        onset = None
    elif _steepest(hot(low))[0] > 0.0:
        onset = rho_hat
    else:
        onset = float(brentq(lambda r: _steepest(hot(r))[0], low, high, xtol=1e-9, rtol=1e-9))
        temperature = _steepest(hot(onset))[1] * rho_hat  # in units of σx², not of the variance
    if onset is not None and _coldest(hot(high)) < 0.0:
        first = low if temperature is None else onset + 1e-7
        if _coldest(hot(first)) < 0.0:
            trapped = onset
        else:
            trapped = float(brentq(lambda r: _coldest(hot(r)), first, high, xtol=1e-9, rtol=1e-9))
    return Metastability(alpha, rho_hat, onset, temperature, trapped)


def _steepest(points: list[Point]) -> tuple[float, float]:
    """Return the largest d log T/ds along the hot curve, and T at that point.

    The slope is negative if T decreases along the whole curve, and zero where two spinodals
    appear.  A curve that crosses T = 0 gives (1, 0).
    """
    model = points[0].channel.model
    if (
        points[-1].log_a < -math.log(model.s0 * _T_COLD)
        or min(p.temperature for p in points) <= 0.0
    ):
        return 1.0, 0.0
    slopes = np.array([p.slope / p.temperature for p in points])
    best = int(slopes.argmax())
    if best in (0, len(points) - 1):
        return float(slopes[best]), points[best].temperature
    candidates = [(float(slopes[best]), points[best].temperature)]
    for i in (best - 1, best):
        along = between(points[i], points[i + 1])

        def loss(u: float, along: Callable[[float], Point] = along) -> float:
            point = along(u)
            return -point.slope / point.temperature

        best_fraction, least = minimum(loss, 0.0, 1.0, xatol=1e-8)
        candidates.append((-least, along(best_fraction).temperature))
    return max(candidates)


def _coldest(points: list[Point]) -> float:
    """Return a S0 T at the first minimum of T along the hot curve; negative below T = 0."""
    model = points[0].channel.model
    for left, right in pairwise(points):
        if left.slope < 0.0 <= right.slope:
            point = zero_between(left, right, lambda p: p.slope)
            return point.temperature * model.s0 * math.exp(point.log_a)
    return -1.0 if points[-1].temperature < 0.0 else 1.0
