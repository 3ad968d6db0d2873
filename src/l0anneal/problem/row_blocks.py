"""Read rows block by block and add them up, in one pass and with constant memory.

Rows are gathered in a buffer whose length depends on the number of columns alone, and each full buffer
is added to the sums. The result therefore depends on the rows and their order, and not on how they are
divided into blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal.problem.moments import Moments
from l0anneal.problem.row_sums import Folds, PartialSums, RowSums, column_label

__all__ = ["Block", "labelled", "partial_sums", "sum_rows"]

BUFFER_BYTES = 4 * 2**20
LEAST_ROWS = 256  # of a buffer, so that the products outweigh adding them up

Floats = NDArray[np.float64]


class Block(NamedTuple):
    """Some rows, and what to call them in a message: the source and the number of its first row."""

    X: Any
    y: Any
    weights: Any
    source: str
    first_row: int = 0


def sum_rows(
    blocks: Iterable[Block],
    *,
    names: Sequence[str] | None = None,
    n_columns: int | None = None,
    folds: Folds | None = None,
) -> RowSums:
    """Add up the rows of all blocks, or raise ValueError with the place of what is wrong."""
    return partial_sums(blocks, names=names, n_columns=n_columns, folds=folds).complete()


def partial_sums(
    blocks: Iterable[Block],
    *,
    names: Sequence[str] | None = None,
    n_columns: int | None = None,
    folds: Folds | None = None,
) -> PartialSums:
    """Add up the rows of blocks to which others will be joined."""
    reader = _Reader(names, n_columns, folds)
    for block in blocks:
        reader.read(block)
    return reader.finish()


def labelled(blocks: Iterable[Any]) -> Iterator[Block]:
    """Number blocks (X, y) or (X, y, weights); note on an exception how many rows had been read.

    Examples
    --------
    >>> import numpy as np
    >>> [block.source for block in labelled([(np.ones((2, 3)), np.ones(2))] * 2)]
    ['block 0', 'block 1']
    """
    try:
        rest = iter(blocks)
    except TypeError:
        raise ValueError(
            "blocks must be an iterable of (X, y) or (X, y, weights), such as a generator; got "
            f"{type(blocks).__name__}"
        ) from None
    number = n_rows = 0
    while True:
        try:
            given = next(rest)
        except StopIteration:
            return
        except BaseException as error:
            error.add_note(f"{n_rows} rows in {number} blocks had been read before")
            raise
        if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
            what = (
                f"{len(given)} items" if isinstance(given, (tuple, list)) else type(given).__name__
            )
            raise ValueError(f"block {number} must be (X, y) or (X, y, weights); got {what}")
        X, y = given[0], given[1]
        yield Block(X, y, given[2] if len(given) == 3 else None, f"block {number}")
        number += 1
        n_rows += X.shape[0] if hasattr(X, "shape") else len(X)


class _Reader:
    """The sums so far, and the rows that wait to be added."""

    def __init__(
        self, names: Sequence[str] | None, n_columns: int | None, folds: Folds | None
    ) -> None:
        self.names = None if names is None else tuple(str(name) for name in names)
        self.given_names = names is not None
        self.n_columns = n_columns
        self.why = "n_columns"
        if names is not None and n_columns not in (None, len(names)):
            raise ValueError(
                f"feature_names has {len(names)} names, but n_columns is {n_columns}: give one for each"
            )
        if names is not None:
            self.n_columns, self.why = len(names), "feature_names"
        self.n_folds = 1 if folds is None else folds.n_folds
        self.rng = None if folds is None else np.random.default_rng(folds.seed)
        self.sums: list[Moments | None] = [None] * self.n_folds
        self.shift: Floats | None = None
        self.weighted = False
        self.n_waiting = 0

    def read(self, block: Block) -> None:
        """Check a block and put its rows into the buffer."""
        X = block.X
        if not hasattr(X, "shape"):
            X = self._numbers(X, block)
        self._check_columns(X, block)
        y = self._vector(block.y, "y", X.shape[0], block)
        w = None if block.weights is None else self._weights(block, X.shape[0])
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_array(X)
        elif not isinstance(X, np.ndarray):
            X = self._numbers(X, block)
        start = 0
        while start < X.shape[0]:
            stop = min(X.shape[0], start + len(self.buffer) - self.n_waiting)
            rows = slice(start, stop)
            part = self._numbers(X[rows], block)
            self._check_finite(part, y[rows], block, start)
            self._wait(part, y[rows], None if w is None else w[rows])
            start = stop

    def finish(self) -> PartialSums:
        """Add the rows that still wait, and return the sums."""
        if self.n_waiting:
            self._add()
        return PartialSums(tuple(self.sums), self.names)

    # ------------------------------------------------------------ the buffer

    def _wait(self, X: Floats, y: Floats, w: Floats | None) -> None:
        if w is not None:
            self.weighted = True
            keep = w > 0
            if not np.all(keep):
                X, y, w = X[keep], y[keep], w[keep]
        cut = slice(self.n_waiting, self.n_waiting + len(y))
        self.buffer[cut, :-1] = X
        self.buffer[cut, -1] = y
        self.waiting_weights[cut] = 1.0 if w is None else w
        self.n_waiting = cut.stop
        if self.n_waiting == len(self.buffer):
            self._add()

    def _add(self) -> None:
        rows, weights = self.buffer[: self.n_waiting], self.waiting_weights[: self.n_waiting]
        if self.shift is None:
            with np.errstate(over="ignore"):
                self.shift = rows.mean(axis=0)
            self.shift[~np.isfinite(self.shift)] = 0.0
        fold = None if self.rng is None else (self.n_folds * self.rng.random(len(rows))).astype(int)
        for i in range(self.n_folds):
            chosen = slice(None) if fold is None else fold == i
            part, w = rows[chosen], weights[chosen] if self.weighted else None
            if not len(part):
                continue
            new = Moments.of(part, w, self.shift)
            old = self.sums[i]
            if old is None:
                self.sums[i] = new
            else:
                old.add(new)
        self.n_waiting = 0

    # ------------------------------------------------------------ checks

    def _check_columns(self, X: Any, block: Block) -> None:
        if len(X.shape) != 2:
            raise ValueError(
                f"X of {block.source} must be a matrix of rows; got {len(X.shape)} dimension(s)"
            )
        names = _names_of(X)
        if self.n_columns is None:
            self.n_columns, self.why = X.shape[1], block.source
        if X.shape[1] != self.n_columns:
            has = "is" if self.why == "n_columns" else "has"
            raise ValueError(
                f"{block.source} has {X.shape[1]} columns, but {self.why} {has} {self.n_columns}: all "
                "blocks need the same columns"
            )
        if self.n_columns == 0:
            raise ValueError(f"{block.source} has no columns; at least one is needed")
        if not hasattr(self, "buffer"):
            length = max(LEAST_ROWS, BUFFER_BYTES // (8 * (self.n_columns + 1)))
            self.buffer = np.empty((length, self.n_columns + 1))
            self.waiting_weights = np.empty(length)
            if self.names is None:
                self.names = names
        if names is not None and self.names is not None and not self.given_names:
            for here, there in zip(names, self.names):
                if here != there:
                    raise ValueError(
                        f"{block.source} has column {here!r} where the first block has {there!r}: give "
                        "all blocks the same columns in the same order"
                    )

    def _vector(self, values: Any, name: str, n_rows: int, block: Block) -> Floats:
        v = self._numbers(values, block, name)
        if v.ndim == 2 and v.shape[1] == 1:
            v = v[:, 0]
        if v.ndim != 1:
            raise ValueError(
                f"{name} of {block.source} must be one vector; got shape {v.shape}: fit several "
                "outputs one by one"
            )
        if v.size != n_rows:
            raise ValueError(
                f"{name} of {block.source} has length {v.size}, but its X has {n_rows} rows: give "
                f"{name} one value for each row"
            )
        return v

    def _weights(self, block: Block, n_rows: int) -> Floats:
        w = self._vector(block.weights, "weights", n_rows, block)
        bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
        if bad.size:
            raise ValueError(
                f"weights must be finite and ≥ 0; {block.source} has {w[bad[0]]:g} in row "
                f"{block.first_row + bad[0]}"
            )
        return w

    def _numbers(self, values: Any, block: Block, name: str = "X") -> Floats:
        """Return real numbers as float64, with NaN for missing ones."""
        if scipy.sparse.issparse(values):
            values = values.toarray()
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        try:
            if hasattr(values, "iloc"):  # pandas, whose missing integers are no floats
                values = values.to_numpy(dtype=np.float64, na_value=np.nan)
            array = np.asarray(values)
            if array.dtype.kind in "fiubO":
                return np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} of {block.source} must hold real numbers ({error})"
            ) from error
        raise ValueError(f"{name} of {block.source} must hold real numbers; got {array.dtype}")

    def _check_finite(self, X: Floats, y: Floats, block: Block, start: int) -> None:
        if np.isfinite(X).all() and np.isfinite(y).all():
            return
        bad = ~np.isfinite(np.column_stack([X, y]))
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        column = column_label(int(np.flatnonzero(bad[row])[0]), X.shape[1], self.names)
        raise ValueError(
            f"{block.source} has NaN or infinity in {column}, row {block.first_row + start + row}; "
            "finite numbers are needed: drop or impute the others"
        )


def _names_of(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame, if all of them are strings."""
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)
