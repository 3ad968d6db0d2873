"""The public names, each listed once; ``__init__.py`` loads them from here."""

from . import baselines as baselines, theory as theory
from .diagnosis import Diagnosis as Diagnosis, diagnose as diagnose
from .estimators.criteria import choose_size as choose_size
from .estimators.display import SubsetPathDisplay as SubsetPathDisplay
from .estimators.path import SubsetPath as SubsetPath, subset_path as subset_path
from .estimators.sparse_coder import (
    AnnealedSparseCoder as AnnealedSparseCoder,
    sparse_encode as sparse_encode,
)
from .estimators.stability import StabilityResult as StabilityResult, stability as stability
from .estimators.subset_regressor import AnnealedSubsetRegressor as AnnealedSubsetRegressor
from .finemapping.finemap import FineMapping as FineMapping, finemap as finemap
from .finemapping.locus import Locus as Locus
from .problem import ensembles as ensembles
from .problem.sparse_problem import SparseProblem as SparseProblem
from .problem.summary_check import (
    SummaryCheck as SummaryCheck,
    check_summary as check_summary,
)
from .samplers.annealing.anneal import anneal as anneal
from .samplers.annealing.result import AnnealResult as AnnealResult
from .samplers.autocorrelation import autocorrelation_time as autocorrelation_time
from .samplers.evidence.anneal import evidence_anneal as evidence_anneal
from .samplers.evidence.draws import CredibleSet as CredibleSet, Draws as Draws
from .samplers.evidence.result import (
    EvidenceResult as EvidenceResult,
    EvidenceSchedule as EvidenceSchedule,
)
from .samplers.kicks.result import KickResult as KickResult
from .samplers.kicks.search import kick_search as kick_search
from .samplers.overlap import overlap as overlap
from .samplers.pace import AdaptiveSchedule as AdaptiveSchedule
from .samplers.population.anneal import population_anneal as population_anneal
from .samplers.population.result import PopulationResult as PopulationResult
from .samplers.schedule import Schedule as Schedule
from .samplers.tempering.result import RunTooShort as RunTooShort, TemperResult as TemperResult
from .samplers.tempering.temper import temper as temper
from .solving import solve as solve
from .sweeps.sweep import Sweep as Sweep

__version__: str
