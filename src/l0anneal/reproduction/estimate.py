"""Means of samples with their errors, as the rules of the verdicts test them.

Means are tested by Student's t and by the studentised bootstrap over samples, and the larger of both
p-values counts: the first is right for few samples, the second for skewed ones, such as errors that a
few runs dominate. All temperatures of a curve are resampled together, because they belong to one run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Estimate"]

Floats = NDArray[np.float64]

_N_RESAMPLED = 3999  # so that the least p of a resampling is 1/4000


class Estimate:
    """A weighted sum of the means of independent groups of samples, with its resamplings.

    One group with weight 1 is a mean, two with weights 1 and −1 a difference, and several sizes with
    the weights of a straight line in 1/N the limit N → ∞.

    Parameters
    ----------
    groups : sequence of arrays
        The samples of each group, of shape (n_samples,) or (n_samples, n_points); at least two
        samples each. A sample may be a whole curve, whose points are resampled together.
    weights : sequence of float
        The weight of each group.

    Attributes
    ----------
    mean, error : array of shape (n_points,)
        The estimate and its standard error.
    freedom : array
        Welch's degrees of freedom.
    pivots : array of shape (n_resamplings, n_points)
        (mean* − mean)/error* of each resampling.
    caution : float
        The factor by which p-values of the resampling are raised.

    Examples
    --------
    >>> difference = Estimate([[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]], [1, -1])
    >>> float(difference.mean[0]), round(float(difference.error[0]), 4)
    (1.0, 0.8165)
    """

    def __init__(self, groups: Sequence[ArrayLike], weights: Sequence[float]) -> None:
        parts = [_columns(group) for group in groups]
        n_points = parts[0].shape[1]
        self.n_samples = tuple(part.shape[0] for part in parts)
        self.mean = np.zeros(n_points)
        variance, denominator = np.zeros(n_points), np.zeros(n_points)
        shift, resampled = (np.zeros((_N_RESAMPLED, n_points)) for _ in range(2))
        scale = np.zeros(n_points)
        for index, (part, weight) in enumerate(zip(parts, weights, strict=True)):
            n = part.shape[0]
            centre = part.mean(axis=0)
            self.mean += weight * centre
            own = weight**2 * part.var(axis=0, ddof=1) / n
            variance += own
            denominator += own**2 / (n - 1)
            counts = _resamplings(n, index)
            deviations = part - centre
            moved = counts @ deviations
            shift += weight * moved
            spread = np.maximum(counts @ deviations**2 - moved**2, 0.0)
            resampled += weight**2 * spread / (n - 1)
            scale = np.maximum(scale, np.abs(part).max(axis=0))
        tiny = (1e-12 * scale + 1e-300) ** 2  # samples that coincide up to rounding
        self.error = np.sqrt(variance + tiny)
        self.freedom = np.maximum((variance + tiny) ** 2 / (denominator + tiny**2), 1.0)
        self.pivots = shift / np.sqrt(resampled + tiny)
        # a resampling knows the skewness from the samples alone: with 100 exponential ones, its
        # p-values are too small by about an eighth
        self.caution = 1.0 + 2.0 / math.sqrt(min(self.n_samples))

    def p_below(self, bound: ArrayLike) -> Floats:
        """Return the p-values for the claim that the mean is below a bound."""
        return self._tail((self.mean - np.asarray(bound)) / self.error, self.pivots)

    def p_above(self, bound: ArrayLike) -> Floats:
        """Return the p-values for the claim that the mean is above a bound."""
        return self._tail((np.asarray(bound) - self.mean) / self.error, -self.pivots)

    def p_some_below(self, bound: ArrayLike) -> float:
        """Return the p-value for the claim that the mean is below a bound at some point.

        The least pivot of each resampling accounts for the number of points. Multiplying the least p
        of a point by this number instead could not show the claim, because a resampling has no p below
        1/4000.
        """
        z = (self.mean - np.asarray(bound)) / self.error
        worst = int(np.argmin(z))
        least = self.pivots.min(axis=1, keepdims=True)
        by_student = z.size * self._student(z)[worst]
        return float(min(max(self._resampled(z[worst], least)[0], by_student), 1.0))

    def _tail(self, z: Floats, pivots: Floats) -> Floats:
        return np.minimum(np.maximum(self._student(z), self._resampled(z, pivots)), 1.0)

    def _student(self, z: Floats) -> Floats:
        from scipy.stats import t

        return np.asarray(t.cdf(z, self.freedom))

    def _resampled(self, z: Floats, pivots: Floats) -> Floats:
        return np.asarray(self.caution * (1 + np.sum(pivots <= z, axis=0)) / (_N_RESAMPLED + 1))

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the bounds that the one-sided tests at a level do not reject."""
        from scipy.stats import t

        student = t.ppf(1 - level, self.freedom)
        low, high = np.quantile(self.pivots, [level, 1 - level], axis=0)
        return (
            self.mean - np.maximum(student, high) * self.error,
            self.mean + np.maximum(student, -low) * self.error,
        )


@lru_cache(maxsize=16)
def _resamplings(n: int, index: int) -> Floats:
    """Return how often each of n samples is drawn, as a fraction; other draws for each group."""
    counts = np.random.default_rng([n, index]).multinomial(n, np.full(n, 1 / n), _N_RESAMPLED) / n
    counts.flags.writeable = False
    return np.asarray(counts)


def _columns(group: ArrayLike) -> Floats:
    values = np.asarray(group, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape[0] < 2 or not np.all(np.isfinite(values)):
        raise ValueError(
            f"a group needs two or more finite samples; got an array of shape {values.shape}"
        )
    return values
