"""The result of a walk over minima."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.samplers.comparison import Comparison
from l0anneal.samplers.result import SearchResult

__all__ = ["KickResult"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KickResult(SearchResult):
    """The result of `kick_search`.

    Attributes
    ----------
    support, coef, energy, distortion
        The best support, its least-squares coefficients, ½‖y − A coef‖², and that divided by M.
    chain_energies, chain_supports, chain_coefs : ndarrays
        Energy, support and coefficients of each chain.
    n_kicks : ndarray of int
        The number of kicks that each chain made. With the same seed they reproduce the result. A
        negative number says that the time limit ended the search for the first minimum, and when.
    comparison : Comparison
        What the chains have in common, for `diagnose`.
    seed, seconds, interrupted, ended
        The run: its seed, wall-clock time, whether the user stopped it, and why it ended.

    See Also
    --------
    kick_search : Run a search.
    diagnose : Decide whether to trust the result.

    Examples
    --------
    >>> from l0anneal import ensembles, kick_search
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> kick_search(instance.problem, 6, random_state=0).ended
    'the columns represent the signal exactly'
    """

    n_kicks: NDArray[np.int64]
    comparison: Comparison

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        return super().to_dict() | {"n_kicks": self.n_kicks.tolist()}

    def _lines(self) -> list[tuple[str, str]]:
        return [*super()._lines(), ("kicks", ", ".join(map(str, self.n_kicks)))]
