"""What a fitted regressor tells: tables, standard deviations, several targets, classes."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l0anneal import AnnealedSubsetRegressor, choose_size, diagnose, subset_path
from l0anneal.estimators.predictive import Predictive
from l0anneal.estimators.single_target import _Fit
from l0anneal.samplers.evidence.result import EvidenceResult

TRUE = np.array([2, 7, 11])


def make(seed=0, m=60, n=15, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 3.0 * rng.standard_normal(n)
    y = 4.0 + X[:, TRUE] @ [1.5, -1.0, 0.8] + noise * rng.standard_normal(m)
    return X, y


@pytest.fixture(scope="module")
def named():
    X, y = make()
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(15)])
    return AnnealedSubsetRegressor(always_include=["c0"], random_state=0).fit(table, y)


# ---------------------------------------------------------------- tables


def test_a_frame_has_a_row_for_each_column(named):
    frame = named.to_frame()
    assert list(frame.columns) == ["coef", "averaged_coef", "std", "probability", "set"]
    assert set(frame.index[:4]) == {"c0", "c2", "c7", "c11"}
    assert frame["probability"].is_monotonic_decreasing or frame["probability"].iloc[3] > 0.99
    by_column = frame.loc[[f"c{j}" for j in range(15)]]
    np.testing.assert_array_equal(by_column["coef"], named.coef_)
    np.testing.assert_array_equal(by_column["averaged_coef"], named.averaged_coef_)
    np.testing.assert_array_equal(by_column["probability"], named.inclusion_probability_)
    # columns that are always included are in no set; each true column is in one of its own
    assert by_column["set"].isna()["c0"]
    assert by_column["set"].loc[["c2", "c7", "c11"]].nunique() == 3


def test_a_summary_fits_a_terminal_and_names_columns(named):
    text = named.summary()
    assert max(map(len, text.splitlines())) <= 80
    assert "4 of 15 columns" in text
    for name in ("c0", "c2", "c7", "c11", "intercept"):
        assert any(line.split()[:1] == [name] for line in text.splitlines())
    assert "c7 (1.00)" in named.result_.summary()
    assert "c7" in str(named.result_.credible_sets())


def test_names_are_of_the_columns_of_x_also_where_some_cannot_be_chosen():
    X, y = make()
    X[:, 0] = 1.0  # constant: the sampler's column 0 is column 1 of X
    auto = AnnealedSubsetRegressor(random_state=0).fit(X, y)
    assert "x7 (1.00)" in auto.result_.summary()
    chosen = AnnealedSubsetRegressor(3, random_state=0).fit(X, y)
    assert "x2, x7, x11" in chosen.result_.summary()
    assert chosen.result_.to_dict()["names"] == ["x2", "x7", "x11"]


def test_without_pandas_the_error_says_what_to_install(named, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas, or use summary"):
        named.to_frame()
    assert "c7" in named.summary()


def test_no_result_prints_more_than_a_few_lines(named, monkeypatch):
    pair = replace(named.credible_sets()[0], columns=np.array([3, 4]), weights=np.full(2, 0.5))
    monkeypatch.setattr(EvidenceResult, "likely_sets", lambda self: [pair] * 300)
    assert len(named.result_.summary().splitlines()) < 20
    assert "and 296 more sets" in named.result_.summary()
    for thing in (named.result_, pair, diagnose(named.result_)):
        assert len(repr(thing).splitlines()) <= 8
        assert max(map(len, repr(thing).splitlines())) < 250
    page = named.result_._repr_html_()
    assert 'src="data:image/png;base64,' in page
    assert page.count("<tr>") == 1 + len(named.result_.table())


# ---------------------------------------------------------------- standard deviations


def test_standard_deviations_are_those_of_the_draws():
    """By the slow way: draw new values of y from the posterior, the intercept included."""
    X, y = make(noise=1.0, m=30)
    model = AnnealedSubsetRegressor(always_include=[1], random_state=0).fit(X, y)
    draws, rng = model.evidence_.draws, np.random.default_rng(0)
    new = X[:4] + 2.0
    mean, std = model.predict(new, return_std=True)
    C, C_new = np.column_stack([np.ones(30), X[:, 1]]), np.column_stack([np.ones(4), new[:, 1]])
    root = np.linalg.cholesky(np.linalg.inv(C.T @ C))
    values = []
    for i in rng.choice(len(draws), 40_000, p=draws.weight):
        coef = np.zeros(15)
        cut = slice(draws.start[i], draws.start[i + 1])
        coef[model.candidates_[draws.columns[cut]]] = draws.coef[cut]
        noise = np.sqrt(draws.noise_variance[i])
        c = np.linalg.lstsq(C, y - X @ coef)[0] + noise * root @ rng.standard_normal(2)
        values.append(new @ coef + C_new @ c + noise * rng.standard_normal(4))
    # 40,000 values give a standard deviation to about 1 / √80,000 = .35 %
    rms = np.sqrt(np.mean((np.array(values) - mean) ** 2, axis=0))
    np.testing.assert_allclose(std, rms, rtol=0.015)
    assert std.min() > np.sqrt(model.noise_variance_)
    assert model.coef_std_[1] > 0
    assert model.intercept_std_ > 0


@pytest.mark.parametrize("k", [0, 15])
def test_without_draws_they_are_the_textbook_ones(k):
    X, y = make()
    model = AnnealedSubsetRegressor(k, random_state=0).fit(X, y)
    Z = np.column_stack([np.ones(60), X[:, :k]])
    residual = y - Z @ np.linalg.lstsq(Z, y)[0]
    s2 = residual @ residual / (60 - k - 1)
    _, std = model.predict(X, return_std=True)
    leverage = np.einsum("ij,jk,ik->i", Z, np.linalg.inv(Z.T @ Z), Z)
    np.testing.assert_allclose(std, np.sqrt(s2 * (1 + leverage)), rtol=1e-8)
    assert model.noise_variance_ == pytest.approx(s2)


def test_a_prediction_away_from_the_average_has_a_larger_deviation():
    X, y = make(noise=3.0)
    average, short = (
        AnnealedSubsetRegressor(averaging=a, random_state=0).fit(X, y) for a in (True, False)
    )
    (m1, s1), (m2, s2) = (m.predict(X, return_std=True) for m in (average, short))
    np.testing.assert_allclose(s2**2, s1**2 + (m2 - m1) ** 2, rtol=1e-9)
    assert np.any(s2 > 1.001 * s1)


@pytest.mark.parametrize("k", ["auto", 3])
def test_standard_deviations_of_weights_sparse_data_and_chunks(k, monkeypatch):
    X, y = make(noise=1.0)
    weights = np.random.default_rng(1).integers(1, 4, y.size)
    model = AnnealedSubsetRegressor(k, random_state=0)
    _, one = model.fit(X, y, sample_weight=weights).predict(X, return_std=True)
    _, two = model.predict(scipy.sparse.csr_array(X), return_std=True)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    monkeypatch.setattr("l0anneal.estimators.predictive.CHUNK", 7)
    np.testing.assert_allclose(model.predict(X, return_std=True)[1], one, rtol=1e-9)
    scaled = AnnealedSubsetRegressor(3, random_state=0).fit(X, y, weights / weights.sum())
    whole = AnnealedSubsetRegressor(3, random_state=0).fit(X, y)
    ratio = scaled.predict(X, return_std=True)[1] / whole.predict(X, return_std=True)[1]
    assert np.all(np.abs(ratio - 1) < 0.3)  # without the weights' scale it would be 60 times less


def test_intervals_cover_what_they_say():
    """800 new values in eight data sets: the standard error of 95 % is below 1.5 %."""
    inside = []
    for seed in range(8):
        X, y = make(seed, m=140, noise=2.0)
        model = AnnealedSubsetRegressor(random_state=seed).fit(X[:40], y[:40])
        mean, std = model.predict(X[40:], return_std=True)
        inside.append(np.abs(y[40:] - mean) < 1.96 * std)
    assert 0.90 < np.mean(inside) < 0.985


def test_as_many_coefficients_as_samples_leave_no_deviation():
    X, y = make(m=4)
    model = AnnealedSubsetRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="choose fewer columns, or give more rows"):
        model.predict(X, return_std=True)
    assert isinstance(model._predictive, Predictive)


# ---------------------------------------------------------------- several targets, classes


@pytest.mark.parametrize("k", ["auto", 3, "ebic"])
def test_several_targets_are_fitted_one_by_one(k):
    X, y = make(noise=1.0)
    Y = np.column_stack([y, X[:, 4] - X[:, 5] + np.random.default_rng(1).standard_normal(60)])
    model = AnnealedSubsetRegressor(k, random_state=0).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (60, 2)
    for i in range(2):
        alone = AnnealedSubsetRegressor(k, random_state=0).fit(X, Y[:, i])
        np.testing.assert_array_equal(model.coef_[i], alone.coef_)
        np.testing.assert_array_equal(model.inclusion_probability_[i], alone.inclusion_probability_)
        one, deviation = alone.predict(X, return_std=True)
        np.testing.assert_allclose(mean[:, i], one)
        np.testing.assert_allclose(std[:, i], deviation)
        assert model.estimators_[i].support_.tolist() == alone.support_.tolist()
    both = np.union1d(model.estimators_[0].support_, model.estimators_[1].support_)
    np.testing.assert_array_equal(model.support_, both)
    assert model.transform(X).shape == (60, both.size)
    assert "one by one" in model.summary()
    assert model.to_frame().shape == (30, 5)
    again = AnnealedSubsetRegressor(k, replay=model.replay_, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    with pytest.raises(ValueError, match=r"estimators_\[i\].credible_sets"):
        model.credible_sets()
    assert not hasattr(model.fit(X, y), "estimators_")
    with pytest.raises(ValueError, match="2 columns of y; got 1"):
        again.fit(X, y)


def test_outputs_have_the_names_of_a_data_frame():
    X, y = make()
    Y = pd.DataFrame({"weight": y, "height": X[:, 3] + y})
    model = AnnealedSubsetRegressor(2, joint=True, random_state=0).fit(X, Y)
    assert "output weight: 2 of" in model.summary()
    assert model.to_frame().index.get_level_values("output").unique().tolist() == list(Y)
    model.fit(X, Y.to_numpy())
    assert "output 1: 2 of" in model.summary()


def test_zeros_and_ones_are_fitted_but_said_to_be_classes():
    X, y = make()
    labels = (y > np.median(y)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AnnealedSubsetRegressor(2, random_state=0).fit(X, labels)
        pipeline = make_pipeline(AnnealedSubsetRegressor(2, random_state=0), LogisticRegression())
        assert pipeline.fit(X, labels).score(X, labels) > 0.7  # the advice itself does not warn
        AnnealedSubsetRegressor(2, random_state=0).fit(X, 2.0 * labels - 1).predict(X)
    with pytest.warns(UserWarning, match="not classes or probabilities") as caught:
        model.predict(X)
    assert caught[0].filename == __file__
    assert "only the values 0 and 1" in model.summary()


@pytest.mark.parametrize("dtype", [str, object])
def test_text_as_a_target_is_refused_with_a_way_out(dtype):
    X, y = make()
    labels = np.where(y > np.median(y), "ill", "well").astype(dtype)
    with pytest.raises(ValueError, match=r"text such as '(ill|well)'.*LogisticRegression"):
        AnnealedSubsetRegressor(2).fit(X, labels)


def test_columns_for_a_classifier():
    data = load_breast_cancer(as_frame=True)
    train = np.arange(len(data.data)) % 2 == 0
    model = make_pipeline(
        StandardScaler(), AnnealedSubsetRegressor(5, random_state=0), LogisticRegression()
    )
    model.fit(data.data[train], data.target[train])
    assert model.score(data.data[~train], data.target[~train]) > 0.93


# ---------------------------------------------------------------- cross-validation


def test_the_minimum_of_cross_validation_is_offered():
    X, y = make()
    path = subset_path(X, y, 4, cv=5, random_state=0)
    errors = np.array([10.0, 5.0, 4.2, 4.0, 4.1])
    path = replace(path, criteria=path.criteria | {"cv": errors}, cv_error=np.full(5, 0.3))
    assert choose_size(path, "cv") == 2
    assert choose_size(path, "cv_min") == 3
    model = AnnealedSubsetRegressor("cv_min", max_nonzero_coefs=4, random_state=0).fit(X, y)
    assert model.n_nonzero_coefs_ == np.argmin(model.path_.criteria["cv"])
    assert "cv_min" in path.summary()
    with pytest.raises(ValueError, match="call subset_path with cv=5"):
        choose_size(subset_path(X, y, 2, random_state=0), "cv_min")


def test_cross_validation_with_few_rows_of_positive_weight():
    X, y = make()
    weights = np.zeros(60)
    weights[:8] = 1.0
    # five folds of all rows have test rows of weight zero only
    model = AnnealedSubsetRegressor("cv", random_state=0).fit(X, y, sample_weight=weights)
    path = subset_path(X, y, 2, sample_weight=weights, cv=8, random_state=0)
    assert np.isfinite(model.path_.criteria["cv"]).all()
    assert np.isfinite(path.criteria["cv"]).all()
    with pytest.raises(ValueError, match=r"'cv' needs at least 2 rows of positive weight.*got 1"):
        AnnealedSubsetRegressor("cv").fit(X, y, sample_weight=np.eye(60)[0])
    with pytest.raises(ValueError, match="one per sample of positive weight, 8; got 9"):
        subset_path(X, y, 2, sample_weight=weights, cv=9)
    halves = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    with pytest.raises(ValueError, match="the test rows of fold 0 of cv all have a sample weight"):
        subset_path(X, y, 2, sample_weight=weights, cv=halves)


# ---------------------------------------------------------------- warnings


def let_fits_end(monkeypatch, state):
    """Let every posterior have this state."""
    sampled = _Fit._sampled

    def doubtful(*arguments, **options):
        result = sampled(*arguments, **options)
        object.__setattr__(result, "state", state)
        return result

    monkeypatch.setattr(_Fit, "_sampled", doubtful)


@pytest.mark.parametrize("state", ["trapped", "disagreed"])
@pytest.mark.parametrize("limit", [None, 2.0])
def test_advice_names_parameters_of_the_regressor(state, limit, monkeypatch):
    let_fits_end(monkeypatch, state)
    X, y = make()
    with pytest.warns(ConvergenceWarning) as caught:
        model = AnnealedSubsetRegressor(time_limit=limit, random_state=0).fit(X, y)
    message = str(caught[0].message)
    assert caught[0].filename == __file__
    assert "tau" not in message
    assert "n_nonzero_coefs" in message
    if limit is None:
        assert f"time_limit above the {model.result_.seconds:.2g} s of this fit" in message
    else:
        assert "time_limit above 2 s" in message
    advice = " ".join(diagnose(model.result_).advice)
    assert "time_limit" in advice
    assert "tau" not in advice


@pytest.mark.parametrize("state", ["trapped", "disagreed"])
def test_too_few_rows_are_named_and_no_time_is_asked_for(state, few_draws, monkeypatch):
    let_fits_end(monkeypatch, state)
    X = np.random.default_rng(0).standard_normal((3, 4))
    with pytest.warns(ConvergenceWarning) as caught:
        model = AnnealedSubsetRegressor(random_state=0).fit(X, X @ [1.0, 1.0, 0.0, 2.0])
    message = str(caught[0].message)
    assert "3 rows are too few to tell columns from noise" in message
    assert "time_limit" not in message
    found = diagnose(model.result_)
    assert "2 samples are too few" in found.reasons[0]
    assert "time_limit" not in " ".join(found.advice)
