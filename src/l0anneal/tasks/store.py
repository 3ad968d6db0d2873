"""Store finished tasks on disk: one file for each, written completely and then renamed."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.provenance import provenance
from l0anneal.tasks.task import StoredTask, canonical_json

__all__ = ["Record", "Store", "checksum", "joint_origin", "origin_now"]

AnyTask = TypeVar("AnyTask", bound=StoredTask)
_STALE = 24 * 3600.0  # seconds after which the writer of a temporary file must have ended


@dataclass(frozen=True, eq=False)
class Record:
    """The result of a task.

    Attributes
    ----------
    arrays : mapping
        The named arrays.
    seconds : float
        The processor seconds of the solver.
    origin : mapping of str to str
        The date, and the version, commit, libraries and platform that `provenance` returned.
    """

    arrays: Mapping[str, NDArray[np.generic]]
    seconds: float
    origin: Mapping[str, str] = field(default_factory=dict)


def checksum(task: StoredTask, record: Record) -> int:
    """Return 64 bits of a hash of the task's id and of every bit of its record.

    Examples
    --------
    >>> class Half(StoredTask):
    ...     format = "Half/1"
    ...
    ...     def content(self):
    ...         return {"number": 0.5}
    >>> one, other = (Record({"x": np.array(x)}, 1.0) for x in (0.25, np.nextafter(0.25, 1)))
    >>> checksum(Half(), one) == checksum(Half(), other)
    False
    """
    found = hashlib.sha256(task.id.encode())
    for name in sorted(record.arrays):
        values = record.arrays[name]
        found.update(f"{name} {values.dtype.str} {values.shape} ".encode())
        found.update(np.ascontiguousarray(values).tobytes())
    found.update(canonical_json([record.seconds, record.origin]).encode())
    return int.from_bytes(found.digest()[:8], "big")


def origin_now() -> dict[str, str]:
    """Return the provenance of this process, and the date."""
    return {**provenance(), "date": datetime.now(UTC).isoformat(timespec="seconds")}


def joint_origin(origins: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the origin of several results in one line each, several texts separated by semicolons.

    The dates are ``date_first`` and ``date_last``, which are empty if no result has a date.

    Examples
    --------
    >>> joint_origin([{"version": "2", "date": "2030-02"}, {"version": "1", "date": "2030-01"}])
    {'version': '1; 2', 'date_first': '2030-01', 'date_last': '2030-02'}
    """
    found: dict[str, set[str]] = {}
    for origin in origins:
        for name, text in origin.items():
            found.setdefault(name, set()).add(text)
    dates = sorted(found.pop("date", {""}))
    lines = {name: "; ".join(sorted(texts)) for name, texts in found.items()}
    return {**lines, "date_first": dates[0], "date_last": dates[-1]}


class Store:
    """A directory of finished tasks.

    A file is named by its task's id and appears only when it is complete: it is written under a
    unique temporary name, flushed to disk, and renamed. Any number of processes may write into one
    store at the same time, and any of them may be killed. Files hold plain arrays and JSON.

    Examples
    --------
    >>> import tempfile
    >>> class Half(StoredTask):
    ...     format = "Half/1"
    ...
    ...     def content(self):
    ...         return {"number": 0.5}
    >>> task = Half()
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     store = Store(directory)
    ...     store.write(task, {"distortion": np.array(0.25)}, seconds=1.5)
    ...     task in store, float(store.read(task).arrays["distortion"])
    (True, 0.25)
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        self.directory = Path(directory)

    def path(self, task: StoredTask) -> Path:
        """Return the path of the task's file, whether it exists or not."""
        return self.directory / task.id[:2] / f"{task.id}.npz"

    def __contains__(self, task: StoredTask) -> bool:
        return self.path(task).exists()

    def missing(self, tasks: Iterable[AnyTask]) -> list[AnyTask]:
        """Return the tasks that have no file yet."""
        return [task for task in tasks if task not in self]

    def write(
        self,
        task: StoredTask,
        arrays: Mapping[str, NDArray[np.generic]],
        *,
        seconds: float,
        origin: Mapping[str, str] | None = None,
    ) -> None:
        """Write the file of a finished task, completely or not at all.

        The file also holds the task, its engine and its ``origin``; by default, that of this process
        at this moment.
        """
        if origin is None:
            origin = origin_now()
        for name, values in arrays.items():
            if name.startswith("_") or not isinstance(values, np.ndarray) or values.dtype.hasobject:
                raise ValueError(
                    f"results must be plain arrays with names that do not start with _; got "
                    f"{type(values).__name__} {name!r}"
                )
        path = self.path(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{task.id[:16]}.{uuid.uuid4().hex}.tmp"
        info = {"seconds": seconds, "engine": task.engine, "origin": dict(origin)}
        header = np.array(task.to_json()), np.array(json.dumps(info))
        try:
            with temporary.open("xb") as file:
                np.savez(file, allow_pickle=False, _task=header[0], _info=header[1], **arrays)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def read(self, task: StoredTask) -> Record:
        """Read a finished task; raise KeyError if the task is not finished."""
        path = self.path(task)
        try:
            with np.load(path, allow_pickle=False) as file:
                if str(file["_task"]) != task.to_json():
                    raise ValueError(
                        f"{path} holds another task than its name says; delete the file to run the "
                        "task again"
                    )
                info = json.loads(str(file["_info"]))
                arrays = {name: file[name] for name in file.files if not name.startswith("_")}
        except FileNotFoundError:
            raise KeyError(f"no result of this task yet: {task.to_json()}") from None
        return Record(arrays, float(info["seconds"]), info.get("origin", {}))

    def sweep_temporaries(self) -> int:
        """Remove temporary files older than a day, left by killed processes; return how many."""
        removed = 0
        for path in self.directory.glob("??/.*.tmp"):
            if time.time() - path.stat().st_mtime > _STALE:
                path.unlink(missing_ok=True)
                removed += 1
        return removed
