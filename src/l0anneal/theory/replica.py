r"""Replica-symmetric thermodynamics of sparse approximation.

Supports c with ρN columns are weighted by exp(-μ E(c)), E(c) the least-squares distortion of the
support.  In the limit N → ∞ at fixed α = M/N the thermodynamics follows from two order parameters
(docs/theory.md, sections 1 to 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from l0anneal.theory.channel import Model
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.fixed_temperature import Ladder
from l0anneal.theory.parametric import Segment, curve
from l0anneal.theory.roots import brentq
from l0anneal.theory.states import Spinodals, State, Transition, dataset, observe

if TYPE_CHECKING:
    import xarray

BRANCHES = ("equilibrium", "cooled", "planted")
Branch = Literal["equilibrium", "cooled", "planted"]
Method = Literal["fixed temperature", "parametric"]

#: Temperatures served, in units of the variance of one component of y.
T_MIN, T_MAX = 1e-11, 1e6


@dataclass(frozen=True)
class ReplicaSymmetric:
    r"""Replica-symmetric theory of min ½‖y - Ax‖² over supports of ρN columns.

    y = A x̂ + ξ with A_ij ~ N(0, 1/N), M = αN rows, a fraction ρ̂ of the x̂_i drawn from N(0, σx²)
    and the others zero, ξ_i ~ N(0, σξ²).

    Parameters
    ----------
    alpha : float
        Measurements per column, M/N.
    rho : float
        Selected fraction of columns, 0 < ρ < α.
    rho_hat : float, default=0
        Fraction of columns that carry the planted signal.
    sigma_x2 : float, default=1
        Variance of the planted coefficients.
    sigma_xi2 : float, default=0
        Variance of the noise.

    Notes
    -----
    Three branches have names.  ``"cooled"`` is what slow cooling from high temperature follows,
    ``"planted"`` is what slow heating from the planted solution follows, ``"equilibrium"`` is the
    one of larger free entropy.  Without a transition all three are the same curve.

    Examples
    --------
    >>> theory = ReplicaSymmetric(0.75, 0.65, rho_hat=0.5)
    >>> print(f"{theory.transition().temperature:.6e}")
    2.941312e-04
    >>> state = theory.at(1e-4, branch="planted")
    >>> print(f"{state.distortion:.6e} {state.mse:.6e} {state.at_stable}")
    1.533523e-06 2.227350e-04 True
    """

    alpha: float
    rho: float
    rho_hat: float = 0.0
    sigma_x2: float = 1.0
    sigma_xi2: float = 0.0

    def __post_init__(self) -> None:
        """Validate, once and here."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value):
                raise ValueError(f"{field.name} must be a finite number, got {value!r}")
        if not self.alpha > 0.0:
            raise ValueError(f"alpha > 0 is needed, got alpha={self.alpha}")
        if not 0.0 < self.rho < 1.0:
            raise ValueError(f"0 < rho < 1 is needed, got rho={self.rho}")
        if not self.rho < self.alpha:
            raise ValueError(
                f"rho < alpha is needed (fewer selected columns than measurements), "
                f"got rho={self.rho}, alpha={self.alpha}"
            )
        if not 0.0 <= self.rho_hat <= 1.0:
            raise ValueError(f"0 <= rho_hat <= 1 is needed, got rho_hat={self.rho_hat}")
        if self.sigma_x2 < 0.0:
            raise ValueError(f"the variance sigma_x2 >= 0 is needed, got {self.sigma_x2}")
        if self.sigma_xi2 < 0.0:
            raise ValueError(f"the variance sigma_xi2 >= 0 is needed, got {self.sigma_xi2}")
        if not self.variance > 0.0:
            raise ValueError(
                "there is no signal and no noise at all: rho_hat*sigma_x2 + sigma_xi2 > 0 is needed"
            )

    @property
    def variance(self) -> float:
        """P = σξ² + ρ̂ σx², the variance of one component of y."""
        return self.sigma_xi2 + self.rho_hat * self.sigma_x2

    # -- the curve and its pieces ------------------------------------------------------------

    @cached_property
    def _model(self) -> Model:
        p = self.variance
        return Model(self.alpha, self.rho, self.rho_hat, self.sigma_x2 / p, self.sigma_xi2 / p)

    @cached_property
    def _segments(self) -> list[Segment]:
        return curve(self._model)

    @cached_property
    def _stable(self) -> list[Segment]:
        return [segment for segment in self._segments if segment.stable]

    @cached_property
    def _ladders(self) -> dict[str, Ladder]:
        points = self._stable[-1].points
        middle = points[len(points) // 2]
        start = (middle.temperature, np.log(np.array([middle.channel.delta, middle.channel.d_rhs])))
        return {
            "cooled": Ladder(self._model, planted=False),
            "planted": Ladder(self._model, planted=True, start=start),
        }

    def _segment(self, branch: str) -> Segment:
        return self._stable[0 if branch == "cooled" else -1]

    def _check_branch(self, branch: str) -> None:
        if branch not in BRANCHES:
            raise ValueError(f"branch must be one of {', '.join(BRANCHES)}, got {branch!r}")
        if branch == "planted" and not self._model.planted:
            raise ValueError("there is no planted branch: rho_hat*sigma_x2 = 0")

    def _check_range(self, temperature: float, branch: str) -> None:
        segment = self._segment(branch)
        t = temperature / self.variance
        if t >= segment.t_high:
            raise ValueError(
                f"the {branch} branch ends at its spinodal T={segment.t_high * self.variance:.7g}; "
                f"T={temperature:.7g} lies above it"
            )
        if t <= segment.t_low:
            raise ValueError(
                f"the {branch} branch ends at its spinodal T={segment.t_low * self.variance:.7g}; "
                f"T={temperature:.7g} lies below it"
            )

    # -- states ------------------------------------------------------------------------------

    def at(
        self,
        temperature: float,
        branch: Branch = "equilibrium",
        *,
        method: Method = "fixed temperature",
    ) -> State:
        """The state at a temperature.

        Parameters
        ----------
        temperature : float
            T = 1/μ, between 1e-11 and 1e6 times the variance of y.
        branch : {"equilibrium", "cooled", "planted"}
        method : {"fixed temperature", "parametric"}
            Two independent solvers.  The parametric one loses digits on a metastable branch at
            very small T, where T is a difference of nearly equal numbers.

        Raises
        ------
        ValueError
            Outside the range of the branch; the message names the spinodal.
        ConvergenceError
            When the solver does not reach its tolerance.
        """
        self._check_branch(branch)
        temperature = float(temperature)
        low, high = T_MIN * self.variance, T_MAX * self.variance
        if not low <= temperature <= high:
            raise ValueError(
                f"temperature must lie between {low:.3g} and {high:.3g} (1e-11 and 1e6 times the "
                f"variance of y), got {temperature}"
            )
        if method not in ("fixed temperature", "parametric"):
            raise ValueError(f"unknown method {method!r}")
        if branch == "equilibrium":
            return self._equilibrium(temperature, method)
        self._check_range(temperature, branch)
        return self._solve(temperature, branch, branch, method)

    def _equilibrium(self, temperature: float, method: Method) -> State:
        if len(self._stable) == 1:
            return self._solve(temperature, "cooled", "equilibrium", method)
        t = temperature / self.variance
        names = [n for n in ("cooled", "planted") if self._covers(self._segment(n), t)]
        states = [self._solve(temperature, n, "equilibrium", method) for n in names]
        return max(states, key=lambda state: state.free_entropy)

    @staticmethod
    def _covers(segment: Segment, t: float) -> bool:
        return segment.t_low < t < segment.t_high

    def _solve(self, temperature: float, branch: str, label: str, method: Method) -> State:
        t = temperature / self.variance
        if method == "parametric":
            point = self._segment(branch).at(t)
            return observe(point.channel, point.temperature, self.variance, label)
        name = "cooled" if len(self._stable) == 1 else branch
        solution, channel = self._ladders[name].solve(t)
        return observe(channel, t, self.variance, label, d=math.exp(solution[1]))

    def curve(
        self, temperatures: Iterable[float], branch: Branch = "equilibrium"
    ) -> xarray.Dataset:
        """States at many temperatures, as a dataset over the coordinate ``temperature``."""
        states = [self.at(float(t), branch) for t in np.asarray(list(temperatures), dtype=float)]
        return dataset(states, "temperature", {**asdict(self), "branch": branch})

    def branches(self, temperatures: Iterable[float] = ()) -> xarray.Dataset:
        """The whole parametric curve T(a): every branch, the unstable one too.

        Parameters
        ----------
        temperatures : iterable of float, optional
            Points to add on every branch that has this temperature.

        Returns
        -------
        xarray.Dataset
            Over ``point``, from the high-temperature end on, with the coordinates ``a``,
            ``temperature`` and ``branch`` ("cooled", "unstable", "planted", or "stable" for a
            third stable piece).
        """
        extra = [float(t) / self.variance for t in temperatures]
        states, a = [], []
        for segment in self._segments:
            name = "stable" if segment.stable else "unstable"
            if segment is self._stable[0]:
                name = "cooled"
            elif segment is self._stable[-1]:
                name = "planted"
            for point in segment.with_temperatures(extra):
                # The end points at T = 0 are limits, not states.
                if point.temperature > 1e-3 * T_MIN:
                    states.append(observe(point.channel, point.temperature, self.variance, name))
                    a.append(point.channel.a / self.variance)
        data = dataset(states, "point", asdict(self))
        return data.assign_coords(
            a=("point", np.array(a)),
            temperature=("point", np.array([s.temperature for s in states])),
            branch=("point", np.array([s.branch for s in states])),
        )

    # -- landmarks ---------------------------------------------------------------------------

    def spinodals(self) -> Spinodals:
        """Where the cooled branch ends on cooling and the planted one on heating."""
        if len(self._stable) == 1:
            return Spinodals(None, None)
        low, high = self._stable[0].t_low, self._stable[-1].t_high
        return Spinodals(
            low * self.variance if low > 0.0 else None,
            high * self.variance if math.isfinite(high) else None,
        )

    @cached_property
    def _memo(self) -> dict[tuple[str, str], State | None]:
        """Landmarks found so far; each takes a search."""
        return {}

    @cached_property
    def _transition(self) -> Transition | None:
        if len(self._stable) == 1:
            return None
        low = max(self._stable[0].t_low, self._stable[-1].t_low) * (1.0 + 1e-9)
        high = min(self._stable[0].t_high, self._stable[-1].t_high) * (1.0 - 1e-9)
        if not low < high:
            return None

        def advantage(log_t: float) -> float:
            t = math.exp(log_t) * self.variance
            planted = self._solve(t, "planted", "planted", "fixed temperature")
            return (
                planted.free_entropy
                - self._solve(t, "cooled", "cooled", "fixed temperature").free_entropy
            )

        top = math.log(high)
        bottom = math.log(low) if low > 0.0 else top - 2.0
        while low == 0.0 and advantage(bottom) <= 0.0 and bottom > math.log(T_MIN) + 2.0:
            bottom -= 2.0
        if advantage(bottom) <= 0.0 or advantage(top) >= 0.0:
            return None
        t = math.exp(brentq(advantage, bottom, top, xtol=1e-13, rtol=1e-13)) * self.variance
        return Transition(
            t,
            self._solve(t, "cooled", "cooled", "fixed temperature"),
            self._solve(t, "planted", "planted", "fixed temperature"),
        )

    def transition(self) -> Transition | None:
        """The first-order transition, where both branches have the same g; None without one."""
        return self._transition

    def freezing(self, branch: Branch = "cooled") -> State | None:
        """The state at which the entropy of a branch vanishes; None when it stays positive.

        None also where that happens below 1e-140 times the variance of y.

        Below it the replica-symmetric state has fewer than one support, so the distortion stays
        at its value here.

        Examples
        --------
        >>> frozen = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1).freezing()
        >>> print(f"T={frozen.temperature:.6f} eps={frozen.distortion:.8f} {frozen.at_stable}")
        T=0.029344 eps=0.00905209 False
        """
        self._check_branch(branch)
        if branch == "equilibrium":
            # The planted branch takes over at the transition, so it is the one that may freeze.
            branch = "planted" if self._transition is not None else "cooled"
        if ("freezing", branch) not in self._memo:
            self._memo["freezing", branch] = self._find_freezing(branch)
        return self._memo["freezing", branch]

    def _find_freezing(self, branch: str) -> State | None:
        segment = self._segment(branch)

        def entropy(log_t: float) -> float:
            t = math.exp(log_t) * self.variance
            return self._solve(t, branch, branch, "fixed temperature").entropy

        high = math.log(min(segment.t_high * (1.0 - 1e-9), 1e3))
        floor = math.log(max(segment.t_low * (1.0 + 1e-9), T_MIN))
        low = high
        while low > floor:
            low = max(low - 1.0, floor)
            if entropy(low) < 0.0:
                t = math.exp(brentq(entropy, low, high, xtol=1e-14, rtol=1e-14)) * self.variance
                return self._solve(t, branch, branch, "fixed temperature")
            high = low
        if segment.cold_end != "zero":
            return None
        # A branch that ends at T = 0 with a D = 1 freezes for certain: s falls as ½(α-ρ) log T.
        guess = floor - 2.0 * entropy(floor) / (self.alpha - self.rho)
        if guess < math.log(1e-140):
            return None
        t = math.exp(brentq(entropy, guess - 1.0, floor, xtol=1e-14, rtol=1e-14)) * self.variance
        return self._solve(t, branch, branch, "fixed temperature")

    def at_instability(self, branch: Branch = "cooled") -> State | None:
        """The warmest state on a branch below which replica symmetry is AT-unstable, or None."""
        self._check_branch(branch)
        if branch == "equilibrium":
            branch = "planted" if self._transition is not None else "cooled"
        if ("instability", branch) not in self._memo:
            self._memo["instability", branch] = self._find_instability(branch)
        return self._memo["instability", branch]

    def _find_instability(self, branch: str) -> State | None:
        segment = self._segment(branch)

        def excess(log_t: float) -> float:
            t = math.exp(log_t) * self.variance
            return self._solve(t, branch, branch, "fixed temperature").at_ratio - 1.0

        low = high = math.log(min(segment.t_high * (1.0 - 1e-9), 1e3))
        floor = math.log(max(segment.t_low * (1.0 + 1e-9), T_MIN))
        while low > floor:
            low = max(low - 0.5, floor)
            if excess(low) > 0.0:
                if excess(high) > 0.0:
                    raise ConvergenceError("replica symmetry is unstable at the hot end already")
                t = math.exp(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)) * self.variance
                return self._solve(t, branch, branch, "fixed temperature")
            high = low
        return None
