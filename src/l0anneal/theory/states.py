"""What the theory says about one temperature: observables from the order parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from l0anneal.theory.channel import Channel

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class State:
    """One thermodynamic state.

    Attributes
    ----------
    temperature : float
        T = 1/μ.
    branch : str
        The branch asked for.
    distortion : float
        ε = ⟨E⟩/M, half the squared residual per measurement.
    mse : float
        (1/N)⟨‖x̂ - c∘x‖²⟩; without a planted signal, (1/N)⟨‖c∘x‖²⟩.
    entropy, free_entropy : float
        s and g = s - μ α ε, per column.
    delta, d, lam : float
        The order parameters Δ and D, and the multiplier Λ.
    hits : float
        Columns that are selected and truly nonzero, as a fraction of all N.
    precision : float
        The selected fraction that is truly nonzero, hits/ρ.
    at_ratio : float
        E[(p + a p(1-p)h²)²]/α; replica symmetry is locally stable below one.
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

    @property
    def mu(self) -> float:
        """Inverse temperature."""
        return 1.0 / self.temperature

    @property
    def at_stable(self) -> bool:
        """Whether replica symmetry is locally stable here (de Almeida-Thouless)."""
        return self.at_ratio < 1.0


@dataclass(frozen=True)
class Transition:
    """A first-order transition: T_c, and the two states that coexist there."""

    temperature: float
    cooled: State
    planted: State


@dataclass(frozen=True)
class Spinodals:
    """Where branches end.

    Attributes
    ----------
    cooling : float or None
        The cooled branch ends here on cooling; None when it reaches T = 0.
    planted : float or None
        The planted branch ends here on heating; None when there is a single branch.
    """

    cooling: float | None
    planted: float | None


def observe(
    channel: Channel, t: float, variance: float, branch: str, *, d: float | None = None
) -> State:
    """Observables at the saddle point (docs/theory.md, section 2).

    ``t`` and ``d`` are in units of ``variance``; the state is not.  ``d`` is given by the solver
    at fixed temperature; otherwise it is what the channel says.
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
    )


def dataset(states: list[State], dim: str, attrs: dict) -> xarray.Dataset:
    """States as columns over ``dim``."""
    import xarray

    skip = {"branch", "temperature"}
    columns = [f.name for f in fields(State) if f.name not in skip]
    data = {name: (dim, np.array([getattr(s, name) for s in states])) for name in columns}
    coords = {}
    if dim == "temperature":
        coords["temperature"] = np.array([s.temperature for s in states])
    return xarray.Dataset(data, coords=coords, attrs=attrs)
