r"""Replica-symmetric thermodynamics of sparse approximation.

A support c of ρN columns has the weight exp(-μ E(c)), where E(c) = min_x ½‖y - A(c∘x)‖².  In the
limit N → ∞ at fixed α = M/N, the thermodynamics follows from two order parameters (docs/theory.md,
sections 1 to 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike

from l0anneal.theory.branches import BRANCHES, T_MAX, T_MIN, Branch, Branches, Method
from l0anneal.theory.channel import Model
from l0anneal.theory.checks import (
    check_fraction,
    check_selection,
    check_signal_or_noise,
    check_variance,
)
from l0anneal.theory.landmarks import find_freezing, find_instability, find_transition
from l0anneal.theory.states import Spinodals, State, Transition, dataset, observe

if TYPE_CHECKING:
    import xarray

__all__ = ["ReplicaSymmetric"]


@dataclass(frozen=True)
class ReplicaSymmetric:
    r"""Replica-symmetric theory of min ½‖y - Ax‖² over supports of ρN columns.

    The problem is y = A x̂ + ξ with M = αN rows, A_ij ~ N(0, 1/N) and ξ_i ~ N(0, σξ²).  A fraction
    ρ̂ of the x̂_i is drawn from N(0, σx²); the others are zero.

    Parameters
    ----------
    alpha : float
        Measurements per column, M/N.
    rho : float
        Fraction of columns in the support, 0 < ρ < α.
    rho_hat : float, default=0
        Fraction of columns in the planted support.
    sigma_x2 : float, default=1
        Variance of the planted coefficients.
    sigma_xi2 : float, default=0
        Variance of the noise.

    See Also
    --------
    l0anneal.theory.State : What ``at`` returns.
    l0anneal.theory.metastability : Where a trap exists.
    l0anneal.theory.rsb.ground_state : The lowest distortion with one step of symmetry breaking.
    l0anneal.theory.plot_curves : Draw the curves.
    l0anneal.ensembles.planted : Draw the problems of this theory.

    Notes
    -----
    There are three branches.  Slow cooling from high temperature follows ``"cooled"``, slow heating
    from the planted solution follows ``"planted"``, and ``"equilibrium"`` is the one of these with
    the larger free entropy.  Without a transition all three are the same curve.

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
        """Validate the parameters."""
        check_selection(self.alpha, self.rho)
        check_fraction("rho_hat", self.rho_hat)
        check_variance("sigma_x2", self.sigma_x2)
        check_variance("sigma_xi2", self.sigma_xi2)
        check_signal_or_noise(self.rho_hat, self.sigma_x2, self.sigma_xi2)

    @property
    def variance(self) -> float:
        """P = σξ² + ρ̂ σx², the variance of one component of y."""
        return self.sigma_xi2 + self.rho_hat * self.sigma_x2

    # -- the branches ------------------------------------------------------------------------

    @cached_property
    def model(self) -> Model:
        """The parameters in units of :attr:`variance`, as the solvers use them."""
        p = self.variance
        return Model(self.alpha, self.rho, self.rho_hat, self.sigma_x2 / p, self.sigma_xi2 / p)

    @cached_property
    def _branches(self) -> Branches:
        return Branches(self.model, self.variance)

    def _check_branch(self, branch: str) -> None:
        if branch not in BRANCHES:
            raise ValueError(f"branch must be one of {', '.join(BRANCHES)}; got {branch!r}")
        if branch == "planted" and not self.model.planted:
            raise ValueError(
                f"there is no planted branch without a planted signal; got rho_hat={self.rho_hat!r} "
                f"and sigma_x2={self.sigma_x2!r}. Use the cooled branch"
            )

    def _check_range(self, temperature: float, branch: str) -> None:
        segment = self._branches.segment(branch)
        t = temperature / self.variance
        if t >= segment.t_high:
            raise ValueError(
                f"the {branch} branch ends at its spinodal T={segment.t_high * self.variance:.7g}; "
                f"got T={temperature:.7g}. Choose a lower temperature or another branch"
            )
        if t <= segment.t_low:
            raise ValueError(
                f"the {branch} branch ends at its spinodal T={segment.t_low * self.variance:.7g}; "
                f"got T={temperature:.7g}. Choose a higher temperature or another branch"
            )

    # -- states ------------------------------------------------------------------------------

    @overload
    def at(self, temperature: float, branch: Branch = ..., *, method: Method = ...) -> State: ...

    @overload
    def at(
        self, temperature: ArrayLike, branch: Branch = ..., *, method: Method = ...
    ) -> xarray.Dataset: ...

    def at(
        self,
        temperature: float | ArrayLike,
        branch: Branch = "equilibrium",
        *,
        method: Method = "fixed temperature",
    ) -> State | xarray.Dataset:
        """Return the state at one temperature, or the states at several.

        Parameters
        ----------
        temperature : float or array of one dimension
            T = 1/μ, between 1e-11 and 1e6 times the variance of y.
        branch : {"equilibrium", "cooled", "planted"}
            The branch to follow.
        method : {"fixed temperature", "parametric"}
            Which of two independent solvers to use.  The parametric one loses digits on a
            metastable branch at very small T, where T is a difference of nearly equal numbers.

        Returns
        -------
        State or xarray.Dataset
            For an array, the fields of :class:`State` over the coordinate ``temperature``.

        Raises
        ------
        ValueError
            If the branch does not exist at this temperature; the message names the spinodal.
        ConvergenceError
            If the solver does not reach its tolerance.

        Examples
        --------
        >>> state = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1).at(0.2)
        >>> print(f"{state.distortion:.6f} {state.entropy:.6f}")
        0.064855 0.313185
        """
        if np.ndim(temperature):
            states = [self._at(float(t), branch, method) for t in np.asarray(temperature)]
            return dataset(states, "temperature", {**asdict(self), "branch": branch})
        return self._at(float(temperature), branch, method)  # type: ignore[arg-type]

    def _at(self, temperature: float, branch: Branch, method: Method) -> State:
        self._check_branch(branch)
        low, high = T_MIN * self.variance, T_MAX * self.variance
        if not low <= temperature <= high:
            raise ValueError(
                f"temperature must lie between {low:.3g} and {high:.3g} (1e-11 and 1e6 times the "
                f"variance of y); got {temperature}"
            )
        if method not in ("fixed temperature", "parametric"):
            raise ValueError(f"method must be 'fixed temperature' or 'parametric'; got {method!r}")
        if branch == "equilibrium":
            return self._branches.equilibrium(temperature, method)
        self._check_range(temperature, branch)
        return self._branches.state(temperature, branch, method)

    def curve(
        self, temperatures: Iterable[float], branch: Branch = "equilibrium"
    ) -> xarray.Dataset:
        """Return the states at many temperatures.

        Parameters
        ----------
        temperatures : iterable of float
            Temperatures, in any order.
        branch : {"equilibrium", "cooled", "planted"}
            The branch to follow.

        Returns
        -------
        xarray.Dataset
            The fields of :class:`State` over the coordinate ``temperature``.

        Examples
        --------
        >>> data = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1).curve([1.0, 0.2])
        >>> data.distortion.values.round(6).tolist()
        [0.201744, 0.064855]
        """
        return self.at(np.asarray(list(temperatures), dtype=float), branch)

    def branches(self, temperatures: Iterable[float] = ()) -> xarray.Dataset:
        """Return the whole parametric curve T(a): every branch, including the unstable one.

        Parameters
        ----------
        temperatures : iterable of float, optional
            Temperatures at which to add a point to every branch that contains them.

        Returns
        -------
        xarray.Dataset
            The fields of :class:`State` over ``point``, which starts at the high-temperature end,
            with the coordinates ``a``, ``temperature`` and ``branch`` ("cooled", "unstable",
            "planted", or "stable" for a third stable segment).

        Examples
        --------
        >>> data = ReplicaSymmetric(0.75, 0.65, rho_hat=0.5).branches()
        >>> sorted(set(data.branch.values.tolist()))
        ['cooled', 'planted', 'unstable']
        """
        extra = [float(t) / self.variance for t in temperatures]
        states, a = [], []
        for segment in self._branches.segments:
            name = "stable" if segment.stable else "unstable"
            if segment is self._branches.segment("cooled"):
                name = "cooled"
            elif segment is self._branches.segment("planted"):
                name = "planted"
            for point in segment.with_temperatures(extra):
                # At T = 0 the end points are limits and not states.
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
        """Return where the cooled branch ends on cooling and the planted branch on heating."""
        return self._branches.spinodals()

    @cached_property
    def _transition(self) -> Transition | None:
        return find_transition(self._branches)

    def transition(self) -> Transition | None:
        """Return the first-order transition, where both branches have the same g, or None."""
        return self._transition

    def freezing(self, branch: Branch = "cooled") -> State | None:
        """Return the state at which the entropy of a branch vanishes.

        At lower temperatures the replica-symmetric theory counts fewer than one support, so the
        distortion cannot fall below its value in this state.

        Parameters
        ----------
        branch : {"equilibrium", "cooled", "planted"}
            The branch to follow.

        Returns
        -------
        State or None
            None if the entropy stays positive, or vanishes only below 1e-140 times the variance of
            y.

        Examples
        --------
        >>> frozen = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1).freezing()
        >>> print(f"T={frozen.temperature:.6f} eps={frozen.distortion:.8f} {frozen.at_stable}")
        T=0.029344 eps=0.00905209 False
        """
        return self._landmark(find_freezing, branch)

    def clamped(self, state: State) -> State:
        """Return the state itself or, if its entropy is negative, the frozen state of its branch.

        Below the temperature of :meth:`freezing`, distortion and error stay as they are there, and
        the entropy is zero.

        Parameters
        ----------
        state : State
            A state of this theory.

        Examples
        --------
        >>> theory = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1)
        >>> cold = theory.at(0.01)
        >>> cold.frozen, f"{cold.distortion:.6f} {theory.clamped(cold).distortion:.6f}"
        (True, '0.003031 0.009052')
        """
        frozen = self.freezing(state.branch) if state.frozen else None  # type: ignore[arg-type]
        if frozen is None:
            return state
        return replace(
            frozen,
            temperature=state.temperature,
            branch=state.branch,
            entropy=0.0,
            free_entropy=-self.alpha * frozen.distortion / state.temperature,
        )

    def at_instability(self, branch: Branch = "cooled") -> State | None:
        """Return the state at which replica symmetry becomes unstable on cooling.

        The criterion is that of de Almeida and Thouless, ``at_ratio`` = 1.

        Parameters
        ----------
        branch : {"equilibrium", "cooled", "planted"}
            The branch to follow.

        Returns
        -------
        State or None
            None if replica symmetry is stable on the whole branch.

        Examples
        --------
        >>> state = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1).at_instability()
        >>> print(f"T={state.temperature:.5f} eps={state.distortion:.5f}")
        T=0.12984 eps=0.04212
        """
        return self._landmark(find_instability, branch)

    @cached_property
    def _memo(self) -> dict[tuple[object, str], State | None]:
        """Landmarks found by earlier calls, because each takes a search."""
        return {}

    def _landmark(self, find: Callable[[Branches, str], State | None], branch: str) -> State | None:
        self._check_branch(branch)
        if branch == "equilibrium":
            # Below a transition the equilibrium branch is the planted one.
            branch = "planted" if self._transition is not None else "cooled"
        if (find, branch) not in self._memo:
            self._memo[find, branch] = find(self._branches, branch)
        return self._memo[find, branch]
