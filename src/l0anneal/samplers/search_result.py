"""What every search for k columns says: the answer, and where each chain ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["SearchResult", "fitted"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The common part of `AnnealResult` and `KickResult`."""

    support: NDArray[np.int64]
    coef: Floats
    energy: float
    signal_energy: float  # ‖y‖²
    n_samples: int
    chain_energies: Floats
    chain_supports: NDArray[np.int64]
    chain_coefs: Floats
    seed: int
    seconds: float
    interrupted: bool

    @property
    def n_columns(self) -> int:
        """N."""
        return self.coef.size

    @property
    def distortion(self) -> float:
        """ε = energy / M."""
        return self.energy / self.n_samples

    @property
    def n_agree(self) -> int:
        """How many chains ended in the best support."""
        return int(np.sum(np.all(self.chain_supports == self.support, axis=1)))

    def _summary(self, how: str, cut_short: str) -> str:
        """The answer in a few lines, with one on what was run."""
        shown = ", ".join(str(j) for j in self.support[:12])
        if self.support.size > 12:
            shown += f", … ({self.support.size} in all)"
        lines = [
            f"support      {shown or 'empty'}",
            f"distortion   {self.distortion:.6g}   (energy ½‖y − Ax‖² = {self.energy:.6g})",
            f"chains       {self.n_agree} of {len(self.chain_energies)} ended in this support",
            how,
            f"seed         {self.seed}",
            f"time         {self.seconds:.3g} s",
        ]
        if self.interrupted:
            lines.append(f"interrupted  {cut_short}")
        return "\n".join(lines)


def fitted(problem: SparseProblem, supports: Sequence[NDArray[np.int64]]) -> dict[str, Any]:
    """Least squares on the supports of the chains, and the best of them, as fields of a result."""
    fits = [problem.least_squares(support) for support in supports]
    coefs = np.zeros((len(supports), problem.n_columns))
    for row, support, (x, _) in zip(coefs, supports, fits):
        row[support] = x
    energies = np.array([energy for _, energy in fits])
    best = int(np.argmin(energies))
    return {
        "support": supports[best],
        "coef": coefs[best],
        "energy": float(energies[best]),
        "signal_energy": problem.signal_energy,
        "n_samples": problem.n_samples,
        "chain_energies": energies,
        "chain_supports": np.stack(supports),
        "chain_coefs": coefs,
    }
