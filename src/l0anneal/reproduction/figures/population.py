"""Entropies from population annealing, against enumeration and against replica symmetry."""

from __future__ import annotations

from l0anneal.reproduction.sweeps import COOLED, Sweep, noise_only, shared


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return population annealing and enumeration at N = 20, and populations at larger sizes."""
    solver = {"kind": "population", "rho": 0.2, "population": 400, "tau": 5, **COOLED}
    few = {20: 10 if quick else 60}
    return {
        **shared(quick, "enumerated"),
        "population-small": Sweep(noise_only(0.5), solver, few),
        "population": Sweep(
            noise_only(0.5),
            {**solver, "population": 50} if quick else solver,
            {40: 5} if quick else {50: 50, 100: 30, 200: 20},
        ),
    }
