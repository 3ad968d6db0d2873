"""The command line application."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from l0anneal._util.advice import as_options
from l0anneal.cli import finemap, reproduce, solve, theory
from l0anneal.cli.notes import say
from l0anneal.theory import ConvergenceError

__all__ = ["app", "main"]

# other names of options, which the help does not list
ALIASES = {"seed": "random-state"}

app = typer.Typer(
    name="l0anneal",
    no_args_is_help=True,
    context_settings={"token_normalize_func": lambda name: ALIASES.get(name, name)},
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
    """Find the few columns of a table that explain a target, by annealing.

    Start with: l0anneal solve data.csv --target price

    Each command has an example: l0anneal solve --help
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line; a user error prints one line on stderr and exits with 2."""
    try:
        with as_options():
            code = app(args, prog_name="l0anneal", standalone_mode=False)
    except (ValueError, OSError, ArithmeticError, ConvergenceError) as error:
        message: object = error
        if isinstance(error, OSError) and error.strerror:
            message = f"{error.strerror}: {error.filename}"
        _fail(str(message), 2)
    except MemoryError as error:
        _fail(f"out of memory ({error})", 2)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        # usage errors of the option parser have a message of their own; anything else is a bug
        if not hasattr(error, "format_message"):
            raise
        usage = error.format_message()
        if not usage:  # the help was printed
            sys.exit(2)
        context = getattr(error, "ctx", None)
        command = "l0anneal" if context is None else context.command_path
        _fail(f"{usage.rstrip('.')}; see {command} --help", 2)
    if code == 130:
        _fail("interrupted", 130)
    sys.exit(code or 0)


def _fail(message: str, code: int) -> None:
    say(message)
    sys.exit(code)
