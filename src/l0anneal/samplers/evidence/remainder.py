"""Columns that are part of every support: those the caller names, and those that dwarf all others.

Such columns are projected out (`problem.dominant`), the posterior of what is left is sampled, and they
are put back into its result. Their coefficients have a flat prior. A column counts as dwarfing all
others if it leaves less than `DWARFED` of ‖y‖² by itself, such as a constant column for a signal with a
large offset: its coefficient would otherwise set the scale of the slab, and hide every other one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from l0anneal.problem.dominant import Remainder, without
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.draws import Draws
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.result import fitted

__all__ = ["put_back", "remainder_of"]

DWARFED = 1e-4
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def remainder_of(problem: SparseProblem, always_include: Indices) -> Remainder | None:
    """Return the problem without the columns that are part of every support; None if there are none."""
    rest = None
    if always_include.size:
        rest = without(problem, always_include)
        if rest is None:
            raise ValueError(
                "always_include needs the columns of A in memory: this problem was given by its Gram "
                "matrix, or is too large; project the columns out of A and y before"
            )
    while True:
        j = _dwarfing(problem if rest is None else rest.problem)
        if j is None:
            return rest
        removed = np.array([j]) if rest is None else rest.whole(np.array([j]))
        less = without(problem, removed)
        if less is None or less.problem.signal_energy == 0.0:
            return rest
        rest = less


def _dwarfing(problem: SparseProblem) -> int | None:
    """Return the column that leaves less than `DWARFED` of the signal, if there is one."""
    if not problem.signal_energy:
        return None
    share = problem.unit_correlation**2 * (problem.unit_energy / problem.signal_energy)
    j = int(np.argmax(share))
    return j if share[j] > 1.0 - DWARFED else None


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
        draw_arrays=arrays,
        candidates=np.concatenate([rest.removed, rest.candidates[result.candidates]]),
        candidate_correlation=scipy.linalg.block_diag(np.eye(q), result.candidate_correlation),
    )


def _draws_with(
    draws: Draws,
    problem: SparseProblem,
    rest: Remainder,
    regress: object,
    R: Floats,
    rng: np.random.Generator,
) -> tuple[dict[str, NDArray[np.generic]], Floats]:
    """Return the draws with the removed columns, and the coefficients of those columns."""
    q, n_draws = rest.removed.size, len(draws)
    inverse = np.linalg.pinv(R)
    columns, values, coefs = [], [], np.empty((n_draws, q))
    for i in range(n_draws):
        cut = slice(draws.start[i], draws.start[i + 1])
        chosen = rest.candidates[draws.columns[cut]]
        fit = problem.A[:, chosen] @ draws.coef[cut] if chosen.size else 0.0
        noise = np.sqrt(draws.noise_variance[i]) * (inverse @ rng.standard_normal(R.shape[0]))
        coefs[i] = regress(problem.y - fit) + noise  # type: ignore[operator]
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
