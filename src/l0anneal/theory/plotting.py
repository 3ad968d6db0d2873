"""Figures of the theory, on axes of the caller or on new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from l0anneal._util.figures import COLORS
from l0anneal.theory.phases import phase_diagram
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.rsb import ground_state

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

__all__ = ["STYLES", "default_range", "plot_curves", "plot_phase_diagram"]

#: Colour, line style and width of each branch.
STYLES: dict[str, dict[str, Any]] = {
    "equilibrium": {"color": COLORS["black"], "linestyle": "-", "linewidth": 2.6},
    "cooled": {"color": COLORS["red"], "linestyle": "--", "linewidth": 1.6},
    "planted": {"color": COLORS["sky"], "linestyle": "-.", "linewidth": 1.6},
    "unstable": {"color": COLORS["purple"], "linestyle": ":", "linewidth": 1.4},
}

_PANELS = (
    ("distortion", "distortion ε = E/M", True),
    ("mse", "mean squared error per column", True),
    ("entropy", "entropy s per column (nats)", False),
    ("free_entropy", "free entropy g per column (nats)", False),
)


def plot_curves(
    theory: ReplicaSymmetric,
    axs: Sequence[Axes] | None = None,
    *,
    temperatures: Sequence[float] | None = None,
) -> list[Axes]:
    """Plot ε, MSE, s and g of every branch against temperature.

    Parameters
    ----------
    theory : ReplicaSymmetric
        The problem.
    axs : sequence of four matplotlib axes, optional
        Axes to draw on; by default a new figure with 2 × 2 axes.
    temperatures : sequence of float, optional
        The plot extends from the smallest to the largest of these temperatures.  By default the
        range shows the transition and the freezing point, if there are any.

    Returns
    -------
    list of matplotlib axes

    See Also
    --------
    l0anneal.theory.ReplicaSymmetric : Computes the curves.

    Examples
    --------
    >>> from l0anneal.theory import ReplicaSymmetric
    >>> axs = plot_curves(ReplicaSymmetric(0.8, 0.4, rho_hat=0.2), temperatures=(1e-3, 1))
    >>> axs[0].get_ylabel()
    'distortion ε = E/M'
    """
    if axs is None:
        import matplotlib.pyplot as plt

        _, grid = plt.subplots(2, 2, figsize=(9.0, 6.6), sharex=True, layout="constrained")
        axs = list(grid.ravel())
    axs = list(np.ravel(np.asarray(axs, dtype=object)))
    if len(axs) != 4:
        raise ValueError(f"axs must be four matplotlib axes; got {len(axs)}")
    low, high = default_range(theory)
    if temperatures is not None:
        low, high = float(min(temperatures)), float(max(temperatures))
    t = np.geomspace(low, high, 120)
    landmarks = _landmarks(theory)
    curves = _curves(theory, t)
    for ax, (name, label, logarithmic) in zip(axs, _PANELS, strict=True):
        for branch, data in curves.items():
            ax.plot(data.temperature, data[name], label=branch, **STYLES[branch])
        for text, (at, style) in landmarks.items():
            if low < at < high:
                ax.axvline(at, linewidth=1.0, label=text, zorder=1, **style)
        values = np.concatenate([data[name].values for data in curves.values()])
        _finish_panel(ax, label, values, logarithmic)
        ax.set_xlim(low, high)
    floor = _floor(theory)
    if floor is not None:
        axs[0].axhline(
            floor,
            color=COLORS["purple"],
            linestyle=(0, (1, 1)),
            linewidth=1.6,
            label="ground state, 1RSB",
        )
    if theory.rho_hat * theory.sigma_x2 == 0.0:
        axs[1].set_ylabel("squared coefficients ‖x‖² per column")
    for ax in axs[2:]:
        ax.set_xlabel("temperature T = 1/μ")
    axs[0].legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize="small")
    return axs


def _finish_panel(ax: Axes, label: str, values: np.ndarray, logarithmic: bool) -> None:
    """Set scales, label and grid of one panel."""
    if not logarithmic:
        ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    elif np.nanmax(values) > 10.0 * np.nanmin(values):
        ax.set_yscale("log")
    ax.set_xscale("log")
    ax.set_ylabel(label)
    ax.grid(True, color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)


def _curves(theory: ReplicaSymmetric, t: np.ndarray) -> dict[str, xarray.Dataset]:
    """Return every branch where it exists within ``t``, and equilibrium with a gap at T_c."""
    transition, frozen = theory.transition(), theory.freezing("cooled")
    if theory.spinodals().planted is None:
        # Below the freezing point replica symmetry counts fewer than one support: draw nothing.
        stop = 0.0 if frozen is None else frozen.temperature
        return {"equilibrium": theory.curve([stop, *t[t > stop]] if stop > t[0] else t)}
    if transition is None:
        equilibrium = theory.curve(t)
    else:
        import xarray

        at = transition.temperature
        pieces = [
            theory.curve([*t[t < at], at * (1.0 - 1e-9)], "planted"),
            theory.curve([at * (1.0 + 1e-9), *t[t > at]], "cooled"),
        ]
        # A NaN between the two parts keeps matplotlib from connecting them across the jump.
        gap = pieces[0].isel(temperature=[-1]).map(lambda v: v * np.nan)
        equilibrium = xarray.concat([pieces[0], gap, pieces[1]], dim="temperature")
    full = theory.branches(t[::3])
    inside = (full.temperature >= t[0]) & (full.temperature <= t[-1])
    curves = {"equilibrium": equilibrium}
    for name in ("cooled", "planted", "unstable"):
        chosen = np.flatnonzero((inside & (full.branch == name)).values)
        if chosen.size:
            curves[name] = full.isel(point=chosen)
    return curves


def _landmarks(theory: ReplicaSymmetric) -> dict[str, tuple[float, dict]]:
    """Return the temperatures to mark with a vertical line: label to (temperature, style)."""
    found: dict[str, tuple[float, dict]] = {}
    transition, frozen = theory.transition(), theory.freezing("cooled")
    unstable = theory.at_instability("cooled")
    if transition is not None:
        found["transition T_c"] = (transition.temperature, {"color": COLORS["green"]})
    if unstable is not None:
        style = {"color": COLORS["orange"], "linestyle": (0, (4, 2))}
        found["RS unstable to the left"] = (unstable.temperature, style)
    if frozen is not None:
        name = "freezing, s = 0" if transition is None else "freezing of the cooled branch"
        found[name] = (frozen.temperature, {"color": COLORS["blue"], "linestyle": (0, (6, 2))})
    return found


def _floor(theory: ReplicaSymmetric) -> float | None:
    """Return ε of the 1RSB ground state if replica symmetry is unstable at the freezing point."""
    frozen, unstable = theory.freezing("cooled"), theory.at_instability("cooled")
    if frozen is None or unstable is None or frozen.at_stable:
        return None
    return ground_state(theory).distortion


def default_range(theory: ReplicaSymmetric) -> tuple[float, float]:
    """Return a range of temperatures that contains the transition and the freezing point."""
    unit = theory.variance
    transition, frozen = theory.transition(), theory.freezing("cooled")
    low = 1e-5 * unit
    if transition is not None:
        low = min(low, transition.temperature / 30.0)
        if frozen is not None:
            low = max(min(low, frozen.temperature / 3.0), 1e-9 * unit)
    elif frozen is not None:
        low = max(frozen.temperature / 1.5, 1e-9 * unit)
    return low, 3.0 * unit


def plot_phase_diagram(
    ax: Axes | None = None,
    *,
    data: xarray.Dataset | None = None,
    points: Sequence[tuple[float, float]] = (),
) -> Axes:
    """Plot the recovery limits α(ρ̂) of exhaustive search, message passing and l1.

    Parameters
    ----------
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    data : xarray.Dataset, optional
        The result of :func:`phase_diagram`; computed if not given.
    points : sequence of (rho_hat, alpha), optional
        Problems to mark.

    Returns
    -------
    matplotlib axes

    See Also
    --------
    l0anneal.theory.phase_diagram : Compute it.

    Examples
    --------
    >>> from l0anneal.theory import phase_diagram
    >>> ax = plot_phase_diagram(data=phase_diagram([0.0, 0.5, 1.0]), points=[(0.5, 0.75)])
    >>> ax.get_title()
    'Least α for noiseless recovery'
    """
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
    data = phase_diagram() if data is None else data
    rho_hat = data.rho_hat.values
    alpha_l0, bayes, l1 = (data[f"alpha_{k}"].values for k in ("l0", "bayes", "l1"))
    ax.fill_between(rho_hat, 0.0, alpha_l0, color="0.88", linewidth=0)
    ax.fill_between(rho_hat, l1, 1.0, color=COLORS["blue"], alpha=0.10, linewidth=0)
    ax.plot(rho_hat, l1, color=COLORS["blue"], linewidth=2.0, label="l1 (basis pursuit)")
    ax.plot(
        rho_hat,
        bayes,
        color=COLORS["red"],
        linestyle="--",
        linewidth=2.0,
        label="Bayes-optimal AMP",
    )
    ax.plot(
        rho_hat, alpha_l0, color=COLORS["black"], linestyle="-.", linewidth=2.0, label="l0 (α = ρ̂)"
    )
    ax.text(0.72, 0.32, "no method succeeds", ha="center", color="0.25")
    ax.text(0.17, 0.86, "l1 succeeds", ha="center", color=COLORS["blue"])
    for rho, alpha in points:
        ax.plot(rho, alpha, marker="o", color=COLORS["green"], markersize=8, linestyle="none")
    if points:
        ax.plot(
            [],
            [],
            marker="o",
            color=COLORS["green"],
            markersize=8,
            linestyle="none",
            label="problem",
        )
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.0)
    ax.set_aspect("equal")
    ax.set_xlabel("nonzero fraction ρ̂")
    ax.set_ylabel("measurements per column α = M/N")
    ax.set_title("Least α for noiseless recovery", fontsize="medium")
    ax.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none", fontsize="small")
    return ax
