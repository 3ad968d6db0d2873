"""What is to be solved: a dictionary and a signal, and where they come from."""

from l0anneal.problem import ensembles
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["SparseProblem", "ensembles"]
