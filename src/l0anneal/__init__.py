"""The best k columns of a dictionary for a signal, found by annealing; see the README.

Names are loaded when they are first used, so that `l0anneal.theory` stands alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from l0anneal import ensembles
    from l0anneal.annealing import anneal
    from l0anneal.coding import AnnealedSparseCoder, sparse_encode
    from l0anneal.diagnosis import Diagnosis, diagnose
    from l0anneal.evidence import evidence_anneal
    from l0anneal.evidence_result import EvidenceResult, EvidenceSchedule
    from l0anneal.kicks import kick_search
    from l0anneal.kicks_result import KickResult
    from l0anneal.linear_model import AnnealedSubsetRegressor
    from l0anneal.pace import AdaptiveSchedule
    from l0anneal.path_display import SubsetPathDisplay
    from l0anneal.population import population_anneal
    from l0anneal.population_result import PopulationResult
    from l0anneal.problem import SparseProblem
    from l0anneal.results import AnnealResult
    from l0anneal.schedules import Schedule
    from l0anneal.selection import SubsetPath, choose, subset_path
    from l0anneal.solving import solve
    from l0anneal.tempering import temper
    from l0anneal.tempering_result import RunTooShort, TemperResult

__all__ = [
    "AdaptiveSchedule",
    "AnnealResult",
    "AnnealedSparseCoder",
    "AnnealedSubsetRegressor",
    "Diagnosis",
    "EvidenceResult",
    "EvidenceSchedule",
    "KickResult",
    "PopulationResult",
    "RunTooShort",
    "Schedule",
    "SparseProblem",
    "SubsetPath",
    "SubsetPathDisplay",
    "TemperResult",
    "anneal",
    "choose",
    "diagnose",
    "ensembles",
    "evidence_anneal",
    "kick_search",
    "population_anneal",
    "solve",
    "sparse_encode",
    "subset_path",
    "temper",
]
__version__ = "0.1.0.dev0"

_HOMES = {
    "AdaptiveSchedule": "pace",
    "AnnealResult": "results",
    "AnnealedSubsetRegressor": "linear_model",
    "Diagnosis": "diagnosis",
    "AnnealedSparseCoder": "coding",
    "EvidenceResult": "evidence_result",
    "EvidenceSchedule": "evidence_result",
    "KickResult": "kicks_result",
    "PopulationResult": "population_result",
    "RunTooShort": "tempering_result",
    "Schedule": "schedules",
    "SparseProblem": "problem",
    "SubsetPath": "selection",
    "SubsetPathDisplay": "path_display",
    "TemperResult": "tempering_result",
    "anneal": "annealing",
    "choose": "selection",
    "evidence_anneal": "evidence",
    "kick_search": "kicks",
    "population_anneal": "population",
    "subset_path": "selection",
    "diagnose": "diagnosis",
    "solve": "solving",
    "sparse_encode": "coding",
    "temper": "tempering",
}


def __getattr__(name: str) -> Any:
    if name in ("ensembles", "theory"):
        return import_module(f"l0anneal.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'l0anneal' has no attribute {name!r}")
    value = getattr(import_module(f"l0anneal.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
