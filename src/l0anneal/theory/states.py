"""Thermodynamic states, and the landmarks at which branches cross or end."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from l0anneal.theory.channel import Channel

if TYPE_CHECKING:
    import xarray

__all__ = ["Spinodals", "State", "Transition", "dataset", "observe"]

_SQUARE = "squared coefficient, mean over all N columns"
_UNITS = {
    "distortion": "energy per measurement, E/M",
    "mse": _SQUARE,
    "entropy": "nats per column",
    "free_entropy": "nats per column, log G / N",
    "delta": _SQUARE,
    "d": _SQUARE,
    "lam": "1",
    "hits": "fraction of all columns",
    "precision": "fraction of the selected columns",
    "at_ratio": "1",
    "Q": _SQUARE,
    "q": _SQUARE,
    "m": _SQUARE,
}


@dataclass(frozen=True)
class State:
    """The thermodynamic state of a branch at one temperature.

    Attributes
    ----------
    temperature : float
        T = 1/μ.
    branch : str
        Name of the branch, as requested.
    distortion : float
        ε = ⟨E⟩/M, half the squared residual per measurement.
    mse : float
        (1/N)⟨‖x̂ - c∘x‖²⟩; without a planted signal, (1/N)⟨‖c∘x‖²⟩.
    entropy, free_entropy : float
        s and g = s - μ α ε, per column.
    delta, d, lam : float
        The order parameters Δ and D, and the multiplier Λ.
    hits : float
        Fraction of all N columns that are selected and in the planted support.
    precision : float
        Fraction of the selected columns that are in the planted support, hits/ρ.
    at_ratio : float
        E[(p + a p(1-p)h²)²]/α; replica symmetry is locally stable below one.
    Q, q, m : float
        The overlaps of u = c∘x: (1/N)Σ⟨u²⟩ in one state, (1/N)Σ⟨u⟩² between two states, and
        (1/N)Σ x̂⟨u⟩ with the planted signal. D = Q - q.

    See Also
    --------
    l0anneal.theory.ReplicaSymmetric : Computes states.
    l0anneal.theory.Transition : Where two states have the same weight.

    Examples
    --------
    >>> from l0anneal.theory import ReplicaSymmetric
    >>> state = ReplicaSymmetric(0.8, 0.4, rho_hat=0.2).at(0.01)
    >>> print(f"mu={state.mu:g} eps={state.distortion:.4e} precision={state.precision:.2f}")
    mu=100 eps=2.9197e-04 precision=0.42
    >>> state.at_stable, state.frozen
    (True, False)
    """

    temperature: float
    branch: str
    distortion: float
    mse: float
    entropy: float
    free_entropy: float
    delta: float
    d: float
    lam: float
    hits: float
    precision: float
    at_ratio: float
    Q: float
    q: float
    m: float

    @property
    def mu(self) -> float:
        """Inverse temperature μ = 1/T."""
        return 1.0 / self.temperature

    @property
    def at_stable(self) -> bool:
        """Whether replica symmetry is locally stable in this state (de Almeida-Thouless)."""
        return self.at_ratio < 1.0

    @property
    def frozen(self) -> bool:
        """Whether the entropy is negative, so that no support has this distortion.

        The branch has frozen at a higher temperature; `ReplicaSymmetric.clamped` returns the state
        in which it stays.
        """
        return self.entropy < -1e-12


@dataclass(frozen=True)
class Transition:
    """A first-order transition.

    Attributes
    ----------
    temperature : float
        T_c, where both branches have the same free entropy.
    cooled, planted : State
        The two states that coexist at T_c.

    See Also
    --------
    l0anneal.theory.ReplicaSymmetric : Computes the transition.
    l0anneal.theory.Spinodals : Where states cease to exist.

    Examples
    --------
    >>> from l0anneal.theory import ReplicaSymmetric
    >>> transition = ReplicaSymmetric(0.75, 0.65, rho_hat=0.5).transition()
    >>> print(f"{transition.temperature:.4e}")
    2.9413e-04
    >>> print(f"{transition.cooled.mse:.4f} {transition.planted.mse:.4f}")
    0.5235 0.0015
    """

    temperature: float
    cooled: State
    planted: State


@dataclass(frozen=True)
class Spinodals:
    """The temperatures at which the two branches end.

    Attributes
    ----------
    cooling : float or None
        Temperature at which the cooled branch ends on cooling; None if it continues to T = 0.
    planted : float or None
        Temperature at which the planted branch ends on heating; None if there is only one branch.

    See Also
    --------
    l0anneal.theory.ReplicaSymmetric : Computes the spinodals.
    l0anneal.theory.Transition : Where two states have the same weight.

    Examples
    --------
    >>> from l0anneal.theory import ReplicaSymmetric
    >>> spinodals = ReplicaSymmetric(0.75, 0.61, rho_hat=0.5).spinodals()
    >>> print(f"{spinodals.cooling:.4e} {spinodals.planted:.4e}")
    8.9895e-04 1.5832e-03
    """

    cooling: float | None
    planted: float | None


def observe(
    channel: Channel, t: float, variance: float, branch: str, *, d: float | None = None
) -> State:
    """Return the observables at the saddle point (docs/theory.md, section 2).

    ``t`` and ``d`` are in units of ``variance``, the returned state is not.  The solver at fixed
    temperature passes its own ``d``; otherwise the right-hand side of the channel is used.
    """
    model, delta = channel.model, channel.delta
    d = channel.d_rhs if d is None else d
    s = model.s0 + d / t
    a = 1.0 / (model.s0 * t + d)
    distortion = 0.5 * (d / (model.s0 * s) + delta / s**2)
    bracket = 3.0 * d / model.s0 - 2.0 * model.sigma_xi2 - 2.0 * channel.deficit()
    entropy = (
        channel.entropy_of_selection()
        - 0.5 * model.gap * math.log1p(d / (model.s0 * t))
        + 0.5 * model.alpha * a * (bracket + 2.0 * delta / s)
    )
    hits = channel.hits()
    m = 1.0 - model.sigma_xi2 - channel.deficit()  # the variance of y is the unit
    big_q = delta + d - 1.0 + 2.0 * m
    return State(
        temperature=t * variance,
        branch=branch,
        distortion=distortion * variance,
        mse=(delta - model.sigma_xi2 + d) * variance,
        entropy=entropy,
        free_entropy=entropy - model.alpha * distortion / t,
        delta=delta * variance,
        d=d * variance,
        lam=channel.lam,
        hits=hits,
        precision=hits / model.rho,
        at_ratio=channel.replicon(),
        Q=big_q * variance,
        q=(big_q - d) * variance,
        m=m * variance,
    )


def dataset(states: list[State], dim: str, attrs: dict) -> xarray.Dataset:
    """Return a dataset that has the fields of the states as variables over ``dim``."""
    import xarray

    skip = {"branch", "temperature"}
    columns = [f.name for f in fields(State) if f.name not in skip]
    data = {
        name: (dim, np.array([getattr(s, name) for s in states]), {"units": _UNITS[name]})
        for name in columns
    }
    data["frozen"] = (dim, np.array([s.frozen for s in states]), {"units": "entropy below zero"})
    coords = {}
    if dim == "temperature":
        values = np.array([s.temperature for s in states])
        coords["temperature"] = ("temperature", values, {"units": "energy"})
    return xarray.Dataset(data, coords=coords, attrs=attrs)
