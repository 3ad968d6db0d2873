import pickle
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from l0anneal import SparseProblem, SubsetPath, evidence_anneal
from l0anneal.estimators import single_target
from l0anneal.estimators.subset_regressor import AnnealedSubsetRegressor
from l0anneal.problem import scaled as problem


def checked(test):
    """Mark a test that runs scikit-learn's checks."""
    # selectors warn when nothing is selected, which is the right answer for some random data
    test = pytest.mark.filterwarnings("ignore:No features were selected")(test)
    # the check of several targets has 10 rows and 10 columns that all matter, which nobody could find
    return pytest.mark.filterwarnings("ignore:the search found neither an exact")(test)


@checked
@parametrize_with_checks([AnnealedSubsetRegressor(), AnnealedSubsetRegressor("ebic", alpha=0.1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@checked
@parametrize_with_checks([AnnealedSubsetRegressor(1)])
def test_scikit_learn_checks_at_a_given_size(estimator, check):
    check(estimator)


TRUE = np.array([2, 7, 11])


def make(seed=0, m=60, n=15, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 3.0 * rng.standard_normal(n)
    y = 4.0 + X[:, TRUE] @ [1.5, -1.0, 0.8] + noise * rng.standard_normal(m)
    return X, y


def assert_same(a, b, rtol=1e-7):
    np.testing.assert_array_equal(a.support_, b.support_)
    for name in ("coef_", "intercept_", "averaged_coef_", "averaged_intercept_"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(a.inclusion_probability_, b.inclusion_probability_, atol=1e-6)


@pytest.mark.parametrize("k", ["auto", 3, "evidence", "bic", "ebic", "cv"])
def test_every_way_to_choose_finds_the_true_columns(k):
    X, y = make()
    model = AnnealedSubsetRegressor(k, random_state=0).fit(X, y)
    assert set(TRUE) <= set(model.support_)
    if k != "bic":  # which does not know from how many the columns were chosen
        np.testing.assert_array_equal(model.support_, TRUE)
    plain = LinearRegression().fit(X[:, model.support_], y)
    np.testing.assert_allclose(model.coef_[model.support_], plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-9)
    assert np.count_nonzero(model.coef_) == model.n_nonzero_coefs_ == model.support_.size
    assert np.all(model.inclusion_probability_[TRUE] > 0.9)
    assert isinstance(model.path_, SubsetPath) == (k not in ("auto", 3))
    if model.path_ is not None:
        at = model.path_.index(model.n_nonzero_coefs_)
        np.testing.assert_allclose(model.path_.coefs[at], model.coef_, rtol=1e-9)
    assert model.transform(X).shape == (60, model.n_nonzero_coefs_)


def test_averaging_decides_only_what_predicts():
    X, y = make(noise=3.0)
    models = {
        (k, averaging): AnnealedSubsetRegressor(k, averaging=averaging, random_state=0).fit(X, y)
        for k in ("auto", 3)
        for averaging in ("auto", True, False)
    }
    for (k, averaging), model in models.items():
        assert_same(model, models[k, "auto"], rtol=0)
        by_average = X @ model.averaged_coef_ + model.averaged_intercept_
        by_support = X @ model.coef_ + model.intercept_
        assert not np.allclose(by_average, by_support)
        averaged = k == "auto" if averaging == "auto" else averaging
        np.testing.assert_allclose(model.predict(X), by_average if averaged else by_support)


def test_a_clear_signal_is_not_shrunk():
    X, y = make(m=300, noise=0.2)
    model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.averaged_coef_[TRUE], model.coef_[TRUE], rtol=5e-3)


@pytest.mark.parametrize("k", ["auto", 3, "ebic"])
@pytest.mark.parametrize("sparse", [False, True])
def test_integer_weights_are_repetitions(k, sparse):
    X, y = make(noise=1.0)
    weights = np.random.default_rng(1).integers(0, 4, y.size)
    to = scipy.sparse.csr_array if sparse else np.asarray
    model = AnnealedSubsetRegressor(k, always_include=[0], random_state=0)
    weighted = clone(model).fit(to(X), y, sample_weight=weights)
    repeated = clone(model).fit(to(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
    assert_same(weighted, repeated)
    if k == "ebic":
        for name, values in weighted.path_.criteria.items():
            np.testing.assert_allclose(values, repeated.path_.criteria[name], rtol=1e-9)
        np.testing.assert_allclose(
            weighted.path_.leave_one_out, repeated.path_.leave_one_out, rtol=1e-9
        )


def test_scale_of_the_weights_does_not_matter_at_a_given_size():
    X, y = make(noise=1.0)
    weights = np.random.default_rng(1).random(y.size)
    a, b = (
        AnnealedSubsetRegressor(3, random_state=0).fit(X, y, sample_weight=w)
        for w in (weights, weights / weights.sum())
    )
    np.testing.assert_array_equal(a.support_, b.support_)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="weights that sum to 1 "):
        AnnealedSubsetRegressor(random_state=0).fit(X, y, sample_weight=weights / weights.sum())


@pytest.mark.parametrize("k", ["auto", 5, "ebic", "cv"])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_always_include_is_honoured(k, alpha):
    # the one-standard-error rule of "cv" drops weak columns where there is more noise
    X, y = make(noise=0.3 if k == "cv" else 1.0)
    forced = [14, 0]  # of no use
    model = AnnealedSubsetRegressor(k, always_include=forced, alpha=alpha, random_state=0)
    model.fit(X, y)
    assert {0, 14, *TRUE} <= set(model.support_)
    if k == 5:
        assert model.support_.size == 5
    np.testing.assert_array_equal(model.inclusion_probability_[forced], 1.0)
    assert not set(forced) & set(model.candidates_)
    plain = Ridge(alpha=alpha).fit(X[:, model.support_], y)
    np.testing.assert_allclose(model.coef_[model.support_], plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-7)
    # also the average: what it leaves is orthogonal to everything that is always there
    if alpha == 0:
        residual = y - X @ model.averaged_coef_ - model.averaged_intercept_
        np.testing.assert_allclose(X[:, forced].T @ residual, 0.0, atol=1e-8)
        assert residual.sum() == pytest.approx(0.0, abs=1e-8)


def test_the_best_beside_the_forced_column_not_beside_nothing():
    # column 1 is the best alone, but beside column 0 it is column 2
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = X[:, 0] + X[:, 2]
    X[:, 1] = 0.9 * y + 0.1 * rng.standard_normal(50)
    assert AnnealedSubsetRegressor(1, random_state=0).fit(X, y).support_.tolist() == [1]
    model = AnnealedSubsetRegressor(2, always_include=[0], random_state=0).fit(X, y)
    assert model.support_.tolist() == [0, 2]


@pytest.mark.parametrize("k", ["auto", 3, "ebic"])
@pytest.mark.parametrize("options", [{}, {"alpha": 2.0}, {"fit_intercept": False}])
def test_sparse_is_dense(k, options):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 20)) * (rng.random((80, 20)) < 0.3) + 0.0
    y = 2.0 + X[:, [1, 5, 9]] @ [1.0, 2.0, -1.0] + 0.2 * rng.standard_normal(80)
    model = AnnealedSubsetRegressor(k, always_include=[4], random_state=0, **options)
    dense = clone(model).fit(X, y)
    for to in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        sparse = clone(model).fit(to(X), y)
        assert_same(dense, sparse)
        np.testing.assert_allclose(sparse.predict(to(X)), dense.predict(X), rtol=1e-7)


def test_wide_sparse_data_are_never_made_dense(monkeypatch):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((150, 800), density=0.03, rng=rng, format="csr")
    y = 1.0 + X[:, [10, 700]] @ [3.0, -3.0] + 0.02 * rng.standard_normal(150)
    model = AnnealedSubsetRegressor(2, random_state=0)
    whole = clone(model).fit(X, y)
    monkeypatch.setattr(problem, "WHOLE_GRAM_BYTES", 0)  # rows on demand
    monkeypatch.setattr(problem, "COLUMN_BYTES", 0)  # from the sparse columns alone
    toarray = scipy.sparse.csc_array.toarray

    def narrow(self, *args, **kwargs):
        assert self.shape[1] <= 2 * 2 + 10  # the likeliest columns, to choose independent ones
        return toarray(self, *args, **kwargs)

    monkeypatch.setattr(scipy.sparse.csc_array, "toarray", narrow)
    by_rows = clone(model).fit(X, y)
    assert whole.support_.tolist() == by_rows.support_.tolist() == [10, 700]
    np.testing.assert_allclose(whole.coef_, by_rows.coef_, rtol=1e-9)


def test_names_in_names_out():
    X, y = make()
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(15)])
    model = AnnealedSubsetRegressor(4, always_include=["x0"], random_state=0).fit(table, y)
    assert model.get_feature_names_out().tolist() == ["x0", "x2", "x7", "x11"]
    model.set_output(transform="pandas")
    assert list(model.transform(table).columns) == ["x0", "x2", "x7", "x11"]
    np.testing.assert_array_equal(model.get_support(indices=True), model.support_)
    mask = AnnealedSubsetRegressor(4, always_include=np.arange(15) == 0, random_state=0)
    assert_same(model, mask.fit(X, y), rtol=0)


def test_in_the_company_of_scikit_learn():
    X, y = make(noise=0.3)
    pipeline = make_pipeline(StandardScaler(), AnnealedSubsetRegressor(3, random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.9
    search = GridSearchCV(
        AnnealedSubsetRegressor(random_state=0), {"n_nonzero_coefs": [1, 3]}, cv=3
    )
    assert search.fit(X, y).best_params_ == {"n_nonzero_coefs": 3}
    chosen = SelectFromModel(AnnealedSubsetRegressor(3, random_state=0), threshold=1e-12).fit(X, y)
    np.testing.assert_array_equal(chosen.get_support(indices=True), TRUE)
    selector = make_pipeline(AnnealedSubsetRegressor(3, random_state=0), LinearRegression())
    assert selector.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("k", ["auto", 3, "cv"])
def test_same_seed_same_answer_whatever_came_before(k):
    X, y = make(noise=2.0)
    fresh = AnnealedSubsetRegressor(k, random_state=5).fit(X, y)
    used = AnnealedSubsetRegressor(2, random_state=5).fit(*make(3))
    assert_same(fresh, used.set_params(n_nonzero_coefs=k).fit(X, y), rtol=0)
    two = AnnealedSubsetRegressor(k, random_state=5, n_jobs=2).fit(X, y)
    assert_same(fresh, two, rtol=0)
    assert_same(fresh, pickle.loads(pickle.dumps(fresh)), rtol=0)


def test_constant_and_equal_columns_and_targets():
    X, y = make()
    X[:, 3] = 5.0
    X[:, 12] = X[:, 2]
    for k in ("auto", 3, 14 - 1):
        model = AnnealedSubsetRegressor(k, random_state=0).fit(X, y)
        assert 3 not in model.support_
        assert model.inclusion_probability_[3] == 0
        assert not {2, 12} <= set(model.support_)
    with pytest.raises(ValueError, match="only 14 columns are neither constant"):
        AnnealedSubsetRegressor(15).fit(X, y)
    flat = AnnealedSubsetRegressor(random_state=0).fit(X, np.full(60, 0.1))
    assert flat.support_.size == 0
    np.testing.assert_allclose(flat.predict(X), 0.1)
    nothing = AnnealedSubsetRegressor(random_state=0).fit(np.ones((10, 2)), y[:10])
    np.testing.assert_allclose(nothing.predict(np.ones((1, 2))), y[:10].mean())
    assert nothing.result_ is None


def test_no_columns_at_all():
    X, y = make()
    model = AnnealedSubsetRegressor(0).fit(X, y)
    assert model.support_.size == 0
    assert not model.inclusion_probability_.any()
    np.testing.assert_allclose(model.predict(X), y.mean())


def test_the_longest_path_can_be_set_and_warns_when_it_is_too_short(monkeypatch):
    X, y = make()
    model = AnnealedSubsetRegressor("ebic", max_nonzero_coefs=4, random_state=0).fit(X, y)
    assert model.path_.sizes.tolist() == [0, 1, 2, 3, 4]
    monkeypatch.setattr(single_target, "LONGEST_PATH", 2)
    with pytest.warns(UserWarning, match="it considered, 2: raise max_nonzero_coefs"):
        AnnealedSubsetRegressor("ebic", random_state=0).fit(X, y)


@pytest.mark.parametrize("k", ["auto", 3, "ebic"])
def test_a_time_limit_is_passed_on(own_time, k):
    model = AnnealedSubsetRegressor(k, time_limit=1.0, random_state=0).fit(*make())
    np.testing.assert_array_equal(model.support_, TRUE)


def test_far_from_zero():
    X, y = make()
    for to in (np.asarray, scipy.sparse.csr_array):
        near = AnnealedSubsetRegressor(3, random_state=0).fit(to(X), y)
        far = AnnealedSubsetRegressor(3, random_state=0).fit(to(X + 1e4), y + 1e6)
        np.testing.assert_array_equal(near.support_, far.support_)
        np.testing.assert_allclose(near.coef_, far.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_nonzero_coefs": 16}, "between 0 and the number of features, 15; got 16"),
        ({"n_nonzero_coefs": -1}, "integer ≥ 0"),
        ({"n_nonzero_coefs": 2.5}, "integer ≥ 0"),
        ({"n_nonzero_coefs": "aic"}, "'cv', 'cv_min'; got 'aic'"),
        ({"n_nonzero_coefs": 1, "always_include": [0, 1]}, "columns always included"),
        ({"always_include": [15]}, "indices from 0 to 14"),
        ({"always_include": ["a"]}, "X has none"),
        ({"always_include": [True, False]}, "15 entries"),
        ({"alpha": -1.0}, "alpha"),
        ({"averaging": "yes"}, "averaging"),
        ({"time_limit": 0}, "time_limit"),
        ({"n_nonzero_coefs": 3, "n_chains": 0}, "n_chains"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = make()
    with pytest.raises(ValueError, match=message):
        AnnealedSubsetRegressor(**parameters).fit(X, y)


def test_bad_data():
    X, y = make()
    with pytest.raises(
        ValueError, match="14 is too large for 10 samples: at most 9 columns beside"
    ):
        AnnealedSubsetRegressor(14).fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="NaN"):
        AnnealedSubsetRegressor(3).fit(np.where(X > 3, np.nan, X), y)
    with pytest.raises(ValueError, match="non-zero"):
        AnnealedSubsetRegressor(3).fit(X, y, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match="inconsistent"):
        AnnealedSubsetRegressor(3).fit(X, y[:-1])


@pytest.mark.parametrize("choice", ["auto", 5, "bic", "cv"])
def test_a_time_limit_is_of_the_whole_fit(own_time, choice):
    """Folds, search and probabilities together; loading kernels is not counted."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 150)), rng.standard_normal(100)
    AnnealedSubsetRegressor(choice, random_state=0).fit(X[:, :5], y)  # kernels are ready
    began = time.process_time()
    AnnealedSubsetRegressor(choice, time_limit=1.0, random_state=0).fit(X, y)
    # ten times the limit's grace; six runs of a second are told apart
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("choice", ["auto", 5, "cv"])
def test_a_fit_with_a_time_limit_replays(own_time, choice):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 150)), rng.standard_normal(100)
    first = AnnealedSubsetRegressor(choice, time_limit=0.3, n_chains=2, random_state=3).fit(X, y)
    again = AnnealedSubsetRegressor(choice, replay=first.replay_, n_chains=2, random_state=3)
    again.fit(X, y)
    assert again.replay_ == first.replay_
    np.testing.assert_array_equal(again.support_, first.support_)
    np.testing.assert_array_equal(again.inclusion_probability_, first.inclusion_probability_)
    with pytest.raises(ValueError, match="not both"):
        again.set_params(time_limit=1.0).fit(X, y)


# ---------------------------------------------------------------- what is known before the fit


@pytest.fixture(scope="module")
def doubtful():
    """A faint column among noise, columns of very different units, and an intercept."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((60, 12)) * 10.0 ** np.arange(-6, 6)
    y = 50.0 + X[:, 2] / 1e-4 + 0.45 * X[:, 7] / 10.0 + rng.standard_normal(60)
    return X, y


def test_a_prior_probability_reaches_the_column_it_belongs_to(doubtful):
    X, y = doubtful
    X = np.column_stack([np.ones(60), X])  # a constant column, which is no candidate
    p = []
    for rho in (0.01, 0.9):
        prior = np.full(13, 0.1)
        prior[8], prior[4], prior[5] = rho, 0.0, 1.0
        model = AnnealedSubsetRegressor(rho=prior, random_state=0).fit(X, y)
        p.append(model.inclusion_probability_)
        assert p[-1][4] == 0.0
        assert p[-1][5] == 1.0
        assert 5 in model.support_
    assert p[0][8] < 0.9 < p[1][8] + 0.05
    assert p[1][8] - p[0][8] > 0.1


def test_rho_as_in_evidence_anneal(doubtful):
    X, y = doubtful
    centred = SparseProblem(X, y, intercept=True)
    for rho in (0.3, (1.0, 3.0), np.linspace(0.05, 0.6, 12)):
        found = evidence_anneal(centred, rho=rho, slab="one hump", random_state=0)
        model = AnnealedSubsetRegressor(rho=rho, slab="one hump", random_state=0).fit(X, y)
        np.testing.assert_allclose(
            model.inclusion_probability_, found.inclusion_probability, atol=1e-9
        )


def test_the_noise_variance_is_in_the_units_of_y(doubtful):
    X, y = doubtful
    model = AnnealedSubsetRegressor(noise_variance=1.0, random_state=0).fit(X, y)
    assert model.noise_variance_ == pytest.approx(1.0)
    other = AnnealedSubsetRegressor(noise_variance=1e6, random_state=0).fit(X, 1e3 * y)
    assert other.noise_variance_ == pytest.approx(1e6)
    np.testing.assert_allclose(
        other.inclusion_probability_, model.inclusion_probability_, atol=0.02
    )
    loud = AnnealedSubsetRegressor(noise_variance=100.0, random_state=0).fit(X, y)
    assert loud.inclusion_probability_[2] < model.inclusion_probability_[2]


def test_groups_enter_together_by_index_and_by_name(doubtful):
    X, y = doubtful
    names = [f"c{j}" for j in range(12)]
    frame = pd.DataFrame(X, columns=names).assign(constant=1.0)
    groups = [[2, 3, 12], [7, 8]]  # the first has a constant column, which drops out
    model = AnnealedSubsetRegressor(groups=groups, random_state=0).fit(frame, y)
    assert {2, 3} <= set(model.support_)
    p = model.inclusion_probability_
    assert p[2] == p[3]
    assert p[7] == p[8]
    assert p[12] == 0.0
    named = [["c2", "c3", "constant"], ["c7", "c8"]]
    again = AnnealedSubsetRegressor(groups=named, random_state=0).fit(frame, y)
    np.testing.assert_array_equal(again.inclusion_probability_, p)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rho": 0.1, "n_nonzero_coefs": 3}, "rho is part of the model of n_nonzero_coefs='auto'"),
        (
            {"groups": [[0, 1]], "n_nonzero_coefs": "cv"},
            "groups is part .* got n_nonzero_coefs='cv'",
        ),
        ({"slab": "one hump", "n_nonzero_coefs": "bic"}, "slab is part of the model"),
        (
            {"noise_variance": 1.0, "n_nonzero_coefs": 2},
            "leave noise_variance out, or choose 'auto'",
        ),
        ({"rho": 1.5}, "rho is a probability"),
        ({"rho": np.full(3, 0.5)}, "for each of the 12 columns"),
        ({"slab": "flat"}, "slab must be one of"),
        ({"noise_variance": 0.0}, "noise_variance must be positive"),
        ({"groups": [[0]]}, "two or more column indices"),
        ({"groups": [["a", "b"]]}, "groups has names, but X has none"),
        ({"groups": [[0, 1], [1, 2]]}, "must not share columns"),
        ({"groups": [[0, 1]], "always_include": [1]}, "all columns of a group or none"),
        ({"groups": [[0, 1]], "slab": "two humps"}, "a slab of one hump"),
        ({"groups": [[0, 1]], "rho": np.full(12, 0.1)}, "not both"),
    ],
)
def test_what_is_known_is_checked(doubtful, given, message):
    with pytest.raises(ValueError, match=message):
        AnnealedSubsetRegressor(**given).fit(*doubtful)


@pytest.mark.parametrize("k", ["auto", 2, "bic"])
def test_verbose_says_what_the_fit_does(doubtful, capsys, k):
    X, y = doubtful
    AnnealedSubsetRegressor(k, random_state=0).fit(X, y)
    assert capsys.readouterr().err == ""
    AnnealedSubsetRegressor(k, verbose=1, random_state=0).fit(X, np.column_stack([y, y]))
    err = capsys.readouterr().err
    assert "preparing the data" in err
    assert "output 2 of 2" in err
    with pytest.raises(ValueError, match="verbose must be an integer"):
        AnnealedSubsetRegressor(k, verbose=-1).fit(X, y)
