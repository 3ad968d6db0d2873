"""Columns that are part of every support: those the caller names, and those that dwarf all others.

Such columns are projected out (`problem.dominant`), the posterior of what is left is sampled, and they
are put back into its result. Their coefficients have a flat prior. A column counts as dwarfing all
others if it leaves less than `DWARFED` of ‖y‖² by itself, which neither chance nor another column
explains, such as a constant column for a signal with a large offset: its coefficient would otherwise set
the scale of the slab, and hide every other one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from l0anneal.problem.chance import UNLIKELY, log_chance
from l0anneal.problem.dominant import Remainder, without
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.draws import Draws
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.result import fitted

__all__ = ["put_back", "remainder_of"]

DWARFED = 1e-6
RIVAL = 0.99  # if another column explains this part of the signal, it may be the one that matters
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def remainder_of(
    problem: SparseProblem,
    always_include: Indices,
    candidates: NDArray[np.bool_],
    most: int | None = None,
) -> Remainder | None:
    """Return the problem without the columns that are part of every support; None if there are none.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary and the signal.
    always_include : ndarray of int
        Columns that the caller wants in every support.
    candidates : ndarray of bool
        The columns that may be recognised as dwarfing all others.
    most : int, optional
        The largest number of columns to remove.
    """
    rest = None
    if always_include.size:
        if always_include.size == problem.n_columns:
            raise ValueError(
                "always_include names every column, so that there is nothing to choose; fit all columns "
                "by least squares"
            )
        rest = without(problem, always_include)
        if rest is None:
            raise ValueError(
                "always_include needs the columns of A in memory, and others beside them: this problem "
                "was given by its Gram matrix, is too large, or has no other independent column; "
                "project the columns out of A and y before"
            )
    while most is None or most > (0 if rest is None else rest.removed.size):
        now, where = (
            (problem, np.arange(problem.n_columns))
            if rest is None
            else (rest.problem, rest.candidates)
        )
        j = _dwarfing(now, candidates[where])
        if j is None:
            return rest
        removed = np.array([j]) if rest is None else rest.whole(np.array([j]))
        less = without(problem, removed)
        if less is None or less.problem.signal_energy == 0.0:
            return rest
        rest = less
    return rest


def _dwarfing(problem: SparseProblem, candidates: NDArray[np.bool_]) -> int | None:
    """Return the column that leaves less than `DWARFED` of the signal, if there is one."""
    if not problem.signal_energy or not candidates.any():
        return None
    share = problem.unit_correlation**2 * (problem.unit_energy / problem.signal_energy)
    j = int(np.argmax(np.where(candidates, share, -1.0)))
    left = max(1.0 - float(share[j]), 1e-16)
    by_chance = log_chance(problem.n_columns, problem.n_samples, 1, left) >= UNLIKELY
    rivals = int(np.sum(share > RIVAL))
    return j if left < DWARFED and not by_chance and rivals == 1 else None


def put_back(
    result: EvidenceResult, problem: SparseProblem, rest: Remainder, rng: np.random.Generator
) -> EvidenceResult:
    """Return the result of the original problem from that of the remainder."""
    n, q = problem.n_columns, rest.removed.size
    A, y = problem.A, problem.y
    dense = A[:, rest.removed]
    dense = np.asarray(dense.toarray() if hasattr(dense, "toarray") else dense, dtype=np.float64)
    Q, R = np.linalg.qr(dense)

    def spread(values: Floats, removed: float | Floats) -> Floats:
        whole = np.zeros((*values.shape[:-1], n))
        whole[..., rest.candidates] = values
        whole[..., rest.removed] = removed
        return whole

    def regress(residual: Floats) -> Floats:
        return np.asarray(scipy.linalg.lstsq(R, Q.T @ residual)[0])

    averaged = spread(result.averaged_coef, 0.0)
    averaged[rest.removed] = regress(y - A @ averaged)
    std = np.sqrt(result.noise_variance * np.diag(np.linalg.pinv(R.T @ R)))
    arrays = result.draw_arrays
    if result.draws is not None:
        arrays, coefs = _draws_with(result.draws, problem, rest, regress, R, rng)
        std = coefs.std(axis=0)
    return replace(
        result,
        **fitted(problem, rest.whole(result.support)),
        inclusion_probability=spread(result.inclusion_probability, 1.0),
        size_posterior=np.concatenate([np.zeros(q), result.size_posterior]),
        averaged_coef=averaged,
        coef_std=spread(result.coef_std, std),
        chain_probability=spread(result.chain_probability, 1.0),
        chain_size=result.chain_size + q,
        draw_arrays=arrays,
        candidates=np.concatenate([rest.removed, rest.candidates[result.candidates]]),
        candidate_correlation=scipy.linalg.block_diag(np.eye(q), result.candidate_correlation),
    )


def _draws_with(
    draws: Draws,
    problem: SparseProblem,
    rest: Remainder,
    regress: Callable[[Floats], Floats],
    R: Floats,
    rng: np.random.Generator,
) -> tuple[dict[str, NDArray[np.generic]], Floats]:
    """Return the draws with the removed columns, and the coefficients of those columns."""
    A, y = problem.A, problem.y
    assert A is not None
    assert y is not None
    q, n_draws = rest.removed.size, len(draws)
    inverse = np.linalg.pinv(R)
    columns, values, coefs = [], [], np.empty((n_draws, q))
    for i in range(n_draws):
        cut = slice(draws.start[i], draws.start[i + 1])
        chosen = rest.candidates[draws.columns[cut]]
        fit = np.asarray(A[:, chosen] @ draws.coef[cut])
        noise = np.sqrt(draws.noise_variance[i]) * (inverse @ rng.standard_normal(R.shape[0]))
        coefs[i] = regress(y - fit) + noise
        columns += [rest.removed, chosen]
        values += [coefs[i], draws.coef[cut]]
    arrays = {
        name: getattr(draws, name)
        for name in ("chain", "weight", "noise_variance", "rho", "signal_to_noise", "hump")
    }
    arrays["start"] = draws.start + q * np.arange(n_draws + 1)
    arrays["columns"] = np.concatenate(columns).astype(np.int64)
    arrays["coef"] = np.concatenate(values)
    return arrays, coefs
