"""One support for several outputs."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression, Ridge

from l0anneal import AnnealedSubsetRegressor, SubsetPathDisplay, choose_size, subset_path
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.joint_search import KICKS, JointResult, _Rows, _Tableau, joint_search
from l0anneal.samplers.run import Run


def make(seed, m=20, n=9, n_outputs=3, kind="gaussian"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 2.0
    if kind == "correlated":
        X += 3.0 * rng.standard_normal((m, 1))
    if kind == "duplicates":
        X[:, 1] = X[:, 0]
    if kind == "badly scaled":
        X *= 10.0 ** rng.integers(-6, 7, n)
    return X, rng.standard_normal((m, n_outputs)) * [1.0, 5.0, 0.3][:n_outputs] + 7.0


def joint_error(X, Y, support):
    columns = (X - X.mean(axis=0)) / X.std(axis=0)
    left = Y - Y.mean(axis=0)
    if len(support):
        left = left - columns[:, support] @ np.linalg.lstsq(columns[:, support], left)[0]
    return 0.5 * np.sum(left**2)


def enumerated(X, Y, k):
    """The energy of the best support of k columns, by least squares on all of them."""
    return min(joint_error(X, Y, list(S)) for S in itertools.combinations(range(X.shape[1]), k))


@pytest.mark.parametrize("kind", ["gaussian", "correlated", "duplicates", "badly scaled"])
def test_every_size_of_a_path_is_the_enumerated_best(kind):
    X, Y = make(0, kind=kind)
    path = subset_path(X, Y, 5, random_state=0)
    for size, energy in zip(path.sizes, path.energies):
        assert energy == pytest.approx(enumerated(X, Y, size), rel=1e-9)
    assert path.coefs.shape == (6, 3, 9)
    assert path.intercepts.shape == (6, 3)
    for size, coef, intercept in zip(path.sizes, path.coefs, path.intercepts):
        left = Y - X @ coef.T - intercept
        assert 0.5 * np.sum(left**2) == pytest.approx(path.energies[size], rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("n_outputs", [2, 3])
def test_a_number_of_columns_finds_the_enumerated_best(k, n_outputs):
    for seed in range(4):
        X, Y = make(seed, n=12, n_outputs=n_outputs, kind="correlated")
        model = AnnealedSubsetRegressor(k, joint=True, random_state=0).fit(X, Y)
        assert joint_error(X, Y, model.support_) == pytest.approx(enumerated(X, Y, k), rel=1e-9)
        assert model.result_[0].energy == pytest.approx(enumerated(X, Y, k), rel=1e-9)


def test_one_by_one_is_not_joint():
    """The control: supports of single outputs are worse for all outputs together."""
    X, Y = make(1, n=12, kind="correlated")
    each = [AnnealedSubsetRegressor(2, random_state=0).fit(X, y).support_ for y in Y.T]
    best = enumerated(X, Y, 2)
    assert max(joint_error(X, Y, support) for support in each) > 1.01 * best


def test_outputs_are_not_scaled():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 10))
    Y = np.column_stack([100.0 * X[:, 3], X[:, 7]])
    model = AnnealedSubsetRegressor(1, joint=True, random_state=0)
    assert model.fit(X, Y).support_.tolist() == [3]
    assert model.fit(X, Y * [1e-4, 1.0]).support_.tolist() == [7]


def test_exchanges_have_the_energies_of_their_supports():
    rng = np.random.default_rng(3)
    A, Y = rng.standard_normal((15, 8)), rng.standard_normal((15, 4))
    A /= np.linalg.norm(A, axis=0)
    problem = SparseProblem(A, Y[:, 0])

    def twice_energy(support):
        return np.sum((Y - A[:, support] @ np.linalg.lstsq(A[:, support], Y)[0]) ** 2)

    t = _Tableau(_Rows(problem), A.T @ Y, np.array([5, 0, 3]))
    before = twice_energy([5, 0, 3])
    assert 2 * t.energy + np.sum(Y**2) == pytest.approx(before)
    falls = {
        (slot, j): before - twice_energy([j if s == slot else c for s, c in enumerate([5, 0, 3])])
        for slot in range(3)
        for j in (1, 2, 4, 6, 7)
    }
    gain, slot, column = t.best_exchange()
    assert (slot, column) == max(falls, key=falls.get)
    assert gain == pytest.approx(max(falls.values()))
    gains, losses = t.entering_gains(), t.leaving_losses()
    assert gains[4] == pytest.approx(before - twice_energy([5, 0, 3, 4]))
    assert gains[5] == -1.0
    assert losses[1] == pytest.approx(twice_energy([5, 3]) - before)


def test_weights_ridge_forced_columns_sparse_and_names():
    X, Y = make(4, n=10)
    weights = np.random.default_rng(0).integers(0, 3, 20)
    repeated = np.repeat(np.arange(20), weights)
    options = {"always_include": [4], "random_state": 0}
    weighted = subset_path(X, Y, 4, sample_weight=weights, cv=None, **options)
    rows = subset_path(X[repeated], Y[repeated], 4, **options)
    np.testing.assert_allclose(weighted.energies, rows.energies)
    np.testing.assert_allclose(weighted.coefs, rows.coefs, atol=1e-9)
    for name in ("evidence", "bic", "ebic"):
        np.testing.assert_allclose(weighted.criteria[name], rows.criteria[name], rtol=1e-9)
    assert all(4 in support for support in weighted.supports)
    sparse = subset_path(scipy.sparse.csr_array(X), Y, 4, **options)
    dense = subset_path(X, Y, 4, **options)
    np.testing.assert_allclose(sparse.coefs, dense.coefs, atol=1e-9)
    ridge = subset_path(X, Y, 3, alpha=2.0, random_state=0)
    support = ridge.support(2)
    np.testing.assert_allclose(
        ridge.coefs[2][:, support], Ridge(2.0).fit(X[:, support], Y).coef_, atol=1e-9
    )
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    model = AnnealedSubsetRegressor(2, joint=True, random_state=0).fit(frame, Y)
    assert all(name.startswith("c") for name in model.get_feature_names_out())
    assert "one set of columns for all outputs" in model.summary()


@pytest.mark.slow
def test_criteria_count_the_choice_of_a_support_once():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 15))
    Y = X[:, [2, 9]] @ rng.standard_normal((2, 4)) + 0.5 * rng.standard_normal((80, 4))
    path = subset_path(X, Y, 6, cv=5, random_state=0)
    each = [subset_path(X[:, path.support(2)], y, 2, random_state=0) for y in Y.T]
    assert path.criteria["bic"][2] == pytest.approx(sum(one.criteria["bic"][2] for one in each))
    choices = 15 * 14 / 2
    assert path.criteria["ebic"][2] - path.criteria["bic"][2] == pytest.approx(2 * np.log(choices))
    for criterion in ("evidence", "ebic", "cv"):
        assert choose_size(path, criterion) == 2
        model = AnnealedSubsetRegressor(criterion, joint=True, random_state=0).fit(X, Y)
        assert model.support_.tolist() == [2, 9]
    assert path.leave_one_out[2] == pytest.approx(
        sum(one.leave_one_out[2] for one in each), rel=1e-9
    )
    noise = subset_path(X, rng.standard_normal((80, 4)), 6, random_state=0)
    assert choose_size(noise, "evidence") == 0
    SubsetPathDisplay.from_path(path, "evidence")


def test_a_fit_has_the_attributes_of_several_targets():
    X, Y = make(6)
    model = AnnealedSubsetRegressor(3, joint=True, random_state=0).fit(X, Y)
    plain = LinearRegression().fit(X[:, model.support_], Y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X[:, model.support_]))
    assert model.coef_.shape == (3, 9)
    np.testing.assert_array_equal(model.inclusion_probability_.sum(axis=1), 3.0)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (20, 3)
    assert model.transform(X).shape == (20, 3)
    assert len(model.estimators_) == 3
    # one column, or one dimension, has nothing to be joined with
    alone = AnnealedSubsetRegressor(3, joint=True, random_state=0).fit(X, Y[:, :1])
    np.testing.assert_array_equal(
        alone.support_, AnnealedSubsetRegressor(3, random_state=0).fit(X, Y[:, 0]).support_
    )


def test_seeds_replays_and_limits(tmp_path):
    rng = np.random.default_rng(7)
    X, Y = rng.standard_normal((60, 80)), rng.standard_normal((60, 3))
    first = AnnealedSubsetRegressor(9, joint=True, time_limit=0.3, random_state=3).fit(X, Y)
    assert first.result_[0].ended.startswith("time limit")
    again = AnnealedSubsetRegressor(9, joint=True, replay=first.replay_, random_state=3).fit(X, Y)
    np.testing.assert_array_equal(again.coef_, first.coef_)
    assert again.replay_ == first.replay_
    path = subset_path(X, Y, 12, time_limit=0.2, random_state=3)
    assert path.sizes.size == 13
    assert np.all(np.diff(path.energies) <= 0)
    np.testing.assert_array_equal(
        subset_path(X, Y, 12, steps=path.steps, random_state=3).coefs, path.coefs
    )
    whole = AnnealedSubsetRegressor(4, joint=True, random_state=3).fit(X, Y)
    assert whole.replay_ == {"n_steps": -1}
    result = whole.result_[0]
    result.save(tmp_path / "joint.json")
    loaded = JointResult.load(tmp_path / "joint.json")
    np.testing.assert_array_equal(loaded.support, result.support)
    assert loaded.summary() == result.summary()


def test_any_step_can_be_cut_and_replayed():
    rng = np.random.default_rng(8)
    A, Y = rng.standard_normal((20, 30)), rng.standard_normal((20, 2))
    problem = SparseProblem(A, Y[:, 0])
    B = A.T @ Y / np.linalg.norm(A, axis=0)[:, None] / np.linalg.norm(Y)
    supports = []
    for n_steps in (1, 3, 6, 20, 60):
        with Run(random_state=0) as run:
            found = joint_search(run, problem, B, 5, n_steps)
        assert found.n_steps == n_steps
        assert found.supports[-1].size == 5
        supports.append(tuple(found.supports[-1]))
    assert len(set(supports)) > 1
    with Run(random_state=0) as run:
        assert joint_search(run, problem, B, 5).n_steps == -1
    assert KICKS > 10


def test_errors_say_what_to_do():
    X, Y = make(9)
    with pytest.raises(ValueError, match="'auto' fits the columns of y one by one"):
        AnnealedSubsetRegressor(joint=True).fit(X, Y)
    with pytest.raises(ValueError, match="rho is part of the model"):
        AnnealedSubsetRegressor(2, joint=True, rho=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="n_nonzero_coefs must lie between 0"):
        AnnealedSubsetRegressor(20, joint=True).fit(X, Y)
    X[:, 1:] = X[:, :1] * np.arange(1, 9)
    with pytest.raises(ValueError, match="only 1 columns are linearly independent"):
        AnnealedSubsetRegressor(2, joint=True).fit(X, Y)
