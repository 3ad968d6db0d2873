"""What the chains of a search have in common, kept with its result for a diagnosis.

The fits f_a = A x_a of the chains are compared, and not their coefficients, so that the numbers
depend neither on the units of the columns nor on which of several nearly equal columns was chosen.
Let

    D = ⟨½‖f_a − f_b‖²⟩,   R = ⟨‖y − f_a‖²⟩,   Q = ‖y‖² − R

be means over pairs of chains and over chains: by how much the fits differ, what they leave, and
what they explain. The *disagreement* is D / min(Q, R). Since D = Q − ⟨f_a·f_b⟩ = R − ⟨(y − f_a)·(y
− f_b)⟩, it is 0 if all fits are the same, and 1 if either the fits or the residuals have nothing in
common. Where all chains share columns that dwarf the others (`problem.dominant`), Q is what they
explain beside these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from l0anneal.engine.workspace import Workspace
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.chance import EXACT, exact_columns
from l0anneal.problem.dominant import dominant_columns
from l0anneal.problem.fits import losses, partial_correlations, rounding, spread_of_fits, triangular
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Comparison", "Excluded", "compare_chains"]

DROP = 1e-2  # a dominant column leaves at most this fraction of what was left before it
RELATED = 0.5  # correlation from which on columns can stand in for each other
DUPLICATE = 1e-13  # squared distance at which unit columns are equal up to rounding
WORTHWHILE = 0.1  # fraction of the energy that an excluded support must gain to be reported
CLOSE = 1.0 - 0.5 * PIVOT  # correlation above which columns cannot be chosen together
BLOCK = 2**22  # elements of the Gram matrix that are compared at a time

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Excluded:
    """A better support that was not considered because its columns are nearly dependent.

    Attributes
    ----------
    columns : tuple of int
        The columns that are nearly dependent.
    energy : float
        ½‖y − Ax‖² of the support with these columns.
    """

    columns: tuple[int, ...]
    energy: float


@dataclass(frozen=True)
class Comparison:
    """What the chains of a search have in common; see the module's docstring.

    Attributes
    ----------
    disagreement : float or None
        0 if all chains have the same fit, 1 if they have nothing in common; None for one chain.
    n_exact : int
        How many columns of the best support represent the signal exactly and not by chance; 0 if
        none do.
    dominant : tuple of int
        Columns that all chains share and that dwarf all others.
    left : float
        The fraction of ‖y‖² that the dominant columns leave.
    resolution : float
        The smallest change of the energy that the search could see, as a fraction of ‖y‖².
    groups : tuple of tuples of int
        Columns that stand in for each other: correlated, and chosen by different chains.
    excluded : Excluded or None
        A better support that was not considered because its columns are nearly dependent.
    """

    disagreement: float | None
    n_exact: int
    dominant: tuple[int, ...]
    left: float
    resolution: float
    groups: tuple[tuple[int, ...], ...]
    excluded: Excluded | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold; `from_dict` is the exact inverse."""
        excluded = self.excluded and [list(self.excluded.columns), self.excluded.energy]
        return vars(self) | {"excluded": excluded}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Comparison:
        """Make a comparison from what `to_dict` returned."""
        excluded = data["excluded"] and Excluded(tuple(data["excluded"][0]), data["excluded"][1])
        columns = {
            "dominant": tuple(data["dominant"]),
            "groups": tuple(tuple(group) for group in data["groups"]),
        }
        return cls(**data | columns | {"excluded": excluded})


def compare_chains(
    problem: SparseProblem,
    supports: Sequence[Indices],
    energies: Sequence[float] | NDArray[np.float64],
    resolution: float,
) -> Comparison:
    """Compare the supports of independent chains.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary and the signal.
    supports : sequence of ndarrays of int
        The support of each chain.
    energies : sequence of float
        Their energies.
    resolution : float
        The smallest change of the energy that the search could see, in the caller's units.

    Examples
    --------
    >>> import numpy as np
    >>> problem = SparseProblem(np.eye(3), [3.0, 2.0, 1.0])
    >>> supports = [np.array([0, 1]), np.array([0, 2])]
    >>> energies = [problem.energy(support) for support in supports]
    >>> round(compare_chains(problem, supports, energies, 0.0).disagreement, 3)
    1.0
    """
    signal = problem.signal_energy or 1.0
    residuals = 2.0 * np.asarray(energies) / signal
    best = supports[int(np.argmin(residuals))]
    common = _common(supports)
    dominant, left = np.zeros(0, dtype=np.int64), 1.0
    if np.min(residuals) <= DROP:
        dominant, left = dominant_columns(problem, common, DROP)
    exact = exact_columns(problem, best) if np.min(residuals) <= EXACT else None
    return Comparison(
        disagreement=_disagreement(problem, supports, left, float(np.mean(residuals))),
        n_exact=0 if exact is None else exact.size,
        dominant=tuple(dominant.tolist()),
        left=left,
        resolution=resolution / signal,
        groups=_groups(problem, supports, common),
        excluded=None if exact is not None else _excluded(problem, best, float(np.min(energies))),
    )


