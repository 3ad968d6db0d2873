"""Judge the result of evidence annealing."""

from __future__ import annotations

from typing import Any

import numpy as np

from l0anneal.diagnosis.verdict import Diagnosis, listed, search_longer
from l0anneal.samplers.evidence.draws import ENOUGH
from l0anneal.samplers.evidence.result import EvidenceResult

__all__ = ["judge_evidence"]

DECIDED = 0.05  # probabilities within this distance of 0 or 1 count as decided
CROWDED = 0.25  # with more columns than this fraction of M, the noise level may be spurious
EXTREME = 1e11  # ratio of signal to noise at which rounding decides about the rest of the signal
MOVED = 0.25  # a column whose probability differs by more than this between chains is named


def judge_evidence(result: EvidenceResult) -> Diagnosis:
    """Judge a posterior by its state, its chains and its probabilities."""
    if result.state == "found":
        return Diagnosis(
            "exact",
            distortion=result.distortion,
            reasons=(f"{result.support.size} columns represent the signal exactly",),
        )
    p = result.inclusion_probability
    undecided = np.flatnonzero((p > DECIDED) & (p < 1.0 - DECIDED))
    groups, about_groups = _groups(result)
    verdict, reasons, advice = _by_state(result)
    if result.state != "begun":
        reasons += [_about_undecided(undecided.size, p.size), *about_groups]
    return Diagnosis(
        verdict,
        disagreement=float(getattr(result, "disagreement", np.nan)),
        undecided=tuple(undecided.tolist()),
        groups=groups,
        distortion=result.distortion,
        reasons=tuple(reasons),
        advice=tuple(advice),
    )


def _by_state(result: EvidenceResult) -> tuple[str, list[str], list[str]]:
    """Return the verdict, its reasons and advice."""
    longer = search_longer(result)
    if result.state in ("trapped", "disagreed") and result.has_few_samples:
        return (
            "trapped" if result.state == "trapped" else "doubtful",
            [f"{result.n_samples} samples are too few to tell columns from noise"],
            ["collect more samples, or give the noise_variance: more time would not help"],
        )
    if result.state == "trapped":
        return (
            "trapped",
            ["slower attempts still find a lower noise level: none is the true one"],
            [longer, "collect more samples: these are too few to tell signal from noise"],
        )
    cooled = f"cooled to a noise variance of {result.noise_variance:.3g} and sampled there"
    if result.state == "disagreed":
        return (
            "doubtful",
            [cooled, "the chains disagree: " + _moved(result)],
            [
                "do not rely on a single probability; a column is safe only if every chain chose it "
                "(chain_probability)",
                longer,
                "give what you know: noise_variance, rho, or fewer columns to choose from",
                "if more time does not help, the data allow several answers: collect more samples",
            ],
        )
    if result.state == "begun":
        return (
            "unknown",
            ["the run was stopped before the first draw from the posterior"],
            ["run evidence_anneal again, with more time"],
        )
    if result.effective_sample_size < ENOUGH:
        return (
            "doubtful",
            [cooled, f"the draws are worth {result.effective_sample_size:.0f} independent ones"],
            [f"give more time, until the draws are worth {ENOUGH}"],
        )
    if result.draws is not None and np.median(result.draws.signal_to_noise) >= EXTREME:
        return (
            "doubtful",
            [cooled, "one column dwarfs the others: the rest is lost to rounding"],
            ["project this column out first: subtract the means, or use always_include"],
        )
    if result.support.size > CROWDED * result.n_samples:
        advice = [f"noise can look like many columns: {longer}, or give the noise_variance"]
        return "doubtful", [cooled], advice
    return "agreed", [cooled], []


def _about_undecided(n: int, n_columns: int) -> str:
    """Say about how many columns the data do not decide."""
    if n == 0:
        return "the probability of every column is below .05 or above .95"
    return (
        f"{n} of {n_columns} columns {'has' if n == 1 else 'have'} a probability between .05 and "
        f".95: the data do not decide about {'it' if n == 1 else 'them'}"
    )


def _moved(result: Any) -> str:
    """Tell how the probabilities differ between the chains."""
    chains = np.atleast_2d(getattr(result, "chain_probability", result.inclusion_probability))
    spread = chains.max(axis=0) - chains.min(axis=0)
    moved = np.flatnonzero(spread > MOVED)
    if moved.size == 0:
        return "in the size of the support or in the noise level"
    worst = moved[np.argsort(-spread[moved], kind="stable")]
    shown = ", ".join(
        f"{result.name(j)} ({chains[:, j].min():.2f} to {chains[:, j].max():.2f})"
        for j in worst[:4]
    )
    more = f" and {worst.size - 4} more" if worst.size > 4 else ""
    return f"probabilities of columns that differ between them are {shown}{more}"


def _groups(result: Any) -> tuple[tuple[tuple[int, ...], ...], list[str]]:
    """Return the credible sets of several columns, and what to say about them."""
    if not hasattr(result, "credible_sets"):
        return (), []
    try:
        sets = [found for found in result.credible_sets() if len(found.columns) > 1]
    except ValueError as refusal:
        return (), [f"no credible sets: {refusal}"]
    groups = tuple(tuple(int(j) for j in found.columns) for found in sets)
    said = [
        f"columns {listed(map(result.name, group))} stand in for each other: at least one of them "
        f"belongs, with probability {found.probability:.2f}"
        for group, found in zip(groups[:3], sets)
    ]
    if len(groups) > 3:
        said.append(f"there are {len(groups) - 3} more such groups")
    return groups, said
