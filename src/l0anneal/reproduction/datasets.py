"""The data of a report: gathered from a store, or read back from the data files of a report.

The data files hold every sample, so that every figure and every verdict can be made from them. Both
ways give the same numbers, because what is gathered is rounded as in the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from l0anneal.reproduction.analysis import Data
from l0anneal.reproduction.sweeps import Sweep
from l0anneal.tasks.store import Store, joint_origin

__all__ = ["gather", "read_data", "read_run", "write_data"]

#: The bits of the mantissa that are kept: five digits where nothing is subtracted, three for the
#: acceptance, which is only looked at, and all 23 of a float for the rest.
_BITS = {"distortion": 16, "mse": 16, "acceptance": 10, "overlap": 12, "mse_histogram": 12}
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
    "temperature": "energy",
    "mu": "1 / energy",
    "size": "columns, N",
}
_RUN = "run.json"


def gather(sweep: Sweep, store: Store) -> xr.Dataset:
    """Read the finished tasks of a sweep, over ``size``, ``sample`` and, for curves, ``mu``.

    Unfinished tasks leave NaN; ``n_samples`` counts the finished ones. ``n_planted`` is the size of
    each instance's planted support (NaN for pure noise). The attributes hold all parameters of the
    sweep, and the origin of its results.
    """
    sizes = sorted(sweep.samples)
    n_samples = max(sweep.samples.values())
    columns: dict[str, NDArray[np.float64]] = {}
    mu: NDArray[np.float64] | None = None
    seconds = np.full((len(sizes), n_samples), np.nan)
    origins: list[Mapping[str, str]] = []
    for i, size in enumerate(sizes):
        for task in sweep.tasks(size):
            if task not in store:
                continue
            record = store.read(task)
            seconds[i, task.sample] = record.seconds
            origins.append(record.origin)
            for name, values in record.arrays.items():
                if name == "mu":
                    mu = np.asarray(values, dtype=np.float64)
                    continue
                if name not in columns:
                    columns[name] = np.full((len(sizes), n_samples, *values.shape), np.nan)
                columns[name][i, task.sample] = values
    columns.setdefault("n_planted", np.full_like(seconds, np.nan))
    data = xr.Dataset(
        {"seconds": (("size", "sample"), seconds)},
        coords={"size": sizes},
        attrs={**_parameters(sweep), **joint_origin(origins)},
    )
    data["n_samples"] = ("size", np.isfinite(seconds).sum(axis=1))
    if mu is not None:
        with np.errstate(divide="ignore"):
            data = data.assign_coords(mu=mu, temperature=("mu", 1.0 / mu))
    for name, values in columns.items():
        curve = mu is not None and values.shape[2:3] == mu.shape
        dims = ["size", "sample", "mu" if curve else "part", f"{name}_bin"]
        data[name] = (dims[: values.ndim], values)
    for name, unit in _UNITS.items():
        if name in data.variables:
            data[name].attrs["units"] = unit
    return _rounded(data)


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


def _rounded(data: xr.Dataset) -> xr.Dataset:
    """Round to what the data files keep, and leave double precision for the analysis."""
    rounded = data.copy()
    for name, values in data.data_vars.items():
        if values.dtype.kind == "f":
            kept = _keep_bits(values.to_numpy(), _BITS.get(str(name), 23))
            rounded[name] = values.copy(data=kept.astype(np.float64))
    return rounded


def _keep_bits(values: NDArray[np.float64], bits: int) -> NDArray[np.float32]:
    """Round to single precision, and its mantissa to some bits, so that the rest compresses away."""
    words = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    drop = np.uint64(23 - bits)
    if drop:
        half = np.uint64(1) << (drop - np.uint64(1))
        words = (words + half) >> drop << drop
    rounded = words.astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(values), rounded, values.astype(np.float32))


def write_data(directory: Path, sweeps: Mapping[str, Sweep], data: Data, run: Mapping) -> None:
    """Write all samples: one file for each sweep, or group of sweeps, and what was run as JSON.

    A group's file has an HDF5 group for each of its sweeps: ``xarray.open_dataset(file,
    group=name)``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    started: set[Path] = set()
    for name, sweep in sweeps.items():
        path = directory / f"{sweep.group or name}.nc"
        single = data[name].copy()
        for key, values in data[name].data_vars.items():
            if values.dtype.kind == "f":
                single[key] = values.astype(np.float32)
        small = {"zlib": True, "complevel": 6, "shuffle": True}
        encoding = {str(key): small for key, values in single.data_vars.items() if values.ndim > 1}
        single.to_netcdf(
            path,
            mode="a" if path in started else "w",
            group=name if sweep.group else None,
            engine="h5netcdf",
            encoding=encoding,
        )
        started.add(path)
    (directory / _RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def read_data(directory: Path, sweeps: Mapping[str, Sweep]) -> dict[str, xr.Dataset]:
    """Read the data that `write_data` wrote."""
    found = {}
    for name, sweep in sweeps.items():
        path = directory / f"{sweep.group or name}.nc"
        group = name if sweep.group else None
        with xr.open_dataset(path, group=group, engine="h5netcdf") as file:
            loaded = file.load()
        for key, values in loaded.data_vars.items():
            if values.dtype == np.float32:
                loaded[key] = values.astype(np.float64)
        found[name] = loaded
    return found


def read_run(directory: Path) -> dict[str, Any]:
    """Read what was run; raise ValueError if the directory has no data of a report."""
    path = directory / _RUN
    if not path.exists():
        raise ValueError(
            f"{directory} has no {_RUN}; give the directory that l0anneal reproduce wrote with --out"
        )
    return json.loads(path.read_text(encoding="utf-8"))
