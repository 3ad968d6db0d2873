"""The best k columns of a dictionary for a signal, found by annealing; see the README."""

from l0anneal import ensembles
from l0anneal.annealing import anneal
from l0anneal.population import population_anneal
from l0anneal.population_result import PopulationResult
from l0anneal.problem import SparseProblem
from l0anneal.results import AnnealResult
from l0anneal.schedules import Schedule

__all__ = [
    "AnnealResult",
    "PopulationResult",
    "Schedule",
    "SparseProblem",
    "anneal",
    "ensembles",
    "population_anneal",
]
__version__ = "0.1.0.dev0"
