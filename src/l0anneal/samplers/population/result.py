"""The result of population annealing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal.samplers.export import arviz_data, columns_of, posterior
from l0anneal.samplers.overlap import across_families, overlap_dataset
from l0anneal.samplers.result import Result
from l0anneal.samplers.schedule import Schedule

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["PopulationResult"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PopulationResult(Result):
    """The result of a population annealing.

    Attributes
    ----------
    support : ndarray of shape (k,)
        The best support seen after the sweeps at any temperature, sorted. If ``polish`` was set, it
        is the swap-local minimum below that support.
    coef : ndarray of shape (N,)
        Least-squares coefficients on the support, zero elsewhere; from a QR factorisation.
    energy, distortion : float
        ½‖y − A coef‖², and that divided by M.
    schedule, seed : Schedule, int
        The schedule that was executed and the seed. With the same population they reproduce the
        result.
    seconds : float
        Wall-clock time.
    last_supports, last_energies : ndarrays of shapes (R, k) and (R,)
        The population at the last temperature: samples from the Gibbs distribution at this
        temperature.
    family : ndarray of shape (R,)
        First ancestor of each replica of the last population. Relatives are not independent.
    polished : bool
        Whether the run ended with a descent. It is False if there was no time for it; give it as
        ``polish`` to reproduce the result.

    See Also
    --------
    population_anneal : Run a population annealing.
    overlap : Compare supports.

    Examples
    --------
    >>> from l0anneal import ensembles, population_anneal
    >>> instance = ensembles.noise_only(20, 0.5, random_state=1)
    >>> result = population_anneal(instance.problem, 4, population=200, random_state=0)
    >>> result.last_supports.shape
    (200, 4)
    """

    schedule: Schedule
    # by temperature, in the caller's units; see `trajectory`
    mean_energy: Floats
    std_energy: Floats
    energy_error: Floats
    log_g: Floats
    log_g_error: Floats
    entropy_error: Floats
    integrated_log_g: Floats
    integrated_log_g_error: Floats
    acceptance: Floats
    ess: Floats
    n_families: Floats
    rho_t: Floats
    # by replica
    family: NDArray[np.int64]
    last_supports: NDArray[np.int32]
    last_energies: Floats
    sampled_supports: NDArray[np.int32] | None = None
    polished: bool = True
    # by temperature
    specific_heat: Floats | None = None
    specific_heat_error: Floats | None = None
    observed: dict[str, Floats] = field(default_factory=dict)
    observed_error: dict[str, Floats] = field(default_factory=dict)
    # by temperature and replica, if samples were kept
    sampled_families: NDArray[np.int64] | None = None
    sampled_values: dict[str, Floats] = field(default_factory=dict)

    @property
    def population(self) -> int:
        """R, the number of replicas."""
        return self.family.size

    @cached_property
    def trajectory(self) -> xarray.Dataset:
        """The run against inverse temperature.

        Variables over the coordinate ``mu``; an ``_error`` is one standard deviation, estimated
        from families:

        - ``temperature``; ``acceptance``; ``ess``, the effective fraction of the population in the
          step that led here; ``families``, how many are left; ``rho_t``, their mean square size
        - ``distortion`` and ``distortion_error``: mean over replicas and sweeps;
          ``distortion_std``: spread over replicas
        - ``free_entropy`` g = log Ĝ / N, its ``free_entropy_error``, and ``free_entropy_bias``,
          which is minus half the variance of log Ĝ, divided by N: subtract it to correct g
        - ``entropy`` s = g + μ⟨E⟩/N and ``entropy_error``
        - ``free_entropy_integrated`` and its error: the same g by thermodynamic integration
          of the mean energy, which does not have this bias but has other errors
        - ``specific_heat`` M μ² var ε = μ² var E / M, with ε the distortion, and its error
        - each observable: its mean over the replicas after the last sweep, and an ``_error``
        """
        import xarray as xr

        mu, n = np.array(self.schedule.mu), self.n_columns
        with np.errstate(divide="ignore"):
            temperature = 1.0 / mu
        variables = {
            "temperature": temperature,
            "distortion": self.mean_energy / self.n_samples,
            "distortion_error": self.energy_error / self.n_samples,
            "distortion_std": self.std_energy / self.n_samples,
            "free_entropy": self.log_g / n,
            "free_entropy_error": self.log_g_error / n,
            "free_entropy_bias": -0.5 * self.log_g_error**2 / n,
            "entropy": (self.log_g + mu * self.mean_energy) / n,
            "entropy_error": self.entropy_error / n,
            "free_entropy_integrated": self.integrated_log_g / n,
            "free_entropy_integrated_error": self.integrated_log_g_error / n,
            "acceptance": self.acceptance,
            "ess": self.ess,
            "families": self.n_families.astype(np.int64),
            "rho_t": self.rho_t,
        }
        variables |= self.observed
        variables |= {f"{name}_error": error for name, error in self.observed_error.items()}
        if self.specific_heat is not None and self.specific_heat_error is not None:
            variables["specific_heat"] = self.specific_heat
            variables["specific_heat_error"] = self.specific_heat_error
        return xr.Dataset(
            {name: ("mu", values) for name, values in variables.items()},
            coords={"mu": mu, "sweeps": ("mu", np.array(self.schedule.tau))},
            attrs={
                "n_samples": self.n_samples,
                "n_columns": self.n_columns,
                "population": self.population,
                "seed": str(self.seed),
            },
        )

    @cached_property
    def samples(self) -> xarray.DataArray:
        """The population at every temperature (``keep_samples=True``).

        Dimensions ``mu``, ``replica`` and ``slot``.
        """
        import xarray as xr

        if self.sampled_supports is None:
            raise ValueError("no samples were kept: population_anneal with keep_samples=True")
        return xr.DataArray(
            self.sampled_supports,
            dims=("mu", "replica", "slot"),
            coords={"mu": np.array(self.schedule.mu)},
        )

    def overlap_distribution(self) -> xarray.Dataset:
        """Return P(q), the distribution of the overlap ``q = |S ∩ S'| / k`` of two replicas.

        The pairs are all pairs of replicas from different families, because relatives are not
        independent; of a population of more than 1000, every n-th replica is compared.

        Returns
        -------
        xarray.Dataset
            ``probability`` and ``error``, its standard error from leaving out groups of families,
            over the coordinates ``mu`` and ``q``: at all temperatures if ``keep_samples`` was set,
            and otherwise at the last one. As all errors of a population, it needs many families
            (`trusted`).

        Examples
        --------
        >>> from l0anneal import ensembles, population_anneal
        >>> problem = ensembles.noise_only(20, 0.5, random_state=1).problem
        >>> result = population_anneal(problem, 4, mu_max=5.0, keep_samples=True, random_state=0)
        >>> found = result.overlap_distribution()
        >>> mean = (found["probability"] * found["q"]).sum("q")
        >>> bool(abs(mean[0] - 4 / 20) < 0.01)  # random supports share k²/N columns on average
        True
        >>> bool(mean[-1] > 0.4)
        True
        """
        k = self.support.size
        if k == 0:
            raise ValueError("overlaps need supports of at least one column; n_nonzero was 0")
        mu = np.array(self.schedule.mu)
        if self.sampled_supports is None or self.sampled_families is None:
            found = [across_families(self.last_supports, self.family)]
            return overlap_dataset(mu[-1:], k, found)
        found = list(map(across_families, self.sampled_supports, self.sampled_families))
        return overlap_dataset(mu, k, found)

    def to_arviz(self, columns: ArrayLike | None = None) -> Any:
        """Return the population for ArviZ: at every temperature with ``keep_samples``, or the last.

        The group ``posterior`` has ``energy``, the observables and ``inclusion`` (1 if a column is in
        the support) of each replica, over the dimensions ``chain`` (of length 1), ``draw`` and
        ``mu``; it stands for the Gibbs distribution at each temperature. The group ``sample_stats``
        has each replica's ``family``: relatives are not independent, and errors that ArviZ computes
        from the order of the draws do not know that. The group ``trajectory`` has the averages.

        Parameters
        ----------
        columns : array of int, optional
            The columns to export; by default all that occur in any draw.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            The latter if the version of ArviZ is below 1.
        """
        supports, families, mu = self.sampled_supports, self.sampled_families, self.schedule.mu
        values = self.sampled_values
        if supports is None or families is None:
            supports, families, mu = self.last_supports[None], self.family[None], mu[-1:]
            values = {"energy": self.last_energies[None]}
        chosen = columns_of(columns, supports, self.n_columns)
        dims = ("chain", "draw", "mu")
        group = posterior(
            supports.swapaxes(0, 1)[None],
            {name: value.T[None] for name, value in values.items()},
            chosen,
            self.feature_names,
            dims,
            {"mu": np.array(mu)},
        )
        stats = group[["mu"]].assign(family=(dims, families.T[None]))
        groups = {"posterior": group, "sample_stats": stats, "trajectory": self.trajectory}
        return arviz_data(groups, self.seed)

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """Whether the population had enough families for its errors to be reliable, by temperature.

        This is the case if ρ_t ≤ R/20, that is, if the families are worth at least twenty of equal
        size.
        """
        return 20.0 * self.rho_t <= self.population

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        own = {"population": self.population, "log_g": float(self.log_g[-1])}
        return super().to_dict() | own | {"schedule": self.schedule.to_dict()}

    def _lines(self) -> list[tuple[str, str]]:
        error, bias = float(self.log_g_error[-1]), -0.5 * float(self.log_g_error[-1]) ** 2
        return [
            *super()._lines(),
            (
                "log G",
                f"{self.log_g[-1]:.6g} ± {error:.2g} at μ = {self.schedule.mu[-1]:.4g}, "
                f"bias {bias:.2g}",
            ),
            (
                "population",
                f"{self.population} replicas, {int(self.n_families[-1])} families left, "
                f"ρ_t = {self.rho_t[-1]:.3g}",
            ),
            ("schedule", str(self.schedule)),
        ]

    def _warnings(self) -> list[tuple[str, str]]:
        if self.trusted.all():
            return []
        mu = self.schedule.mu[int(np.argmin(self.trusted))]
        return [
            ("beware", f"from μ = {mu:.4g} on few families make up the population: the errors"),
            ("", "are too small; use a larger population or more sweeps"),
        ]

    def plot(self) -> Figure:
        """Draw the run: distortion, entropy and families against temperature."""
        from l0anneal.samplers.plotting import plot_population

        return plot_population(self)
