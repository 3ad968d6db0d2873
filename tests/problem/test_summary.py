"""Problems from z-scores or effects, and correlations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.summary import correlated_columns, simulated, z_scores
from l0anneal import SparseProblem
from l0anneal.problem.summary import adjusted, check_correlations, rounding_of

R3 = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]])
KINDS = ["r = .9", "r = .99", "common factor", "blocks"]


@pytest.mark.parametrize("kind", KINDS)
def test_z_scores_give_the_regression_on_standardised_columns_with_an_intercept(kind):
    z, R, A, y, _ = simulated(np.random.default_rng(0), 80, 12, kind)
    standardised = (y - y.mean()) / y.std(ddof=1)
    expected = SparseProblem(A, standardised)
    problem = SparseProblem.from_summary(z, R, 80)
    assert problem.n_samples == 79
    assert problem.signal_energy == pytest.approx(79.0)
    for support in ([], [3], [0, 5, 9], [2, 7]):
        x, energy = problem.least_squares(support)
        wanted, wanted_energy = expected.least_squares(support)
        np.testing.assert_allclose(x, wanted, rtol=1e-8, atol=1e-12)
        assert energy == pytest.approx(wanted_energy, rel=1e-9)


def simple_regressions(A, y):
    """Return slopes and standard errors of y on each column, with an intercept, by least squares."""
    slopes, errors = [], []
    for column in A.T:
        design = np.column_stack((np.ones(len(y)), column))
        coef, _, _, _ = np.linalg.lstsq(design, y, rcond=None)
        noise = np.sum((y - design @ coef) ** 2) / (len(y) - 2)
        slopes.append(coef[1])
        errors.append(np.sqrt(noise * np.linalg.inv(design.T @ design)[1, 1]))
    return np.array(slopes), np.array(errors)


@pytest.mark.parametrize("signal_variance", [None, 1.0, 7.0])
def test_effects_and_standard_errors_give_coefficients_in_their_units(signal_variance):
    rng = np.random.default_rng(1)
    A = correlated_columns(rng, 60, 8, "r = .9") * 10.0 ** rng.uniform(-2, 2, 8) + 5.0
    y = 3.0 + A[:, 2] - 0.7 * A[:, 5] + 4.0 * rng.standard_normal(60)
    effect, error = simple_regressions(A, y)
    variance = y.var(ddof=1) if signal_variance is None else signal_variance
    problem = SparseProblem.from_summary(
        effect=effect, standard_error=error, R=np.corrcoef(A.T), n=60, signal_variance=variance
    )
    expected = SparseProblem(A - A.mean(axis=0), y - y.mean())
    for support in ([2], [1, 2, 5], [0, 4, 6, 7]):
        x, energy = problem.least_squares(support)
        wanted, wanted_energy = expected.least_squares(support)
        np.testing.assert_allclose(x, wanted, rtol=1e-7)
        assert energy == pytest.approx(wanted_energy * variance / y.var(ddof=1), rel=1e-8)


def test_the_adjustment_turns_z_into_a_correlation():
    rng = np.random.default_rng(2)
    A = correlated_columns(rng, 30, 5, "r = .9")
    y = 3 * A[:, 0] + rng.standard_normal(30)
    r = np.corrcoef(A.T, y)[-1, :-1]
    np.testing.assert_allclose(adjusted(z_scores(A, y), 30), np.sqrt(29) * r)
    assert abs(adjusted(np.array([1e9]), 30)[0]) == pytest.approx(np.sqrt(29))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(4, 40),
    n=st.integers(1, 40),
    kind=st.sampled_from(KINDS),
    decimals=st.sampled_from([3, 4, 6, 15]),
    explained=st.sampled_from([0.0, 0.5, 0.99]),
)
def test_statistics_of_the_same_rows_are_accepted_also_if_rounded(
    seed, m, n, kind, decimals, explained
):
    rng = np.random.default_rng(seed)
    A = correlated_columns(rng, m, max(n, 2), kind)
    y = np.sqrt(explained) * A[:, 0] + np.sqrt(1 - explained) * rng.standard_normal(m)
    z, R = z_scores(A, y), np.corrcoef(A.T)
    problem = SparseProblem.from_summary(
        z.round(max(2, decimals - 1)), R.round(decimals), m, check=False
    )
    assert problem.n_columns == A.shape[1]


def test_a_slightly_negative_eigenvalue_is_rounding_and_is_removed():
    A = correlated_columns(np.random.default_rng(3), 10, 40, "r = .9")
    rounded = np.corrcoef(A.T).round(3)
    smallest = np.linalg.eigvalsh(rounded)[0]
    assert -rounding_of(40) < smallest < -1e-4
    repaired = check_correlations(rounded)
    assert np.linalg.eigvalsh(repaired)[0] > -1e-12
    np.testing.assert_allclose(repaired, rounded, atol=2 * rounding_of(40))
    np.testing.assert_array_equal(np.diag(repaired), 1.0)


INDEFINITE = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
BAD = [
    ({"z": [1, 2, 3], "R": R3}, "got no n"),
    ({"z": [1, 2, 3], "n": 9}, "got no R"),
    ({"R": R3, "n": 9}, "got none of them"),
    ({"z": [1, 2, 3], "effect": [1, 2, 3], "R": R3, "n": 9}, "got both"),
    ({"effect": [1, 2, 3], "R": R3, "n": 9}, "got no standard_error"),
    ({"standard_error": [1, 2, 3], "R": R3, "n": 9}, "got no effect"),
    ({"effect": [1, 2, 3], "standard_error": [1, 0, 1], "R": R3, "n": 9}, "got 0 at column 1"),
    ({"z": [1, 2], "R": R3, "n": 9}, "z has length 2, but R has 3 columns"),
    ({"z": [1, np.nan, 2], "R": R3, "n": 9}, "z contains NaN"),
    ({"z": [1, 2, 3], "R": R3, "n": 2}, "n must be an integer ≥ 3; got 2"),
    ({"z": [1, 2, 3], "R": R3, "n": 9.5}, "n must be an integer"),
    ({"z": [1, 2, 3], "R": R3, "n": 9, "signal_variance": 0.0}, "signal_variance"),
    ({"z": [1, 2, 3], "R": R3[:2], "n": 9}, r"square matrix.*got shape \(2, 3\)"),
    (
        {"z": [1, 2, 3], "R": np.triu(R3), "n": 9},
        r"symmetric; got 0.5 at \(0, 1\) and 0 at \(1, 0\)",
    ),
    ({"z": [1, 2, 3], "R": 2 * R3, "n": 9}, "diagonal; got 2 at column 0"),
    ({"z": [1, 2, 3], "R": 3 * R3 - 2 * np.eye(3), "n": 9}, r"got 1.5 at \(0, 1\)"),
    ({"z": [1, 2, 3], "R": INDEFINITE, "n": 9}, "smallest eigenvalue is -0.8"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_statistics_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        SparseProblem.from_summary(**arguments)


def test_more_than_the_signal_cannot_be_explained():
    z, R, *_ = simulated(np.random.default_rng(4), 200, 40, "r = .99", 1, 0.6)
    j = int(np.argmax(np.abs(z)))
    z[j] *= -1
    for check in (True, False):
        with pytest.raises(ValueError, match=rf"times the signal's variance: column {j} would fit"):
            SparseProblem.from_summary(z, R, 200, check=check)


def test_z_outside_the_range_of_R_is_refused():
    A = correlated_columns(np.random.default_rng(5), 30, 60, "r = .9")  # rank 29
    R = np.corrcoef(A.T)
    z = np.random.default_rng(6).standard_normal(60)
    with pytest.raises(ValueError, match="times the signal's variance"):
        SparseProblem.from_summary(3 * z, R, 30)
    inside = R @ z / 3
    assert SparseProblem.from_summary(inside, R, 1000).n_columns == 60


def test_suspicious_columns_are_warned_about_where_the_user_can_see_them():
    z, R, *_ = simulated(np.random.default_rng(7), 2000, 40, "r = .9", 1, 0.02)
    j = int(np.argmax(np.abs(z)))
    SparseProblem.from_summary(z, R, 2000)  # a warning would be an error
    z[j] *= -1
    with pytest.warns(UserWarning, match=f"together at column {j}: .*opposite") as caught:
        SparseProblem.from_summary(z, R, 2000)
    assert caught[0].filename == __file__
    SparseProblem.from_summary(z, R, 2000, check=False)
