"""How often columns are chosen from subsamples."""

import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_classif, f_regression
from sklearn.linear_model import Lasso, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from l0anneal import AnnealedSubsetRegressor, StabilityResult, stability


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    return X, 2.0 * X[:, 2] - X[:, 5] + rng.standard_normal(60)


class Spy(Lasso):
    """Remembers the rows of each fit; the last column of X numbers them."""

    seen = []  # shared by the clones  # noqa: RUF012

    def fit(self, X, y):
        self.seen.append(X[:, -1].astype(int))
        return super().fit(X, y)


def test_subsamples_come_in_disjoint_pairs(data):
    X = np.column_stack((data[0], np.arange(60)))
    Spy.seen.clear()
    result = stability(Spy(0.1), X, data[1], n_subsamples=6, random_state=0)
    assert all(len(set(rows)) == 30 for rows in Spy.seen)
    for first, second in zip(Spy.seen[::2], Spy.seen[1::2]):
        assert sorted([*first, *second]) == list(range(60))
    assert result.paired
    assert (result.n_rows, result.n_subsamples) == (30, 6)
    Spy.seen.clear()
    larger = stability(Spy(0.1), X, data[1], n_subsamples=4, fraction=0.8, random_state=0)
    assert all(len(set(rows)) == 48 for rows in Spy.seen)
    assert len({tuple(rows) for rows in Spy.seen}) == 4
    assert not larger.paired
    assert np.isnan(larger.expected_false())


def test_the_frequencies_are_those_of_the_fits(data):
    X, y = data
    result = stability(Lasso(0.3), X, y, n_subsamples=40, random_state=1)
    assert result.frequency[[2, 5]].min() > 0.9
    assert np.delete(result.frequency, [2, 5]).max() < 0.6
    assert result.chosen(0.9).tolist() == [2, 5]
    assert result.sizes.mean() == pytest.approx(result.frequency.sum())
    q = result.sizes.mean()
    assert result.expected_false(0.9) == pytest.approx(q**2 / (12 * 0.8))
    assert np.isnan(result.expected_false(0.5))


@pytest.mark.parametrize("model", [Lasso(0.3), AnnealedSubsetRegressor(2)])
def test_one_seed_one_result_for_any_number_of_threads(data, model):
    one, two = (stability(model, *data, n_subsamples=6, n_jobs=j, random_state=3) for j in (1, 2))
    np.testing.assert_array_equal(one.frequency, two.frequency)
    np.testing.assert_array_equal(one.sizes, two.sizes)
    assert stability(model, *data, n_subsamples=2).seed != one.seed
    assert model.get_params()["random_state"] is None  # the model itself stays as it is


def test_other_models(data):
    X, y = data
    labels = np.where(y > 0, "high", "low")
    models = [
        (SelectKBest(f_regression, k=2), y),
        (make_pipeline(StandardScaler(), Lasso(0.3)), y),
        (GridSearchCV(Lasso(), {"alpha": [0.3, 0.4]}, cv=2), y),
        (SelectFromModel(RidgeClassifier(), threshold=-np.inf, max_features=2), labels),
        (SelectKBest(f_classif, k=2), labels),
    ]
    for model, target in models:
        result = stability(model, X, target, n_subsamples=8, random_state=0)
        assert result.frequency[2] == 1.0, model
    sparse = stability(Lasso(0.3), scipy.sparse.csc_array(X), y, n_subsamples=8, random_state=0)
    dense = stability(Lasso(0.3), X, y, n_subsamples=8, random_state=0)
    np.testing.assert_array_equal(sparse.frequency, dense.frequency)


def test_columns_are_followed_through_a_pipeline(data):
    X, y = data
    screened = make_pipeline(SelectKBest(f_regression, k=4), Lasso(0.3))
    result = stability(screened, X, y, n_subsamples=20, random_state=0)
    assert result.feature_names == tuple(f"x{j}" for j in range(12))
    assert set(result.order[:2]) == {2, 5}  # whatever the others were that passed the screen
    assert result.frequency[[2, 5]].min() > 0.6 > result.frequency[result.order[2]]
    squares = make_pipeline(PolynomialFeatures(2), StandardScaler(), Lasso(0.3))
    result = stability(squares, X[:, :6], y, n_subsamples=20, random_state=0)
    assert {result.feature_names[j] for j in result.order[:2]} == {"x2", "x5"}
    assert "x2 x5" in result.feature_names


def test_every_class_is_in_every_subsample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    labels = np.array(["rare"] * 4 + ["common"] * 36)
    X[labels == "rare", 0] += 3.0
    seen = []

    class Counting(LogisticRegression):
        def fit(self, X, y):
            seen.append((y == "rare").sum())
            return super().fit(X, y)

    stability(Counting(), X, labels, n_subsamples=20, random_state=0)
    assert seen == [2] * 20


def test_names_files_and_pictures(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data
    long = pandas.DataFrame(X, columns=[f"column {j} " + "x" * 90 for j in range(12)])
    result = stability(Lasso(0.3), long, y, n_subsamples=4, random_state=0)
    assert result.feature_names[2].startswith("column 2 x")
    assert max(map(len, result.summary().split("\n"))) <= 80
    assert re.search(r"100% +column 2 xxx", result.summary())
    assert result.table()[0]["chosen in"] == "100%"
    assert next(iter(result.to_dict()["frequency"])) == long.columns[2]
    result.save(tmp_path / "s.npz")
    loaded = StabilityResult.load(tmp_path / "s.npz")
    np.testing.assert_array_equal(loaded.frequency, result.frequency)
    assert loaded.feature_names == result.feature_names
    axes = result.plot().axes[0]
    assert len(axes.patches) == np.sum(result.frequency > 0)


def test_a_time_limit_is_replayed(data):
    timed = stability(Lasso(0.3), *data, n_subsamples=10**6, time_limit=0.2, random_state=0)
    assert 1 <= timed.n_subsamples < 10**6
    assert timed.ended == "time limit"
    again = stability(Lasso(0.3), *data, n_subsamples=timed.n_subsamples, random_state=0)
    np.testing.assert_array_equal(again.frequency, timed.frequency)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_subsamples": 0}, "n_subsamples"),
        ({"fraction": 1.0}, "between 0 and 1"),
        ({"fraction": 0.01}, "at least 2 rows"),
        ({"model": KNeighborsRegressor()}, "get_support"),
        ({"y": np.ones(3)}, "inconsistent"),
    ],
)
def test_bad_arguments(data, arguments, message):
    call = {"model": Lasso(0.3), "X": data[0], "y": data[1], "n_subsamples": 2} | arguments
    with pytest.raises(ValueError, match=message):
        stability(**call)
