"""The problem to solve, a dictionary and a signal, and the sources of both."""

from l0anneal.problem import ensembles
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["SparseProblem", "ensembles"]
