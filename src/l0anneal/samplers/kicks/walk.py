"""The walk of one chain over minima, which takes turns between two kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.moves.kick import kick
from l0anneal.engine.moves.ranked_kick import ranked_kick
from l0anneal.engine.moves.walk import (
    BEST,
    DESCENDING,
    FLOOR,
    HERE,
    KICKS,
    MADE,
    PHASE,
    RANKED,
    STRETCHES,
    WALKING,
)
from l0anneal.engine.ranking import empty_ranking
from l0anneal.engine.workspace import Workspace

__all__ = ["Walk"]

TRIAL = 8  # how often, in stretches between shakes, the walk that came less low is tried again


class Walk:
    """A walk over minima from the support of a workspace, which takes turns between two kernels.

    `kick` weighs all exchanges at each step, and `ranked_kick` those of one column, in less time. Which
    of them comes lower depends on the dictionary. After a shake, the one goes on that came lower on
    average between shakes, except every `TRIAL`-th time. `ranked_kick` needs the whole of G and a first
    support that is not near-singular; without them, `kick` goes on.
    """

    def __init__(
        self,
        workspace: Workspace,
        state: NDArray[np.uint64],
        levels: NDArray[np.float64],
        marks: NDArray[np.int64],
        at: NDArray[np.int64],
    ) -> None:
        self.workspace, self.state, self.levels = workspace, state, levels
        self.marks, self.at = marks, at
        self.best = workspace.support  # of the lowest minimum, unsorted
        self.ranked = False  # which of the two kernels goes on
        # how many stretches between shakes each has made, and the sum of the lowest energies there
        self.n_stretches, self.total = {False: 0, True: 0}, {False: 0.0, True: 0.0}
        problem = workspace.problem
        self.has_choice = problem.gram_is_whole
        self.ranking = empty_ranking(problem.n_columns if self.has_choice else 1, workspace.size)

    def go_on(self, stop: int) -> None:
        """Walk until ``stop`` kicks are made, or the floor is reached.

        It ends nowhere else, so that as many kicks always lead to the same place.
        """
        at, levels = self.at, self.levels
        while at[KICKS] < stop and levels[BEST] > levels[FLOOR]:
            stretches = at[STRETCHES]
            if self.ranked:
                self._go_on_ranked(stop)
            else:
                walk = kick, self.state, stop, levels, self.best, self.marks, at
                self.workspace.run(*walk)
            if at[STRETCHES] > stretches and self.has_choice:
                self.n_stretches[self.ranked] += 1
                self.total[self.ranked] += levels[HERE]
                self.ranked = self._is_ranked_next()

    def _is_ranked_next(self) -> bool:
        """Decide whether `ranked_kick` goes on after a shake."""
        n, total = self.n_stretches, self.total
        if self.workspace.is_near_singular:
            return False
        if n[True] == 0:
            return True
        better = bool(total[True] * n[False] < total[False] * n[True])
        return better if sum(n.values()) % TRIAL else not better

    def _go_on_ranked(self, stop: int) -> None:
        """Walk with `ranked_kick`, until it returns; make the descent that it asks for."""
        levels, at = self.levels, self.at
        walk = ranked_kick, self.state, stop, levels, self.marks, at, self.ranking
        self.workspace.run(*walk)
        if at[PHASE] != DESCENDING:
            return
        self.workspace.descend()
        at[MADE] += 1
        at[RANKED], at[PHASE] = 0, WALKING
        self.ranked = not self.workspace.is_near_singular
        if self.workspace.unit_energy < levels[BEST]:
            levels[BEST], self.best = self.workspace.unit_energy, self.workspace.support
        if levels[BEST] <= levels[FLOOR]:
            at[KICKS] += 1  # the one that has begun, so that as many kicks lead here again
