"""What the caller knows: prior probabilities, groups, columns always included, dominant columns."""

import numpy as np
import pytest

from l0anneal import SparseProblem, diagnose, evidence_anneal


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 40))
    return A, A[:, [5, 20]] @ [2.0, -1.0] + 0.5 * rng.standard_normal(60)


def drawn(result):
    """Return how often each column is in a draw."""
    every = np.arange(result.inclusion_probability.size)
    return result.draws.weight @ result.draws.contains(every)


@pytest.mark.parametrize("copies", [1e-4, pytest.param(3e-4, marks=pytest.mark.slow)])
def test_probabilities_are_those_of_the_draws_for_near_copies(copies):
    rng = np.random.default_rng(0)
    B, y = rng.standard_normal((50, 20)), rng.standard_normal(50)
    B[:, 7] = B[:, 3] + copies * (y + 0.1 * rng.standard_normal(50))
    result = evidence_anneal(SparseProblem(B, y), random_state=0)
    # the standard error of a fraction p of n independent draws is at most 1/(2 √n)
    error = 0.5 / np.sqrt(result.effective_sample_size)
    np.testing.assert_allclose(drawn(result), result.inclusion_probability, atol=4 * error)


@pytest.mark.parametrize("noise", [0.005, 0.00005])
def test_of_two_equal_dominant_columns_neither_is_certain(data, noise):
    A, _ = data
    A[:, 6] = A[:, 5]
    y = A[:, 5] + noise * np.random.default_rng(1).standard_normal(60)
    p = evidence_anneal(SparseProblem(A, y), random_state=0).inclusion_probability
    assert p[5] + p[6] == pytest.approx(1.0, abs=0.05)
    assert 0.2 < p[5] < 0.8


def test_of_equal_columns_in_an_exact_representation_neither_is_certain(data):
    A, _ = data
    A[:, 6] = -A[:, 5]
    result = evidence_anneal(SparseProblem(A, A[:, [5, 20]] @ [2.0, -1.0]), random_state=0)
    assert result.state == "found"
    np.testing.assert_array_equal(result.inclusion_probability[[5, 6, 20]], [0.5, 0.5, 1.0])
    assert sorted(sorted(s.columns.tolist()) for s in result.credible_sets()) == [[5, 6], [20]]


def test_a_column_that_fits_by_chance_does_not_dominate():
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((2, 300)), rng.standard_normal(2)
    assert evidence_anneal(SparseProblem(A, y), random_state=0).inclusion_probability.max() < 0.5


@pytest.mark.parametrize("offset", [1e5, 1e7])
def test_a_dominant_column_at_a_fixed_size(data, offset):
    A, y = data
    problem = SparseProblem(np.column_stack((A, np.ones(60))), y + offset)
    result = evidence_anneal(problem, 3, random_state=0)
    np.testing.assert_array_equal(result.support, [5, 20, 40])
    assert result.noise_variance == pytest.approx(0.25, rel=0.5)


@pytest.mark.parametrize("offset", [1e6, 1e7, 1e9])
def test_a_dominant_column_in_a_gram_matrix_is_doubtful(data, offset):
    """The Gram matrix is too coarse for the rest of the signal, and it cannot be projected."""
    A, y = data
    A, y = np.column_stack((A, np.ones(60))), y + offset
    gram = SparseProblem.from_gram(A.T @ A, A.T @ y, float(y @ y), 60)
    assert diagnose(evidence_anneal(gram, random_state=0)).verdict == "doubtful"


class TestPriorProbabilities:
    def test_zero_excludes_a_column_also_from_exact_and_dominant_fits(self, data):
        A, y = data
        rho = np.full(40, 0.1)
        rho[5] = 0.0
        exact = A[:, [5, 20]] @ [2.0, -1.0]
        for signal in (y, exact, A[:, 5] + 1e-4 * y):
            result = evidence_anneal(SparseProblem(A, signal), rho=rho, random_state=0)
            assert result.inclusion_probability[5] == 0.0
            assert 5 not in result.support

    def test_one_includes_a_column(self, data):
        A, y = data
        rho = np.full(40, 0.1)
        rho[[0, 1]] = 1.0
        result = evidence_anneal(SparseProblem(A, y), rho=rho, random_state=0)
        np.testing.assert_array_equal(result.support, [0, 1, 5, 20])
        with pytest.raises(ValueError, match="always_include"):
            evidence_anneal(SparseProblem(A, y), 1, rho=rho)

    def test_a_size_beyond_the_possible_columns_is_refused(self, data):
        with pytest.raises(ValueError, match="at most 0, the number of columns with rho above 0"):
            evidence_anneal(SparseProblem(*data), 2, rho=np.zeros(40))


