"""Codes for signals where not even the Gram matrix of the dictionary fits into the time limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from l0anneal.estimators.codes import Codes
from l0anneal.estimators.coding_blocks import Atoms, one_atom, parts_of
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


def greedy_codes(run: Run, Y: Floats, atoms: Atoms, k: int, tol: float | None = None) -> Codes:
    """Give each signal its best atom and, while there is time, up to k atoms chosen one by one.

    Signals for which there is no time keep the one atom. With a tolerance, no atoms are added once the
    squared error is within it.
    """
    codes = Codes.empty(len(Y), k)
    rows = max(1, BLOCK // len(atoms))
    for start in range(0, len(Y), rows):
        block = slice(start, start + rows)
        codes.replace(block, one_atom(Y[block], atoms))
    parts = parts_of(Y, tol) if tol is not None else np.zeros(len(Y))
    codes.sizes[parts >= 1.0] = 0
    took = 0.0
    for i, (y, part) in enumerate(zip(Y, parts)):
        began = run.now()
        if run.stopped or began + took > run.deadline:
            return codes
        if part >= 1.0:
            continue
        greedy = Greedy(SparseProblem(atoms.unit.T, y))
        enough = part * greedy.left
        while len(greedy.chosen) < k and greedy.left > enough and not run.over and greedy.step():
            pass
        if greedy.chosen:
            chosen = np.sort(greedy.chosen)
            coefs = greedy.problem.least_squares(chosen)[0] / atoms.norms[chosen]
            size = np.array([chosen.size])
            codes.replace(slice(i, i + 1), Codes(chosen[None], coefs[None], size))
        run.advance(1, "no time to begin: greedy atoms")
        took = run.now() - began
    return codes
