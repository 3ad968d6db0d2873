"""Codes for signals where not even the Gram matrix of the dictionary fits into the time limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.gram import seconds_of_gram_matrix
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.greedy import Greedy
from l0anneal.samplers.run import Run

__all__ = ["greedy_codes", "has_time_for_gram"]

Floats = NDArray[np.float64]
BLOCK = 2**22  # products of signals with atoms at a time


def has_time_for_gram(run: Run, atoms: Floats) -> bool:
    """Whether the Gram matrix of the atoms will be ready before the time limit."""
    if run.time_limit is None:
        return True
    needed = seconds_of_gram_matrix(atoms.T, np.ones(atoms.shape[0]))
    return run.now() + needed < run.deadline


def greedy_codes(run: Run, Y: Floats, atoms: Floats, norms: Floats, k: int, codes: Floats) -> None:
    """Give each signal its best atom and, while there is time, up to k atoms chosen one by one.

    Signals for which there is no time keep the one atom. ``norms`` are those of the dictionary.
    """
    rows = max(1, BLOCK // atoms.shape[0])
    for start in range(0, len(Y), rows):
        products = Y[start : start + rows] @ atoms.T
        best = np.argmax(np.abs(products), axis=1)
        at = np.arange(len(best))
        codes[start + at, best] = products[at, best] / norms[best]
    took = 0.0
    for y, code in zip(Y, codes):
        began = run.now()
        if run.stopped or began + took > run.deadline:
            return
        greedy = Greedy(SparseProblem(atoms.T, y))
        while len(greedy.chosen) < k and not run.over and greedy.step():
            pass
        if greedy.chosen:
            chosen = np.sort(greedy.chosen)
            code[:] = 0.0
            code[chosen] = greedy.problem.least_squares(chosen)[0] / norms[chosen]
        run.advance(1, "no time to begin: greedy atoms")
        took = run.now() - began
