import numpy as np
import pytest
import xarray as xr

from l0anneal.reproduction import Store, solvers
from l0anneal.reproduction.analysis import (
    Theory,
    crossing,
    entropy,
    mean_and_error,
    only_solvable,
)
from l0anneal.reproduction.datasets import gather
from l0anneal.reproduction.rows import against_theory, limit_weights, pm, samples_text
from l0anneal.reproduction.rules import decide
from l0anneal.reproduction.sweeps import Sweep
from l0anneal.theory import ReplicaSymmetric

SWEEP = Sweep(
    {"kind": "planted", "alpha": 0.8, "rho_hat": 0.2},
    {"kind": "anneal", "rho": 0.4, "schedule": {"kind": "paper", "tau": 5}},
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
    assert {name: data.attrs[name] for name in ("alpha", "rho", "rho_hat", "tau")} == {
        "alpha": 0.8,
        "rho": 0.4,
        "rho_hat": 0.2,
        "tau": 5,
    }


def test_the_error_bar_is_the_papers():
    values = np.random.default_rng(0).standard_normal(100)
    mean, error = mean_and_error(xr.DataArray(values, dims="sample"))
    assert float(mean) == pytest.approx(values.mean())
    assert float(error) == pytest.approx(values.std() / np.sqrt(99))
    _, single = mean_and_error(xr.DataArray([1.0], dims="sample"))
    assert np.isnan(single)


def test_the_limit_is_that_of_weighted_least_squares():
    sizes, counts = np.array([100, 200, 400]), np.array([100, 50, 20])
    mean = np.array([1.2, 1.15, 1.04])
    fit = np.polyfit(1 / sizes, mean, 1, w=np.sqrt(sizes * counts))
    assert limit_weights(sizes, counts) @ mean == pytest.approx(fit[1])
    assert limit_weights(sizes[:1], counts[:1]).tolist() == [1.0]


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


def planted_data(values, n_samples, sizes=(20, 40), mu=(1.0, 10.0)):
    mu = np.array(mu)
    return xr.Dataset(
        {"distortion": (("size", "sample", "mu"), values), "n_samples": ("size", n_samples)},
        coords={"size": list(sizes), "mu": mu, "temperature": ("mu", 1 / mu)},
        attrs={"alpha": 0.8, "rho": 0.4, "rho_hat": 0.2, "sigma_x2": 1, "sigma_xi2": 0},
    )


@pytest.fixture
def line():
    theory = Theory({"alpha": 0.8, "rho": 0.4, "rho_hat": 0.2, "sigma_x2": 1, "sigma_xi2": 0})
    return theory.at("distortion", [1.0, 0.1])


@pytest.mark.parametrize(
    ("size_effect", "offset", "spread", "status"),
    [
        (0.0, 0.0, 0.02, "agrees"),
        (10.0, 0.0, 0.02, "agrees"),  # half as large again at N = 20, but the limit decides
        (0.0, 0.2, 0.02, "differs"),
        (0.0, -0.2, 0.02, "differs"),
        (0.0, 0.0, 2.0, "too few"),
    ],
)
def test_a_curve_is_judged_by_its_limit(line, size_effect, offset, spread, status):
    rng = np.random.default_rng(0)
    shift = 1 + offset + size_effect / np.array([20, 40])[:, None, None]
    values = line * (shift + spread * rng.normal(size=(2, 100, 1)))
    verdict = against_theory(planted_data(values, [100, 100]), "distortion", 0.01, 10.0)
    assert decide([verdict])[0].status == status


def test_sizes_with_few_samples_are_not_judged(line):
    """Four samples at N = 40 lie far from theory, but only the hundred at N = 20 are judged."""
    noise = np.random.default_rng(0).normal(0, 0.01, (2, 100, 1))
    values = line * (1 + noise + np.array([0.0, 5.0])[:, None, None])
    values[1, 4:] = np.nan
    data = planted_data(values, [100, 4])
    assert decide([against_theory(data, "distortion", 0.01, 10.0)])[0].status == "agrees"
    assert samples_text(data) == "N = 20 (100 samples), not extrapolated"
    values[1] = line * 6.0 * (1 + noise[1])
    enough = planted_data(values, [100, 100])
    assert decide([against_theory(enough, "distortion", 0.01, 10.0)])[0].status == "differs"
    none = planted_data(values[:, :1], [1, 1])
    assert decide([against_theory(none, "distortion", 0.01, 10.0)])[0].status == "too few"


def test_the_size_of_the_planted_support_is_stored():
    task = SWEEP.tasks(20)[0]
    arrays, _ = solvers.run(task)
    assert arrays["n_planted"] == solvers.instance_of(task).support.size


def test_instances_with_too_many_planted_columns_can_be_left_out(store):
    data = gather(SWEEP, store)
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
