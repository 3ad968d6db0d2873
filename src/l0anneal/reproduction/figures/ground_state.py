"""The lowest distortion without a planted signal, by searches that agree."""

from __future__ import annotations

from l0anneal.reproduction.sweeps import Sweep, noise_only, planted, shared


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return enumeration at a small size, walks over minima, and walks in the hard problem."""
    walk = {"kind": "kicks", "n_chains": 4, "kicks_per_square": 0.02 if quick else 0.125}
    counts = {40: 200, 60: 200, 80: 150, 100: 120, 140: 80, 200: 50, 280: 20, 400: 20}
    return {
        **shared(quick, "enumerated"),
        "ground-check": Sweep(noise_only(0.5), {**walk, "rho": 0.2}, {20: 10 if quick else 200}),
        "ground": Sweep(noise_only(0.5), {**walk, "rho": 0.2}, {40: 10, 60: 10} if quick else counts),
        "ground-hard": Sweep(
            planted(0.75, 0.5, support="fixed"),
            {**walk, "rho": 0.65},
            {40: 5, 60: 5} if quick else {60: 40, 80: 40, 100: 40, 140: 20, 200: 10},
        ),
    }
