"""Exact fits, and fits by chance."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from l0anneal import SparseProblem
from l0anneal.problem.chance import exact_columns, log_chance


@pytest.mark.parametrize(("m", "k"), [(6, 1), (12, 3), (12, 9), (30, 29), (40, 20)])
@pytest.mark.parametrize("fraction", [1e-3, 1e-8, 1e-20])
def test_the_bound_is_close_to_the_beta_law_of_one_support(m, k, fraction):
    exact = stats.beta.logcdf(fraction, 0.5 * (m - k), 0.5 * k)
    bound = log_chance(k, m, k, fraction)  # C(k, k) = 1
    assert exact <= bound + 1e-9
    assert bound <= min(0.0, exact + 0.1)


def test_no_more_signals_are_fitted_than_the_bound_allows():
    """Over 400 random signals, the best of all supports leaves little as rarely as the bound says."""
    rng = np.random.default_rng(0)
    m, n, k, n_signals = 8, 8, 4, 400
    A = rng.standard_normal((m, n))
    Y = rng.standard_normal((m, n_signals))
    best = np.ones(n_signals)
    for S in combinations(range(n), k):
        Q = np.linalg.qr(A[:, S])[0]
        left = 1.0 - np.sum((Q.T @ Y) ** 2, axis=0) / np.sum(Y**2, axis=0)
        best = np.minimum(best, left)
    for fraction in (0.01, 0.02, 0.03):
        p = math.exp(log_chance(n, m, k, fraction))
        # five standard deviations of a binomial number
        assert np.sum(best <= fraction) <= n_signals * p + 5 * math.sqrt(n_signals * p) + 1
    # the bound counts every support as if it were alone; the truth is within a factor of 3 here
    assert np.mean(best <= 0.03) > math.exp(log_chance(n, m, k, 0.03)) / 3


def test_the_ends():
    assert log_chance(10, 5, 5, 1e-30) == 0.0  # as many columns as samples fit anything
    assert log_chance(10, 5, 6, 1e-30) == 0.0
    assert log_chance(10, 5, 2, 1.0) == 0.0
    assert log_chance(10, 5, 2, 0.0) == log_chance(10, 5, 0, 0.5) == -math.inf


@pytest.fixture
def wide():
    return np.random.default_rng(3).standard_normal((30, 60))


@pytest.mark.parametrize("from_gram", [False, True])
def test_superfluous_columns_are_dropped(wide, from_gram):
    y = wide[:, [4, 9]] @ [1.0, -0.5]
    problem = SparseProblem(wide, y)
    if from_gram:
        problem = SparseProblem.from_gram(wide.T @ wide, wide.T @ y, y @ y, 30)
    assert exact_columns(problem, np.array([1, 4, 9, 33])).tolist() == [4, 9]
    assert exact_columns(problem, np.array([1, 4, 33])) is None
    assert exact_columns(problem, np.array([], dtype=int)) is None


@pytest.mark.parametrize("k", [28, 29, 30])
def test_noise_is_not_fitted_exactly_however_many_columns_there_are(wide, k):
    """With k = M the residual vanishes; below that, a combination of many columns comes close."""
    for seed in range(5):
        y = np.random.default_rng(seed).standard_normal(30)
        assert exact_columns(SparseProblem(wide, y), np.arange(k), tolerance=1.0) is None


@pytest.mark.parametrize("offset", [1e5, 1e6, 1e7])
def test_a_dominant_column_does_not_make_a_fit_exact(wide, offset):
    A = np.column_stack((wide, np.ones(30)))
    y = offset + wide[:, [4, 9]] @ [1.0, -0.5]
    noise = 0.3 * np.random.default_rng(4).standard_normal(30)
    assert exact_columns(SparseProblem(A, y), np.array([4, 9, 60])).tolist() == [4, 9, 60]
    for support in ([60], [4, 60], [4, 9, 60], [*range(20), 60], [*range(28), 60]):
        assert exact_columns(SparseProblem(A, y + noise), np.array(support)) is None


def test_several_large_columns_do_not_make_a_fit_exact(wide):
    y = 1e6 * wide[:, :3].sum(axis=1) + np.random.default_rng(5).standard_normal(30)
    for k in (4, 12, 20):
        assert exact_columns(SparseProblem(wide, y), np.arange(k)) is None


def test_a_signal_in_single_precision_is_fitted_exactly(wide):
    y = (wide[:, [4, 9, 20]] @ [1.0, -0.5, 0.7]).astype(np.float32)
    assert exact_columns(SparseProblem(wide, y), np.array([4, 9, 20])).tolist() == [4, 9, 20]


def test_nothing_fits_a_zero_signal(wide):
    assert exact_columns(SparseProblem(wide, np.zeros(30)), np.array([3])) is None
