"""The samplers of this package as solvers of a sweep: by name, and with arguments of plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.described import schedule_from
from l0anneal.samplers.evidence.anneal import evidence_anneal
from l0anneal.samplers.kicks.search import kick_search
from l0anneal.samplers.population.anneal import population_anneal
from l0anneal.samplers.tempering.temper import temper
from l0anneal.solving import solve
from l0anneal.sweeps.functions import Function

__all__ = ["SAMPLERS", "Sampler", "problem_of", "sampler_of"]

#: The samplers, each with arguments of a run that is just long enough to compile its kernels.
SAMPLERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "anneal": (anneal, {"n_nonzero": 3, "schedule": {"kind": "paper", "n": 2, "tau": 1}}),
    "kick_search": (kick_search, {"n_nonzero": 3, "n_kicks": 2}),
    "temper": (temper, {"n_nonzero": 3, "n_sweeps": 20}),
    "population_anneal": (
        population_anneal,
        {"n_nonzero": 3, "schedule": {"kind": "paper", "n": 2, "tau": 1}, "population": 4},
    ),
    "evidence_anneal": (evidence_anneal, {}),
    "solve": (solve, {"n_nonzero": 3}),
}
# What a task decides by itself, what its result must not depend on, and what is no plain data.
_RESERVED = {
    "problem",
    "n_jobs",
    "time_limit",
    "random_state",
    "progress",
    "on_interrupt",
    "observables",
}


@dataclass(frozen=True)
class Sampler(Function):
    """A sampler of this package, which a task gives the problem of its instance.

    Besides the sampler's own arguments, ``rho`` may stand for ``n_nonzero`` = round(ρ N), unless the
    sampler has an argument of this name; `anneal` takes ``tau``; and a schedule is a mapping, as in
    `schedule_from`.
    """

    @property
    def _own(self) -> list[str]:
        return list(inspect.signature(self.call).parameters)

    @property
    def takes_any(self) -> bool:
        """Whether the sampler takes arguments of any name: no."""
        return False

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments that a sweep may give."""
        hidden = _RESERVED | ({"schedule"} if self.call is evidence_anneal else set())
        more = {"rho"} if "n_nonzero" in self._own else set()
        more |= {"tau"} if self.call is anneal else set()
        return [*(n for n in self._own if n not in hidden), *sorted(more - set(self._own))]

    @property
    def required(self) -> list[str]:
        """The names of the arguments that have no default."""
        return [name for name in super().required if name in self.arguments]

    def check(self, arguments: Mapping[str, Any], what: str) -> None:
        """Raise ValueError if the arguments are not those that the sampler needs."""
        if "rho" in arguments and "rho" not in self._own:
            if "n_nonzero" in arguments:
                raise ValueError(f"{self.name} takes n_nonzero or rho, and not both")
            arguments = {**arguments, "n_nonzero": None}
        super().check(arguments, what)

    def __call__(self, *given: Any, random_state: int, **arguments: Any) -> Any:
        """Run the sampler on an instance, in one thread."""
        problem = problem_of(given[0])
        if "rho" in arguments and "rho" not in self._own:
            arguments["n_nonzero"] = round(arguments.pop("rho") * problem.n_columns)
        if self.call is anneal and "tau" in arguments:
            tau = {"tau": arguments.pop("tau")}
            arguments["schedule"] = {**arguments.get("schedule", {}), **tau}
        if arguments.get("schedule") is not None:
            k = problem.check_size(arguments.get("n_nonzero"))
            arguments["schedule"] = schedule_from(arguments["schedule"], problem, k)
        return self.call(problem, **arguments, n_jobs=1, random_state=random_state)

    def get_ready(self) -> None:
        """Compile the kernels, or load them, once per process."""
        _get_ready(self)


def sampler_of(solver: Any) -> Sampler | None:
    """Return the sampler of this package that a name or a function stands for, or None."""
    for name, (function, _) in SAMPLERS.items():
        if solver is function or (isinstance(solver, str) and solver == name):
            return Sampler(f"l0anneal.{name}", function, 1)
    return None


def problem_of(instance: Any) -> SparseProblem:
    """Return the problem of an instance, which may be a problem itself."""
    problem = getattr(instance, "problem", instance)
    if isinstance(problem, SparseProblem):
        return problem
    raise ValueError(
        "the samplers of l0anneal need an instance that is a SparseProblem or has one as its attribute "
        f"problem, as ensembles.Instance has; got {type(instance).__name__}"
    )


@cache
def _get_ready(sampler: Sampler) -> None:
    rng = np.random.default_rng(0)
    problem = SparseProblem(rng.standard_normal((12, 16)), rng.standard_normal(12))
    _, arguments = SAMPLERS[sampler.name.removeprefix("l0anneal.")]
    sampler(problem, **arguments, random_state=0)
