"""Samples and trajectories as ArviZ data; with ArviZ 0.2x and 1.x, whichever is installed."""

import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import xarray as xr

from helpers.reference import qr_energy
from l0anneal import (
    Schedule,
    SparseProblem,
    anneal,
    ensembles,
    evidence_anneal,
    population_anneal,
    temper,
)
from l0anneal.samplers.export import columns_of, inclusion, posterior, stacked_by_chain

K, MU = 3, (0.5, 2.0)
needs_arviz = pytest.mark.skipif(find_spec("arviz") is None, reason="ArviZ is not installed")


def largest(coef):
    return float(np.abs(coef).max())


@pytest.fixture(scope="module")
def problem():
    instance = ensembles.noise_only(12, 0.75, random_state=0)
    return SparseProblem(instance.A, instance.y, feature_names=[f"x{j}" for j in range(12)])


def of_a_signal():
    """A problem with three true columns, so that draws are not empty."""
    instance = ensembles.planted(12, 3.0, 0.25, sigma_xi2=0.02, support="fixed", random_state=0)
    return SparseProblem(instance.A, instance.y, feature_names=[f"x{j}" for j in range(12)])


@pytest.fixture(scope="module")
def results(problem):
    arguments = {"keep_samples": True, "observables": {"largest": largest}, "random_state": 0}
    schedule = Schedule.custom(MU, 4)
    return {
        "anneal": anneal(problem, K, schedule, n_chains=3, **arguments),
        "temper": temper(problem, K, ladder=MU, n_sweeps=600, **arguments),
        "population": population_anneal(problem, K, schedule, population=50, **arguments),
        "evidence": evidence_anneal(of_a_signal(), n_draws=300, random_state=0),
    }


def dataset(data, group):
    """Return a group of a DataTree or of an InferenceData as a dataset."""
    return data[group].to_dataset() if isinstance(data, xr.DataTree) else data[group]


# ---------------------------------------------------------------- what is kept


@pytest.mark.parametrize("name", ["anneal", "temper", "population"])
def test_kept_values_belong_to_the_kept_supports(problem, results, name):
    result = results[name]
    supports = result.sampled_supports.reshape(-1, K)
    assert set(result.sampled_values) == {"energy", "largest"}
    energies = result.sampled_values["energy"]
    assert energies.shape == result.sampled_supports.shape[:-1]
    for i in np.random.default_rng(0).choice(len(supports), 20):
        coef = np.linalg.lstsq(problem.A[:, supports[i]], problem.y, rcond=None)[0]
        assert energies.flat[i] == pytest.approx(qr_energy(problem.A, problem.y, supports[i]))
        assert result.sampled_values["largest"].flat[i] == pytest.approx(np.abs(coef).max())


@pytest.mark.parametrize("name", ["anneal", "temper", "population"])
@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_the_kept_values_are_saved(results, name, suffix, tmp_path):
    result = results[name]
    result.save(tmp_path / f"run.{suffix}")
    loaded = type(result).load(tmp_path / f"run.{suffix}")
    assert loaded.trajectory.identical(result.trajectory)
    assert "largest" in loaded.trajectory
    for key, values in result.sampled_values.items():
        np.testing.assert_array_equal(loaded.sampled_values[key], values)
    if name == "population":
        assert loaded.overlap_distribution().identical(result.overlap_distribution())


def test_observables_do_not_depend_on_threads(problem, results):
    arguments = {"observables": {"largest": largest}, "random_state": 0, "n_jobs": 2}
    again = {
        "temper": temper(problem, K, ladder=MU, n_sweeps=600, **arguments),
        "population": population_anneal(
            problem, K, Schedule.custom(MU, 4), population=50, **arguments
        ),
    }
    for name, result in again.items():
        assert result.trajectory.identical(results[name].trajectory)
        assert result.sampled_values == {}


@pytest.mark.parametrize("sampler", [anneal, temper, population_anneal])
@pytest.mark.parametrize(
    ("observables", "message"),
    [
        ({"specific_heat": largest}, "cannot be called 'specific_heat'"),
        ({"distortion_error": largest}, "cannot be called 'distortion_error'"),
        ({"a": largest, "a_error": largest}, "cannot be called 'a_error'"),
        ({"a": 3.0}, "functions of the coefficients; got 3.0 as 'a'"),
    ],
)
def test_bad_observables(problem, sampler, observables, message):
    with pytest.raises(ValueError, match=message):
        sampler(problem, K, observables=observables)


# ---------------------------------------------------------------- without ArviZ


