"""The one test of a stationary law, which every move and every sampler has to pass.

A sampler is run on a problem small enough to list all its supports. Its samples are thinned until
they are as good as independent, and their counts compared with the exact law by a χ² test.
"""

import numpy as np
from scipy import stats

from helpers.reference import enumerate_supports, gibbs_law

LEVEL = 1e-3  # seeds are fixed: a right sampler passes for ever, a wrong one is far below


def law_p_value(A, y, k, mu, supports):
    """p-value of the hypothesis that ``supports`` (rows, sorted) are independent Gibbs samples."""
    known, energies = enumerate_supports(A, y, k)
    return counts_p_value(known, gibbs_law(energies, mu), supports)


def sizes_p_value(A, y, sizes, mu, weights, supports):
    """The same for the law ∝ exp(−μ E(S) + w_|S|) on supports of several sizes."""
    known, logs = [], []
    for k, weight in zip(sizes, weights):
        of_size, energies = enumerate_supports(A, y, k)
        known += of_size
        logs.append(weight - mu * energies)
    return counts_p_value(known, gibbs_law(-np.concatenate(logs), 1.0), supports)


def counts_p_value(known, law, supports):
    """p-value of the hypothesis that ``supports`` are independent draws from ``law``."""
    index = {support: i for i, support in enumerate(known)}
    counts = np.zeros(len(known))
    for support in supports:
        counts[index[tuple(int(j) for j in support)]] += 1  # KeyError: not an admissible support
    expected = law * len(supports)
    # rare supports are taken together, so that χ² holds
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = np.searchsorted(np.cumsum(expected), 10.0) + 1
    rare = max(rare, np.searchsorted(expected, 10.0))
    counts = np.append(counts[:rare].sum(), counts[rare:])
    expected = np.append(expected[:rare].sum(), expected[rare:])
    assert expected.size >= 5, "too few supports have any weight: the test would see nothing"
    return float(stats.chisquare(counts, expected).pvalue)


def nearly_independent(energies):
    """Whether a thinned series shows no autocorrelation beyond three standard errors."""
    e = energies - energies.mean()
    correlation = float(np.mean(e[1:] * e[:-1]) / np.mean(e * e))
    return abs(correlation) < 3.0 / np.sqrt(e.size)
