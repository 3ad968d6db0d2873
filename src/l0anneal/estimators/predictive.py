"""The uncertainty of predictions and coefficients of a fitted regression.

Let C be the intercept and the columns that are always included, and β the coefficients of the others. C
has a flat prior, so that, given β and the noise variance s², its coefficients are Gaussian around
C⁺(y − Xβ) with the covariance s²(CᵀC)⁻¹. For a new row with the parts c and x, the mean squared
deviation of y from a prediction p is therefore

    Var[(x − c C⁺X) β] + (m − p)² + ⟨s²⟩ (1 + c (CᵀC)⁻¹ cᵀ),

where m is the prediction by the averaged coefficients, and variance and average are those over the joint
draws of β and s². Where there are no draws, the chosen columns
count as certain, and the textbook formula of least squares applies, with the unbiased noise variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.evidence.draws import Draws

__all__ = ["Predictive"]

CHUNK = 500  # rows whose predictions by all draws are held at a time
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Predictive:
    """What is needed to tell how far new values of y are from their predictions.

    Attributes
    ----------
    fixed : ndarray of int
        The columns of X with a flat prior: those always included and, without draws, those chosen.
    inverse : ndarray
        (CᵀC)⁻¹ of the intercept and the fixed columns, for a noise variance of one.
    start, shift : ndarrays
        C⁺y, and C⁺X for the columns of the draws.
    columns : ndarray of int
        The columns of X that the columns of the draws are.
    noise_variance : float
        Mean noise variance; NaN if there are too few samples to tell.
    coef_std, intercept_std : ndarray of shape (n_columns,), float
        Standard deviations of the coefficients and of the intercept.
    """

    fit_intercept: bool
    fixed: Indices
    columns: Indices
    inverse: Floats
    start: Floats
    shift: Floats
    draws: Draws | None
    noise_variance: float
    coef_std: Floats
    intercept_std: float

    @classmethod
    def of(cls, design: Design, support: Indices, evidence: Any, noise_scale: float) -> Predictive:
        """Prepare the formulas above.

        Parameters
        ----------
        design : Design
            The data of the fit.
        support : ndarray of int
            The chosen candidates.
        evidence : EvidenceResult or None
            Where the draws come from.
        noise_scale : float
            The noise variance of a row of weight one, divided by that of the draws.
        """
        draws = None if evidence is None else evidence.draws
        chosen = design.candidates[support]
        fixed, C = design.forced, design.C
        if draws is None:
            fixed = np.concatenate([design.forced, chosen]).astype(np.int64)
            C = np.column_stack([C, _dense(design.X[:, chosen])])
        columns = design.candidates if draws is not None else np.zeros(0, dtype=np.int64)
        with one_blas_thread():
            # columns of very different units would spoil the inverse
            norms = np.linalg.norm(C, axis=0)
            norms = np.where(norms > 0, norms, 1.0)
            pseudo = np.linalg.pinv(C / norms, rcond=1e-10) / norms[:, None]
            inverse = pseudo @ pseudo.T
            start = pseudo @ design.y
            shift = np.asarray(design.X[:, columns].T @ pseudo.T).T
        coef_std = np.zeros(design.n_columns)
        if draws is None:
            residual = design.y - C @ start
            free = design.n_samples - design.n_projected - support.size
            if free < 1:  # weights that are too small to count rows count each row once
                noise_scale = design.n_rows / design.n_samples
                free = design.n_rows - design.n_projected - support.size
            noise = float(residual @ residual) / free if free >= 1 else np.nan
            spread = noise * np.diag(inverse)
        else:
            noise = float(draws.weight @ draws.noise_variance)
            values = start - _as_matrix(draws, columns.size) @ shift.T
            mean = draws.weight @ values
            spread = draws.weight @ (values - mean) ** 2 + noise * np.diag(inverse)
            coef_std[columns] = evidence.coef_std
        deviation = np.sqrt(spread)
        n_first = 1 if design.fit_intercept else 0
        coef_std[fixed] = deviation[n_first:]
        return cls(
            design.fit_intercept,
            fixed,
            columns,
            inverse / noise_scale,
            start,
            shift,
            draws,
            noise * noise_scale,
            coef_std,
            float(deviation[0]) if n_first else 0.0,
        )

    def deviation(self, X: Any, prediction: Floats, average: Floats) -> Floats:
        """Return the root of the mean squared deviation of new values of y from a prediction.

        ``average`` is the prediction by the averaged coefficients.
        """
        if not np.isfinite(self.noise_variance):
            raise ValueError(
                "return_std needs an estimate of the noise, but the fit has as many coefficients as "
                "samples: choose fewer columns, or give more rows"
            )
        X = scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X
        squares = np.empty(X.shape[0])
        for first in range(0, X.shape[0], CHUNK):
            rows = slice(first, first + CHUNK)
            squares[rows] = self._squares(X[rows])
        return np.sqrt(squares + (average - prediction) ** 2)

    def _squares(self, X: Any) -> Floats:
        C = _dense(X[:, self.fixed])
        if self.fit_intercept:
            C = np.column_stack([np.ones(X.shape[0]), C])
        leverage = np.sum((C @ self.inverse) * C, axis=1)
        noise = self.noise_variance * (1.0 + leverage)
        if self.draws is None:
            return noise
        B = _as_matrix(self.draws, self.columns.size)
        values = _dense(B @ X[:, self.columns].T) + (self.start - B @ self.shift.T) @ C.T
        return noise + self.draws.weight @ (values - self.draws.weight @ values) ** 2


def _as_matrix(draws: Draws, n_columns: int) -> Any:
    """Return the coefficients of all draws (rows) as a sparse matrix."""
    shape = (len(draws), n_columns)
    return scipy.sparse.csr_array((draws.coef, draws.columns, draws.start), shape=shape)


def _dense(values: Any) -> Floats:
    return np.asarray(values.toarray() if scipy.sparse.issparse(values) else values)
