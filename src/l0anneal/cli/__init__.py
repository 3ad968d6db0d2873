"""The command line."""

import sys

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """Run the command line; Ctrl-C prints one line, even while modules are loaded."""
    try:
        from l0anneal.cli import app

        app.main(args)
    except KeyboardInterrupt:
        print("l0anneal: interrupted", file=sys.stderr)
        sys.exit(130)
