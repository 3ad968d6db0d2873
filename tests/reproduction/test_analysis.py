import numpy as np
import pytest
import xarray as xr

from l0anneal import ensembles
from l0anneal.reproduction import Store, analysis, solvers
from l0anneal.reproduction.analysis import (
    Theory,
    crossing,
    deviation,
    entropy,
    extrapolate,
    gather,
    mean_and_error,
    only_solvable,
    summary,
)
from l0anneal.reproduction.rules import compare, describe, judge_curve, pm
from l0anneal.reproduction.sweeps import Sweep
from l0anneal.theory import ReplicaSymmetric

SWEEP = Sweep(
    {"kind": "planted", "alpha": 0.8, "rho_hat": 0.2},
    {"kind": "anneal", "rho": 0.4, "schedule": {"kind": "paper"}},
    {20: 3, 40: 2},
)


@pytest.fixture
def store(tmp_path):
    """Sample i at size N has the distortion i + N at every μ; one of the five is missing."""
    store = Store(tmp_path)
    for size in SWEEP.samples:
        for task in SWEEP.tasks(size):
            if (size, task.sample) != (20, 1):
                mu = np.array([0.5, 2.0, 8.0])
                arrays = {
                    "mu": mu,
                    "distortion": np.full(3, float(task.sample + size)),
                    "free_entropy": np.zeros(3),
                    "final_mse": np.array(float(task.sample)),
                    "final_mse_by_eighth": np.arange(8.0),
                }
                store.write(task, arrays, seconds=2.0)
    return store


def test_gathering_puts_samples_in_their_places(store):
    data = gather(SWEEP, store)
    assert data["n_samples"].to_numpy().tolist() == [2, 2]
    assert data["distortion"].dims == ("size", "sample", "mu")
    values = data["distortion"].isel(mu=0).to_numpy()
    np.testing.assert_array_equal(values, [[20, np.nan, 22], [40, 41, np.nan]])
    np.testing.assert_array_equal(data["temperature"], [2.0, 0.5, 0.125])
    assert data["final_mse_by_eighth"].dims == ("size", "sample", "part")
    assert data.attrs == {
        "alpha": 0.8,
        "rho": 0.4,
        "rho_hat": 0.2,
        "sigma_x2": 1.0,
        "sigma_xi2": 0.0,
    }


