"""Compile the kernels of evidence annealing before its clock starts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.evidence_flip import evidence_flip
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.rng import stream
from l0anneal.engine.warm_up import tiny_problem, warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.samplers.evidence.proposal import Proposal

__all__ = ["warm_up_evidence"]


@cache
def warm_up_evidence() -> None:
    """Compile the kernels that only this sampler uses."""
    warm_up(None)
    workspace = Workspace(tiny_problem(), 2)
    state = stream(np.random.SeedSequence(0))
    n = workspace.problem.n_columns
    prior = (np.zeros(n + 1), np.zeros(n))
    law: tuple[Any, ...] = (
        1.0,
        1.0,
        0.0,
        0.0,
        *prior,
        *Proposal.of(np.ones(n)),
        0.0,
        np.zeros(n),
        2,
    )
    for kernel in (evidence_flip, evidence_flip_direct):
        workspace.run(kernel, state, *law, 4, new_tally())
