"""The data files of a report: complete, exact, and with their origin."""

import json

import numpy as np
import pytest
import xarray as xr

from l0anneal import Schedule, anneal, ensembles
from l0anneal.reproduction import Store
from l0anneal.reproduction.datasets import gather, read_data, read_run, write_data
from l0anneal.reproduction.packing import pack, unpack
from l0anneal.reproduction.sweeps import Sweep

ENSEMBLE = {"kind": "planted", "alpha": 0.8, "rho_hat": 0.2}
SWEEPS = {
    f"{group}{tau}": Sweep(
        ENSEMBLE,
        {"kind": "anneal", "rho": 0.4, "schedule": {"kind": "paper", "tau": tau}},
        {20: 3, 40: 2},
        group=group,
    )
    for tau in (5, 100)
    for group in ("", "together-")
}


@pytest.fixture
def store(tmp_path):
    """Return a store of random arrays; one task is missing."""
    store, rng = Store(tmp_path / "tasks"), np.random.default_rng(0)
    for sweep in SWEEPS.values():
        for size in sweep.samples:
            for task in sweep.tasks(size)[1 if size == 40 else 0 :]:
                arrays = {
                    "mu": np.array([0.5, 2.0, 8.0]),
                    "distortion": rng.exponential(size=3) * 1e-7,
                    "mse": rng.exponential(size=3),
                    "free_entropy": rng.normal(size=3),
                    "final_mse": np.array(rng.exponential()),
                    "n_planted": np.array(4),
                }
                store.write(task, arrays, seconds=2.0)
    return store


def test_what_is_gathered_is_what_the_files_give_back(store, tmp_path):
    data = {name: gather(sweep, store) for name, sweep in SWEEPS.items()}
    write_data(tmp_path / "data", SWEEPS, data, {"quick": True})
    back = read_data(tmp_path / "data", SWEEPS)
    for name in SWEEPS:
        xr.testing.assert_identical(back[name], data[name])
    assert read_run(tmp_path / "data") == {"quick": True}
    names = sorted(path.name for path in (tmp_path / "data").iterdir())
    assert names == ["100.nc", "5.nc", "run.json", "together-.nc"]


def test_every_sample_is_kept_to_the_last_bit(store):
    sweep = SWEEPS["5"]
    data = gather(sweep, store)
    for size in sweep.samples:
        for task in sweep.tasks(size):
            own = data.sel(size=size).isel(sample=task.sample)
            if task not in store:
                assert np.isnan(own["distortion"]).all()
                continue
            for name, values in store.read(task).arrays.items():
                assert own[name].to_numpy().astype(values.dtype).tobytes() == values.tobytes()


@pytest.mark.parametrize("mu", [[0.5, 2.0, 8.0], [0.0, 2.0], [3.0], [8.0, 2.0, 0.5, 0.1]])
def test_packed_free_entropies_are_exact(mu):
    rng = np.random.default_rng(0)
    shape = (2, 50, len(mu))
    curves = {name: rng.normal(size=shape) for name in ("distortion", "free_entropy")}
    for values in curves.values():
        values[0, 0] = np.nan
    curves["distortion"][0, 1], curves["free_entropy"][0, 1] = np.inf, -0.0
    curves["distortion"][0, 2] = 1.0  # no slope
    dims = ("size", "sample", "mu")
    data = xr.Dataset(
        {name: (dims, values, {"units": "1"}) for name, values in curves.items()},
        coords={"size": [20, 40], "mu": mu},
        attrs={"alpha": 0.5},
    )
    packed = pack(data)
    assert "free_entropy" not in packed
    xr.testing.assert_identical(unpack(packed), data)
    assert unpack(packed)["free_entropy"].to_numpy().tobytes() == curves["free_entropy"].tobytes()


def test_free_entropies_of_runs_pack_into_few_bits():
    instance = ensembles.planted(40, 0.8, 0.2, random_state=0)
    run = anneal(instance.problem, 16, Schedule.paper(tau=2), random_state=0).trajectory
    data = run[["distortion", "free_entropy"]].expand_dims(size=[40], sample=[0])
    code = pack(data.assign_attrs(alpha=0.8))["free_entropy_code"].to_numpy()[..., 1:]
    # a hundred sums of numbers that are rounded to half a unit each, and as many of the sampler's
    assert np.quantile(np.abs(code), 0.9) < 200


def test_files_that_differ_in_tau_alone_say_so(store, tmp_path):
    rapid, slow = (gather(SWEEPS[name], store).attrs for name in ("5", "100"))
    assert (rapid["tau"], slow["tau"]) == (5, 100)
    assert json.loads(slow["solver"])["schedule"] == {"kind": "paper", "tau": 100}
    assert json.loads(slow["ensemble"]) == ENSEMBLE
    for name in ("version", "commit", "libraries", "platform", "date_first", "date_last"):
        assert name in slow
    assert "numpy" in slow["libraries"]
    assert slow["engine"] == SWEEPS["100"].tasks(20)[0].engine


def test_results_of_several_versions_are_all_named(store):
    task = SWEEPS["5"].tasks(20)[0]
    record = store.read(task)
    other = {**record.origin, "version": "0.0.1", "date": "1999-12-31T00:00:00+00:00"}
    store.write(task, record.arrays, seconds=1.0, origin=other)
    attrs = gather(SWEEPS["5"], store).attrs
    assert attrs["version"].split("; ")[0] == "0.0.1"
    assert len(attrs["version"].split("; ")) == 2
    assert attrs["date_first"].startswith("1999")


def test_curves_have_units(store):
    data = gather(SWEEPS["5"], store)
    assert all("units" in data[name].attrs for name in data.data_vars)


def test_a_directory_without_data_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"has no run\.json"):
        read_run(tmp_path)
