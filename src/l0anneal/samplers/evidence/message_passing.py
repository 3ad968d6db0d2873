"""Message passing: approximate the posterior of a spike-and-slab model by iteration.

Two simple models are made to agree on the moments of the coefficients: one in which they are
independent, each zero or Gaussian, and one in which they are Gaussian and explain y through A. This
is the vector form of approximate message passing (Rangan, Schniter and Fletcher; by other names,
expectation consistency and adaptive TAP). The entries of A need not be independent: any singular
values are allowed, but the singular vectors should be generic. ρ, the slab's variance σ² and the
noise are learned on the way by expectation maximisation, as the evidence sampler learns them.

Message passing takes milliseconds where Monte Carlo takes seconds, and in a noiseless problem its
success can be checked: the columns that it names represent y exactly. In other problems it is a
guess without a guarantee. It is therefore only used to seed `evidence_anneal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.scaled import COLUMN_BYTES
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Beliefs", "pass_messages", "set_up_flops"]

DAMPING = 0.8  # weight of the new message in each update
LEARNING = 0.5  # the same for ρ, σ² and the noise
FIRST_DENSITY = 0.2  # ρ at the beginning, as a fraction of M/N
RANK = 1e-10  # eigenvalues of AᵀA that are smaller, relative to the largest, count as zero
STILL = 1e-20  # squared relative change that counts as convergence
STALL = 50  # give up if the noise falls by less than a thousandth in this many steps
TINY = 1e-11
Floats = NDArray[np.float64]


class Beliefs(NamedTuple):
    """The result of message passing; variances are in the engine's units."""

    probability: Floats  # that each column belongs to the support
    log: list[tuple[float, float, float, float]]  # by step: noise variance, mean size, ρ, σ²


def set_up_flops(problem: SparseProblem) -> float:
    """Estimate the operations of `pass_messages` before its first step; ∞ if it cannot begin."""
    n = problem.n_columns
    if _by_columns(problem):
        few = problem.A.shape[0]
    elif problem.gram_is_whole:
        few = n
    else:
        return math.inf
    return float(10 * few**3 + 4 * few**2 * n)


def _by_columns(problem: SparseProblem) -> bool:
    """Whether AAᵀ is smaller than AᵀA and can be computed."""
    A = problem.A
    return A is not None and A.shape[0] < A.shape[1] and 8 * math.prod(A.shape) <= COLUMN_BYTES


def pass_messages(
    problem: SparseProblem, max_iter: int = 500, more: Callable[[], bool] = lambda: True
) -> Beliefs:
    """Pass messages until nothing changes, ``max_iter`` times, or until ``more()`` is false.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import ensembles
    >>> instance = ensembles.planted(200, 0.6, 0.2, support="fixed", random_state=1)
    >>> beliefs = pass_messages(instance.problem)
    >>> bool(np.array_equal(np.flatnonzero(beliefs.probability > 0.5), instance.support))
    True
    """
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _pass(problem, *_spectrum(problem), max_iter, more)


def _spectrum(problem: SparseProblem) -> tuple[Floats, Floats]:
    """Return the non-zero eigenvalues of AᵀA and, as rows, its eigenvectors.

    They are computed from the smaller of AᵀA and AAᵀ.
    """
    if _by_columns(problem):
        outer = np.zeros((problem.A.shape[0],) * 2)
        for _, block in problem.unit_blocks():
            outer += block @ block.T
        values, vectors = np.linalg.eigh(outer)
        kept = values > RANK * values[-1]
        left = vectors[:, kept].T / np.sqrt(values[kept])[:, None]
        V = np.hstack([left @ block for _, block in problem.unit_blocks()])
    else:
        values, vectors = np.linalg.eigh(problem.gram)
        kept = values > RANK * values[-1]
        V = np.ascontiguousarray(vectors[:, kept].T)
    return values[kept], V


