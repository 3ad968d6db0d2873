"""The result of simulated annealing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.counts import log_choose
from l0anneal.samplers.comparison import Comparison
from l0anneal.samplers.export import arviz_data, columns_of, posterior
from l0anneal.samplers.result import SearchResult
from l0anneal.samplers.schedule import Schedule

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["AnnealResult"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AnnealResult(SearchResult):
    """The result of an annealing.

    Attributes
    ----------
    support : ndarray of shape (k,)
        The chosen columns, sorted.
    coef : ndarray of shape (N,)
        Least-squares coefficients on the support, zero elsewhere. They come from a QR factorisation
        of the columns (or a refined Cholesky factorisation, if only the Gram matrix was given), not
        from the numbers that the run updated.
    energy, distortion : float
        ½‖y − A coef‖², and that divided by M.
    schedule, seed : Schedule, int
        The schedule that was executed and the seed. With the other arguments as before, they
        reproduce the result.
    move, n_pairs, kernels : str, int, ndarray of str
        The move and the number of pairs that were asked for, and the kernel that was used, by chain
        and temperature.
    seconds : float
        Wall-clock time.
    interrupted : bool
        True if the run was stopped before its end.
    refreshes : int
        How often the engine's stored numbers were recomputed to remove rounding errors.
    comparison : Comparison
        What the chains have in common, for `diagnose`.
    polished : bool
        Whether the run ended with a descent. It is False if there was no time for it; give it as
        ``polish`` to reproduce the result.

    See Also
    --------
    anneal : Run an annealing.
    diagnose : Decide whether to trust the result.
    overlap : Compare supports.

    Examples
    --------
    >>> from l0anneal import anneal, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = anneal(instance.problem, 6, random_state=0)
    >>> result.support.size, result.distortion < 1e-12
    (6, True)
    """

    schedule: Schedule
    comparison: Comparison
    general_position: bool  # no support was excluded because its columns are dependent
    refreshes: int
    # by chain and temperature: means over the sweeps, in the caller's units; NaN where not run
    mean_energy: Floats
    std_energy: Floats
    acceptance: Floats
    observed: dict[str, Floats] = field(default_factory=dict)
    kernels: NDArray[np.str_] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.str_))
    move: str = "pair flip"
    n_pairs: int = 2
    polished: bool = True
    # by chain and sweep
    sampled_supports: NDArray[np.int32] | None = None
    sampled_values: dict[str, Floats] = field(default_factory=dict)  # energy and observables

    @cached_property
    def trajectory(self) -> xarray.Dataset:
        """What happened at each inverse temperature, averaged over the chains.

        Variables over the coordinate ``mu``: ``temperature``, ``distortion`` and ``distortion_std``
        (mean and standard deviation over the sweeps at that temperature), ``acceptance``, and, per
        column, ``free_entropy`` g = log G / N and ``entropy`` s = g + μ⟨E⟩/N by thermodynamic
        integration from μ = 0, where log G is the log of the number of supports, C(N, k) for a
        dictionary in general position. The last two are NaN if the schedule does not begin there,
        from where it first heats, and if the dictionary has zero columns or pairs of parallel ones.
        """
        import xarray as xr

        mu = np.array(self.schedule.mu)
        energy = _mean_over_chains(self.mean_energy)
        free_entropy = self._free_entropy(mu, energy)
        with np.errstate(divide="ignore"):
            temperature = 1.0 / mu
        variables = {
            "temperature": temperature,
            "distortion": energy / self.n_samples,
            "distortion_std": np.sqrt(_mean_over_chains(self.std_energy**2)) / self.n_samples,
            "acceptance": _mean_over_chains(self.acceptance),
            "free_entropy": free_entropy,
            "entropy": free_entropy + mu * energy / self.n_columns,
        } | {name: _mean_over_chains(values) for name, values in self.observed.items()}
        return xr.Dataset(
            {name: ("mu", values) for name, values in variables.items()},
            coords={"mu": mu, "sweeps": ("mu", np.array(self.schedule.tau))},
            attrs={
                "n_samples": self.n_samples,
                "n_columns": self.n_columns,
                "seed": str(self.seed),
            },
        )

    @cached_property
    def chains(self) -> xarray.Dataset:
        """``energy``, ``support`` and run of each chain; whether it ``agrees`` with the best."""
        import xarray as xr

        by_mu = {
            "distortion": self.mean_energy / self.n_samples,
            "distortion_std": self.std_energy / self.n_samples,
            "acceptance": self.acceptance,
        } | self.observed
        return xr.Dataset(
            {
                "energy": ("chain", self.chain_energies),
                "support": (("chain", "slot"), self.chain_supports),
                "kernel": (("chain", "mu"), self.kernels),
                "agrees": ("chain", np.all(self.chain_supports == self.support, axis=1)),
            }
            | {name: (("chain", "mu"), values) for name, values in by_mu.items()},
            coords={"mu": np.array(self.schedule.mu)},
            attrs={"n_agree": self.n_agree},
        )

    @cached_property
    def samples(self) -> xarray.DataArray:
        """Supports after every sweep, sorted, at every temperature (``keep_samples=True``).

        Dimensions ``chain``, ``sweep`` and ``slot``; the coordinate ``mu`` tells each sweep's
        temperature. After an interruption, sweeps that were not run hold −1.
        """
        import xarray as xr

        if self.sampled_supports is None:
            raise ValueError("no samples were kept: anneal with keep_samples=True")
        mu = np.repeat(self.schedule.mu, self.schedule.tau)
        return xr.DataArray(
            self.sampled_supports, dims=("chain", "sweep", "slot"), coords={"mu": ("sweep", mu)}
        )

    def to_arviz(self, columns: ArrayLike | None = None) -> Any:
        """Return the chains for ArviZ: how each went, and their samples with ``keep_samples``.

        The group ``trajectory`` has `chains`, over ``chain`` and ``mu``. If samples were kept, the group
        ``posterior`` has ``energy``, the observables and ``inclusion`` (1 if a column is in the support)
        after each sweep at the last temperature, over ``chain`` and ``draw``. The sweeps before, at
        other temperatures, are in ``warmup_posterior``, where the coordinate ``mu`` belongs to each
        draw.

        Parameters
        ----------
        columns : array of int, optional
            The columns to export; by default all that occur in any draw.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            The latter if the version of ArviZ is below 1.
        """
        groups = {"trajectory": self.chains}
        if self.sampled_supports is not None:
            groups |= self._sampled_groups(self.sampled_supports, columns)
        return arviz_data(groups, self.seed)

    def _sampled_groups(
        self, supports: NDArray[np.int32], columns: ArrayLike | None
    ) -> dict[str, xarray.Dataset]:
        """Return the samples at the last temperature, and those before; sweeps that all chains ran."""
        ran = np.all(np.isfinite(self.sampled_values["energy"]), axis=0)
        mu = np.repeat(self.schedule.mu, self.schedule.tau)
        last = np.arange(mu.size) >= mu.size - self.schedule.tau[-1]
        chosen = columns_of(columns, supports, self.n_columns)
        return {
            name: posterior(
                supports[:, sweeps],
                {key: value[:, sweeps] for key, value in self.sampled_values.items()},
                chosen,
                self.feature_names,
                coords={"mu": ("draw", mu[sweeps])},
            )
            for name, sweeps in (("posterior", ran & last), ("warmup_posterior", ran & ~last))
            if sweeps.any()
        }

    def _free_entropy(self, mu: Floats, energy: Floats) -> Floats:
        """(1/N) log G(μ) = (1/N) [log C(N, k) − ∫₀^μ ⟨E⟩ dμ']."""
        from scipy.interpolate import PchipInterpolator

        n, k = self.n_columns, self.support.size
        # the integral is not a function of state once a heated branch differs from the cooled one
        run = np.isfinite(energy) & (np.cumsum(np.diff(mu, prepend=mu[0]) < 0) == 0)
        steps = np.flatnonzero(run & np.append(True, np.diff(mu) > 0))
        # if μ₁ is not 0, the integral up to it is about μ₁⟨E⟩, which must be small to be accurate
        # enough
        if not self.general_position or steps.size == 0 or mu[0] * energy[0] > 1e-3:
            return np.full(mu.size, np.nan)
        integral = mu[0] * energy[0] + np.zeros(mu.size)
        if steps.size > 1:
            integral = integral + PchipInterpolator(mu[steps], energy[steps]).antiderivative()(mu)
        count = log_choose(n, k)
        return np.where(run, (count - integral) / n, np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        return super().to_dict() | {"move": self.move, "schedule": self.schedule.to_dict()}

    def _lines(self) -> list[tuple[str, str]]:
        return [*super()._lines(), ("schedule", str(self.schedule))]

    def plot(self) -> Figure:
        """Draw the run: distortion, acceptance and entropy against temperature."""
        from l0anneal.samplers.plotting import plot_anneal

        return plot_anneal(self)


def _mean_over_chains(values: Floats) -> Floats:
    """Mean over the chains that got to each temperature; NaN where none did."""
    there = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.sum(np.where(there, values, 0.0), axis=0) / np.sum(there, axis=0)
