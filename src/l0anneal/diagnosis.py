"""Is an answer to be trusted? Functions of results, with theory beside them.

Whether a run is trapped does not show in its energy, and heating it back does not tell either: above
the transition the metastable branch *is* equilibrium. Independent chains tell. With the coefficients x_a
of chain a,

    D = ⟨‖x_a − x_b‖²⟩ / 2N over pairs of chains,      Q = ⟨‖x_a‖²⟩ / N,

the *gauge* D/Q goes to 0 where all chains find the same signal and is of order one where each is trapped
by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.annealing.chain import Chain, Run
from l0anneal.samplers.annealing.result import AnnealResult
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.kicks.search import kick_search
from l0anneal.samplers.population.result import PopulationResult
from l0anneal.samplers.search_result import SearchResult
from l0anneal.samplers.tempering.result import TemperResult

__all__ = ["Diagnosis", "diagnose"]

AGREE, DISAGREE = 0.02, 0.2  # of the gauge D/Q
EXACT = 1e-10  # of the signal's energy

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; ``print`` it.

    Attributes
    ----------
    verdict : {"exact", "agreed", "doubtful", "trapped", "unknown"}
        exact: fewer columns than samples represent the signal. agreed: independent chains found the
        same coefficients. trapped: they did not. doubtful: something in between, or the sampler's own
        tests speak against it. unknown: there is one chain only.
    gauge : float
        D/Q of the chains; NaN for a single one.
    hysteresis : float
        Largest lag of the cooling behind the heating back, as a fraction of the distortion; NaN if the
        problem was not given.
    fell_behind : float
        Temperature below which the run lagged; NaN if it did not or is not known.
    distortion, theory_distortion : float
        ε of the run, and the least one that replica theory (RS, at freezing) gives for k columns of a
        random dictionary of the same shape and a signal without structure.
    reasons, advice : tuples of str
        In words.
    """

    verdict: str
    gauge: float = math.nan
    hysteresis: float = math.nan
    fell_behind: float = math.nan
    distortion: float = math.nan
    theory_distortion: float = math.nan
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    curves: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"verdict      {self.verdict}"]
        lines += [f"because      {reason}" for reason in self.reasons]
        lines += [f"advice       {advice}" for advice in self.advice]
        return "\n".join(lines)


def diagnose(result: Any, problem: SparseProblem | None = None) -> Diagnosis:
    """Say in words and numbers how far a result can be trusted, and what to do next.

    Parameters
    ----------
    result : AnnealResult, KickResult, EvidenceResult, PopulationResult or TemperResult
        What a sampler returned.
    problem : SparseProblem, optional
        The problem it was run on. With it, a single chain is given a second one for comparison, and
        an annealing is heated back to see where it fell out of equilibrium; that takes about as long
        as the run did.

    Examples
    --------
    >>> from l0anneal import anneal, diagnose, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = anneal(instance.problem, 6, n_chains=2, random_state=0)
    >>> diagnose(result).verdict
    'exact'
    """
    if isinstance(result, AnnealResult):
        return _of_annealing(result, problem)
    if isinstance(result, KickResult):
        return _of_kicks(result, problem)
    if isinstance(result, EvidenceResult):
        return _of_evidence(result)
    if isinstance(result, PopulationResult):
        return _of_population(result)
    if isinstance(result, TemperResult):
        return _of_tempering(result)
    raise ValueError(f"diagnose takes what a sampler returned; got {type(result).__name__}")


def gauge(coefs: Floats) -> float:
    """D/Q of the chains' coefficient vectors, the rows; NaN for fewer than two."""
    if len(coefs) < 2:
        return math.nan
    q = float(np.mean(np.sum(coefs**2, axis=1)))
    pairs = [0.5 * np.sum((a - b) ** 2) for a, b in combinations(coefs, 2)]
    return float(np.mean(pairs)) / q if q > 0 else 0.0


# ---------------------------------------------------------------- annealing


