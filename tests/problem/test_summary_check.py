"""The check that z-scores and correlations belong together."""

import numpy as np
import pytest

from helpers.summary import correlated_columns, simulated, z_scores
from l0anneal import check_summary

KINDS = ["r = .9", "r = .99", "common factor", "blocks"]
# many samples and few, more columns than samples; no effect, weak, strong and many effects
SHAPES = [(400, 50), (5000, 30), (40, 60)]
EFFECTS = [(0, 0.0), (1, 0.05), (1, 0.6), (3, 0.9), (8, 0.5)]


def consistent_data(kind, repetitions):
    for seed in range(repetitions):
        for i, (m, n) in enumerate(SHAPES):
            for e, (n_effects, explained) in enumerate(EFFECTS):
                rng = np.random.default_rng([seed, i, e])
                yield m, simulated(rng, m, n, kind, n_effects, explained)


@pytest.mark.parametrize("kind", KINDS)
def test_consistent_data_raise_no_suspicion(kind):
    """Of 105 data sets with effects of all sizes, at most 5 % may have any suspicious column."""
    found = [check_summary(z, R, m).consistent for m, (z, R, *_) in consistent_data(kind, 7)]
    assert len(found) == 105
    assert found.count(False) <= 5


def strong_and_correlated(z, R, least=5.0):
    """Columns with |z| > 5 and at least two neighbours of |r| > .8."""
    return np.flatnonzero((np.abs(z) > least) & (np.sum(np.abs(R) > 0.8, axis=0) > 2))


@pytest.mark.parametrize("kind", ["r = .9", "r = .99", "blocks"])
@pytest.mark.parametrize("n_wrong", [1, 3])
def test_flipped_signs_are_found_by_index(kind, n_wrong):
    """The flipped columns are apart: of two groups of neighbours, either may be the flipped one."""
    n_flipped = n_found = n_named = n_false = 0
    for m, (z, R, *_) in consistent_data(kind, 2):
        strong = strong_and_correlated(z, R)[2::5]
        if strong.size < n_wrong:
            continue
        wrong = np.random.default_rng(n_flipped).choice(strong, n_wrong, replace=False)
        z[wrong] *= -1
        found = check_summary(z, R, m)
        n_flipped += n_wrong
        n_found += np.isin(wrong, found.suspicious).sum()
        n_named += np.isin(wrong, found.flipped).sum()
        n_false += np.setdiff1d(found.suspicious, wrong).size
    assert n_flipped >= 12
    assert n_found >= 0.95 * n_flipped
    assert n_named >= 0.95 * n_flipped
    assert n_false <= 0.05 * n_flipped


def test_columns_with_the_correlations_of_others_are_found():
    """Two columns of R belong to other columns than those of z."""
    rng = np.random.default_rng(0)
    A = correlated_columns(rng, 3000, 40, "r = .9")
    y = A[:, 20] + rng.standard_normal(3000)
    mixed_up = np.arange(40)
    mixed_up[[19, 38]] = [38, 19]
    found = check_summary(z_scores(A, y), np.corrcoef(A[:, mixed_up].T), 3000)
    np.testing.assert_array_equal(found.suspicious, [19, 38])
    assert found.flipped.size == 0
    assert any("drop columns 19 and 38" in text for text in found.advice)


def test_opposite_effects_of_neighbours_are_no_error():
    """Two strong effects that cancel each other in part look like a flipped sign, but are none."""
    rng = np.random.default_rng(1)
    A = correlated_columns(rng, 2000, 30, "r = .9")
    y = A[:, 10] - 1.1 * A[:, 12] + 0.5 * rng.standard_normal(2000)
    z, R = z_scores(A, y), np.corrcoef(A.T)
    assert z[10] * z[12] < 0 < R[10, 12]
    found = check_summary(z, R, 2000)
    assert np.abs(found.difference[[10, 12]]).min() > 5
    assert found.suspicious.size == 0


def test_R_of_another_panel_needs_a_weight():
    rng = np.random.default_rng(2)
    A = correlated_columns(rng, 3000, 50, "blocks")
    panel = correlated_columns(rng, 200, 50, "blocks")
    z = z_scores(A, 0.3 * A[:, 7] + rng.standard_normal(3000))
    found = check_summary(z, np.corrcoef(panel.T), 3000)
    assert found.weight > 0
    assert not found.consistent
    assert f"s = {found.weight:g}" in str(found)
    own = check_summary(z, np.corrcoef(A.T), 3000)
    assert own.weight == 0
    s = found.weight
    mixed = check_summary(z, (1 - s) * np.corrcoef(panel.T) + s * np.eye(50), 3000)
    assert mixed.weight < s


def test_the_expectation_is_the_conditional_mean():
    rng = np.random.default_rng(3)
    A = correlated_columns(rng, 500, 6, "r = .9")
    z, R = z_scores(A, rng.standard_normal(500)), np.corrcoef(A.T)
    found = check_summary(z, R, 500)
    for j in range(6):
        rest = np.arange(6) != j
        weights = np.linalg.solve(R[np.ix_(rest, rest)], R[rest, j])
        assert found.expected[j] == pytest.approx(weights @ found.z[rest], abs=0.01)
        assert found.conditional_std[j] ** 2 == pytest.approx(1 - weights @ R[rest, j], abs=1e-3)
    np.testing.assert_allclose(found.difference, (found.z - found.expected) / found.conditional_std)


def test_the_order_and_the_orientation_of_columns_do_not_matter():
    rng = np.random.default_rng(4)
    z, R, *_ = simulated(rng, 1000, 30, "r = .9", 2, 0.4)
    z[int(np.argmax(np.abs(z)))] *= -1
    found = check_summary(z, R, 1000)
    order, signs = rng.permutation(30), rng.choice([-1.0, 1.0], 30)
    moved = check_summary(
        (signs * z)[order], (signs[:, None] * R * signs)[np.ix_(order, order)], 1000
    )
    assert found.suspicious.size == 1
    np.testing.assert_array_equal(np.sort(order[moved.suspicious]), found.suspicious)


def test_the_text_fits_80_columns_and_the_figure_shows_the_columns():
    z, R, *_ = simulated(np.random.default_rng(5), 1000, 60, "r = .99", 1, 0.3)
    clean = check_summary(z, R, 1000)
    assert "suspicious   none" in str(clean)
    wrong = strong_and_correlated(z, R)[2:40:3]
    assert wrong.size > 10
    z[wrong] *= -1
    found = check_summary(z, R, 1000)
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    assert f"and {found.suspicious.size - 10} more" in text
    for j in found.suspicious:
        assert f"\n{j:8d} " in text
    for check in (clean, found):
        axes = check.plot().axes[0]
        labels = {text.get_text().strip() for text in axes.texts}
        assert labels == {str(j) for j in check.suspicious}


def test_one_column_is_consistent_with_itself():
    found = check_summary([30.0], [[1.0]], 100)
    assert found.consistent
    assert found.expected[0] == pytest.approx(0.0)
