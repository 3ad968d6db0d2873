"""Codes of some signals: the atoms of each, in ascending order, and their coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes"]

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Codes:
    """The codes of some signals, with room for the same number of atoms each.

    Attributes
    ----------
    supports : ndarray of int of shape (n_signals, n_nonzero)
        The atoms of each code, in ascending order.
    coefs : ndarray of shape (n_signals, n_nonzero)
        Their coefficients.
    sizes : ndarray of int of shape (n_signals,)
        How many atoms each code has; what is beyond them in the other arrays has no meaning.
    """

    supports: NDArray[np.int64]
    coefs: Floats
    sizes: NDArray[np.int64]

    @classmethod
    def empty(cls, n_signals: int, n_nonzero: int) -> Codes:
        """Return codes without atoms."""
        shape = n_signals, n_nonzero
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape[0], np.int64))

    def __len__(self) -> int:
        return int(self.sizes.size)

    def __getitem__(self, rows: Rows) -> Codes:
        return Codes(self.supports[rows], self.coefs[rows], self.sizes[rows])

    def replace(self, rows: Rows | int, other: Codes) -> None:
        """Give some signals the codes of ``other``, which may have room for fewer atoms."""
        width = other.supports.shape[1]
        self.supports[rows, :width], self.coefs[rows, :width] = other.supports, other.coefs
        self.sizes[rows] = other.sizes

    def entries(self) -> tuple[NDArray[np.intp], NDArray[np.int64], Floats]:
        """Return the row, the atom and the coefficient of every non-zero, in the order of the rows."""
        there = np.arange(self.supports.shape[1]) < self.sizes[:, None]
        return np.nonzero(there)[0], self.supports[there], self.coefs[there]

    def write(self, out: Floats) -> None:
        """Write the codes as rows of length n_atoms."""
        rows, atoms, coefs = self.entries()
        out[:] = 0.0
        out[rows, atoms] = coefs
