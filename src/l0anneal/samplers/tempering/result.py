"""The result of replica exchange, and the error raised if the run was too short."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal.samplers.export import arviz_data, columns_of, posterior
from l0anneal.samplers.overlap import in_pairs, overlap_dataset
from l0anneal.samplers.result import Result

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["RunTooShort", "TemperResult"]

Floats = NDArray[np.float64]


class RunTooShort(RuntimeError):
    """The run did not last long enough for its averages and samples to mean anything.

    See Also
    --------
    temper : Run a replica exchange.
    TemperResult : Has the ``refusals`` that this exception reports.

    Examples
    --------
    >>> from l0anneal import RunTooShort, ensembles, temper
    >>> instance = ensembles.noise_only(20, 0.5, random_state=1)
    >>> result = temper(instance.problem, 4, n_sweeps=2, random_state=0)
    >>> try:
    ...     result.trajectory
    ... except RunTooShort:
    ...     print("no averages")
    no averages
    """


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TemperResult(Result):
    """The result of a replica exchange.

    The supports are the best ones that were seen, even if the run was short. Averages and samples
    (`trajectory`, `samples`) are only available if they can be trusted to follow the stated
    distribution; if ``refusals`` is not empty, reading them raises `RunTooShort`.

    Attributes
    ----------
    support, coef, energy, distortion
        The best support (of the largest size, where there are several), its least-squares
        coefficients, ½‖y − A coef‖², and that divided by M.
    n_sweeps, n_pilot, n_burn_in, survey_tau, n_replicas
        Averaged sweeps, sweeps of the pilot run, sweeps between them, sweeps at each temperature of the
        survey, and the number of replicas that was asked for; given again to `temper` with the seed,
        they replay the run.
    refusals : tuple of str
        Why the run was too short; empty if it was not.
    ladder : ndarray of shape (L,)
        Inverse temperatures, ascending.
    weights : ndarray of shape (L, n_sizes)
        The weights of the sizes: rung a has the distribution ``P(S) ∝ exp(−μ_a E(S) + w_{a,|S|})``.
    exchange_rate : ndarray of shape (L − 1,)
        Mean acceptance rate of exchanges between neighbouring rungs.
    barrier : float
        Λ, the sum of the rejection rates: about 2Λ + 2 rungs are best.
    round_trips, size_trips : int
        Journeys of replicas from the hottest rung to the coldest and back, and from the smallest
        size to the largest and back.
    autocorrelation : ndarray of shape (L,)
        Integrated autocorrelation time at each rung, in sweeps: the larger of the times of energy
        and size.
    visits : ndarray of shape (L, n_sizes)
        The number of proposals made at each size and rung.
    polished : bool
        Whether the run ended with a descent. It is False if there was no time for it; give it as
        ``polish`` to reproduce the result.

    See Also
    --------
    temper : Run a replica exchange.
    RunTooShort : Raised if averages are not reliable.
    autocorrelation_time : How far apart independent samples are.

    Examples
    --------
    >>> from l0anneal import ensembles, temper
    >>> instance = ensembles.planted(20, 0.8, 0.2, support="fixed", random_state=1)
    >>> result = temper(instance.problem, sizes=(2, 4), n_sweeps=1000, random_state=0)
    >>> result.support.size, result.refusals
    (4, ())
    """

    n_sweeps: int
    n_pilot: int
    n_burn_in: int
    survey_tau: int
    n_replicas: int | None
    first_size: int
    refusals: tuple[str, ...]
    round_trips: int
    size_trips: int
    ladder: Floats
    weights: Floats
    exchange_rate: Floats
    mean_energy: Floats
    std_energy: Floats
    energy_error: Floats
    autocorrelation: Floats
    visits: NDArray[np.int64]
    # by size: supports, sorted and padded with −1, energies and dense coefficients
    best_supports: NDArray[np.int64]
    best_energies: Floats
    best_coefs: Floats
    # by sweep, rung and slot, padded with −1
    sampled_supports: NDArray[np.int32] | None = None
    polished: bool = True
    # by rung
    specific_heat: Floats | None = None
    specific_heat_error: Floats | None = None
    observed: dict[str, Floats] = field(default_factory=dict)
    observed_error: dict[str, Floats] = field(default_factory=dict)
    # by sweep and rung: energy and observables, if samples were kept
    sampled_values: dict[str, Floats] = field(default_factory=dict)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The sizes of the supports."""
        return self.first_size + np.arange(self.best_energies.size)

    @property
    def barrier(self) -> float:
        """Λ, the sum of the rejection rates along the ladder."""
        return float(np.sum(1.0 - self.exchange_rate))

    @cached_property
    def path(self) -> xarray.Dataset:
        """The best support of each size: ``support`` (padded with −1), ``energy``, ``coef``."""
        import xarray as xr

        return xr.Dataset(
            {
                "support": (("size", "slot"), self.best_supports),
                "energy": ("size", self.best_energies),
                "distortion": ("size", self.best_energies / self.n_samples),
                "coef": (("size", "column"), self.best_coefs),
            },
            coords={"size": self.sizes},
        )

    @cached_property
    def exchanges(self) -> xarray.Dataset:
        """How the ladder worked, even if the run was too short: rates, times, visits."""
        import xarray as xr

        return xr.Dataset(
            {
                "autocorrelation": ("mu", self.autocorrelation),
                "visits": (("mu", "size"), self.visits),
                "exchange_rate": ("step", self.exchange_rate),
            },
            coords={"mu": self.ladder, "size": self.sizes},
            attrs={
                "round_trips": self.round_trips,
                "size_trips": self.size_trips,
                "barrier": self.barrier,
            },
        )

    def require(self) -> None:
        """Raise `RunTooShort`, saying why, if the run was too short."""
        if self.refusals:
            raise RunTooShort("; ".join(self.refusals))

    @cached_property
    def trajectory(self) -> xarray.Dataset:
        """Averages at each rung, over the coordinate ``mu``; `RunTooShort` if not reliable.

        ``temperature``, ``distortion``, its spread ``distortion_std`` and the error of the mean
        ``distortion_error``, ``autocorrelation``. ``specific_heat`` is M μ² var ε = μ² var E / M, with
        ε the distortion; its ``specific_heat_error`` comes from 20 blocks of sweeps and is 0 where
        only one support was seen. Each observable has its mean and an ``_error``. With several
        sizes also ``log_g_ratio``: log of G_k(μ), the sum of exp(−μ E(S)) over the supports of
        size k, minus that of the smallest size, from visits and weights.
        """
        import xarray as xr

        self.require()
        with np.errstate(divide="ignore"):
            temperature = 1.0 / self.ladder
        log_g = np.log(self.visits) - self.weights
        more: dict[str, Any] = dict(self.observed)
        more |= {f"{name}_error": error for name, error in self.observed_error.items()}
        if self.specific_heat is not None:
            more["specific_heat"] = self.specific_heat
            more["specific_heat_error"] = self.specific_heat_error
        return xr.Dataset(
            {
                "temperature": ("mu", temperature),
                "distortion": ("mu", self.mean_energy / self.n_samples),
                "distortion_std": ("mu", self.std_energy / self.n_samples),
                "distortion_error": ("mu", self.energy_error / self.n_samples),
                "autocorrelation": ("mu", self.autocorrelation),
                "log_g_ratio": (("mu", "size"), log_g - log_g[:, :1]),
            }
            | {name: ("mu", values) for name, values in more.items()},
            coords={"mu": self.ladder, "size": self.sizes},
            attrs={"n_samples": self.n_samples, "n_columns": self.n_columns},
        )

    @cached_property
    def samples(self) -> xarray.DataArray:
        """Supports after every sweep at every rung, sorted, padded with −1 (``keep_samples=True``).

        Dimensions ``sweep``, ``mu`` and ``slot``. Raises `RunTooShort` if the run was too short.
        """
        import xarray as xr

        if self.sampled_supports is None:
            raise ValueError("no samples were kept: temper with keep_samples=True")
        self.require()
        return xr.DataArray(
            self.sampled_supports, dims=("sweep", "mu", "slot"), coords={"mu": self.ladder}
        )

    def overlap_distribution(self, other: TemperResult) -> xarray.Dataset:
        """Return P(q), the distribution of the overlap ``q = |S ∩ S'| / k``, at each rung.

        P(q) is defined for two independent replicas at one temperature. The replicas of one ladder
        exchange places, and supports of one rung at different sweeps may remember each other for
        longer than their energies do. So the second replica comes from an independent run.

        Parameters
        ----------
        other : TemperResult
            A run of the same problem with the same ``n_nonzero`` and the same ladder but another
            seed; both with ``keep_samples=True``.

        Returns
        -------
        xarray.Dataset
            ``probability`` and ``error``, its standard error from 20 blocks of sweeps, over the
            coordinates ``mu`` and ``q``.

        Examples
        --------
        >>> from l0anneal import ensembles, temper
        >>> problem = ensembles.noise_only(20, 0.5, random_state=1).problem
        >>> one, two = (
        ...     temper(problem, 4, ladder=[0.0, 1.0, 3.0], keep_samples=True, random_state=seed)
        ...     for seed in (0, 1)
        ... )
        >>> found = one.overlap_distribution(two)
        >>> mean = (found["probability"] * found["q"]).sum("q")
        >>> bool(abs(mean[0] - 4 / 20) < 0.01)  # random supports share k²/N columns on average
        True
        >>> bool(mean[-1] > 0.25)
        True
        """
        if self.sizes.size > 1 or other.sizes.size > 1 or self.support.size == 0:
            raise ValueError("overlaps need supports of one size k ≥ 1: temper with n_nonzero")
        if self.support.size != other.support.size or not np.array_equal(self.ladder, other.ladder):
            raise ValueError(
                "overlaps need two runs with the same n_nonzero and the same temperatures: give the "
                "second run ladder=result.ladder of the first"
            )
        if self.seed == other.seed:
            raise ValueError(
                f"overlaps need two independent runs; both have the seed {self.seed}: run one of "
                "them with another random_state"
            )
        first, second = self.samples.to_numpy(), other.samples.to_numpy()
        n = min(len(first), len(second))
        rungs = range(self.ladder.size)
        found = [in_pairs(first[:n, a], second[:n, a]) for a in rungs]
        return overlap_dataset(self.ladder, self.support.size, found)

    def to_arviz(self, columns: ArrayLike | None = None) -> Any:
        """Return the samples for ArviZ (``keep_samples=True``); `RunTooShort` if not reliable.

        The group ``posterior`` has ``energy``, the observables and ``inclusion`` (1 if a column is in
        the support) after each averaged sweep, over the dimensions ``chain`` (of length 1), ``draw``
        and ``mu``; it stands for the Gibbs distribution at each temperature. The group
        ``trajectory`` has the averages.

        Parameters
        ----------
        columns : array of int, optional
            The columns to export; by default all that occur in any draw.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            The latter if the version of ArviZ is below 1.
        """
        supports = self.samples.to_numpy()[None]
        chosen = columns_of(columns, supports, self.n_columns)
        values = {name: value[None] for name, value in self.sampled_values.items()}
        group = posterior(
            supports,
            values,
            chosen,
            self.feature_names,
            ("chain", "draw", "mu"),
            {"mu": self.ladder},
        )
        return arviz_data({"posterior": group, "trajectory": self.trajectory}, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        names = ("n_sweeps", "n_pilot", "n_burn_in", "survey_tau", "n_replicas", "refusals")
        own = {"ladder": self.ladder.tolist(), "best_energies": self.best_energies.tolist()}
        return super().to_dict() | own | {name: getattr(self, name) for name in names}

    def _lines(self) -> list[tuple[str, str]]:
        low = f"{self.exchange_rate.min():.2f}" if self.exchange_rate.size else "none"
        lines = [
            *super()._lines(),
            (
                "ladder",
                f"{self.ladder.size} rungs, μ = {self.ladder[0]:.3g} … {self.ladder[-1]:.3g}, "
                f"{self.n_sweeps} sweeps",
            ),
            (
                "exchanges",
                f"lowest rate {low}, barrier {self.barrier:.2f}, {self.round_trips} round trips",
            ),
            ("times", f"autocorrelation up to {self.autocorrelation.max():.3g} sweeps"),
        ]
        if self.sizes.size > 1:
            trips = f"{self.sizes[0]} … {self.sizes[-1]}, {self.size_trips} round trips"
            lines.append(("sizes", trips))
        return lines

    def _warnings(self) -> list[tuple[str, str]]:
        return [("too short", reason) for reason in self.refusals]

    def plot(self) -> Figure:
        """Draw the ladder at work: distortion, exchange rates, autocorrelation times."""
        from l0anneal.samplers.plotting import plot_tempering

        return plot_tempering(self)
