"""The problem: approximate y by k columns of A.

The engine needs only the Gram matrix G = AᵀA, the correlations b = Aᵀy, ‖y‖² and M. It works with
columns and a signal of unit norm, so that the scales of A and y change nothing but the units of the
answer. `SparseProblem` validates the data; its base class does and undoes the scaling.
"""

from __future__ import annotations

import copy
import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_integer
from l0anneal.problem.arrays import (
    check_dictionary,
    check_names,
    check_vector,
    column_norms,
    is_large,
)
from l0anneal.problem.centring import centre, constant_share
from l0anneal.problem.from_rows import FromRows
from l0anneal.problem.gram import (
    Rounding,
    check_gram,
    check_possible,
    check_scaled_gram,
    solve_gram,
)
from l0anneal.problem.scaled import ScaledProblem
from l0anneal.problem.stored import StoredColumns
from l0anneal.problem.summary import read_summary
from l0anneal.problem.summary_check import compare
from l0anneal.problem.table import as_table
from l0anneal.problem.table_design import TableDesign, design_table

__all__ = ["SparseProblem"]

Floats = NDArray[np.float64]


class SparseProblem(FromRows, ScaledProblem):
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
        self.y: Floats | None = check_vector(y, "y", self.n_samples, f"A has {self.n_samples} rows")
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

    @classmethod
    def from_gram(
        cls, gram: ArrayLike, correlation: ArrayLike, signal_energy: float, n_samples: int
    ) -> SparseProblem:
        """Make a problem from AᵀA, Aᵀy and ‖y‖²; `from_blocks` computes them from blocks of rows.

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
        from a Cholesky factorisation with iterative refinement, and are accurate to about
        1e-16 ‖y‖² times the condition number of AᵀA on the support.

        Statistics that no (A, y) can have are refused: a Gram matrix with a negative eigenvalue, a
        correlation outside its range, or columns that would explain more than ‖y‖². Errors of
        rounding are allowed for, also those of single precision. These checks take one Cholesky
        factorisation: a second or two for N = 3000.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import SparseProblem
        >>> A, y = np.eye(3), np.array([3.0, 0.0, 1.0])
        >>> problem = SparseProblem.from_gram(A.T @ A, A.T @ y, y @ y, 3)
        >>> round(problem.energy([0]), 12)
        0.5
        """
        G = check_gram(gram)
        n = G.shape[0]
        b = check_vector(correlation, "correlation", n, f"gram has {n} columns")
        rounding = Rounding.of(np.asarray(gram), np.asarray(correlation))
        signal_energy = float(signal_energy)
        if not (math.isfinite(signal_energy) and signal_energy >= 0):
            raise ValueError(
                f"signal_energy must be ‖y‖², finite and ≥ 0; got {signal_energy}: give y @ y"
            )
        self = cls.__new__(cls)
        self._set_statistics(G, b, signal_energy, n_samples, rounding)
        check_possible(self.gram, self._b * self._unit / (self._signal_norm or 1.0), rounding)
        return self

    @classmethod
    def from_summary(
        cls,
        z: ArrayLike | None = None,
        R: ArrayLike | None = None,
        n: int | None = None,
        *,
        effect: ArrayLike | None = None,
        standard_error: ArrayLike | None = None,
        signal_variance: float = 1.0,
        check: bool = True,
    ) -> SparseProblem:
        """Make a problem from z-scores, or effects with standard errors, and correlations.

        The z-score of a column is that of a simple regression of the signal on this column, with an
        intercept. The problem is the regression on all columns together, with an intercept.

        Parameters
        ----------
        z : array of shape (N,), optional
            The z-scores. Coefficients of the problem are then in standard deviations of the signal
            per standard deviation of a column.
        R : array of shape (N, N)
            Correlations of the columns (the LD matrix of genetics), of the same samples if possible,
            and with the same signs: the same allele must be counted in z and in R.
        n : int
            The number of samples behind z. If it differs between columns, give the smallest.
        effect, standard_error : arrays of shape (N,), optional
            Slopes of the simple regressions and their standard errors, instead of z. Coefficients
            are then in the units of the effects.
        signal_variance : float
            The variance of the signal. It sets the unit of energies, not that of coefficients.
        check : bool
            Compare z with R by `check_summary`, and warn about columns that do not fit. It takes one
            or two seconds for N = 1000.

        Returns
        -------
        SparseProblem
            With n − 1 samples, because the intercept uses one.

        Raises
        ------
        ValueError
            If R is no correlation matrix, or if no samples can have this z and this R.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import SparseProblem
        >>> R = 0.9 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
        >>> problem = SparseProblem.from_summary([9.0, 10.0, 9.0, 8.1, 7.3], R, 1000)
        >>> coef, _ = problem.least_squares([1])
        >>> round(float(coef[0]), 3)  # the correlation of column 1 with the signal
        0.302
        """
        summary = read_summary(z, R, n, effect, standard_error, signal_variance)
        found = compare(summary.z, summary.R) if check else None
        explained = summary.explained()
        if explained > 1.0:
            found = found or compare(summary.z, summary.R)
            raise ValueError(
                f"z must come from samples with the correlations R; with these, the columns would "
                f"explain {explained:.3g} times the signal's variance: "
                + ("; ".join(found.advice) or "check n, and compute z and R from the same samples")
            )
        if found is not None:
            found.warn(stacklevel=2)
        self = cls.__new__(cls)
        gram, correlation, energy = summary.statistics()
        self._set_statistics(gram, correlation, energy, summary.n - 1, Rounding.of(gram))
        return self

    def _set_statistics(
        self, G: Floats, b: Floats, signal_energy: float, n_samples: Any, rounding: Rounding
    ) -> None:
        """Set all attributes from AᵀA, Aᵀy and ‖y‖²; raise ValueError if an element is impossible."""
        self.A = None
        self.y = None
        self.n_samples, self.n_columns = check_integer("n_samples", n_samples, 1), len(G)
        self.signal_energy = signal_energy
        self._signal_norm = math.sqrt(signal_energy)
        self.column_norms = np.sqrt(np.diag(G))
        scale = self._scale
        zero = np.flatnonzero((self.column_norms == 0) & (b != 0))
        b = b / scale / (self._signal_norm or 1.0)
        if zero.size:
            raise ValueError(
                f"these are not the Gram statistics of any (A, y): column {zero[0]} has norm zero, "
                f"but correlation {b[zero[0]]:.3g}. Compute gram and correlation from the same rows"
            )
        if np.max(np.abs(b)) > (1 + rounding.element if self._signal_norm else 0.0):
            raise ValueError(
                "these are not the Gram statistics of any (A, y): some |correlation| exceeds "
                "√(gram_jj · signal_energy). Is signal_energy ‖y‖², not ½‖y‖²?"
            )
        self._set_unit(b)
        scaled = G / scale[:, None] / scale[None, :]
        self._arrays["gram"] = check_scaled_gram(scaled, rounding.element)

    def _set_unit(self, b: Floats) -> None:
        """Choose the engine's unit of energy: the most that the columns can reach of the signal.

        b holds the correlations of the unit columns with the unit signal. The unit is not ‖y‖²,
        because that would dwarf every change of the energy where most of the signal is out of reach,
        as with an offset that no column can represent.
        """
        reach = min(1.0, float(np.sum(b**2))) or 1.0
        self._b = b / math.sqrt(reach)
        self._unit = self._signal_norm * math.sqrt(reach)
        self._arrays: dict[str, Floats] = {}  # computed when needed; copies of the problem share it

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
