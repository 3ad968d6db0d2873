"""The branches of one model: which exist, where they end, and their states.

Two solvers that check each other are brought together here: the parametric curve, which knows all
branches and their ends, and the ladders of temperatures, which follow one branch each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from l0anneal.theory.channel import Model
from l0anneal.theory.fixed_temperature import Ladder
from l0anneal.theory.parametric import Segment, curve
from l0anneal.theory.states import Spinodals, State, observe

__all__ = ["BRANCHES", "T_MAX", "T_MIN", "Branch", "Branches", "Method"]

BRANCHES = ("equilibrium", "cooled", "planted")
Branch = Literal["equilibrium", "cooled", "planted"]
Method = Literal["fixed temperature", "parametric"]

#: Range of temperatures that the solvers accept, in units of the variance of one component of y.
T_MIN, T_MAX = 1e-11, 1e6


@dataclass(frozen=True)
class Branches:
    """The cooled and the planted branch; without a transition both are the same.

    Temperatures and states are in the caller's units, segments and ladders in units of ``variance``.
    """

    model: Model
    variance: float

    @cached_property
    def segments(self) -> list[Segment]:
        """All segments of the parametric curve, from the high-temperature end to the planted end."""
        return curve(self.model)

    @cached_property
    def stable(self) -> list[Segment]:
        """The stable segments, of which the first is the cooled branch and the last the planted one."""
        return [segment for segment in self.segments if segment.stable]

    @property
    def coincide(self) -> bool:
        """Whether the cooled and the planted branch are one."""
        return len(self.stable) == 1

    @cached_property
    def ladders(self) -> dict[str, Ladder]:
        """The solvers at fixed temperature, by branch."""
        points = self.stable[-1].points
        middle = points[len(points) // 2]
        start = (middle.temperature, np.log(np.array([middle.channel.delta, middle.channel.d_rhs])))
        return {
            "cooled": Ladder(self.model, planted=False),
            "planted": Ladder(self.model, planted=True, start=start),
        }

    def segment(self, branch: str) -> Segment:
        """Return the segment of the cooled or of the planted branch."""
        return self.stable[0 if branch == "cooled" else -1]

    def state(
        self,
        temperature: float,
        branch: str,
        method: Method = "fixed temperature",
        label: str | None = None,
    ) -> State:
        """Return the state of the cooled or of the planted branch, named ``label`` or by the branch."""
        t = temperature / self.variance
        label = branch if label is None else label
        if method == "parametric":
            point = self.segment(branch).at(t)
            return observe(point.channel, point.temperature, self.variance, label)
        name = "cooled" if self.coincide else branch
        solution, channel = self.ladders[name].solve(t)
        return observe(channel, t, self.variance, label, d=math.exp(solution[1]))

    def equilibrium(self, temperature: float, method: Method) -> State:
        """Return the state with the largest free entropy."""
        t = temperature / self.variance
        names = ["cooled"]
        if not self.coincide:
            names = [
                name
                for name in ("cooled", "planted")
                if self.segment(name).t_low < t < self.segment(name).t_high
            ]
        states = [self.state(temperature, name, method, "equilibrium") for name in names]
        return max(states, key=lambda state: state.free_entropy)

    def spinodals(self) -> Spinodals:
        """Return where the cooled branch ends on cooling and the planted branch on heating."""
        if self.coincide:
            return Spinodals(None, None)
        low, high = self.stable[0].t_low, self.stable[-1].t_high
        return Spinodals(
            low * self.variance if low > 0.0 else None,
            high * self.variance if math.isfinite(high) else None,
        )
