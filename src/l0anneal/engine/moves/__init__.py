"""Monte Carlo moves, one per file. CONTRIBUTING.md explains how to add one."""

from l0anneal.engine.moves.descent import descend
from l0anneal.engine.moves.heat_bath import heat_bath
from l0anneal.engine.moves.multi_flip import multi_flip
from l0anneal.engine.moves.pair_flip import pair_flip
from l0anneal.engine.moves.pair_flip_direct import pair_flip_direct
from l0anneal.engine.moves.protocol import DONE, SINGULAR, new_tally
from l0anneal.engine.moves.rejection_free import rejection_free

__all__ = [
    "DONE",
    "SINGULAR",
    "descend",
    "heat_bath",
    "multi_flip",
    "new_tally",
    "pair_flip",
    "pair_flip_direct",
    "rejection_free",
]