def test_a_summary_has_means_and_error_bars_and_survives_a_file(store, tmp_path):
    kept = summary(gather(SWEEP, store))
    assert kept["distortion"].sel(size=20).to_numpy().tolist() == [21.0] * 3
    assert kept["distortion_error"].sel(size=20).to_numpy().tolist() == [1.0] * 3
    kept.to_netcdf(tmp_path / "kept.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "kept.nc") as back:
        xr.testing.assert_identical(back.load(), kept)


def test_the_error_bar_is_the_papers():
    values = np.random.default_rng(0).standard_normal(100)
    mean, error = mean_and_error(xr.DataArray(values, dims="sample"))
    assert float(mean) == pytest.approx(values.mean())
    assert float(error) == pytest.approx(values.std() / np.sqrt(99))
    _, single = mean_and_error(xr.DataArray([1.0], dims="sample"))
    assert np.isnan(single)


def test_the_extrapolation_is_that_of_weighted_least_squares():
    sizes = np.array([100, 200, 400])
    mean, error = np.array([1.2, 1.15, 1.04]), np.array([0.01, 0.02, 0.04])
    fit, covariance = np.polyfit(1 / sizes, mean, 1, w=1 / error, cov="unscaled")
    as_array = [xr.DataArray(v, dims="size", coords={"size": sizes}) for v in (mean, error)]
    limit, limit_error = extrapolate(*as_array)
    assert float(limit) == pytest.approx(fit[1])
    assert float(limit_error) == pytest.approx(np.sqrt(covariance[1, 1]))


def test_one_size_is_not_extrapolated_and_coinciding_samples_do_not_rule():
    one = xr.DataArray([1.0, np.nan], dims="size", coords={"size": [100, 200]})
    assert np.isnan(extrapolate(one, 0.1 * one)[0])
    mean = xr.DataArray([1e-33, 1.0, 1.0], dims="size", coords={"size": [50, 100, 200]})
    error = xr.DataArray([1e-33, 0.1, 0.1], dims="size", coords={"size": [50, 100, 200]})
    limit, limit_error = extrapolate(mean, error)
    assert np.isfinite(limit)
    assert 0 < limit_error < 1


def test_interpolated_theory_is_the_theory():
    theory = Theory({"alpha": 0.75, "rho": 0.65, "rho_hat": 0.5, "sigma_x2": 1, "sigma_xi2": 0})
    exact = ReplicaSymmetric(0.75, 0.65, 0.5)
    for branch, temperatures in (("cooled", [1e-4, 3e-3, 0.7]), ("planted", [3e-7, 2e-4])):
        for name in ("distortion", "mse", "entropy", "free_entropy"):
            ours = theory.at(name, temperatures, branch)
            theirs = [getattr(exact.at(t, branch), name) for t in temperatures]
            np.testing.assert_allclose(ours, theirs, rtol=2e-3)
    # the planted branch ends at its spinodal
    assert np.isnan(theory.at("mse", [1e-4, 7e-4], "planted")[1])


def test_entropy_counts_supports_in_the_limit(store):
    found = entropy(gather(SWEEP, store), planted=False)
    # g was stored as zero, so only the shift of the count and μ α ε remain
    n, k = 20, 8
    count = np.log(float(125970)) / n  # C(20, 8)
    shift = -(0.4 * np.log(0.4) + 0.6 * np.log(0.6)) - count
    assert k == round(0.4 * n)
    np.testing.assert_allclose(found["free_entropy"].sel(size=20, sample=0), shift)
    np.testing.assert_allclose(
        found["entropy"].sel(size=20, sample=0, mu=2.0), shift + 2 * 0.8 * 20
    )


def test_deviations_are_those_of_the_points_between_the_temperatures():
    t = np.array([1e-3, 1e-2, 1e-1, 1.0])
    line = t.copy()
    found = deviation(t, line + np.array([9, 0.002, -0.03, 0.1]), np.full(4, 0.01), line, 5e-3, 2.0)
    assert found.n_points == 3
    assert found.largest == pytest.approx(10)
    assert found.rms == pytest.approx(np.sqrt((0.2**2 + 3**2 + 10**2) / 3))
    assert found.relative == pytest.approx(0.3)
    assert found.absolute == pytest.approx(0.1)
    assert found.widest == pytest.approx(1.0)
    assert deviation(t, line, np.full(4, np.nan), line, 0.0, 2.0) is None


def test_verdicts_follow_their_rule():
    t = np.geomspace(0.1, 10, 20)
    near = deviation(t, t * 1.02, 0.01 * t, t, 0, 99)
    wide = deviation(t, t * 3.0, 1.5 * t, t, 0, 99)
    far = deviation(t, t * 1.05, 0.01 * t, t, 0, 99)
    assert judge_curve(near, None)[1] == "agrees"
    assert judge_curve(far, near)[1] == "agrees"  # the limit of large N decides
    assert judge_curve(wide, None)[1] == "partly"
    assert judge_curve(far, None)[1] == "differs"
    assert judge_curve(None, None)[1] == "partly"


def test_sizes_with_few_samples_are_not_judged():
    """Seven samples at N = 40 lie far from theory, but only the eight at N = 20 are judged."""
    mu = np.array([1.0, 10.0])
    theory = Theory({"alpha": 0.8, "rho": 0.4, "rho_hat": 0.2, "sigma_x2": 1, "sigma_xi2": 0})
    line = theory.at("distortion", 1 / mu)
    noise = np.random.default_rng(0).normal(0, 0.01, (2, 8, 1))
    values = line * (1 + noise + np.array([0.0, 5.0])[:, None, None])
    values[1, 7] = np.nan
    data = xr.Dataset(
        {"distortion": (("size", "sample", "mu"), values), "n_samples": ("size", [8, 7])},
        coords={"size": [20, 40], "mu": mu, "temperature": ("mu", 1 / mu)},
        attrs={"alpha": 0.8, "rho": 0.4, "rho_hat": 0.2, "sigma_x2": 1, "sigma_xi2": 0},
    )
    measured, limit = compare(data, "distortion", 0.01, 10.0)
    assert limit is None
    assert judge_curve(measured, limit)[1] == "agrees"
    assert describe(data, measured, limit).startswith("N = 20 (8 samples)")
    enough = data.assign(n_samples=("size", [8, 8]))
    assert judge_curve(*compare(enough, "distortion", 0.01, 10.0))[1] == "differs"
    none = data.assign(n_samples=("size", [1, 1]))
    assert compare(none, "distortion", 0.01, 10.0) == (None, None)


def test_the_stored_size_of_the_planted_support_is_used(store, monkeypatch):
    task = SWEEP.tasks(20)[0]
    arrays, _ = solvers.run(task)
    assert arrays["n_planted"] == solvers.instance_of(task).support.size
    store.write(task, {**store.read(task).arrays, "n_planted": np.array(7)}, seconds=1.0)
    drawn = []
    real = analysis.instance_of
    monkeypatch.setattr(analysis, "instance_of", lambda t: drawn.append(t) or real(t))
    sweep = Sweep(SWEEP.ensemble, SWEEP.solver, {20: 1})
    assert gather(sweep, store)["n_planted"].to_numpy().tolist() == [[7]]
    assert drawn == []
    # files without this number come from earlier versions
    gather(SWEEP, store)
    assert {(t.ensemble["n_columns"], t.sample) for t in drawn} == {(20, 2), (40, 0), (40, 1)}


def test_instances_with_too_many_planted_columns_can_be_left_out(store):
    data = gather(SWEEP, store)
    for size in (20, 40):
        for task in SWEEP.tasks(size):
            if (size, task.sample) != (20, 1):
                expected = ensembles.planted(
                    size, 0.8, 0.2, random_state=task.instance_seed
                ).support.size
                assert data["n_planted"].sel(size=size)[task.sample] == expected
    # k is 8 and 16; make one instance of each size exceed it
    data["n_planted"][:] = [[9, np.nan, 8], [16, 17, np.nan]]
    chosen = only_solvable(data)
    assert chosen["n_samples"].to_numpy().tolist() == [1, 1]
    kept = chosen["distortion"].isel(mu=0).to_numpy()
    np.testing.assert_array_equal(kept, [[np.nan, np.nan, 22], [40, np.nan, np.nan]])


def test_no_crossing_is_no_number():
    t = np.array([1.0, 2.0, 3.0])
    assert crossing(t, np.ones(3), np.ones(3)) is None


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0272, 6.2e-4, "0.02720(62)"),
        (0.2158, 0.0010, "0.2158(10)"),
        (12.3, 4.0, "12.3(40)"),
        (7.2578e-9, 1.1e-10, "7.26(11)e-09"),
        (5.0, 0.0, "5"),
    ],
)
def test_numbers_with_errors_read_well(value, error, text):
    assert pm(value, error) == text
