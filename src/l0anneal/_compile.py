"""A word to the user when the first call ever has to compile the kernels."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from l0anneal.moves import pair_flip

__all__ = ["announce_compilation"]

_PATIENCE = 1.0  # seconds; loading compiled kernels takes a fraction of that


@contextmanager
def announce_compilation() -> Iterator[None]:
    """Say so on stderr if kernels are being compiled, not loaded, in the block."""
    if pair_flip.signatures:
        yield
        return

    def say() -> None:
        if not pair_flip.signatures:
            print(
                "l0anneal: compiling its kernels; this happens once and takes about half a minute",
                file=sys.stderr,
                flush=True,
            )

    timer = threading.Timer(_PATIENCE, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
