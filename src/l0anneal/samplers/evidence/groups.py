"""Groups of columns that enter and leave the support together, such as the dummies of one variable.

With B the columns of a group and S the support without them, let

    Γ = G_BB + λ − G_BS U G_SB,      r = b_B − G_BS x

be their Gram matrix and correlations given S. The group's weight is that of a column, with determinants
and quadratic forms in place of γ and r²/γ: it multiplies the weight of S by

    odds · det(Γ/λ)^(−1/2) · exp(½ mu rᵀΓ⁻¹r).

Inside the support, Γ⁻¹ is the block U_BB of the inverse, and Γ⁻¹r are the coefficients x_B. Groups
have one proposal each between sweeps over the other columns, in the interpreter, since they are few.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from l0anneal.samplers.evidence.chain import EvidenceChain

__all__ = ["Group", "check_groups", "flip_groups"]

Group = NDArray[np.int64]


def check_groups(groups: Any, column_norms: NDArray[np.float64]) -> tuple[Group, ...]:
    """Return groups as arrays of column indices without zero columns, or raise ValueError."""
    n_columns = column_norms.size
    checked = []
    for group in () if groups is None else groups:
        columns = np.asarray(group)
        if columns.ndim != 1 or columns.size < 2 or not np.issubdtype(columns.dtype, np.integer):
            raise ValueError(f"a group must be a list of two or more column indices; got {group!r}")
        if columns.min() < 0 or columns.max() >= n_columns:
            raise ValueError(
                f"groups must have column indices from 0 to {n_columns - 1}; got {group!r}"
            )
        checked.append(columns.astype(np.int64))
    members = np.concatenate([np.zeros(0, dtype=np.int64), *checked])
    if np.unique(members).size != members.size:
        raise ValueError("groups must not share columns, nor name a column twice")
    usable = (group[column_norms[group] > 0] for group in checked)
    return tuple(group for group in usable if group.size > 1)


def flip_groups(chain: EvidenceChain, rng: np.random.Generator) -> None:
    """Propose once for each group that it enters, or leaves, the support."""
    groups = chain.model.prior.groups
    chain.workspace.complete()
    for i in rng.permutation(len(groups)):
        _flip(chain, groups[i], rng)


def _flip(chain: EvidenceChain, group: Group, rng: np.random.Generator) -> None:
    w = chain.workspace
    is_inside = bool(np.isin(group[0], w.inside_columns))
    if not is_inside and w.size + group.size > chain.largest:
        return
    if is_inside:
        slots = np.array([int(np.flatnonzero(w.inside_columns == j)[0]) for j in group])
        inverse, x = w.inverse[np.ix_(slots, slots)], w.coefficients[slots]
        gamma = np.linalg.inv(inverse)
        change = 0.5 * float(x @ gamma @ x)  # of the energy
        units = chain.n_units - 1
    else:
        rows = np.array([chain.problem.gram_row(int(j)) for j in group])
        cross = rows[:, w.inside_columns]
        gamma = rows[:, group] + (w.diagonal[group] - 1.0) * np.eye(group.size)
        gamma -= cross @ w.inverse @ cross.T
        r = chain.problem.unit_correlation[group] - cross @ w.coefficients
        change = -0.5 * float(r @ np.linalg.solve(gamma, r))
        units = chain.n_units
    ridge = chain.temperature / chain.slab
    gain = chain.size_odds[units] - 0.5 * (
        float(np.linalg.slogdet(gamma)[1]) - group.size * math.log(ridge)
    )
    base = chain.problem.unit_signal + w.unit_energy
    if chain.half:
        fit = -chain.half * math.log1p(max(change / base, -1.0 + 1e-15))
    else:
        fit = -change / chain.temperature
    log_ratio = (-gain if is_inside else gain) + fit
    if math.log(rng.random()) >= log_ratio:
        return
    if is_inside:
        for j in group:
            w.remove(int(j))
        return
    w.make_room(group.size)
    for i, j in enumerate(group):
        if not w.add(int(j)):  # not admissible
            for added in group[:i]:
                w.remove(int(added))
            return
