"""Judge a search for k columns: compare its chains, put the best support to a test, ask theory.

The energy of a run does not show whether the run is trapped. Heating it again does not show it either,
because above the transition the metastable branch *is* the equilibrium. Independent chains do show it:
if they end with different energies, all of them but the best are trapped, and the best one may be, too.
`samplers.comparison` defines the disagreement of the fits, which is zero if all chains have the same
fit and of order one if each chain is trapped in a different support.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.seeds import stream_of
from l0anneal.diagnosis.verdict import Diagnosis, listed, search_longer
from l0anneal.engine.warm_up import warm_up
from l0anneal.problem.chance import EXACT, UNLIKELY, log_chance
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.annealing.chain import Chain, Settings
from l0anneal.samplers.annealing.result import AnnealResult
from l0anneal.samplers.comparison import Comparison, compare_chains
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.kicks.search import kick_search
from l0anneal.samplers.run import Run

__all__ = ["judge_annealing", "judge_kicks"]

DISAGREE = 0.2  # disagreement above which the fits of the chains have little in common
SAME_FIT = 1e-6  # disagreement below which fits are the same up to rounding
TIE = 1e-8  # relative difference of energies that may be rounding
UNRESOLVED = 1e-3  # resolution, as a fraction of what is left, at which the search was blind
TRIAL = 100  # kicks that try to improve on the best support
# Shorter chains are hardly more than descents: on problems with few minima, two of them end in the same
# wrong minimum in about five per cent of all cases (`benchmarks/diagnosis.py`).
LEAST_SWEEPS, LEAST_KICKS = 100, 50

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def judge_annealing(result: AnnealResult, problem: SparseProblem | None) -> Diagnosis:
    """Judge a result of `anneal`; with the problem, also heat it again."""
    n_sweeps = result.schedule.n_sweeps
    findings = _Findings(result, f"{n_sweeps} sweeps" if n_sweeps < LEAST_SWEEPS else "")
    if problem is not None:
        if len(result.chain_energies) == 1:
            other = anneal(
                problem,
                result.support.size,
                result.schedule,
                move=result.move,
                n_pairs=result.n_pairs,
                random_state=stream_of(result.seed, "second opinion"),
            )
            findings.add_chain(problem, other.support, other.energy)
        findings.try_to_improve(problem)
    behind = _heated_back(result, problem) if problem is not None else {}
    findings.judge()
    if behind:
        if math.isnan(behind["fell_behind"]):
            findings.reasons.append("heating back retraces the cooling: the run was in equilibrium")
        else:
            findings.reasons.append(
                f"below T = {behind['fell_behind']:.2g} the cooling lags behind the heating back, by up "
                f"to {behind['hysteresis']:.0%} of the distortion: the run fell out of equilibrium there"
            )
    return findings.conclude("cool more slowly: a larger tau, or time_limit", **behind)


def judge_kicks(result: KickResult, problem: SparseProblem | None) -> Diagnosis:
    """Judge a result of `kick_search`."""
    n_kicks = int(np.min(result.n_kicks))
    findings = _Findings(result, f"{n_kicks} kicks" if n_kicks < LEAST_KICKS else "")
    if problem is not None:
        if len(result.chain_energies) == 1:
            other = kick_search(
                problem,
                result.support.size,
                n_kicks=[0, int(result.n_kicks[0])],
                n_chains=2,
                random_state=stream_of(result.seed, "second opinion"),
            )
            findings.add_chain(problem, other.chain_supports[1], float(other.chain_energies[1]))
        findings.try_to_improve(problem)
    findings.judge()
    return findings.conclude(search_longer(result))


class _Findings:
    """The findings about a search for k columns, as they accumulate."""

    def __init__(self, result: AnnealResult | KickResult, too_short: str) -> None:
        self.result = result
        self.too_short = too_short  # how long a chain was, if that is not long enough
        self.compared: Comparison = result.comparison
        self.energies = result.chain_energies
        self.supports = result.chain_supports
        self.lowest = result.energy  # of all supports that are known
        self.verdict = "unknown"
        self.unfinished = False  # whether a longer search may find better columns
        self.reasons: list[str] = []
        self.advice: list[str] = []

    # ------------------------------------------------------------ with the problem: more evidence

    def add_chain(self, problem: SparseProblem, support: Indices, energy: float) -> None:
        """Compare with one more chain."""
        self.reasons.append("a second chain was run for comparison")
        self.supports = np.vstack((self.supports, support))
        self.energies = np.append(self.energies, energy)
        self.lowest = min(self.lowest, energy)
        resolution = self.compared.resolution * self.result.signal_energy
        self.compared = compare_chains(problem, list(self.supports), self.energies, resolution)

    def try_to_improve(self, problem: SparseProblem) -> None:
        """Search from the best support for a better one."""
        result = self.result
        if self.compared.n_exact or not 0 < result.support.size < result.n_columns:
            return
        with suppress(
            ValueError
        ):  # nearly dependent only beside dominant columns: no place to begin
            trial = kick_search(
                problem,
                result.support.size,
                n_kicks=TRIAL,
                initial_support=result.support,
                random_state=stream_of(result.seed, "trial"),
            )
            self.lowest = min(self.lowest, trial.energy)
            self.too_short = ""

    # ------------------------------------------------------------ the verdict

    def judge(self) -> None:
        """Find the verdict."""
        result, compared = self.result, self.compared
        n, m, k = result.n_columns, result.n_samples, result.support.size
        if result.signal_energy == 0:
            self.reasons.append("the signal is zero: any columns fit it")
            return
        if compared.n_exact:
            self._exact()
        elif self._vanishes_by_chance():
            self.verdict = "doubtful"
            self.reasons.append(
                f"{k} of {n} columns fit any signal of {m} samples as well as this one: the fit "
                "says nothing about the columns"
            )
            self.advice.append("choose a smaller n_nonzero, or collect more samples")
        elif k in (0, n):
            self.verdict = "agreed"
            self.reasons.append(f"there is only one support of {k} columns")
        else:
            self._compare()
            self._test()
        self._speak_of_columns()

    def _exact(self) -> None:
        result, compared = self.result, self.compared
        self.verdict = "exact"
        self.reasons.append(
            f"{compared.n_exact} columns, fewer than the {result.n_samples} samples, represent the "
            "signal exactly, and too well for chance"
        )
        if compared.n_exact < result.support.size:
            spare = result.support.size - compared.n_exact
            self.reasons.append(f"the other {spare} columns are superfluous: coefficient zero")
        if not np.all(self._is_best()):
            self.reasons.append("although not all chains found them")

    def _vanishes_by_chance(self) -> bool:
        """Whether the residual vanishes, but would for any signal."""
        result, compared = self.result, self.compared
        fraction = 2.0 * result.energy / result.signal_energy / compared.left
        q = len(compared.dominant)
        n, m, k = result.n_columns - q, result.n_samples - q, result.support.size - q
        return fraction <= EXACT and log_chance(n, m, k, fraction) >= UNLIKELY

    def _is_best(self) -> NDArray[np.bool_]:
        """Whether each chain reached the lowest energy of the chains, up to rounding."""
        lowest, signal = float(np.min(self.energies)), self.result.signal_energy
        rounding = 1e-14 * math.sqrt(2.0 * lowest * signal) + 1e-28 * signal
        return np.asarray(self.energies <= lowest * (1.0 + TIE) + rounding)

    def _compare(self) -> None:
        """Compare the energies and the fits of the chains."""
        value, n_chains = self.compared.disagreement, len(self.energies)
        n_best = int(np.sum(self._is_best()))
        if value is None:
            self.reasons.append("a single chain cannot tell whether it is trapped")
            self.advice.append("run n_chains=2 or more, or give diagnose the problem")
        elif n_best == n_chains and value <= SAME_FIT:
            self.verdict = "agreed"
            self.reasons.append(f"{n_chains} independent chains ended with the same fit")
            if self.too_short:
                self.verdict, self.unfinished = "doubtful", True
                self.reasons.append(f"but they were short: {self.too_short}, which proves little")
                self.advice.append("give diagnose the problem, which puts the support to a test")
        elif n_best == n_chains:
            self.verdict = "doubtful"
            self.reasons.append(
                f"{n_chains} chains ended with fits that are equally good, but not the same "
                f"(disagreement {value:.2g})"
            )
        else:
            self.verdict = "trapped" if n_best == 1 and value > DISAGREE else "doubtful"
            self.unfinished = True
            self.reasons.append(
                f"{n_best} of {n_chains} chains reached the lowest energy {min(self.energies):.6g}, "
                f"the others up to {max(self.energies):.6g}; their fits have a disagreement of "
                f"{value:.2g} (0: the same, 1: nothing in common)"
            )

    def _test(self) -> None:
        """Report what the comparison of the chains cannot show."""
        result, compared = self.result, self.compared
        better = 1.0 - self.lowest / result.energy if result.energy else 0.0
        if better > 100.0 * TIE:
            self.verdict, self.unfinished = "trapped", True
            self.reasons.append(
                f"there is a better support: a short search found the energy {self.lowest:.6g} "
                f"instead of {result.energy:.6g}"
            )
        if compared.excluded is not None:
            self.verdict = "trapped" if self.verdict == "trapped" else "doubtful"
            pair = listed(map(result.name, compared.excluded.columns))
            self.reasons.append(
                f"columns {pair} are nearly linearly dependent and were not considered together; "
                f"together they reach the energy {compared.excluded.energy:.3g} instead of "
                f"{result.energy:.3g}"
            )
            self.advice.append(
                f"replace one of the columns {pair} by its residual after regression on the others "
                "(for two columns: by their difference), or remove it"
            )
        left = 2.0 * result.energy / result.signal_energy
        if compared.resolution > UNRESOLVED * left:
            self.verdict = "doubtful" if self.verdict == "agreed" else self.verdict
            culprits = listed(map(result.name, compared.dominant))
            of = f"columns {culprits} dwarf" if culprits else "the largest columns dwarf"
            self.reasons.append(
                f"rounding limits this search: {of} what is left of the signal, {left:.1g} of "
                f"‖y‖², and differences below {compared.resolution:.1g} of ‖y‖² were not seen"
            )
            self.advice.append(
                "regress the signal and the other columns on the dwarfing ones first (subtract the "
                "means, if that is a constant column), or use kick_search, which does this"
            )

    def _speak_of_columns(self) -> None:
        """Tell how the columns differ between the chains."""
        k, n_chains = self.result.support.size, len(self.supports)
        moved, common = self._moved()
        if moved.size == 0:
            return
        self.reasons.append(
            f"{common} of the {k} columns are in all {n_chains} chains; {moved.size} other columns "
            "are in some of them only"
        )
        for group in self.compared.groups[:3]:
            self.reasons.append(
                f"columns {listed(map(self.result.name, group))} stand in for each other: they are "
                "correlated, and different chains chose different ones"
            )
        if len(self.compared.groups) > 3:
            self.reasons.append(f"there are {len(self.compared.groups) - 3} more such groups")

    def _moved(self) -> tuple[Indices, int]:
        """Return the columns that are in some chains only, and how many are in all of them."""
        columns, counts = np.unique(self.supports, return_counts=True)
        everywhere = counts == len(self.supports)
        return columns[~everywhere], int(np.sum(everywhere))

    def conclude(self, first_advice: str, **more: Any) -> Diagnosis:
        """Compare with theory, add advice, and return the diagnosis."""
        theory = self._compare_with_theory()
        excluded, value = self.compared.excluded, self.compared.disagreement
        if self.unfinished:
            self.advice += [
                first_advice,
                "if k is a guess, try a smaller one: it suppresses metastable states",
                "if the signal is sparse, try evidence_anneal, which is not caught in this trap",
            ]
        if self.result.interrupted:
            self.advice.append("the run was cut short: let it run to its end")
        return Diagnosis(
            verdict=self.verdict,
            disagreement=math.nan if value is None else value,
            undecided=tuple(self._moved()[0].tolist()),
            groups=self.compared.groups,
            excluded=() if excluded is None else excluded.columns,
            distortion=self.result.distortion,
            theory_distortion=theory,
            reasons=tuple(self.reasons),
            advice=tuple(self.advice),
            **more,
        )

    def _compare_with_theory(self) -> float:
        """Compare with theory for a signal without structure; return its distortion."""
        result, q = self.result, len(self.compared.dominant)
        n, m, k = result.n_columns - q, result.n_samples - q, result.support.size - q
        mean_square = self.compared.left * result.signal_energy / result.n_samples
        theory = _noise_estimate(m / n, k / n, mean_square)
        if math.isfinite(theory):
            ratio = result.distortion / theory
            # five standard deviations of the residual variance of noise, or half if rows are few
            structured = max(0.5, 1.0 - 5.0 * math.sqrt(2.0 / max(1, m - k)))
            comparison = (
                "this is far less, so the signal has structure"
                if ratio < structured
                else "random columns could do as well"
                if ratio < 2
                else "this is more: the columns are correlated, or there are better ones"
            )
            self.reasons.append(
                f"the distortion is {result.distortion:.3g}; of a signal without structure, the best "
                f"{k} of {n} random columns would leave {theory:.3g} or more by replica symmetry: "
                f"{comparison}"
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


def _noise_estimate(alpha: float, rho: float, mean_square: float) -> float:
    """Return what replica symmetry estimates for the least distortion of a structureless signal.

    NaN where there is no estimate. One step of replica symmetry breaking lies above this number, by a
    third at α = .5 and ρ = .2, but takes much longer to solve.
    """
    from l0anneal.theory import ReplicaSymmetric

    if not 0 < rho < min(alpha, 1.0) or not mean_square > 0:
        return math.nan
    try:
        point = ReplicaSymmetric(alpha, rho, rho_hat=0.0, sigma_xi2=1.0).freezing("equilibrium")
    except (ValueError, ArithmeticError):
        return math.nan
    return math.nan if point is None else float(point.distortion) * mean_square
