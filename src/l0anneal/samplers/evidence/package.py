"""Make the result of evidence annealing from its chains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.chain import Model
from l0anneal.samplers.evidence.cooling import CROWDED
from l0anneal.samplers.evidence.draws import WEIGHTY, Draws, find_sets
from l0anneal.samplers.evidence.independent import correlations, independent
from l0anneal.samplers.evidence.posterior import AGREE, Posterior, PosteriorChain
from l0anneal.samplers.evidence.result import EvidenceResult, EvidenceSchedule
from l0anneal.samplers.greedy import NOT_BEGUN, greedy_order
from l0anneal.samplers.result import fitted
from l0anneal.samplers.run import Run

__all__ = ["package"]

CANDIDATES = 500  # columns that can be members of credible sets
RARE = 1e-3  # a column with a lower probability is no candidate
KIN = 0.5  # columns with a larger correlation can stand in for each other
MOST_DRAWS = 4000
APART = 0.5
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def package(
    posterior: Posterior, schedule: EvidenceSchedule, record: dict[str, Any]
) -> EvidenceResult:
    """Return the result, in the caller's units and with least squares on the chosen columns."""
    problem, best = posterior.model.problem, posterior.best
    every = np.arange(problem.n_columns)
    log = np.array(best.log).reshape(-1, 6)
    log[:, 0] *= problem.unit_energy
    shared: dict[str, Any] = {**record, "log": log, "schedule": schedule}
    chains = posterior.counted
    if not chains:
        return _without_draws(posterior, shared)
    weights = posterior.weights
    if posterior.model.known is None and posterior.model.size is None:
        likeliest = chains[int(np.argmax(weights))].draws[-1].columns
        if best.fits_exactly(np.sort(likeliest)):
            best.state = "found"
            return _without_draws(posterior, shared)
    probability = posterior.probability
    p, first, second = (
        np.einsum("c,cn->n", weights, [chain.average(name) for chain in chains])
        for name in ("probability", "first", "second")
    )
    draws = _draws(posterior, chains, weights)
    candidates = np.argsort(-p, kind="stable")[:CANDIDATES]
    candidates = candidates[p[candidates] > RARE].astype(np.int64)
    correlation = correlations(problem, candidates)
    size = np.bincount(np.diff(draws.start), weights=draws.weight).astype(np.float64)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    arrays = {name: getattr(draws, name) for name in draws.__dataclass_fields__ if name != _WORTH}
    return EvidenceResult(
        **fitted(problem, _support(posterior, draws, p, candidates, correlation)),
        **shared,
        state=_state(posterior, chains, weights),
        inclusion_probability=p,
        size_posterior=size,
        averaged_coef=problem.from_unit_coef(first, every),
        coef_std=np.abs(problem.from_unit_coef(spread, every)),
        noise_variance=float(draws.weight @ draws.noise_variance),
        rho=posterior.model.prior.fixed_rho or float(draws.weight @ draws.rho),
        chain_probability=probability,
        chain_weight=weights,
        chain_size=np.array([chain.mean_size for chain in chains]),
        chain_log_evidence=np.array([float(np.mean(chain.log_joints)) for chain in chains]),
        effective_sample_size=draws.effective_sample_size,
        draw_arrays=arrays,
        candidates=candidates,
        candidate_correlation=correlation,
    )


_WORTH = "effective_sample_size"


def _without_draws(posterior: Posterior, shared: dict[str, Any]) -> EvidenceResult:
    """Return the result of a run that found an exact representation, or was stopped before a draw."""
    problem, best = posterior.model.problem, posterior.best
    found = best.state == "found"
    support = best.exact if found else best.workspace.support
    return _without_probabilities(
        problem,
        independent(problem, support),
        **shared,
        state="found" if found else "begun",
        noise_variance=0.0 if found else best.temperature * problem.unit_energy,
        rho=best.rho,
        effective_sample_size=np.inf if found else 0.0,
    )


def not_begun(run: Run, model: Model) -> EvidenceResult:
    """Return greedy columns, because the time limit is too short for the first attempt."""
    problem = model.problem
    usable = np.isfinite(model.prior.column_odds)
    support = greedy_order(run, problem, model.size, usable)
    together = [group for group in model.prior.groups if np.isin(group, support).any()]
    support = independent(problem, np.unique(np.concatenate([support, *together])))
    left = 2.0 * problem.energy(support) / max(1, problem.n_samples - support.size)
    return _without_probabilities(
        problem,
        support,
        **run.record(NOT_BEGUN),
        log=np.zeros((0, 6)),
        schedule=EvidenceSchedule((), (), (), ()),
        state="begun",
        noise_variance=left,
        rho=support.size / problem.n_columns,
        effective_sample_size=0.0,
    )


