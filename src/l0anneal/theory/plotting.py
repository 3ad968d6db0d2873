"""Figures of the theory, on the caller's axes.

Colours are Okabe and Ito's, told apart with any kind of colour vision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from l0anneal.theory.phases import phase_diagram
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.rsb import ground_state

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"

#: Colour, line style and width of each branch.
STYLES: dict[str, dict[str, Any]] = {
    "equilibrium": {"color": BLACK, "linestyle": "-", "linewidth": 2.6},
    "cooled": {"color": VERMILION, "linestyle": "--", "linewidth": 1.6},
    "planted": {"color": SKY, "linestyle": "-.", "linewidth": 1.6},
    "unstable": {"color": PURPLE, "linestyle": ":", "linewidth": 1.4},
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
    """Draw ε, MSE, s and g against temperature, every branch.

    Parameters
    ----------
    theory : ReplicaSymmetric
    axs : sequence of four matplotlib axes, optional
        A new 2 × 2 figure is made when None.
    temperatures : sequence of float, optional
        The range drawn is from the least to the largest.

    Returns
    -------
    list of matplotlib axes
    """
    if axs is None:
        import matplotlib.pyplot as plt

        _, grid = plt.subplots(2, 2, figsize=(9.0, 6.6), sharex=True, layout="constrained")
        axs = list(grid.ravel())
    axs = list(np.ravel(np.asarray(axs, dtype=object)))
    if len(axs) != 4:
        raise ValueError(f"four axes are needed, got {len(axs)}")
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
        if not logarithmic:
            ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        values = np.concatenate([data[name].values for data in curves.values()])
        if logarithmic and np.nanmax(values) > 10.0 * np.nanmin(values):
            ax.set_yscale("log")
        ax.set_ylabel(label)
        ax.grid(True, color="0.92", linewidth=0.6)
        ax.set_axisbelow(True)
    floor = _floor(theory)
    if floor is not None:
        axs[0].axhline(
            floor, color=PURPLE, linestyle=(0, (1, 1)), linewidth=1.6, label="ground state, 1RSB"
        )
    if theory.rho_hat * theory.sigma_x2 == 0.0:
        axs[1].set_ylabel("squared coefficients ‖x‖² per column")
    for ax in axs[2:]:
        ax.set_xlabel("temperature T = 1/μ")
    axs[0].legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize="small")
    return axs


def _curves(theory: ReplicaSymmetric, t: np.ndarray) -> dict[str, xarray.Dataset]:
    """Every branch on its own range of ``t``; equilibrium in two pieces around a transition."""
    transition, frozen = theory.transition(), theory.freezing("cooled")
    if theory.spinodals().planted is None:
        # Below s = 0 replica symmetry counts less than one support: nothing is drawn there.
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
        gap = pieces[0].isel(temperature=[-1]).map(lambda v: v * np.nan)  # no line across the jump
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
    """Temperatures worth a vertical line, with their labels and styles."""
    found: dict[str, tuple[float, dict]] = {}
    transition, frozen = theory.transition(), theory.freezing("cooled")
    unstable = theory.at_instability("cooled")
    if transition is not None:
        found["transition T_c"] = (transition.temperature, {"color": GREEN})
    if unstable is not None:
        style = {"color": ORANGE, "linestyle": (0, (4, 2))}
        found["RS unstable to the left"] = (unstable.temperature, style)
    if frozen is not None:
        name = "freezing, s = 0" if transition is None else "freezing of the cooled branch"
        found[name] = (frozen.temperature, {"color": BLUE, "linestyle": (0, (6, 2))})
    return found


def _floor(theory: ReplicaSymmetric) -> float | None:
    """ε of the 1RSB ground state, where replica symmetry fails before it freezes."""
    frozen, unstable = theory.freezing("cooled"), theory.at_instability("cooled")
    if frozen is None or unstable is None or frozen.at_stable:
        return None
    return ground_state(theory).distortion


def default_range(theory: ReplicaSymmetric) -> tuple[float, float]:
    """A range of temperatures that shows what there is to see."""
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
    """Draw the recovery limits α(ρ̂) of exhaustive search, message passing and l1.

    Parameters
    ----------
    ax : matplotlib axes, optional
    data : xarray.Dataset, optional
        What :func:`phase_diagram` returned; computed when None.
    points : sequence of (rho_hat, alpha), optional
        Problems to mark.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
    data = phase_diagram() if data is None else data
    rho_hat = data.rho_hat.values
    alpha_l0, bayes, l1 = (data[f"alpha_{k}"].values for k in ("l0", "bayes", "l1"))
    ax.fill_between(rho_hat, 0.0, alpha_l0, color="0.88", linewidth=0)
    ax.fill_between(rho_hat, l1, 1.0, color=BLUE, alpha=0.10, linewidth=0)
    ax.plot(rho_hat, l1, color=BLUE, linewidth=2.0, label="l1 (basis pursuit)")
    ax.plot(
        rho_hat, bayes, color=VERMILION, linestyle="--", linewidth=2.0, label="Bayes-optimal AMP"
    )
    ax.plot(rho_hat, alpha_l0, color=BLACK, linestyle="-.", linewidth=2.0, label="l0 (α = ρ̂)")
    ax.text(0.72, 0.32, "no method can", ha="center", color="0.25")
    ax.text(0.17, 0.86, "l1 succeeds", ha="center", color=BLUE)
    for rho, alpha in points:
        ax.plot(rho, alpha, marker="o", color=GREEN, markersize=8, linestyle="none")
    if points:
        ax.plot([], [], marker="o", color=GREEN, markersize=8, linestyle="none", label="problem")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.0)
    ax.set_aspect("equal")
    ax.set_xlabel("nonzero fraction ρ̂")
    ax.set_ylabel("measurements per column α = M/N")
    ax.set_title("Least α for noiseless recovery", fontsize="medium")
    ax.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none", fontsize="small")
    return ax
