"""Criteria by which the number of columns is chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_choice
from l0anneal.problem.regression_data import Design

if TYPE_CHECKING:
    from l0anneal.estimators.path import SubsetPath

__all__ = ["CRITERIA", "choose_size", "criteria_of"]

CRITERIA = ("evidence", "bic", "ebic", "cv", "cv_min")
PERFECT = 1e-20  # residuals below this fraction of ‖y‖² are rounding errors: log RSS stops here
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def choose_size(path: SubsetPath, criterion: str = "evidence") -> int:
    """Choose the number of columns by a criterion.

    Parameters
    ----------
    path : SubsetPath
        The best support of each size.
    criterion : {"evidence", "bic", "ebic", "cv", "cv_min"}
        The size with the lowest value of the criterion is chosen. "cv_min" takes the size with the
        lowest cross-validated error, and "cv" the smallest size whose error is within one standard
        error of the lowest one: fewer columns, which predict a little worse. "bic" ignores how many
        columns there were to choose from, and chooses too many if there were many; "ebic" and
        "evidence" take this number into account.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import choose_size, subset_path
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((60, 20))
    >>> path = subset_path(X, 3 * X[:, 4] + rng.standard_normal(60), 5, cv=5, random_state=0)
    >>> choose_size(path, "cv")
    1
    """
    check_choice("criterion", criterion, CRITERIA)
    name = "cv" if criterion == "cv_min" else criterion
    if name not in path.criteria:
        raise ValueError("the path has no cross-validation: call subset_path with cv=5")
    values = path.criteria[name]
    best = int(np.argmin(values))
    if criterion == "cv":
        assert path.cv_error is not None
        best = int(np.flatnonzero(values <= values[best] + path.cv_error[best])[0])
    return int(path.sizes[best])


def criteria_of(design: Design, supports: list[Indices], energies: Floats) -> dict[str, Floats]:
    """Return evidence, BIC and extended BIC of supports of sizes 0, 1, ...; the lower the better."""
    n = design.n_samples
    p = design.n_columns - design.forced.size
    k = np.arange(len(supports), dtype=np.float64)
    total = float(design.y @ design.y) or 1.0
    rss = np.maximum(2.0 * energies, PERFECT * total)
    bic = n * np.log(rss / n) + (k + design.n_projected) * math.log(n)
    log_choices = gammaln(p + 1) - gammaln(k + 1) - gammaln(p - k + 1)
    size_prior = betaln(k + 0.5, p - k + 0.5) - betaln(0.5, 0.5)
    evidence = np.array([_log_evidence(design, support) for support in supports])
    return {
        "evidence": -2.0 * (evidence + size_prior),
        "bic": bic,
        "ebic": bic + 2.0 * log_choices,
    }


def _log_evidence(design: Design, support: Indices) -> float:
    """Return the log marginal likelihood of a support up to a constant.

    The model is that of `l0anneal.evidence_anneal`: the coefficients of the unit-norm columns are
    integrated out under a Gaussian of variance T/λ. The noise variance is the best one, T = 2E_λ/m,
    and λ is the best value on a fine grid.
    """
    problem = design.counted()
    m, total = problem.n_samples, problem.signal_energy or 1.0
    if support.size == 0:
        return -0.5 * m * math.log(total)
    y = design.y - design.Q @ (design.Q.T @ design.y)
    with one_blas_thread():
        U, s, _ = scipy.linalg.svd(design.columns(support), full_matrices=False)
    explained = (U.T @ y) ** 2
    ridge = np.geomspace(1e-12, 1e4, 1000)[:, None]
    left = total - np.sum(explained * s**2 / (s**2 + ridge), axis=1)
    left = np.maximum(left, PERFECT * total)
    logs = -0.5 * np.sum(np.log1p(s**2 / ridge), axis=1) - 0.5 * m * np.log(left)
    return float(np.max(logs))
