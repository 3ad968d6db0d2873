"""What goes to stderr besides errors: notes, and the progress bar."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import Annotated, Any

import typer

__all__ = ["Progress", "note", "say", "wanted", "warnings_as_notes"]

Progress = Annotated[bool | None, typer.Option(help="Show a progress bar (default: on a terminal)")]


def wanted(progress: bool | None) -> bool:
    """Whether to show a progress bar: if asked for, or by default on a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def say(text: str) -> None:
    """Print one line on stderr; on a terminal, it is wrapped between words."""
    line = f"l0anneal: {' '.join(text.split())}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    print(line, file=sys.stderr)


def note(text: str) -> None:
    """Print one line about what was done, apart from the answer."""
    say(f"note: {text}")


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
