"""Credible sets from joint draws, and the weights of chains that disagree."""

import numpy as np
import pytest

from l0anneal import SparseProblem, evidence_anneal
from l0anneal.samplers.evidence import package
from l0anneal.samplers.evidence.draws import Draws, find_sets
from l0anneal.samplers.evidence.package import apart
from l0anneal.samplers.evidence.posterior import Posterior


def draws_of(inside):
    """Return draws whose supports are the rows of a boolean matrix."""
    n = len(inside)
    columns = np.concatenate([np.flatnonzero(row) for row in inside])
    hyper = np.ones((4, n))
    start = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    chain, weight = np.zeros(n, dtype=np.int64), np.full(n, 1.0 / n)
    return Draws(chain, weight, start, columns, np.ones(columns.size), *hyper, float(n))


def sets_of(inside, correlation, coverage=0.95):
    inside = np.asarray(inside)
    draws = draws_of(inside)
    p = inside.mean(axis=0)
    found = find_sets(draws, np.arange(p.size), p, correlation, coverage, 0.5)
    return [(sorted(s.columns.tolist()), s.probability) for s in found]


@pytest.fixture
def uniform():
    return np.random.default_rng(0).random((4000, 4))


def test_columns_that_stand_in_for_each_other_are_one_set(uniform):
    """Columns 0 and 1 take turns; 2 is nearly certain by itself; 3 is likely, and in no set."""
    first = uniform[:, 0] < 0.6
    inside = np.column_stack((first, ~first, uniform[:, 1] < 0.98, uniform[:, 2] < 0.6))
    correlation = np.eye(4)
    correlation[0, 1] = correlation[1, 0] = -0.9
    found = sets_of(inside, correlation)
    assert [columns for columns, _ in found] == [[2], [0, 1]]
    assert found[0][1] == pytest.approx(0.98, abs=0.01)
    assert found[1][1] == 1.0


def test_probabilities_are_not_added_up(uniform):
    """Four correlated columns of probability .4 each: the sum is 1.6, P(at least one) is 1 − .6⁴."""
    inside = uniform < 0.4
    correlation = np.full((4, 4), 0.6) + 0.4 * np.eye(4)
    assert sets_of(inside, correlation) == []
    [(columns, probability)] = sets_of(inside, correlation, coverage=0.8)
    assert columns == [0, 1, 2, 3]
    assert probability == pytest.approx(1 - 0.6**4, abs=0.03)


def test_uncorrelated_columns_are_no_set(uniform):
    first = uniform[:, 0] < 0.5
    inside = np.column_stack((first, ~first))
    assert sets_of(inside, np.eye(2)) == []
    assert len(sets_of(inside, np.full((2, 2), 0.9))) == 1


@pytest.mark.slow
def test_sets_cover_as_often_as_they_say():
    """In data from the model, a set of 95 % has a true column in at least 95 % of all cases.

    Where chains mix too slowly, sets are refused; that must be rare.
    """
    rng = np.random.default_rng(0)
    covers, refused = [], 0
    for seed in range(12):
        A = rng.standard_normal((80, 30))
        A[:, 1::2] = 0.9 * A[:, ::2] + 0.436 * A[:, 1::2]  # pairs with a correlation of .9
        truth = rng.choice(30, 3, replace=False)
        y = A[:, truth].sum(axis=1) + rng.standard_normal(80)
        result = evidence_anneal(SparseProblem(A, y), random_state=seed)
        if result.effective_sample_size < 400:
            with pytest.raises(ValueError, match="at least 400 effective draws"):
                result.credible_sets()
            refused += 1
            continue
        covers += [np.isin(found.columns, truth).any() for found in result.credible_sets()]
    assert refused <= 1
    # with a coverage of .95, fewer than this many of 30 or more sets cover in 1 of 1000 cases
    assert len(covers) >= 30
    assert np.sum(covers) >= 0.95 * len(covers) - 3.1 * np.sqrt(0.95 * 0.05 * len(covers))


class FakeChain:
    """A chain with given probabilities and evidence."""

    settled, draws = True, [None] * 500

    def __init__(self, p, log_mass):
        self.p, self.mass = np.asarray(p), log_mass

    def average(self, name):
        return self.p

    def log_mass(self):
        return self.mass


@pytest.mark.parametrize(("gap", "disagreement"), [(0.0, 0.9), (3.0, 0.9), (9.0, 0.9), (50.0, 0.0)])
def test_a_mode_is_dropped_only_by_a_wide_margin(gap, disagreement):
    posterior = Posterior(None, None, None)
    posterior.chains = [FakeChain([0.95, 0.05], 0.0), FakeChain([0.05, 0.95], -gap)]
    assert posterior.disagreement == pytest.approx(disagreement)
    odds = np.exp(-gap)
    np.testing.assert_allclose(posterior.weights, [1 / (1 + odds), odds / (1 + odds)])


def test_chains_that_agree_have_the_same_weight():
    posterior = Posterior(None, None, None)
    posterior.chains = [FakeChain([0.9, 0.1], 0.0), FakeChain([0.85, 0.15], -5.0)]
    np.testing.assert_array_equal(posterior.weights, [0.5, 0.5])
    assert posterior.disagreement == pytest.approx(0.05)


@pytest.mark.parametrize(("shift", "differ"), [(0.0, False), (0.2, False), (0.8, True)])
def test_chains_whose_sizes_or_evidence_are_apart_disagree(shift, differ):
    """Chains of the same law are not apart, and a shift by .8 standard deviations is seen."""
    rng = np.random.default_rng(0)
    chains = [3.0 * rng.standard_normal(210), 3.0 * (rng.standard_normal(210) + shift)]
    assert apart(chains, 0.5) == differ
    assert not apart([np.full(5, 4.0), np.full(5, 4.2)], 0.5)  # below the resolution
    assert apart([np.full(5, 4.0), np.full(5, 5.0)], 0.5)


def test_a_difference_in_size_alone_is_a_disagreement(monkeypatch):
    """No single column tells the chains apart, but their numbers of columns do."""
    rng = np.random.default_rng(1)
    problem = SparseProblem(rng.standard_normal((40, 60)), rng.standard_normal(40))
    assert evidence_anneal(problem, random_state=0).state == "noise"
    monkeypatch.setattr(package, "APART", -1.0)
    result = evidence_anneal(problem, random_state=0)
    assert result.state == "disagreed"
    assert result.disagreement < 0.15
    assert result.chain_size.shape == result.chain_log_evidence.shape == result.chain_weight.shape
    assert "chains differ" in result.summary()
    with pytest.raises(ValueError, match="the state is disagreed"):
        result.credible_sets()
