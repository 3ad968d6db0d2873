"""Replica theory: the analytic curves and numbers that stand beside a run."""

from . import bayes, l1, rsb
from .errors import ConvergenceError
from .paper import PaperNumber, paper_numbers
from .phases import Metastability, metastability, phase_diagram
from .plotting import plot_curves, plot_phase_diagram
from .replica import ReplicaSymmetric
from .states import Spinodals, State, Transition

__all__ = [
    "ConvergenceError",
    "Metastability",
    "PaperNumber",
    "ReplicaSymmetric",
    "Spinodals",
    "State",
    "Transition",
    "bayes",
    "l1",
    "metastability",
    "paper_numbers",
    "phase_diagram",
    "plot_curves",
    "plot_phase_diagram",
    "rsb",
]
