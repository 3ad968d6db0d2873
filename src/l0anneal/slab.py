"""The law of the coefficients that are not zero, learned from them.

It is Gaussian, of variance v, about m or about −m, each with probability one half: the usual slab with
one hump if m = 0, and one with two humps if not. Where all coefficients are of about one size, the two
humps say that a small one is not likely, and so keep out columns that fit the noise; where they are
of all sizes, the data say m = 0.

The prior: the mean square m² + v is about ``centre``, and of it the part c is of m². Given c,

    v ~ `WEIGHT` (1 − c) centre / χ²(WEIGHT),     m ~ |N(0, v c/(1 − c))|,

and c is 0 with probability one half, or else any of the other `PARTS`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Slab"]

WEIGHT = 6.0  # the prior on v weighs as much as so many columns
PARTS = np.array([0.0, 0.5, 0.8, 0.95])
LOG_PRIOR = np.log([1 / 2, 1 / 6, 1 / 6, 1 / 6])
TRIES = 4
Floats = NDArray[np.float64]


class Slab:
    """A Markov chain over m and v, given coefficients that may change between its steps."""

    def __init__(self, centre: float) -> None:
        self.m, self.v = 0.0, centre
        self.centre = (1.0 - PARTS) * centre
        self.ratio = PARTS / (1.0 - PARTS)

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Move m and v, given the coefficients x; return the sign of the hump that each is of.

        Were each coefficient known to be of the hump on its own side, all would be conjugate. That law
        makes the proposals; their weights correct for the other hump.
        """
        sizes = np.abs(x)
        total, k = float(sizes.sum()), x.size
        shrunk = 1.0 + self.ratio * k
        mean = self.ratio * total / shrunk
        square = WEIGHT * self.centre + float(x @ x) - mean * total
        log_law = LOG_PRIOR - 0.5 * np.log(shrunk) + 0.5 * WEIGHT * np.log(self.centre)
        log_law -= 0.5 * (WEIGHT + k) * np.log(square)
        log_law[1:] -= (k - 1) * math.log(2.0)
        law = np.exp(log_law - log_law.max())
        law /= law.sum()

        def log_weight(m: float, v: float) -> float:
            if m == 0.0:
                return 0.0
            other = np.log1p(np.exp(-2.0 * m / v * np.append(sizes, total)))
            return float(other[:k].sum() - other[k])

        now = log_weight(self.m, self.v)
        for _ in range(TRIES):
            c = int(rng.choice(PARTS.size, p=law))
            v = float(square[c] / rng.chisquare(WEIGHT + k))
            m = abs(float(rng.normal(mean[c], math.sqrt(v * self.ratio[c] / shrunk[c]))))
            new = log_weight(m, v)
            if rng.random() < math.exp(min(0.0, new - now)):
                self.m, self.v, now = m, v, new
        own = rng.random(k) < 0.5 * (1.0 + np.tanh(self.m * sizes / self.v))
        return np.where(own, 1.0, -1.0) * np.sign(x)
