"""Random instances of the paper: a Gaussian dictionary and a signal with or without a plan.

Everywhere M = round(α N) and K = round(ρ N). The dictionary has A_ij ~ N(0, 1/N).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from l0anneal._blas import one_blas_thread
from l0anneal.problem import SparseProblem
from l0anneal.seeds import RandomState, seed_of

__all__ = ["Instance", "noise_only", "planted"]


@dataclass(frozen=True, eq=False)
class Instance:
    """A random instance: y = A x̂ + ξ, with its truth and its seed."""

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
        """Where the truth is not zero."""
        return np.flatnonzero(self.truth)

    def size(self, rho: float) -> int:
        """K = round(ρ N)."""
        return round(rho * self.truth.size)

    def mse(self, coef: NDArray[np.float64]) -> float:
        """(1/N) ‖x̂ − coef‖²."""
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
) -> Instance:
    """Draw a planted instance of the paper.

    Parameters
    ----------
    n_columns : int
        N.
    alpha : float
        M / N, in (0, 1] for the paper; any positive number is allowed.
    rho_hat : float
        Fraction of non-zero entries of the truth.
    sigma_x2, sigma_xi2 : float
        Variances of the non-zero entries of the truth and of the noise.
    random_state : None, int, SeedSequence or Generator
        One seed, one instance.
    support : {"bernoulli", "fixed"}
        Each entry non-zero with probability ρ̂, as in the paper, or exactly round(ρ̂ N) of them.

    Examples
    --------
    >>> from l0anneal import ensembles
    >>> instance = ensembles.planted(100, 0.5, 0.1, support="fixed", random_state=0)
    >>> instance.A.shape, instance.support.size
    ((50, 100), 10)
    """
    if not n_columns >= 1:
        raise ValueError(f"n_columns must be ≥ 1; got {n_columns}")
    if not alpha > 0 or round(alpha * n_columns) < 1:
        raise ValueError(f"alpha · n_columns must give at least one row; got alpha = {alpha}")
    if not 0 <= rho_hat <= 1:
        raise ValueError(f"rho_hat is a fraction, between 0 and 1; got {rho_hat}")
    if not (sigma_x2 >= 0 and sigma_xi2 >= 0):
        raise ValueError(f"variances must be ≥ 0; got {sigma_x2} and {sigma_xi2}")
    if support not in ("bernoulli", "fixed"):
        raise ValueError(f'support is "bernoulli" or "fixed"; got {support!r}')
    seed = seed_of(random_state)
    rng = np.random.default_rng(seed)
    n, m = n_columns, round(alpha * n_columns)
    A = rng.standard_normal((m, n)) / np.sqrt(n)
    if support == "fixed":
        chosen = np.zeros(n, dtype=bool)
        chosen[rng.permutation(n)[: round(rho_hat * n)]] = True
    else:
        chosen = rng.random(n) < rho_hat
    truth = np.where(chosen, np.sqrt(sigma_x2) * rng.standard_normal(n), 0.0)
    with one_blas_thread():
        y = A @ truth + np.sqrt(sigma_xi2) * rng.standard_normal(m)
    return Instance(A, y, truth, seed)


def noise_only(
    n_columns: int, alpha: float, sigma_xi2: float = 1.0, random_state: RandomState = None
) -> Instance:
    """Draw the paper's case without a planted solution: y is pure noise, the truth is zero."""
    return planted(n_columns, alpha, 0.0, 0.0, sigma_xi2, random_state)
