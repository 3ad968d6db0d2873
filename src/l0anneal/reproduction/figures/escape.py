"""How long it takes to find the planted signal, as the system grows."""

from __future__ import annotations

from l0anneal.reproduction.sweeps import Sweep, annealed, planted, shared

#: The sweeps of the figure "waiting" by ρ and by τ, which have the larger sizes.
WAITING = {
    0.55: {5: "rapid", 20: "rapid-20", 100: "slow"},
    0.65: {5: "metastable", 20: "metastable-20", 100: "metastable-100"},
}
TAUS = (5, 20, 100, 400)


def sweeps(quick: bool) -> dict[str, Sweep]:
    """Return annealing at several rates, walks over minima and evidence annealing, at many sizes."""
    ensemble = planted(0.75, 0.5)
    small = {20: 8, 40: 8} if quick else {40: 100, 60: 100, 80: 100}
    found = shared(quick, *(name for by_tau in WAITING.values() for name in by_tau.values()))
    for rho in WAITING:
        for tau in TAUS[: 2 if quick else None]:
            solver = annealed(rho, {"kind": "paper", "tau": tau})
            found[f"escape-{rho}-{tau}"] = Sweep(ensemble, solver, small, "escape")
        walk = {"kind": "kicks", "rho": rho, "n_chains": 1, "n_kicks": 400 if quick else 4000}
        sizes = {20: 8, 40: 8} if quick else {40: 100, 60: 100, 80: 100, 100: 100, 200: 50, 400: 20}
        found[f"escape-{rho}-kicks"] = Sweep(ensemble, walk, sizes, "escape")
    sizes = {20: 8, 40: 8} if quick else {40: 100, 60: 100, 80: 100, 100: 100, 200: 100, 400: 50}
    found["escape-evidence"] = Sweep(ensemble, {"kind": "evidence"}, sizes, "escape")
    return found
