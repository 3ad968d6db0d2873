"""Regression data as a problem, compared with ordinary least squares."""

import numpy as np
import pytest
import scipy.sparse

from l0anneal.problem import scaled as problem_module
from l0anneal.problem.projected import counting_as, projected_problem
from l0anneal.problem.regression_data import Design


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 8)) * (rng.random((30, 8)) < 0.7) + 2.0 * (
        rng.random((30, 1)) < 0.5
    )
    return X, X[:, [1, 4]] @ [2.0, -1.0] + 3.0 + 0.1 * rng.standard_normal(30)


def least_squares(X, y, columns, alpha=0.0, weights=None):
    """Solve for the intercept and some columns by the normal equations."""
    C = np.column_stack([np.ones(len(y)), X[:, columns]])
    w = np.ones(len(y)) if weights is None else weights
    ridge = alpha * np.diag([0.0] + [1.0] * len(columns))
    c = np.linalg.solve(C.T @ (w[:, None] * C) + ridge, C.T @ (w * y))
    energy = 0.5 * np.sum(w * (y - C @ c) ** 2) + 0.5 * alpha * np.sum(c[1:] ** 2)
    return c[1:], c[0], energy


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("forced", [[], [3], [0, 5]])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_the_answer_is_that_of_least_squares(
    data, form, forced, alpha, weighted, whole, monkeypatch
):
    X, y = data
    if not whole:
        monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    weights = np.arange(30) % 4 + 0.0 if weighted else None
    design = Design.of(form(X), y, forced=np.array(forced, dtype=int), alpha=alpha, weights=weights)
    assert design.n_projected == 1 + len(forced)
    assert design.n_samples == (weights.sum() if weighted else 30)
    np.testing.assert_array_equal(design.candidates, np.setdiff1d(np.arange(8), forced))
    support = np.array([0, 2])
    coef, intercept, energy = design.solve(support)
    columns = [*forced, *design.candidates[support]]
    x, expected_intercept, expected_energy = least_squares(X, y, columns, alpha, weights)
    np.testing.assert_allclose(coef[columns], x, rtol=1e-9)
    assert np.count_nonzero(coef) == len(columns)
    assert intercept == pytest.approx(expected_intercept, rel=1e-9)
    assert energy == pytest.approx(expected_energy, rel=1e-9)
    G = design.columns(np.arange(design.candidates.size))
    for j in (0, 3):
        np.testing.assert_allclose(design.problem.gram_row(j), G.T @ G[:, j], atol=1e-10)


def test_columns_in_the_span_of_the_forced_ones_are_no_candidates(data):
    X, y = data
    X = np.column_stack([X, np.full(30, 2.0), 2.0 * X[:, 3] - 1.0])
    design = Design.of(X, y, forced=np.array([3]))
    np.testing.assert_array_equal(design.candidates, [0, 1, 2, 4, 5, 6, 7])
    assert Design.of(X[:, [3]], y, forced=np.array([0])).candidates.size == 0


def test_leave_one_out_agrees_with_refits(data):
    X, y = data
    support = np.array([1, 4])
    errors = []
    for i in range(30):
        others = np.delete(np.arange(30), i)
        x, intercept, _ = least_squares(X[others], y[others], support)
        errors.append(y[i] - intercept - X[i, support] @ x)
    assert Design.of(X, y).leave_one_out(support) == pytest.approx(np.mean(np.square(errors)))


def test_dependent_columns_of_smaller_weight_are_dropped(data):
    X, y = data
    X = np.column_stack([X, X[:, 2] + X[:, 6]])
    design = Design.of(X, y)
    weight = np.array([9.0, 1.0, 5.0, 1.0, 1.0, 1.0, 2.0, 1.0, 4.0])
    np.testing.assert_array_equal(design.independent(np.array([0, 2, 6, 8]), weight), [0, 2, 8])


def test_weights_must_not_all_be_zero(data):
    with pytest.raises(ValueError, match="at least one must be positive"):
        Design.of(*data, weights=np.zeros(30))


def test_problems_that_count_differently_share_the_gram_matrix(data):
    X, y = data
    problem = projected_problem(X, y, np.zeros((30, 0)), 30)
    other = counting_as(problem, 12)
    assert (problem.n_samples, other.n_samples) == (30, 12)
    assert other.gram is problem.gram