class TestGroups:
    def test_dummies_of_two_variables(self):
        rng = np.random.default_rng(0)
        first, second = rng.integers(4, size=(2, 120))
        X = np.column_stack((np.eye(4)[first], np.eye(4)[second], rng.standard_normal((120, 6))))
        y = np.array([0.0, 2.0, -2.0, 1.0])[first] + X[:, 9] + 0.5 * rng.standard_normal(120)
        problem = SparseProblem(X - X.mean(axis=0), y - y.mean())
        groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
        result = evidence_anneal(problem, groups=groups, random_state=0)
        p = result.inclusion_probability
        assert np.all(p[[0, 1, 2, 3, 9]] > 0.9)
        assert np.all(p[4:8] < 0.5)

    def test_a_member_without_any_sample(self, data):
        A, y = data
        A[:, 6] = 0.0
        result = evidence_anneal(SparseProblem(A, y), groups=[[5, 6, 7]], random_state=0)
        np.testing.assert_allclose(result.inclusion_probability[[5, 6, 7]], [1, 0, 1], atol=0.01)

    def test_all_columns_in_groups_and_a_beta_prior(self, data):
        A, y = data
        groups = [list(range(10)), list(range(10, 20))]
        result = evidence_anneal(
            SparseProblem(A[:, :20], y), rho=(1.0, 1.0), groups=groups, random_state=0
        )
        assert np.all((result.draws.rho > 0) & (result.draws.rho < 1))

    def test_an_exact_representation_has_whole_groups(self, data):
        A, _ = data
        problem = SparseProblem(A, A[:, 5] + A[:, 20])
        result = evidence_anneal(problem, groups=[[5, 6, 7]], random_state=0)
        np.testing.assert_array_equal(result.support, [5, 6, 7, 20])


class TestSmallProblems:
    @pytest.mark.parametrize("shape", [(1, 1), (20, 1), (1, 5), (3, 2)])
    def test_shapes(self, shape):
        rng = np.random.default_rng(0)
        A = rng.standard_normal(shape)
        for y in (A[:, 0] * 1e3 + rng.standard_normal(shape[0]), rng.standard_normal(shape[0])):
            result = evidence_anneal(SparseProblem(A, y), random_state=0)
            assert np.all((result.inclusion_probability >= 0) & (result.inclusion_probability <= 1))

    def test_every_column_included_leaves_nothing_to_choose(self):
        A = np.random.default_rng(0).standard_normal((20, 3))
        with pytest.raises(ValueError, match="nothing to choose"):
            evidence_anneal(SparseProblem(A, A[:, 0]), always_include=[0, 1, 2])

    def test_included_columns_use_up_the_size(self):
        rng = np.random.default_rng(0)
        A = np.column_stack((rng.standard_normal((30, 5)), np.ones(30)))
        y = 1e6 + A[:, 1] + rng.standard_normal(30)
        result = evidence_anneal(SparseProblem(A, y), 1, always_include=[0], random_state=0)
        np.testing.assert_array_equal(result.support, [0])


class TestDraws:
    @pytest.mark.parametrize("n_draws", [501, 2000])
    def test_a_run_with_a_number_of_draws_replays(self, data, n_draws):
        problem = SparseProblem(*data)
        first = evidence_anneal(problem, n_draws=n_draws, random_state=0)
        again = evidence_anneal(problem, schedule=first.schedule, random_state=0)
        np.testing.assert_array_equal(again.inclusion_probability, first.inclusion_probability)
        assert len(again.draws) == len(first.draws)
        assert again.effective_sample_size <= len(again.draws)

    def test_few_draws_are_doubtful(self, data):
        problem = SparseProblem(*data)
        few = evidence_anneal(problem, n_draws=4, random_state=0)
        assert diagnose(few).verdict == "doubtful"
        assert diagnose(evidence_anneal(problem, random_state=0)).verdict == "agreed"
