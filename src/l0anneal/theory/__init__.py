"""Replica theory: curves and numbers to compare with a run, in the limit of many columns."""

from l0anneal.theory import bayes, condensation, l1, rsb
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.paper import PaperNumber, paper_numbers
from l0anneal.theory.phases import Metastability, metastability, phase_diagram
from l0anneal.theory.plotting import plot_curves, plot_phase_diagram
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.states import Spinodals, State, Transition

__all__ = [
    "ConvergenceError",
    "Metastability",
    "PaperNumber",
    "ReplicaSymmetric",
    "Spinodals",
    "State",
    "Transition",
    "bayes",
    "condensation",
    "l1",
    "metastability",
    "paper_numbers",
    "phase_diagram",
    "plot_curves",
    "plot_phase_diagram",
    "rsb",
]
