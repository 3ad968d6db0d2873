"""Annealing schedules: inverse temperatures, and the number of sweeps at each of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.checks import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Schedule"]


@dataclass(frozen=True)
class Schedule:
    """An immutable list of inverse temperatures, and the number of sweeps at each of them.

    Iterate over a schedule to get the pairs (μ_a, τ_a). Most schedules are made by one of the class
    methods: `automatic`, `paper`, `geometric`, `logarithmic` or `custom`.

    Parameters
    ----------
    mu : tuple of float
        Inverse temperatures μ = 1/T, in the order of the run; a run cools where they ascend and
        heats where they descend. Their unit is one over that of the energy, ½‖y − Ax‖².
    tau : tuple of int
        Number of sweeps at each temperature; a sweep is N proposals.
    name : str
        A name for plots and summaries.

    See Also
    --------
    AdaptiveSchedule : Temperatures that are chosen during the run.
    anneal : Follow a schedule.

    Examples
    --------
    >>> from l0anneal import Schedule
    >>> Schedule.paper()
    Schedule(100 temperatures, μ = 1e-08 … 1.25e+04, 500 sweeps, "paper")
    >>> Schedule.custom([0.0, 1.0, 10.0], 5).n_sweeps
    15
    """

    mu: tuple[float, ...]
    tau: tuple[int, ...]
    name: str = "custom"

    def __post_init__(self) -> None:
        if any(tau != math.floor(tau) for tau in self.tau if math.isfinite(tau)):
            raise ValueError("sweeps are counted: each tau must be an integer")
        object.__setattr__(self, "mu", tuple(float(mu) for mu in self.mu))
        object.__setattr__(self, "tau", tuple(int(tau) for tau in self.tau))
        if len(self.mu) == 0 or len(self.mu) != len(self.tau):
            raise ValueError(
                "a schedule needs as many sweep counts as inverse temperatures, at least one; "
                f"got {len(self.mu)} of mu and {len(self.tau)} of tau"
            )
        if not all(math.isfinite(mu) and mu >= 0 for mu in self.mu):
            raise ValueError("inverse temperatures must be finite and ≥ 0")
        if not all(tau >= 1 for tau in self.tau):
            raise ValueError("each temperature needs at least one sweep")

    # ------------------------------------------------------------ constructors

    @classmethod
    def paper(cls, n: int = 100, tau: int = 5, mu0: float = 1e-8, r: float = 1.1) -> Schedule:
        """The paper's schedule: μ_a = μ0 + r^(a−1) − 1, a = 1, ..., n, with τ sweeps at each."""
        return cls._make(mu0 + (r ** np.arange(check_integer("n", n, 1)) - 1.0), tau, "paper")

    @classmethod
    def geometric(cls, mu_min: float, mu_max: float, n: int = 100, tau: int = 5) -> Schedule:
        """Inverse temperatures from mu_min to mu_max in equal ratios."""
        if not 0 < mu_min <= mu_max < math.inf:
            raise ValueError(f"needs 0 < mu_min ≤ mu_max; got {mu_min} and {mu_max}")
        return cls._make(np.geomspace(mu_min, mu_max, check_integer("n", n, 1)), tau, "geometric")

    @classmethod
    def logarithmic(cls, amplitude: float, n: int = 100, tau: int = 5) -> Schedule:
        """The slow schedule with Geman and Geman's guarantee: T(t) ≥ amplitude / log(t + 2).

        The clock t counts sweeps, and each temperature is the bound at the first of its τ sweeps,
        μ_a = log((a − 1) τ + 2) / amplitude, so that the inequality holds at all of them.
        """
        if not 0 < amplitude < math.inf:
            raise ValueError(f"amplitude must be positive and finite; got {amplitude}")
        steps = np.arange(check_integer("n", n, 1)) * check_integer("tau", tau, 1)
        return cls._make(np.log(steps + 2.0) / amplitude, tau, "logarithmic")

    @classmethod
    def custom(cls, mu: ArrayLike, tau: ArrayLike) -> Schedule:
        """Any list of μ, with one ``tau`` for all of them or one for each."""
        return cls._make(np.atleast_1d(np.asarray(mu, dtype=np.float64)), tau, "custom")

    @classmethod
    def automatic(
        cls,
        problem: SparseProblem,
        n_nonzero: int,
        *,
        n: int = 100,
        tau: int = 5,
    ) -> Schedule:
        """Return a schedule whose hot and cold ends are derived from the problem.

        At the hot end a typical exchange on a random support costs half the temperature. At the
        cold end a cheap exchange at a swap-local minimum (the lowest thousandth of those that cost
        anything) costs twenty times the temperature. Between them, neighbouring temperatures have
        equal ratios. Before the hot end, a tenth of the inverse temperatures are evenly spaced from
        μ = 0, so that entropies can be integrated. Both ends scale as 1/‖y‖², so that multiplying A
        or y by a constant does not change the supports.
        """
        from l0anneal.samplers.temperature_range import automatic_temperatures

        k = problem.check_size(n_nonzero)
        mu = automatic_temperatures(problem, k, check_integer("n", n, 1))
        return cls._make(mu, tau, "automatic")

    @classmethod
    def _make(cls, mu: NDArray[np.floating], tau: Any, name: str) -> Schedule:
        if mu.ndim != 1 or np.ndim(tau) > 1:
            raise ValueError("a schedule is a list: mu and tau must have one dimension")
        taus = np.broadcast_to(np.asarray(tau), mu.shape) if np.ndim(tau) == 0 else np.asarray(tau)
        if not np.issubdtype(taus.dtype, np.integer):
            raise ValueError(f"tau counts sweeps and must be an integer; got {tau!r}")
        return cls(tuple(float(m) for m in mu), tuple(int(s) for s in taus), name)

    def reversed(self) -> Schedule:
        """Return the same temperatures in the opposite order: from cold to hot.

        With ``initial_support``, `anneal` then heats from a given support.
        """
        return Schedule(self.mu[::-1], self.tau[::-1], f"{self.name}, reversed")

    def there_and_back(self) -> Schedule:
        """Return a schedule that cools along this one and heats along it again, for hysteresis.

        Each chain is heated from where it was cooled to. The first half of the steps is the cooled
        branch and the second half, in the opposite order, the heated one.

        Examples
        --------
        >>> from l0anneal import Schedule
        >>> Schedule.custom([0.0, 1.0, 10.0], 5).there_and_back().mu
        (0.0, 1.0, 10.0, 10.0, 1.0, 0.0)
        """
        back = self.reversed()
        return Schedule(self.mu + back.mu, self.tau + back.tau, f"{self.name}, there and back")

    # ------------------------------------------------------------ reading

    def __len__(self) -> int:
        return len(self.mu)

    def __iter__(self) -> Iterator[tuple[float, int]]:
        return iter(zip(self.mu, self.tau))

    def __repr__(self) -> str:
        return (
            f"Schedule({len(self)} temperature{'s' if len(self) > 1 else ''}, "
            f"μ = {self.mu[0]:.3g} … {self.mu[-1]:.3g}, {self.n_sweeps} sweeps, "
            f'"{self.name}")'
        )

    @property
    def cools(self) -> bool:
        """Whether the temperature never rises."""
        return all(a <= b for a, b in zip(self.mu, self.mu[1:]))

    @property
    def n_sweeps(self) -> int:
        """The total number of sweeps at all temperatures."""
        return sum(self.tau)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw temperature against the number of sweeps."""
        from l0anneal.samplers.plotting import plot_schedule

        return plot_schedule(self, ax)

    # ------------------------------------------------------------ JSON

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` is the exact inverse."""
        return {"name": self.name, "mu": list(self.mu), "tau": list(self.tau)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Schedule:
        """Make a schedule from what `to_dict` returned."""
        try:
            return cls(tuple(data["mu"]), tuple(data["tau"]), str(data["name"]))
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError('a schedule is {"name": ..., "mu": [...], "tau": [...]}') from error

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schedule to a JSON file."""
        Path(path).write_text(json.dumps(self.to_dict()), encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schedule:
        """Read a schedule that `save` wrote."""
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{path}: not a saved schedule ({error})") from error