def _without_probabilities(
    problem: SparseProblem, support: Indices, **fields: Any
) -> EvidenceResult:
    """Return a result with columns that are certain, if its state is "found", or without probabilities.

    Of columns that are equal, none is certain.
    """
    answer = fitted(problem, support)
    candidates, p = support, np.full(problem.n_columns, np.nan)
    if fields["state"] == "found":
        twins = [_twins(problem, int(j)) for j in support]
        p[:] = 0.0
        for columns in twins:
            p[columns] = 1.0 / columns.size
        candidates = np.concatenate([support[:0], *twins])
    size = np.zeros(support.size + 1)
    size[-1] = 1.0
    return EvidenceResult(
        **answer,
        **fields,
        inclusion_probability=p,
        size_posterior=size,
        averaged_coef=answer["coef"].copy(),
        coef_std=np.zeros(problem.n_columns),
        chain_probability=p[None],
        chain_weight=np.ones(1),
        chain_size=np.array([float(support.size)]),
        chain_log_evidence=np.full(1, np.nan),
        draw_arrays={},
        candidates=candidates,
        candidate_correlation=correlations(problem, candidates),
    )


def _twins(problem: SparseProblem, j: int) -> Indices:
    """Return column j, and the columns that are the same up to their scale."""
    equal = np.abs(problem.gram_row(j)) > 1.0 - PIVOT
    equal[j] = False
    return np.append(j, np.flatnonzero(equal))


def _draws(posterior: Posterior, chains: list[PosteriorChain], weights: Floats) -> Draws:
    problem, prior = posterior.model.problem, posterior.model.prior
    rng = np.random.default_rng(posterior.run.stream("evidence density"))
    thin = 1 + sum(len(chain.draws) for chain in chains) // MOST_DRAWS
    kept = [chain.draws[::thin] for chain in chains]
    every = [draw for draws in kept for draw in draws]
    sizes = [draw.columns.size for draw in every]
    units = [prior.n_units(draw.columns) for draw in every]
    columns = np.concatenate([draw.columns for draw in every]).astype(np.int64)
    unit = np.concatenate([draw.x for draw in every])
    return Draws(
        chain=np.repeat(np.arange(len(chains)), [len(draws) for draws in kept]),
        weight=np.concatenate([np.full(len(d), w / len(d)) for d, w in zip(kept, weights)]),
        start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        columns=columns,
        coef=problem.unit_coef_factor[columns] * unit,
        noise_variance=np.array([draw.noise for draw in every]) * problem.unit_energy,
        rho=np.array([prior.draw_rho(k, rng) for k in units]),
        signal_to_noise=np.array([draw.g for draw in every]),
        hump=np.array([draw.c for draw in every]),
        effective_sample_size=min(posterior.effective_size, float(len(every))),
    )


def _support(
    posterior: Posterior, draws: Draws, p: Floats, candidates: Indices, correlation: Floats
) -> Indices:
    """Return the likely columns, and the likeliest column of each group that is likely."""
    model = posterior.model
    if model.size is not None:
        return independent(model.problem, np.argsort(-p, kind="stable"), model.size)
    sets = find_sets(draws, candidates, p[candidates], correlation, 0.5, KIN)
    chosen = {int(found.columns[0]) for found in sets} | set(np.flatnonzero(p > 0.5).tolist())
    order = np.array(sorted(chosen, key=lambda j: -p[j]), dtype=np.int64)
    return independent(model.problem, order)


def _state(posterior: Posterior, chains: list[PosteriorChain], weights: Floats) -> str:
    """Judge the chains that have weight."""
    heavy = [chain for chain, weight in zip(chains, weights) if weight > WEIGHTY]
    sizes = [np.array([float(draw.columns.size) for draw in chain.draws]) for chain in heavy]
    logs = [chain.log_joints for chain in heavy]
    if posterior.disagreement > AGREE or apart(sizes, 0.5) or apart(logs, 1.0):
        return "disagreed"
    crowded = (
        chains[int(np.argmax(weights))].mean_size > CROWDED * posterior.model.problem.n_samples
    )
    if posterior.best.state == "trapped" and crowded:
        return "trapped"
    return "noise"


def apart(series: list[Floats], resolution: float) -> bool:
    """Return whether the means of two chains differ by more than `APART` standard deviations.

    The standard deviation is that of the draws within a chain, or the ``resolution`` if that is larger.
    Two chains with 210 effective draws each differ by less than five standard errors, √(2/210) = .1
    standard deviations, if they have the same law.
    """
    means = np.array([np.mean(one) for one in series])
    within = math.sqrt(float(np.mean([np.var(one) for one in series])))
    return bool(np.ptp(means) > APART * max(within, resolution))
