"""What all moves have in common: outcomes, the layout of a tally, and direct kernels.

A move is a kernel that can be interrupted and resumed. Its outcome says why it returned: a number ≥ 0
is the column whose row of the Gram matrix it needs before it is called again, and the negative numbers
are named below.
"""

from typing import Any

import numpy as np
from numba import float64, int64, uint64
from numpy.typing import NDArray

from l0anneal.engine.tableau import TABLEAU

__all__ = [
    "ACCEPTED",
    "DONE",
    "FULL",
    "MOVE",
    "OUTSIDE",
    "PAIRS",
    "PAUSED",
    "PROPOSED",
    "SINGULAR",
    "SLOT",
    "SPARE_ROWS",
    "direct",
    "is_direct",
    "new_tally",
]

# the types of the arguments of a move, for moves that are compiled separately
MOVE = (TABLEAU, uint64[::1], float64, int64, float64[::1], int64[::1])

# outcomes
DONE = -1
SINGULAR = -2  # a refresh found the support singular to working precision
FULL = -3  # the tableau has no room for another column
PAUSED = -4  # the kernel has worked for a while; it is called again unless the run was stopped

# Indices into a kernel's tally: proposals made and accepted since the tally was created; slot and
# outside position of the proposal that waits for a row of the Gram matrix (−1: none); and, for
# `multi_flip`, the largest number of pairs to exchange at once.
PROPOSED, ACCEPTED, SLOT, OUTSIDE, PAIRS = range(5)

# Rows of the Gram matrix that a workspace can hold besides those of the support, and hence the
# largest number of outside columns whose rows a move may need at the same time.
SPARE_ROWS = 8


def new_tally(n_pairs: int = 2) -> NDArray[np.int64]:
    """Return a tally with no proposals made and none waiting."""
    return np.array([0, 0, -1, -1, n_pairs], dtype=np.int64)


def direct(kernel: Any) -> Any:
    """Declare that a kernel updates U, x and the energy only, and leaves W, r and γ stale.

    A direct kernel also runs on a tableau that another direct kernel has left stale. Before any other
    kernel runs, `Workspace.run` recomputes the tableau.
    """
    kernel.is_direct = True
    return kernel


def is_direct(kernel: Any) -> bool:
    """Whether a kernel was declared `direct`."""
    return getattr(kernel, "is_direct", False)
