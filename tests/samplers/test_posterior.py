"""The posterior of evidence annealing against sums over all supports, straight from the model."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import logsumexp

from l0anneal import SparseProblem, evidence_anneal
from l0anneal.samplers.evidence.prior import Prior

DRAWS = 2500  # the comparison takes its tolerances from them
LOG_NOISE = np.linspace(-12.0, 8.0, 201)  # for the sum over T, in units of ⟨y²⟩


def instance(m, n, seed=0, coefs=(1.5, -1.5)):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    A[:, 2] += 1.5 * A[:, 0]  # a column that can stand in for another
    return A, A[:, : len(coefs)] @ np.array(coefs) + rng.standard_normal(m)


def by_enumeration(A, y, prior, noise=None, sizes=None):
    """Return inclusion probabilities, P(size), E(log T) and P(two humps)."""
    m, n = A.shape
    unit = A / np.where(np.linalg.norm(A, axis=0) > 0, np.linalg.norm(A, axis=0), 1.0)
    T = np.exp(LOG_NOISE) * (y @ y) / m if noise is None else np.array([noise])
    logs, labels = [], []
    for k in range(n + 1) if sizes is None else sizes:
        if k > prior.largest:
            continue
        for S in combinations(range(n), k):
            if any(0 < len(set(group) & set(S)) < len(group) for group in prior.groups):
                continue
            weight = prior.log_weight(np.array(S, dtype=np.int64))
            if not np.isfinite(weight):
                continue
            B = unit[:, list(S)]
            signs = np.array(list(product([-1.0, 1.0], repeat=k)), dtype=float)
            for g, c, log_shape in zip(*prior.shapes[:3]):
                C = np.eye(m) + (1.0 - c) * g * B @ B.T
                inverse, log_det = np.linalg.inv(C), np.linalg.slogdet(C)[1]
                shift = np.sqrt(c * g) * (signs @ B.T) if c and k else np.zeros((1, m))
                # (y − √T shift)ᵀ C⁻¹ (y − √T shift)/T, for each T and each choice of signs
                yy, ys = y @ inverse @ y, shift @ inverse @ y
                ss = np.sum(shift @ inverse * shift, axis=1)
                square = yy / T[:, None] - 2.0 * ys / np.sqrt(T)[:, None] + ss
                likelihood = -0.5 * square - 0.5 * m * np.log(T)[:, None] - 0.5 * log_det
                terms = logsumexp(likelihood, axis=1) - np.log(len(shift))
                logs.append(terms + weight + log_shape)
                labels.append((S, c))
    logs = np.array(logs)
    law = np.exp(logs - logs.max())
    law /= law.sum()
    p, size = np.zeros(n), np.zeros(n + 1)
    humps = 0.0
    for row, (S, c) in zip(law.sum(axis=1), labels):
        p[list(S)] += row
        size[len(S)] += row
        humps += row * (c > 0)
    return p, size, float(law.sum(axis=0) @ np.log(T)), humps


def compare(result, p, size, log_noise, humps, batches=20):
    """Compare with tolerances from batch means over the draws."""
    draws = result.draws
    n = p.size
    inside = draws.contains(np.arange(n)).astype(float)
    k = np.diff(draws.start)
    sizes = (k[:, None] == np.arange(n + 1)).astype(float)
    series = np.column_stack([inside, sizes, np.log(draws.noise_variance), draws.hump > 0])
    expected = np.concatenate([p, size, [log_noise, humps]])
    length = len(draws) // batches
    means = series[: batches * length].reshape(batches, length, -1).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(batches)
    # where a batch never saw an event, its frequency is known to one draw at best
    error = np.maximum(error, 1.0 / np.sqrt(len(draws)) * 0.02)
    z = (means.mean(axis=0) - expected) / error
    assert np.max(np.abs(z)) < 5.0, (z, means.mean(axis=0), expected)
    assert np.max(np.abs(result.inclusion_probability - p)) < 0.05
    return error


@pytest.mark.parametrize(
    ("m", "n"),
    [pytest.param(30, 8, marks=pytest.mark.slow), (8, 8), (5, 8)],
    ids=["tall", "square", "wide"],
)
def test_one_hump(m, n):
    A, y = instance(m, n)
    problem = SparseProblem(A, y)
    result = evidence_anneal(problem, slab="one hump", n_draws=DRAWS, random_state=1)
    expected = by_enumeration(A, y, Prior.of(problem, None, "one hump"))
    error = compare(result, *expected)
    assert np.all(error[:n] < 0.03)


@pytest.mark.parametrize(
    ("m", "n", "slab"),
    [
        (20, 4, "learned"),
        (4, 4, "two humps"),
        pytest.param(20, 5, "two humps", marks=pytest.mark.slow),
        pytest.param(4, 5, "learned", marks=pytest.mark.slow),
    ],
)
def test_two_humps(m, n, slab):
    A, y = instance(m, n)
    problem = SparseProblem(A, y)
    result = evidence_anneal(problem, slab=slab, n_draws=DRAWS, random_state=1)
    compare(result, *by_enumeration(A, y, Prior.of(problem, None, slab)))


def test_with_knowledge():
    """Probabilities by column, a known noise variance, and a column that is zero."""
    A, y = instance(12, 7)
    A[:, 6] = 0.0
    problem = SparseProblem(A, y)
    rho = np.array([0.5, 0.01, 0.3, 0.3, 0.0, 0.3, 0.5])
    prior = Prior.of(problem, rho, "one hump")
    result = evidence_anneal(
        problem, rho=rho, noise_variance=2.0, slab="one hump", n_draws=DRAWS, random_state=1
    )
    compare(result, *by_enumeration(A, y, prior, noise=2.0))
    assert result.inclusion_probability[4] == result.inclusion_probability[6] == 0.0


@pytest.mark.parametrize("noise", [None, 2.0], ids=["noise inferred", "noise known"])
def test_groups(noise):
    """Columns that enter and leave together; a group counts as one column."""
    A, y = instance(12, 7, coefs=(1.5, -1.5, 0.0, 1.0))
    problem = SparseProblem(A, y)
    groups = ([0, 3], [4, 5, 6])
    result = evidence_anneal(
        problem, groups=groups, noise_variance=noise, n_draws=DRAWS, random_state=1
    )
    prior = Prior.of(problem, None, "one hump", tuple(map(np.array, groups)))
    p, *others = by_enumeration(A, y, prior, noise=noise)
    assert 0.05 < p[4] < 0.95 or 0.05 < p[0] < 0.95
    compare(result, p, *others)
    assert result.inclusion_probability[0] == result.inclusion_probability[3]


def test_fixed_size():
    A, y = instance(12, 7)
    problem = SparseProblem(A, y)
    result = evidence_anneal(problem, 2, slab="one hump", n_draws=DRAWS, random_state=1)
    prior = Prior.of(problem, None, "one hump")
    compare(result, *by_enumeration(A, y, prior, sizes=[2]))


def test_the_comparison_can_fail():
    A, y = instance(8, 8)
    problem = SparseProblem(A, y)
    result = evidence_anneal(problem, slab="one hump", n_draws=DRAWS, random_state=1)
    other = by_enumeration(A, y, Prior.of(problem, (1.0, 1.0), "one hump"))
    with pytest.raises(AssertionError):
        compare(result, *other)
