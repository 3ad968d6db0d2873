"""Replica theory: the analytic curves and numbers that stand beside a run."""

from . import bayes, l1
from .errors import ConvergenceError
from .replica import ReplicaSymmetric
from .states import Spinodals, State, Transition

__all__ = [
    "ConvergenceError",
    "ReplicaSymmetric",
    "Spinodals",
    "State",
    "Transition",
    "bayes",
    "l1",
]
