"""What evidence annealing returns."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util import archive as _archive

if TYPE_CHECKING:
    import xarray

__all__ = ["EvidenceResult", "EvidenceSchedule"]

_COLUMNS = ("temperature", "size", "residual_ratio", "rho", "slab_variance", "acceptance")
_WORDS = {
    "found": "the residual vanishes with fewer columns than samples: an exact representation",
    "noise": "cooled to the noise level and sampled there",
    "trapped": "no exact representation and no clear noise level: do not trust the columns",
}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EvidenceSchedule:
    """What an evidence annealing did: sweeps per temperature, in all, to settle, and to sample.

    Of each attempt, and at last of the posterior's sampling, whose first 20 sweeps are not averaged.
    ``capped`` tells whether the last attempt was one with at most half as many columns as samples,
    ``messages`` how often messages were passed before the first attempt.
    The temperatures follow from these and the seed.
    """

    tau: tuple[int, ...]
    sweeps: tuple[int, ...]
    settling: tuple[int, ...]
    sampling: int
    capped: bool = False
    messages: int = 0

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EvidenceSchedule:
        """Read what ``dataclasses.asdict`` makes of one."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**fields)


@dataclass(frozen=True, eq=False)
class EvidenceResult:
    """The result of an evidence annealing.

    Attributes
    ----------
    support : ndarray
        Columns of posterior probability above one half, and the likeliest of each further group of
        correlated columns (|r| > ½) that have it together; at fixed size, the most probable ones; if
        the plan was found, the columns that represent the signal exactly.
    coef : ndarray of shape (N,)
        Least squares on the support, zero elsewhere.
    energy, distortion : float
        ½‖y − A coef‖², and that divided by M.
    inclusion_probability : ndarray of shape (N,)
        Posterior probability that a column is in the support.
    size_posterior : ndarray
        Posterior probability of the support's size, by size.
    averaged_coef, coef_std : ndarrays of shape (N,)
        Posterior mean and standard deviation of the coefficients, over supports and given each.
    noise_variance, rho : float
        As inferred or as given.
    state : {"found", "noise", "trapped"}
        How the cooling ended.
    schedule, seed : EvidenceSchedule, int
        What was run; given again they give the same result.
    seconds : float
        Wall-clock time.
    """

    support: NDArray[np.int64]
    coef: Floats
    energy: float
    n_samples: int
    state: str
    inclusion_probability: Floats
    size_posterior: Floats
    averaged_coef: Floats
    coef_std: Floats
    noise_variance: float
    rho: float
    log: Floats
    schedule: EvidenceSchedule
    seed: int
    seconds: float

    @property
    def attempts(self) -> int:
        """How often it was cooled; not at all where message passing found the plan."""
        return len(self.schedule.tau)

    @property
    def distortion(self) -> float:
        """ε = energy / M."""
        return self.energy / self.n_samples

    @cached_property
    def trajectory(self) -> xarray.Dataset:
        """The run over its steps: noise variance T, size, residual variance / T, ρ, σ², acceptance.

        σ² is of the coefficients of unit-norm columns for a signal of unit norm. Where message
        passing found the plan, the steps are its own.
        """
        import xarray as xr

        return xr.Dataset({name: ("step", self.log[:, i]) for i, name in enumerate(_COLUMNS)})

    def summary(self) -> str:
        """The answer in a few lines."""
        order = np.argsort(-self.inclusion_probability, kind="stable")
        shown = ", ".join(f"{j} ({self.inclusion_probability[j]:.2f})" for j in order[:6])
        sizes = np.arange(self.size_posterior.size)
        mean = float(sizes @ self.size_posterior)
        std = math.sqrt(max(0.0, float(sizes**2 @ self.size_posterior) - mean**2))
        return "\n".join(
            [
                f"support      {self.support.size} columns",
                f"most likely  {shown}",
                f"size         {mean:.1f} ± {std:.1f}",
                f"distortion   {self.distortion:.6g}",
                f"noise        variance {self.noise_variance:.6g}",
                f"ended        {self.state}: {_WORDS[self.state]}",
                f"seed         {self.seed}",
                f"time         {self.seconds:.3g} s, "
                + (f"{self.attempts} attempt(s)" if self.attempts else "by message passing"),
            ]
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write arrays and JSON into one ``.npz`` file; `load` is the inverse, bit for bit."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
        header = {name: value for name, value in fields.items() if name not in arrays}
        _archive.write(path, "EvidenceResult", header | {"schedule": asdict(self.schedule)}, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> EvidenceResult:
        """Read what `save` wrote."""
        header, arrays = _archive.read(path, "EvidenceResult")
        header["schedule"] = EvidenceSchedule.from_dict(header["schedule"])
        fields: dict[str, Any] = header | arrays
        return cls(**fields)
