"""The parameters of a sweep: their values, and which function takes which of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from l0anneal.sweeps.functions import Function
from l0anneal.tasks.task import canonical_json

__all__ = ["checked_grid", "points", "shares"]

_TAKEN = ("sample", "solver", "seconds", "random_state")


def checked_grid(grid: Any) -> dict[str, Any]:
    """Return a grid whose values are lists, or single values for parameters that do not vary.

    Examples
    --------
    >>> checked_grid({"n": range(2, 4), "alpha": 0.5})
    {'n': [2, 3], 'alpha': 0.5}
    """
    if not isinstance(grid, Mapping):
        raise ValueError(
            "grid must be a mapping of names to values, such as "
            f'{{"n_columns": [40, 80], "alpha": 0.5}}; got {grid!r}'
        )
    checked = {}
    for name, values in grid.items():
        if not isinstance(name, str) or name in _TAKEN:
            raise ValueError(
                f"a parameter must have a text as its name, other than {', '.join(_TAKEN)}; got {name!r}"
            )
        checked[name] = _checked(name, values)
    return checked


def _checked(name: str, values: Any) -> Any:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    varies = isinstance(values, (list, tuple, range))
    values = list(values) if varies else values
    try:
        texts = [canonical_json(value) for value in (values if varies else [values])]
    except ValueError as error:
        raise ValueError(f"the values of {name} cannot be stored: {error}") from None
    if not texts:
        raise ValueError(f"the grid has no values for {name}; give at least one")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"the grid has {twice} twice among the values of {name}; give it once")
    return values


def points(grid: Mapping[str, Any]) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Yield the index and the parameters of each point of a grid; the last parameter varies fastest.

    Examples
    --------
    >>> list(points({"n": [2, 3], "alpha": 0.5}))
    [((0,), {'n': 2, 'alpha': 0.5}), ((1,), {'n': 3, 'alpha': 0.5})]
    """
    varying = [name for name, values in grid.items() if isinstance(values, list)]
    for index in product(*(range(len(grid[name])) for name in varying)):
        yield index, {**grid, **{name: grid[name][i] for name, i in zip(varying, index)}}


def shares(
    names: Iterable[str], instance: Function, solvers: Mapping[Any, tuple[Function, Mapping]]
) -> tuple[list[str], list[str]]:
    """Return which parameters of a grid the instances take, and which the solvers take.

    A parameter goes to every function that lists it among its arguments, and otherwise to functions
    that take any. Raise ValueError if nobody takes it, or if only some of the solvers do.
    """
    functions = [function for function, _ in solvers.values()]
    drawn, solved = [], []
    for name in names:
        listed = name in instance.arguments or any(name in f.arguments for f in functions)

        def takes(function: Function, name: str = name, listed: bool = listed) -> bool:
            return name in function.arguments if listed else function.takes_any

        takers = [takes(function) for function in functions]
        if takes(instance):
            drawn.append(name)
        if all(takers):
            solved.append(name)
        elif any(takers) or not takes(instance):
            raise ValueError(_nobody(name, instance, functions, takers))
    for name in solved:
        if twice := [str(label) for label, (_, own) in solvers.items() if name in own]:
            raise ValueError(
                f"{name} is in the grid and among the arguments of the solver {', '.join(twice)}; give "
                "it in one place"
            )
    return drawn, solved


def _nobody(name: str, instance: Function, functions: list[Function], takers: list[bool]) -> str:
    if any(takers):
        without = ", ".join(f.name for f, takes in zip(functions, takers) if not takes)
        return (
            f"{name} is in the grid, but {without} does not take it; give it as an argument of the "
            'solvers that do, such as {"label": (solver, {"' + name + '": ...})}'
        )
    lists = [
        f"{f.name} takes {', '.join(n for n in f.arguments if n != 'random_state') or 'none'}"
        for f in (instance, *functions)
    ]
    return f"neither the instance nor the solver takes {name}; {'; '.join(lists)}"
