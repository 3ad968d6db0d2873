"""Criteria by which the number of columns is chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_choice
from l0anneal.problem.joint_data import JointDesign
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.evidence.prior import DensityPrior, Prior

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
        "evidence" take this number into account. "evidence" takes the support with the highest
        posterior probability in the model of `evidence_anneal`, which adds up the probabilities of all
        supports instead.

    Returns
    -------
    int

    See Also
    --------
    subset_path : Compute a path.
    AnnealedSubsetRegressor : Path, choice and fit in one.
    SubsetPathDisplay : Draw the criterion and the choice.

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


def criteria_of(
    design: Design | JointDesign, supports: list[Indices], energies: Floats
) -> dict[str, Floats]:
    """Return evidence, BIC and extended BIC of supports of sizes 0, 1, ...; the lower the better.

    Of several outputs with one support, log-likelihoods and penalties of coefficients are summed. What
    choosing the support costs is counted once.
    """
    n = design.n_samples
    p = design.n_columns - design.forced.size
    k = np.arange(len(supports), dtype=np.float64)
    bic, evidence = np.zeros(k.size), np.zeros(k.size)
    for output in design.outputs:
        if len(design.outputs) > 1:
            energies = np.array([output.problem.energy(support) for support in supports])
        total = float(output.y @ output.y) or 1.0
        rss = np.maximum(2.0 * energies, PERFECT * total)
        bic += n * np.log(rss / n) + (k + design.n_projected) * math.log(n)
        evidence += log_likelihoods(output, supports)
    m, n_candidates = design.outputs[0].counted().n_samples, max(1, design.candidates.size)
    evidence += DensityPrior(None, n_candidates, m).log_weight(k.astype(np.int64))
    log_choices = gammaln(p + 1) - gammaln(k + 1) - gammaln(p - k + 1)
    return {"evidence": -2.0 * evidence, "bic": bic, "ebic": bic + 2.0 * log_choices}


def log_likelihoods(design: Design, supports: list[Indices]) -> Floats:
    """Return the log marginal likelihoods of supports, up to a constant.

    Model and prior are those of `l0anneal.evidence_anneal` with a slab of one hump
    (`samplers.evidence.prior`). The coefficients of the unit-norm columns have variance gT. They, the
    noise variance T and g are integrated out; over T and the coefficients, with λ = 1/g, the integral is
    det(I + G_SS/λ)^(−1/2) E_λ(S)^(−m/2) up to a constant.
    """
    problem = design.counted()
    m, total = problem.n_samples, problem.signal_energy or 1.0
    prior = Prior.of(problem, slab="one hump")
    y = design.y - design.Q @ (design.Q.T @ design.y)
    found = np.full(len(supports), -0.5 * m * math.log(total))
    for i, support in enumerate(supports):
        if support.size == 0:
            continue
        with one_blas_thread():
            U, s, _ = scipy.linalg.svd(design.columns(support), full_matrices=False)
            explained = (U.T @ y) ** 2
        gain = s**2 * prior.scales[:, None]  # by value of g, and by direction
        left = total - np.sum(explained * gain / (1.0 + gain), axis=1)
        left = np.maximum(left, PERFECT * total)
        logs = -0.5 * np.sum(np.log1p(gain), axis=1) - 0.5 * m * np.log(left)
        found[i] = logsumexp(prior.log_scale + logs)
    return found
