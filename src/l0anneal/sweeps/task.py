"""Tasks of a sweep: draw one instance, run one solver on it, and measure the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.provenance import ENGINE
from l0anneal.samplers.result import Result
from l0anneal.sweeps.functions import Function
from l0anneal.sweeps.samplers import Sampler
from l0anneal.tasks.task import StoredTask, seed_from

__all__ = ["SweepTask", "prepare", "run_task"]

Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class SweepTask(StoredTask):
    """One solver on one instance.

    The instance's random numbers depend on the function that draws it, its arguments, the sample and
    the seed of the sweep. All solvers therefore run on the same instances. The solver's random numbers
    depend on these, on the solver and on its arguments. The revision changes neither.

    Attributes
    ----------
    instance, solver, measure : Function
        The functions; no measure means the default one.
    drawn_with, solved_with : mapping
        The arguments of ``instance`` and of ``solver``.
    sample : int
        The number of the instance, from 0.
    random_state, revision : int
        Those of the sweep.
    """

    instance: Function
    drawn_with: Mapping[str, Any]
    solver: Function
    solved_with: Mapping[str, Any]
    measure: Function | None
    sample: int
    random_state: int
    revision: int

    format = "l0anneal.SweepTask/1"
    engine = ENGINE

    def __post_init__(self) -> None:
        _ = self.id  # content that has no JSON must fail here, not on a worker

    def content(self) -> dict[str, Any]:
        """Return everything that the result depends on."""
        return {
            **self._solver_content(),
            "measure": None if self.measure is None else self.measure.name,
            "revision": self.revision,
        }

    def _instance_content(self) -> dict[str, Any]:
        return {
            "instance": {"function": self.instance.name, "arguments": self.drawn_with},
            "sample": self.sample,
            "random_state": self.random_state,
        }

    def _solver_content(self) -> dict[str, Any]:
        solver = {"function": self.solver.name, "arguments": self.solved_with}
        return {**self._instance_content(), "solver": solver}

    @property
    def instance_seed(self) -> int:
        """The seed of the instance."""
        return seed_from({"format": self.format, **self._instance_content()})

    @property
    def solver_seed(self) -> int:
        """The seed of the solver."""
        return seed_from({"format": self.format, **self._solver_content()})

    def draw(self) -> Any:
        """Draw the instance."""
        return self.instance(random_state=self.instance_seed, **self.drawn_with)


def prepare(tasks: list[SweepTask]) -> None:
    """Compile the kernels of the samplers that the tasks use."""
    for solver in {task.solver.name: task.solver for task in tasks}.values():
        if isinstance(solver, Sampler):
            solver.get_ready()


def run_task(task: SweepTask) -> tuple[Arrays, float]:
    """Run a task; return its arrays and the processor seconds that its solver took."""
    prepare([task])  # keep the loading of kernels out of the solver's time
    instance = task.draw()
    began = time.process_time()
    result = task.solver(instance, random_state=task.solver_seed, **task.solved_with)
    seconds = time.process_time() - began
    if task.measure is not None:
        return _arrays(task, task.measure.call(instance, result), task.measure.name), seconds
    if isinstance(result, Result):
        return _arrays(task, _measured(instance, result), "the default measure"), seconds
    return _arrays(task, result, task.solver.name), seconds


def _measured(instance: Any, result: Result) -> dict[str, Any]:
    """Return what is measured by default: distortion, size and, with a known truth, two errors."""
    measured: dict[str, Any] = {"distortion": result.distortion, "size": result.support.size}
    truth = getattr(instance, "truth", None)
    if truth is not None:
        measured["mse"] = np.mean((truth - result.coef) ** 2)
        measured["n_planted"] = np.count_nonzero(truth)
        measured["n_found"] = np.count_nonzero(truth[result.support])
    return measured


def _arrays(task: SweepTask, values: Any, source: str) -> Arrays:
    """Check that values are named numbers, or arrays of numbers, and return arrays."""
    if not isinstance(values, Mapping) or not values:
        raise TypeError(
            f"{source} must return a mapping of names to numbers or arrays, such as "
            f'{{"error": 0.1}}; got {type(values).__name__}: return one, or give a measure'
        )
    arrays = {}
    taken = {"seconds", "sample", "solver", *task.drawn_with, *task.solved_with}
    for name, value in values.items():
        if not isinstance(name, str) or name.startswith("_") or name in taken:
            raise ValueError(
                "the name of a result must be a text that does not start with _ and is none of "
                f"{', '.join(sorted(taken))}; {source} returned {name!r}"
            )
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            raise TypeError(
                f"results must be numbers or arrays of numbers; {source} returned "
                f"{type(value).__name__} as {name}"
            )
        arrays[name] = array
    return arrays