def _pass(
    problem: SparseProblem,
    values: Floats,
    V: Floats,
    max_iter: int,
    more: Callable[[], bool],
) -> Beliefs:
    n, m = problem.n_columns, problem.n_samples
    c = V @ problem.unit_correlation
    total = problem.signal_energy / problem.unit_energy
    out_of_reach = max(0.0, total - float(np.sum(c**2 / values)))
    mean_square = total / m
    rho = FIRST_DENSITY * min(m, n) / n
    slab = total / (rho * n)
    noise = 1e-3 * mean_square
    # the message to the Gaussian model, and the one back: means and precisions
    to, to_precision = np.zeros(n), 1.0 / (rho * slab)
    back, back_precision = to, to_precision
    mean = np.zeros(n)
    log: list[tuple[float, float, float, float]] = []
    p = np.full(n, rho)
    while len(log) < max_iter and more():
        # the Gaussian model: precision AᵀA/noise + to_precision
        ridge = noise * to_precision
        projected = V @ to
        z = (c + ridge * projected) / (values + ridge)
        share = _inside((float(np.sum(ridge / (values + ridge))) + n - values.size) / n)
        fresh = (to + V.T @ (z - projected) - share * to) / (1.0 - share)
        fresh_precision = to_precision * (1.0 - share) / share
        residual = float(np.sum((c - values * z) ** 2 / values)) + out_of_reach
        spread = noise * float(np.sum(values / (values + ridge)))
        noise = max(noise + LEARNING * ((residual + spread) / m - noise), 1e-14 * mean_square)
        damping = DAMPING if log else 1.0
        back = damping * fresh + (1.0 - damping) * back
        back_precision = _mix(fresh_precision, back_precision, damping, slab)

        # the model of independent columns
        p, slab_mean, slab_variance = _denoise(back, back_precision, rho, slab)
        mean, old = p * slab_mean, mean
        variance = float(np.mean(p * slab_variance + p * (1.0 - p) * slab_mean**2))
        share = _inside(back_precision * variance)
        fresh = (mean - share * back) / (1.0 - share)
        fresh_precision = back_precision * (1.0 - share) / share
        to = damping * fresh + (1.0 - damping) * to
        to_precision = _mix(fresh_precision, to_precision, damping, slab)

        rho += LEARNING * (float(np.mean(p)) - rho)
        rho = min(max(rho, 1.0 / n), 0.95 * min(m, n) / n)
        square = float(p @ (slab_mean**2 + slab_variance)) / max(float(np.sum(p)), TINY)
        slab += LEARNING * (square - slab)
        log.append((noise, float(np.sum(p)), rho, slab))
        change = mean - old
        if not np.isfinite(slab) or float(change @ change) <= STILL * float(mean @ mean):
            break
        if len(log) >= 2 * STALL and noise > max(0.999 * log[-STALL][0], 1e-6 * mean_square):
            break
    return Beliefs(np.nan_to_num(p), log)


def _denoise(r: Floats, precision: float, rho: float, slab: float) -> tuple[Floats, Floats, float]:
    """For r = x + noise, return the probability that x ≠ 0, and its mean and variance if so."""
    noise = 1.0 / precision
    shrink = slab / (slab + noise)
    log_odds = np.log(rho / (1.0 - rho)) + 0.5 * np.log(noise / (slab + noise))
    log_odds = log_odds + 0.5 * shrink * r**2 * precision
    return 0.5 * (1.0 + np.tanh(0.5 * log_odds)), shrink * r, shrink * noise


def _inside(share: float) -> float:
    """Keep a fraction strictly between 0 and 1."""
    return min(max(share, TINY), 1.0 - TINY)


def _mix(fresh: float, old: float, damping: float, slab: float) -> float:
    """Damp a precision on the log scale, and keep it in a range that floats can represent."""
    mixed = float(fresh**damping * old ** (1.0 - damping))
    return min(max(mixed, 1e-12 / slab), 1e14 / slab)
