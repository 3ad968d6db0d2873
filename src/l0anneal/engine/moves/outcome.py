"""The constants of `protocol` under an earlier name."""

from l0anneal.engine.moves.protocol import (
    ACCEPTED,
    DONE,
    FULL,
    OUTSIDE,
    PAIRS,
    PROPOSED,
    SINGULAR,
    SLOT,
    new_tally,
)

__all__ = [
    "ACCEPTED",
    "DONE",
    "FULL",
    "OUTSIDE",
    "PAIRS",
    "PROPOSED",
    "SINGULAR",
    "SLOT",
    "new_tally",
]
