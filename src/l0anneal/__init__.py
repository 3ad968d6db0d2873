"""The best k columns of a dictionary for a signal, found by annealing; see the README."""

from l0anneal import ensembles
from l0anneal.annealing import anneal
from l0anneal.evidence import evidence_anneal
from l0anneal.evidence_result import EvidenceResult
from l0anneal.population import population_anneal
from l0anneal.population_result import PopulationResult
from l0anneal.problem import SparseProblem
from l0anneal.results import AnnealResult
from l0anneal.schedules import Schedule
from l0anneal.tempering import temper
from l0anneal.tempering_result import RunTooShort, TemperResult

__all__ = [
    "AnnealResult",
    "EvidenceResult",
    "PopulationResult",
    "RunTooShort",
    "Schedule",
    "SparseProblem",
    "TemperResult",
    "anneal",
    "ensembles",
    "evidence_anneal",
    "population_anneal",
    "temper",
]
__version__ = "0.1.0.dev0"
