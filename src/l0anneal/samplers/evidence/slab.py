"""Draws of the noise level, the slab and the coefficients, given the support.

The prior of g, the squared signal-to-noise ratio of a column, lies on a grid (`prior`), so that the
slab is drawn from a list of probabilities. With the eigenvalues d_i and eigenvectors v_i of G_SS,
c_i = v_iᵀb and a slab of one hump, the coefficients and the noise variance T can be integrated out:

    p(y | S, g) ∝ Π_i (1 + g d_i)^(−1/2)  (2 E_g)^(−M/2),     2 E_g = ‖y‖² − Σ_i c_i² g/(1 + g d_i),

and T given g is 2 E_g/χ²(M). With two humps, g and the part c of the humps are drawn given the
coefficients.

A small ridge T/σ² could make the support inadmissible (`problem.admissibility`). Such values of g have
no weight, so that a column that can leave can also enter again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from l0anneal.problem.admissibility import PIVOT
from l0anneal.samplers.evidence.prior import PARTS, Prior

__all__ = ["Hyperparameters", "SupportModel"]

TINY = 1e-14  # of ‖y‖²: a residual below is a rounding error
NOISE_STEPS = 4
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
        self._exclude_inadmissible(self.log_law, 1.0 / prior.scales)

    def _exclude_inadmissible(self, log_law: Floats, ridges: Floats) -> None:
        """Take the weight from ridges at which the support is not admissible."""
        least = float(self.values.min(initial=1.0))
        if least > 2.0 * PIVOT * (1.0 + float(ridges.min())):
            return  # then all are, since a larger ridge makes a support more admissible
        log_law[~self._admissible(ridges, least)] = -np.inf

    def _admissible(self, ridges: Floats, least: float) -> NDArray[np.bool_]:
        """Return whether the support, with ``least`` eigenvalue, is admissible at each ridge."""
        fine: NDArray[np.bool_] = ridges + least > 2.0 * PIVOT * (1.0 + ridges)
        for i in np.argwhere(~fine):
            ridge = ridges[tuple(i)]
            inverse = (self.vectors**2) @ (1.0 / np.maximum(self.values + ridge, 1e-300))
            fine[tuple(i)] = np.max(inverse) * PIVOT * (1.0 + ridge) < 1.0
        if not fine.any():
            fine[np.unravel_index(np.argmax(ridges), ridges.shape)] = (
                True  # the most admissible one
            )
        return fine

    def log_evidence(self) -> float:
        """Return log p(y | S) with one hump, up to a constant that is the same for all supports."""
        most = float(self.log_law.max())
        return most + math.log(float(np.exp(self.log_law - most).sum()))

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
            g, c, signs = self._draw_slab(x, noise, rng)
            if c > 0.0 and self.known is None:
                noise = self._move_noise(Hyperparameters(noise, g, c, signs), x, rng)
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

    def _draw_slab(
        self, x: Floats, noise: float, rng: np.random.Generator
    ) -> tuple[float, float, Floats]:
        """Draw g and c given the coefficients and the noise, and then the signs."""
        prior, size = self.prior, np.abs(x)
        g = prior.scales[:, None] * noise
        v, m = (1.0 - PARTS) * g, np.sqrt(PARTS * g)
        lean = size * (m / v)[:, 1:, None]  # the first part has no humps
        log_cosh = lean + np.log1p(np.exp(-2.0 * lean)) - math.log(2.0)
        square = float(size @ size) + x.size * m**2
        log_law = -0.5 * (square / v + x.size * np.log(v))
        log_law[:, 1:] += log_cosh.sum(axis=-1)
        log_law += prior.log_scale[:, None] + prior.log_part
        self._exclude_inadmissible(log_law, noise / v)
        i, j = divmod(_pick(log_law.ravel(), rng), PARTS.size)
        own = rng.random(x.size) < 0.5 * (1.0 + np.tanh(lean[i, j - 1] if j else 0.0))
        signs = np.where(own, 1.0, -1.0) * np.sign(x) if PARTS[j] else np.zeros(x.size)
        return float(prior.scales[i]), float(PARTS[j]), signs

    def _move_noise(self, at: Hyperparameters, x: Floats, rng: np.random.Generator) -> float:
        """Move T by a random walk, given the coefficients and their humps.

        With τ = 1/√T the density of log τ is τ^(M + K) exp(−½ a τ² + b τ), since the humps scale
        with √T.
        """
        z = self.vectors.T @ x
        residual = max(self.total - float((2.0 * self.b - self.values * z) @ z), TINY * self.total)
        power = self.n_samples + x.size
        spread = (1.0 - at.c) * at.g
        a = residual + float(x @ x) / spread
        b = math.sqrt(at.c * at.g) * float(at.signs @ x) / spread
        tau = 1.0 / math.sqrt(at.noise)
        width = 2.4 / math.sqrt(2.0 * power)

        def log_density(t: float) -> float:
            return power * math.log(t) - 0.5 * a * t * t + b * t

        now = log_density(tau)
        for _ in range(NOISE_STEPS):
            other = tau * math.exp(width * rng.standard_normal())
            then = log_density(other)
            if math.log(rng.random()) < then - now:
                tau, now = other, then
        return 1.0 / tau**2


def _pick(log_law: Floats, rng: np.random.Generator) -> int:
    """Draw an index with probabilities proportional to the exponentials of ``log_law``."""
    total = np.cumsum(np.exp(log_law - log_law.max()))
    return int(np.searchsorted(total, rng.random() * total[-1]))