def _of_annealing(result: AnnealResult, problem: SparseProblem | None) -> Diagnosis:
    said = _Findings(result)
    coefs = result.chain_coefs
    if problem is not None and len(coefs) == 1:
        other = anneal(
            problem,
            result.support.size,
            result.schedule,
            move=result.move,
            n_pairs=result.n_pairs,
            random_state=np.random.SeedSequence(result.seed, spawn_key=(1,)),
        )
        coefs = said.a_second_chain(coefs, other.coef)
    value = said.of_agreement(coefs)
    behind = _ageing(result, problem) if problem is not None else {}
    if behind:
        if math.isnan(behind["fell_behind"]):
            said.reasons.append("heating back retraces the cooling: the run was in equilibrium")
        else:
            said.reasons.append(
                f"below T = {behind['fell_behind']:.2g} the cooling lags behind the heating back, by up "
                f"to {behind['hysteresis']:.0%} of the distortion: the run fell out of equilibrium there"
            )
    theory = said.of_theory()
    said.advise("cool more slowly: a larger tau, or time_limit")
    return Diagnosis(
        verdict=said.verdict,
        gauge=value,
        hysteresis=behind.get("hysteresis", math.nan),
        fell_behind=behind.get("fell_behind", math.nan),
        distortion=result.distortion,
        theory_distortion=theory,
        reasons=tuple(said.reasons),
        advice=tuple(said.advice),
        curves=behind.get("curves", {}),
    )


def _of_kicks(result: KickResult, problem: SparseProblem | None) -> Diagnosis:
    said = _Findings(result)
    coefs = result.chain_coefs
    if problem is not None and len(coefs) == 1:
        other = kick_search(
            problem,
            result.support.size,
            n_kicks=[0, int(result.n_kicks[0])],
            n_chains=2,
            random_state=np.random.SeedSequence(result.seed, spawn_key=(1,)),
        )
        coefs = said.a_second_chain(coefs, other.chain_coefs[1])
    value = said.of_agreement(coefs)
    theory = said.of_theory()
    said.advise("search longer: a larger n_kicks, or time_limit")
    return Diagnosis(
        verdict=said.verdict,
        gauge=value,
        distortion=result.distortion,
        theory_distortion=theory,
        reasons=tuple(said.reasons),
        advice=tuple(said.advice),
    )


class _Findings:
    """The words about a search for k columns, as they come together."""

    def __init__(self, result: SearchResult) -> None:
        self.result = result
        self.verdict = "unknown"
        self.reasons: list[str] = []
        self.advice: list[str] = []

    def a_second_chain(self, coefs: Floats, other: Floats) -> Floats:
        self.reasons.append("a second chain was run for comparison")
        return np.vstack((coefs, other))

    def of_agreement(self, coefs: Floats) -> float:
        """The verdict; returns D/Q."""
        result, value = self.result, gauge(coefs)
        m, k = result.n_samples, result.support.size
        if result.energy <= EXACT * result.signal_energy and k < m:
            self.verdict = "exact"
            self.reasons.append(
                f"{k} columns, fewer than the {m} samples, leave nothing of the signal"
            )
            if value > DISAGREE:
                self.reasons.append(f"though not all chains found them (D/Q = {value:.2g})")
        elif math.isnan(value):
            self.reasons.append("a single chain cannot tell whether it is trapped")
            self.advice.append("run n_chains=2 or more, or give diagnose the problem")
        elif value <= AGREE:
            self.verdict = "agreed"
            self.reasons.append(
                f"{len(coefs)} chains have the same coefficients (D/Q = {value:.2g})"
            )
        else:
            self.verdict = "trapped" if value > DISAGREE else "doubtful"
            self.reasons.append(
                f"{len(coefs)} chains ended with different coefficients (D/Q = {value:.2g}; 0: the "
                "same, 1: nothing in common)"
            )
        return value

    def of_theory(self) -> float:
        """Compare with a signal without structure; returns the distortion of theory."""
        result = self.result
        n, m, k = result.n_columns, result.n_samples, result.support.size
        theory = _noise_limit(m / n, k / n, result.signal_energy / m)
        if math.isfinite(theory):
            ratio = result.distortion / theory
            what = (
                "far below it: the signal has structure"
                if ratio < 0.5
                else "near it: nothing here that k random columns could not do"
                if ratio < 2
                else "above it: a longer run would find better columns"
            )
            self.reasons.append(
                f"distortion {result.distortion:.3g}; the limit for a signal without structure is "
                f"{theory:.3g} (random dictionary): {what}"
            )
        return theory

    def advise(self, first: str) -> None:
        """What to do next."""
        if self.verdict in ("trapped", "doubtful"):
            self.advice.append(first)
            self.advice.append(
                "if k is a guess, try a smaller one: it suppresses metastable states"
            )
            self.advice.append(
                "if the signal is sparse: evidence_anneal, which is not caught in this trap"
            )
        if self.result.interrupted:
            self.advice.append("the run was cut short: let it end")


