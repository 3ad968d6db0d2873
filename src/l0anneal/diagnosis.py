"""Judge how far a result can be trusted, and compare it with theory.

The energy of a run does not show whether the run is trapped. Heating it again does not show it
either, because above the transition the metastable branch *is* the equilibrium. A comparison of
independent chains does. With the coefficients x_a of chain a,

    D = ⟨‖x_a − x_b‖²⟩ / 2N over pairs of chains,      Q = ⟨‖x_a‖²⟩ / N,

the *disagreement* D/Q is zero if all chains find the same coefficients, and of order one if each
chain is trapped in a different support.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import singledispatch
from itertools import combinations
from textwrap import TextWrapper
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.seeds import stream_of
from l0anneal.engine.warm_up import warm_up
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.annealing.chain import Chain, Settings
from l0anneal.samplers.annealing.result import AnnealResult
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.kicks.search import kick_search
from l0anneal.samplers.population.result import PopulationResult
from l0anneal.samplers.result import SearchResult
from l0anneal.samplers.run import Run
from l0anneal.samplers.tempering.result import TemperResult

__all__ = ["Diagnosis", "diagnose", "disagreement"]

AGREE, DISAGREE = 0.02, 0.2  # limits of the disagreement D/Q
EXACT = 1e-10  # as a fraction of the signal's energy

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Diagnosis:
    """The verdict of `diagnose`, with reasons and advice; ``print`` shows all of them.

    Attributes
    ----------
    verdict : {"exact", "agreed", "doubtful", "trapped", "unknown"}
        exact: the columns, fewer than there are samples, fit the signal exactly. agreed:
        independent chains found the same coefficients, or the sampler's own checks passed. trapped:
        the chains found different coefficients, or evidence annealing found no clear noise level.
        doubtful: the chains nearly agree, or the sampler's own checks failed. unknown: there is
        only one chain, so that nothing can be compared.
    disagreement : float
        By how much the chains differ: 0 if they found the same coefficients, 1 if they have nothing
        in common; NaN if there is only one chain. It is the D/Q of the printed reasons.
    hysteresis : float
        The largest excess of the distortion during cooling over that when the run is heated again,
        as a fraction of the latter; NaN if the problem was not given, or if the result is not from
        `anneal`.
    fell_behind : float
        The temperature below which this excess is significant, so that the run was no longer in
        equilibrium; NaN if it never is, or if this is not known.
    distortion, theory_distortion : float
        The distortion ε of the run, and the smallest one that theory predicts for k columns of a
        random dictionary of the same shape and a signal without structure (replica symmetric, at
        the freezing temperature).
    reasons, advice : tuples of str
        The reasons for the verdict, and what to do next.
    """

    verdict: str
    disagreement: float = math.nan
    hysteresis: float = math.nan
    fell_behind: float = math.nan
    distortion: float = math.nan
    theory_distortion: float = math.nan
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    curves: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        rows = [("verdict", self.verdict)]
        rows += [("because", reason) for reason in self.reasons]
        rows += [("advice", advice) for advice in self.advice]
        wrap = TextWrapper(width=80, subsequent_indent=" " * 13, break_long_words=False)
        return "\n".join(wrap.fill(f"{name:<12} {text}") for name, text in rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, its reasons and the advice as plain data that JSON can hold."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "advice": list(self.advice),
        }


def diagnose(result: Any, problem: SparseProblem | None = None) -> Diagnosis:
    """Tell how far a result can be trusted, and what to do next.

    Parameters
    ----------
    result : AnnealResult, KickResult, EvidenceResult, PopulationResult or TemperResult
        The result that a sampler returned.
    problem : SparseProblem, optional
        The problem that was solved. If it is given, a second chain is run where there is only one,
        and a result of `anneal` is heated again to see where it fell out of equilibrium. This takes
        about as long as the run did.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from l0anneal import anneal, diagnose, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = anneal(instance.problem, 6, n_chains=2, random_state=0)
    >>> diagnose(result).verdict
    'exact'
    """
    return _diagnose(result, problem)


def disagreement(coefs: Floats) -> float:
    """Return D/Q of chains whose coefficient vectors are the rows; NaN for fewer than two.

    Examples
    --------
    >>> disagreement(np.array([[1.0, 0.0], [0.0, 1.0]]))
    1.0
    """
    if len(coefs) < 2:
        return math.nan
    q = float(np.mean(np.sum(coefs**2, axis=1)))
    pairs = [0.5 * np.sum((a - b) ** 2) for a, b in combinations(coefs, 2)]
    return float(np.mean(pairs)) / q if q > 0 else 0.0


@singledispatch
def _diagnose(result: Any, problem: SparseProblem | None) -> Diagnosis:
    raise ValueError(f"diagnose needs what a sampler returned; got {type(result).__name__}")


# ---------------------------------------------------------------- searches for k columns


@_diagnose.register
def _annealing(result: AnnealResult, problem: SparseProblem | None) -> Diagnosis:
    findings = _Findings(result)
    coefs = result.chain_coefs
    if problem is not None and len(coefs) == 1:
        other = anneal(
            problem,
            result.support.size,
            result.schedule,
            move=result.move,
            n_pairs=result.n_pairs,
            random_state=stream_of(result.seed, "second opinion"),
        )
        coefs = findings.add_second_chain(coefs, other.coef)
    behind = _heated_back(result, problem) if problem is not None else {}
    findings.judge(coefs)
    if behind:
        if math.isnan(behind["fell_behind"]):
            findings.reasons.append("heating back retraces the cooling: the run was in equilibrium")
        else:
            findings.reasons.append(
                f"below T = {behind['fell_behind']:.2g} the cooling lags behind the heating back, by up "
                f"to {behind['hysteresis']:.0%} of the distortion: the run fell out of equilibrium there"
            )
    return findings.conclude("cool more slowly: a larger tau, or time_limit", **behind)


@_diagnose.register
def _kicks(result: KickResult, problem: SparseProblem | None) -> Diagnosis:
    findings = _Findings(result)
    coefs = result.chain_coefs
    if problem is not None and len(coefs) == 1:
        other = kick_search(
            problem,
            result.support.size,
            n_kicks=[0, int(result.n_kicks[0])],
            n_chains=2,
            random_state=stream_of(result.seed, "second opinion"),
        )
        coefs = findings.add_second_chain(coefs, other.chain_coefs[1])
    findings.judge(coefs)
    return findings.conclude("search longer: a larger n_kicks, or time_limit")


class _Findings:
    """The findings about a search for k columns, as they accumulate."""

    def __init__(self, result: SearchResult) -> None:
        self.result = result
        self.verdict = "unknown"
        self.disagreement = math.nan
        self.reasons: list[str] = []
        self.advice: list[str] = []

    def add_second_chain(self, coefs: Floats, other: Floats) -> Floats:
        """Put the coefficients of a second chain below the others."""
        self.reasons.append("a second chain was run for comparison")
        return np.vstack((coefs, other))

    def judge(self, coefs: Floats) -> None:
        """Find the verdict from the coefficients of the chains."""
        result, value = self.result, disagreement(coefs)
        m, k = result.n_samples, result.support.size
        self.disagreement = value
        if result.energy <= EXACT * result.signal_energy and k < m:
            self.verdict = "exact"
            self.reasons.append(
                f"{k} columns, fewer than the {m} samples, represent the signal exactly"
            )
            if value > DISAGREE:
                self.reasons.append(f"although not all chains found them (D/Q = {value:.2g})")
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

    def conclude(self, first_advice: str, **more: Any) -> Diagnosis:
        """Compare with theory, add advice, and return the diagnosis."""
        theory = self._compare_with_theory()
        if self.verdict in ("trapped", "doubtful"):
            self.advice += [
                first_advice,
                "if k is a guess, try a smaller one: it suppresses metastable states",
                "if the signal is sparse, try evidence_anneal, which is not caught in this trap",
            ]
        if self.result.interrupted:
            self.advice.append("the run was cut short: let it run to its end")
        return Diagnosis(
            verdict=self.verdict,
            disagreement=self.disagreement,
            distortion=self.result.distortion,
            theory_distortion=theory,
            reasons=tuple(self.reasons),
            advice=tuple(self.advice),
            **more,
        )

    def _compare_with_theory(self) -> float:
        """Compare with theory for a signal without structure; return its distortion."""
        result = self.result
        n, m, k = result.n_columns, result.n_samples, result.support.size
        theory = _noise_limit(m / n, k / n, result.signal_energy / m)
        if math.isfinite(theory):
            ratio = result.distortion / theory
            comparison = (
                "far below it: the signal has structure"
                if ratio < 0.5
                else "near it: k random columns could do as well"
                if ratio < 2
                else "above it: a longer run would find better columns"
            )
            self.reasons.append(
                f"distortion {result.distortion:.3g}; the limit for a signal without structure is "
                f"{theory:.3g} (random dictionary): {comparison}"
            )
        return theory


def _heated_back(result: AnnealResult, problem: SparseProblem) -> dict[str, Any]:
    """Heat the final support along the reversed schedule, and compare with the cooling."""
    steps = [
        (mu, tau, energy)
        for (mu, tau), energy in zip(result.schedule, result.mean_energy[0])
        if np.isfinite(energy)
    ]
    settings = Settings(
        problem,
        result.support.size,
        result.chain_supports[0],
        result.move,
        result.n_pairs,
        polish=False,
        keep_samples=False,
        observables={},
    )
    with Run(random_state=result.seed) as run:
        run.compile(warm_up, result.move)
        back = Chain(run, settings, run.stream("annealing heated back"))
        back.begin()
        for mu, tau, _ in reversed(steps):
            back.step(mu, tau)
    mu = np.array([step[0] for step in steps])
    down = np.array([step[2] for step in steps])
    up = np.array(back.mean_energy[::-1])
    curves = {"mu": mu, "down": down / result.n_samples, "up": up / result.n_samples}
    lag, lagging = _lag(down, up, 1e-6 * result.signal_energy)
    first = int(np.argmax(lagging))
    fell_behind = math.nan
    if lagging.any():
        fell_behind = 1.0 / mu[first] if mu[first] > 0 else math.inf
    return {"hysteresis": float(np.max(lag)), "fell_behind": fell_behind, "curves": curves}


def _lag(down: Floats, up: Floats, least: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return by how much the cooling lags, as a fraction, and where that is significant.

    Both means fluctuate, so neighbouring temperatures are averaged. Energies below ``least`` count as
    ``least``.
    """
    width = max(1, len(down) // 10)
    window = np.ones(width) / width
    lag = np.convolve(down - up, window, "same") / np.maximum(
        np.convolve(up, window, "same"), least
    )
    hot = lag[: len(lag) // 4]
    noise = float(np.sqrt(np.mean(hot**2))) if hot.size else 0.0
    return lag, lag > max(0.1, 3.0 * noise)


def _noise_limit(alpha: float, rho: float, mean_square: float) -> float:
    """Return the smallest distortion that theory predicts for a structureless signal, or NaN."""
    from l0anneal.theory import ReplicaSymmetric

    if not 0 < rho < min(alpha, 1.0) or not mean_square > 0:
        return math.nan
    try:
        point = ReplicaSymmetric(alpha, rho, rho_hat=0.0, sigma_xi2=1.0).freezing("equilibrium")
    except (ValueError, ArithmeticError):
        return math.nan
    return math.nan if point is None else float(point.distortion) * mean_square


# ---------------------------------------------------------------- the other samplers


@_diagnose.register
def _evidence(result: EvidenceResult, problem: SparseProblem | None) -> Diagnosis:
    if result.state == "found":
        return Diagnosis(
            "exact",
            distortion=result.distortion,
            reasons=(f"{result.support.size} columns represent the signal exactly",),
        )
    if result.state == "trapped":
        return Diagnosis(
            "trapped",
            distortion=result.distortion,
            reasons=("slower attempts still find a lower noise level: none is the true one",),
            advice=(
                "give more time: a larger tau, or time_limit",
                "collect more samples: these are too few to tell signal from noise",
            ),
        )
    p = result.inclusion_probability
    unsure = int(np.sum((p > 0.05) & (p < 0.95)))
    few = result.support.size <= 0.25 * result.n_samples
    return Diagnosis(
        "agreed" if few else "doubtful",
        distortion=result.distortion,
        reasons=(
            f"cooled to a noise variance of {result.noise_variance:.3g} and sampled there",
            f"{unsure} columns have a probability between .05 and .95",
        ),
        advice=()
        if few
        else ("noise can look like many columns: give more time, or the noise_variance",),
    )


@_diagnose.register
def _population(result: PopulationResult, problem: SparseProblem | None) -> Diagnosis:
    trusted = bool(np.all(result.trusted))
    families = int(result.n_families[-1])
    return Diagnosis(
        "agreed" if trusted else "doubtful",
        distortion=result.distortion,
        reasons=(f"{families} families survive to the cold end",),
        advice=() if trusted else ("use a larger population, or more sweeps at each temperature",),
    )


@_diagnose.register
def _tempering(result: TemperResult, problem: SparseProblem | None) -> Diagnosis:
    return Diagnosis(
        "doubtful" if result.refusals else "agreed",
        distortion=result.distortion,
        reasons=result.refusals or (f"{result.round_trips} round trips from hot to cold and back",),
        advice=("run more sweeps",) if result.refusals else (),
    )
