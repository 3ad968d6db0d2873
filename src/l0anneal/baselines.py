"""Other methods for the same problems, by scikit-learn and SciPy, and message passing.

Each function returns a dense vector of coefficients. All but `refit` need the columns themselves
and raise ValueError for a problem that is given by its Gram matrix.
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
    """Orthogonal matching pursuit, which adds the column most correlated with the residual.

    Columns are scaled to unit norm and passed to `sklearn.linear_model.orthogonal_mp_gram`.

    Parameters
    ----------
    problem : SparseProblem
        Dictionary and signal.
    n_nonzero : int
        Number of columns to choose.

    Returns
    -------
    ndarray of shape (n_columns,)
        Coefficients.

    See Also
    --------
    l0anneal.baselines.l1 : The lasso with k columns.
    l0anneal.sparse_encode : Exchanges that improve on this pursuit.
    l0anneal.baselines.refit : Least squares on a support.

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
    """The LASSO, min ½‖y − Ax‖² + λ‖x‖₁, at the smallest λ with a given number of nonzeros.

    `sklearn.linear_model.lars_path_gram` computes the path down to the λ at which one column more
    is about to enter.

    Parameters
    ----------
    problem : SparseProblem
        Dictionary and signal.
    n_nonzero : int
        Number of nonzero coefficients.

    Returns
    -------
    ndarray of shape (n_columns,)
        Coefficients.

    See Also
    --------
    l0anneal.baselines.basis_pursuit : The limit without noise.
    l0anneal.baselines.refit : Least squares on a support.
    l0anneal.theory.l1.lasso : What theory predicts.

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
            # some steps drop a column, so k columns may need more than k steps
            alphas, _, path = lars_path_gram(
                correlation, gram, n_samples=1, method="lasso", max_iter=steps
            )
            sizes = np.count_nonzero(path, axis=0)
            if sizes.max() > k or len(alphas) <= steps:
                break
            steps += 1 + k // 8
    if sizes.max() < k:
        raise ValueError(
            f"the l1 path ends at {sizes.max()} columns; got n_nonzero={k}. Choose fewer columns"
        )
    # the last knot with k columns before the next column enters
    first_beyond = np.flatnonzero(sizes > k)
    end = int(first_beyond[0]) if first_beyond.size else len(sizes)
    return np.asarray(path[:, np.flatnonzero(sizes[:end] == k)[-1]], dtype=np.float64)


def refit(problem: SparseProblem, coef: Floats) -> Floats:
    """Least squares on the support of ``coef``.

    Parameters
    ----------
    problem : SparseProblem
        Dictionary and signal.
    coef : ndarray of shape (n_columns,)
        Coefficients; the columns where they are nonzero form the support.

    Returns
    -------
    ndarray of shape (n_columns,)
        Coefficients.

    See Also
    --------
    l0anneal.baselines.omp : Choose columns greedily.
    l0anneal.baselines.l1 : Choose columns by the lasso.

    Examples
    --------
    >>> from l0anneal import baselines, ensembles
    >>> problem = ensembles.noise_only(60, 0.5, random_state=1).problem
    >>> coef = baselines.l1(problem, 12)
    >>> bool(((baselines.refit(problem, coef) != 0) == (coef != 0)).all())
    True
    """
    support = np.flatnonzero(coef)
    out = np.zeros(problem.n_columns)
    out[support] = problem.least_squares(support)[0]
    return out


def basis_pursuit(problem: SparseProblem) -> Floats:
    """Basis pursuit, the x of smallest ‖x‖₁ with Ax = y, by `scipy.optimize.linprog` (HiGHS).

    Parameters
    ----------
    problem : SparseProblem
        Dictionary and signal.

    Returns
    -------
    ndarray of shape (n_columns,)
        Coefficients.

    See Also
    --------
    l0anneal.baselines.l1 : The lasso with k columns.
    l0anneal.theory.l1.reconstruction_limit : Where it recovers the signal.

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
        raise ValueError(
            f"basis pursuit found no x with Ax = y; y must be in the span of A ({solution.message})"
        )
    return np.asarray(solution.x[:n] - solution.x[n:], dtype=np.float64)


def bayes_amp(
    problem: SparseProblem,
    rho_hat: float,
    sigma_x2: float = 1.0,
    *,
    damping: float = 0.7,
    max_iter: int = 3000,
) -> Floats:
    """Approximate message passing with the Bayes-optimal denoiser for a known prior.

    The prior says that a coefficient is zero with probability 1 − ρ̂ and Gaussian of variance σ_x²
    otherwise, and that there is no noise. The method is made for dictionaries with independent
    entries of zero mean. On others it may diverge; the last finite iterate is then returned.

    Parameters
    ----------
    problem : SparseProblem
        Dictionary and signal.
    rho_hat : float
        Fraction ρ̂ of nonzero coefficients, 0 < ρ̂ < 1.
    sigma_x2 : float, default=1
        Variance σ_x² of the nonzero coefficients.
    damping : float, default=0.7
        Weight of the new estimate in each iterate. At N = 400 the default recovers more planted
        signals than 1, which is no damping.
    max_iter : int, default=3000
        Largest number of iterations.

    Returns
    -------
    ndarray of shape (n_columns,)
        Coefficients.

    See Also
    --------
    l0anneal.evidence_anneal : Needs no knowledge of the signal.
    l0anneal.theory.bayes.message_passing : What theory predicts.

    Examples
    --------
    >>> from l0anneal import baselines, ensembles
    >>> instance = ensembles.planted(200, 0.6, 0.2, support="fixed", random_state=1)
    >>> instance.mse(baselines.bayes_amp(instance.problem, 0.2)) < 1e-12
    True
    """
    if not 0.0 < rho_hat < 1.0:
        raise ValueError(
            f"rho_hat is a fraction and must lie strictly between 0 and 1; got {rho_hat!r}"
        )
    A, y, _ = _dense(problem)
    m, n = A.shape
    scale = np.sqrt(np.mean(problem.column_norms**2))
    A = A / scale  # the columns then have about unit norm
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
    """Return A and y as dense arrays, and the column norms with 1 in place of 0."""
    if problem.A is None or problem.y is None:
        raise ValueError(
            "this method needs the columns, and the problem has only their Gram matrix; "
            "make it as SparseProblem(A, y)"
        )
    A = problem.A.toarray() if scipy.sparse.issparse(problem.A) else np.asarray(problem.A)
    scale = np.where(problem.column_norms > 0, problem.column_norms, 1.0)
    return A.astype(np.float64, copy=False), problem.y, scale
