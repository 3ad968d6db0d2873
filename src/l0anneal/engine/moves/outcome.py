"""Why a kernel came back: a number ≥ 0 is the column whose row of the Gram matrix it needs."""

import numpy as np
from numpy.typing import NDArray

DONE = -1
FULL = -3  # the tableau has no room for another column
SINGULAR = -2  # a refresh found the support singular to working precision

# indices into a kernel's tally: proposals made and accepted since the tally was cleared, and the
# proposal that waits for a row of the Gram matrix (slot, outside position), −1: none;
# for `multi_flip` also the pairs to exchange at once, at most
PROPOSED, ACCEPTED, SLOT, OUTSIDE, PAIRS = range(5)


def new_tally(n_pairs: int = 2) -> NDArray[np.int64]:
    """Return the tally with which a temperature begins."""
    return np.array([0, 0, -1, -1, n_pairs], dtype=np.int64)
