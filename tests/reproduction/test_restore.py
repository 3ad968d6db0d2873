"""A store that is filled from the data files of a report equals the store that they were made from."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr

from helpers.tasks import HEAT, SCHEDULE
from l0anneal.reproduction import Store, collect
from l0anneal.reproduction.datasets import gather, read_data, write_data
from l0anneal.reproduction.restore import restore
from l0anneal.reproduction.sweeps import Sweep, annealed, noise_only, planted, tasks_of

FIXED = planted(0.8, 0.2, support="fixed")
WALK = {"kind": "kicks", "rho": 0.2, "n_chains": 2, "n_kicks": 3}
TEMPER = {"t_max": 1.0, "t_min": 0.1, "n": 3, "sweeps_per_square": 0.05, "levels": 20}
COOL = {"mu_min": 0.1, "mu_max": 3.0, "n": 3}
SWEEPS = {
    "cooled": Sweep(planted(0.8, 0.2), annealed(0.4, SCHEDULE), {20: 3, 40: 2}),
    "noise": Sweep(noise_only(0.5), annealed(0.2, SCHEDULE), {40: 2}, "group"),
    "heated": Sweep(FIXED, HEAT, {30: 2}, "group"),
    "pursuit": Sweep(FIXED, {"kind": "basis_pursuit"}, {20: 1}, "group"),
    "walk": Sweep(noise_only(0.5), WALK, {20: 2}),
    "tempered": Sweep(FIXED, {"kind": "temper", "rho": 0.3, **TEMPER}, {20: 1}),
    "enumerated": Sweep(noise_only(0.5), {"kind": "enumerate", "rho": 0.2, **COOL}, {10: 1}),
    "empty": Sweep(noise_only(0.5), {"kind": "omp", "rho": 0.2}, {20: 1}),
}
RUN = {"quick": True}


def finished(directory):
    """Return the bytes of all finished tasks by file."""
    return {path.name: path.read_bytes() for path in directory.rglob("*.npz")}


def write(directory, store):
    data = {name: gather(sweep, store) for name, sweep in SWEEPS.items()}
    write_data(directory, SWEEPS, data, RUN)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return a store with results of every shape, all but the last sweep's, and its data files."""
    base = tmp_path_factory.mktemp("report")
    store = Store(base / "tasks")
    tasks = tasks_of({name: sweep for name, sweep in SWEEPS.items() if name != "empty"})
    assert collect(tasks, store, n_jobs=1).failures == []
    write(base / "data", store)
    return store, base / "data"


@pytest.fixture
def files(report, tmp_path):
    """Return data files that a test may damage."""
    return shutil.copytree(report[1], tmp_path / "data")


def test_a_restored_store_equals_the_original_to_the_byte(report, tmp_path):
    original, data = report
    again = Store(tmp_path / "tasks")
    expected = finished(original.directory)
    assert restore(data, again) == len(expected) > 10
    assert finished(again.directory) == expected
    write(tmp_path / "data", again)
    first, second = (read_data(directory, SWEEPS) for directory in (data, tmp_path / "data"))
    for name in SWEEPS:
        xr.testing.assert_identical(second[name], first[name])


def test_only_samples_that_the_store_lacks_are_written(report, tmp_path):
    original, data = report
    again = Store(shutil.copytree(original.directory, tmp_path / "tasks"))
    task = SWEEPS["cooled"].tasks(40)[1]
    again.path(task).unlink()
    kept = SWEEPS["cooled"].tasks(40)[0]
    again.write(kept, {"other": np.array(1.0)}, seconds=0.0)
    assert restore(data, again) == 1
    assert task in again
    assert set(again.read(kept).arrays) == {"other"}


def test_the_origin_of_each_sample_is_kept(report, tmp_path):
    store = Store(shutil.copytree(report[0].directory, tmp_path / "tasks"))
    origins = [
        {"version": "0.0.1", "commit": "abc", "date": "1999-12-31T23:59:59+00:00"},
        {"date": "2001-01-01T00:00:00+00:00", "version": "0.0.2"},
        {"version": "0.0.1", "date": "yesterday"},
        {},
    ]
    for task, origin in zip(tasks_of({"cooled": SWEEPS["cooled"]}), origins):
        record = store.read(task)
        store.write(task, record.arrays, seconds=0.1, origin=origin)
    write(tmp_path / "data", store)
    again = Store(tmp_path / "again")
    restore(tmp_path / "data", again)
    assert finished(again.directory) == finished(store.directory)


def test_inverse_temperatures_of_other_machines_are_kept(report, tmp_path):
    store = Store(shutil.copytree(report[0].directory, tmp_path / "tasks"))
    task = SWEEPS["cooled"].tasks(20)[1]
    record = store.read(task)
    mu = np.nextafter(record.arrays["mu"], np.inf)
    store.write(task, {**record.arrays, "mu": mu}, seconds=1.0)
    write(tmp_path / "data", store)
    again = Store(tmp_path / "again")
    restore(tmp_path / "data", again)
    assert finished(again.directory) == finished(store.directory)


def test_results_of_another_engine_are_refused(files, tmp_path):
    change(files / "cooled.nc", lambda data: data.attrs.update(engine=1))
    store = Store(tmp_path / "tasks")
    with pytest.raises(ValueError, match=r"cooled\.nc has results of engine 1; .* needs .* remove"):
        restore(files, store)
    assert not finished(store.directory)


def change(path, how):
    """Rewrite a data file after a change."""
    with xr.open_dataset(path, engine="h5netcdf") as file:
        data = file.load()
    how(data)
    data.to_netcdf(path, mode="w", engine="h5netcdf")


def nudge(name):
    def how(data):
        values = data[name].to_numpy().copy()
        values[(0,) * values.ndim] = np.nextafter(values[(0,) * values.ndim], np.inf)
        data[name] = (data[name].dims, values)

    return how


def slower(data):
    solver = json.loads(data.attrs["solver"])
    solver["schedule"]["tau"] += 1
    data.attrs["solver"] = json.dumps(solver)


def reword(data):
    data.attrs["origins"] = data.attrs["origins"].replace("numpy", "Numpy")


@pytest.mark.parametrize(
    "how", [nudge("distortion"), nudge("mse"), nudge("mu"), nudge("seconds"), slower, reword]
)
def test_a_changed_bit_is_refused(files, tmp_path, how):
    change(files / "cooled.nc", how)
    store = Store(tmp_path / "tasks")
    with pytest.raises(ValueError, match=r"cooled\.nc is damaged: sample 0 at N = 20 .* remove it"):
        restore(files, store)
    assert not finished(store.directory)


def test_an_unchanged_file_that_is_rewritten_is_accepted(files, tmp_path):
    """The control of the tests above: rewriting alone is no damage."""
    change(files / "cooled.nc", lambda data: None)
    assert restore(files, Store(tmp_path / "tasks")) > 10


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_cut_file_is_refused(files, tmp_path, share):
    path = files / "cooled.nc"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"cooled\.nc cannot be read .* needs an intact data file"):
        restore(files, Store(tmp_path / "tasks"))


def test_files_of_an_earlier_version_are_refused(files, tmp_path):
    change(files / "cooled.nc", lambda data: data.attrs.pop("format"))
    with pytest.raises(ValueError, match=r"cooled\.nc has the format none; continuing needs"):
        restore(files, Store(tmp_path / "tasks"))


def test_a_directory_without_a_report_has_nothing_to_restore(files, tmp_path):
    (files / "run.json").unlink()
    assert restore(files, Store(tmp_path / "tasks")) == 0
    assert restore(tmp_path / "nowhere", Store(tmp_path / "tasks")) == 0
