"""The statistics, the data and the store of ``benchmarks/certainty``."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score

CERTAINTY = Path(__file__).parents[2] / "benchmarks" / "certainty"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the benchmark."""
    monkeypatch.syspath_prepend(CERTAINTY)
    return importlib.import_module


def correct_sampler(rng, n_data_sets, n_groups, size=4):
    """Probabilities and truths of groups of columns of which at most one is true.

    The truth is drawn from the stated probabilities, so they are right; columns depend on each other.
    """
    shape = (n_data_sets, n_groups, size)
    nobody = 0.5 * 10 ** rng.uniform(-1, 1, (n_data_sets, 1, 1))  # data sets differ in density
    draws = rng.gamma(
        np.concatenate([np.full(shape, 0.15), np.full((*shape[:2], 1), nobody)], axis=2)
    )
    p = draws / draws.sum(axis=2, keepdims=True)
    which = (np.cumsum(p, axis=2) < rng.random((*shape[:2], 1))).sum(axis=2)
    truth = which[..., None] == np.arange(size)
    return p[..., :-1].reshape(n_data_sets, -1), truth.reshape(n_data_sets, -1)


def test_calibration_test_holds_its_level_where_chi_squared_does_not(load):
    """20 data sets and many bins; 600 correct samplers."""
    judging = load("judging")
    rng = np.random.default_rng(0)
    n, rejected, by_chi_squared, n_bins = 20, 0, 0, []
    for _ in range(600):
        f, p, chance = judging.calibration_test(judging.by_bin(*correct_sampler(rng, n, 200)))
        rejected += chance < 0.01
        by_chi_squared += stats.chi2.sf(f * p * (n - 1) / (n - p), p) < 0.01
        n_bins.append(p)
    assert np.mean(n_bins) > 5
    assert rejected <= 0.02 * 600
    assert by_chi_squared > 0.08 * 600


def test_calibration_test_rejects_wrong_probabilities(load):
    judging = load("judging")
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(50):
        p, truth = correct_sampler(rng, 60, 25)
        rejected += judging.calibration_test(judging.by_bin(p**0.7, truth))[2] < 0.01
    assert rejected >= 48


def test_hotelling_is_the_t_test_in_one_dimension(load):
    d = np.random.default_rng(2).normal(0.3, 1.0, (15, 1))
    f, chance = load("judging").hotelling(d)
    t = stats.ttest_1samp(d[:, 0], 0.0)
    assert f == pytest.approx(t.statistic**2)
    assert chance == pytest.approx(t.pvalue)


def test_hotelling_needs_more_data_sets_than_bins(load):
    with pytest.raises(ValueError, match="more data sets than bins"):
        load("judging").hotelling(np.ones((4, 4)))


def test_merging_keeps_all_columns_and_leaves_no_scarce_bin(load):
    judging = load("judging")
    sums = judging.by_bin(*correct_sampler(np.random.default_rng(3), 30, 25))
    merged = judging.merged(sums)
    np.testing.assert_allclose(merged.sum(axis=2), sums.sum(axis=2))
    total = merged.sum(axis=1)
    assert np.all(np.minimum(total[1], total[2] - total[1]) >= judging.LEAST)


def test_holm(load):
    corrected = load("judging").holm([0.04, 0.01, 0.03, 0.5])
    np.testing.assert_allclose(corrected, [0.09, 0.04, 0.09, 0.5])


@pytest.mark.parametrize("decimals", [1, 8], ids=["ties", "no ties"])
def test_average_precision_is_that_of_scikit_learn(load, decimals):
    rng = np.random.default_rng(4)
    p = np.round(rng.random(200), decimals)
    truth = rng.random(200) < p
    expected = average_precision_score(truth, p)
    assert load("judging").average_precision(p, truth) == pytest.approx(expected)


def test_log_loss_of_certain_answers_is_finite(load):
    judging = load("judging")
    truth = np.array([True, False, True])
    assert judging.log_loss(truth.astype(float), truth) == pytest.approx(3e-4, rel=1e-3)
    assert judging.log_loss(np.zeros(3), truth) == pytest.approx(2 * np.log(1e4), rel=1e-3)


def test_reliability_has_a_band_around_the_true_fraction(load):
    judging = load("judging")
    p, truth = correct_sampler(np.random.default_rng(5), 100, 50)
    columns, said, true, low, high = judging.reliability(judging.by_bin(p, truth))
    assert columns.sum() == p.size
    assert np.all((low <= true) & (true <= high))
    assert np.mean((low <= said) & (said <= high)) >= 0.75


