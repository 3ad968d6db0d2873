import json
import os
import threading
import time

import numpy as np
import pytest

from helpers.tasks import ANNEAL, NOISE, wait_for
from l0anneal.reproduction import Store, Task

TASK = Task(NOISE, ANNEAL, 0)
ARRAYS = {"x": np.arange(5.0), "n": np.array(3), "nan": np.array([np.nan])}


def test_what_is_written_is_read(tmp_path):
    store = Store(tmp_path / "deep" / "store")
    assert TASK not in store
    store.write(TASK, ARRAYS, seconds=0.25)
    assert TASK in store
    record = store.read(TASK)
    assert record.seconds == 0.25
    assert set(record.arrays) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert record.arrays[name].tobytes() == values.tobytes()


def test_files_are_plain_arrays_and_json(tmp_path):
    store = Store(tmp_path)
    store.write(TASK, ARRAYS, seconds=0.25)
    with np.load(store.path(TASK), allow_pickle=False) as file:
        assert str(file["_task"]) == TASK.to_json()
        assert {"x", "n", "nan"} <= set(file.files)
    with pytest.raises(ValueError, match="plain arrays"):
        store.write(TASK, {"x": np.array([object()])}, seconds=1.0)


def test_the_same_result_of_the_same_origin_is_the_same_file(tmp_path):
    a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
    for store in (a, b):
        store.write(TASK, ARRAYS, seconds=0.25, origin={"version": "1"})
    assert a.path(TASK).read_bytes() == b.path(TASK).read_bytes()


def test_a_result_has_its_origin(tmp_path):
    store = Store(tmp_path)
    store.write(TASK, ARRAYS, seconds=0.25)
    origin = store.read(TASK).origin
    assert set(origin) == {"version", "commit", "libraries", "platform", "date"}
    assert "numba" in origin["libraries"]
    assert origin["date"].endswith("+00:00")
    with np.load(store.path(TASK)) as file:
        assert json.loads(str(file["_info"]))["engine"] == TASK.engine


def test_results_of_another_engine_are_not_found_but_have_the_same_instances(tmp_path):
    class Later(Task):
        engine = TASK.engine + 1

    store, later = Store(tmp_path), Later(NOISE, ANNEAL, 0)
    store.write(TASK, ARRAYS, seconds=0.25)
    assert later not in store
    assert (later.seed, later.instance_seed) == (TASK.seed, TASK.instance_seed)
    assert later.to_json() == TASK.to_json()


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    store = Store(tmp_path)

    def no_space(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        store.write(TASK, ARRAYS, seconds=0.25)
    assert TASK not in store
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_readers_see_complete_files_only_while_many_write(tmp_path):
    """Eight threads write one task, and a reader must never see an incomplete file."""
    store = Store(tmp_path)
    arrays = {"x": np.arange(200_000.0)}
    stop = threading.Event()
    seen = []

    def read():
        while not stop.is_set():
            if TASK in store:
                seen.append(store.read(TASK).arrays["x"].sum())

    def write():
        for _ in range(5):
            store.write(TASK, arrays, seconds=1.0)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write) for _ in range(8)]
    reader.start()
    try:
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
        wait_for(lambda: seen)
    finally:
        stop.set()
        reader.join()
    assert set(seen) == {arrays["x"].sum()}
    assert list(tmp_path.rglob("*.tmp")) == []


def test_incomplete_files_are_never_read_and_are_removed_after_a_day(tmp_path):
    store = Store(tmp_path)
    store.write(TASK, ARRAYS, seconds=0.25)
    folder = store.path(TASK).parent
    young, old = folder / ".a.b.tmp", folder / ".c.d.tmp"
    for path in (young, old):
        path.write_bytes(b"half a fi")
    os.utime(old, (time.time() - 2 * 86400,) * 2)
    assert store.missing([TASK]) == []
    assert store.sweep_temporaries() == 1
    assert young.exists()
    assert not old.exists()
    assert store.read(TASK).seconds == 0.25


def test_a_missing_task_and_a_misplaced_file_are_reported(tmp_path):
    store, other = Store(tmp_path), Task(NOISE, ANNEAL, 1)
    with pytest.raises(KeyError, match="no result"):
        store.read(TASK)
    store.write(TASK, ARRAYS, seconds=0.25)
    store.path(other).parent.mkdir(exist_ok=True)
    store.path(TASK).rename(store.path(other))
    with pytest.raises(ValueError, match="another task"):
        store.read(other)
