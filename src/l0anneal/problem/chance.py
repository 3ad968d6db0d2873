"""Whether columns fit a signal exactly, and whether they could do so by chance.

Let y be a signal without structure: its direction in M dimensions is uniform. Least squares on k
given columns leaves a fraction B of ‖y‖² with the law Beta(f/2, k/2), where f = M − k. For small δ,

    P(B ≤ δ) = I_δ(f/2, k/2) ≤ δ^(f/2) (1 − δ)^min(0, k/2 − 1) / ((f/2) Β(f/2, k/2)),

since the density of B is at most t^(f/2 − 1) (1 − δ)^min(0, k/2 − 1) / Β(f/2, k/2) for t ≤ δ. There
are C(N, k) supports to choose from, so the best of them leaves less than δ with a probability of at
most C(N, k) P(B ≤ δ). If this is not small, a good fit says nothing about the columns: one degree
of freedom (k = M − 1) and a few dozen columns to choose from are enough to fit pure noise exactly.

A column can explain nearly all of ‖y‖² by itself, such as a constant column for a signal with an
offset. The rest of the signal is then a small fraction of ‖y‖² whatever the other columns are.
`exact_columns` therefore compares the residual with what is left after such dominant columns, and
asks of every number q of columns whether the others may fit the rest by chance.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.counts import log_choose
from l0anneal.problem.fits import left_after, losses, rounding, triangular
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["EXACT", "UNLIKELY", "exact_columns", "log_chance"]

EXACT = 2e-10  # an exact fit leaves at most this fraction of what the dominant columns leave
DOMINANT = 1e-3  # a dominant column leaves at most this fraction
DECISIVE = 1e6  # each column of an exact fit explains at least this many times what is left
SILENCE = 1e-22  # a residual below this fraction of ‖y‖² is a rounding error of the columns
UNLIKELY = -10.0  # log probability below which chance is ruled out


def log_chance(n_columns: int, n_samples: int, size: int, fraction: float) -> float:
    """Return the log of a bound on the probability that columns fit a structureless signal by chance.

    Parameters
    ----------
    n_columns, n_samples : int
        N, the number of columns to choose from, and M, the number of samples.
    size : int
        k, the number of columns that are chosen.
    fraction : float
        δ, the part of ‖y‖² that they leave.

    Returns
    -------
    float
        Log of the bound on the probability that some k of the N columns leave no more than δ; 0 if
        the bound exceeds 1.

    Examples
    --------
    Some 20 of 100 columns may leave 1 % of a signal with 30 samples by chance, but not with 60
    samples:

    >>> log_chance(100, 30, 20, 0.01) < -10, log_chance(100, 60, 20, 0.01) < -10
    (False, True)
    """
    a, b = 0.5 * (n_samples - size), 0.5 * size
    if a <= 0 or fraction >= 1:
        return 0.0
    if size == 0 or fraction <= 0:
        return -math.inf  # the empty support leaves everything, and any other one something
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    log_tail = a * math.log(fraction) + min(0.0, b - 1.0) * math.log1p(-fraction)
    return min(0.0, log_choose(n_columns, size) + log_tail - math.log(a) - log_beta)


def exact_columns(
    problem: SparseProblem, support: NDArray[np.int64], tolerance: float = EXACT
) -> NDArray[np.int64] | None:
    """Return the columns of a support that represent the signal exactly, and not by chance.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary and the signal.
    support : ndarray of int
        Columns that are linearly independent.
    tolerance : float
        The fraction that counts as nothing, of what dominant columns leave.

    Returns
    -------
    ndarray of int or None
        The columns whose coefficients are not zero, sorted; None if the fit is not exact, or if it
        may be one by chance.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).standard_normal((20, 30))
    >>> exact_columns(SparseProblem(A, A[:, 3] - A[:, 7]), np.array([3, 5, 7]))
    array([3, 7])
    >>> noise = np.random.default_rng(1).standard_normal(20)
    >>> exact_columns(SparseProblem(A, noise), np.arange(20)) is None
    True
    """
    if not problem.signal_energy:
        return None
    if 2.0 * problem.energy(support) > tolerance * problem.signal_energy:
        return None
    least = rounding(problem)
    support = support[losses(*triangular(problem, support)) > 100.0 * least]
    order, left = left_after(problem, support)
    if np.min(losses(*triangular(problem, order)), initial=np.inf) < DECISIVE * left[-1]:
        return None
    n, m, k = problem.n_columns, problem.n_samples, support.size
    dominant = 0
    while dominant < k and left[dominant + 1] <= DOMINANT * left[dominant]:
        dominant += 1
    if dominant == k and problem.A is None:
        return None  # the rest is a rounding error of the Gram matrix, whatever it is
    # where the dominant columns are all there is, only silence is exact
    if left[-1] > max(tolerance * left[dominant], SILENCE):
        return None
    chances = [log_chance(n - q, m - q, k - q, left[-1] / left[q]) for q in range(k)]
    return np.sort(support) if max(chances, default=0.0) < UNLIKELY else None
