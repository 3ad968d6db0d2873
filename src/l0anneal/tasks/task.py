"""Tasks: computations that are described by plain data, and identified by the hash of that data."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["StoredTask", "array_digest", "canonical_json", "digest", "seed_from"]


def canonical_json(content: Any) -> str:
    """Return the canonical JSON text of plain data: sorted keys, no spaces, 1.0 written as 1.

    Examples
    --------
    >>> canonical_json({"b": 1.0, "a": [0.25, True, None]})
    '{"a":[0.25,true,null],"b":1}'
    """
    return json.dumps(
        _plain(content), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True
    )


def digest(text: str) -> str:
    """Return the SHA-256 hash of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def array_digest(values: NDArray[Any]) -> str:
    """Return the shape of an array and the SHA-256 hash of its bits.

    Examples
    --------
    >>> array_digest(np.zeros(2)) == array_digest(np.array([0.0, 1e-300]))
    False
    """
    values = np.ascontiguousarray(values)
    return f"{values.shape} {hashlib.sha256(values.data).hexdigest()}"


def seed_from(content: Any) -> int:
    """Return a seed of 128 bits that depends on plain data alone, on any machine.

    Examples
    --------
    >>> seed_from({"a": 1}) == seed_from({"a": 1.0}), seed_from({"a": 1}) == seed_from({"a": 2})
    (True, False)
    """
    return int(digest(canonical_json(content))[:32], 16)


class StoredTask:
    """The base of tasks whose results a `Store` keeps.

    A subclass names its ``format`` and returns its content. Two tasks with the same format and content
    are the same task, and have the same `id` on every machine. Raise the number in the format when the
    same content comes to mean another computation: this changes all ids, so that results of the
    earlier computation are not found. Raise ``engine`` when the same computation may give other
    numbers, in the last digits or in its random choices: this changes the ids, but not the seeds, so
    that the same instances are drawn. An engine of 0 leaves no trace in the id.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Square(StoredTask):
    ...     number: int
    ...     format = "Square/1"
    ...
    ...     def content(self):
    ...         return {"number": self.number}
    >>> Square(3) == Square(3), Square(3).to_json()
    (True, '{"format":"Square/1","number":3}')
    """

    format: ClassVar[str]

    @property
    def engine(self) -> int:
        """The number that tells computations with other results apart."""
        return 0

    def content(self) -> Mapping[str, Any]:
        """Return everything that the result depends on, as plain data."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the canonical JSON text of the whole content."""
        return canonical_json({"format": self.format, **self.content()})

    @cached_property
    def id(self) -> str:
        """The SHA-256 hash of the canonical JSON and of the engine."""
        if not self.engine:
            return digest(self.to_json())
        return digest(f"{self.to_json()} by engine {self.engine}")

    @cached_property
    def seed(self) -> int:
        """The seed of the task's random stream, from the canonical JSON."""
        return seed_from({"format": self.format, **self.content()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredTask) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"numbers in a task must be finite; got {value}")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError(f"names in a task must be strings; got {list(value)}")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    raise ValueError(
        "a task must be plain data (numbers, strings, lists, mappings); got "
        f"{type(value).__name__} {value!r}"
    )