def _common(supports: Sequence[Indices]) -> Indices:
    """Return the columns that all supports share."""
    columns, counts = np.unique(np.concatenate([*supports]), return_counts=True)
    return np.asarray(columns[counts == len(supports)])


def _disagreement(
    problem: SparseProblem, supports: Sequence[Indices], left: float, residual: float
) -> float | None:
    if len(supports) < 2:
        return None
    spread = spread_of_fits(problem, supports)
    if spread <= rounding(problem):
        return 0.0
    explained = left - residual
    return spread / (min(explained, residual) if explained > 0 else residual)


def _groups(
    problem: SparseProblem, supports: Sequence[Indices], common: Indices
) -> tuple[tuple[int, ...], ...]:
    """Return groups of correlated columns of which different chains chose different ones.

    The correlations are those after regression on the columns that all chains share. With f dimensions
    left, random columns have correlations of about 1/√f, and those below 3/√f do not count.
    """
    moved = np.setdiff1d(np.concatenate([*supports]), common)
    freedom = problem.n_samples - common.size
    if moved.size == 0 or freedom < 10:
        return ()
    chosen = np.array([np.isin(moved, support) for support in supports], dtype=np.float64)
    without = chosen.T @ (1.0 - chosen) > 0  # whether a chain has column i and not column j
    limit = max(RELATED, 3.0 / np.sqrt(freedom))
    related = np.abs(partial_correlations(problem, moved, common)) > limit
    _, label = connected_components(related & without & without.T, directed=False)
    groups = [moved[label == g].tolist() for g in np.unique(label)]
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _excluded(problem: SparseProblem, support: Indices, energy: float) -> Excluded | None:
    """Look for a better support than one with this energy among those that are not admissible.

    Candidates are columns nearly in the span of the support, which could not enter, and pairs of
    nearly equal columns outside, which could not enter together. The gain is estimated from the
    tableau, and the best candidates are computed.
    """
    k = support.size
    if not problem.gram_is_ready or not 0 < k < problem.n_columns:
        return None
    workspace = Workspace(problem, k)
    try:
        workspace.begin_at(support)
    except ValueError:  # found in a problem without its dominant columns
        return None
    outside, gamma, r = (
        workspace.outside_columns,
        workspace.outside_distances,
        workspace.outside_correlations,
    )
    correlation = np.zeros(problem.n_columns)
    correlation[outside] = r
    candidates: list[tuple[float, tuple[int, ...]]] = []
    blocked = (gamma > DUPLICATE) & (gamma <= PIVOT)
    candidates += [(r[p] ** 2 / gamma[p], (int(outside[p]),)) for p in np.flatnonzero(blocked)]
    free = np.zeros(problem.n_columns, dtype=bool)
    free[outside[gamma > PIVOT]] = True
    for i, j, g in _nearly_equal(problem):
        if free[i] and free[j] and k > 1:
            difference = correlation[i] - np.sign(g) * correlation[j]
            candidates.append((difference**2 / (2.0 - 2.0 * abs(g)), (i, j)))
    worthwhile = 2.0 * WORTHWHILE * energy / problem.unit_energy
    for gain, columns in sorted(candidates, reverse=True)[:3]:
        if gain > worthwhile:
            found = _with(problem, support, columns)
            if found is not None and found.energy < (1.0 - WORTHWHILE) * energy:
                return found
    return None


def _nearly_equal(problem: SparseProblem) -> list[tuple[int, int, float]]:
    """Return pairs of columns that are too close to each other to be chosen together, but not equal."""
    pairs = []
    width = max(1, BLOCK // problem.n_columns)
    for start in range(0, problem.n_columns, width):
        block = problem.gram[start : start + width]
        close = block > CLOSE
        itself = np.count_nonzero(np.diagonal(close, offset=start))
        if block.min() >= -CLOSE and np.count_nonzero(close) == itself:
            continue  # quickly, without an array of absolute values
        for i, j in np.argwhere(np.abs(block) > CLOSE):
            g = float(block[i, j])
            if start + i < j and 1.0 - abs(g) > 0.5 * DUPLICATE:
                pairs.append((int(start + i), int(j), g))
    return pairs


def _with(problem: SparseProblem, support: Indices, columns: tuple[int, ...]) -> Excluded | None:
    """Return what a support becomes if columns replace those that explain least, unless admissible."""
    new = np.concatenate((support, columns))
    try:
        while new.size > support.size:
            loss = losses(*triangular(problem, new))
            loss[np.isin(new, columns)] = np.inf
            new = np.delete(new, np.argmin(loss))
        R, _ = triangular(problem, new)
        inverse = scipy.linalg.solve_triangular(R, np.eye(new.size))
        dependent = 1.0 / np.sum(inverse**2, axis=1) <= 10.0 * PIVOT
        admissible = np.all(np.sum(inverse**2, axis=1) < 1.0 / PIVOT)
        energy = problem.energy(new)
    except (ValueError, np.linalg.LinAlgError):  # AᵀA is singular on these columns
        return None
    if admissible:
        return None
    return Excluded(tuple(np.sort(new[dependent]).tolist()), energy)
