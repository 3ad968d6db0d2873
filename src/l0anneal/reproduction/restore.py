"""Fill a store of tasks with the samples of a report's data files, so that a run can be continued."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from l0anneal.reproduction.datasets import FORMAT, RUN, date_text, read_dataset
from l0anneal.reproduction.task import Task
from l0anneal.tasks.store import Record, Store, checksum

__all__ = ["restore"]

_DO = (
    "take the file from the repository again, remove it to run its samples again, or choose another "
    "--out"
)


def restore(directory: Path, store: Store) -> int:
    """Write the samples of a report's data files that a store does not have into it.

    Parameters
    ----------
    directory : path
        The directory of the data files. If it has no data of a report, there is nothing to restore.
    store : Store
        Where tasks are written. Their results and origins are those of the original computation, to
        the last bit.

    Returns
    -------
    int
        The number of tasks that were written.

    Raises
    ------
    ValueError
        If a file cannot be read, is damaged, or has results of another engine. All samples of a file
        are checked before any of them is written.
    """
    if not (directory / RUN).exists():
        return 0
    n_restored = 0
    for path in sorted(directory.glob("*.nc")):
        try:
            found = list(_records(path, store))
        except (
            OSError,
            RuntimeError,
            KeyError,
            TypeError,
            IndexError,
            json.JSONDecodeError,
        ) as error:
            raise ValueError(
                f"{path} cannot be read ({type(error).__name__}: {error}); continuing needs an intact "
                f"data file: {_DO}"
            ) from error
        for task, record in found:
            store.write(task, record.arrays, seconds=record.seconds, origin=record.origin)
        n_restored += len(found)
    return n_restored


def _records(path: Path, store: Store) -> Iterator[tuple[Task, Record]]:
    """Return the samples of a file that the store does not have."""
    for group in _groups(path):
        data = read_dataset(path, group)
        _check(path, data)
        for task, i in _tasks(data):
            if task in store:
                continue
            record = _record(data, i, task.sample)
            if checksum(task, record) != int(data["checksum"][i, task.sample]):
                name = group or path.stem
                raise ValueError(
                    f"{path} is damaged: sample {task.sample} at N = {int(data['size'][i])} of {name} "
                    "is not what was written; continuing needs every sample to the last bit: " + _DO
                )
            yield task, record


def _groups(path: Path) -> list[str | None]:
    """Return the names of the groups of a file; None stands for a file without groups."""
    import h5netcdf

    with h5netcdf.File(path) as file:
        return list(file.groups) or [None]


def _check(path: Path, data: xr.Dataset) -> None:
    """Refuse other formats and other engines."""
    found = data.attrs.get("format", "none")
    if found != FORMAT:
        raise ValueError(
            f"{path} has the format {found}; continuing needs {FORMAT}: remove the file to run its "
            "samples again, or choose another --out"
        )
    engine = int(data.attrs["engine"])
    needed = next((task.engine for task, _ in _tasks(data)), engine)
    if engine != needed:
        raise ValueError(
            f"{path} has results of engine {engine}; this version needs those of engine {needed}, "
            "which may be other numbers: remove the file to run its samples again, choose another "
            f"--out, or continue with l0anneal {data.attrs.get('version', '')}"
        )


def _tasks(data: xr.Dataset) -> Iterator[tuple[Task, int]]:
    """Return the finished tasks, each with the index of its size."""
    ensemble, solver = (json.loads(data.attrs[name]) for name in ("ensemble", "solver"))
    done = np.isfinite(data["seconds"].to_numpy())
    for i, size in enumerate(data["size"].to_numpy().tolist()):
        for sample in np.flatnonzero(done[i]).tolist():
            yield Task({**ensemble, "n_columns": size}, solver, sample), i


def _record(data: xr.Dataset, i: int, sample: int) -> Record:
    """Return the result of one task as it was stored."""
    arrays = {}
    for name, dtype in json.loads(data.attrs["arrays"]).items():
        if name == "mu" and "mu_of_sample" not in data:
            values = data["mu"].to_numpy()
        else:
            values = data["mu_of_sample" if name == "mu" else name].to_numpy()[i, sample]
        arrays[name] = np.array(values, dtype=dtype)
    origin = json.loads(data.attrs["origins"])[int(data["origin"][i, sample])]
    posix = int(data["finished"][i, sample])
    if posix >= 0:
        origin["date"] = date_text(posix)
    return Record(arrays, float(data["seconds"][i, sample]), origin)
