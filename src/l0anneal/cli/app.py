"""The command line application."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from l0anneal.cli import finemap, reproduce, solve, theory
from l0anneal.theory import ConvergenceError

__all__ = ["app", "main"]

app = typer.Typer(
    name="l0anneal",
    help="The best k columns of a dictionary for a signal, found by annealing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

solve.register(app)
finemap.register(app)
reproduce.register(app)
theory.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from l0anneal import __version__

        print(f"l0anneal {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """The best k columns of a dictionary for a signal, found by annealing."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; a user error prints one line on stderr and exits with 2."""
    try:
        code = app(args, standalone_mode=False)
    except (ValueError, OSError, ArithmeticError, ConvergenceError) as error:
        message = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else error
        _fail(str(message), 2)
    except MemoryError as error:
        _fail(f"out of memory ({error})", 2)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        # usage errors of the option parser have a message of their own; anything else is a bug
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if not message:  # the help was printed
            sys.exit(2)
        _fail(message, 2)
    if code == 130:
        _fail("interrupted", 130)
    sys.exit(code or 0)


def _fail(message: str, code: int) -> None:
    print(f"l0anneal: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
