"""Simulated summary statistics: z-scores and correlations of the same rows."""

import numpy as np

from l0anneal._util.blas import one_blas_thread


def correlated_columns(rng, m, n, kind):
    """Return standardised columns with neighbours of correlation .9 or .99, or a common factor.

    "blocks" has groups of columns that are nearly copies of each other, as in genetics.
    """
    noise = rng.standard_normal((m, n))
    if kind == "common factor":
        A = np.sqrt(0.6) * rng.standard_normal((m, 1)) + np.sqrt(0.4) * noise
    elif kind == "blocks":
        A = np.repeat(rng.standard_normal((m, -(-n // 5))), 5, axis=1)[:, :n] + 0.2 * noise
        A[:, 1] = A[:, 0]
    else:
        r = {"r = .9": 0.9, "r = .99": 0.99}[kind]
        A = noise
        for j in range(1, n):
            A[:, j] = r * A[:, j - 1] + np.sqrt(1 - r * r) * noise[:, j]
    A = A - A.mean(axis=0)
    return A / A.std(axis=0, ddof=1)


def z_scores(A, y):
    """Return the z-scores (t values) of simple regressions of y on standardised columns."""
    m = len(y)
    r = A.T @ (y - y.mean()) / ((m - 1) * y.std(ddof=1))
    return r * np.sqrt((m - 2) / (1 - r**2))


def simulated(rng, m, n, kind, n_effects=3, explained=0.5):
    """Return z, R, the columns, the signal, and the columns with effects."""
    with one_blas_thread():  # faster for small matrices on a busy machine
        return _simulated(rng, m, n, kind, n_effects, explained)


def _simulated(rng, m, n, kind, n_effects, explained):
    A = correlated_columns(rng, m, n, kind)
    support = rng.choice(n, n_effects, replace=False)
    y = A[:, support] @ (rng.choice([-1.0, 1.0], n_effects) * rng.uniform(0.5, 1.5, n_effects))
    scale = np.sqrt(explained / y.var()) if n_effects else 0.0
    y = scale * y + np.sqrt(1 - explained * bool(n_effects)) * rng.standard_normal(m)
    return z_scores(A, y), np.corrcoef(A.T), A, y, np.sort(support)
