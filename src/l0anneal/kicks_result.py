"""What a search by kicks returns."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal import _archive

__all__ = ["KickResult"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KickResult:
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

    support: NDArray[np.int64]
    coef: Floats
    energy: float
    signal_energy: float  # ‖y‖²
    n_samples: int
    chain_energies: Floats
    chain_supports: NDArray[np.int64]
    chain_coefs: Floats
    n_kicks: NDArray[np.int64]
    seed: int
    seconds: float
    interrupted: bool

    @property
    def distortion(self) -> float:
        """ε = energy / M."""
        return self.energy / self.n_samples

    @property
    def n_columns(self) -> int:
        """N."""
        return int(self.coef.size)

    @property
    def n_agree(self) -> int:
        """How many chains ended in the best support."""
        return int(np.sum(np.all(self.chain_supports == self.support, axis=1)))

    def summary(self) -> str:
        """The answer in a few lines."""
        shown = ", ".join(str(j) for j in self.support[:12])
        if self.support.size > 12:
            shown += f", … ({self.support.size} in all)"
        lines = [
            f"support      {shown or 'empty'}",
            f"distortion   {self.distortion:.6g}   (energy ½‖y − Ax‖² = {self.energy:.6g})",
            f"chains       {self.n_agree} of {len(self.chain_energies)} ended in this support",
            f"kicks        {', '.join(map(str, self.n_kicks))}",
            f"seed         {self.seed}",
            f"time         {self.seconds:.3g} s",
        ]
        if self.interrupted:
            lines.append("interrupted  the best so far")
        return "\n".join(lines)

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
