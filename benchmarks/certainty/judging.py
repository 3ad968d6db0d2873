"""The statistics of the exam: calibration, log loss, paired differences, corrections for many tests.

Columns of one data set depend on each other, so that every error bar here is one over data sets.
"""

import numpy as np
from scipy import stats

EDGES = np.array([0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0])
LEAST = 20.0
FLOOR = 1e-4  # probabilities nearer than this to 0 or 1 cost as much as this: draws are finite
BAND = (0.025, 0.975)


def by_bin(probabilities, truths):
    """Return an array (3, data sets, bins): how many are true, the sum of p, and how many columns.

    ``probabilities`` and ``truths`` have one array for each data set.
    """
    n_bins = EDGES.size - 1
    sums = np.zeros((3, len(probabilities), n_bins))
    for i, (p, truth) in enumerate(zip(probabilities, truths, strict=True)):
        bins = np.clip(np.searchsorted(EDGES, p, side="right") - 1, 0, n_bins - 1)
        for row, weights in zip(sums, (np.asarray(truth, dtype=float), p, np.ones_like(p))):
            row[i] = np.bincount(bins, weights, n_bins)
    return sums


def merged(sums):
    """Put neighbouring bins together until each is expected to hold `LEAST` columns of either kind.

    Where fewer are expected, as where p is nearly 1, none may turn up, and a variance measured over
    the data sets would be zero.
    """
    total = sums.sum(axis=1)
    scarce = np.minimum(total[1], total[2] - total[1])
    groups, held = [[]], 0.0
    for b in range(total.shape[1]):
        if held >= LEAST:
            groups.append([])
            held = 0.0
        groups[-1].append(b)
        held += scarce[b]
    if held < LEAST and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return np.stack([sums[:, :, group].sum(axis=2) for group in groups], axis=2)


def hotelling(d):
    """Test whether the mean of the rows of ``d`` is zero: Hotelling's F, and its p-value.

    With n rows of p numbers, mean d̄ and covariance S, T² = n d̄ᵀS⁻¹d̄, and (n − p)/(p(n − 1)) T² has
    the F distribution with p and n − p degrees of freedom: S is measured on the same few rows, which
    a χ² test of T² neglects.
    """
    n, p = d.shape
    if n <= p:
        raise ValueError(f"{n} data sets and {p} bins: the test needs more data sets than bins")
    mean = d.mean(axis=0)
    t_squared = n * mean @ np.linalg.solve(np.atleast_2d(np.cov(d.T)), mean)
    f = (n - p) / (p * (n - 1)) * t_squared
    return f, float(stats.f.sf(f, p, n - p))


def calibration_test(sums):
    """Test all bins jointly: Hotelling's F, the number of merged bins, and the p-value.

    Row i of the differences holds Σ (truth − p) over the columns of data set i in each bin. Its mean
    is zero if the probabilities are right, whatever the dependence within a data set.
    """
    sums = merged(sums)
    f, chance = hotelling(sums[0] - sums[1])
    return f, sums.shape[2], chance


def holm(p_values):
    """Return p-values corrected for their number by Holm's step-down rule."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values)
    steps = p_values[order] * np.arange(p_values.size, 0, -1)
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def resampled(n, n_boot=2000):
    """Return rows of numbers of data sets, drawn with replacement; always the same."""
    return np.random.default_rng(0).integers(n, size=(n_boot, n))


def reliability(sums):
    """Return, by bin, the columns, the mean p, the true fraction and its 95 % bootstrap band."""
    total = sums.sum(axis=1)
    boot = sums[:, resampled(sums.shape[1])].sum(axis=2)
    said, true, low, high = np.full((4, total.shape[1]), np.nan)
    for b in np.flatnonzero(total[2]):
        said[b], true[b] = total[1, b] / total[2, b], total[0, b] / total[2, b]
        drawn = boot[2, :, b] > 0
        low[b], high[b] = np.quantile(boot[0, drawn, b] / boot[2, drawn, b], BAND)
    return total[2].astype(int), said, true, low, high


def log_loss(p, truth):
    """Return −Σ log of the probability given to what is true, over the columns of a data set."""
    p = np.clip(p, FLOOR, 1 - FLOOR)
    return -float(np.log(np.where(truth, p, 1 - p)).sum())


def ratio_band(a, b):
    """Return Σa/Σb over data sets, and its 95 % bootstrap band."""
    a, b = np.asarray(a), np.asarray(b)
    rows = resampled(a.size)
    low, high = np.quantile(a[rows].sum(axis=1) / b[rows].sum(axis=1), BAND)
    return a.sum() / b.sum(), low, high


def with_error(values):
    """Return the mean and its standard error."""
    values = np.asarray(values, dtype=float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def one_sided(values):
    """Return the chance of a mean this low if the true mean is zero (normal approximation)."""
    mean, error = with_error(values)
    if error == 0:
        return 0.5 if mean == 0 else float(mean > 0)
    return float(stats.norm.cdf(mean / error))


def average_precision(p, truth):
    """Return the mean precision at the true columns; tied columns are one step of the ranking."""
    order = np.argsort(-p, kind="stable")
    last = np.append(np.diff(p[order]) != 0, True)
    hits = np.cumsum(np.asarray(truth)[order])[last]
    shown = np.flatnonzero(last) + 1
    gained = np.diff(hits, prepend=0)
    return float(np.sum(gained * hits / shown) / max(1, hits[-1]))
