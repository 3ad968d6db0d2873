"""Tasks: one run of one solver on one random instance, described by plain data."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["Task", "canonical_json"]

# Raise the number when the same content comes to mean another computation: this changes all ids,
# so that results of the earlier computation are not found.
_FORMAT = "l0anneal.Task/1"


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


@dataclass(frozen=True, eq=False)
class Task:
    """One run of one solver on one random instance.

    Parameters
    ----------
    ensemble : mapping
        ``kind``, the name of a function in `l0anneal.ensembles`, and its arguments.
    solver : mapping
        ``kind``, a name from `l0anneal.reproduction.solvers`, and its arguments.
    sample : int
        The number of the instance in the ensemble, from 0.

    Notes
    -----
    Two tasks with the same content are the same task and have the same `id` on every machine. The
    solver's random stream is derived from that id, the instance's from the ensemble and the sample
    alone. All solvers therefore run on the same instances, and their results can be compared in
    pairs.

    Examples
    --------
    >>> task = Task({"kind": "noise_only", "n_columns": 40, "alpha": 0.5}, {"kind": "omp"}, 3)
    >>> task == Task.from_json(task.to_json()), task.id[:12]
    (True, '2ef3f7452fa6')
    """

    ensemble: Mapping[str, Any]
    solver: Mapping[str, Any]
    sample: int

    def __post_init__(self) -> None:
        for name in ("ensemble", "solver"):
            part = getattr(self, name)
            if not isinstance(part, Mapping) or not isinstance(part.get("kind"), str):
                raise ValueError(f"{name} must be a mapping with a kind; got {part!r}")
        if isinstance(self.sample, bool) or not isinstance(self.sample, (int, np.integer)):
            raise ValueError(f"sample must be an integer; got {self.sample!r}")
        if self.sample < 0:
            raise ValueError(f"sample must be ≥ 0; got {self.sample}")
        _ = self.id  # content that has no JSON must fail here, not on a worker

    def to_json(self) -> str:
        """Return the canonical JSON text of the whole content."""
        return canonical_json(
            {
                "format": _FORMAT,
                "ensemble": self.ensemble,
                "solver": self.solver,
                "sample": self.sample,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Task:
        """Make a task from the text that `to_json` returned."""
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"the text is not a task of format {_FORMAT}: {text[:80]}")
        return cls(content["ensemble"], content["solver"], content["sample"])

    @cached_property
    def id(self) -> str:
        """The SHA-256 hash of the canonical JSON."""
        return _digest(self.to_json())

    @property
    def seed(self) -> int:
        """The seed of the solver's random stream, from the id."""
        return int(self.id[:32], 16)

    @property
    def instance_seed(self) -> int:
        """The seed of the instance's random stream, from the ensemble and the sample."""
        content = {"format": _FORMAT, "ensemble": self.ensemble, "sample": self.sample}
        return int(_digest(canonical_json(content))[:32], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
