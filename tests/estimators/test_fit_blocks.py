"""A fit of blocks of rows is the fit of all rows."""

import numpy as np
import pandas as pd
import pytest

from l0anneal import AnnealedSubsetRegressor

N = 300


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 8)) * 10.0 ** np.linspace(-2, 2, 8) + 100.0
    X[:, 6] = 7.0  # a constant column
    y = 50 * X[:, 0] + 0.1 * X[:, 5] + rng.standard_normal(N)
    return X, y, rng.integers(0, 3, N).astype(float)


def cut(*arrays, size=50):
    return (tuple(a[i : i + size] for a in arrays) for i in range(0, N, size))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_nonzero_coefs": 3},
        {"n_nonzero_coefs": "bic"},
        {"n_nonzero_coefs": "evidence", "alpha": 0.01},
        {"always_include": [3]},
        {"n_nonzero_coefs": 2, "fit_intercept": False},
    ],
)
@pytest.mark.parametrize("weighted", [True, False])
def test_blocks_give_the_fit_of_all_rows(options, weighted):
    X, y, w = data()
    arrays = (X, y, w) if weighted else (X, y)
    rows = AnnealedSubsetRegressor(**options, random_state=0).fit(*arrays)
    blocks = AnnealedSubsetRegressor(**options, random_state=0).fit_blocks(cut(*arrays))
    assert rows.support_.size > 0
    np.testing.assert_array_equal(blocks.support_, rows.support_)
    for name in ("coef_", "intercept_", "noise_variance_", "r2_", "averaged_coef_", "coef_std_"):
        expected = getattr(rows, name)
        assert getattr(blocks, name) == pytest.approx(expected, rel=1e-6, abs=1e-12), name
    np.testing.assert_allclose(
        blocks.inclusion_probability_, rows.inclusion_probability_, atol=1e-6
    )
    new = X[:5] + 0.1
    for ours, theirs in zip(blocks.predict(new, return_std=True), rows.predict(new, True)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_folds_are_sums_over_the_other_blocks():
    X, y, _ = data()
    options = {"n_nonzero_coefs": "cv_min", "random_state": 0}
    model = AnnealedSubsetRegressor(**options).fit_blocks(cut(X, y))
    other = AnnealedSubsetRegressor(**options).fit_blocks(cut(X, y, size=7))
    errors = model.path_.criteria["cv"]
    np.testing.assert_array_equal(errors, other.path_.criteria["cv"])
    assert {0, 5} <= set(model.support_.tolist())
    assert errors[0] == pytest.approx(y.var(), rel=0.1)
    rows = AnnealedSubsetRegressor(**options).fit(X, y)
    # other folds of the same rows: the two differ by less than a few standard errors
    assert np.all(np.abs(errors - rows.path_.criteria["cv"]) < 4 * rows.path_.cv_error)
    assert np.isnan(model.path_.leave_one_out).all()


def test_an_empty_fold_is_an_error():
    X, y, _ = data()
    with pytest.raises(ValueError, match="into 5 folds, and with 3 rows one of them is empty"):
        AnnealedSubsetRegressor("cv", random_state=0).fit_blocks([(X[:3], y[:3])])


def test_names_and_classes():
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    classes = (y > y.mean()).astype(float)
    model = AnnealedSubsetRegressor(2, always_include=["b"], random_state=0)
    model.fit_blocks(cut(frame, classes))
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    assert "b" in model.get_feature_names_out()
    assert model.two_valued_
    with pytest.warns(UserWarning, match="not classes"):
        model.predict(frame)
    model.set_params(always_include=None).fit_blocks(cut(X, y))
    assert not hasattr(model, "feature_names_in_")
    assert not model.two_valued_


def test_an_exact_fit_is_exact():
    X, _, _ = data()
    y = 3.0 + X[:, [0, 5]] @ [2.0, -1.0]
    model = AnnealedSubsetRegressor(random_state=0).fit_blocks(cut(X, y))
    np.testing.assert_array_equal(model.support_, [0, 5])
    assert model.r2_ == pytest.approx(1.0, abs=1e-12)
    assert model.intercept_ == pytest.approx(3.0, rel=1e-6)


def test_what_cannot_be_fitted_is_refused():
    X, y, _ = data()
    with pytest.raises(ValueError, match="1 row of positive weight; a fit needs at least 2"):
        AnnealedSubsetRegressor().fit_blocks([(X[:1], y[:1])])
    with pytest.raises(ValueError, match="y of block 0 must be one vector"):
        AnnealedSubsetRegressor().fit_blocks([(X, np.column_stack([y, y]))])
    with pytest.raises(ValueError, match="too large for 3 samples: at most 2 columns"):
        AnnealedSubsetRegressor(3).fit_blocks([(X[:3], y[:3])])


def test_a_dask_frame_is_fitted_by_partitions():
    dd = pytest.importorskip("dask.dataframe")
    X, y, w = data()
    frame = dd.from_pandas(
        pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y, w=w), npartitions=4
    )
    model = AnnealedSubsetRegressor(2, random_state=0)
    model.fit(frame.drop(columns=["y", "w"]), frame["y"], frame["w"])
    rows = AnnealedSubsetRegressor(2, random_state=0).fit(X, y, w)
    np.testing.assert_array_equal(model.support_, rows.support_)
    assert model.coef_ == pytest.approx(rows.coef_, rel=1e-8)
    assert model.feature_names_in_.tolist() == list("abcdefgh")
