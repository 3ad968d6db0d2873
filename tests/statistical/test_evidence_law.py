"""The evidence flip leaves the spike-and-slab posterior invariant, sizes included."""

from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy import stats

from helpers.law import LEVEL
from l0anneal import SparseProblem
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.evidence_flip import evidence_flip
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.moves.protocol import ACCEPTED, OUTSIDE, SLOT
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import ENERGY, SIZE
from l0anneal.engine.workspace import Workspace
from l0anneal.problem import scaled as _problem
from l0anneal.samplers.evidence.proposal import Proposal

N, M = 6, 5
T, SLAB, RHO = 0.3, 0.8, 0.4
SIZE_ODDS = np.log([0.5, 0.4, 0.7, 0.6, 0.3, 0.2, 1.0])  # of one more column, by size
COLUMN_ODDS = np.array([0.0, 0.4, -0.3, 0.0, -np.inf, 0.2])  # column 4 stays where it is
UNEVEN = Proposal.of(np.array([3.0, 0.5, 1.0, 2.0, 1.0, 0.25]))


def instance():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((M, N))
    A /= np.linalg.norm(A, axis=0)
    return A, A[:, :2] @ [1.0, -1.0] + 0.5 * rng.standard_normal(M)


def posterior(A, y, sizes, hump=0.0, collapsed=False):
    """Straight from the model: y ~ N(hump A_S s, T + σ² A_S A_Sᵀ), times the prior of S.

    If T is integrated out with a uniform log T, at fixed σ²/T, the density is that of a Student law.
    """
    candidates = [j for j in range(N) if np.isfinite(COLUMN_ODDS[j])]
    supports = list(chain.from_iterable(combinations(candidates, k) for k in sizes))
    logs = []
    for S in supports:
        covariance = T * np.eye(M) + SLAB * A[:, list(S)] @ A[:, list(S)].T
        signs = product([-1.0, 1.0], repeat=len(S) if hump else 0)
        means = [hump * A[:, list(S)[: len(s)]] @ s for s in signs]
        densities = [stats.multivariate_normal(mean, covariance).pdf(y) for mean in means]
        log = np.log(np.mean(densities))
        if collapsed:
            square = y @ np.linalg.solve(covariance, y)
            log = -0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * M * np.log(square)
        logs.append(log + SIZE_ODDS[: len(S)].sum() + COLUMN_ODDS[list(S)].sum())
    weights = np.exp(np.array(logs) - max(logs))
    return supports, weights / weights.sum()


def counts(
    A,
    y,
    largest,
    start,
    n_samples,
    supports,
    temperature=T,
    kernel=evidence_flip,
    hump=0.0,
    collapsed=False,
    proposal=UNEVEN,
):
    problem = SparseProblem(A, y)
    workspace = Workspace(problem, 2)  # too small: it has to grow
    if start:
        workspace.fill(start, np.arange(N))
    unit = problem.unit_energy
    signs = np.zeros(N)
    if hump:
        signs[workspace.support] = 1.0
    pull = temperature / SLAB * hump / np.sqrt(unit)
    workspace.set_ridge(temperature / SLAB, pull * signs)
    state = stream(np.random.SeedSequence(5))
    index = {S: i for i, S in enumerate(supports)}
    found = np.zeros(len(supports))
    for _ in range(n_samples):
        tally = np.zeros(4, dtype=np.int64)
        tally[SLOT] = tally[OUTSIDE] = -1
        half = 0.5 * M if collapsed else 0.0
        law = (unit / temperature, problem.unit_signal, half, np.log(temperature / SLAB))
        prior = (SIZE_ODDS, COLUMN_ODDS, *proposal)
        workspace.run(kernel, state, *law, *prior, pull, signs, largest, 10 * N, tally)
        found[index[tuple(int(j) for j in workspace.support)]] += 1
    return found


