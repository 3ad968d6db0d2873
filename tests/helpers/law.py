"""The test of a stationary law that every move and every sampler has to pass.

A sampler runs on a problem that is small enough to enumerate all supports. Its samples are thinned until
they are practically independent, and their counts are compared with the exact law by a χ² test.
"""

import numpy as np
from scipy import stats

from helpers.reference import enumerate_supports, gibbs_law

LEVEL = 1e-3  # seeds are fixed, so a correct sampler always passes; a wrong one is far below


def law_p_value(A, y, k, mu, supports):
    """Return the p-value of ``supports`` (sorted rows) as independent samples of the Gibbs law."""
    known, energies = enumerate_supports(A, y, k)
    return counts_p_value(known, gibbs_law(energies, mu), supports)


def sizes_p_value(A, y, sizes, mu, weights, supports):
    """Return the p-value for the law ∝ exp(−μ E(S) + w_|S|) on supports of several sizes."""
    known, logs = [], []
    for k, weight in zip(sizes, weights):
        of_size, energies = enumerate_supports(A, y, k)
        known += of_size
        logs.append(weight - mu * energies)
    return counts_p_value(known, gibbs_law(-np.concatenate(logs), 1.0), supports)


def counts_p_value(known, law, supports):
    """Return the p-value of ``supports`` as independent draws from ``law``."""
    index = {support: i for i, support in enumerate(known)}
    counts = np.zeros(len(known))
    for support in supports:
        counts[index[tuple(int(j) for j in support)]] += (
            1  # a KeyError means an inadmissible support
        )
    expected = law * len(supports)
    # rare supports are pooled, so that the χ² approximation holds
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = np.searchsorted(np.cumsum(expected), 10.0) + 1
    rare = max(rare, np.searchsorted(expected, 10.0))
    counts = np.append(counts[:rare].sum(), counts[rare:])
    expected = np.append(expected[:rare].sum(), expected[rare:])
    assert expected.size >= 5, "too few supports have any weight for the test to detect anything"
    return float(stats.chisquare(counts, expected).pvalue)


def nearly_independent(energies):
    """Whether the autocorrelation of a thinned series is within three standard errors of zero."""
    e = energies - energies.mean()
    correlation = float(np.mean(e[1:] * e[:-1]) / np.mean(e * e))
    return abs(correlation) < 3.0 / np.sqrt(e.size)
