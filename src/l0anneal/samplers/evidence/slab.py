"""Draws of the noise level, the slab and the coefficients, given the support.

The prior of g, the squared signal-to-noise ratio of a column, lies on a grid (`prior`), so that the
slab is drawn from a list of probabilities. With the eigenvalues d_i and eigenvectors v_i of G_SS,
c_i = v_iᵀb and a slab of one hump, the coefficients and the noise variance T can be integrated out:

    p(y | S, g) ∝ Π_i (1 + g d_i)^(−1/2)  (2 E_g)^(−M/2),     2 E_g = ‖y‖² − Σ_i c_i² g/(1 + g d_i),

and T given g is 2 E_g/χ²(M). With two humps, g and the part c of the humps are drawn given the
coefficients and T, and T given the coefficients, with g, c and the signs summed over.

A small ridge T/σ² could make the support inadmissible (`problem.admissibility`). Such values of g have
no weight, so that a column that can leave can also enter again.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from l0anneal.problem.admissibility import PIVOT
from l0anneal.samplers.evidence.prior import Prior

__all__ = ["Hyperparameters", "SupportModel"]

TINY = 1e-14  # of ‖y‖²: a residual below is a rounding error
NEGLIGIBLE = 45.0  # slabs that are less probable by this many nats vanish in rounding errors
FACTORS = 512  # 2^−512 is far from underflow
Floats = NDArray[np.float64]


class Hyperparameters(NamedTuple):
    """The noise variance T, g, the part c of the humps, and the sign of each coefficient's hump."""

    noise: float
    g: float
    c: float
    signs: Floats

    @property
    def variance(self) -> float:
        """The variance of a coefficient around its hump."""
        return (1.0 - self.c) * self.g * self.noise

    @property
    def hump(self) -> float:
        """The distance of the humps from zero."""
        return math.sqrt(self.c * self.g * self.noise)


