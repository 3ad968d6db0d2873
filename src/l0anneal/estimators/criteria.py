"""Criteria by which the number of columns is chosen."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.regression_data import Design

__all__ = ["CRITERIA", "criteria_of"]

CRITERIA = ("evidence", "bic", "ebic", "cv")
PERFECT = 1e-20  # a residual below this part of ‖y‖² is rounding, and log RSS stops there
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


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
    integrated out under a Gaussian of variance T/λ. The best noise variance is T = 2E_λ/m, and λ is the
    best of a fine grid.
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
