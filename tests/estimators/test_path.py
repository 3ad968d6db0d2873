import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from helpers.clock import TickingClock
from helpers.reference import enumerate_supports, random_problem
from l0anneal import (
    SparseProblem,
    SubsetPathDisplay,
    anneal,
    choose_size,
    subset_path,
)
from l0anneal._util.figures import new_figure
from l0anneal.estimators import path as path_module
from l0anneal.samplers import path_search
from l0anneal.samplers.path_search import best_of_every_size
from l0anneal.samplers.run import Run


def planted(seed=0, m=80, n=25, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 1.0
    return X, 3.0 + X[:, [2, 7, 11]] @ [1.5, -1.0, 0.8] + noise * rng.standard_normal(m)


@pytest.fixture(scope="module")
def data():
    return planted()


@pytest.fixture(scope="module")
def path(data):
    return subset_path(*data, 8, cv=5, random_state=0)


@pytest.mark.parametrize("kind", ["gaussian", "correlated", "duplicates", "badly scaled"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_size_is_the_enumerated_best(kind, fit_intercept):
    for seed in range(2):
        A, y = random_problem(np.random.default_rng(seed), 9, 10, kind)
        path = subset_path(A, y, 5, fit_intercept=fit_intercept, random_state=seed)
        centred = (A - A.mean(axis=0), y - y.mean()) if fit_intercept else (A, y)
        for k in path.sizes:
            supports, energies = enumerate_supports(*centred, k)
            assert path.energies[k] == pytest.approx(energies.min(), rel=1e-9)
            if kind != "duplicates":  # where the best is not unique
                assert tuple(path.support(k)) == supports[int(np.argmin(energies))]


def test_annealing_alone_finds_the_enumerated_best(monkeypatch):
    monkeypatch.setattr(path_search, "ENUMERATED", 0)
    for seed in range(3):
        A, y = random_problem(np.random.default_rng(seed), 30, 12)
        with Run(random_state=seed) as run:
            supports = best_of_every_size(run, SparseProblem(A, y), 4).supports
        everything, energies = enumerate_supports(A, y, 4)
        assert tuple(supports[4]) == everything[int(np.argmin(energies))]


def test_never_worse_for_one_column_more_and_least_squares_throughout(data, path):
    X, y = data
    assert np.all(np.diff(path.energies) <= 0)
    np.testing.assert_array_equal(path.sizes, np.arange(9))
    for k in path.sizes[1:]:
        model = LinearRegression().fit(X[:, path.support(k)], y)
        np.testing.assert_allclose(path.coefs[k, path.support(k)], model.coef_, rtol=1e-8)
        assert np.count_nonzero(path.coefs[k]) == k
        assert path.intercepts[k] == pytest.approx(model.intercept_)
        residual = y - model.predict(X[:, path.support(k)])
        assert path.energies[k] == pytest.approx(0.5 * residual @ residual)


def test_as_good_as_annealing_each_size():
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((60, 120)), rng.standard_normal(60)
    path = subset_path(A, y, 16, fit_intercept=False, random_state=0)
    problem = SparseProblem(A, y)
    for k in (4, 8, 12, 16):
        assert path.energies[k] <= 1.03 * anneal(problem, k, random_state=0).energy


def test_a_path_ends_where_the_columns_do():
    A = np.random.default_rng(0).standard_normal((20, 3)) @ np.ones((3, 3)) + np.eye(20, 3)
    A = np.hstack([A, 2 * A])
    path = subset_path(A, np.arange(20.0), 6, random_state=0)
    assert path.sizes.tolist() == [0, 1, 2, 3]
    with Run(random_state=0) as run:
        found = best_of_every_size(run, SparseProblem(A, np.arange(20.0)), 6)
    assert len(found.supports) == 4


@pytest.mark.parametrize("free", [1, 3, 8, 25])
@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("once", [0.0, 9.0])
def test_what_is_done_once_for_all_sizes_is_reserved_once(data, monkeypatch, once, power, free):
    """The prior takes longer than a support does, and was counted for each of them.

    A support of size k takes kᵖ. Of five sizes the mean of k² is 9/8 of that of all, at most.
    """
    clock = [0.0]

    def fields(design, supports):
        clock[0] += once + sum((support.size / free) ** power for support in supports)

    monkeypatch.setattr(path_module, "_fields", fields)
    monkeypatch.setattr(Run, "now", lambda run: clock[0])
    with Run(time_limit=100.0) as run:
        reserved = path_module._packing_seconds(run, None, free)
    clock[0] = 0.0
    fields(None, [np.arange(size) for size in range(free + 1)])
    assert 0.97 * clock[0] < reserved < 9 / 8 * clock[0]


def test_a_time_limit_leaves_a_whole_path(data):
    path = subset_path(*data, 8, time_limit=1e-9, random_state=0)
    assert path.sizes.size == 9
    assert np.all(np.diff(path.energies) <= 0)


def test_one_seed_one_path_for_any_number_of_jobs(data, path):
    for n_jobs in (1, 2):
        again = subset_path(*data, 8, cv=5, n_jobs=n_jobs, random_state=0)
        np.testing.assert_array_equal(again.coefs, path.coefs)
        np.testing.assert_array_equal(again.criteria["cv"], path.criteria["cv"])
    assert again.seed == 0


@pytest.mark.parametrize("criterion", ["evidence", "ebic", "cv"])
def test_criteria_choose_the_true_size(path, criterion):
    assert choose_size(path, criterion) == 3


def test_criteria_by_hand(data, path):
    n, p = data[0].shape
    rss = 2 * path.energies
    bic = n * np.log(rss / n) + (path.sizes + 1) * np.log(n)
    np.testing.assert_allclose(path.criteria["bic"], bic)
    choices = [np.prod([(p - i) / (i + 1) for i in range(k)]) for k in path.sizes]
    np.testing.assert_allclose(path.criteria["ebic"], bic + 2 * np.log(choices))


def test_evidence_by_quadrature():
    """Against the density of y under Gaussian noise and coefficients, integrated over the noise."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((9, 4)), rng.standard_normal(9) * 3.0
    A /= np.linalg.norm(A, axis=0)
    path = subset_path(A, y, 4, fit_intercept=False, random_state=0)
    g = 10.0 ** np.arange(0.0, 12.01, 0.25)
    prior_g = 1 / ((1 + (4 * np.log(5) / g) ** 2) * np.sqrt(1 + g / 9))
    log_T = np.linspace(-14, 14, 4001)
    most = 0.9  # 9 samples are enough for any density of 4 columns
    in_log, in_rho = (np.arange(540) + 0.5) / 540, (np.arange(60) + 0.5) / 60
    least = 0.1 * most  # and not .5/4, which is more
    rho = np.append(least * (most / least) ** in_log, most * in_rho)
    log_posterior = []
    for k, support in enumerate(path.supports):
        C = np.eye(9) + g[:, None, None] * (A[:, support] @ A[:, support].T)
        quadratic = np.linalg.solve(C, np.broadcast_to(y, (g.size, 9))[..., None])[..., 0] @ y
        density = -0.5 * np.linalg.slogdet(C)[1][:, None] - 0.5 * quadratic[:, None] / np.exp(log_T)
        weight = prior_g / prior_g.sum() @ np.exp(density - 4.5 * log_T)
        log_posterior.append(np.log(weight.sum()) + np.log(np.mean(rho**k * (1 - rho) ** (4 - k))))
    found = -0.5 * path.criteria["evidence"]
    np.testing.assert_allclose(
        found - found[0], np.array(log_posterior) - log_posterior[0], atol=1e-6
    )


@pytest.mark.parametrize(("m", "n", "most"), [(200, 20, 20), (60, 60, 25), (60, 300, 15)])
def test_evidence_prefers_the_true_size(m, n, most):
    right = noise = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, e = rng.standard_normal((m, n)), rng.standard_normal(m)
        path = subset_path(X, X[:, :4] @ [1.0, -1.0, 1.0, -1.0] + 0.6 * e, most, random_state=0)
        right += choose_size(path, "evidence") == 4
        noise += choose_size(subset_path(X, e, most, random_state=0), "evidence") == 0
    assert right >= 4  # a column of pure chance can be stronger than the prior against it
    assert noise == 5


def test_evidence_does_not_rise_towards_all_columns():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((200, 20))
    y = X[:, :18] @ np.ones(18) + rng.standard_normal(200)
    assert choose_size(subset_path(X, y, 20, random_state=0), "evidence") in (18, 19)


def test_leave_one_out_is_that_of_explicit_refits(data):
    X, y = planted(m=20)
    for options in ({}, {"always_include": [5]}, {"fit_intercept": False}):
        path = subset_path(X, y, 4, random_state=0, **options)
        for i in range(path.sizes.size):
            S = path.supports[i]
            errors = []
            for out in range(y.size):
                rest = np.arange(y.size) != out
                A = X[:, S]
                if options.get("fit_intercept", True):
                    A = np.column_stack([np.ones(y.size), A])
                x = np.linalg.lstsq(A[rest], y[rest], rcond=None)[0]
                errors.append(y[out] - A[out] @ x)
            assert path.leave_one_out[i] == pytest.approx(np.mean(np.square(errors)))


def test_leave_one_out_with_a_ridge():
    X, y = planted(m=20)
    path = subset_path(X, y, 2, alpha=4.0, fit_intercept=False, random_state=0)
    S, errors = path.supports[2], []
    for out in range(20):
        A, rest = X[:, S], np.arange(20) != out
        x = np.linalg.solve(A[rest].T @ A[rest] + 4.0 * np.eye(2), A[rest].T @ y[rest])
        errors.append(y[out] - A[out] @ x)
    assert path.leave_one_out[2] == pytest.approx(np.mean(np.square(errors)))


def test_cross_validation_selects_anew_in_each_fold():
    # columns of pure noise: selected once, on all rows, they would seem to predict
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 200)), rng.standard_normal(60)
    folds = list(KFold(5).split(X))
    path = subset_path(X, y, 5, cv=folds, random_state=0)
    honest = path.criteria["cv"]
    once = np.zeros(6)
    for train, test in folds:
        for k in range(6):
            S = path.support(k)
            A = np.column_stack([np.ones(60), X[:, S]])
            x = np.linalg.lstsq(A[train], y[train], rcond=None)[0]
            once[k] += np.mean((y[test] - A[test] @ x) ** 2) / 5
    assert once[5] < 0.7 * once[0]
    assert honest[5] > 1.1 * honest[0]
    assert choose_size(path, "cv") < 5
    assert np.argmin(path.leave_one_out) == 5  # and that is why leaving one out does not choose


def test_cross_validation_by_hand(data):
    X, y = data
    folds = list(KFold(4).split(X))
    path = subset_path(X, y, 2, cv=folds, random_state=0)
    errors = []
    for train, test in folds:
        own = subset_path(X[train], y[train], 2, random_state=1)
        errors.append(
            np.mean((y[test, None] - X[test] @ own.coefs.T - own.intercepts) ** 2, axis=0)
        )
    np.testing.assert_allclose(path.criteria["cv"], np.mean(errors, axis=0))
    np.testing.assert_allclose(path.cv_error, np.std(errors, axis=0, ddof=1) / 2)


def test_one_standard_error_rule(path):
    values, error = path.criteria["cv"], path.cv_error
    limit = values.min() + error[np.argmin(values)]
    k = choose_size(path, "cv")
    assert values[k] <= limit
    assert np.all(values[:k] > limit)


def test_dense_sparse_and_named_data_have_the_same_path(data, path):
    X, y = data
    names = [f"c{j}" for j in range(X.shape[1])]
    sparse = subset_path(scipy.sparse.csr_array(X), y, 8, cv=5, random_state=0)
    named = subset_path(pd.DataFrame(X, columns=names), y, 8, cv=5, random_state=0)
    for other in (sparse, named):
        np.testing.assert_allclose(other.coefs, path.coefs, rtol=1e-7, atol=1e-10)
        for name in path.criteria:
            np.testing.assert_allclose(other.criteria[name], path.criteria[name], rtol=1e-8)
        np.testing.assert_allclose(other.leave_one_out, path.leave_one_out, rtol=1e-8)
    assert named.feature_names == tuple(names)


def test_always_included_columns_are_in_every_support(data):
    path = subset_path(*data, 5, always_include=[0, 24], cv=3, random_state=0)
    assert path.sizes.tolist() == [2, 3, 4, 5]
    assert all({0, 24} <= set(S) for S in path.supports)
    assert set(path.support(5)) == {0, 2, 7, 11, 24}


def test_the_display_draws_on_the_axes_it_is_given(path):
    figure = new_figure(12, 4)
    axes = figure.subplots(1, 3)
    display = SubsetPathDisplay.from_path(path, axes=axes)
    assert display.figure_ is figure
    assert display.axes_ == tuple(axes)
    assert display.chosen_ == 3
    fit, criterion, coefficients = axes
    np.testing.assert_allclose(fit.lines[0].get_ydata(), 2 * path.distortions)
    np.testing.assert_allclose(criterion.lines[0].get_ydata(), path.criteria["cv"])
    assert len(criterion.collections) == 1  # the band
    assert "chosen: k = 3" in [text.get_text() for text in criterion.get_legend().get_texts()]
    assert all(ax.get_xlabel() == "number of columns k" and ax.get_ylabel() for ax in axes)
    assert {text.get_text() for text in coefficients.texts} >= {"2", "7", "11"}
    with pytest.raises(ValueError, match="three axes"):
        SubsetPathDisplay.from_path(path, axes=axes[:2])


def test_bad_arguments(data, path):
    X, y = data
    with pytest.raises(ValueError, match="number of features, 25; got 26"):
        subset_path(X, y, 26)
    with pytest.raises(ValueError, match="too large for 10 samples: at most 9"):
        subset_path(X[:10], y[:10], 12)
    with pytest.raises(ValueError, match="integer"):
        subset_path(X, y, 2.0)
    with pytest.raises(ValueError, match="between 2 folds"):
        subset_path(X, y, 2, cv=1)
    with pytest.raises(ValueError, match="alpha"):
        subset_path(X, y, 2, alpha=-1.0)
    with pytest.raises(ValueError, match="NaN"):
        subset_path(np.where(X > 1, np.nan, X), y, 2)
    with pytest.raises(ValueError, match="criterion must be one of"):
        choose_size(path, "aic")
    with pytest.raises(ValueError, match="no cross-validation"):
        choose_size(subset_path(X, y, 2, random_state=0), "cv")
    with pytest.raises(ValueError, match="sizes from 0 to 8; got 9"):
        path.support(9)


@pytest.mark.parametrize("cv", [None, 3])
def test_a_path_with_a_time_limit_replays(cv, monkeypatch):
    """Cut short in the middle of the search, and again by its number of steps."""
    TickingClock(monkeypatch)  # with it the search takes 5 seconds, and with the folds 20
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 80)), rng.standard_normal(60)
    first = subset_path(X, y, 20, cv=cv, time_limit=2.0, n_jobs=2, random_state=3)
    again = subset_path(X, y, 20, cv=cv, steps=first.steps, random_state=3)
    assert first.ended == again.ended == "time limit"
    assert again.steps == first.steps
    assert -1 not in first.steps  # not even the searches of the folds came to their end
    for a, b in zip(first.supports, again.supports, strict=True):
        np.testing.assert_array_equal(a, b)
    for name in first.criteria:
        np.testing.assert_array_equal(first.criteria[name], again.criteria[name])


def test_steps_belong_to_a_path():
    X, y = planted()
    with pytest.raises(ValueError, match="steps needs 4 numbers"):
        subset_path(X, y, 3, cv=3, steps=(1,))
    with pytest.raises(ValueError, match="not both"):
        subset_path(X, y, 3, steps=(1,), time_limit=1.0)


@pytest.mark.parametrize(("verbose", "shown"), [(0, False), (True, True), (1, True)])
def test_verbose_says_what_the_search_does(capsys, verbose, shown):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    subset_path(X, y, 3, cv=3, verbose=verbose, random_state=0)
    err = capsys.readouterr().err
    assert ("preparing the data" in err) == shown
    assert ("cross-validation, 3 folds" in err) == shown
    with pytest.raises(ValueError, match="verbose must be an integer ≥ 0; got 'yes'"):
        subset_path(X, y, 3, verbose="yes")