def _ageing(result: AnnealResult, problem: SparseProblem) -> dict[str, Any]:
    """Heat back along the schedule from where it ended; compare with the way down."""
    k = result.support.size
    steps = [
        (mu, tau, energy)
        for (mu, tau), energy in zip(result.schedule, result.mean_energy[0])
        if np.isfinite(energy)
    ]
    run = Run(
        problem,
        k,
        result.seed,
        result.chain_supports[0],
        result.move,
        result.n_pairs,
        False,
        False,
        {},
    )
    back = Chain(run, 2**32 - 2)
    with one_blas_thread():
        back.begin()
        for mu, tau, _ in reversed(steps):
            back.step(mu, tau)
    mu = np.array([step[0] for step in steps])
    down = np.array([step[2] for step in steps])
    up = np.array(back.mean_energy[::-1])
    # both means fluctuate; neighbouring temperatures are averaged to see a lag and not noise
    width = max(1, len(mu) // 10)
    window = np.ones(width) / width
    least = 1e-6 * result.signal_energy  # a lag that small is none
    lag = np.convolve(down - up, window, "same") / np.maximum(
        np.convolve(up, window, "same"), least
    )
    hot = lag[: len(lag) // 4]
    noise = float(np.sqrt(np.mean(hot**2))) if hot.size else 0.0
    lagging = lag > max(0.1, 3.0 * noise)
    curves = {"mu": mu, "down": down / result.n_samples, "up": up / result.n_samples}
    if not lagging.any():
        return {"hysteresis": float(np.max(lag)), "fell_behind": math.nan, "curves": curves}
    first = int(np.argmax(lagging))
    return {
        "hysteresis": float(np.max(lag)),
        "fell_behind": 1.0 / mu[first] if mu[first] > 0 else math.inf,
        "curves": curves,
    }


def _noise_limit(alpha: float, rho: float, mean_square: float) -> float:
    """Least distortion of a structureless signal, from replica theory; NaN where it has none."""
    from l0anneal.theory import ReplicaSymmetric

    if not 0 < rho < min(alpha, 1.0) or not mean_square > 0:
        return math.nan
    try:
        point = ReplicaSymmetric(alpha, rho, rho_hat=0.0, sigma_xi2=1.0).freezing("equilibrium")
    except (ValueError, ArithmeticError):
        return math.nan
    return math.nan if point is None else float(point.distortion) * mean_square


# ---------------------------------------------------------------- the other samplers


def _of_evidence(result: EvidenceResult) -> Diagnosis:
    if result.state == "found":
        return Diagnosis(
            "exact",
            distortion=result.distortion,
            reasons=(f"{result.support.size} columns leave nothing of the signal",),
        )
    p = result.inclusion_probability
    unsure = int(np.sum((p > 0.05) & (p < 0.95)))
    reasons = [f"cooled to a noise variance of {result.noise_variance:.3g} and sampled there"]
    if result.state == "noise":
        reasons.append(f"{unsure} columns have a probability between .05 and .95")
        few = result.support.size <= 0.25 * result.n_samples
        return Diagnosis(
            "agreed" if few else "doubtful",
            distortion=result.distortion,
            reasons=tuple(reasons),
            advice=()
            if few
            else ("many columns and noise look alike: give more time, or the noise_variance",),
        )
    return Diagnosis(
        "trapped",
        distortion=result.distortion,
        reasons=("slower attempts still find a lower noise level: none is the true one",),
        advice=(
            "give more time: a larger tau, or time_limit",
            "more samples than these are needed",
        ),
    )


def _of_population(result: PopulationResult) -> Diagnosis:
    trusted = bool(np.all(result.trusted))
    families = int(result.n_families[-1])
    return Diagnosis(
        "agreed" if trusted else "doubtful",
        distortion=result.distortion,
        reasons=(f"{families} families survive to the cold end",),
        advice=() if trusted else ("a larger population, or more sweeps at each temperature",),
    )


def _of_tempering(result: TemperResult) -> Diagnosis:
    return Diagnosis(
        "doubtful" if result.refusals else "agreed",
        distortion=result.distortion,
        reasons=result.refusals or (f"{result.round_trips} round trips from hot to cold and back",),
        advice=("more sweeps",) if result.refusals else (),
    )
