"""Dataclasses in files."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from l0anneal import Schedule
from l0anneal._util import archive


@dataclass
class Example:
    array: np.ndarray
    by_name: dict[str, np.ndarray]
    parts: tuple[np.ndarray, ...]
    words: tuple[str, ...]
    schedule: Schedule
    nothing: np.ndarray | None
    number: float
    text: str


@pytest.fixture
def example():
    return Example(
        array=np.arange(6, dtype=np.int32).reshape(2, 3),
        by_name={"a": np.array([0.1, np.nan]), "b": np.zeros((0, 3))},
        parts=(np.array([1]), np.array([2, 3])),
        words=("one", "two"),
        schedule=Schedule.paper(5, 2),
        nothing=None,
        number=0.1 + 0.2,
        text="ε",
    )


@pytest.mark.parametrize("name", ["file.npz", "file.json"])
def test_every_kind_of_field_survives(example, tmp_path, name):
    archive.save(example, tmp_path / name)
    loaded = archive.load(Example, tmp_path / name)
    assert loaded.array.dtype == np.int32
    np.testing.assert_array_equal(loaded.array, example.array)
    assert list(loaded.by_name) == ["a", "b"]
    np.testing.assert_array_equal(loaded.by_name["a"], example.by_name["a"])
    assert [part.tolist() for part in loaded.parts] == [[1], [2, 3]]
    assert loaded.words == ("one", "two")
    assert loaded.schedule == example.schedule
    assert loaded.nothing is None
    assert (loaded.number, loaded.text) == (example.number, "ε")
    assert loaded.by_name["b"].shape == (0, 3)


@dataclass
class Newer(Example):
    added: float = 7.0


def test_a_file_without_a_newer_field_gets_its_default(example, tmp_path):
    Newer.__name__ = "Example"
    archive.save(example, tmp_path / "file.json")
    assert archive.load(Newer, tmp_path / "file.json").added == 7.0


def test_a_damaged_text_is_refused(tmp_path):
    (tmp_path / "file.json").write_text('{"format": "l0anneal.Example/2"')
    with pytest.raises(ValueError, match="is not a saved Example: it is no intact"):
        archive.load(Example, tmp_path / "file.json")


def rewrite(path, **changes):
    with np.load(path) as file:
        content = {name: file[name] for name in file}
    header = json.loads(str(content["header"])) | changes
    np.savez(path, **content | {"header": np.array(json.dumps(header))})


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        ("l0anneal.Example/999", "update l0anneal"),
        ("l0anneal.Example/1", "an earlier version"),
        ("l0anneal.Other/2", "is a saved Other; a saved Example is needed"),
        ("somebody.else/2", "is not a saved Example"),
    ],
)
def test_other_files_are_refused_by_name(example, tmp_path, format_, message):
    path = tmp_path / "file.npz"
    archive.save(example, path)
    rewrite(path, format=format_)
    with pytest.raises(ValueError, match=message):
        archive.load(Example, path)
