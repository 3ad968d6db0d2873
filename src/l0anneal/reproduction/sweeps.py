"""Sweeps: one solver on one ensemble, at several sizes with many samples each.

A figure's own sweeps stand in the figure's file. The sweeps that several figures draw are defined
here, so that every figure reads the same tasks. Full size is the paper's own (N = 100, 200 and 400
with 100 samples each, T. Obuchi and Y. Kabashima, "Sparse approximation problem: how rapid
simulated annealing succeeds and fails"); quick size is for a first look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from l0anneal.reproduction.task import Task

__all__ = [
    "COOLED",
    "Sweep",
    "annealed",
    "noise_only",
    "paper_sizes",
    "planted",
    "shared",
    "tasks_of",
]

PAPER = {"kind": "paper", "tau": 5}

#: The inverse temperatures of enumeration and of populations, after μ = 0.
COOLED = {"mu_min": 0.05, "mu_max": 20.0, "n": 32}


@dataclass(frozen=True)
class Sweep:
    """One experiment: a solver on an ensemble, at some sizes with some samples each.

    Attributes
    ----------
    ensemble, solver : mapping
        As in `Task`, but the ensemble has no ``n_columns``.
    samples : mapping of int to int
        The number of samples at each size N.
    group : str
        Sweeps of one group share a data file.
    """

    ensemble: Mapping[str, Any]
    solver: Mapping[str, Any]
    samples: Mapping[int, int]
    group: str = ""

    def tasks(self, size: int) -> list[Task]:
        """Return the tasks at one size."""
        ensemble = {**self.ensemble, "n_columns": size}
        return [Task(ensemble, self.solver, sample) for sample in range(self.samples[size])]

    @property
    def parameters(self) -> dict[str, float]:
        """The five parameters of the replica theory, by name."""
        e = self.ensemble
        has_signal = e["kind"] != "noise_only"
        return {
            "alpha": e["alpha"],
            "rho": self.solver.get("rho", 0.0),
            "rho_hat": e.get("rho_hat", 0.0),
            "sigma_x2": e.get("sigma_x2", 1.0) if has_signal else 0.0,
            "sigma_xi2": e.get("sigma_xi2", 0.0 if has_signal else 1.0),
        }


def tasks_of(sweeps: Mapping[str, Sweep]) -> list[Task]:
    """Return the tasks of all given sweeps, each task once."""
    found = {
        task.id: task
        for sweep in sweeps.values()
        for size in sweep.samples
        for task in sweep.tasks(size)
    }
    return list(found.values())


# ---------------------------------------------------------------- parts of sweeps


def paper_sizes(quick: bool) -> dict[int, int]:
    """Return the paper's sizes with their numbers of samples, or small ones."""
    return {50: 10, 100: 10} if quick else {100: 100, 200: 100, 400: 100}


def planted(alpha: float, rho_hat: float, **more: Any) -> dict[str, Any]:
    """Return the ensemble of planted signals."""
    return {"kind": "planted", "alpha": alpha, "rho_hat": rho_hat, **more}


def noise_only(alpha: float) -> dict[str, Any]:
    """Return the ensemble of pure noise."""
    return {"kind": "noise_only", "alpha": alpha}


def annealed(rho: float, schedule: Mapping[str, Any] = PAPER) -> dict[str, Any]:
    """Return simulated annealing at the given schedule; the paper's rapid one by default."""
    return {"kind": "anneal", "rho": rho, "schedule": schedule}


# ---------------------------------------------------------------- sweeps of several figures


def shared(quick: bool, *names: str) -> dict[str, Sweep]:
    """Return the named sweeps that several figures draw.

    Examples
    --------
    >>> shared(False, "easy")["easy"].samples
    {100: 100, 200: 100, 400: 100}
    """
    sizes = paper_sizes(quick)
    few = {50: 8} if quick else sizes  # slow runs
    heated = {"kind": "heat", "rho": 0.65, "mu_max": 1e7, "mu_min": 100.0, "n": 56, "tau": 20}
    harder = planted(0.75, 0.5)

    def slower(rho: float, tau: int) -> dict[str, Any]:
        return annealed(rho, {"kind": "paper", "tau": tau})

    every = {
        "easy": Sweep(planted(0.8, 0.2), annealed(0.4), sizes),
        "hard": Sweep(planted(0.8, 0.5), annealed(0.55), sizes),
        "rapid": Sweep(harder, annealed(0.55), sizes),
        "rapid-20": Sweep(harder, slower(0.55, 20), few),
        "slow": Sweep(harder, slower(0.55, 100), few),
        "metastable": Sweep(harder, annealed(0.65), sizes),
        "metastable-20": Sweep(harder, slower(0.65, 20), few),
        "metastable-100": Sweep(harder, slower(0.65, 100), few),
        "heated": Sweep(planted(0.75, 0.5, support="fixed"), heated, {100: 8} if quick else sizes),
        "noise": Sweep(noise_only(0.5), annealed(0.2), sizes),
        **{
            f"noise-{tau}": Sweep(noise_only(0.5), slower(0.2, tau), few) for tau in (1, 2, 20, 100)
        },
        "enumerated": Sweep(
            noise_only(0.5), {"kind": "enumerate", "rho": 0.2, **COOLED}, {20: 10 if quick else 200}
        ),
        "omp": Sweep(noise_only(0.5), {"kind": "omp", "rho": 0.2}, sizes),
        "l1": Sweep(noise_only(0.5), {"kind": "l1", "rho": 0.2}, sizes),
        **{
            f"bp-{name}": Sweep(
                planted(alpha, 0.5), {"kind": "basis_pursuit"}, {max(sizes): sizes[max(sizes)]}
            )
            for name, alpha in (("slow", 0.75), ("hard", 0.8), ("above", 0.86))
        },
    }
    return {name: every[name] for name in names}
