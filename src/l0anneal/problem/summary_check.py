"""Do z-scores and a correlation matrix belong together?

If they come from the same rows, the adjusted z-scores (see `l0anneal.problem.summary`) follow

    z̃ ~ N(R b, R),      b = the effects in units of z, nearly all of them zero,

so that each z-score can be predicted from the others. A sign that is flipped in z but not in R (alleles
swapped in genetics), or a column whose correlations come from other people, breaks the prediction. As
in kriging, column i is compared with its conditional mean and variance given the other columns,

    m_i = z̃_i − (P z̃)_i / P_ii,      v_i = 1 / P_ii,      P = R_s⁻¹,      R_s = (1 − s) R + s I.

The weight s allows for correlations that are not exactly those of the rows behind z. A large difference
z̃_i − m_i alone is no sign of an error, since a true effect at column i makes one, too. Therefore three
explanations compete, by their marginal likelihood:

- a set S of columns has effects, b_S ~ N(0, τ²), at a price of log N each, where τ = max |z̃|. Against no
  effect at all, this gains

      ½ z̃_Sᵀ (R_SS + I/τ²)⁻¹ z̃_S − ½ log det(I + τ² R_SS) − |S| log N;

- the z-scores of a set of columns are wrong: they say nothing about the others, and are N(0, 1 + τ²)
  themselves, at a price of log N + `ODDS` each;
- R is not that of z, with a weight s > 0, at a price of `ODDS`.

Effects that a flipped sign feigns are large and many, because they must cancel at all its neighbours;
a true effect explains its neighbours, too. S is found by forward selection, from the empty set and from
each column in doubt; wrong columns are removed one by one, and put back if the others' removal makes
them fit. The price of e^`ODDS` : 1 is so high that consistent data, also with many strong effects, are
hardly ever blamed; a flipped sign of a strong z-score next to strong correlations gains far more.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from textwrap import TextWrapper
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.figures import COLORS, new_figure
from l0anneal.problem.summary import read_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SummaryCheck", "check_summary", "compare"]

ODDS = 10.0  # log odds against a wrong column, beyond one in N, and against a wrong R
LEAST_WEIGHT = 1e-4  # stands for s = 0: differences of z below √1e-4 are never of interest
WEIGHTS = (LEAST_WEIGHT, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
LEAST_SLAB = 5.0  # τ, where all z-scores are small
PATIENCE = 5  # effects that may be added without a gain before forward selection ends
MOST_EFFECTS = 100
MOST_DOUBTED = 10  # columns that are considered in detail before one is removed

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SummaryCheck:
    """The result of `check_summary`; ``print`` shows it in words.

    Attributes
    ----------
    z : ndarray of shape (N,)
        The adjusted z-scores z̃.
    expected, conditional_std : ndarrays of shape (N,)
        Mean and standard deviation of each z̃ given those of the columns that are not suspicious, if
        no column had an effect.
    difference : ndarray of shape (N,)
        (z − expected) / conditional_std. Columns with a true effect have large ones; they are not
        suspicious for that.
    suspicious : ndarray of int
        Columns whose z-score is better explained by an error than by effects, in ascending order.
    flipped : ndarray of int
        Those of the suspicious columns that are much nearer to their expectation with the opposite
        sign.
    weight : float
        The weight s of the identity with which R has to be mixed to fit z; 0 if z fits R as it is.

    See Also
    --------
    check_summary : Make this check.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import check_summary
    >>> R = 0.95 ** np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    >>> z = 12.0 * R[10]
    >>> z[12] *= -1.0
    >>> check = check_summary(z, R, 5000)
    >>> check.consistent, check.suspicious, check.flipped
    (False, array([12]), array([12]))
    """

    z: Floats
    expected: Floats
    conditional_std: Floats
    difference: Floats
    suspicious: NDArray[np.int64]
    flipped: NDArray[np.int64]
    weight: float

    @property
    def consistent(self) -> bool:
        """Whether no column is suspicious and R needs no mixing."""
        return self.suspicious.size == 0 and self.weight == 0.0

    def __str__(self) -> str:
        wrap = TextWrapper(width=80, subsequent_indent=" " * 13, break_long_words=False)
        rows = [("columns", str(self.z.size)), ("suspicious", self._columns() or "none")]
        rows += [("weight s", f"{self.weight:g}"), *(("advice", text) for text in self.advice)]
        lines = [wrap.fill(f"{name:<12} {text}") for name, text in rows]
        if self.suspicious.size:
            lines += ["", f"{'column':>8} {'z':>9} {'expected':>9} {'± std':>9}"]
            lines += [
                f"{j:8d} {self.z[j]:9.2f} {self.expected[j]:9.2f} {self.conditional_std[j]:9.2f}"
                + ("  flipped?" if j in self.flipped else "")
                for j in self.suspicious[:20]
            ]
            if self.suspicious.size > 20:
                lines.append(f"{'':8} and {self.suspicious.size - 20} more")
        return "\n".join(lines)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about suspicious columns and about R; empty if z and R are consistent."""
        advice = []
        if self.flipped.size:
            advice.append(
                f"{_listed(self.flipped)} would fit with the opposite sign: count the same "
                "allele (or orient the column in the same way) in z and in R"
            )
        other = np.setdiff1d(self.suspicious, self.flipped)
        if other.size:
            advice.append(
                f"drop {_listed(other)}, or compute z and R of these columns from the same samples"
            )
        if self.weight:
            advice.append(
                "R is not that of the samples behind z: compute R from these samples, or give "
                f"(1 − s) R + s I with s = {self.weight:g}"
            )
        return tuple(advice)

    def warn(self, stacklevel: int = 2) -> None:
        """Issue a UserWarning that names the suspicious columns and what to do, if there is need."""
        if not self.consistent:
            where = f" at {self._columns()}" if self.suspicious.size else ""
            warnings.warn(
                f"z and R do not belong together{where}: {'; '.join(self.advice)}. "
                "check_summary shows the details",
                UserWarning,
                stacklevel=stacklevel + 1,
            )

    def plot(self) -> Figure:
        """Draw each z-score against its expectation from the others."""
        figure = new_figure(5.2, 4.6)
        ax = figure.subplots()
        fine = np.ones(self.z.size, dtype=bool)
        fine[self.suspicious] = False
        for mask, color, label in (
            (fine, COLORS["blue"], "columns"),
            (~fine, COLORS["red"], "suspicious"),
        ):
            if mask.any():
                ax.errorbar(
                    self.expected[mask],
                    self.z[mask],
                    xerr=self.conditional_std[mask],
                    fmt="o",
                    ms=4,
                    lw=0.8,
                    color=color,
                    label=label,
                )
        for j in self.suspicious[:20]:
            ax.annotate(
                f" {j}", (self.expected[j], self.z[j]), color=COLORS["red"], va="bottom", fontsize=9
            )
        low = min(self.z.min(), self.expected.min())
        high = max(self.z.max(), self.expected.max())
        ax.plot((low, high), (low, high), color="0.6", lw=1, zorder=0)
        ax.set_xlabel("z expected from the other columns (± standard deviation)")
        ax.set_ylabel("z observed (adjusted)")
        ax.set_title(f"{self.suspicious.size} of {self.z.size} columns are suspicious")
        ax.legend(frameon=False, fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        return figure

    def _columns(self) -> str:
        return _listed(self.suspicious) if self.suspicious.size else ""


def check_summary(z: ArrayLike, R: ArrayLike, n: int) -> SummaryCheck:
    """Check whether z-scores and a correlation matrix belong together, column by column.

    Each z-score is compared with what the others predict. A column is called suspicious if an error,
    such as a flipped sign, explains the data better than true effects do, by a wide margin.

    Parameters
    ----------
    z : array of shape (N,)
        The z-score of each column, from a simple regression.
    R : array of shape (N, N)
        Correlations of the columns (the LD matrix of genetics).
    n : int
        The number of samples behind z.

    Returns
    -------
    SummaryCheck

    See Also
    --------
    SummaryCheck : The result.
    SparseProblem.from_summary : Make a problem from z-scores and correlations.
    finemap : Map many loci at once.

    Notes
    -----
    The time grows with N³: N = 1000 takes a second or two, and more if many columns are suspicious.

    A flipped sign can be found only where other columns predict the z-score: its column must be
    strongly correlated with others, and its z-score must be large. Conversely, the check expects few
    effects. If most columns of a strongly correlated set have large effects of both signs, it can take
    one of them for an error.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import check_summary
    >>> R = 0.95 ** np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    >>> z = 12.0 * R[10]
    >>> check_summary(z, R, 5000).consistent
    True
    >>> z[12] *= -1.0
    >>> print(check_summary(z, R, 5000))
    columns      30
    suspicious   column 12
    weight s     0
    advice       column 12 would fit with the opposite sign: count the same allele
                 (or orient the column in the same way) in z and in R
    <BLANKLINE>
      column         z  expected     ± std
          12    -10.71     10.70      0.23  flipped?
    """
    summary = read_summary(z, R, n)
    return compare(summary.z, summary.R)


def compare(z: Floats, R: Floats) -> SummaryCheck:
    """Compare adjusted z-scores with a correlation matrix; both have been checked."""
    slab = max(LEAST_SLAB, float(np.max(np.abs(z)))) ** 2
    fits: list[_Fit] = []
    scores: list[float] = []
    with one_blas_thread():
        eigenvalues, vectors = scipy.linalg.eigh(R, check_finite=False)
        for weight in WEIGHTS:
            spectrum = (1.0 - weight) * np.maximum(eigenvalues, 0.0) + weight
            mixed = (vectors * spectrum) @ vectors.T
            precision = (vectors / spectrum) @ vectors.T
            fits.append(_Fit(z, mixed, precision, float(np.log(spectrum).sum()), slab))
            fits[-1].remove_wrong_columns()
            scores.append(fits[-1].score)
            if len(scores) > 2 and scores[-3] > max(scores[-2:]):
                break  # larger weights will be worse still
        scores[1:] = [score - ODDS for score in scores[1:]]
        # the last one if too many columns are wrong at every weight
        i = int(np.argmax(scores)) if max(scores) > -math.inf else len(scores) - 1
        fit = fits[i]
        expected, variance = fit.predictions()
    suspicious = np.flatnonzero(~fit.good)
    nearer = np.abs(z + expected) < 0.5 * np.abs(z - expected)
    flipped = suspicious[nearer[suspicious]]
    std = np.sqrt(variance)
    return SummaryCheck(
        z, expected, std, (z - expected) / std, suspicious, flipped, WEIGHTS[i] if i else 0.0
    )


class _Fit:
    """The explanation of z by effects and wrong columns, with R mixed at one weight."""

    def __init__(
        self, z: Floats, R: Floats, precision: Floats, log_det: float, slab: float
    ) -> None:
        self.z, self.R, self.slab = z, R, slab
        self.good: Mask = np.ones(z.size, dtype=bool)
        self.arbitrary = -0.5 * math.log(1.0 + slab) - 0.5 * z**2 / (1.0 + slab)
        self.price = math.log(z.size) + ODDS
        self._precision = precision  # of the good columns; zero elsewhere
        self._null = -0.5 * float(z @ precision @ z) - 0.5 * log_det
        self._gain = self._of_effects(self.good)
        self._failed = False

    @property
    def score(self) -> float:
        """The log marginal likelihood of all z-scores, minus prices; −∞ if too many are wrong."""
        if self._failed:
            return -math.inf
        wrong = float(np.sum((self.arbitrary - self.price)[~self.good]))
        return self._null + self._gain + wrong

    def remove_wrong_columns(self) -> None:
        """Remove the column whose removal gains most, until none gains; then put back what fits."""
        order: list[int] = []
        while (j := self._worst()) is not None:
            order.append(j)
            if len(order) > 1 + self.z.size // 4:
                self._failed = True
                return
            self._remove(j)
        for j in order:  # the first ones were judged by neighbours that were wrong, too
            self._put_back_if_it_fits(j)

    def predictions(self) -> tuple[Floats, Floats]:
        """Return mean and variance of every z-score given the other good ones, without effects."""
        diagonal = np.where(self.good, np.diag(self._precision), 1.0)
        weighted = self._precision @ self.z
        mean, variance = self.z - weighted / diagonal, 1.0 / diagonal
        for j in np.flatnonzero(~self.good).tolist():
            mean[j], variance[j] = self._prediction(j)
        return mean, variance

    def _prediction(self, j: int) -> tuple[float, float]:
        """Return mean and variance of a removed column's z-score given the good ones."""
        weights = self._precision @ self.R[:, j]
        return float(weights @ self.z), float(self.R[j, j] - weights @ self.R[:, j])

    def _worst(self) -> int | None:
        diagonal = np.where(self.good, np.diag(self._precision), 1.0)
        predicted = 0.5 * np.log(diagonal) - 0.5 * (self._precision @ self.z) ** 2 / diagonal
        # effects make up for some of this gain of a removal, never add to it
        most = np.where(self.good, self.arbitrary - predicted - self.price, -math.inf)
        doubted = [int(j) for j in np.argsort(-most)[:MOST_DOUBTED] if most[j] > 0]
        gains = {}
        for j in doubted:
            gains[j] = most[j] + self._of_effects(self._without(j))
            if gains[j] > self._gain:  # unless an effect at column j does better
                self._gain = max(self._gain, self._of_effects(self.good, j))
        worst = max(gains, key=lambda j: gains[j], default=None)
        return worst if worst is not None and gains[worst] > self._gain else None

    def _without(self, j: int) -> Mask:
        mask = self.good.copy()
        mask[j] = False
        return mask

    def _remove(self, j: int) -> None:
        column, pivot = self._precision[:, j].copy(), self._precision[j, j]
        self._null -= 0.5 * math.log(pivot) - 0.5 * float(column @ self.z) ** 2 / pivot
        self._precision -= np.outer(column, column / pivot)
        self._precision[j] = 0.0
        self._precision[:, j] = 0.0
        self.good[j] = False
        self._gain = self._of_effects(self.good)

    def _put_back_if_it_fits(self, j: int) -> None:
        mean, variance = self._prediction(j)
        predicted = -0.5 * math.log(variance) - 0.5 * (self.z[j] - mean) ** 2 / variance
        mask = self.good.copy()
        mask[j] = True
        gain = max(self._of_effects(mask), self._of_effects(mask, j))
        if predicted + gain - self._gain < self.arbitrary[j] - self.price:
            return
        weights = self._precision @ self.R[:, j]
        weights[j] = -1.0
        self._precision += np.outer(weights, weights / variance)
        self.good, self._gain = mask, gain
        self._null += predicted

    def _of_effects(self, allowed: Mask, first: int | None = None) -> float:
        """Return the largest gain of effects at allowed columns that forward selection finds.

        The columns enter a Cholesky factorisation of R_SS + I/τ². ``left`` and ``pivots`` are what
        the effects so far leave of z and of the diagonal.
        """
        ridge, price = 1.0 / self.slab, math.log(self.z.size)
        left, pivots, free = self.z.copy(), np.diag(self.R).copy(), allowed.copy()
        factor = np.empty((min(MOST_EFFECTS, self.z.size), self.z.size))
        total = best = 0.0
        since = 0
        for k in range(min(len(factor), int(free.sum()))):
            gains = 0.5 * left**2 / (pivots + ridge) - 0.5 * np.log((pivots + ridge) * self.slab)
            j = (
                first
                if k == 0 and first is not None
                else int(np.argmax(np.where(free, gains, -np.inf)))
            )
            total += float(gains[j]) - price
            root = math.sqrt(pivots[j] + ridge)
            factor[k] = (self.R[j] - factor[:k, j] @ factor[:k]) / root
            left -= factor[k] * (left[j] / root)
            pivots = np.maximum(pivots - factor[k] ** 2, 0.0)
            free[j] = False
            best, since = (total, 0) if total > best else (best, since + 1)
            if since == PATIENCE:
                break
        return best


def _listed(columns: NDArray[np.int64], most: int = 10) -> str:
    """Return "column 3" or "columns 3, 5 and 7"."""
    words = [str(j) for j in columns[:most]]
    if columns.size > most:
        words.append(f"{columns.size - most} more")
    if len(words) == 1:
        return f"column {words[0]}"
    return f"columns {', '.join(words[:-1])} and {words[-1]}"
