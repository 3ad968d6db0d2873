"""Slow reference implementations: least squares by QR, and enumeration of all supports."""

from itertools import combinations

import numpy as np
import scipy.linalg

from l0anneal.problem.admissibility import PIVOT


def qr_energy(A, y, support):
    """Return ½‖y − A_S x‖² with the least-squares x, by QR."""
    support = np.asarray(support, dtype=int)
    if support.size == 0:
        return 0.5 * float(y @ y)
    scale = np.linalg.norm(A[:, support], axis=0)
    scale[scale == 0] = 1.0
    Q, _, _ = scipy.linalg.qr(A[:, support] / scale, mode="economic", pivoting=True)
    rank = np.linalg.matrix_rank(A[:, support] / scale)
    residual = y - Q[:, :rank] @ (Q[:, :rank].T @ y)
    return 0.5 * float(residual @ residual)


def off_span(A, support, j):
    """Return the squared distance of column j from the span of the support's others, over its norm²."""
    others = [i for i in support if i != j]
    column = A[:, j]
    length = float(column @ column)
    if length == 0:
        return 0.0
    if others:
        column = column - A[:, others] @ np.linalg.lstsq(A[:, others], column, rcond=None)[0]
    return float(column @ column) / length


def admissible(A, support):
    """Whether `off_span` of each column of the support is more than PIVOT."""
    return all(off_span(A, support, j) > PIVOT for j in support)


def enumerate_supports(A, y, k):
    """Return all admissible supports of size k, and their energies."""
    supports = [s for s in combinations(range(A.shape[1]), k) if admissible(A, s)]
    return supports, np.array([qr_energy(A, y, s) for s in supports])


def gibbs_law(energies, mu):
    """Return the probabilities ∝ exp(−μ E)."""
    weights = np.exp(-mu * (energies - energies.min()))
    return weights / weights.sum()


def random_problem(rng, m, n, kind="gaussian"):
    """Return a small dictionary of the given kind, and a signal."""
    A = rng.standard_normal((m, n))
    if kind == "duplicates":
        A[:, 1] = A[:, 0]
        A[:, 2] = -3.0 * A[:, 3]
        A[:, 4] = 0.0
    elif kind == "low rank":
        A = A[:, : max(2, m // 2)] @ rng.standard_normal((max(2, m // 2), n))
    elif kind == "correlated":
        A += 3.0 * rng.standard_normal((m, 1))
    elif kind == "barely independent":  # some supports are admissible, some are not
        A[:, 1] = A[:, 0] + 1e-3 * A[:, 5]
        A[:, 2] = A[:, 0] + 5e-4 * A[:, 4]
    elif kind == "badly scaled":
        A *= 10.0 ** rng.uniform(-6, 6, n)
    elif kind != "gaussian":
        raise ValueError(kind)
    return A, rng.standard_normal(m)
