"""What goes to stderr besides errors: notes, and the progress bar."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

__all__ = ["Progress", "note", "wanted", "warnings_as_notes"]

Progress = Annotated[bool | None, typer.Option(help="Show a progress bar (default: on a terminal)")]


def wanted(progress: bool | None) -> bool:
    """Whether to show a progress bar: if asked for, or by default on a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def note(text: str) -> None:
    """Print one line about what was done, apart from the answer."""
    print(f"l0anneal: note: {' '.join(text.split())}", file=sys.stderr)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print each warning to the user as one line, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        usual, seen = warnings.showwarning, set()

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if not issubclass(category, UserWarning):
                usual(message, category, *where, **more)
            elif str(message) not in seen:
                seen.add(str(message))
                note(str(message))

        warnings.showwarning = show
        yield
