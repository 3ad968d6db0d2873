"""The law of the coefficients that are not zero, learned from them.

It is Gaussian, of variance v, about m or about −m, each with probability one half: the usual slab with
one hump if m = 0, and one with two humps if not. Where all coefficients are of about one size, the two
humps say that a small one is not likely, and so keep out columns that fit the noise; where they are
of all sizes, the data say m = 0.

The prior: the mean square m² + v is about ``centre``, and of it the part c is of m². Given c,

    v ~ `WEIGHT` (1 − c) centre / χ²(WEIGHT),     m ~ |N(0, v c/(1 − c))|, if above √v,

and c is 0 with probability .9, or else any of the other `PARTS`. (Below √v the two humps would be
one, and the slab only a narrower one.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

__all__ = ["Slab"]

WEIGHT = 6.0  # the prior on v weighs as much as so many columns
PARTS = np.array([0.0, 0.5, 0.8, 0.95])
LOG_PRIOR = np.log([0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3])
RATIO = PARTS / (1.0 - PARTS)  # of the variance of m, were it not bounded, to v
LOG_PRIOR[1:] -= np.log(erfc(np.sqrt(0.5 / RATIO[1:])))  # of m being above √v
TRIES = 2
Floats = NDArray[np.float64]


class Slab:
    """A Markov chain over m and v, given coefficients that may change between its steps."""

    def __init__(self, centre: float) -> None:
        self.m, self.v = 0.0, centre
        self.centre = (1.0 - PARTS) * centre

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Move m and v, given the coefficients x; return the sign of the hump that each is of."""
        self.sizes = np.abs(x)
        self._prepare()
        for _ in range(TRIES):
            self._leap(rng)
            self._step(rng)
            self._split_or_merge(rng)
        own = rng.random(x.size) < 0.5 * (1.0 + np.tanh(self.m * self.sizes / self.v))
        return np.where(own, 1.0, -1.0) * np.sign(x)

    def _prepare(self) -> None:
        """The law of c, and what of m and v depends on it, if each coefficient were of the hump nearby.

        Then all would be conjugate.
        """
        k, total = self.sizes.size, float(self.sizes.sum())
        self.shrunk = 1.0 + RATIO * k
        self.mean = RATIO * total / self.shrunk
        self.square = WEIGHT * self.centre + float(self.sizes @ self.sizes) - self.mean * total
        log_law = LOG_PRIOR - 0.5 * np.log(self.shrunk) + 0.5 * WEIGHT * np.log(self.centre)
        log_law -= 0.5 * (WEIGHT + k) * np.log(self.square)
        log_law[1:] -= (k - 1) * math.log(2.0)
        law = np.exp(log_law - log_law.max())
        self.law = law / law.sum()

    def _leap(self, rng: np.random.Generator) -> None:
        """Propose from that law; the weight corrects for the hump on the other side."""
        c = int(rng.choice(PARTS.size, p=self.law))
        v = float(self.square[c] / rng.chisquare(WEIGHT + self.sizes.size))
        spread = math.sqrt(v * RATIO[c] / self.shrunk[c])
        m = abs(float(rng.normal(self.mean[c], spread)))
        gain = self._log_weight(m, v) - self._log_weight(self.m, self.v)
        self._accept(m, v, gain, rng)

    def _step(self, rng: np.random.Generator) -> None:
        """Random walk of log m and log v."""
        width = 2.0 / math.sqrt(WEIGHT + self.sizes.size)
        m, v = self.m * math.exp(width * rng.normal()), self.v * math.exp(width * rng.normal())
        gain = self._log_law(m, v) - self._log_law(self.m, self.v)
        if m > 0.0:
            gain += math.log(m / self.m)
        self._accept(m, v, gain, rng)

    def _split_or_merge(self, rng: np.random.Generator) -> None:
        """From one hump to two, or back, at the same mean square, of which m² gets the part c > ½."""
        if self.m > 0.0:
            square = self.m**2 + self.v
            m, v, c, two = 0.0, square, self.m**2 / square, self.m
        else:
            c = 0.5 + 0.5 * rng.random()
            m, v = math.sqrt(c * self.v), (1.0 - c) * self.v
            two = m
        # density of c, which is 2, over that of (m, log v): |∂(m, log v)/∂(log square, c)|
        log_ratio = math.log(2.0) - math.log(0.5 * two / (c * (1.0 - c)))
        gain = self._log_law(m, v) - self._log_law(self.m, self.v)
        self._accept(m, v, gain + (log_ratio if m == 0.0 else -log_ratio), rng)

    def _accept(self, m: float, v: float, gain: float, rng: np.random.Generator) -> None:
        admissible = m == 0.0 or m > math.sqrt(v)
        if admissible and rng.random() < math.exp(min(0.0, gain)):
            self.m, self.v = m, v

    def _log_weight(self, m: float, v: float) -> float:
        if m == 0.0:
            return 0.0
        other = np.log1p(np.exp(-2.0 * m / v * np.append(self.sizes, self.sizes.sum())))
        return float(other[:-1].sum() - other[-1])

    def _log_law(self, m: float, v: float) -> float:
        """Log density of m and log v, but for a constant."""
        prior = LOG_PRIOR + 0.5 * WEIGHT * (np.log(self.centre / v) - self.centre / v)
        if m > 0.0:
            variance = v * RATIO[1:]
            prior = prior[1:] + 0.5 * np.log(2.0 / (np.pi * variance)) - 0.5 * m**2 / variance
        else:
            prior = prior[:1]
        lean = m * self.sizes / v
        log_cosh = lean + np.log1p(np.exp(-2.0 * lean)) - math.log(2.0)
        square = float(self.sizes @ self.sizes) + self.sizes.size * m**2
        likelihood = float(log_cosh.sum()) - 0.5 * (square / v + self.sizes.size * math.log(v))
        return float(np.logaddexp.reduce(prior)) + likelihood
