"""Equilibrium through the first-order transition, by replica exchange."""

from __future__ import annotations

from l0anneal.reproduction.sweeps import Sweep, planted


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return replica exchange through T_c, twice on each instance: from random and planted supports."""
    solver = {
        "kind": "temper",
        "rho": 0.65,
        "t_max": 2e-3,
        "t_min": 4e-5,
        "n": 12,
        "sweeps_per_column": 5 if quick else 30,
        "levels": 78,
    }
    sizes = {20: 5, 40: 5} if quick else {40: 60, 60: 60, 80: 50, 100: 50, 120: 50}
    return {"tempered": Sweep(planted(0.75, 0.5, support="fixed"), solver, sizes)}