class SupportModel:
    """The model of y given one support.

    Parameters
    ----------
    gram, b : arrays
        Gram matrix of the support's unit columns, and their correlations with the signal.
    total : float
        ‖y‖².
    n_samples : int
        M.
    prior : Prior
        Its grid of g, and the probabilities of c.
    known : float, optional
        The noise variance if it is given, in the units of ``total``.
    """

    def __init__(
        self,
        gram: Floats,
        b: Floats,
        total: float,
        n_samples: int,
        prior: Prior,
        known: float | None = None,
    ) -> None:
        self.prior, self.n_samples, self.known, self.total = prior, n_samples, known, total
        values: Floats = np.zeros(0)
        self.vectors: Floats = np.zeros((0, 0))
        if b.size:
            values, self.vectors = np.linalg.eigh(gram)
        self.gram, self.correlation = gram, b
        self.values = np.maximum(values, 0.0)
        self.b = self.vectors.T @ b
        spread = 1.0 + prior.scales[:, None] * self.values
        explained = prior.scales * ((1.0 / spread) @ self.b**2)
        self.twice_energy = np.maximum(total - explained, TINY * total)
        self.log_law = prior.log_scale - 0.5 * np.log(spread).sum(axis=1)
        if known is None:
            self.log_law -= 0.5 * n_samples * np.log(self.twice_energy)
        else:
            self.log_law -= 0.5 * self.twice_energy / known
        ridges = 1.0 / prior.scales
        self._exclude_inadmissible(self.log_law, ridges, float(ridges.min()))

    def _exclude_inadmissible(self, log_law: Floats, ridges: Floats, least_ridge: float) -> None:
        """Take the weight from ridges at which the support is not admissible."""
        least = float(self.values.min(initial=1.0))
        if least > 2.0 * PIVOT * (1.0 + least_ridge):
            return  # then all are, since a larger ridge makes a support more admissible
        log_law[~self._admissible(ridges, least)] = -np.inf

    def _admissible(self, ridges: Floats, least: float) -> NDArray[np.bool_]:
        """Return whether the support, with ``least`` eigenvalue, is admissible at each ridge."""
        fine: NDArray[np.bool_] = ridges + least > 2.0 * PIVOT * (1.0 + ridges)
        doubtful = np.unique(ridges[~fine])
        squares = self.vectors**2

        def is_admissible(ridge: float) -> bool:
            inverse = squares @ (1.0 / np.maximum(self.values + ridge, 1e-300))
            return bool(np.max(inverse) * PIVOT * (1.0 + ridge) < 1.0)

        first = bisect_left(doubtful, True, key=is_admissible)
        if first < doubtful.size:
            fine |= ridges >= doubtful[first]
        if not fine.any():
            fine[np.argmax(ridges)] = True  # the most admissible one
        return fine

    def log_evidence(self) -> float:
        """Return log p(y | S) with one hump, up to a constant that is the same for all supports."""
        return _log_sum(self.log_law)

    def draw(
        self, old: Hyperparameters, rng: np.random.Generator
    ) -> tuple[Hyperparameters, Floats]:
        """Make Gibbs steps for the hyperparameters; return the new ones and the coefficients."""
        noise, g, c, signs = old
        if c == 0.0:
            i = _pick(self.log_law, rng)
            g = float(self.prior.scales[i])
            if self.known is None:
                noise = float(self.twice_energy[i] / rng.chisquare(self.n_samples))
        x = self._draw_coefficients(Hyperparameters(noise, g, c, signs), rng)
        if self.prior.has_humps:
            noise, g, c, signs = self._draw_slab(x, noise, rng)
        return Hyperparameters(noise, g, c, signs), x

    def _draw_coefficients(self, at: Hyperparameters, rng: np.random.Generator) -> Floats:
        """Draw the coefficients by a Cholesky factor, which depends continuously on the data.

        The signs of eigenvectors do not: with them, data that differ by rounding would have other draws.
        """
        if not self.correlation.size:
            return np.zeros(0)
        ridge = at.noise / at.variance
        right = self.correlation
        if at.c:
            right = right + ridge * at.hump * at.signs
        matrix = self.gram.copy()
        matrix.flat[:: right.size + 1] += ridge
        factor, failed = dpotrf(matrix, lower=True)
        assert not failed, "a ridge at which the support is not admissible has no weight"
        z = math.sqrt(at.noise) * rng.standard_normal(right.size)
        half, _ = dtrtrs(factor, right, lower=True)
        x, _ = dtrtrs(factor, half + z, lower=True, trans=1)
        return np.asarray(x)

    def _draw_slab(self, x: Floats, noise: float, rng: np.random.Generator) -> Hyperparameters:
        """Draw g and c given the coefficients and the noise; with two humps, also the noise; then signs.

        Narrow humps tie T to g, since m² = c g T. T is therefore moved with g, c and the signs summed
        over, among all shapes of two humps. What it is proposed from is its law given the residual.
        """
        shapes = self.prior.shapes
        size = np.abs(x)
        log_law = self._slab_law(size, noise)
        i = _pick(log_law, rng)
        if shapes.c[i] and self.known is None:
            other = self._residual(x) / rng.chisquare(self.n_samples)
            other_law = self._slab_law(size, other)[shapes.humps]
            log_law = log_law[shapes.humps]
            if math.log(rng.random()) < _log_sum(other_law) - _log_sum(log_law):
                noise, log_law = other, other_law
            i = shapes.humps.start + _pick(log_law, rng)
        lean = size * (shapes.pull[i] / math.sqrt(noise))
        own = rng.random(x.size) < 0.5 * (1.0 + np.tanh(lean))
        signs = np.where(own, 1.0, -1.0) * np.sign(x) if shapes.c[i] else np.zeros(x.size)
        return Hyperparameters(noise, float(shapes.g[i]), float(shapes.c[i]), signs)

    def _slab_law(self, size: Floats, noise: float) -> Floats:
        """Return the log probabilities of all shapes, given T and the sizes |x| of coefficients.

        Both humps together have the density of the nearer one times (1 + exp(−2 |x| m/v))/2. This factor
        lies between ½ and 1 and is computed where it can matter.
        """
        log_weight, ridge, pull, humps, log_ridge, offset, least_ridge = self.prior.shapes[2:]
        k, scaled = size.size, size / math.sqrt(noise)
        square = ridge * (scaled @ scaled) - 2.0 * pull * scaled.sum() + k * offset
        log_law = log_weight + 0.5 * (k * log_ridge - square)
        # before shapes are left out as negligible
        self._exclude_inadmissible(log_law, ridge, least_ridge)
        least = max(log_law[: humps.start].max(initial=-np.inf), log_law.max() - k * math.log(2.0))
        near = humps.start + np.flatnonzero(log_law[humps] > least - NEGLIGIBLE)
        exact = log_law[near] + _log_product(
            0.5 + 0.5 * np.exp(np.outer(-2.0 * scaled, pull[near]))
        )
        log_law[humps] = -np.inf
        log_law[near] = exact
        return np.asarray(log_law - 0.5 * k * math.log(noise))

    def _residual(self, x: Floats) -> float:
        """Return ‖y − A_S x‖²."""
        left = self.total - float((2.0 * self.correlation - self.gram @ x) @ x)
        return max(left, TINY * self.total)


def _log_product(factors: Floats) -> Floats:
    """Return the log of the product of each column, whose factors lie between ½ and 1.

    One logarithm serves `FACTORS` of them, whose product is large enough not to vanish.
    """
    starts = range(0, len(factors), FACTORS)
    logs = [np.log(factors[i : i + FACTORS].prod(axis=0)) for i in starts]
    return np.asarray(sum(logs)) if logs else np.zeros(factors.shape[1])


def _log_sum(log_law: Floats) -> float:
    """Return the log of the sum of exponentials; SciPy's general function takes ten times as long."""
    most = float(log_law.max())
    return most + math.log(float(np.exp(log_law - most).sum()))


def _pick(log_law: Floats, rng: np.random.Generator) -> int:
    """Draw an index with probabilities proportional to the exponentials of ``log_law``."""
    most = log_law.max()
    assert np.isfinite(most), "some outcome must have a probability"
    total = np.cumsum(np.exp(log_law - most))
    return int(np.searchsorted(total, rng.random() * total[-1]))
