"""Compile the kernels of evidence annealing before its clock starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from l0anneal.engine.assistant import run_steps
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.evidence_flip import evidence_flip
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.rng import stream
from l0anneal.engine.warm_up import tiny_problem, workspace_steps
from l0anneal.engine.workspace import Workspace
from l0anneal.samplers.evidence.proposal import Proposal

__all__ = ["warm_up_evidence"]


@cache
def warm_up_evidence() -> None:
    """Compile the kernels of evidence annealing, or load them, once per process."""
    run_steps(_steps)


def _steps() -> list[Callable[[], object]]:
    kernels = (evidence_flip, evidence_flip_direct)
    return [*workspace_steps(None), *(partial(_propose_nothing, kernel) for kernel in kernels)]


def _propose_nothing(kernel: Callable[..., int]) -> None:
    workspace = Workspace(tiny_problem(), 2)
    state = stream(np.random.SeedSequence(0))
    n = workspace.problem.n_columns
    prior = (np.zeros(n + 1), np.zeros(n))
    noise = (1.0, 1.0, 0.0, 0.0)
    slab = (0.0, np.zeros(n), 2)
    law = (*noise, *prior, *Proposal.of(np.ones(n)), *slab)
    workspace.run(kernel, state, *law, 0, new_tally())
