"""The prior of evidence annealing: a function of the problem and of the arguments alone.

The model is y = A x + ξ with Gaussian noise ξ of variance T. With the columns of A scaled to unit norm:

*How many columns.* Each column belongs to the support with probability ρ. With probability .9, log ρ
is uniform between `LEAST`/N and ρ_max, so that all orders of magnitude have the same chance; with
probability .1, ρ is uniform between 0 and ρ_max, so that dense supports have one, too. ρ_max is `MOST`,
or less where samples are few: to name k of N columns takes about k log(N/k) nats, and M samples provide
about M/2 at a signal-to-noise ratio of order one, so that ρ_max log(1/ρ_max) = M/2N. With ρ integrated
out, a support of k columns has a prior weight that depends on k alone. Zero columns do not count.

*How large the coefficients are.* A coefficient of the support has variance g T: g is the squared
signal-to-noise ratio of one column. Its prior, on a grid, is

    p(log g) ∝ 1 / ((1 + (f/g)²) √(1 + g/M)),     f = `STANDS_OUT` log(1 + N),

which is about flat from columns that stand out among N to one that alone explains half of y. It falls
as 1/√g above and as g² below: noise makes the largest of N squared correlations about 2 T log N, and
many columns fainter than that could be put into any support without a sign in the data. It is this
prior that keeps the noise from vanishing where many columns could represent any y: to explain away the
noise by chance takes a large g.

*The noise.* log T is uniform. Since all else is in units of T, scaling y changes nothing, and the
posterior is proper: whatever the support, T cannot vanish at finite g.

*The shape of the slab.* Coefficients are Gaussian around zero (one hump), or Gaussian around ±m (two
humps) if they are all of about the same size: m² = c g T and the variance is (1 − c) g T. c = 0 has
probability .9, the other `PARTS` share the rest. Narrow humps need a finer grid of g than one hump does,
since neighbouring values of m must not differ by more than the width of a hump. Hundreds of coefficients
of equal size would determine m more finely than this grid; T then adapts to it, by up to 4 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, lambertw, logsumexp

from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["SLABS", "STANDS_OUT", "DensityPrior", "Prior", "Shapes", "check_density"]

LEAST, MOST = 0.5, 0.9  # range of ρ: LEAST/N to MOST
POINTS = 540, 60  # of the grid of ρ: uniform in log ρ, and uniform in ρ
STANDS_OUT = 4.0  # g of columns that stand out among N, in units of log(1 + N)
GRID = 10.0 ** np.arange(0.0, 12.01, 0.25)  # values of g with one hump
FINE_GRID = 10.0 ** np.arange(0.0, 12.01, 1.0 / 32.0)  # values of g with two humps
PARTS = np.array([0.5, 0.8, 0.95, 0.99, 0.998])  # c: the part of the mean square that is the humps'
SLABS = {"learned": 0.1, "one hump": 0.0, "two humps": 1.0}  # with the probability of two humps
Floats = NDArray[np.float64]


def check_density(rho: Any, n_columns: int) -> float | tuple[float, float] | Floats | None:
    """Return ``rho`` as None, a probability, the two numbers of a Beta law, or N probabilities."""
    if rho is None:
        return None
    values = np.asarray(rho, dtype=np.float64)
    if values.ndim == 0:
        if not 0 < float(values) < 1:
            raise ValueError(f"rho is a probability, strictly between 0 and 1; got {rho}")
        return float(values)
    if isinstance(rho, tuple) and len(rho) == 2:
        if not all(math.isfinite(v) and v > 0 for v in rho):
            raise ValueError(
                f"rho is a probability or the two positive numbers of a Beta law; got {rho}"
            )
        return float(rho[0]), float(rho[1])
    if values.shape != (n_columns,):
        raise ValueError(
            f"rho is a probability, the two numbers of a Beta law as a tuple, or a probability for each "
            f"of the {n_columns} columns; got shape {values.shape}"
        )
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("rho of each column must be a probability, between 0 and 1")
    return values


class DensityPrior:
    """The law of ρ for n exchangeable columns: the default, Beta, or a fixed value."""

    def __init__(self, rho: float | tuple[float, float] | None, n: int, m: int) -> None:
        self.n, self.rho = n, rho
        if rho is None:
            most = _most(n, m)
            least = min(LEAST / n, 0.1 * most)
            in_log, in_rho = ((np.arange(n) + 0.5) / n for n in POINTS)
            log_uniform = math.log(least) + in_log * math.log(most / least)
            self.log_rho = np.append(log_uniform, np.log(in_rho * most))
            self.log_not_rho = np.log1p(-np.exp(self.log_rho))

    def log_weight(self, size: NDArray[np.int64]) -> Floats:
        """Return the log prior probability of one support of each size."""
        k = np.asarray(size, dtype=np.float64)
        n = self.n
        if isinstance(self.rho, float):
            return np.asarray(k * math.log(self.rho) + (n - k) * math.log1p(-self.rho))
        if isinstance(self.rho, tuple):
            a, b = self.rho
            return np.asarray(betaln(a + k, b + n - k) - betaln(a, b))
        return np.asarray(logsumexp(self._terms(k[:, None]), axis=1)) - math.log(self.log_rho.size)

    def draw(self, size: int, rng: np.random.Generator) -> float:
        """Draw ρ given the size of the support."""
        if isinstance(self.rho, float):
            return self.rho
        if isinstance(self.rho, tuple):
            return float(rng.beta(self.rho[0] + size, self.rho[1] + self.n - size))
        terms = self._terms(float(size))
        law = np.exp(terms - terms.max())
        return float(math.exp(rng.choice(self.log_rho, p=law / law.sum())))

    def draw_from_prior(self, rng: np.random.Generator) -> float:
        """Draw ρ from its prior."""
        if isinstance(self.rho, float):
            return self.rho
        if isinstance(self.rho, tuple):
            return float(rng.beta(*self.rho))
        return float(math.exp(rng.choice(self.log_rho)))

    def _terms(self, k: Any) -> Floats:
        return np.asarray(k * self.log_rho + (self.n - k) * self.log_not_rho)


def _most(n: int, m: int) -> float:
    """Return the largest ρ that m samples can show in n columns: ρ log(1/ρ) = m/2n, or `MOST`."""
    share = 0.5 * m / n
    if share >= math.exp(-1.0):  # the largest value of ρ log(1/ρ)
        return MOST
    return max(1.0 / n, math.exp(float(lambertw(-share, -1).real)))


class Shapes(NamedTuple):
    """The shapes that a slab may have: g, c and the log prior probability of each.

    ``ridge`` is T over the variance of a hump, and ``pull`` the ridge times m/√T. ``humps`` are the
    shapes with two humps, which are the last ones. ``log_ridge``, ``offset`` = pull²/ridge and
    ``least_ridge`` save each draw of a slab from computing them again.
    """

    g: Floats
    c: Floats
    log_weight: Floats
    ridge: Floats
    pull: Floats
    humps: slice
    log_ridge: Floats
    offset: Floats
    least_ridge: float


def _log_scale(g: Floats, faint: float, m: int) -> Floats:
    """Return the log prior probabilities of values of g on a grid."""
    log_scale = -np.log1p((faint / g) ** 2) - 0.5 * np.log1p(g / m)
    return np.asarray(log_scale - logsumexp(log_scale))


def _shapes(two_humps: float, log_scale: Floats, log_fine: Floats) -> Shapes:
    """Return the shapes of a slab that has two humps with the given probability."""
    parts = []
    if two_humps < 1.0:
        parts.append((GRID, np.zeros(GRID.size), log_scale + math.log1p(-two_humps)))
    if two_humps > 0.0:
        share = math.log(two_humps / PARTS.size)
        parts += [(FINE_GRID, np.full(FINE_GRID.size, c), log_fine + share) for c in PARTS]
    g, c, log_weight = (np.concatenate(column) for column in zip(*parts))
    ridge = 1.0 / ((1.0 - c) * g)
    pull = ridge * np.sqrt(c * g)
    humps = slice(int((c == 0.0).sum()), None)
    return Shapes(
        g, c, log_weight, ridge, pull, humps, np.log(ridge), pull**2 / ridge, float(ridge.min())
    )


@dataclass(frozen=True)
class Prior:
    """The prior of one problem.

    Attributes
    ----------
    log_size : ndarray
        Log prior weight of one support of k columns, for k from 0 to the largest allowed.
    column_odds : ndarray of shape (N,)
        Log prior odds of each column, to be added to those of the size; −∞ for a column that is never
        chosen.
    density : DensityPrior or None
        The law of ρ; None if each column has a probability of its own.
    scales, log_scale : ndarrays
        The values of g with one hump, and the log of their prior probabilities.
    shapes : Shapes
        The slabs of positive probability: those with one hump first.
    largest : int
        The largest number of columns of a support.
    groups : tuple of ndarrays
        Columns that enter and leave together. A group counts as one column in ``log_size``; the
        ``column_odds`` of its members are −∞, since they do not move alone.
    """

    log_size: Floats
    column_odds: Floats
    density: DensityPrior | None
    scales: Floats
    log_scale: Floats
    shapes: Shapes
    largest: int
    groups: tuple[NDArray[np.int64], ...] = ()

    @classmethod
    def of(
        cls,
        problem: SparseProblem,
        rho: Any = None,
        slab: str = "learned",
        groups: tuple[NDArray[np.int64], ...] = (),
    ) -> Prior:
        """Return the prior of a problem; ``rho`` as returned by `check_density`.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import SparseProblem
        >>> prior = Prior.of(SparseProblem(np.eye(100), np.ones(100)))
        >>> print(np.round(np.exp(prior.log_size[:2]), 4))
        [0.0972 0.0011]
        """
        usable = problem.column_norms > 0
        column_odds = np.where(usable, 0.0, -np.inf)
        largest = min(problem.n_samples, int(usable.sum()))
        grouped = sum(group.size for group in groups)
        n_units = int(usable.sum()) - grouped + len(groups)
        sizes = np.arange(min(largest, n_units) + 1)
        density = None
        if isinstance(rho, np.ndarray):
            with np.errstate(divide="ignore"):
                column_odds = np.where(usable, np.log(rho) - np.log1p(-rho), -np.inf)
            log_size = np.zeros(sizes.size)
        else:
            density = DensityPrior(rho, max(1, n_units), problem.n_samples)
            log_size = density.log_weight(sizes)
        for group in groups:
            column_odds[group] = -np.inf
        faint = STANDS_OUT * math.log1p(max(1, n_units))
        log_scale, log_fine = (_log_scale(g, faint, problem.n_samples) for g in (GRID, FINE_GRID))
        shapes = _shapes(SLABS[slab], log_scale, log_fine)
        return cls(log_size, column_odds, density, GRID, log_scale, shapes, largest, groups)

    @property
    def size_odds(self) -> Floats:
        """Log prior odds of one more column, by size, for the kernels."""
        return np.append(np.diff(self.log_size), -np.inf)

    @cached_property
    def has_humps(self) -> bool:
        """Whether the slab may have two humps."""
        return bool(self.shapes.c.any())

    def log_weight(self, support: NDArray[np.int64]) -> float:
        """Return the log prior weight of a support, which has whole groups or none of them."""
        alone = self._alone(support)
        return float(self.log_size[self.n_units(support)] + self.column_odds[alone].sum())

    def n_units(self, support: NDArray[np.int64]) -> int:
        """Return the number of columns of a support, a group counting as one."""
        n_groups = sum(int(group[0] in support) for group in self.groups)
        return self._alone(support).size + n_groups

    def with_groups(self, support: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a support with all columns of the groups that it has any column of."""
        for group in self.groups:
            if np.isin(group, support).any():
                support = np.union1d(support, group)
        return support

    def allows(self, support: NDArray[np.int64]) -> bool:
        """Return whether the prior weight of each column of a support is positive."""
        return bool(np.all(np.isfinite(self.column_odds[self._alone(support)])))

    def _alone(self, support: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the columns of a support that belong to no group."""
        if not self.groups:
            return support
        return support[~np.isin(support, np.concatenate(self.groups))]

    @property
    def fixed_rho(self) -> float | None:
        """ρ if it is given; None if it is learned."""
        fixed = None if self.density is None else self.density.rho
        return fixed if isinstance(fixed, float) else None

    def draw_rho(self, size: int, rng: np.random.Generator) -> float:
        """Draw ρ given the size of the support; NaN if each column has its own."""
        return math.nan if self.density is None else self.density.draw(size, rng)

    def draw(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats]:
        """Draw a support, and the coefficients of its unit-norm columns for noise of variance 1."""
        usable = np.flatnonzero(np.isfinite(self.column_odds))
        while True:
            if self.density is None:
                p = 1.0 / (1.0 + np.exp(-self.column_odds[usable]))
            else:
                p = np.full(usable.size, self.density.draw_from_prior(rng))
            support = usable[rng.random(usable.size) < p]
            if support.size <= self.largest:
                break
        shape = rng.choice(self.shapes.g.size, p=np.exp(self.shapes.log_weight))
        g, c = self.shapes.g[shape], self.shapes.c[shape]
        humps = math.sqrt(c * g) * rng.choice([-1.0, 1.0], support.size)
        return support, humps + math.sqrt((1.0 - c) * g) * rng.standard_normal(support.size)
