"""Averages over the sweeps of a replica exchange, and reasons not to trust them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.samplers.autocorrelation import autocorrelation_time
from l0anneal.samplers.blocks import block_error
from l0anneal.samplers.tempering.ladder import ReplicaLadder

__all__ = ["averages_of"]

Floats = NDArray[np.float64]

# a run is too short with fewer than TRIPS round trips, fewer than TIMES autocorrelation times, or
# halves that differ by more than SIGMAS standard errors
TRIPS = 20
TIMES = 100
SIGMAS = 5.0


def averages_of(
    rungs: ReplicaLadder, energies: Floats, held: Floats, observed: dict[str, Floats]
) -> tuple[dict[str, Any], list[str]]:
    """Return the averages by rung, in the caller's units, and reasons not to trust them.

    ``energies``, sizes ``held`` and ``observed`` are by sweep and rung.
    """
    n_sweeps, n_rungs = energies.shape
    unit = rungs.problem.unit_energy
    times = np.array(
        [
            max(autocorrelation_time(energies[:, a]), autocorrelation_time(held[:, a]))
            for a in range(n_rungs)
        ]
    )
    chances = [_reweighted(rungs, a, energies, held) for a in range(1, n_rungs)]

    def error_of(values: Floats, times: Floats) -> Floats:
        return _robust_spread(values, chances) * np.sqrt(np.maximum(times, 1.0) / n_sweeps)

    def times_of(values: Floats) -> Floats:
        return np.maximum(times, [autocorrelation_time(column) for column in values.T])

    scale = rungs.mu**2 / rungs.problem.n_samples
    averages = {
        "mean_energy": energies.mean(axis=0) * unit,
        "std_energy": energies.std(axis=0, ddof=1) * unit,
        "energy_error": error_of(energies, times) * unit,
        "autocorrelation": times,
        "specific_heat": scale * energies.var(axis=0, ddof=1),
        "specific_heat_error": scale * block_error(energies, lambda e: np.var(e, axis=0)),
        "observed": {name: values.mean(axis=0) for name, values in observed.items()},
        "observed_error": {
            name: error_of(values, times_of(values)) for name, values in observed.items()
        },
    }
    return averages, _refusals(rungs, energies, held, times)


def _reweighted(rungs: ReplicaLadder, a: int, energies: Floats, held: Floats) -> Floats:
    """Return the probabilities that the sweeps of rung a − 1 have at rung a."""
    e, k = energies[:, a - 1], held[:, a - 1].astype(np.int64) - rungs.least
    logs = rungs.weights[a, k] - rungs.weights[a - 1, k]
    logs -= (rungs.mu[a] - rungs.mu[a - 1]) * e
    chance = np.exp(logs - logs.max())
    return np.asarray(chance / chance.sum())


def _robust_spread(values: Floats, chances: list[Floats]) -> Floats:
    """Return the standard deviation, or that of the hotter rung reweighted, if larger.

    Otherwise a cold rung that has seen one support only would claim to have no error at all.
    """
    spread = values.std(axis=0, ddof=1)
    for a, chance in enumerate(chances, start=1):
        hotter = values[:, a - 1]
        variance = float(chance @ (hotter - chance @ hotter) ** 2)
        spread[a] = max(spread[a], math.sqrt(max(0.0, variance)))
    return np.asarray(spread)


def _refusals(rungs: ReplicaLadder, energies: Floats, held: Floats, times: Floats) -> list[str]:
    """Return the reasons why the run was too short; none if it was not."""
    n_sweeps, n_rungs = energies.shape
    reasons = []
    rates = rungs.exchange_rate
    if n_rungs > 1 and rates.min() < 0.01:
        reasons.append(
            f"rungs {int(rates.argmin())} and {int(rates.argmin()) + 1} hardly exchange "
            f"(rate {rates.min():.1g}): more replicas are needed"
        )
    if n_rungs > 1 and rungs.round_trips < TRIPS:
        reasons.append(
            f"{rungs.round_trips} round trips from hot to cold and back; {TRIPS} are needed"
        )
    if times.max() * TIMES > n_sweeps:
        reasons.append(
            f"the autocorrelation time is {times.max():.3g} sweeps at rung {int(times.argmax())}; "
            f"{n_sweeps} sweeps are less than {TIMES} of them"
        )
    if rungs.n_sizes > 1:
        missed = np.flatnonzero(np.any(rungs.visits == 0, axis=0)) + rungs.least
        if missed.size:
            reasons.append(f"not all sizes were visited at all rungs: {missed.tolist()}")
        if rungs.size_trips < TRIPS:
            reasons.append(f"{rungs.size_trips} round trips through all sizes; {TRIPS} are needed")
    half = n_sweeps // 2
    for name, series in (("energies", energies), ("sizes", held)):
        gap = np.abs(series[:half].mean(axis=0) - series[half:].mean(axis=0))
        error = series.std(axis=0) * np.sqrt(4.0 * np.maximum(times, 1.0) / n_sweeps)
        scale = 1e-9 * (1.0 + np.abs(series).max())  # rounding does not count
        if np.any(gap > SIGMAS * error + scale):
            reasons.append(f"{name} of the first half and of the second differ: still relaxing")
    return reasons
