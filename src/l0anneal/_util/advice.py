"""Advice that names arguments: as arguments of a function, or as options of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["as_options", "option"]

_on_the_command_line: ContextVar[bool] = ContextVar("on the command line", default=False)


@contextmanager
def as_options() -> Iterator[None]:
    """Let `option` write options of the command line while the context lasts."""
    token = _on_the_command_line.set(True)
    try:
        yield
    finally:
        _on_the_command_line.reset(token)


def option(name: str, value: str | bool = True) -> str:
    """Return an argument with a value as the reader would write it.

    Parameters
    ----------
    name : str
        The name of the argument in Python.
    value : str or bool
        Its value.

    Examples
    --------
    >>> option("drop", "city"), option("one_hot")
    ("drop='city'", 'one_hot=True')
    >>> with as_options():
    ...     option("drop", "city of birth"), option("one_hot"), option("intercept", False)
    ("--drop 'city of birth'", '--one-hot', '--no-intercept')
    """
    if not _on_the_command_line.get():
        return f"{name}={value!r}"
    word = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{word}" if value else f"--no-{word}"
    plain = value.replace("_", "").replace(".", "").replace(",", "").isalnum()
    return f"--{word} {value}" if plain else f"--{word} '{value}'"
