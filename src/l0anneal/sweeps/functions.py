"""Functions in tasks: each has a name by which every process knows it, and knows its arguments."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Function", "import_name", "named"]

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
_NAME = "__l0anneal_sweep_name__"


@dataclass(frozen=True)
class Function:
    """A function and the name that stands for it in tasks.

    Parameters
    ----------
    name : str
        The name in tasks.
    call : callable
        The function.
    n_given : int
        How many arguments a task gives by position.
    """

    name: str
    call: Callable[..., Any]
    n_given: int = 0

    @property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that are given by name."""
        try:
            every = list(inspect.signature(self.call).parameters.values())
        except ValueError:  # some functions of C have no signature
            raise ValueError(
                f"the parameters of {self.name} cannot be found out; call it in a function of your own"
            ) from None
        by_position = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY}
        return {p.name: p for p in every[self.n_given :] if p.kind not in by_position}

    @property
    def takes_any(self) -> bool:
        """Whether the function takes arguments of any name."""
        return any(p.kind is p.VAR_KEYWORD for p in self._parameters.values())

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments that the function lists."""
        return [name for name, p in self._parameters.items() if p.kind is not p.VAR_KEYWORD]

    @property
    def required(self) -> list[str]:
        """The names of the arguments that have no default."""
        listed = (p for p in self._parameters.values() if p.kind is not p.VAR_KEYWORD)
        return [p.name for p in listed if p.default is p.empty]

    def __call__(self, *given: Any, random_state: int, **arguments: Any) -> Any:
        """Call the function; one that has no argument ``random_state`` gets none."""
        if self.takes_any or "random_state" in self.arguments:
            arguments["random_state"] = random_state
        return self.call(*given, **arguments)

    def check(self, arguments: Mapping[str, Any], what: str) -> None:
        """Raise ValueError if the arguments are not those that the function needs."""
        unknown = [] if self.takes_any else sorted(set(arguments) - set(self.arguments))
        if unknown:
            raise ValueError(
                f"the {what} {self.name} has no argument {', '.join(unknown)}; it takes "
                f"{', '.join(n for n in self.arguments if n != 'random_state') or 'none'}"
            )
        missing = [n for n in self.required if n not in arguments and n != "random_state"]
        if missing:
            raise ValueError(
                f"the {what} {self.name} needs {', '.join(missing)}; add it to the grid, as a list of "
                "values or as one value"
            )


def named(name: str) -> Callable[[AnyFunction], AnyFunction]:
    """Give a function a name of its own in tasks, as a decorator.

    Examples
    --------
    >>> square = named("square")(lambda x: x * x)
    >>> import_name(square), square(3)
    ('named square', 9)
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the name of a function must be a text that is not empty; got {name!r}")

    def decorate(function: AnyFunction) -> AnyFunction:
        setattr(function, _NAME, name)
        return function

    return decorate


def import_name(function: Callable[..., Any]) -> str:
    """Return the name by which every process can know a function.

    This is the name that `named` gave, or else that of its module and its name there. A function of a
    script that is being run has the script's name as that of its module, so that the name is the same
    when the script is imported. Other functions have no such name, and raise ValueError.

    Examples
    --------
    >>> import_name(import_name)
    'l0anneal.sweeps.functions.import_name'
    """
    given = getattr(function, _NAME, None)
    if given is not None:
        return f"named {given}"
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", None)
    if module and path and _found(module, path) is function:
        if module != "__main__":
            return f"{module}.{path}"
        script = _name_of_script()
        if script is not None:
            return f"{script}.{path}"
    raise ValueError(
        f"{path or repr(function)} is not a function that another process can import, because it is a "
        "lambda, or was defined inside another function, in a notebook or at the prompt; put it into a "
        "module, or give it a name with @Sweep.named(...) and change that name when you change the "
        "function"
    )


def _found(module: str, path: str) -> Any:
    """Return what a module has under a name, or None."""
    try:
        thing: Any = importlib.import_module(module)
    except ImportError:
        return None
    for part in path.split("."):
        thing = getattr(thing, part, None)
    return thing


def _name_of_script() -> str | None:
    """Return the name under which the program that is being run could be imported."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m package.module
        return spec.name.removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return None if file is None else Path(file).stem
