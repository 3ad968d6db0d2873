"""The data of a report: gathered from a store, or read back from the data files of a report.

The data files hold every sample to the last bit, with its origin, so that every figure and every verdict
can be made from them, and so that `restore` can fill a store with their samples.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from joblib import delayed
from numpy.typing import NDArray

from l0anneal.reproduction.analysis import Data
from l0anneal.reproduction.packing import pack, unpack
from l0anneal.reproduction.sweeps import Sweep
from l0anneal.tasks.store import Record, Store, checksum, joint_origin
from l0anneal.tasks.workers import results_of

__all__ = [
    "FORMAT",
    "RUN",
    "date_text",
    "gather",
    "read_data",
    "read_dataset",
    "read_run",
    "write_data",
]

#: The format of the data files; raise its number when files of an earlier version cannot be restored.
FORMAT = "l0anneal.reproduction/2"

#: The file that says what was run.
RUN = "run.json"

#: Fractions with a few common denominators, whose bytes repeat: they compress better as they are.
_FRACTIONS = {
    "acceptance",
    "overlap",
    "mse_histogram",
    "below_tenth",
    "below_tenth_truth",
    "trusted",
}
_UNITS = {
    "distortion": "energy per measurement, E/M",
    "final_distortion": "energy per measurement, E/M",
    "refit_distortion": "energy per measurement, E/M",
    "mse": "squared coefficient, mean over all N columns",
    "final_mse": "squared coefficient, mean over all N columns",
    "refit_mse": "squared coefficient, mean over all N columns",
    "final_mse_by_eighth": "squared coefficient, mean over an eighth of the columns",
    "free_entropy": "nats per column, log G / N",
    "acceptance": "fraction of proposals",
    "specific_heat": "energy per measurement and temperature, dε/dT",
    "autocorrelation": "sweeps",
    "below_tenth": "fraction of sweeps with a mean squared error below 0.1",
    "mse_histogram": "fraction of sweeps, by bins of the mean squared error",
    "overlap": "fraction of pairs of supports that share 0, 1, … k columns",
    "chain_distortion": "energy per measurement, E/M, of each chain",
    "chain_kicks": "kicks of each chain",
    "signal": "squared norm of y per measurement",
    "seconds": "processor seconds of the solver",
    "n_planted": "columns",
    "n_samples": "finished samples",
    "finished": "POSIX time at which the sample was finished, −1 if it has no date",
    "origin": "number in the list of origins, −1 for a sample that is not finished",
    "checksum": "first 64 bits of a hash of the sample",
    "temperature": "energy",
    "mu": "1 / energy",
    "size": "columns, N",
}


def gather(sweep: Sweep, store: Store) -> xr.Dataset:
    """Read the finished tasks of a sweep, over ``size``, ``sample`` and, for curves, ``mu``.

    Unfinished tasks leave NaN; ``n_samples`` counts the finished ones. ``n_planted`` is the size of
    each instance's planted support (NaN for pure noise). The attributes hold all parameters of the
    sweep, and the origin of its results; ``finished``, ``origin`` and ``checksum`` are those of
    each sample.
    """
    sizes = sorted(sweep.samples)
    shape = (len(sizes), max(sweep.samples.values()))
    columns: dict[str, NDArray[np.float64]] = {}
    arrays: dict[str, str] = {}
    seconds, origin = np.full(shape, np.nan), np.full(shape, -1, dtype=np.int32)
    finished, sums = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.uint64)
    origins: dict[str, int] = {}
    all_origins: list[Mapping[str, str]] = []
    for i, size in enumerate(sizes):
        for task in sweep.tasks(size):
            if task not in store:
                continue
            record, at = store.read(task), (i, task.sample)
            seconds[at], sums[at] = record.seconds, checksum(task, record)
            text, finished[at] = _split_origin(record)
            origin[at] = origins.setdefault(text, len(origins))
            all_origins.append(record.origin)
            for name, values in record.arrays.items():
                if name not in columns:
                    columns[name] = np.full((*shape, *values.shape), np.nan)
                    arrays[name] = values.dtype.str
                columns[name][at] = values
    of_samples = {"seconds": seconds, "finished": finished, "origin": origin, "checksum": sums}
    data = xr.Dataset(
        {name: (("size", "sample"), values) for name, values in of_samples.items()},
        coords={"size": sizes},
        attrs={
            "format": FORMAT,
            **_parameters(sweep),
            **joint_origin(all_origins),
            "origins": f"[{', '.join(origins)}]",
            "arrays": json.dumps(arrays),
        },
    )
    data["n_samples"] = ("size", np.isfinite(seconds).sum(axis=1))
    return _with_columns(data, columns)


def _with_columns(data: xr.Dataset, columns: dict[str, NDArray[np.float64]]) -> xr.Dataset:
    """Add the arrays of the tasks; those over ``mu`` have its values as a coordinate."""
    columns = {**columns}
    columns.setdefault("n_planted", np.full(data["seconds"].shape, np.nan))
    mu: NDArray[np.float64] | None = None
    if "mu" in columns:
        each = columns.pop("mu")
        done = each[np.isfinite(data["seconds"].to_numpy())]
        mu = done[0]
        with np.errstate(divide="ignore"):
            data = data.assign_coords(mu=mu, temperature=("mu", 1.0 / mu))
        if np.any(done != mu):  # kinds of CPU can differ in the last digit of a power
            columns["mu_of_sample"] = each
    for name, values in columns.items():
        curve = mu is not None and values.shape[2:3] == mu.shape
        dims = ["size", "sample", "mu" if curve else "part", f"{name}_bin"]
        data[name] = (dims[: values.ndim], values)
    for name, unit in _UNITS.items():
        if name in data.variables:
            data[name].attrs["units"] = unit
    return data


def _parameters(sweep: Sweep) -> dict[str, Any]:
    """Return the parameters of the theory, and those of ensemble and solver as JSON."""
    schedule = sweep.solver.get("schedule", {})
    tau = schedule.get("tau", sweep.solver.get("tau"))
    return {
        **{name: float(value) for name, value in sweep.parameters.items()},
        **({} if tau is None else {"tau": int(tau)}),
        "ensemble": json.dumps(sweep.ensemble, sort_keys=True),
        "solver": json.dumps(sweep.solver, sort_keys=True),
        "samples": json.dumps({str(size): n for size, n in sweep.samples.items()}),
        "engine": sweep.tasks(min(sweep.samples))[0].engine,
    }


def _split_origin(record: Record) -> tuple[str, int]:
    """Return the origin as JSON without its date, and the date as POSIX time.

    A date that this would not give back, in its text or in its place, stays in the origin.
    """
    origin = dict(record.origin)
    if list(origin)[-1:] == ["date"]:
        try:
            posix = round(datetime.fromisoformat(origin["date"]).timestamp())
        except ValueError:
            posix = -1
        if posix >= 0 and date_text(posix) == origin["date"]:
            del origin["date"]
            return json.dumps(origin), posix
    return json.dumps(origin), -1


def date_text(posix: int) -> str:
    """Return a POSIX time as it stands in the origin of a result.

    Examples
    --------
    >>> date_text(0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(posix, UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------- files


def write_data(
    directory: Path,
    sweeps: Mapping[str, Sweep],
    data: Data,
    run: Mapping,
    n_jobs: int | None = None,
) -> None:
    """Write all samples: one file for each sweep, or group of sweeps, and what was run as JSON.

    A group's file has an HDF5 group for each of its sweeps: ``xarray.open_dataset(file,
    group=name)``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    directory = directory.resolve()  # workers may have another working directory
    by_file: dict[str, list[str]] = {}
    for name, sweep in sweeps.items():
        by_file.setdefault(sweep.group or name, []).append(name)
    calls = [
        delayed(_write_file)(
            directory / f"{file}.nc",
            {name if sweeps[name].group else None: data[name] for name in names},
        )
        for file, names in by_file.items()
    ]
    with results_of(calls, n_jobs, "generator") as written:
        for _ in written:
            pass
    (directory / RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def _write_file(path: Path, groups: Mapping[str | None, xr.Dataset]) -> None:
    """Write one file; None stands for a file without groups."""
    import h5py

    # this format has the least overhead for many small arrays; HDF5 reads it since 2016
    with h5py.File(path, "w", libver="v110") as file:
        for group, data in groups.items():
            _write_group(file if group is None else file.create_group(group), pack(data))


def _write_group(to: Any, data: xr.Dataset) -> None:
    """Write a dataset as netCDF-4 has it in HDF5, which takes a seventh of the time of xarray.

    A dimension is a dimension scale: its coordinate or, if it has none, an array with a fixed name.
    """
    made = {}
    for name, variable in data.variables.items():
        values = variable.to_numpy()
        options: dict[str, Any] = {}
        if values.ndim > 1:
            options = {"compression": "gzip", "compression_opts": 9, "chunks": values.shape}
            options["shuffle"] = name not in _FRACTIONS
        made[name] = to.create_dataset(name, data=values, **options)
        made[name].attrs.update(variable.attrs)
    for number, (dim, length) in enumerate(data.sizes.items()):
        label = str(dim)
        if dim not in made:
            made[dim] = to.create_dataset(dim, (length,), dtype=">f4")
            label = f"This is a netCDF dimension but not a netCDF variable. {length:9}"
        made[dim].make_scale(label)
        made[dim].attrs["_Netcdf4Dimid"] = np.int32(number)
    for name, variable in data.variables.items():
        for axis, dim in enumerate(variable.dims if name not in data.sizes else ()):
            made[name].dims[axis].attach_scale(made[dim])
    to.attrs.update(data.attrs)
    if others := [str(name) for name in data.coords if name not in data.sizes]:
        to.attrs["coordinates"] = " ".join(others)


def read_data(directory: Path, sweeps: Mapping[str, Sweep]) -> dict[str, xr.Dataset]:
    """Read the data that `write_data` wrote."""
    return {
        name: read_dataset(directory / f"{sweep.group or name}.nc", name if sweep.group else None)
        for name, sweep in sweeps.items()
    }


def read_dataset(path: Path, group: str | None = None) -> xr.Dataset:
    """Read the samples of one sweep."""
    with xr.open_dataset(path, group=group, engine="h5netcdf") as file:
        return unpack(file.load())


def read_run(directory: Path) -> dict[str, Any]:
    """Read what was run; raise ValueError if the directory has no data of a report."""
    path = directory / RUN
    if not path.exists():
        raise ValueError(
            f"{directory} has no {RUN}; give the directory that l0anneal reproduce wrote with --out"
        )
    return json.loads(path.read_text(encoding="utf-8"))
