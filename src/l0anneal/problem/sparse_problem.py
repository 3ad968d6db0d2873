"""The problem: approximate y by k columns of A.

The engine needs only the Gram matrix G = AᵀA, the correlations b = Aᵀy, ‖y‖² and M. It works with
columns and a signal of unit norm, so that the scales of A and y change nothing but the units of the
answer. `SparseProblem` validates the data. Its base classes do and undo the scaling (`ScaledProblem`),
and make problems from statistics (`FromStatistics`) and from rows that are read once (`FromRows`).
"""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.arrays import (
    check_dictionary,
    check_names,
    check_vector,
    column_norms,
    is_large,
)
from l0anneal.problem.centring import centre, constant_share
from l0anneal.problem.from_rows import FromRows
from l0anneal.problem.gram import solve_gram
from l0anneal.problem.stored import StoredColumns
from l0anneal.problem.table import as_table
from l0anneal.problem.table_design import TableDesign, design_table

__all__ = ["SparseProblem"]

Floats = NDArray[np.float64]


class SparseProblem(FromRows):
    """Approximate a signal by a few columns of a dictionary: min ½‖y − Ax‖² with ‖x‖₀ = k.

    Parameters
    ----------
    A : array of shape (M, N), sparse matrix, memory map, chunked array, or path
        The dictionary, in any memory order and of any real number type. A dense A is not copied, so
        do not change it while the problem is in use. If it would have more than 512 MB in double
        precision, it is read in blocks, also with an intercept or weights, and stays as it is stored:
        8-bit integers, single precision, a memory map, or chunks on a disk, such as an array of Zarr.
        The path of a .npy file or a .zarr folder is opened, and not read.
    y : array of shape (M,)
        The signal.
    intercept : bool, optional
        Whether to fit an intercept, which is not penalised and not counted: the means of the columns
        and of the signal are subtracted. By default there is none, and `solve` warns if a constant
        would explain most of y; False means that you know.
    weights : array of shape (M,), optional
        Weights of the rows: a row of weight 2 counts as two rows.
    feature_names : sequence of str, optional
        Names of the columns, which results carry along; by default those of a DataFrame A.

    Attributes
    ----------
    n_samples, n_columns : int
        M and N. With weights, M is their sum, and an intercept uses one sample.
    signal_energy : float
        ‖y‖², after the mean was subtracted if there is an intercept.
    column_norms : ndarray of shape (N,)
        ‖a_j‖, likewise. A column of norm zero is never chosen.
    column_means, signal_mean : ndarray and float
        The means that were subtracted; None and 0 without an intercept.
    groups : tuple of tuples of int
        Columns that belong together, such as the dummies of one variable of a table.
    table : TableDesign or None
        How the columns of a table became those of the problem; see `from_table`.

    See Also
    --------
    solve : Find the best columns of a problem.
    ensembles.planted : Draw a random problem with a known answer.
    check_summary : Check z-scores against correlations.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem
    >>> A = np.eye(3)
    >>> problem = SparseProblem(A, [3.0, 0.0, 1.0])
    >>> round(problem.energy([0]), 12)
    0.5
    """

    feature_names: tuple[str, ...] | None = None
    column_means: Floats | None = None
    signal_mean: float = 0.0
    groups: tuple[tuple[int, ...], ...] = ()
    table: TableDesign | None = None
    intercept: bool | None = None

    def __init__(
        self,
        A: Any,
        y: ArrayLike,
        *,
        intercept: bool | None = None,
        weights: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if feature_names is None and all(isinstance(n, str) for n in getattr(A, "columns", [0])):
            feature_names = list(A.columns)
        self.A = check_dictionary(A)
        self.n_samples, self.n_columns = self.A.shape
        self.y = check_vector(y, "y", self.n_samples, f"A has {self.n_samples} rows")
        if intercept or weights is not None or is_large(self.A):
            self.A, self.y, self.column_means, self.signal_mean, self.n_samples = centre(
                self.A, self.y, bool(intercept), weights
            )
        self.intercept = intercept
        if feature_names is not None:
            self.feature_names = check_names(feature_names, self.n_columns)
        with one_blas_thread():
            self.column_norms = self._norms()
        self._set_signal()

    def _set_signal(self) -> None:
        """Set everything that depends on ``y``."""
        assert self.y is not None
        self._signal_norm = float(column_norms(self.y[:, None])[0])
        self.signal_energy = _check_square(self._signal_norm)
        with one_blas_thread():
            self._set_unit(self._correlate(self.y / (self._signal_norm or 1.0)))

    def with_signal(self, y: Floats) -> SparseProblem:
        """Return the problem of the same columns and another signal, prepared like that of this one."""
        other = copy.copy(self)
        other.y = y
        other._set_signal()
        other._arrays = self._arrays  # of the columns alone
        return other

    @classmethod
    def from_table(
        cls,
        frame: Any,
        target: str | int,
        *,
        columns: Sequence[str | int] | str | None = None,
        drop: Sequence[str | int] | str | None = None,
        weights: str | int | None = None,
        impute: str | None = None,
        one_hot: bool = False,
        drop_rows: bool = False,
        intercept: bool = True,
        header: bool | None = None,
    ) -> SparseProblem:
        """Make a problem from a table: which of its columns explain the target?

        A column that would silently spoil the answer is refused or left out, and a warning says which:
        text, missing values, constant columns, an index that was saved with the table.

        Parameters
        ----------
        frame : DataFrame, mapping of names to columns, or path
            The table. A path leads to a text file with commas, semicolons or tabs (.csv, .tsv, also
            compressed by gzip) or to a .parquet, .feather or .xlsx file, which need pandas:
            ``pip install 'l0anneal[tables]'``.
        target : str or int
            The column to explain, by name or by position, counted from 0.
        columns : list of str or int, optional
            The columns to choose from; by default all others, except a saved index.
        drop : list of str or int, optional
            Columns to leave out.
        weights : str or int, optional
            The column that has the weights of the rows: a row of weight 2 counts as two rows.
        impute : {"mean", "median"}, optional
            What replaces missing numbers; by default they are refused.
        one_hot : bool
            Make dummies, columns of 0 and 1, from each column of text. The dummies of one column
            enter and leave the support together (``groups``), and there is none for its most frequent
            word. If `solve` is given a number of columns, they enter one by one, and a warning says
            so. By default text is refused.
        drop_rows : bool
            Leave out rows with missing values.
        intercept : bool
            Whether to fit an intercept.
        header : bool, optional
            Whether the first row of a text file has the names; by default this is found out.

        Returns
        -------
        SparseProblem
            With ``feature_names``, and with ``table``, whose method ``matrix`` turns another table into
            the same columns, for predictions.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import SparseProblem, solve
        >>> rng = np.random.default_rng(0)
        >>> houses = {"rooms": rng.integers(1, 7, 80), "age": rng.uniform(0, 99, 80)}
        >>> houses["price"] = 20 + 35 * houses["rooms"] + 0.1 * rng.standard_normal(80)
        >>> result = solve(SparseProblem.from_table(houses, "price"), random_state=0)
        >>> [result.feature_names[j] for j in result.support], round(result.intercept)
        (['rooms'], 20)
        """
        data = design_table(
            as_table(frame, header=header),
            target,
            columns=columns,
            drop=drop,
            weights=weights,
            impute=impute,
            one_hot=one_hot,
            drop_rows=drop_rows,
            intercept=intercept,
        )
        for note in data.design.notes:
            warnings.warn(note, stacklevel=2)
        names = data.design.feature_names
        self = cls(data.A, data.y, intercept=intercept, weights=data.weights, feature_names=names)
        self.groups, self.table = data.design.groups, data.design
        return self

    def __repr__(self) -> str:
        source = "AᵀA" if self.A is None else type(self.A).__name__
        return f"SparseProblem({source}, n_samples={self.n_samples}, n_columns={self.n_columns})"

    # ------------------------------------------------------------ for users

    def least_squares(self, support: ArrayLike) -> tuple[Floats, float]:
        """Return the least-squares coefficients of a support, in its order, and ½‖y − Ax‖².

        They are computed by a QR factorisation of the columns, not from the numbers of the engine. A
        problem made by `from_gram` has no columns and uses a Cholesky factorisation of AᵀA.
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
                # pivoted QR, which allows dependent columns, and a second time on the residual
                for _ in range(2):
                    x += scipy.linalg.lstsq(
                        columns, target - columns @ x, cond=1e-12, lapack_driver="gelsy"
                    )[0]
            residual = target - columns @ x
        energy = 0.5 * float(residual @ residual)
        return x * (self._signal_norm / scale), energy * self.signal_energy

    def intercept_of(self, coef: ArrayLike) -> float:
        """Return the intercept that belongs to the coefficients of all columns; 0 without one."""
        if self.column_means is None:
            return 0.0
        return float(self.signal_mean - self.column_means @ np.asarray(coef, dtype=np.float64))

    def lacks_intercept(self) -> float:
        """Return the fraction of ‖y‖² that a constant would explain, if no column is constant.

        It is 0 where that is no question: with an intercept, with ``intercept=False``, if a column is
        constant, or if there are no rows.
        """
        if self.intercept is not None or self.A is None or self.y is None:
            return 0.0
        share = constant_share(self.y)
        if share <= 0.5:
            return 0.0
        along = self._correlate(np.full(self.y.size, self.y.size**-0.5))
        return 0.0 if np.max(np.abs(along)) > 1 - 1e-9 else share

    def energy(self, support: ArrayLike) -> float:
        """Return ½‖y − Ax‖² with the least-squares coefficients of ``support``."""
        return self.least_squares(support)[1]

    def rank(self) -> int:
        """Return the rank of A, from the singular values of its unit-norm columns (or of AᵀA)."""
        with one_blas_thread():
            if self.A is None:
                return int(np.linalg.matrix_rank(self.gram, hermitian=True))
            if isinstance(self.A, StoredColumns):
                return self.A.rank()
            columns = np.hstack([block for _, block in self.unit_blocks()])
            return int(np.linalg.matrix_rank(columns))

    def check_support(self, support: ArrayLike, size: int | None = None) -> NDArray[np.int64]:
        """Return ``support`` as an array of distinct column indices, or raise ValueError."""
        S = np.asarray(support)
        if S.size == 0:
            S = S.astype(np.int64)
        if S.ndim != 1 or not np.issubdtype(S.dtype, np.integer):
            raise ValueError(
                "a support must be a one-dimensional list of integer column indices; "
                f"got shape {S.shape} of dtype {S.dtype}"
            )
        if S.size and (S.min() < 0 or S.max() >= self.n_columns):
            raise ValueError(
                f"a support must have indices from 0 to {self.n_columns - 1}; "
                f"got {S.min()} to {S.max()}"
            )
        values, counts = np.unique(S, return_counts=True)
        if values.size != S.size:
            raise ValueError(
                "a support must contain each column at most once; "
                f"got column {values[np.argmax(counts)]} more than once: remove duplicates"
            )
        if size is not None and S.size != size:
            raise ValueError(f"the support needs {size} columns; got {S.size}")
        return S.astype(np.int64)

    def check_size(self, n_nonzero: Any) -> int:
        """Return ``n_nonzero`` as an integer between 0 and N, or raise ValueError."""
        if not _is_integer(n_nonzero):
            raise ValueError(
                f"n_nonzero must be an integer, the number of columns; got {n_nonzero!r}"
            )
        k = int(n_nonzero)
        if not 0 <= k <= self.n_columns:
            raise ValueError(f"n_nonzero must be between 0 and N = {self.n_columns}; got {k}")
        return k

    def _least_squares_from_gram(self, S: NDArray[np.int64]) -> tuple[Floats, float]:
        G = self.gram[np.ix_(S, S)]
        b = self._b[S]
        x = solve_gram(G, b)
        explained = float(2 * b @ x - x @ G @ x) * self.unit_energy
        return x * (self._unit / self._scale[S]), max(0.0, 0.5 * (self.signal_energy - explained))


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _check_square(norm: float) -> float:
    """Return ‖y‖², or raise ValueError if it overflows or underflows."""
    square = norm * norm
    if norm > 0 and not 1e-300 < square < 1e300:
        raise ValueError(f"‖y‖ = {norm:.3g} is out of range: its square must be a float; rescale y")
    return square
