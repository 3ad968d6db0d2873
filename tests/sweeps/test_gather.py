"""Every result stands in its place of the dataset, and the dataset tells where it comes from."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import sweeps
from l0anneal import Sweep
from l0anneal.sweeps.gather import coordinate, dataset_of
from l0anneal.tasks.store import Record


def test_every_result_stands_in_its_place(tmp_path):
    grid = {"c": [5, 3], "b": 7, "a": [2, 1]}
    sweep = Sweep(sweeps.number, {"x": sweeps.echo, "y": sweeps.echo_again}, grid, n_samples=2)
    sweep.run(tmp_path)
    data = sweep.gather(tmp_path)
    assert data.code.dims == ("solver", "c", "a", "sample")
    for solver in "xy":
        for a in (1, 2):
            for c in (3, 5):
                found = data.code.sel(solver=solver, a=a, c=c)
                np.testing.assert_array_equal(found, sweeps.code(a, 7, c))
    assert data.b.ndim == 0
    assert int(data.b) == 7
    assert (data.seconds >= 0).all()


def test_missing_tasks_are_nan_and_are_counted(tmp_path):
    sweep = Sweep(sweeps.number, sweeps.echo, {"a": [1, 2], "c": [3, 4]}, n_samples=3)
    with pytest.raises(ValueError, match="has no result of this sweep; run it first"):
        sweep.gather(tmp_path)
    sweep.run(tmp_path, shard=(1, 2))
    data = sweep.gather(tmp_path)
    missing = set(sweep.missing(tmp_path))
    assert len(missing) == 6
    absent = [task in missing for task in sweep.tasks()]
    np.testing.assert_array_equal(np.isnan(data.code).values.ravel(), absent)
    np.testing.assert_array_equal(np.isnan(data.seconds).values.ravel(), absent)
    assert (data.attrs["n_finished"], data.attrs["n_tasks"]) == (6, 12)


def test_the_attributes_hold_what_was_run(tmp_path):
    sweep = Sweep(
        sweeps.number, {"x": (sweeps.echo, {"c": 2})}, {"a": [1]}, n_samples=1, revision=3
    )
    sweep.run(tmp_path)
    attrs = sweep.gather(tmp_path).attrs
    assert attrs["instance"] == "helpers.sweeps.number"
    assert json.loads(attrs["solvers"]) == [
        {"label": "x", "function": "helpers.sweeps.echo", "arguments": {"c": 2}}
    ]
    assert json.loads(attrs["grid"]) == {"a": [1]}
    assert (attrs["n_samples"], attrs["random_state"], attrs["revision"]) == (1, 0, 3)
    assert attrs["version"]
    assert "numpy" in attrs["libraries"]
    assert attrs["date_first"] <= attrs["date_last"]


def test_short_arrays_are_filled_up_and_all_numbers_are_double(tmp_path):
    sweep = Sweep(sweeps.number, sweeps.ragged, {"c": [1, 3]}, n_samples=1)
    sweep.run(tmp_path)
    data = sweep.gather(tmp_path)
    assert data.curve.dims == ("c", "sample", "curve_0")
    np.testing.assert_array_equal(data.curve[:, 0], [[0, np.nan, np.nan], [0, 1, 2]])
    np.testing.assert_array_equal(data["count"][:, 0], [1, 3])
    assert {v.dtype for v in data.data_vars.values()} == {np.dtype(np.float64)}
    named = sweep.gather(tmp_path, dims={"curve": ["step"]})
    assert named.curve.dims == ("c", "sample", "step")
    with pytest.raises(ValueError, match="curve has 1 dimensions; dims has 2 names"):
        sweep.gather(tmp_path, dims={"curve": ["x", "y"]})
    with pytest.raises(ValueError, match="dims names energy, which is no result"):
        sweep.gather(tmp_path, dims={"energy": ["x"]})


def test_curves_of_an_annealing_share_a_dimension(tmp_path):
    grid = {"n_columns": 20, "noise": 0.1, "n_nonzero": 2, "tau": [1, 2]}
    sweep = Sweep(sweeps.gaussian, "anneal", grid, n_samples=2, measure=sweeps.trajectory)
    sweep.run(tmp_path)
    data = sweep.gather(tmp_path, dims={"mu": ["step"], "energy": ["step"]})
    assert dict(data.sizes) == {"tau": 2, "sample": 2, "step": 100}
    assert (data.mu.diff("step") >= 0).all()


def test_a_dataset_can_be_written_and_read(tmp_path):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    schedules = [{"kind": "paper", "n": 3, "tau": 1}, None]
    grid = {"n_columns": 20, "noise": 0.1, "n_nonzero": 2, "schedule": schedules}
    sweep = Sweep(sweeps.gaussian, "anneal", grid, n_samples=1)
    sweep.run(tmp_path / "store")
    data = sweep.gather(tmp_path / "store")
    data.to_netcdf(tmp_path / "data.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as read:
        assert read.schedule.values.tolist() == ['{"kind":"paper","n":3,"tau":1}', "null"]
        np.testing.assert_array_equal(read.mse, data.mse)


def test_results_whose_dimensions_differ_are_refused():
    records = [((0,), Record({"x": np.zeros(2)}, 1.0)), ((1,), Record({"x": np.zeros(())}, 1.0))]
    with pytest.raises(ValueError, match="x has 0 or 1 dimensions, depending on the task"):
        dataset_of(records, {"sample": np.arange(2)}, {})


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, 2], "i"), ([1, 2.5], "f"), (["a", "b"], "U"), ([True, False], "b"), (0.5, "f")],
)
def test_plain_values_are_coordinates_as_they_are(values, kind):
    found = coordinate(values)
    assert found.dtype.kind == kind
    assert found.tolist() == values


@given(st.lists(st.none() | st.booleans() | st.integers(-99, 99) | st.lists(st.integers(0, 9))))
@settings(max_examples=50, deadline=None)
def test_any_values_have_a_coordinate_of_their_length(values):
    found = coordinate(values)
    assert found.shape == (len(values),)
    assert found.dtype.kind in "iubfU"
