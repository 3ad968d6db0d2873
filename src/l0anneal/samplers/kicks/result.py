"""What a search by kicks returns."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util import archive as _archive
from l0anneal.samplers.search_result import SearchResult

__all__ = ["KickResult"]


@dataclass(frozen=True, eq=False)
class KickResult(SearchResult):
    """The result of `kick_search`.

    Attributes
    ----------
    support : ndarray of shape (k,)
        The chosen columns, sorted.
    coef : ndarray of shape (N,)
        Least-squares coefficients on the support, zero elsewhere; from a QR factorisation.
    energy, distortion : float
        ½‖y − A coef‖², and that divided by M.
    chain_energies, chain_supports, chain_coefs : ndarrays
        The same, of each chain.
    n_kicks : ndarray of int
        Kicks of each chain. Given again with the seed, they give the same result.
    seed, seconds : int, float
        And wall-clock time.
    interrupted : bool
        True if the run was stopped before its end.
    """

    n_kicks: NDArray[np.int64]

    def summary(self) -> str:
        """The answer in a few lines."""
        return self._summary(f"kicks        {', '.join(map(str, self.n_kicks))}", "the best so far")

    def save(self, path: str | PathLike[str]) -> None:
        """Write arrays and JSON into one ``.npz`` file; `load` is the inverse, bit for bit."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
        header = {name: value for name, value in fields.items() if name not in arrays}
        _archive.write(path, "KickResult", header, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> KickResult:
        """Read what `save` wrote."""
        header, arrays = _archive.read(path, "KickResult")
        fields: dict[str, Any] = header | arrays
        return cls(**fields)
