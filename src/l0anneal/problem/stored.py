"""Large matrices that stay as they are stored, and are read in small pieces.

A matrix of 2000 × 500,000 genotypes has 1 GB in 8-bit integers, and 8 GB in double precision. Here the
storage is kept, whether an array of any real type, a memory map, or a chunked array such as Zarr's, and
the columns that the engine works with,

    (I − QQᵀ) diag(√w) A

with weights w and an orthonormal basis Q of what is projected out (for an intercept, one column), are
never formed. Products with them come from *tiles* of 1 MB, which are converted to double precision
(`TILE_BYTES`). Chunked arrays are read in *slabs* of whole chunks (`SLAB_BYTES`).

With V off the span of Q, the products are AᵀV − (QᵀA)ᵀ(QᵀV), in which the second term only removes what
rounding left in V. Where a projection takes away nearly all of a column, that would leave a rounding
error; then the projection is subtracted from each tile (``steep``).

Products of small integers are computed in single precision, from so few rows at a time that the sums are
exact, and then added up in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.arrays import BLOCK_BYTES, is_chunked

__all__ = ["SLAB_BYTES", "TILE_BYTES", "StoredColumns"]

TILE_BYTES = 2**20  # fits into the cache of a core
SLAB_BYTES = BLOCK_BYTES
ROUNDING = 1e-13  # what is left of a column in the span of Q, as a fraction of its norm
CANCELS = 1e-3  # a fraction left of ‖a‖² below which it is computed from the projected tiles
STEEP = 1e3  # norm of a column before the projection, as a multiple of the norm after it
SMALLEST, LARGEST = 1e-140, 1e140  # norms whose squares keep their digits
EXACT = 2**24  # integers below this are exact in single precision

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Tile = tuple[slice, slice, NDArray[Any]]


class StoredColumns:
    """The columns of a large matrix, weighted and projected when they are read.

    Parts are read as of an array: ``columns[:, 3:5]`` and ``columns[:10]`` are float64 arrays.

    Parameters
    ----------
    data : array, memory map or chunked array of shape (M, N)
        The matrix, of any real type. Chunked arrays have ``shape``, ``dtype`` and ``chunks``, and are
        read by slices, as those of Zarr and h5py.
    roots : array of shape (M,), optional
        Square roots of the weights of the rows.
    basis : array of shape (M, q), optional
        Q, orthonormal columns to project out.

    Attributes
    ----------
    norms : ndarray of shape (N,)
        Norms of the columns; zero where only rounding errors are left.
    along : ndarray of shape (q, N)
        Qᵀ diag(√w) A.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[0, 1], [1, 1], [2, 1]], dtype=np.int8)
    >>> centred = StoredColumns(counts, basis=np.full((3, 1), 3**-0.5))
    >>> centred[:, :1].ravel().round(12) + 0.0, centred.norms.round(3)
    (array([-1.,  0.,  1.]), array([1.414, 0.   ]))
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(
        self, data: Any, *, roots: Floats | None = None, basis: Floats | None = None
    ) -> None:
        self.data, self.roots = data, roots
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        self.basis = np.zeros((self.shape[0], 0)) if basis is None else basis
        self._integers = roots is None and data.dtype.kind in "iub"
        with one_blas_thread():
            self._measure()

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def columns_differ(self) -> Floats:
        """Where a column has more than rounding errors left: 1, and 0 elsewhere."""
        return (self.norms > 0).astype(np.float64)

    def projected(self, roots: Floats | None, basis: Floats) -> StoredColumns:
        """Return the same storage with other weights and another basis."""
        return StoredColumns(self.data, roots=roots, basis=basis)

    # ------------------------------------------------------------ parts

    def __getitem__(self, key: Any) -> Floats:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        part = np.asarray(self._raw(rows, columns), dtype=np.float64)
        if self.roots is not None:
            part = part * self.roots[rows, None]
        if self.basis.shape[1]:
            with one_blas_thread():
                along = self.along[:, columns]
                part = part - self.basis[rows] @ along
                if isinstance(rows, slice) and rows == slice(None):  # rounding left a remainder
                    part -= self.basis @ (self.basis.T @ part)
            part *= self.columns_differ[columns]
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return a copy of all columns, for methods that need one, such as the baselines."""
        return np.asarray(self[:], dtype=dtype)

    def _raw(self, rows: Any, columns: Any) -> NDArray[Any]:
        """Return a part of the storage; of a chunked array, listed columns are read one by one."""
        if is_chunked(self.data) and not isinstance(columns, slice):
            each = [np.asarray(self.data[:, int(j)])[rows] for j in columns]
            return np.stack(each, axis=1) if each else np.zeros((self.shape[0], 0))[rows]
        if is_chunked(self.data) and not isinstance(rows, slice):
            return np.asarray(self.data[:, columns])[rows]
        return np.asarray(self.data[rows, columns])

    # ------------------------------------------------------------ products

    def products(self, V: Floats) -> Floats:
        """Return the inner products of all columns (first index) with the columns of V.

        Examples
        --------
        >>> import numpy as np
        >>> StoredColumns(np.eye(2, 3, dtype=np.float32)).products(np.array([[1.0], [2.0]]))
        array([[1.],
               [2.],
               [0.]])
        """
        out = np.zeros((self.shape[1], V.shape[1]))
        with one_blas_thread():
            V = V - self.basis @ (self.basis.T @ V)
            for rows, columns, tile in self._tiles(np.float64, projected=self.steep):
                out[columns] += tile.T @ V[rows]
            out -= self.along.T @ (self.basis.T @ V)
        return out * self.columns_differ[:, None]

    def gram_rows(self, columns: Indices) -> Floats:
        """Return the inner products of some columns (first index) with all columns.

        Examples
        --------
        >>> import numpy as np
        >>> StoredColumns(np.array([[1, 2], [3, 4]], dtype=np.int8)).gram_rows(np.array([1]))
        array([[14., 20.]])
        """
        if not self._integers or self.steep or self._exact_rows < 1:
            return np.ascontiguousarray(self.products(self[:, columns]).T)
        V = np.asarray(self._raw(slice(None), columns), dtype=np.float32)
        out = np.zeros((self.shape[1], columns.size))
        with one_blas_thread():
            for rows, cut, tile in self._tiles(np.float32, self._exact_rows):
                out[cut] += tile.T @ V[rows]
            out -= self.along.T @ self.along[:, columns]
        out *= self.columns_differ[:, None] * self.columns_differ[columns]
        return np.ascontiguousarray(out.T)

    @property
    def _exact_rows(self) -> int:
        """How many products of integers can be added in single precision without rounding."""
        return int(EXACT // max(1.0, self.largest**2))

    def rank(self) -> int:
        """Return the rank, from the eigenvalues of the smaller of the two products of A with itself.

        Squaring costs half of the digits: columns within 10⁻⁷ of the span of the others do not count.
        """
        m, n = self.shape
        scale = np.where(self.norms > 0, self.norms, 1.0)
        with one_blas_thread():
            product = np.zeros((min(m, n),) * 2)
            for start in range(
                0, n if m < n else m, width := max(1, BLOCK_BYTES // (8 * min(m, n)))
            ):
                cut = slice(start, start + width)
                block = self[:, cut] / scale[cut] if m < n else (self[cut] / scale).T
                product += block @ block.T
            return int(np.linalg.matrix_rank(product, hermitian=True))

    # ------------------------------------------------------------ private

    def _measure(self) -> None:
        """Set ``along``, ``norms``, the largest element and ``steep``, in one or two passes."""
        n = self.shape[1]
        self.along = np.zeros((self.basis.shape[1], n))
        squares, self.largest = np.zeros(n), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, columns, tile in self._tiles(np.float64):
                self.along[:, columns] += self.basis[rows].T @ tile
                squares[columns] += np.einsum("ij,ij->j", tile, tile)
                self.largest = max(self.largest, float(tile.max()), -float(tile.min()))
        self._check_range(squares)
        left = squares - np.sum(self.along**2, axis=0)
        if np.any(left < CANCELS * squares):
            left[:] = 0.0
            for _, columns, tile in self._tiles(np.float64, projected=True):
                left[columns] += np.einsum("ij,ij->j", tile, tile)
        left[left <= ROUNDING**2 * squares] = 0.0
        self.norms = np.sqrt(left)
        self.steep = bool(np.any(squares[left > 0] > STEEP**2 * left[left > 0]))

    def _check_range(self, squares: Floats) -> None:
        """Raise ValueError if a column is not finite, or too long or short for its square."""
        norms = np.sqrt(squares)
        if np.all((norms > SMALLEST) & (norms < LARGEST)):
            return
        for rows, columns, tile in self._tiles(np.float64):
            bad = ~np.isfinite(tile)
            if np.any(bad):
                i, j = (int(index[0]) for index in np.nonzero(bad))
                raise ValueError(
                    "A contains NaN or infinity; it needs finite numbers: drop or impute the others. "
                    f"The first one is in row {rows.start + i}, column {columns.start + j}"
                )
            out = (norms[columns] >= LARGEST) | (
                (norms[columns] <= SMALLEST) & np.any(tile, axis=0)
            )
            if np.any(out):
                j = columns.start + int(np.argmax(out))
                raise ValueError(
                    f"the columns of a large A need norms between {SMALLEST:g} and {LARGEST:g}, "
                    f"because these are squared; that of column {j} is not: rescale A"
                )

    def _tiles(
        self, work: Any, most_rows: int | None = None, *, projected: bool = False
    ) -> Iterator[Tile]:
        """Yield rows, columns and tiles of type ``work``, which are overwritten by the next one.

        Tiles follow the order of the storage: long rows of a C-ordered array, long columns of a
        Fortran-ordered one. Their shapes depend on the array alone.
        """
        buffer = np.empty(TILE_BYTES // np.dtype(work).itemsize, dtype=work)
        for first_row, first_column, slab in self._slabs():
            by_row = abs(slab.strides[0]) >= abs(slab.strides[1])
            m, n = slab.shape
            height = min(m, 256 if by_row else 2048, most_rows or m, buffer.size)
            width = min(n, buffer.size // height)
            starts = range(0, m, height), range(0, n, width)
            if by_row:
                corners = ((i, j) for i in starts[0] for j in starts[1])
            else:
                corners = ((i, j) for j in starts[1] for i in starts[0])
            for i, j in corners:
                part = slab[i : i + height, j : j + width]
                tile = buffer[: part.size].reshape(part.shape, order="C" if by_row else "F")
                tile[...] = part
                rows = slice(first_row + i, first_row + i + part.shape[0])
                columns = slice(first_column + j, first_column + j + part.shape[1])
                if self.roots is not None:
                    tile *= self.roots[rows, None]
                if projected:
                    tile -= self.basis[rows] @ self.along[:, columns]
                yield rows, columns, tile

    def _slabs(self) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Yield the storage as arrays, each with its first row and column: whole, or by chunks."""
        if not is_chunked(self.data):
            yield 0, 0, np.asarray(self.data)
            return
        (m, n), itemsize = self.shape, self.data.dtype.itemsize
        chunks = getattr(self.data, "chunks", None) or (1, n)
        height, width = min(m, int(chunks[0])), min(n, int(chunks[1]))
        room = SLAB_BYTES // itemsize
        height = min(m, height * max(1, room // (height * width)))
        width = min(n, width * max(1, room // (height * width)))
        for j in range(0, n, width):
            for i in range(0, m, height):
                yield i, j, np.asarray(self.data[i : i + height, j : j + width])
