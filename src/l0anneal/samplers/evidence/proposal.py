"""The law from which entering columns are drawn: any law that is fixed while a chain is sampled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Proposal"]

Floats = NDArray[np.float64]


class Proposal(NamedTuple):
    """Arguments of the kernels: Walker's tables, the log probabilities, and a scratch array."""

    share: Floats
    alias: NDArray[np.int64]
    log_share: Floats
    where: NDArray[np.int64]

    @classmethod
    def of(cls, weights: Floats) -> Proposal:
        """Return the tables of a law proportional to ``weights``, which are positive.

        Examples
        --------
        >>> import numpy as np
        >>> Proposal.of(np.array([3.0, 1.0])).share
        array([1. , 0.5])
        """
        n = weights.size
        law = weights / weights.sum()
        share, alias = n * law, np.arange(n, dtype=np.int64)
        small, large = (
            [int(j) for j in np.flatnonzero(share < 1.0)],
            [int(j) for j in np.flatnonzero(share >= 1.0)],
        )
        while small and large:
            j, i = small.pop(), large[-1]
            alias[j] = i
            share[i] -= 1.0 - share[j]
            if share[i] < 1.0:
                small.append(large.pop())
        share[small + large] = 1.0  # what is left differs from 1 by rounding
        return cls(share, alias, np.log(law), np.zeros(n, dtype=np.int64))
