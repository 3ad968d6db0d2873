"""One Monte Carlo step, one file each. CONTRIBUTING.md tells how to add one."""

from l0anneal.moves.descent import descend
from l0anneal.moves.outcome import DONE, SINGULAR
from l0anneal.moves.pair_flip import pair_flip
from l0anneal.moves.pair_flip_direct import pair_flip_direct

__all__ = ["DONE", "SINGULAR", "descend", "pair_flip", "pair_flip_direct"]
