"""The ways to make a problem without rows: from AᵀA, Aᵀy and ‖y‖², or from summary statistics."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.checks import check_integer
from l0anneal.problem.arrays import check_vector
from l0anneal.problem.gram import Rounding, check_gram, check_possible, check_scaled_gram
from l0anneal.problem.scaled import ScaledProblem
from l0anneal.problem.summary import read_summary
from l0anneal.problem.summary_check import compare

__all__ = ["FromStatistics"]

Floats = NDArray[np.float64]


class FromStatistics(ScaledProblem):
    """The part of `SparseProblem` that makes problems from sums of products."""

    @classmethod
    def from_gram(
        cls, gram: ArrayLike, correlation: ArrayLike, signal_energy: float, n_samples: int
    ) -> Self:
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
    ) -> Self:
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
