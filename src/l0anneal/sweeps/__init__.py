"""Sweeps of your own: instances, solvers and a grid, run as tasks and gathered to one dataset."""

from l0anneal.sweeps.sweep import Sweep

__all__ = ["Sweep"]