@pytest.mark.parametrize("kernel", [evidence_flip, evidence_flip_direct], ids=["tableau", "direct"])
@pytest.mark.parametrize(
    ("largest", "start", "sizes"),
    [(N, 0, range(N)), (3, 0, range(4)), (0, 2, [2])],
    ids=["any size", "at most three", "two"],
)
@pytest.mark.parametrize(
    ("hump", "collapsed"),
    [(0.0, False), (1.2, False), (0.0, True)],
    ids=["one hump", "two humps", "noise integrated out"],
)
def test_posterior_over_supports(largest, start, sizes, kernel, hump, collapsed):
    A, y = instance()
    supports, law = posterior(A, y, sizes, hump, collapsed)
    found = counts(
        A, y, largest, start, 10_000, supports, kernel=kernel, hump=hump, collapsed=collapsed
    )
    expected = law * found.sum()
    common = expected > 10
    assert common.sum() >= 8
    observed = np.append(found[common], found[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    keep = wanted > 0
    assert stats.chisquare(observed[keep], wanted[keep]).pvalue > LEVEL


def test_the_test_can_fail():
    A, y = instance()
    _, humps = posterior(A, y, range(N), hump=1.2)
    supports, law = posterior(A, y, range(N))
    assert 0.5 * np.abs(law - humps).sum() > 0.1
    found = counts(A, y, N, 0, 10_000, supports, temperature=1.15 * T)
    expected = law * found.sum()
    common = expected > 10
    assert (
        stats.chisquare(
            found[common], expected[common] * found[common].sum() / expected[common].sum()
        ).pvalue
        < 1e-6
    )


@pytest.mark.parametrize("kernel", [evidence_flip, evidence_flip_direct], ids=["tableau", "direct"])
def test_with_two_humps_the_tableau_stays_true_and_rows_on_demand_change_nothing(
    kernel, monkeypatch
):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 50)), rng.standard_normal(30)
    mu, ridge, pull = 60.0, 0.5, 0.3
    runs = []
    for held in ("the Gram matrix", "columns", "a few rows of the Gram matrix"):
        if held != "the Gram matrix":
            monkeypatch.setattr(_problem, "WHOLE_GRAM_BYTES", 0)
        if held == "a few rows of the Gram matrix":
            monkeypatch.setattr(_problem, "COLUMN_BYTES", 0)
            monkeypatch.setattr(_problem, "ROW_CACHE_BYTES", 0)
        problem = SparseProblem(A, y)
        workspace, signs = Workspace(problem, 2), np.zeros(50)
        workspace.set_ridge(ridge)
        state = stream(np.random.SeedSequence(1))
        tally = new_tally()
        prior = (np.full(21, -1.0), np.zeros(50), *Proposal.of(np.ones(50)))
        law = (mu, problem.unit_signal, 0.0, np.log(ridge), *prior, pull, signs)
        workspace.run(kernel, state, *law, 20, 3000, tally)
        t = workspace.tableau
        assert tally[ACCEPTED] > 300
        np.testing.assert_array_equal(np.flatnonzero(signs), workspace.support)
        np.testing.assert_allclose(t.b, problem.unit_correlation + pull * signs, atol=1e-13)
        fresh = Workspace(problem, 50)
        for j in t.inside[: t.counts[SIZE]]:
            assert fresh.add(int(j))
        fresh.set_ridge(ridge, pull * signs)
        k = int(t.counts[SIZE])
        np.testing.assert_allclose(t.x[:k], fresh.tableau.x[:k], atol=1e-10)
        np.testing.assert_allclose(t.values[ENERGY], fresh.tableau.values[ENERGY], atol=1e-10)
        workspace.complete()
        by_column = np.full((2, 50), np.nan)
        for row, tableau in zip(by_column, (workspace.tableau, fresh.tableau)):
            row[tableau.outside[: 50 - k]] = tableau.r[: 50 - k]
        np.testing.assert_allclose(*by_column, atol=1e-10)
        runs.append(signs.copy())
    np.testing.assert_array_equal(runs[1], runs[0])
    np.testing.assert_array_equal(runs[2], runs[0])
