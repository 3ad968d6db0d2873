"""The result of evidence annealing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.samplers.result import Result

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["EvidenceResult", "EvidenceSchedule"]

_COLUMNS = ("temperature", "size", "residual_ratio", "rho", "slab_variance", "acceptance")
_STATES = {
    "found": "the residual vanishes with fewer columns than samples: an exact representation",
    "noise": "cooled to the noise level and sampled there",
    "trapped": "no exact representation and no clear noise level: do not trust the columns",
}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EvidenceSchedule:
    """The steps that an evidence annealing made; with the seed, they replay the run exactly.

    Attributes
    ----------
    tau : tuple of int
        Sweeps at each temperature, by attempt. The temperatures follow from these and the seed.
    sweeps, settling : tuple of int
        Sweeps of each attempt while it was cooled, and while it settled at the noise level.
    sampling : int
        Draws from the posterior, of which the first 20 are not averaged.
    capped : bool
        Whether the last attempt allowed at most half as many columns as there are samples.
    messages : int
        Steps of message passing before the first attempt.
    """

    tau: tuple[int, ...]
    sweeps: tuple[int, ...]
    settling: tuple[int, ...]
    sampling: int
    capped: bool = False
    messages: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` is the exact inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EvidenceSchedule:
        """Make a schedule from what `to_dict` returned."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**fields)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EvidenceResult(Result):
    """The result of `evidence_anneal`.

    Attributes
    ----------
    support : ndarray of int
        Columns with a posterior probability above one half and, from each further group of
        correlated columns (|r| > ½) whose probabilities sum to more than one half, the likeliest
        column. At a fixed size, the most probable columns. If an exact representation was found,
        its columns.
    coef : ndarray of shape (N,)
        Least-squares coefficients on the support, zero elsewhere.
    energy, distortion : float
        ½‖y − A coef‖², and that divided by M.
    inclusion_probability : ndarray of shape (N,)
        Posterior probability that a column belongs to the support.
    size_posterior : ndarray
        Posterior probability of each number of columns, from 0 on.
    averaged_coef, coef_std : ndarrays of shape (N,)
        Posterior mean and standard deviation of the coefficients. They include both the uncertainty
        of the support and that of the coefficients on a given support.
    noise_variance, rho : float
        The noise variance and the prior probability of a column, as inferred or as given.
    state : {"found", "noise", "trapped"}
        How the cooling ended: with an exact representation, at a noise level, or with neither.
    schedule, seed : EvidenceSchedule, int
        The steps that were made and the seed; passed to `evidence_anneal`, they reproduce the
        result.
    seconds, interrupted, ended
        Wall-clock time, whether the user stopped the run, and why it ended.
    """

    state: str
    inclusion_probability: Floats
    size_posterior: Floats
    averaged_coef: Floats
    coef_std: Floats
    noise_variance: float
    rho: float
    log: Floats
    schedule: EvidenceSchedule

    @property
    def attempts(self) -> int:
        """How many attempts were made; none if message passing found an exact representation."""
        return len(self.schedule.tau)

    @cached_property
    def trajectory(self) -> xarray.Dataset:
        """The run step by step: noise variance T, size, residual variance / T, ρ, σ², acceptance.

        σ² is the variance of the coefficients of unit-norm columns for a signal of unit norm. Where
        message passing found an exact representation, the steps are those of message passing.
        """
        import xarray as xr

        return xr.Dataset({name: ("step", self.log[:, i]) for i, name in enumerate(_COLUMNS)})

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        likely = np.flatnonzero(self.inclusion_probability > 0.01).tolist()
        return super().to_dict() | {
            "state": self.state,
            "noise_variance": self.noise_variance,
            "inclusion_probability": {str(j): float(self.inclusion_probability[j]) for j in likely},
            "size_posterior": self.size_posterior.tolist(),
            "schedule": self.schedule.to_dict(),
        }

    def plot(self) -> Figure:
        """Draw the posterior: probabilities of the columns, their number, and the cooling."""
        from l0anneal.samplers.plotting import plot_evidence

        return plot_evidence(self)

    def _lines(self) -> list[tuple[str, str]]:
        order = np.argsort(-self.inclusion_probability, kind="stable")
        shown = ", ".join(f"{j} ({self.inclusion_probability[j]:.2f})" for j in order[:6])
        sizes = np.arange(self.size_posterior.size)
        mean = float(sizes @ self.size_posterior)
        std = math.sqrt(max(0.0, float(sizes**2 @ self.size_posterior) - mean**2))
        attempts = f"{self.attempts} attempt(s)" if self.attempts else "by message passing"
        return [
            ("support", f"{self.support.size} columns"),
            ("most likely", shown),
            ("size", f"{mean:.1f} ± {std:.1f}"),
            ("distortion", f"{self.distortion:.6g}"),
            ("noise", f"variance {self.noise_variance:.6g}"),
            ("state", f"{self.state}: {_STATES[self.state]}"),
            ("search", attempts),
        ]

    def table(self) -> list[dict[str, str]]:
        p = self.inclusion_probability
        likely = np.argsort(-p, kind="stable")[: max(10, min(20, self.support.size))]
        return [
            {
                "column": str(j),
                "probability": f"{p[j]:.2f}",
                "coefficient": f"{self.coef[j]:.4g}" if self.coef[j] else "–",
                "its average": f"{self.averaged_coef[j]:.4g}",
                "± std": f"{self.coef_std[j]:.2g}",
            }
            for j in likely[p[likely] > 0.01]
        ]
