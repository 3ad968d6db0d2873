"""Solvers of the experiments that go beyond the paper: equilibrium, searches, populations.

Arrays over temperatures have the name ``mu`` of their inverse temperatures beside them, and those of
two axes have the temperatures first. All sizes of a sweep return arrays of the same shapes.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.seeds import stream_of
from l0anneal.engine.warm_up import tiny_problem
from l0anneal.problem.ensembles import Instance
from l0anneal.samplers.evidence.anneal import evidence_anneal
from l0anneal.samplers.kicks.search import kick_search
from l0anneal.samplers.overlap import overlap
from l0anneal.samplers.population.anneal import population_anneal
from l0anneal.samplers.schedule import Schedule
from l0anneal.samplers.tempering.result import TemperResult
from l0anneal.samplers.tempering.temper import temper

__all__ = ["MSE_EDGES", "enumerated", "evidenced", "get_ready", "kicked", "populated", "tempered"]

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[np.generic]]

#: The edges of the histogram of mean squared errors; the first and the last bin are open.
MSE_EDGES = 10.0 ** np.linspace(-6.0, 1.0, 29)

_BATCH = 50_000  # supports that are enumerated at a time


@cache
def get_ready(kind: str) -> None:
    """Compile what a solver of this module needs, to keep it out of the measured time."""
    problem = tiny_problem()
    if kind == "temper":
        temper(problem, 2, ladder=[0.0, 1.0], n_sweeps=2, random_state=0)
    elif kind == "kicks":
        kick_search(problem, 2, n_kicks=1, random_state=0)
    elif kind == "evidence":
        evidence_anneal(problem, n_draws=2, max_attempts=1, random_state=0)
    elif kind == "population":
        population_anneal(problem, 2, population=2, mu_max=1.0, random_state=0)


# ---------------------------------------------------------------- equilibrium


def tempered(
    instance: Instance,
    seed: int,
    rho: float,
    t_max: float,
    t_min: float,
    n: int,
    sweeps_per_square: float,
    levels: int,
) -> Arrays:
    """Sample a planted instance by two independent replica exchanges, and compare them.

    Each run averages over ``sweeps_per_square`` times N² sweeps, after as many that are discarded.
    All replicas of the first run start at random supports, those of the second at the planted one with
    random columns up to k. Names that end with ``_truth`` are of the second run. ``overlap`` is the
    distribution of the number of columns that the supports of both runs share at equal temperature,
    0 … k, padded with NaN to 0 … ``levels``; ``mse_histogram`` is that of the mean squared error, of
    both runs.
    """
    k = instance.size(rho)
    if k > levels:
        raise ValueError(f"levels must be at least k = {k}; got {levels}")
    mu = 1.0 / np.geomspace(t_max, t_min, n)
    n_sweeps = round(sweeps_per_square * instance.truth.size**2)
    first, second = (
        temper(
            instance.problem,
            k,
            ladder=mu,
            n_sweeps=n_sweeps,
            n_pilot=1,  # there is nothing to learn with a given ladder and one size
            n_burn_in=n_sweeps,
            polish=False,
            initial_support=start,
            keep_samples=True,
            observables={"mse": instance.mse},
            random_state=stream_of(seed, "tempered", index),
        )
        for index, start in enumerate((None, _planted_start(instance, k, seed)))
    )
    arrays = {"mu": mu}
    for suffix, result in (("", first), ("_truth", second)):
        arrays |= {f"{name}{suffix}": values for name, values in _averages(result).items()}
    both = [_histogram(result.sampled_values["mse"]) for result in (first, second)]
    arrays["mse_histogram"] = np.mean(both, axis=0)
    arrays["overlap"] = _overlaps(first, second, k, levels)
    return dict(arrays)


def _planted_start(instance: Instance, k: int, seed: int) -> NDArray[np.int64]:
    truth = instance.support
    if truth.size > k:
        raise ValueError(f"the planted support has {truth.size} columns, more than k = {k}")
    rng = np.random.default_rng(stream_of(seed, "planted start"))
    others = np.setdiff1d(np.arange(instance.truth.size), truth)
    extra = rng.permutation(others)[: k - truth.size]
    return np.sort(np.concatenate((truth, extra)))


def _averages(result: TemperResult) -> dict[str, Floats]:
    """Return the averages by rung; whether the run was too short is judged afterwards, not here."""
    assert result.specific_heat is not None
    return {
        "distortion": result.mean_energy / result.n_samples,
        "mse": result.observed["mse"],
        "specific_heat": result.specific_heat,
        "autocorrelation": result.autocorrelation,
        "round_trips": np.array(float(result.round_trips)),
        "least_exchange_rate": np.array(result.exchange_rate.min()),
        "too_short": np.array(float(bool(result.refusals))),
        "below_tenth": (result.sampled_values["mse"] < 0.1).mean(axis=0),
    }


def _histogram(mse: Floats) -> Floats:
    """Return the fractions of sweeps (rows) in each bin of ``MSE_EDGES``, by rung (column)."""
    inside = np.clip(mse, MSE_EDGES[0], np.nextafter(MSE_EDGES[-1], 0.0))
    return np.array([np.histogram(column, MSE_EDGES)[0] / len(mse) for column in inside.T])


def _overlaps(first: TemperResult, second: TemperResult, k: int, levels: int) -> Floats:
    assert first.sampled_supports is not None
    assert second.sampled_supports is not None
    shared = np.rint(k * overlap(first.sampled_supports, second.sampled_supports)).astype(np.int64)
    found = np.full((shared.shape[1], levels + 1), np.nan)
    for a, column in enumerate(shared.T):
        found[a, : k + 1] = np.bincount(column, minlength=k + 1) / len(shared)
    return found


# ---------------------------------------------------------------- searches


def kicked(
    instance: Instance,
    seed: int,
    rho: float,
    n_chains: int,
    n_kicks: int | None = None,
    kicks_per_square: float | None = None,
) -> Arrays:
    """Walk over minima in independent chains; return what each of them found, and when it ended.

    Every chain makes ``n_kicks`` kicks, or ``kicks_per_square`` times N². ``signal`` is ‖y‖²/M.
    """
    if n_kicks is None:
        assert kicks_per_square is not None
        n_kicks = round(kicks_per_square * instance.truth.size**2)
    result = kick_search(
        instance.problem,
        instance.size(rho),
        n_kicks=n_kicks,
        n_chains=n_chains,
        random_state=seed,
    )
    m = instance.y.size
    return {
        "chain_distortion": result.chain_energies / m,
        "chain_kicks": result.n_kicks.astype(np.float64),
        "final_distortion": np.array(result.distortion),
        "final_mse": np.array(instance.mse(result.coef)),
        "signal": np.array(float(instance.y @ instance.y) / m),
    }


def evidenced(instance: Instance, seed: int, max_attempts: int, n_draws: int) -> Arrays:
    """Run evidence annealing, which is told neither k nor the noise."""
    result = evidence_anneal(
        instance.problem, max_attempts=max_attempts, n_draws=n_draws, random_state=seed
    )
    return {"final_mse": np.array(instance.mse(result.coef))}


# ---------------------------------------------------------------- entropies


def _temperatures(mu_min: float, mu_max: float, n: int) -> Floats:
    """Return μ = 0 and ``n`` inverse temperatures in equal ratios."""
    return np.concatenate(([0.0], np.geomspace(mu_min, mu_max, n)))


def populated(
    instance: Instance,
    seed: int,
    rho: float,
    mu_min: float,
    mu_max: float,
    n: int,
    population: int,
    tau: int,
) -> Arrays:
    """Cool a population; return distortion and free entropy, and whether it had enough families."""
    mu = _temperatures(mu_min, mu_max, n)
    result = population_anneal(
        instance.problem,
        instance.size(rho),
        Schedule(tuple(mu), (tau,) * mu.size, "fixed"),
        population=population,
        polish=False,
        random_state=seed,
    )
    trajectory = result.trajectory
    corrected = trajectory["free_entropy"] - trajectory["free_entropy_bias"]
    return {
        "mu": mu,
        "distortion": trajectory["distortion"].to_numpy(),
        "free_entropy": corrected.to_numpy(),
        "free_entropy_error": trajectory["free_entropy_error"].to_numpy(),
        "trusted": result.trusted.astype(np.float64),
    }


def enumerated(
    instance: Instance, seed: int, rho: float, mu_min: float, mu_max: float, n: int
) -> Arrays:
    """Compute the energies of all supports of k columns: exact averages, and the lowest energy."""
    k = instance.size(rho)
    energies = all_energies(instance.A, instance.y, k)
    lowest = float(energies.min())
    mu = _temperatures(mu_min, mu_max, n)
    mean, log_g = np.empty(mu.size), np.empty(mu.size)
    for a, inverse in enumerate(mu):
        weights = np.exp(-inverse * (energies - lowest))
        log_g[a] = np.log(weights.sum()) - inverse * lowest
        mean[a] = weights @ energies / weights.sum()
    m = instance.y.size
    return {
        "mu": mu,
        "distortion": mean / m,
        "free_entropy": log_g / instance.truth.size,
        "final_distortion": np.array(lowest / m),
        "signal": np.array(float(instance.y @ instance.y) / m),
    }


def all_energies(A: Floats, y: Floats, k: int) -> Floats:
    """Return ½‖y − A x‖², minimised over x, for all supports of k columns in lexicographic order.

    Examples
    --------
    >>> all_energies(np.eye(3), np.array([1.0, 2.0, 3.0]), 2).tolist()
    [4.5, 2.0, 0.5]
    """
    gram, b = A.T @ A, A.T @ y
    supports = combinations(range(A.shape[1]), k)
    found = []
    while chunk := list(islice(supports, _BATCH)):
        S = np.array(chunk)
        inner = b[S]
        x = np.linalg.solve(gram[S[:, :, None], S[:, None, :]], inner[..., None])[..., 0]
        found.append(0.5 * (float(y @ y) - np.sum(inner * x, axis=1)))
    return np.concatenate(found)
