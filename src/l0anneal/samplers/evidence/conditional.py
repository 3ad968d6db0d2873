"""The probability of each column given all others, and the moments of its coefficient.

Averages of these conditional expectations over the draws of a chain have less variance than averages of
the draws themselves. They need, for each column outside the support, its distance from the span of the
support and its correlation with the residual. If these are not at hand, they follow from the rows of the
Gram matrix that belong to the support, and those of several draws are computed in one pass over A.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.engine.held_rows import ROWS_AT_ONCE
from l0anneal.problem.admissibility import PIVOT
from l0anneal.samplers.evidence.chain import EvidenceChain

__all__ = ["Moments", "Snapshot", "moments_of", "rows_needed"]

SNAPSHOTS = 8  # that wait, at most, until the rows of all their columns are computed
Floats = NDArray[np.float64]
Moments = tuple[Floats, Floats, Floats]


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

    def with_rows(self, chain: EvidenceChain, columns: NDArray[np.int64], rows: Floats) -> Snapshot:
        """Return the snapshot with distances and correlations.

        If it has none, they follow from the rows of its support, which are among those of ``columns``.
        """
        if self.inverse is None:
            return self
        problem = chain.problem
        rows = rows[np.searchsorted(columns, self.inside)]
        explained = np.einsum("kj,kj->j", rows, self.inverse @ rows)
        return self._replace(
            distances=problem.unit_diagonal() + self.ridge - explained,
            correlations=problem.unit_correlation - self.coefficients @ rows,
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
        return [_moments(chain, s) for s in waiting]
    columns = np.arange(chain.problem.n_columns)
    if chain.problem.gram_is_whole:
        rows = chain.problem.gram
    else:
        columns, counts = np.unique(np.concatenate(pending), return_counts=True)
        rows = chain.workspace.gram_rows(columns, columns[counts > len(pending) // 4])
    with one_blas_thread():
        return [_moments(chain, s.with_rows(chain, columns, rows)) for s in waiting]


def _moments(chain: EvidenceChain, s: Snapshot) -> Moments:
    n, k = chain.problem.n_columns, s.inside.size
    inside = s.inside
    outside = np.ones(n, dtype=bool)
    outside[inside] = False
    T: float | Floats = s.temperature
    pull = s.ridge * s.hump
    assert s.distances is not None
    assert s.correlations is not None
    # squared norm of each column and its correlation with the signal, given the others
    gamma, r = s.distances.copy(), s.correlations.copy()
    gamma[inside] = 1.0 / s.inverse_diagonal
    r[inside] = s.coefficients * gamma[inside] - pull * s.signs
    open_ = gamma > PIVOT * (chain.problem.unit_diagonal() + s.ridge)
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
    log_odds = chain.column_odds.copy()
    log_odds[outside] += chain.size_odds[s.units]
    log_odds[inside] += chain.size_odds[s.units - 1]
    log_odds += fit - 0.5 * np.log(gamma / s.ridge) + humps
    p = np.where(open_, 0.5 * (1.0 + np.tanh(0.5 * log_odds)), 0.0)
    if k >= chain.largest:
        p[outside] = 0.0  # no further column is allowed
    for group in chain.model.prior.groups:
        p[group] = float(group[0] in inside)
    return p, mean, square
