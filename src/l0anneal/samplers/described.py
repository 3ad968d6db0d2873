"""Schedules that are described by plain data, as in tasks that are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.pace import AdaptiveSchedule
from l0anneal.samplers.schedule import Schedule

__all__ = ["schedule_from"]

_KINDS = ("automatic", "paper", "geometric", "logarithmic", "custom", "adaptive")


def schedule_from(
    description: Mapping[str, Any], problem: SparseProblem, n_nonzero: int
) -> Schedule | AdaptiveSchedule:
    """Make the schedule that a mapping describes.

    Parameters
    ----------
    description : mapping
        ``kind``, the name of a method of `Schedule` or "adaptive", and its arguments. By default the
        kind is "automatic".
    problem, n_nonzero
        The problem and the number of columns, for the kind "automatic".

    Examples
    --------
    >>> from l0anneal import ensembles
    >>> problem = ensembles.noise_only(20, 0.5, random_state=0).problem
    >>> schedule_from({"kind": "paper", "n": 10, "tau": 2}, problem, 4)
    Schedule(10 temperatures, μ = 1e-08 … 1.36, 20 sweeps, "paper")
    """
    if not isinstance(description, Mapping):
        raise ValueError(
            "a schedule in a task must be a mapping with a kind and its arguments, such as "
            f'{{"kind": "paper", "tau": 5}}; got {description!r}'
        )
    arguments = dict(description)
    kind = arguments.pop("kind", "automatic")
    if kind not in _KINDS:
        raise ValueError(f"the schedule {kind!r} is not known; use one of {', '.join(_KINDS)}")
    if kind == "adaptive":
        return AdaptiveSchedule(**arguments)
    if kind == "automatic":
        return Schedule.automatic(problem, n_nonzero, **arguments)
    return getattr(Schedule, kind)(**arguments)