def test_inclusion_of_padded_supports():
    supports = np.array([[[0, 3, -1], [1, 2, 3]], [[2, -1, -1], [-1, -1, -1]]])
    columns = np.array([3, 0, 7])
    expected = [[[int(j in s) for j in columns] for s in rows] for rows in supports.tolist()]
    np.testing.assert_array_equal(inclusion(supports, columns), expected)


def test_the_columns_to_export():
    seen = np.array([[2, 5], [5, -1]])
    assert columns_of(None, seen, 9).tolist() == [2, 5]
    assert columns_of([7, 2], seen, 9).tolist() == [7, 2]
    with pytest.raises(ValueError, match="between 0 and 8"):
        columns_of([9], seen, 9)
    with pytest.raises(ValueError, match="column indices"):
        columns_of(["x1"], seen, 9)


def test_chains_of_different_lengths_keep_their_last_draws():
    order = stacked_by_chain(np.array([4, 4, 4, 7, 7, 4, 7]))
    np.testing.assert_array_equal(order, [[1, 2, 5], [3, 4, 6]])


def test_a_dataset_of_draws(results):
    result = results["anneal"]
    values = {"energy": result.sampled_values["energy"]}
    group = posterior(result.sampled_supports, values, np.array([4, 1]), result.feature_names)
    assert group["column"].values.tolist() == ["x4", "x1"]
    expected = np.any(result.sampled_supports == 4, axis=-1)
    np.testing.assert_array_equal(group["inclusion"].sel(column="x4"), expected)


def test_without_arviz_the_error_says_what_to_install(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"to_arviz needs ArviZ: pip install 'l0anneal\[arviz\]'"):
        results["anneal"].to_arviz()


# ---------------------------------------------------------------- with ArviZ


@needs_arviz
@pytest.mark.parametrize("name", ["anneal", "temper", "population", "evidence"])
def test_arviz_can_work_on_all_results(results, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ's own
        import arviz

        data = results[name].to_arviz()
        kind = xr.DataTree if int(arviz.__version__.split(".")[0]) >= 1 else arviz.InferenceData
        assert type(data) is kind
        variable = "noise_variance" if name == "evidence" else "energy"
        summary = arviz.summary(data, var_names=[variable])
        assert len(summary) == np.prod(dataset(data, "posterior")[variable].shape[2:])
    group = dataset(data, "posterior")
    assert group["inclusion"].dims[:2] == ("chain", "draw")
    assert group.attrs["inference_library"] == "l0anneal"
    assert set(group["column"].values) <= {f"x{j}" for j in range(12)}


@needs_arviz
def test_groups_of_each_sampler(results):
    data = results["anneal"].to_arviz()
    assert dict(dataset(data, "posterior").sizes) == {"chain": 3, "draw": 4, "column": 12}
    warmup = dataset(data, "warmup_posterior")
    assert set(warmup["mu"].values) == {MU[0]}
    assert set(dataset(data, "trajectory")["distortion"].dims) == {"chain", "mu"}
    data = results["temper"].to_arviz(columns=[2])
    mean = dataset(data, "posterior")["inclusion"].mean(("chain", "draw"))
    expected = np.mean(np.any(results["temper"].sampled_supports == 2, axis=-1), axis=0)
    np.testing.assert_allclose(mean.sel(column="x2"), expected)
    data = results["population"].to_arviz()
    family = dataset(data, "sample_stats")["family"]
    np.testing.assert_array_equal(family[0].T, results["population"].sampled_families)
    energy = dataset(data, "posterior")["energy"].sel(mu=MU[-1])[0]
    np.testing.assert_array_equal(energy, results["population"].last_energies)


@needs_arviz
def test_the_last_population_alone(problem):
    result = population_anneal(problem, K, mu_max=1.0, population=50, random_state=0)
    group = dataset(result.to_arviz(), "posterior")
    assert (group.sizes["chain"], group.sizes["draw"], group.sizes["mu"]) == (1, 50, 1)
    np.testing.assert_array_equal(group["energy"].values.ravel(), result.last_energies)


@needs_arviz
def test_draws_of_the_posterior(results):
    result = results["evidence"]
    group = dataset(result.to_arviz(), "posterior")
    draws, order = result.draws, stacked_by_chain(result.draws.chain)
    for column in group["column"].values[:3]:
        j = int(column[1:])
        inside = draws.contains(np.array([j]))[:, 0]
        np.testing.assert_array_equal(group["inclusion"].sel(column=column), inside[order])
    i = order[0, -1]  # some draw
    coef = dict(zip(draws.support(i).tolist(), draws.coef[draws.start[i] : draws.start[i + 1]]))
    for column, value in zip(group["column"].values, group["coef"].values[0, -1]):
        assert value == coef.get(int(column[1:]), 0.0)
    assert group["size"].values[0, -1] == len(coef) > 1
