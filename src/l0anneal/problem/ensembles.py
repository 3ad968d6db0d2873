"""Random instances of the paper: a Gaussian dictionary, and a planted signal or pure noise.

Everywhere M = round(α N) and K = round(ρ N). The dictionary has A_ij ~ N(0, 1/N), or, with spatial
coupling, variances that differ between blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.seeds import RandomState, seed_of
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Instance", "noise_only", "planted", "seeded"]


@dataclass(frozen=True, eq=False)
class Instance:
    """A random instance y = A x̂ + ξ of a problem.

    Parameters
    ----------
    A, y : ndarrays of shape (M, N) and (M,)
        The dictionary and the signal.
    truth : ndarray of shape (N,)
        The planted signal x̂.
    seed : int
        The seed that the instance was drawn with.

    See Also
    --------
    l0anneal.ensembles.planted : Draw a problem with a planted signal.
    l0anneal.ensembles.noise_only : Draw a problem without a signal.
    l0anneal.Sweep : Run solvers on many instances.

    Examples
    --------
    >>> from l0anneal import ensembles
    >>> instance = ensembles.planted(20, 0.5, 0.1, support="fixed", random_state=0)
    >>> instance.support.size, instance.mse(instance.truth)
    (2, 0.0)
    """

    A: NDArray[np.float64]
    y: NDArray[np.float64]
    truth: NDArray[np.float64]
    seed: int

    @cached_property
    def problem(self) -> SparseProblem:
        """The problem (A, y)."""
        return SparseProblem(self.A, self.y)

    @property
    def support(self) -> NDArray[np.int64]:
        """The planted support: the columns where the truth is not zero."""
        return np.flatnonzero(self.truth)

    def size(self, rho: float) -> int:
        """Return K = round(ρ N)."""
        return round(rho * self.truth.size)

    def mse(self, coef: NDArray[np.float64]) -> float:
        """Return the mean squared error (1/N) ‖x̂ − coef‖²."""
        return float(np.mean((self.truth - coef) ** 2))


def planted(
    n_columns: int,
    alpha: float,
    rho_hat: float,
    sigma_x2: float = 1.0,
    sigma_xi2: float = 0.0,
    random_state: RandomState = None,
    *,
    support: Literal["bernoulli", "fixed"] = "bernoulli",
    dictionary: Literal["gaussian", "ar1", "mean", "dct", "pairs"] = "gaussian",
) -> Instance:
    """Draw a planted instance of the paper, or one with another dictionary.

    Parameters
    ----------
    n_columns : int
        N.
    alpha : float
        M / N. The paper has 0 < α ≤ 1; any positive number is allowed.
    rho_hat : float
        Fraction of non-zero entries of the truth.
    sigma_x2, sigma_xi2 : float
        Variances of the non-zero entries of the truth and of the noise.
    random_state : None, int, SeedSequence or Generator
        The same seed gives the same instance.
    support : {"bernoulli", "fixed"}
        Whether each entry of the truth is non-zero with probability ρ̂, as in the paper, or exactly
        round(ρ̂ N) entries are.
    dictionary : {"gaussian", "ar1", "mean", "dct", "pairs"}
        "gaussian" has independent Gaussian entries, as in the paper; "ar1" has neighbouring columns
        correlated by 0.7; "mean" has entries whose mean equals their standard deviation; "dct" has
        random rows of the orthonormal discrete cosine transform; "pairs" has columns correlated in
        pairs by 0.9. The mean square of the entries is 1/N, except for "mean", where 1/N is the
        variance.

    See Also
    --------
    l0anneal.ensembles.noise_only : Draw a problem without a signal.
    l0anneal.ensembles.seeded : Plant a signal in a seeded dictionary.
    l0anneal.theory.ReplicaSymmetric : What theory predicts for large problems of this kind.

    Examples
    --------
    >>> from l0anneal import ensembles
    >>> instance = ensembles.planted(100, 0.5, 0.1, support="fixed", random_state=0)
    >>> instance.A.shape, instance.support.size
    ((50, 100), 10)
    """
    _check(n_columns, alpha, rho_hat, sigma_x2, sigma_xi2, support)
    seed = seed_of(random_state)
    rng = np.random.default_rng(seed)
    A = _dictionary(dictionary, round(alpha * n_columns), n_columns, rng)
    return _plant(A, rho_hat, sigma_x2, sigma_xi2, support, rng, seed)


def _dictionary(kind: str, m: int, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if kind == "dct":
        if m > n:
            raise ValueError(
                f'a "dct" dictionary needs at most as many rows as columns; got {m} × {n}: '
                "choose alpha ≤ 1"
            )
        from scipy.fft import dct

        rows = np.sort(rng.choice(n, m, replace=False))
        return np.asarray(dct(np.eye(n), norm="ortho", axis=0)[rows])
    A = rng.standard_normal((m, n))
    if kind == "ar1":
        for j in range(1, n):
            A[:, j] = 0.7 * A[:, j - 1] + np.sqrt(1 - 0.7**2) * A[:, j]
    elif kind == "mean":
        A += 1.0
    elif kind == "pairs":
        A[:, 1::2] = 0.9 * A[:, 0 : n - n % 2 : 2] + np.sqrt(1 - 0.9**2) * A[:, 1::2]
    elif kind != "gaussian":
        raise ValueError(
            f"dictionary must be 'gaussian', 'ar1', 'mean', 'dct' or 'pairs'; got {kind!r}"
        )
    return A / np.sqrt(n)


def noise_only(
    n_columns: int, alpha: float, sigma_xi2: float = 1.0, random_state: RandomState = None
) -> Instance:
    """Draw an instance without a planted signal, as in the paper: y is noise, the truth is zero.

    Parameters
    ----------
    n_columns, alpha, sigma_xi2, random_state
        As in `planted`.

    Returns
    -------
    Instance

    See Also
    --------
    l0anneal.ensembles.planted : Draw a problem with a planted signal.
    l0anneal.ensembles.Instance : What is returned.

    Examples
    --------
    >>> from l0anneal import ensembles
    >>> instance = ensembles.noise_only(20, 0.5, random_state=0)
    >>> instance.A.shape, bool(instance.truth.any())
    ((10, 20), False)
    """
    return planted(n_columns, alpha, 0.0, 0.0, sigma_xi2, random_state)


def seeded(
    n_columns: int,
    alpha: float,
    rho_hat: float,
    sigma_x2: float = 1.0,
    sigma_xi2: float = 0.0,
    random_state: RandomState = None,
    *,
    alpha_seed: float = 1.0,
    n_blocks: int = 4,
    backward: float = 1.0,
    forward: float = 0.5,
    support: Literal["bernoulli", "fixed"] = "bernoulli",
) -> Instance:
    """Draw a planted instance with a seeded, spatially coupled dictionary.

    Columns and rows are each divided into a chain of ``n_blocks`` blocks. The entries where rows of
    block p meet columns of block p have variance 1, those of block p − 1 variance ``backward`` and those
    of block p + 1 variance ``forward``; all others are zero. The first block, the seed, has so many rows
    that its part of the truth is easy to find. The other blocks then follow one after another, each
    helped by the one before. There are M = round(α N) rows in all, as many as in `planted`.

    Parameters
    ----------
    n_columns, alpha, rho_hat, sigma_x2, sigma_xi2, random_state, support
        As in `planted`.
    alpha_seed : float
        Rows per column in the seed block, at least ``alpha``.
    n_blocks : int
        Length of the chain, at least 2.
    backward, forward : float
        Variances of the coupling to the previous and to the next block.

    See Also
    --------
    l0anneal.ensembles.planted : The same without a seed in the dictionary.
    l0anneal.ensembles.Instance : What is returned.

    Notes
    -----
    The variances in each row are scaled to have the mean 1/N, as in `planted`, so that the signal has
    the same strength in every block and temperatures have the same meaning.

    Examples
    --------
    >>> from l0anneal import ensembles
    >>> instance = ensembles.seeded(80, 0.75, 0.5, random_state=0)
    >>> instance.A.shape, bool(instance.A[0, 40:].any())
    ((60, 80), False)
    """
    _check(n_columns, alpha, rho_hat, sigma_x2, sigma_xi2, support)
    if not 2 <= n_blocks <= n_columns:
        raise ValueError(f"n_blocks must be between 2 and n_columns = {n_columns}; got {n_blocks}")
    if not (backward >= 0 and forward >= 0):
        raise ValueError(f"backward and forward must be ≥ 0; got {backward} and {forward}")
    m = round(alpha * n_columns)
    seed_rows = round(alpha_seed * n_columns / n_blocks)
    if alpha_seed < alpha or m - seed_rows < n_blocks - 1:
        raise ValueError(
            f"alpha_seed must be at least alpha = {alpha} and leave a row for every other block; "
            f"got {alpha_seed}"
        )
    seed = seed_of(random_state)
    rng = np.random.default_rng(seed)
    bulk = np.arange(m - seed_rows) * (n_blocks - 1) // (m - seed_rows) + 1
    row_block = np.concatenate((np.zeros(seed_rows, dtype=np.int64), bulk))
    column_block = np.arange(n_columns) * n_blocks // n_columns
    step = column_block[None, :] - row_block[:, None]
    variance = np.select([step == 0, step == -1, step == 1], [1.0, backward, forward], 0.0)
    variance /= variance.sum(axis=1, keepdims=True)
    A = rng.standard_normal((m, n_columns)) * np.sqrt(variance)
    return _plant(A, rho_hat, sigma_x2, sigma_xi2, support, rng, seed)


def _check(
    n_columns: int, alpha: float, rho_hat: float, sigma_x2: float, sigma_xi2: float, support: str
) -> None:
    if not n_columns >= 1:
        raise ValueError(f"n_columns must be ≥ 1; got {n_columns}")
    if not alpha > 0 or round(alpha * n_columns) < 1:
        raise ValueError(
            f"alpha must be positive and round(alpha · n_columns) at least 1; got alpha = {alpha} "
            f"with n_columns = {n_columns}"
        )
    if not 0 <= rho_hat <= 1:
        raise ValueError(f"rho_hat must be a fraction between 0 and 1; got {rho_hat}")
    if not (sigma_x2 >= 0 and sigma_xi2 >= 0):
        raise ValueError(
            f"the variances sigma_x2 and sigma_xi2 must be ≥ 0; got {sigma_x2} and {sigma_xi2}"
        )
    if support not in ("bernoulli", "fixed"):
        raise ValueError(f"support must be 'bernoulli' or 'fixed'; got {support!r}")


def _plant(
    A: NDArray[np.float64],
    rho_hat: float,
    sigma_x2: float,
    sigma_xi2: float,
    support: str,
    rng: np.random.Generator,
    seed: int,
) -> Instance:
    """Draw the truth and the noise for a dictionary."""
    m, n = A.shape
    if support == "fixed":
        chosen = np.isin(np.arange(n), rng.permutation(n)[: round(rho_hat * n)])
    else:
        chosen = np.less(rng.random(n), rho_hat)
    truth = np.where(chosen, np.sqrt(sigma_x2) * rng.standard_normal(n), 0.0)
    with one_blas_thread():
        y = A @ truth + np.sqrt(sigma_xi2) * rng.standard_normal(m)
    return Instance(A, y, truth, seed)
