"""Finished tasks on disk: one file each, written whole and renamed into place."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from l0anneal.reproduction.task import Task

__all__ = ["Record", "Store"]

_STALE = 24 * 3600.0  # seconds after which a temporary file belongs to nobody


@dataclass(frozen=True, eq=False)
class Record:
    """What a task gave: named arrays, and the processor seconds of its solver."""

    arrays: Mapping[str, NDArray[np.generic]]
    seconds: float


class Store:
    """A directory of finished tasks.

    A file is named by its task's id and appears only when it is complete: it is written under a
    temporary name that no other writer has, flushed to disk, and renamed. Any number of processes
    may write into one store at the same time, and any of them may be killed. Files hold plain
    arrays and JSON.

    Examples
    --------
    >>> import tempfile
    >>> task = Task({"kind": "noise_only", "n_columns": 40, "alpha": 0.5}, {"kind": "omp"}, 3)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     store = Store(directory)
    ...     store.write(task, {"distortion": np.array(0.25)}, seconds=1.5)
    ...     task in store, float(store.read(task).arrays["distortion"])
    (True, 0.25)
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        self.directory = Path(directory)

    def path(self, task: Task) -> Path:
        """Where the task's file is, or will be."""
        return self.directory / task.id[:2] / f"{task.id}.npz"

    def __contains__(self, task: Task) -> bool:
        return self.path(task).exists()

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the tasks that have no file yet."""
        return [task for task in tasks if task not in self]

    def write(
        self, task: Task, arrays: Mapping[str, NDArray[np.generic]], *, seconds: float
    ) -> None:
        """Write the file of a finished task, whole or not at all."""
        for name, values in arrays.items():
            if name.startswith("_") or not isinstance(values, np.ndarray) or values.dtype.hasobject:
                raise ValueError(f"{name}: results are plain arrays; got {type(values).__name__}")
        path = self.path(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{task.id[:16]}.{uuid.uuid4().hex}.tmp"
        header = np.array(task.to_json()), np.array(json.dumps({"seconds": seconds}))
        try:
            with temporary.open("xb") as file:
                np.savez(file, allow_pickle=False, _task=header[0], _info=header[1], **arrays)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def read(self, task: Task) -> Record:
        """Read a finished task; KeyError if there is none."""
        path = self.path(task)
        try:
            with np.load(path, allow_pickle=False) as file:
                if str(file["_task"]) != task.to_json():
                    raise ValueError(f"{path} holds another task; was it renamed by hand?")
                info = json.loads(str(file["_info"]))
                arrays = {name: file[name] for name in file.files if not name.startswith("_")}
        except FileNotFoundError:
            raise KeyError(f"no result of this task yet: {task.to_json()}") from None
        return Record(arrays, float(info["seconds"]))

    def sweep_temporaries(self) -> int:
        """Remove temporary files a day old, left by processes that were killed; return how many."""
        removed = 0
        for path in self.directory.glob("??/.*.tmp"):
            if time.time() - path.stat().st_mtime > _STALE:
                path.unlink(missing_ok=True)
                removed += 1
        return removed
