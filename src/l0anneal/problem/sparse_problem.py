"""The problem: approximate y by k columns of A. Validated here, once, and nowhere else.

The engine needs only the Gram matrix G = AᵀA, the correlations b = Aᵀy, ‖y‖² and M. It works on
columns and a signal of unit norm, so that scales of A and y change nothing but the units of the
answer; the scaling is done and undone here.

The Gram matrix is computed whole if it fits into `WHOLE_GRAM_BYTES`, and otherwise row by row when
a chain asks for one, with at most `ROW_CACHE_BYTES` of rows kept per chain. The budgets are
constants: nothing that decides a number depends on how much memory happens to be free.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread

__all__ = ["SparseProblem"]

WHOLE_GRAM_BYTES = 256 * 2**20
ROW_CACHE_BYTES = 256 * 2**20
COLUMN_BYTES = 512 * 2**20
_BLOCK_BYTES = 32 * 2**20

Floats = NDArray[np.float64]


class SparseProblem:
    """Approximate a signal by a few columns of a dictionary: min ½‖y − Ax‖² with ‖x‖₀ = k.

    Parameters
    ----------
    A : array of shape (M, N), sparse matrix, or memory map
        The dictionary: any order, any real number type. It is not copied, so do not change it.
    y : array of shape (M,)
        The signal.

    Attributes
    ----------
    n_samples, n_columns : int
        M and N.
    signal_energy : float
        ‖y‖².
    column_norms : ndarray of shape (N,)
        ‖a_j‖. A column of norm zero is never selected.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem
    >>> A = np.eye(3)
    >>> problem = SparseProblem(A, [3.0, 0.0, 1.0])
    >>> round(problem.energy([0]), 12)
    0.5
    """

    def __init__(self, A: Any, y: ArrayLike) -> None:
        self.A = _check_dictionary(A)
        self.n_samples, self.n_columns = self.A.shape
        self.y: Floats | None = _check_vector(
            y, "y", self.n_samples, f"A has {self.n_samples} rows"
        )
        self._signal_norm = _norm(self.y)
        self.signal_energy = _square(self._signal_norm)
        with one_blas_thread():
            self.column_norms = self._norms()
            self._set_unit(self._correlate(self.y / (self._signal_norm or 1.0)))

    @classmethod
    def from_gram(
        cls, gram: ArrayLike, correlation: ArrayLike, signal_energy: float, n_samples: int
    ) -> SparseProblem:
        """Make a problem from its Gram statistics, for data too tall to hold.

        Parameters
        ----------
        gram : array of shape (N, N)
            AᵀA.
        correlation : array of shape (N,)
            Aᵀy.
        signal_energy : float
            ‖y‖² (not half of it).
        n_samples : int
            M, the number of rows of A.

        Notes
        -----
        Forming AᵀA squares the condition number. Energies and coefficients of such a problem come
        from a Cholesky factorisation with iterative refinement and are good to about
        1e-16 ‖y‖² times the condition number of AᵀA on the support.
        """
        self = cls.__new__(cls)
        G = np.asarray(gram)
        if G.ndim != 2 or G.shape[0] != G.shape[1] or G.shape[0] == 0:
            raise ValueError(f"gram must be a square matrix AᵀA; got shape {G.shape}")
        tolerance = 1e-3 if G.dtype.itemsize < 8 and G.dtype.kind == "f" else 1e-8
        G = _as_float(G, "gram")
        n = G.shape[0]
        if np.min(np.diag(G)) < 0:
            raise ValueError("gram has a negative number on its diagonal; AᵀA cannot have one")
        b = _check_vector(correlation, "correlation", n, f"gram has {n} columns")
        signal_energy = float(signal_energy)
        if not (math.isfinite(signal_energy) and signal_energy >= 0):
            raise ValueError(f"signal_energy is ‖y‖²: finite and ≥ 0; got {signal_energy}")
        if not _is_integer(n_samples) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer ≥ 1; got {n_samples!r}")
        self.A = None
        self.y = None
        self.n_samples, self.n_columns = int(n_samples), n
        self.signal_energy = signal_energy
        self._signal_norm = math.sqrt(signal_energy)
        self.column_norms = np.sqrt(np.diag(G))
        scale = self._scale
        b = b / scale / (self._signal_norm or 1.0)
        if np.max(np.abs(b)) > (1 + tolerance if self._signal_norm else 0.0):
            raise ValueError(
                "these are not the Gram statistics of any (A, y): some |correlation| exceeds "
                "√(gram_jj · signal_energy). Is signal_energy ‖y‖², not ½‖y‖²?"
            )
        self._set_unit(b)
        scaled = G / scale[:, None] / scale[None, :]
        if np.max(np.abs(scaled - scaled.T)) > tolerance:
            raise ValueError("gram must be symmetric (AᵀA); the one given is not")
        if np.max(np.abs(scaled)) > 1 + tolerance:
            raise ValueError("gram is not AᵀA of any A: some |gram_ij| exceeds √(gram_ii gram_jj)")
        self.__dict__["gram"] = 0.5 * (scaled + scaled.T)
        return self

    def _set_unit(self, b: Floats) -> None:
        """Choose the engine's unit of energy: what the columns can reach of the signal at most.

        b are the correlations of the unit columns with the unit signal. Where most of the signal is
        out of reach, as with an offset that no column has, ‖y‖² would dwarf every change of the
        energy.
        """
        reach = min(1.0, float(np.sum(b**2))) or 1.0
        self._b = b / math.sqrt(reach)
        self._unit = self._signal_norm * math.sqrt(reach)

    def __repr__(self) -> str:
        source = "AᵀA" if self.A is None else type(self.A).__name__
        return f"SparseProblem({source}, n_samples={self.n_samples}, n_columns={self.n_columns})"

    # ------------------------------------------------------------ for users

    def least_squares(self, support: ArrayLike) -> tuple[Floats, float]:
        """Return the best coefficients on a support (in its order) and their energy ½‖y − Ax‖².

        From a QR factorisation of the columns themselves, never from the engine's running numbers.
        """
        S = self.check_support(support)
        scale = self._scale[S]
        if self.A is None:
            return self._least_squares_from_gram(S)
        columns = self._columns(S) / scale
        assert self.y is not None
        target = self.y / (self._signal_norm or 1.0)
        with one_blas_thread():
            x = np.zeros(S.size)
            if S.size:
                # pivoted QR, which also serves dependent columns; and once more on what is left
                for _ in range(2):
                    x += scipy.linalg.lstsq(
                        columns, target - columns @ x, cond=1e-12, lapack_driver="gelsy"
                    )[0]
            residual = target - columns @ x
        energy = 0.5 * float(residual @ residual)
        return x * (self._signal_norm / scale), energy * self.signal_energy

    def energy(self, support: ArrayLike) -> float:
        """Return ½‖y − Ax‖² with the best coefficients on ``support``."""
        return self.least_squares(support)[1]

    def rank(self) -> int:
        """The rank of A, from the singular values of its unit-norm columns (or of AᵀA)."""
        with one_blas_thread():
            if self.A is None:
                return int(np.linalg.matrix_rank(self.gram, hermitian=True))
            columns = np.hstack([block for _, block in self.unit_blocks()])
            return int(np.linalg.matrix_rank(columns))

    def check_support(self, support: ArrayLike, size: int | None = None) -> NDArray[np.int64]:
        """Return ``support`` as distinct column indices, or raise ValueError."""
        S = np.asarray(support)
        if S.size == 0:
            S = S.astype(np.int64)
        if S.ndim != 1 or not np.issubdtype(S.dtype, np.integer):
            raise ValueError(f"a support is a list of column indices; got {support!r}")
        if S.size and (S.min() < 0 or S.max() >= self.n_columns):
            raise ValueError(
                f"a support has indices from 0 to {self.n_columns - 1}; got {S.min()} to {S.max()}"
            )
        if np.unique(S).size != S.size:
            raise ValueError("a support has each column at most once")
        if size is not None and S.size != size:
            raise ValueError(f"the support needs {size} columns; got {S.size}")
        return S.astype(np.int64)

    def check_size(self, n_nonzero: Any) -> int:
        """Return ``n_nonzero`` as an int between 0 and N, or raise ValueError."""
        if not _is_integer(n_nonzero):
            raise ValueError(
                f"n_nonzero must be an integer, the number of columns; got {n_nonzero!r}"
            )
        k = int(n_nonzero)
        if not 0 <= k <= self.n_columns:
            raise ValueError(f"n_nonzero must lie between 0 and N = {self.n_columns}; got {k}")
        return k

    # ------------------------------------------------------------ for the engine: unit norms

    @cached_property
    def gram(self) -> Floats:
        """The whole Gram matrix of the unit-norm columns."""
        n = self.n_columns
        with one_blas_thread():
            if scipy.sparse.issparse(self.A):
                scaled = _divide_columns(self.A, self._scale)
                return np.ascontiguousarray((scaled.T @ scaled).toarray())
            G = np.zeros((n, n))
            rows = max(1, _BLOCK_BYTES // (8 * n))
            for start in range(0, self.A.shape[0], rows):
                block = np.asarray(self.A[start : start + rows], dtype=np.float64) / self._scale
                G += block.T @ block
            return G

    @cached_property
    def unit_columns(self) -> Floats:
        """The unit-norm columns as rows; empty if they are more than `COLUMN_BYTES`."""
        if self.A is None or 8 * math.prod(self.A.shape) > COLUMN_BYTES:
            return np.empty((0, 0))
        columns = np.empty((self.n_columns, self.A.shape[0]))
        for cut, block in self.unit_blocks():
            columns[cut] = block.T
        return columns

    def unit_blocks(self) -> Iterator[tuple[slice, Floats]]:
        """The unit-norm columns, some at a time."""
        for cut, block in self._column_blocks():
            yield cut, block / self._scale[cut]

    @cached_property
    def in_general_position(self) -> bool:
        """Whether no zero column and, as far as the Gram matrix is whole, no parallel pair is there."""
        if np.any(self.column_norms == 0):
            return False
        if not self.gram_is_whole:
            return True
        off_diagonal = np.abs(self.gram - np.diag(np.diag(self.gram)))
        return bool(np.max(off_diagonal) < 1 - 1e-7)

    @property
    def gram_is_whole(self) -> bool:
        """Whether chains get the whole Gram matrix, or rows on demand."""
        return self.A is None or 8 * self.n_columns**2 <= WHOLE_GRAM_BYTES

    def make_ready(self) -> None:
        """Compute what chains share, before they begin, each in its thread."""
        _ = self.gram if self.gram_is_whole else self.unit_columns

    def gram_row(self, j: int) -> Floats:
        """Correlations of unit column j with every unit column."""
        if self.gram_is_whole:
            return self.gram[j]
        with one_blas_thread():
            return self._correlate(self._columns(np.array([j]))[:, 0] / self._scale[j])

    @property
    def unit_correlation(self) -> Floats:
        """B of the unit-norm columns and the unit-norm signal."""
        return self._b

    @property
    def unit_energy(self) -> float:
        """Energy, in the caller's units, of one engine unit (1 for a zero signal)."""
        return self._unit**2 if self._unit else 1.0

    @property
    def unit_signal(self) -> float:
        """½‖y‖² in engine units: what the tableau's energy, counted from the empty support, lacks."""
        return 0.5 * self.signal_energy / self.unit_energy

    def unit_diagonal(self, ridge: float = 0.0) -> Floats:
        """Diagonal of the engine's Gram matrix with ``ridge`` on the caller's columns."""
        diagonal = (self.column_norms > 0).astype(np.float64)
        return diagonal + ridge / self._scale**2 if ridge else diagonal

    def from_unit_coef(self, x: Floats, support: NDArray[np.int64]) -> Floats:
        """Dense coefficients, in the caller's units, of the engine's x on ``support``."""
        coef = np.zeros(self.n_columns)
        coef[support] = x * (self._unit / self._scale[support])
        return coef

    # ------------------------------------------------------------ private

    @cached_property
    def _scale(self) -> Floats:
        return np.where(self.column_norms > 0, self.column_norms, 1.0)

    def _column_blocks(self) -> Iterator[tuple[slice, Any]]:
        """Blocks of columns in float64, of a size that depends on the shape alone."""
        width = max(1, _BLOCK_BYTES // (8 * self.A.shape[0]))
        for start in range(0, self.n_columns, width):
            cut = slice(start, start + width)
            block = self.A[:, cut]
            if scipy.sparse.issparse(block):
                block = block.toarray()
            yield cut, np.asarray(block, dtype=np.float64)

    def _norms(self) -> Floats:
        if scipy.sparse.issparse(self.A):
            largest = np.maximum(
                self.A.max(axis=0).toarray(), -self.A.min(axis=0).toarray()
            ).ravel()
            safe = np.where(largest > 0, largest, 1.0)
            squares = _divide_columns(self.A, safe).power(2).sum(axis=0)
            return np.asarray(largest * np.sqrt(np.asarray(squares).ravel()))
        norms = np.empty(self.n_columns)
        for cut, block in self._column_blocks():
            norms[cut] = _norms_of_columns(block)
        return norms

    def _correlate(self, v: Floats) -> Floats:
        """Unit columns times v."""
        if scipy.sparse.issparse(self.A):
            return np.asarray(self.A.T @ v) / self._scale
        result = np.empty(self.n_columns)
        for cut, block in self._column_blocks():
            result[cut] = block.T @ v
        return result / self._scale

    def _columns(self, S: NDArray[np.int64]) -> Floats:
        columns = self.A[:, S]
        if scipy.sparse.issparse(columns):
            columns = columns.toarray()
        return np.asarray(columns, dtype=np.float64)

    def _least_squares_from_gram(self, S: NDArray[np.int64]) -> tuple[Floats, float]:
        G = self.gram[np.ix_(S, S)]
        b = self._b[S]
        x = np.zeros(S.size)
        if S.size:
            with one_blas_thread():
                try:
                    factor = scipy.linalg.cho_factor(G)
                except np.linalg.LinAlgError:
                    raise ValueError("the columns of this support are linearly dependent") from None
                for _ in range(4):  # iterative refinement
                    x = x + scipy.linalg.cho_solve(factor, b - G @ x)
        explained = float(2 * b @ x - x @ G @ x) * self.unit_energy
        return x * (self._unit / self._scale[S]), max(0.0, 0.5 * (self.signal_energy - explained))


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _check_dictionary(A: Any) -> Any:
    if scipy.sparse.issparse(A):
        if A.ndim != 2:
            raise ValueError(f"A must be a matrix of shape (M, N); got {A.ndim} dimension(s)")
        A = scipy.sparse.csc_array(A)
        if A.dtype.kind not in "fiub":
            raise ValueError(f"A must hold real numbers; got dtype {A.dtype}")
        A = A.astype(np.float64, copy=False)
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        values = A.data
    else:
        if isinstance(A, np.ma.MaskedArray):
            raise ValueError("A is a masked array; fill or drop what is masked")
        A = A if isinstance(A, np.ndarray) else np.asarray(A)
        if A.ndim != 2:
            raise ValueError(f"A must be a matrix of shape (M, N); got {A.ndim} dimension(s)")
        if A.dtype.kind not in "fiub":
            raise ValueError(f"A must hold real numbers; got dtype {A.dtype}")
        values = A
    m, n = A.shape
    if m < 1 or n < 1:
        raise ValueError(f"A needs at least one row and one column; got shape {(m, n)}")
    if not _all_finite(values):
        raise ValueError("A contains NaN or infinity; it needs finite numbers")
    return A


def _all_finite(values: NDArray[Any]) -> bool:
    """Block by block, so that a memory map is never held whole."""
    if values.dtype.kind != "f":
        return True
    width = max(1, _BLOCK_BYTES // (8 * max(1, math.prod(values.shape[1:]))))
    return all(
        bool(np.isfinite(values[start : start + width]).all())
        for start in range(0, values.shape[0], width)
    )


def _as_float(values: NDArray[Any], name: str) -> Floats:
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got dtype {values.dtype}")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity; it needs finite numbers")
    return values


def _check_vector(values: ArrayLike, name: str, length: int, why: str) -> Floats:
    v = np.asarray(values)
    if v.ndim != 1:
        raise ValueError(f"{name} must be one vector of length {length}; got shape {v.shape}")
    if v.size != length:
        raise ValueError(f"{name} has length {v.size}, but {why}")
    return _as_float(v, name)


def _norms_of_columns(block: Floats) -> Floats:
    """Norms that neither overflow nor underflow on the way."""
    largest = np.max(np.abs(block), axis=0)
    safe = np.where(largest > 0, largest, 1.0)
    return largest * np.sqrt(np.sum((block / safe) ** 2, axis=0))


def _divide_columns(A: Any, divisors: Floats) -> Any:
    """A sparse matrix with each column divided by a number, however small that is."""
    A = A.copy()
    A.data = A.data / np.repeat(divisors, np.diff(A.indptr))
    return A


def _norm(v: Floats) -> float:
    return float(_norms_of_columns(v[:, None])[0])


def _square(norm: float) -> float:
    square = norm * norm
    if norm > 0 and not 1e-300 < square < 1e300:
        raise ValueError(f"‖y‖ = {norm:.3g} is out of range: its square must be a float; rescale y")
    return square
