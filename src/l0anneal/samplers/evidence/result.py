"""The result of evidence annealing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal.samplers.evidence.draws import ENOUGH, WEIGHTY, CredibleSet, Draws, find_sets
from l0anneal.samplers.export import arviz_data, columns_of, posterior, stacked_by_chain
from l0anneal.samplers.result import Result

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["EvidenceResult", "EvidenceSchedule"]

_COLUMNS = ("temperature", "size", "residual_ratio", "rho", "slab_variance", "acceptance")
_STATES = {
    "found": "the residual vanishes with fewer columns than samples: an exact representation",
    "noise": "cooled to the noise level; all chains agree there",
    "disagreed": "the chains found different supports: the probabilities are uncertain",
    "begun": "stopped before the first draw: there are no probabilities",
    "trapped": "no exact representation and no clear noise level: do not trust the columns",
}
SETS = 4  # credible sets that a summary shows
FEW = 5  # samples beside the intercept below which no search can confirm a noise level
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
    sampling : tuple of int
        Draws from the posterior that were counted, by chain.
    messages : int
        Steps of message passing before the first attempt.
    in_rounds : bool
        Whether the number of draws was found on the way, in rounds, and not given.

    See Also
    --------
    evidence_anneal : Takes a schedule to replay a run.
    EvidenceResult : Has the schedule that was executed.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem, evidence_anneal
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 100))
    >>> y = A[:, [5, 50]] @ [2.0, -1.0] + 0.3 * rng.standard_normal(60)
    >>> result = evidence_anneal(SparseProblem(A, y), random_state=0)
    >>> again = evidence_anneal(SparseProblem(A, y), schedule=result.schedule, random_state=0)
    >>> bool((again.inclusion_probability == result.inclusion_probability).all())
    True
    """

    tau: tuple[int, ...]
    sweeps: tuple[int, ...]
    settling: tuple[int, ...]
    sampling: tuple[int, ...]
    messages: int = 0
    in_rounds: bool = True

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
        correlated columns (``|r| > ½``) of which at least one is chosen with a probability above one
        half, the likeliest column. At a fixed size, the most probable columns. If an exact
        representation was found, its columns.
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
        The noise variance and the prior probability of a column, as inferred or as given. ρ is NaN
        if each column was given its own.
    state : {"found", "noise", "disagreed", "trapped", "begun"}
        found: an exact representation, which is not to be had by chance. noise: the chains agree on
        a noise level and on the columns. disagreed: they do not agree on the probability of a column,
        on the number of columns or on the evidence, and the probabilities are a compromise; where the
        columns differ, the chains are weighed by their evidence. trapped: slower searches keep finding a
        lower noise level with many columns; do not trust any. begun: the run was stopped before the
        first draw, and the probabilities are NaN.
    chain_probability : ndarray of shape (chains, N)
        Inclusion probabilities of each chain by itself.
    chain_weight : ndarray
        Weights of the chains: equal if they agree, and by evidence if not.
    chain_size, chain_log_evidence : ndarrays
        Mean number of columns of each chain, and the mean of log P(y, S) over its draws, up to a
        constant that the chains share.
    disagreement : float
        The largest difference between two chains in the probability of a column.
    draws : Draws or None
        Joint draws of supports, coefficients and hyperparameters; None if an exact representation was
        found.
    schedule, seed : EvidenceSchedule, int
        The steps that were made and the seed; passed to `evidence_anneal`, they reproduce the
        result.
    seconds, interrupted, ended
        Wall-clock time, whether the user stopped the run, and why it ended.

    See Also
    --------
    evidence_anneal : Sample from the posterior.
    CredibleSet : Columns of which at least one belongs.
    Draws : Draws from the posterior.
    diagnose : Decide whether to trust the result.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem, evidence_anneal
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 100))
    >>> y = A[:, [5, 50]] @ [2.0, -1.0] + 0.3 * rng.standard_normal(60)
    >>> result = evidence_anneal(SparseProblem(A, y), random_state=0)
    >>> result.state, result.support
    ('noise', array([ 5, 50]))
    >>> result.inclusion_probability[[5, 50]].round(2)
    array([1., 1.])
    >>> int(result.size_posterior.argmax())
    2
    """

    state: str
    inclusion_probability: Floats
    size_posterior: Floats
    averaged_coef: Floats
    coef_std: Floats
    noise_variance: float
    rho: float
    chain_probability: Floats
    chain_weight: Floats
    chain_size: Floats
    chain_log_evidence: Floats
    effective_sample_size: float
    draw_arrays: dict[str, NDArray[Any]]
    candidates: NDArray[np.int64]
    candidate_correlation: Floats
    log: Floats
    schedule: EvidenceSchedule

    @property
    def disagreement(self) -> float:
        """The largest difference between two chains in the probability of a column."""
        counted = self.chain_probability[self.chain_weight > WEIGHTY]
        return float(np.max(np.ptp(counted, axis=0), initial=0.0)) if counted.size else 0.0

    @property
    def has_few_samples(self) -> bool:
        """Whether the samples are too few for any search, however long, to confirm a noise level."""
        return self.n_samples < FEW

    @cached_property
    def draws(self) -> Draws | None:
        """Joint draws of supports, coefficients and hyperparameters."""
        if not self.draw_arrays:
            return None
        return Draws(**self.draw_arrays, effective_sample_size=self.effective_sample_size)

    def to_arviz(self, columns: ArrayLike | None = None) -> Any:
        """Return the draws from the posterior for ArviZ.

        The group ``posterior`` has ``inclusion`` (1 if a column is in the support), ``coef``, ``size``,
        ``noise_variance``, ``rho`` and ``signal_to_noise`` over ``chain`` and ``draw``. If the chains
        have different numbers of draws, each has its last ones, as many as the shortest. The group
        ``sample_stats`` has the ``weight`` of each draw; ArviZ does not use it, and it differs
        between the chains if the state is "disagreed".

        Parameters
        ----------
        columns : array of int, optional
            The columns to export; by default all that occur in any draw.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            The latter if the version of ArviZ is below 1.
        """
        draws = self.draws
        if draws is None:
            raise ValueError(f"there are no draws to export: the state is {self.state}")
        chosen = columns_of(columns, draws.columns, self.n_columns)
        supports, coef = draws.dense(chosen)
        order = stacked_by_chain(draws.chain)
        values = {
            "size": np.diff(draws.start)[order],
            "noise_variance": draws.noise_variance[order],
            "rho": draws.rho[order],
            "signal_to_noise": draws.signal_to_noise[order],
        }
        group = posterior(supports[order], values, chosen, self.feature_names)
        group = group.assign(coef=(("chain", "draw", "column"), coef[order]))
        stats = group[["chain", "draw"]].assign(weight=(("chain", "draw"), draws.weight[order]))
        return arviz_data({"posterior": group, "sample_stats": stats}, self.seed)

    def credible_sets(self, coverage: float = 0.95, min_purity: float = 0.5) -> list[CredibleSet]:
        """Return disjoint sets of columns, each with at least one member in the support.

        If columns are correlated, the data may show that one of them belongs to the support without
        showing which one. Then a set of columns is the honest answer.

        Parameters
        ----------
        coverage : float
            Least posterior probability that at least one member belongs to the support.
        min_purity : float
            Least absolute correlation between two members of a set.

        Returns
        -------
        list of CredibleSet
            The set with the likeliest column first.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import SparseProblem, evidence_anneal
        >>> rng = np.random.default_rng(0)
        >>> A = rng.standard_normal((100, 60))
        >>> A[:, 1] = A[:, 0] + 0.05 * rng.standard_normal(100)  # a near copy
        >>> y = A[:, 0] + A[:, 30] + rng.standard_normal(100)
        >>> result = evidence_anneal(SparseProblem(A, y), random_state=0)
        >>> [sorted(found.columns.tolist()) for found in result.credible_sets()]
        [[30], [0, 1]]
        """
        for name, value in (("coverage", coverage), ("min_purity", min_purity)):
            if not 0.0 < value <= 1.0:
                raise ValueError(f"{name} must be above 0 and at most 1; got {value}")
        if self.draws is None and self.state == "found":
            return self._exact_sets()
        if self.draws is None or self.state in ("disagreed", "trapped"):
            why = "there are no draws yet" if self.draws is None else f"the state is {self.state}"
            raise ValueError(
                f"credible sets need draws from the posterior on which all chains agree; {why}: give "
                "evidence_anneal more time, or what you know (noise_variance, rho)"
            )
        self.draws.check("credible sets")
        found = find_sets(
            self.draws,
            self.candidates,
            self.inclusion_probability[self.candidates],
            self.candidate_correlation,
            coverage,
            min_purity,
        )
        if self.feature_names is None:
            return found
        return [replace(one, names=tuple(self.name(j) for j in one.columns)) for one in found]

    def _exact_sets(self) -> list[CredibleSet]:
        """Return the columns of an exact representation, each with those that are equal to it."""
        sets, p = [], self.inclusion_probability[self.candidates]
        for j in self.support:
            row = self.candidate_correlation[int(np.flatnonzero(self.candidates == j)[0])]
            equal = np.abs(row) > 1.0 - 1e-6
            sets.append(CredibleSet(self.candidates[equal], 1.0, 1.0, p[equal]))
        return sets

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
            "disagreement": self.disagreement,
            "chain_size": self.chain_size.tolist(),
            "chain_log_evidence": self.chain_log_evidence.tolist(),
            "credible_sets": [
                {"columns": found.columns.tolist(), "probability": found.probability}
                for found in self.likely_sets()
            ],
            "schedule": self.schedule.to_dict(),
        }

    def plot(self) -> Figure:
        """Draw the posterior: probabilities of the columns, their number, and the cooling."""
        from l0anneal.samplers.plotting import plot_evidence

        return plot_evidence(self)

    def figure(self) -> Figure | None:
        """Return a small picture of the probabilities."""
        from l0anneal.samplers.plotting import plot_bars

        p = self.inclusion_probability
        likely = np.argsort(-p, kind="stable")[: max(10, min(20, self.support.size))]
        likely = likely[p[likely] > 0.01]
        if likely.size == 0:
            return None
        return plot_bars([self.name(j) for j in likely], p[likely], "probability", (0.0, 1.0))

    def likely_sets(self) -> list[CredibleSet]:
        """Return the credible sets, or none if there are too few draws to tell."""
        sure = self.state in ("found", "noise") and self.effective_sample_size >= ENOUGH
        return self.credible_sets() if sure else []

    def _lines(self) -> list[tuple[str, str]]:
        order = np.argsort(-self.inclusion_probability, kind="stable")
        p = self.inclusion_probability
        shown = ", ".join(f"{self.name(j)} ({p[j]:.2f})" for j in order[:6])
        sizes = np.arange(self.size_posterior.size)
        mean = float(sizes @ self.size_posterior)
        std = math.sqrt(max(0.0, float(sizes**2 @ self.size_posterior) - mean**2))
        attempts = f"{self.attempts} attempt(s)" if self.attempts else "by message passing"
        if not self.attempts and self.state != "found":
            attempts = "none: there was no time"
        sets = [("set", str(one)) for one in self.likely_sets() if one.columns.size > 1]
        if len(sets) > SETS:
            sets[SETS:] = [("", f"and {len(sets) - SETS} more sets: credible_sets()")]
        return [
            ("support", f"{self.support.size} columns"),
            ("most likely", shown),
            ("size", f"{mean:.1f} ± {std:.1f}"),
            ("distortion", f"{self.distortion:.6g}"),
            ("noise", f"variance {self.noise_variance:.6g}"),
            ("state", f"{self.state}: {_STATES[self.state]}"),
            *self._differences(),
            ("search", attempts),
            *sets,
        ]

    def _differences(self) -> list[tuple[str, str]]:
        """Return a line on how far apart the chains are, if they disagree."""
        if self.state != "disagreed":
            return []
        heavy = self.chain_weight > WEIGHTY
        sizes = ", ".join(f"{size:.1f}" for size in self.chain_size[heavy])
        logs = np.ptp(self.chain_log_evidence[heavy])
        text = (
            f"probabilities by {self.disagreement:.2f}, log evidence by {logs:.1f}; sizes {sizes}"
        )
        return [("chains differ", text)]

    def table(self) -> list[dict[str, str]]:
        p = self.inclusion_probability
        likely = np.argsort(-p, kind="stable")[: max(10, min(20, self.support.size))]
        return [
            {
                "column": self.name(j),
                "probability": f"{p[j]:.2f}",
                "coefficient": f"{self.coef[j]:.4g}" if self.coef[j] else "–",
                "its average": f"{self.averaged_coef[j]:.4g}",
                "± std": f"{self.coef_std[j]:.2g}",
            }
            for j in likely[p[likely] > 0.01]
        ]
