"""Make the result of replica exchange from its ladder and its averaged sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.greedy import NOT_BEGUN, greedy_order
from l0anneal.samplers.observables import Observable, observe
from l0anneal.samplers.result import fitted
from l0anneal.samplers.run import OutOfTime, Run
from l0anneal.samplers.tempering.averages import averages_of
from l0anneal.samplers.tempering.ladder import ReplicaLadder
from l0anneal.samplers.tempering.result import TemperResult

__all__ = ["LEAST_SWEEPS", "Counts", "Series", "not_begun", "package"]

LEAST_SWEEPS = 2
AVERAGES = (
    *("mean_energy", "std_energy", "energy_error", "autocorrelation"),
    *("specific_heat", "specific_heat_error"),
)
Floats = NDArray[np.float64]


@dataclass
class Counts:
    """Numbers of sweeps and replicas; with a time limit they are determined during the run."""

    n_sweeps: int
    n_pilot: int
    n_burn_in: int
    survey_tau: int
    n_replicas: int | None


@dataclass
class Series:
    """Energies, sizes, observables and supports after each averaged sweep, by rung."""

    keep_samples: bool
    observables: dict[str, Observable]
    energies: list[Floats] = field(default_factory=list)
    sizes: list[Floats] = field(default_factory=list)
    supports: list[NDArray[np.int32]] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)

    def note(self, rungs: ReplicaLadder) -> None:
        if self.observables:
            coefs = (rungs.workspaces[r].coef for r in rungs.at)
            rows = [tuple(observe(self.observables, coef).values()) for coef in coefs]
            self.values.append(np.array(rows))
        self.energies.append(rungs.energies.copy())
        self.sizes.append(np.asarray(rungs.sizes, dtype=np.float64))
        if self.keep_samples:
            self.supports.append(rungs.supports())

    @property
    def observed(self) -> dict[str, Floats]:
        """Observables by sweep and rung."""
        return {
            name: np.stack([rows[:, i] for rows in self.values])
            for i, name in enumerate(self.observables if self.values else ())
        }


def package(
    run: Run,
    rungs: ReplicaLadder,
    given: Floats | None,
    counts: Counts,
    series: Series,
    polish: bool,
) -> TemperResult:
    """Put supports, averages and the ladder's record into a result."""
    problem, unit = rungs.problem, rungs.problem.unit_energy
    n_sweeps, n_rungs = len(series.energies), rungs.mu.size
    rungs.keep_present()
    polished = rungs.best
    if polish:
        try:
            polished = [None if s is None else run.polished(problem, s) for s in rungs.best]
        except OutOfTime:
            polish = False
    supports, best_energies, coefs = _fits(problem, polished, rungs.most)
    largest = int(np.flatnonzero(np.isfinite(best_energies))[-1])
    averages: dict[str, Any] = {name: np.full(n_rungs, np.nan) for name in AVERAGES} | {
        "observed": {},
        "observed_error": {},
    }
    refusals = [f"only {n_sweeps} sweep(s) were averaged; {LEAST_SWEEPS} are needed"]
    if n_sweeps >= LEAST_SWEEPS:
        averages, refusals = averages_of(
            rungs, np.stack(series.energies), np.stack(series.sizes), series.observed
        )
    ended = "all sweeps were made" if run.time_limit is None else "time limit"
    return TemperResult(
        **fitted(problem, supports[largest][supports[largest] >= 0]),
        **run.record(ended if n_sweeps >= LEAST_SWEEPS else "time limit, before any average"),
        polished=polish,
        n_sweeps=n_sweeps,
        n_pilot=counts.n_pilot,
        n_burn_in=counts.n_burn_in,
        survey_tau=counts.survey_tau,
        n_replicas=counts.n_replicas,
        first_size=rungs.least,
        refusals=tuple(refusals),
        round_trips=rungs.round_trips,
        size_trips=rungs.size_trips,
        ladder=rungs.mu / unit if given is None else given,
        weights=rungs.weights,
        exchange_rate=rungs.exchange_rate,
        visits=rungs.visits,
        best_supports=supports,
        best_energies=best_energies,
        best_coefs=coefs,
        sampled_supports=np.stack(series.supports).astype(np.int32) if series.supports else None,
        sampled_values={"energy": np.stack(series.energies) * unit} | series.observed
        if series.supports
        else {},
        **averages,
    )


def not_begun(run: Run, problem: SparseProblem, least: int, most: int) -> TemperResult:
    """Return greedy columns of each size, because the time limit is too short for a sweep."""
    order = greedy_order(run, problem, most)
    best = [np.sort(order[:size]) for size in range(least, most + 1)]
    supports, energies, coefs = _fits(problem, best, most)
    missing = np.full(1, np.nan)
    return TemperResult(
        **fitted(problem, best[-1]),
        **run.record(NOT_BEGUN),
        polished=False,
        n_sweeps=0,
        n_pilot=0,
        n_burn_in=0,
        survey_tau=0,
        n_replicas=None,
        first_size=least,
        refusals=("the time limit was too short for a sweep",),
        round_trips=0,
        size_trips=0,
        ladder=np.zeros(1),
        weights=np.zeros((1, len(best))),
        exchange_rate=np.zeros(0),
        visits=np.zeros((1, len(best)), dtype=np.int64),
        best_supports=supports,
        best_energies=energies,
        best_coefs=coefs,
        **dict.fromkeys(AVERAGES, missing),  # type: ignore[arg-type]
    )


def _fits(
    problem: SparseProblem, best: Sequence[NDArray[np.int64] | None], most: int
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return supports, sorted and padded with −1, their energies and coefficients."""
    supports = np.full((len(best), most), -1, dtype=np.int64)
    energies = np.full(len(best), np.nan)
    coefs = np.full((len(best), problem.n_columns), np.nan)
    for i, support in enumerate(best):
        if support is None:  # a size that was never seen
            continue
        fit = fitted(problem, support)
        supports[i, : support.size], energies[i], coefs[i] = support, fit["energy"], fit["coef"]
    return supports, energies, coefs
