"""Tasks of the reproduction: one run of one solver on one random instance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from l0anneal.tasks.task import StoredTask, seed_from

__all__ = ["ENGINES", "Task"]

#: The engine that last changed the numbers of a solver, where this was not engine 2. When a solver may
#: return other numbers, give it here the number that `ENGINE` in `_util.provenance` is raised to. The
#: stored results of all other solvers stay valid.
ENGINES = {"evidence": 3, "kicks": 4}


@dataclass(frozen=True, eq=False)
class Task(StoredTask):
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
    solver's random stream is derived from that content, the instance's from the ensemble and the sample
    alone. All solvers therefore run on the same instances, and their results can be compared in
    pairs.

    Examples
    --------
    >>> task = Task({"kind": "noise_only", "n_columns": 40, "alpha": 0.5}, {"kind": "omp"}, 3)
    >>> task == Task.from_json(task.to_json()), task.id[:12]
    (True, '659bdafd7551')
    """

    ensemble: Mapping[str, Any]
    solver: Mapping[str, Any]
    sample: int

    format = "l0anneal.Task/1"

    @property
    def engine(self) -> int:
        """The engine that last changed the numbers of the solver."""
        return ENGINES.get(self.solver["kind"], 2)

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

    def content(self) -> dict[str, Any]:
        """Return the ensemble, the solver and the sample."""
        return {"ensemble": self.ensemble, "solver": self.solver, "sample": self.sample}

    @classmethod
    def from_json(cls, text: str) -> Task:
        """Make a task from the text that `to_json` returned."""
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != cls.format:
            raise ValueError(f"the text is not a task of format {cls.format}: {text[:80]}")
        return cls(content["ensemble"], content["solver"], content["sample"])

    @property
    def instance_seed(self) -> int:
        """The seed of the instance's random stream, from the ensemble and the sample."""
        content = {"format": self.format, "ensemble": self.ensemble, "sample": self.sample}
        return seed_from(content)
