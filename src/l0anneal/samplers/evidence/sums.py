"""The draws of one round of a chain, and sums over them from which averages are made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from l0anneal.samplers.evidence.conditional import Moments, Snapshot

__all__ = ["Draw", "Sums"]

Floats = NDArray[np.float64]


@dataclass
class Draw:
    """One draw from the posterior, in the engine's units."""

    columns: NDArray[np.int64]
    x: Floats
    noise: float
    g: float
    c: float
    log_joint: float


@dataclass
class Sums:
    """The draws of one round, and sums of conditional moments at some or all of them.

    ``looks`` counts, for each column, the draws at which its conditional probability was computed.
    """

    n: int
    looks: Floats
    probability: Floats
    first: Floats
    second: Floats
    draws: list[Draw] = field(default_factory=list)

    @classmethod
    def empty(cls, n_columns: int) -> Sums:
        """Return sums over nothing."""
        return cls(0, *np.zeros((4, n_columns)))

    def count(self, snapshot: Snapshot, moments: Moments) -> None:
        """Add the conditional probability of each column, and the moments of coefficients.

        Coefficients are averaged given the whole support and not, as probabilities, over each column's
        presence given the others: those of columns that stand in for each other must add up.
        """
        p, mean, square = moments
        self.looks += 1.0
        self.probability += p
        self._count_inside(snapshot, mean[snapshot.inside], square[snapshot.inside])

    def count_among(self, columns: NDArray[np.int64], snapshot: Snapshot, moments: Moments) -> None:
        """Add the probabilities of some columns, and the moments of the coefficients by slot."""
        p, mean, square = moments
        self.looks[columns] += 1.0
        self.probability[columns] += p
        self._count_inside(snapshot, mean, square)

    def _count_inside(self, snapshot: Snapshot, mean: Floats, square: Floats) -> None:
        self.n += 1
        self.first[snapshot.inside] += mean
        self.second[snapshot.inside] += square
