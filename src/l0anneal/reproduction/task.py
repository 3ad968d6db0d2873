"""A task: one run of one solver on one random instance, as plain data."""

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

# Raise it when the same content comes to mean another computation: old files are then not found.
_FORMAT = "l0anneal.Task/1"


def canonical_json(content: Any) -> str:
    """Return the one JSON text of some plain data: sorted keys, no spaces, 1.0 written as 1.

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
            raise ValueError(f"a task holds finite numbers only; got {value}")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError(f"names in a task are strings; got {list(value)}")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    raise ValueError(f"a task is plain data; it cannot hold {value!r}")


@dataclass(frozen=True, eq=False)
class Task:
    """One run of one solver on one random instance.

    Parameters
    ----------
    ensemble : mapping
        ``kind`` (a function of `l0anneal.problem.ensembles`) and its arguments.
    solver : mapping
        ``kind`` (see `l0anneal.reproduction.solvers`) and its arguments.
    sample : int
        Which of the ensemble's instances.

    Notes
    -----
    Two tasks of the same content are the same task, with the same `id` on every machine. The
    solver's random stream comes from that id, the instance's from the ensemble and the sample
    alone: all solvers meet the same instances, so that their results can be compared in pairs.

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
                raise ValueError(f"{name} needs a mapping with a kind; got {part!r}")
        if isinstance(self.sample, bool) or not isinstance(self.sample, (int, np.integer)):
            raise ValueError(f"sample must be an integer; got {self.sample!r}")
        if self.sample < 0:
            raise ValueError(f"sample must be ≥ 0; got {self.sample}")
        _ = self.id  # content that has no JSON fails here and not on a worker

    def to_json(self) -> str:
        """The canonical text of the whole content."""
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
        """Read what `to_json` wrote."""
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"this is not a task of format {_FORMAT}: {text[:80]}")
        return cls(content["ensemble"], content["solver"], content["sample"])

    @cached_property
    def id(self) -> str:
        """The SHA-256 hash of the canonical JSON."""
        return _digest(self.to_json())

    @property
    def seed(self) -> int:
        """The solver's random stream, from the id."""
        return int(self.id[:32], 16)

    @property
    def instance_seed(self) -> int:
        """The instance's random stream, from the ensemble and the sample."""
        content = {"format": _FORMAT, "ensemble": self.ensemble, "sample": self.sample}
        return int(_digest(canonical_json(content))[:32], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
