"""The distribution of the coefficients that are not zero, learned from these coefficients.

A coefficient is Gaussian with variance v and mean m or −m, each with probability one half. This is
the usual slab with one hump if m = 0, and a slab with two humps if not. If all coefficients have
about the same size, two humps make a small coefficient unlikely and so keep out columns that only
fit noise. If the coefficients have very different sizes, the data favour m = 0.

Prior: the mean square m² + v is about ``centre``, and m² is a fraction c of it. Given c,

    v ~ `WEIGHT` (1 − c) centre / χ²(WEIGHT),     m ~ |N(0, v c/(1 − c))|, if above √v,

and c is 0 with probability .9, and otherwise one of the other `PARTS`, all equally likely. (For m
below √v the two humps would merge into one.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

__all__ = ["Slab"]

WEIGHT = 6.0  # the prior on v counts as much as this many columns
PARTS = np.array([0.0, 0.5, 0.8, 0.95])
LOG_PRIOR = np.log([0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3])
RATIO = PARTS / (1.0 - PARTS)  # ratio of the variance of m, without its lower bound, to v
LOG_PRIOR[1:] -= np.log(erfc(np.sqrt(0.5 / RATIO[1:])))  # normalise: m is above √v
TRIES = 2
Floats = NDArray[np.float64]


class Slab:
    """A Markov chain over m and v, for coefficients that may change between its steps."""

    def __init__(self, centre: float) -> None:
        self.m, self.v = 0.0, centre
        self.centre = (1.0 - PARTS) * centre

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Move m and v, given the coefficients x; return the sign of each coefficient's hump."""
        self.sizes = np.abs(x)
        self._prepare()
        for _ in range(TRIES):
            self._leap(rng)
            self._step(rng)
            self._split_or_merge(rng)
        own = rng.random(x.size) < 0.5 * (1.0 + np.tanh(self.m * self.sizes / self.v))
        return np.where(own, 1.0, -1.0) * np.sign(x)

    def _prepare(self) -> None:
        """Compute the distribution of c, and those of m and v given c, approximately.

        Each coefficient is taken to belong to the nearer hump, so that the priors are conjugate.
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
        """Propose from that distribution; the weight corrects for the other hump."""
        c = int(rng.choice(PARTS.size, p=self.law))
        v = float(self.square[c] / rng.chisquare(WEIGHT + self.sizes.size))
        spread = math.sqrt(v * RATIO[c] / self.shrunk[c])
        m = abs(float(rng.normal(self.mean[c], spread)))
        gain = self._log_weight(m, v) - self._log_weight(self.m, self.v)
        self._accept(m, v, gain, rng)

    def _step(self, rng: np.random.Generator) -> None:
        """Make a step of a random walk in log m and log v."""
        width = 2.0 / math.sqrt(WEIGHT + self.sizes.size)
        m, v = self.m * math.exp(width * rng.normal()), self.v * math.exp(width * rng.normal())
        gain = self._log_law(m, v) - self._log_law(self.m, self.v)
        if m > 0.0:
            gain += math.log(m / self.m)
        self._accept(m, v, gain, rng)

    def _split_or_merge(self, rng: np.random.Generator) -> None:
        """Propose two humps instead of one, or one instead of two, with the same mean square.

        Of this mean square, m² is a fraction c > ½.
        """
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
        """Return the log density of m and log v, up to a constant."""
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
