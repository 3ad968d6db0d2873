"""Decide on the next temperature and its sweeps: from a list, by fluctuations, or by the clock.

An annealing asks its pace before each temperature. The pace may use the energies measured so far.
The steps that were made are recorded as a `Schedule`, with which the run can be replayed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.checks import check_integer
from l0anneal.samplers.schedule import Schedule

__all__ = [
    "AdaptivePace",
    "AdaptiveSchedule",
    "FixedPace",
    "Pace",
    "TimedPace",
    "interpolated",
]

Floats = NDArray[np.float64]
Step = tuple[float, int]


@dataclass(frozen=True)
class AdaptiveSchedule:
    """A schedule that is chosen during the run: it cools slowly where the energy fluctuates.

    Each step in μ, the inverse temperature, is ``speed`` divided by the standard deviation of the
    energy, so that the energies at neighbouring temperatures overlap equally (constant
    thermodynamic speed). The standard deviation is estimated in two ways, which agree in
    equilibrium because −dE/dμ = var E: from the sweeps of all chains at the last temperature, and
    from the fall of the mean energy since the temperature before. The larger estimate is used.

    Parameters
    ----------
    speed : float
        Length of a step in units of one over the energy's standard deviation. A lower speed takes
        longer and finds better supports.
    tau : int
        Number of sweeps at each temperature; a sweep is N proposals.
    mu_min, mu_max : float, optional
        The first inverse temperature after μ = 0 and the last one; by default those of
        `Schedule.automatic`.

    See Also
    --------
    Schedule : Temperatures that are known in advance.
    anneal : Follow a schedule.

    Examples
    --------
    >>> from l0anneal import AdaptiveSchedule, anneal, ensembles
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = anneal(instance.problem, 6, AdaptiveSchedule(), random_state=0)
    >>> again = anneal(instance.problem, 6, result.schedule, random_state=0)
    >>> again.energy == result.energy
    True
    """

    speed: float = 1.0
    tau: int = 5
    mu_min: float | None = None
    mu_max: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.speed < math.inf:
            raise ValueError(f"speed must be positive and finite; got {self.speed!r}")
        check_integer("tau", self.tau, 1)
        for name in ("mu_min", "mu_max"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive and finite; got {value!r}")
        if self.mu_min and self.mu_max and self.mu_min > self.mu_max:
            raise ValueError(f"needs mu_min ≤ mu_max; got {self.mu_min} and {self.mu_max}")


class Pace(Protocol):
    """Decides on the next step from the energies of the last one, by chain and sweep."""

    name: str

    def next(self, energies: Floats | None) -> Step | None:
        """Return (μ, τ), or None at the end."""
        ...


class FixedPace:
    """The steps of a schedule, as listed."""

    def __init__(self, schedule: Schedule) -> None:
        self.steps, self.at, self.name = list(schedule), 0, schedule.name

    def next(self, energies: Floats | None) -> Step | None:
        if self.at == len(self.steps):
            return None
        self.at += 1
        return self.steps[self.at - 1]

    def range(self) -> Floats:
        """Return the inverse temperatures of all steps."""
        return np.array([mu for mu, _ in self.steps])

    def ahead(self) -> Schedule | None:
        """Return the steps that are left."""
        rest = self.steps[self.at :]
        return (
            Schedule(tuple(mu for mu, _ in rest), tuple(tau for _, tau in rest)) if rest else None
        )

    def skip(self, n: int) -> None:
        """Leave out n steps, but never the last."""
        self.at = max(self.at, min(self.at + n, len(self.steps) - 1))


class AdaptivePace:
    """The steps of an `AdaptiveSchedule` between two given inverse temperatures."""

    name = "adaptive"
    LONGEST = 2.0  # no step multiplies μ by more than this, so that it cannot skip a transition

    def __init__(self, spec: AdaptiveSchedule, mu_min: float, mu_max: float) -> None:
        self.spec, self.mu_min, self.mu_max = spec, mu_min, mu_max
        self.mu = self.before = -1.0
        self.variance = math.nan
        self.mean = math.nan
        self.skipped = 1.0

    def next(self, energies: Floats | None) -> Step | None:
        if self.mu < 0:
            self.mu = 0.0
            return 0.0, self.spec.tau
        if self.mu >= self.mu_max:
            return None
        assert energies is not None
        self._learn(energies)
        deviation = math.sqrt(self.variance)
        step = self.skipped * self.spec.speed / deviation if deviation > 0 else math.inf
        longest = max(self.LONGEST * self.mu, self.mu_min)
        self.before, self.mu = self.mu, min(self.mu + step, longest, self.mu_max)
        self.skipped = 1.0
        return self.mu, self.spec.tau

    def _learn(self, energies: Floats) -> None:
        mean = float(energies.mean())
        within = float(energies.var(axis=1, ddof=1).mean()) if energies.shape[1] > 1 else 0.0
        fall = (self.mean - mean) / (self.mu - self.before) if self.before >= 0 else 0.0
        variance = max(within, fall)
        # the few sweeps of one temperature make a rough estimate: average it with the last one
        old = self.variance if math.isfinite(self.variance) else variance
        self.variance = (
            math.sqrt(old * variance) if old > 0 and variance > 0 else max(old, variance) / 2
        )
        self.mean = mean

    def range(self) -> Floats:
        """Return inverse temperatures that cover the range of the steps."""
        return np.geomspace(self.mu_min, self.mu_max, 100)

    def ahead(self) -> Schedule | None:
        """Guess the steps that are left, as if all of them had the ratio of the last one."""
        if self.mu >= self.mu_max:
            return None
        now = max(self.mu, self.mu_min)
        ratio = now / self.before if self.before > 0 else 1.1
        n = max(1, math.ceil(math.log(self.mu_max / now) / math.log(min(max(ratio, 1.01), 2.0))))
        return Schedule.geometric(now, self.mu_max, n, self.spec.tau)

    def skip(self, n: int) -> None:
        """Make the next step as long as n + 1 steps."""
        self.skipped = n + 1.0


class TimedPace:
    """Another pace, with its sweeps scaled so that the run ends at a deadline.

    ``profile`` gives the seconds of a sweep at μ, as a rehearsal measured them, and is corrected
    during the run. With ``fill``, sweeps may be added as well as removed. If there is no time for
    one sweep at each temperature, temperatures are left out. ``cut`` tells whether the pace was
    changed.
    """

    def __init__(
        self,
        pace: FixedPace | AdaptivePace,
        deadline: float,
        profile: Callable[[Floats], Floats],
        fill: bool,
        clock: Callable[[], float],
    ) -> None:
        self.pace, self.deadline, self.profile, self.fill = pace, deadline, profile, fill
        self.clock, self.name = clock, f"{pace.name}, timed"
        self.last: tuple[float, float] | None = None  # when the last step began, what was expected
        self.correction = 1.0
        self.cut = fill

    def next(self, energies: Floats | None) -> Step | None:
        now = self.clock()
        if self.last is not None and self.last[1] > 0:
            measured = (now - self.last[0]) / self.last[1]
            self.correction *= math.sqrt(min(max(measured, 0.1), 10.0))
        left = self.deadline - now
        ahead = self.pace.ahead()
        if ahead is None:
            return None
        if left <= 0 and self.last is not None:
            self.cut = True
            return None
        left = max(left, 1e-9)  # one step is always made
        expected = self.correction * self.profile(np.array(ahead.mu)) * np.array(ahead.tau)
        factor = left / max(float(expected.sum()), 1e-12)
        least = self.correction * float(self.profile(np.array(ahead.mu)).sum())  # one sweep at each
        if least > left:
            self.cut = True
            self.pace.skip(math.ceil(least / left) - 1)
        step = self.pace.next(energies)
        if step is None:
            return None
        mu, tau = step
        sweeps = max(1, math.floor(tau * factor))
        if not self.fill:
            sweeps = min(sweeps, tau)
            self.cut |= sweeps < tau
        self.last = now, sweeps * self.correction * float(self.profile(np.array([mu]))[0])
        return mu, sweeps


def interpolated(mus: Floats, seconds: Floats) -> Callable[[Floats], Floats]:
    """Return seconds per sweep as a function of μ, linear between those that were measured."""

    def profile(mu: Floats) -> Floats:
        return np.asarray(np.interp(mu, mus, seconds))

    return profile
