"""The problem as the engine sees it: columns and signal of unit norm, and their Gram matrix.

The whole Gram matrix is computed if it fits into `WHOLE_GRAM_BYTES`. Otherwise its rows are computed
when a chain asks for them, and each chain keeps at most `ROW_CACHE_BYTES` of rows. These budgets are
constants, so that no result depends on how much memory happens to be free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.arrays import BLOCK_BYTES, column_norms, divide_columns
from l0anneal.problem.gram import gram_matrix, seconds_of_gram_matrix
from l0anneal.problem.stored import StoredColumns

__all__ = ["COLUMN_BYTES", "ROW_CACHE_BYTES", "WHOLE_GRAM_BYTES", "ScaledProblem"]

WHOLE_GRAM_BYTES = 256 * 2**20
ROW_CACHE_BYTES = 256 * 2**20
COLUMN_BYTES = 512 * 2**20  # dense unit-norm columns are kept where the Gram matrix is not whole

Floats = NDArray[np.float64]


class ScaledProblem:
    """Unit-norm columns, their correlations with the signal, and the way back to the caller's units.

    Whatever makes a problem (`SparseProblem`, `FromStatistics`) sets the attributes.
    """

    A: Any
    y: Floats | None
    n_samples: int
    n_columns: int
    signal_energy: float
    column_norms: Floats
    _signal_norm: float
    _b: Floats
    _unit: float
    _arrays: dict[str, Floats]  # computed when needed; copies of the problem share it

    @property
    def gram(self) -> Floats:
        """The whole Gram matrix of the unit-norm columns."""
        if not self.gram_is_ready:
            self._arrays["gram"] = self._whole_gram()
        return self._arrays["gram"]

    @property
    def unit_columns(self) -> Floats:
        """The unit-norm columns as rows; empty if they would exceed ``COLUMN_BYTES``."""
        if "unit columns" not in self._arrays:
            self._arrays["unit columns"] = self._unit_columns()
        return self._arrays["unit columns"]

    @property
    def holds_unit_columns(self) -> bool:
        """Whether the unit-norm columns are in memory, because rows of the Gram matrix need them."""
        return "unit columns" in self._arrays and self.unit_columns.size > 0

    def unit_blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the unit-norm columns in blocks, each with the slice of its columns."""
        for cut, block in self._column_blocks():
            yield cut, block / self._scale[cut]

    @cached_property
    def in_general_position(self) -> bool:
        """Whether there is no zero column and, where the Gram matrix is whole, no parallel pair."""
        if np.any(self.column_norms == 0):
            return False
        if not self.gram_is_whole:
            return True
        off_diagonal = np.abs(self.gram - np.diag(np.diag(self.gram)))
        return bool(np.max(off_diagonal) < 1 - 1e-7)

    @property
    def gram_is_whole(self) -> bool:
        """Whether chains share the whole Gram matrix, instead of computing rows on demand."""
        return self.A is None or 8 * self.n_columns**2 <= WHOLE_GRAM_BYTES

    @property
    def gram_is_ready(self) -> bool:
        """Whether the whole Gram matrix has been computed."""
        return "gram" in self._arrays

    def make_ready(self, pause: Callable[[], object] = lambda: None) -> None:
        """Compute the arrays that chains share, before they start in their threads.

        ``pause`` is called from time to time, and may raise an exception to stop the computation.
        """
        if self.gram_is_whole and not self.gram_is_ready:
            self._arrays["gram"] = self._whole_gram(pause)
        elif not self.gram_is_whole and "unit columns" not in self._arrays:
            self._arrays["unit columns"] = self._unit_columns(pause)

    def seconds_to_make_ready(self) -> float:
        """Estimate how long `make_ready` takes if that may be long."""
        if not self.gram_is_whole or self.gram_is_ready:
            return 0.0
        return seconds_of_gram_matrix(self.A, self._scale)

    def gram_row(self, j: int) -> Floats:
        """Return the correlations of unit column j with all unit columns."""
        if self.gram_is_whole:
            return self.gram[j]
        return self.fresh_row(j)

    def fresh_row(self, j: int) -> Floats:
        """Return the same from A, without the whole Gram matrix if that has not been computed."""
        if self.gram_is_ready:
            return self.gram[j]
        with one_blas_thread():
            if self.holds_unit_columns:
                return np.asarray(self.unit_columns @ self.unit_columns[j])
            if isinstance(self.A, StoredColumns):
                return self._stored_rows(np.array([j]))[0]
            if scipy.sparse.issparse(self.A):
                return self._products(j) / (self._scale * self._scale[j])
            return self._correlate(self._columns(np.array([j]))[:, 0] / self._scale[j])

    def fresh_rows(self, columns: NDArray[np.int64]) -> Floats:
        """Return several rows of the Gram matrix, which takes little longer than one of them."""
        if self.holds_unit_columns:
            with one_blas_thread():
                return np.asarray(self.unit_columns[columns] @ self.unit_columns.T)
        if isinstance(self.A, StoredColumns) and not self.gram_is_ready:
            return self._stored_rows(columns)
        return np.array([self.fresh_row(j) for j in columns.tolist()])

    def gram_of(self, columns: NDArray[np.int64]) -> Floats:
        """Return the Gram matrix of some unit-norm columns, without whole rows if none are held."""
        if self.gram_is_whole:
            return np.asarray(self.gram[columns[:, None], columns])
        if self.holds_unit_columns:
            chosen = self.unit_columns[columns]
        else:
            chosen = np.ascontiguousarray((self._columns(columns) / self._scale[columns]).T)
        with one_blas_thread():
            gram = chosen @ chosen.T
        np.fill_diagonal(gram, self.column_norms[columns] > 0)
        return gram

    @property
    def unit_correlation(self) -> Floats:
        """Correlations b of the unit-norm columns with the signal, in engine units."""
        return self._b

    @property
    def unit_energy(self) -> float:
        """One engine unit of energy in the caller's units (1 for a zero signal)."""
        return self._unit**2 if self._unit else 1.0

    @property
    def unit_signal(self) -> float:
        """½‖y‖² in engine units, the energy of the empty support; energies of a tableau leave it out."""
        return 0.5 * self.signal_energy / self.unit_energy

    def unit_diagonal(self, ridge: float = 0.0) -> Floats:
        """Return the diagonal of the engine's Gram matrix, with ``ridge`` in the caller's units."""
        diagonal = (self.column_norms > 0).astype(np.float64)
        return diagonal + ridge / self._scale**2 if ridge else diagonal

    def from_unit_coef(self, x: Floats, support: NDArray[np.int64]) -> Floats:
        """Return coefficients of all columns, in the caller's units, from the engine's x."""
        coef = np.zeros(self.n_columns)
        coef[support] = x * self.unit_coef_factor[support]
        return coef

    @property
    def unit_coef_factor(self) -> Floats:
        """By column, the caller's coefficient for a coefficient of 1 in the engine's units."""
        return self._unit / self._scale

    # ------------------------------------------------------------ private

    def _set_unit(self, b: Floats) -> None:
        """Choose the engine's unit of energy: the most that the columns can reach of the signal.

        b holds the correlations of the unit columns with the unit signal. The unit is not ‖y‖²,
        because that would dwarf every change of the energy where most of the signal is out of reach,
        as with an offset that no column can represent.
        """
        reach = min(1.0, float(np.sum(b**2))) or 1.0
        self._b = b / math.sqrt(reach)
        self._unit = self._signal_norm * math.sqrt(reach)
        self._arrays = {}

    def _whole_gram(self, pause: Callable[[], object] = lambda: None) -> Floats:
        return gram_matrix(self.A, self._scale, pause)

    def _unit_columns(self, pause: Callable[[], object] = lambda: None) -> Floats:
        if self.A is None or 8 * math.prod(self.A.shape) > COLUMN_BYTES:
            return np.empty((0, 0))
        columns = np.empty((self.n_columns, self.A.shape[0]))
        for cut, block in self.unit_blocks():
            columns[cut] = block.T
            pause()
        return columns

    @cached_property
    def _scale(self) -> Floats:
        return np.where(self.column_norms > 0, self.column_norms, 1.0)

    def _column_blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of float64 columns, of a width that depends on the shape of A alone."""
        width = max(1, BLOCK_BYTES // (8 * self.A.shape[0]))
        for start in range(0, self.n_columns, width):
            cut = slice(start, start + width)
            block = self.A[:, cut]
            if scipy.sparse.issparse(block):
                block = block.toarray()
            yield cut, np.asarray(block, dtype=np.float64)

    def _stored_rows(self, columns: NDArray[np.int64]) -> Floats:
        rows = self.A.gram_rows(columns)
        rows /= self._scale
        rows /= self._scale[columns, None]
        return np.asarray(rows)

    def _norms(self) -> Floats:
        if isinstance(self.A, StoredColumns):
            return self.A.norms
        if scipy.sparse.issparse(self.A):
            largest = np.maximum(
                self.A.max(axis=0).toarray(), -self.A.min(axis=0).toarray()
            ).ravel()
            safe = np.where(largest > 0, largest, 1.0)
            squares = divide_columns(self.A, safe).power(2).sum(axis=0)
            return np.asarray(largest * np.sqrt(np.asarray(squares).ravel()))
        norms = np.empty(self.n_columns)
        for cut, block in self._column_blocks():
            norms[cut] = column_norms(block)
        return norms

    def _correlate(self, v: Floats) -> Floats:
        """Return the inner products of the unit columns with v."""
        if isinstance(self.A, StoredColumns):
            return np.asarray(self.A.products(v[:, None])[:, 0] / self._scale)
        if scipy.sparse.issparse(self.A):
            return np.asarray(self.A.T @ v) / self._scale
        result = np.empty(self.n_columns)
        for cut, block in self._column_blocks():
            result[cut] = block.T @ v
        return result / self._scale

    @cached_property
    def _by_row(self) -> Any:
        return scipy.sparse.csr_array(self.A)

    def _products(self, j: int) -> Floats:
        """Return the inner products of sparse column j with all columns, from its rows alone."""
        cut = slice(self.A.indptr[j], self.A.indptr[j + 1])
        return np.asarray(self._by_row[self.A.indices[cut]].T @ self.A.data[cut])

    def _columns(self, S: NDArray[np.int64]) -> Floats:
        columns = self.A[:, S]
        if scipy.sparse.issparse(columns):
            columns = columns.toarray()
        return np.asarray(columns, dtype=np.float64)
