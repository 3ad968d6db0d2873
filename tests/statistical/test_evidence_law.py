"""The evidence flip leaves the spike-and-slab posterior invariant, sizes included."""

from itertools import chain, combinations

import numpy as np
import pytest
from scipy import stats

from l0anneal import SparseProblem
from l0anneal.moves.evidence_flip import evidence_flip
from l0anneal.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.moves.outcome import OUTSIDE, SLOT
from l0anneal.rng import stream
from l0anneal.workspace import Workspace
from tests.statistical.law import LEVEL

N, M = 6, 5
T, SLAB, RHO = 0.3, 0.8, 0.4


def instance():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((M, N))
    A /= np.linalg.norm(A, axis=0)
    return A, A[:, :2] @ [1.0, -1.0] + 0.5 * rng.standard_normal(M)


def posterior(A, y, sizes):
    """Straight from the model: y ~ N(0, T + σ² A_S A_Sᵀ), each column with probability ρ."""
    supports = list(chain.from_iterable(combinations(range(N), k) for k in sizes))
    logs = []
    for S in supports:
        covariance = T * np.eye(M) + SLAB * A[:, list(S)] @ A[:, list(S)].T
        density = stats.multivariate_normal(np.zeros(M), covariance).logpdf(y)
        logs.append(density + len(S) * np.log(RHO) + (N - len(S)) * np.log(1 - RHO))
    weights = np.exp(np.array(logs) - max(logs))
    return supports, weights / weights.sum()


def counts(A, y, largest, start, n_samples, supports, temperature=T, kernel=evidence_flip):
    problem = SparseProblem(A, y)
    workspace = Workspace(problem, 2)  # too small: it has to grow
    if start:
        workspace.fill(start, np.arange(N))
    unit = problem.unit_energy
    workspace.set_ridge(temperature / SLAB)
    state = stream(np.random.SeedSequence(5))
    index = {S: i for i, S in enumerate(supports)}
    found = np.zeros(len(supports))
    for _ in range(n_samples):
        tally = np.zeros(4, dtype=np.int64)
        tally[SLOT] = tally[OUTSIDE] = -1
        arguments = (unit / temperature, np.log(temperature / SLAB), np.log(RHO / (1 - RHO)))
        workspace.run(kernel, state, *arguments, largest, 10 * N, tally)
        found[index[tuple(int(j) for j in workspace.support)]] += 1
    return found


@pytest.mark.parametrize("kernel", [evidence_flip, evidence_flip_direct], ids=["tableau", "direct"])
@pytest.mark.parametrize(
    ("largest", "start", "sizes"),
    [(N, 0, range(N + 1)), (3, 0, range(4)), (0, 2, [2])],
    ids=["any size", "at most three", "two"],
)
def test_posterior_over_supports(largest, start, sizes, kernel):
    A, y = instance()
    supports, law = posterior(A, y, sizes)
    found = counts(A, y, largest, start, 10_000, supports, kernel=kernel)
    expected = law * found.sum()
    common = expected > 10
    assert common.sum() > 8
    observed = np.append(found[common], found[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    keep = wanted > 0
    assert stats.chisquare(observed[keep], wanted[keep]).pvalue > LEVEL


def test_the_test_can_fail():
    A, y = instance()
    supports, law = posterior(A, y, range(N + 1))
    found = counts(A, y, N, 0, 10_000, supports, temperature=1.15 * T)
    expected = law * found.sum()
    common = expected > 10
    assert (
        stats.chisquare(
            found[common], expected[common] * found[common].sum() / expected[common].sum()
        ).pvalue
        < 1e-6
    )
