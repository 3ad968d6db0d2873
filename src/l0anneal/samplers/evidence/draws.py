"""Joint draws from the posterior, and the sets of columns that they support."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ENOUGH", "WEIGHTY", "CredibleSet", "Draws", "find_sets"]

ENOUGH = 400  # effective draws that a statement about sets of columns needs
# A chain counts as disagreeing unless its evidence is 10 nats lower. The estimate of the evidence
# neglects that columns stand in for each other: it is up to about 1 nat too high for each such group.
WEIGHTY = math.exp(-10.0)
MOST_SEEDS = 200  # columns that are tried as the first of a set
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Draws of the support, its coefficients and the hyperparameters from their joint posterior.

    Draw i has the support ``columns[start[i]:start[i + 1]]`` and there the coefficients ``coef``.

    Attributes
    ----------
    chain : ndarray of int
        The chain that made each draw.
    weight : ndarray
        Weight of each draw; the weights sum to 1.
    start, columns, coef : ndarrays
        Supports and coefficients, one draw after another, in the caller's units.
    noise_variance, rho : ndarrays
        Noise variance and prior probability of a column. ρ is NaN if each column was given its own.
    signal_to_noise : ndarray
        g: the mean square of a coefficient of a unit-norm column, in units of the noise variance.
    hump : ndarray
        The part of this mean square that two humps of the slab account for; 0 for one hump.
    effective_sample_size : float
        How many independent draws these are worth.

    See Also
    --------
    EvidenceResult : Has the draws of a run.
    evidence_anneal : Sample from the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem, evidence_anneal
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 100))
    >>> y = A[:, [5, 50]] @ [2.0, -1.0] + 0.3 * rng.standard_normal(60)
    >>> result = evidence_anneal(SparseProblem(A, y), random_state=0)
    >>> draws = result.draws
    >>> bool(abs(draws.weight.sum() - 1) < 1e-12)
    True
    >>> draws.columns[draws.start[0] : draws.start[1]]  # the support of the first draw
    array([ 5, 50])
    """

    chain: Indices
    weight: Floats
    start: Indices
    columns: Indices
    coef: Floats
    noise_variance: Floats
    rho: Floats
    signal_to_noise: Floats
    hump: Floats
    effective_sample_size: float

    def __len__(self) -> int:
        return self.weight.size

    def __repr__(self) -> str:
        return f"<{len(self)} draws, worth {self.effective_sample_size:.0f} independent ones>"

    def support(self, i: int) -> Indices:
        """Return the columns of draw i."""
        return self.columns[self.start[i] : self.start[i + 1]]

    def contains(self, columns: Indices) -> NDArray[np.bool_]:
        """Return whether each draw (row) contains each of the given columns."""
        rows, at = self._places(columns)
        inside = np.zeros((len(self), len(columns)), dtype=bool)
        inside[rows[at >= 0], at[at >= 0]] = True
        return inside

    def _places(self, columns: Indices) -> tuple[Indices, Indices]:
        """Return the draw of each entry, and the place of its column among the given ones, or −1."""
        n = int(max(self.columns.max(initial=-1), np.max(columns, initial=-1))) + 1
        position = np.full(n, -1)
        position[columns] = np.arange(len(columns))
        return np.repeat(np.arange(len(self)), np.diff(self.start)), position[self.columns]

    def dense(self, columns: Indices) -> tuple[Indices, Floats]:
        """Return the support of each draw (row), padded with −1, and the coefficients of ``columns``."""
        rows, at = self._places(columns)
        supports = np.full((len(self), max(1, int(np.diff(self.start).max(initial=0)))), -1)
        supports[rows, np.arange(rows.size) - self.start[rows]] = self.columns
        coef = np.zeros((len(self), len(columns)))
        coef[rows[at >= 0], at[at >= 0]] = self.coef[at >= 0]
        return supports, coef

    def probability_of_any(self, columns: Indices) -> float:
        """Return the probability that at least one of the columns belongs to the support."""
        return float(self.weight @ self.contains(np.asarray(columns)).any(axis=1))

    def predict(self, X: Floats) -> Floats:
        """Return X @ coef for the coefficients of each draw (rows)."""
        X = np.asarray(X, dtype=np.float64)
        values = np.empty((len(self), X.shape[0]))
        for i in range(len(self)):
            cut = slice(self.start[i], self.start[i + 1])
            values[i] = X[:, self.columns[cut]] @ self.coef[cut]
        return values

    def check(self, what: str) -> None:
        """Raise ValueError if there are too few draws for a statement about sets of columns."""
        if self.effective_sample_size < ENOUGH:
            raise ValueError(
                f"{what} need at least {ENOUGH} effective draws from the posterior; these are worth "
                f"{self.effective_sample_size:.0f}: run evidence_anneal with a larger n_draws, or "
                "without a time limit"
            )


