"""Rivals on the same problems: thin calls into scikit-learn and SciPy, and message passing.

Each returns a dense coefficient vector. They need the columns, so a problem given by its Gram
matrix is refused.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["basis_pursuit", "bayes_amp", "l1", "omp", "refit"]

Floats = NDArray[np.float64]


def omp(problem: SparseProblem, n_nonzero: int) -> Floats:
    """Orthogonal matching pursuit: each time the column that correlates best with the residual.

    On columns of unit norm, by `sklearn.linear_model.orthogonal_mp_gram`.

    Examples
    --------
    >>> from l0anneal import baselines, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> instance.mse(baselines.omp(instance.problem, 6)) < 1e-12
    True
    """
    from sklearn.linear_model import orthogonal_mp_gram

    k = problem.check_size(n_nonzero)
    A, y, scale = _dense(problem)
    if k == 0:
        return np.zeros(problem.n_columns)
    with one_blas_thread():
        unit = A / scale
        coef = orthogonal_mp_gram(unit.T @ unit, unit.T @ y, n_nonzero_coefs=k)
    return np.asarray(coef, dtype=np.float64).ravel() / scale


def l1(problem: SparseProblem, n_nonzero: int) -> Floats:
    """The LASSO, min ½‖y − Ax‖² + λ‖x‖₁, at the smallest λ that still has k non-zeros.

    By `sklearn.linear_model.lars_path_gram`, the whole path down to there. λ is put where
    column k + 1 is about to enter.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import baselines, ensembles
    >>> instance = ensembles.noise_only(60, 0.5, random_state=1)
    >>> int(np.count_nonzero(baselines.l1(instance.problem, 12)))
    12
    """
    from sklearn.linear_model import lars_path_gram

    k = problem.check_size(n_nonzero)
    A, y, _ = _dense(problem)
    if k == 0:
        return np.zeros(problem.n_columns)
    steps = k + 1
    with one_blas_thread():
        gram, correlation = A.T @ A, A.T @ y
        while True:
            # a step may also drop a column, so that k columns can need more than k steps
            alphas, _, path = lars_path_gram(
                correlation, gram, n_samples=1, method="lasso", max_iter=steps
            )
            sizes = np.count_nonzero(path, axis=0)
            if sizes.max() > k or len(alphas) <= steps:
                break
            steps += 1 + k // 8
    if sizes.max() < k:
        raise ValueError(f"the l1 path ends at {sizes.max()} columns; {k} were asked for")
    # the first visit to k columns ends where the next column comes in: that knot still has k
    first_beyond = np.flatnonzero(sizes > k)
    end = int(first_beyond[0]) if first_beyond.size else len(sizes)
    return np.asarray(path[:, np.flatnonzero(sizes[:end] == k)[-1]], dtype=np.float64)


def refit(problem: SparseProblem, coef: Floats) -> Floats:
    """Least squares on the support of ``coef``."""
    support = np.flatnonzero(coef)
    out = np.zeros(problem.n_columns)
    out[support] = problem.least_squares(support)[0]
    return out


def basis_pursuit(problem: SparseProblem) -> Floats:
    """The least ‖x‖₁ among all x with Ax = y, by `scipy.optimize.linprog` (HiGHS).

    Examples
    --------
    >>> from l0anneal import baselines, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> instance.mse(baselines.basis_pursuit(instance.problem)) < 1e-12
    True
    """
    from scipy.optimize import linprog

    A, y, _ = _dense(problem)
    n = problem.n_columns
    with one_blas_thread():
        solution = linprog(np.ones(2 * n), A_eq=np.hstack((A, -A)), b_eq=y, method="highs")
    if solution.status != 0:
        raise ValueError(f"basis pursuit has no solution: {solution.message}")
    return np.asarray(solution.x[:n] - solution.x[n:], dtype=np.float64)


def bayes_amp(
    problem: SparseProblem,
    rho_hat: float,
    sigma_x2: float = 1.0,
    *,
    damping: float = 0.7,
    max_iter: int = 3000,
) -> Floats:
    """Approximate message passing with the Bayes-optimal denoiser, told the signal's law.

    The coefficients are zero with probability 1 − ρ̂ and else Gaussian of variance σ_x²; there is no
    noise. Made for dictionaries with independent entries of zero mean; on others it may diverge, and
    then returns the last finite iterate. Each iterate is ``damping`` parts new, which at N = 400 finds
    more plans than 1.

    Examples
    --------
    >>> from l0anneal import baselines, ensembles
    >>> instance = ensembles.planted(200, 0.6, 0.2, support="fixed", random_state=1)
    >>> instance.mse(baselines.bayes_amp(instance.problem, 0.2)) < 1e-12
    True
    """
    A, y, _ = _dense(problem)
    m, n = A.shape
    scale = np.sqrt(np.mean(problem.column_norms**2))
    A = A / scale  # columns of unit norm, about
    slab = sigma_x2 * scale**2
    x, z, variance = np.zeros(n), y.copy(), rho_hat * slab
    kept = x
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for _ in range(max_iter):
            noise = max(variance * n / m, 1e-24 * slab)
            r = x + A.T @ z
            shrink = slab / (slab + noise)
            # posterior probability of the slab
            log_odds = np.log(rho_hat / (1.0 - rho_hat)) + 0.5 * np.log(noise / (slab + noise))
            log_odds = log_odds + 0.5 * shrink * r**2 / noise
            p = 0.5 * (1.0 + np.tanh(0.5 * log_odds))
            mean = p * shrink * r
            spread = float(np.mean(p * shrink * noise + p * (1.0 - p) * (shrink * r) ** 2))
            step = damping * (mean - x)
            x = x + step
            variance += damping * (spread - variance)
            z = z + damping * (y - A @ x + z * (spread / noise * n / m) - z)
            if not np.all(np.isfinite(x)) or not np.all(np.isfinite(z)):
                break
            kept = x
            if float(step @ step) <= 1e-26 * float(x @ x):
                break
    return kept / scale


def _dense(problem: SparseProblem) -> tuple[Floats, Floats, Floats]:
    """A and y as dense arrays, and the column norms with 1 in place of 0."""
    if problem.A is None or problem.y is None:
        raise ValueError("this needs the dictionary itself, not only its Gram matrix")
    A = problem.A.toarray() if scipy.sparse.issparse(problem.A) else np.asarray(problem.A)
    scale = np.where(problem.column_norms > 0, problem.column_norms, 1.0)
    return A.astype(np.float64, copy=False), problem.y, scale
