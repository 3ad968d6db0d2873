"""The probability of each column given all others, and the moments of its coefficient.

Averages of these conditional expectations over the draws of a chain have less variance than averages of
the draws themselves. They need, for each column outside the support, its distance from the span of the
support and its correlation with the residual. If these are not at hand, they follow from the rows of the
Gram matrix that belong to the support, and those of several draws are computed in one pass over A.

Where even this costs more than the draws themselves, columns that are in doubt are looked at more often
than the others (`moments_among`). Each column is averaged over the draws at which it was looked at.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.engine.held_rows import ROWS_AT_ONCE
from l0anneal.engine.near_gram import gram_between
from l0anneal.problem.admissibility import PIVOT
from l0anneal.samplers.evidence.chain import EvidenceChain

__all__ = ["Doubtful", "Moments", "Snapshot", "moments_among", "moments_of", "rows_needed"]

SNAPSHOTS = 8  # that wait, at most, until the rows of all their columns are computed
Floats = NDArray[np.float64]
Moments = tuple[Floats, Floats, Floats]


class Doubtful(NamedTuple):
    """Columns that are looked at more often than the others, and their unit columns as rows."""

    columns: NDArray[np.int64]
    unit_columns: Floats


class Snapshot(NamedTuple):
    """What the conditional expectations depend on: the support and its model at one draw."""

    inside: NDArray[np.int64]  # by slot, as are the next four
    coefficients: Floats
    inverse_diagonal: Floats
    signs: Floats
    inverse: Floats | None  # None if the tableau has the distances and correlations
    distances: Floats | None
    correlations: Floats | None
    energy: float
    temperature: float
    ridge: float
    hump: float
    half: float
    units: int

    @classmethod
    def of(cls, chain: EvidenceChain) -> Snapshot:
        """Return what the moments need from the present state of the chain."""
        ridge, _ = chain.hold()
        w = chain.workspace
        inside = w.inside_columns.copy()
        distances, correlations = w.distances_and_correlations() or (None, None)
        return cls(
            inside,
            w.coefficients.copy(),
            w.inverse_diagonal.copy(),
            chain.signs[inside],
            w.inverse if distances is None else None,
            distances,
            correlations,
            w.unit_energy,
            chain.temperature,
            ridge,
            chain.hump,
            chain.half,
            chain.n_units,
        )

    def with_rows(self, chain: EvidenceChain, rows: Floats, columns: Any = slice(None)) -> Snapshot:
        """Return the snapshot with distances and correlations of some columns, or of all.

        ``rows`` has their correlations with the columns inside, by slot.
        """
        assert self.inverse is not None
        problem = chain.problem
        explained = np.einsum("kj,kj->j", rows, self.inverse @ rows)
        return self._replace(
            distances=problem.unit_diagonal()[columns] + self.ridge - explained,
            correlations=problem.unit_correlation[columns] - self.coefficients @ rows,
        )


def rows_needed(chain: EvidenceChain, waiting: list[Snapshot]) -> bool:
    """Whether the moments of the snapshots are to be computed now, because enough of them wait."""
    if chain.problem.gram_is_whole or len(waiting) >= SNAPSHOTS:
        return True
    columns = np.unique(np.concatenate([s.inside for s in waiting]))
    return chain.workspace.n_rows_missing(columns) >= ROWS_AT_ONCE


def moments_of(chain: EvidenceChain, waiting: list[Snapshot]) -> list[Moments]:
    """Return the conditional probabilities, means and mean squares of all columns, by snapshot.

    Rows of columns that occur in more than a quarter of the snapshots are held for the kernels.
    """
    pending = [s.inside for s in waiting if s.inverse is not None]
    if not pending:
        return [_moments(chain, s, s.inside) for s in waiting]
    columns = np.arange(chain.problem.n_columns)
    if chain.problem.gram_is_whole:
        rows = chain.problem.gram
    else:
        columns, counts = np.unique(np.concatenate(pending), return_counts=True)
        rows = chain.workspace.gram_rows(columns, columns[counts > len(pending) // 4])
    with one_blas_thread():
        complete = [
            s if s.inverse is None else s.with_rows(chain, rows[np.searchsorted(columns, s.inside)])
            for s in waiting
        ]
        return [_moments(chain, s, s.inside) for s in complete]


def moments_among(chain: EvidenceChain, s: Snapshot, doubtful: Doubtful) -> Moments:
    """Return the probabilities of the doubtful columns, and the means and mean squares by slot."""
    k, n = s.inside.size, chain.problem.n_columns
    columns = np.concatenate([s.inside, doubtful.columns])
    if s.distances is not None and s.correlations is not None:  # of all columns
        s = s._replace(distances=s.distances[columns], correlations=s.correlations[columns])
    else:
        rows = np.zeros((k, columns.size))  # those of the columns inside are not needed
        with one_blas_thread():
            rows[:, k:] = gram_between(chain.workspace.tableau, s.inside, *doubtful)
            s = s.with_rows(chain, rows, columns)
    p, mean, square = _moments(chain, s, np.arange(k), columns)
    by_column = np.empty(n)
    by_column[doubtful.columns], by_column[s.inside] = p[k:], p[:k]
    return by_column[doubtful.columns], mean[:k], square[:k]


def _moments(
    chain: EvidenceChain,
    s: Snapshot,
    inside: NDArray[np.int64],
    columns: Any = slice(None),
) -> Moments:
    """Return the moments of some columns, or of all, among which those inside have given places."""
    assert s.distances is not None
    assert s.correlations is not None
    n = s.distances.size
    outside = np.ones(n, dtype=bool)
    outside[inside] = False
    T: float | Floats = s.temperature
    pull = s.ridge * s.hump
    # squared norm of each column and its correlation with the signal, given the others
    gamma, r = s.distances.copy(), s.correlations.copy()
    gamma[inside] = 1.0 / s.inverse_diagonal
    r[inside] = s.coefficients * gamma[inside] - pull * s.signs
    open_ = gamma > PIVOT * (chain.problem.unit_diagonal()[columns] + s.ridge)
    gamma = np.where(open_, gamma, 1.0)
    gain = 0.5 * r**2 / gamma  # of energy, by adding the column
    if s.half:
        now = chain.problem.unit_signal + s.energy
        energy = np.full(n, now)  # with the column
        energy[outside] = np.maximum(now - gain[outside], 1e-14 * now)
        fit = s.half * np.log1p(gain / energy)
        T = energy / max(s.half - 1.0, 0.5)
    else:
        fit = gain / T
    mean, square = r / gamma, r**2 / gamma**2
    humps: float | Floats = 0.0
    if pull:
        lean = pull * r / (gamma * T)
        to_hump = pull * np.tanh(lean)  # averaged over the sign
        mean = (r + to_hump) / gamma
        square = (r**2 + pull**2 + 2.0 * r * to_hump) / gamma**2
        humps = np.logaddexp(lean, -lean) - math.log(2.0)
        humps += 0.5 * pull**2 * (1.0 / gamma - 1.0 / s.ridge) / T
    square += T / gamma
    if chain.model.size is not None:
        p = np.zeros(n)
        p[inside] = 1.0  # at a fixed size no column can be flipped alone
        return p, mean, square
    log_odds = chain.column_odds[columns].copy()
    log_odds[outside] += chain.size_odds[s.units]
    log_odds[inside] += chain.size_odds[s.units - 1]
    log_odds += fit - 0.5 * np.log(gamma / s.ridge) + humps
    p = np.where(open_, 0.5 * (1.0 + np.tanh(0.5 * log_odds)), 0.0)
    if inside.size >= chain.largest:
        p[outside] = 0.0  # no further column is allowed
    for group in chain.model.prior.groups:
        p[group] = float(group[0] in inside)  # all columns have been looked at
    return p, mean, square