@dataclass(frozen=True, eq=False, repr=False)
class CredibleSet:
    """Columns of which at least one belongs to the support, with a stated probability.

    Attributes
    ----------
    columns : ndarray of int
        The columns, likeliest first.
    probability : float
        Posterior probability that at least one of them belongs to the support.
    purity : float
        Smallest absolute correlation between two of them; 1 for a single column.
    weights : ndarray
        Posterior inclusion probability of each column.
    names : tuple of str
        Names of the columns, if they have names.

    See Also
    --------
    EvidenceResult : Has the method ``credible_sets``.
    AnnealedSubsetRegressor : Has the method ``credible_sets``.
    finemap : Credible sets of many loci.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import AnnealedSubsetRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 6))
    >>> X[:, 5] = X[:, 0] + 0.05 * rng.standard_normal(100)  # nearly column 0
    >>> y = X[:, 0] + rng.standard_normal(100)
    >>> model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
    >>> [sorted(found.columns.tolist()) for found in model.credible_sets()]
    [[0, 5]]
    """

    columns: Indices
    probability: float
    purity: float
    weights: Floats
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        names = self.names or tuple(str(j) for j in self.columns)
        shown = ", ".join(f"{name} ({w:.2f})" for name, w in zip(names[:8], self.weights))
        more = f", and {self.columns.size - 8} more" if self.columns.size > 8 else ""
        return f"one of {shown}{more}: probability {self.probability:.3f}, purity {self.purity:.2f}"


def find_sets(
    draws: Draws,
    candidates: Indices,
    probability: Floats,
    correlation: Floats,
    coverage: float,
    min_purity: float,
) -> list[CredibleSet]:
    """Return disjoint sets of columns of which at least one belongs to the support.

    A set begins with the likeliest column that is in no set yet. Then that column joins which adds
    most to the probability that at least one is chosen, among those correlated with all members. A
    column that stands in for the members is chosen where they are not; one that is chosen beside them
    belongs to another set. So the gain counts twice: by itself, and as a part of the column's own
    probability. The set is complete when it has the coverage; if it cannot have it, it is dropped.

    Parameters
    ----------
    draws : Draws
        Joint draws.
    candidates : ndarray of int
        The columns that can be members.
    probability, correlation : ndarrays
        Of the candidates: inclusion probabilities, and the matrix of correlations.
    coverage, min_purity : float
        As in `EvidenceResult.credible_sets`.
    """
    order = np.argsort(-probability, kind="stable")
    inside = draws.contains(candidates)
    own = draws.weight @ inside
    alike = np.abs(correlation) >= min_purity
    free = own > 0
    found = []
    for seed in order[:MOST_SEEDS]:
        if not free[seed] or draws.weight @ inside[:, free].any(axis=1) < coverage:
            continue
        members, covered = [int(seed)], inside[:, seed].copy()
        open_ = free & alike[seed]
        open_[seed] = False
        while draws.weight @ covered < coverage and open_.any():
            among = np.flatnonzero(open_)
            gain = (draws.weight * ~covered) @ inside[:, among]
            best = int(np.argmax(gain * gain / own[among]))
            if gain[best] <= 0.0:
                break
            j = int(among[best])
            members.append(j)
            covered |= inside[:, j]
            open_ &= alike[j]
            open_[j] = False
        total = min(float(draws.weight @ covered), 1.0)
        if total < coverage:
            continue
        free[members] = False
        members.sort(key=lambda j: -probability[j])
        purity = float(np.min(np.abs(correlation[np.ix_(members, members)])))
        found.append(
            CredibleSet(candidates[members], total, min(purity, 1.0), probability[members])
        )
    return found
