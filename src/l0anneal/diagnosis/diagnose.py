"""`diagnose`, which passes each kind of result to the module that judges it."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from l0anneal.diagnosis.posterior import judge_evidence
from l0anneal.diagnosis.searches import judge_annealing, judge_kicks
from l0anneal.diagnosis.verdict import Diagnosis
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.result import AnnealResult
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.population.result import PopulationResult
from l0anneal.samplers.tempering.result import TemperResult

__all__ = ["diagnose"]


def diagnose(result: Any, problem: SparseProblem | None = None) -> Diagnosis:
    """Tell how far a result can be trusted, and what to do next.

    Parameters
    ----------
    result : AnnealResult, KickResult, EvidenceResult, PopulationResult or TemperResult
        The result that a sampler returned. In that of a regressor (``model.result_``), column j is
        column ``model.candidates_[j]`` of X.
    problem : SparseProblem, optional
        The problem that was solved. If it is given, a search for k columns is put to a test: a second
        chain is run where there is only one, a short search tries to improve on the best support, and
        a result of `anneal` is heated again to see where it fell out of equilibrium. This takes about
        as long as the run did.

    Returns
    -------
    Diagnosis

    See Also
    --------
    Diagnosis : The verdict.
    stability : How the choice depends on the rows.

    Examples
    --------
    >>> from l0anneal import anneal, diagnose, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = anneal(instance.problem, 6, n_chains=2, random_state=0)
    >>> diagnose(result).verdict
    'exact'
    """
    return _diagnose(result, problem)


@singledispatch
def _diagnose(result: Any, problem: SparseProblem | None) -> Diagnosis:
    raise ValueError(
        f"diagnose needs what a sampler returned; got {type(result).__name__}: pass the result of a "
        "sampler, or result_ of a regressor that was fitted with 'auto' or with a number of columns and "
        "n_chains=2 (a criterion leaves a path, which holds one search for each size)"
    )


_diagnose.register(AnnealResult, judge_annealing)
_diagnose.register(KickResult, judge_kicks)


@_diagnose.register
def _evidence(result: EvidenceResult, problem: SparseProblem | None) -> Diagnosis:
    return judge_evidence(result)


@_diagnose.register
def _population(result: PopulationResult, problem: SparseProblem | None) -> Diagnosis:
    trusted = bool(result.trusted.all())
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