def test_rules_of_a_bin(load):
    """The last two bins are those above .9; bins with fewer than 20 columns are not judged."""
    judge = load("robustness").judge
    columns = np.array([19, 20, 20, 20, 20, 20, 20, 20])
    said = np.array([0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.92, 0.99])
    low = np.array([0.9, 0.0, 0.26, 0.3, 0.5, 0.7, 0.7, 0.8])
    high = np.array([1.0, 0.1, 0.4, 0.5, 0.54, 0.76, 0.84, 0.95])
    assert judge(columns, said, low, high) == [
        None,
        True,  # inside the band
        False,  # .06 below the band
        True,
        False,  # .06 above the band
        True,  # .04 above the band
        False,  # nearly certain, and the band ends below .85
        True,
    ]


def test_sets_and_the_true_columns_in_them(load):
    sets = load("sets")
    truth = np.zeros(10, dtype=bool)
    truth[[1, 2, 9]] = True
    found = [np.array([1, 5, 6]), np.array([1, 2]), np.array([7, 8])]
    assert sets.covering(found, truth) == [True, True, False]
    assert sets.smallest(found, truth) == {1: 2, 2: 2}


def test_data_sets_depend_on_regime_and_number_alone(load, tmp_path):
    regimes = load("regimes")
    store = tmp_path
    rng = np.random.default_rng(6)
    (store / "genotypes").mkdir()
    genotypes = rng.integers(0, 3, regimes.REGIMES["linkage"].shape).astype(np.int8)
    np.savez(regimes.genotype_path(store, 3), genotypes=genotypes)
    signals = []
    for regime in regimes.REGIMES.values():
        X, y, beta = regime.data_set(3, store)
        again = regime.data_set(3, store)
        np.testing.assert_array_equal(y, again.y)
        assert X.shape == regime.shape
        assert np.count_nonzero(beta) == regime.n_true
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(X.std(axis=0), 1.0)
        assert y.mean() == pytest.approx(0.0, abs=1e-12)
        assert not np.any(regime.noise(3, store).truth)
        signals.append(y[:5])
    assert len({tuple(signal) for signal in signals}) == 8
    assert not np.array_equal(regimes.REGIMES["wide"].data_set(4, store).y[:5], signals[0])


def test_missing_genotypes_say_how_to_make_them(load, tmp_path):
    with pytest.raises(FileNotFoundError, match="certainty simulate"):
        load("regimes").REGIMES["linkage"].data_set(0, tmp_path)


def test_stored_answers_are_not_computed_again(load, tmp_path):
    answers, regimes = load("answers"), load("regimes")

    def make(name, i):
        return regimes.REGIMES[name].data_set(i, tmp_path)

    fitted = []

    def fit(name, data, i):
        fitted.append((name, i))
        sets = [np.array([4, 7]), np.array([2])]
        return answers.Answer(np.full(data.truth.size, np.nan), 1.5, sets, "noise", 0.25)

    names = ("tall", "half")
    assert answers.collect(tmp_path, "a", names, 1, make, fit)
    assert answers.collect(tmp_path, "a", names, 2, make, fit)
    assert fitted == [("tall", 0), ("half", 0), ("tall", 1), ("half", 1)]
    assert not answers.collect(tmp_path, "a", names, 3, make, fit, minutes=-1)
    answers.collect(tmp_path, "b", names, 1, make, fit)
    ((_, found),) = answers.paired(tmp_path, ("a", "b"), "tall", 5, make)
    assert found["a"].withdrawn
    np.testing.assert_array_equal(found["a"].scored, np.full(100, 0.25))
    assert [members.tolist() for members in found["a"].sets] == [[4, 7], [2]]


def test_answers_to_other_data_are_refused(load, tmp_path):
    answers, regimes = load("answers"), load("regimes")

    def make(name, i, number=0):
        return regimes.REGIMES[name].data_set(number, tmp_path)

    def fit(name, data, i):
        return answers.Answer(np.zeros(data.truth.size), 1.0)

    answers.collect(tmp_path, "a", ("half",), 1, make, fit)
    with pytest.raises(ValueError, match="answers other data"):
        answers.paired(tmp_path, ("a",), "half", 1, lambda name, i: make(name, i, 1))
