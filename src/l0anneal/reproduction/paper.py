"""The paper's results section as tasks: which runs each figure and number needs.

T. Obuchi and Y. Kabashima, "Sparse approximation problem: how rapid simulated annealing succeeds
and fails". Full size is the paper's own (N = 100, 200, 400, 100 samples); quick is for a look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from l0anneal.reproduction.task import Task

__all__ = ["FIGURES", "FigurePlan", "Sweep", "plan", "sweeps", "tasks_of"]

PAPER = {"kind": "paper", "tau": 5}
SLOW = {"kind": "paper", "tau": 100}


@dataclass(frozen=True)
class Sweep:
    """One experiment: a solver on an ensemble, at some sizes with some samples each.

    Attributes
    ----------
    ensemble, solver : mapping
        As in `Task`; the ensemble without its ``n_columns``.
    samples : mapping of int to int
        Samples at each size N.
    """

    ensemble: Mapping[str, Any]
    solver: Mapping[str, Any]
    samples: Mapping[int, int]

    def tasks(self, size: int) -> list[Task]:
        """The tasks at one size."""
        ensemble = {**self.ensemble, "n_columns": size}
        return [Task(ensemble, self.solver, sample) for sample in range(self.samples[size])]

    @property
    def parameters(self) -> dict[str, float]:
        """What the theory needs to know: its five parameters, by name."""
        e = self.ensemble
        planted = e["kind"] != "noise_only"
        return {
            "alpha": e["alpha"],
            "rho": self.solver.get("rho", 0.0),
            "rho_hat": e.get("rho_hat", 0.0),
            "sigma_x2": e.get("sigma_x2", 1.0) if planted else 0.0,
            "sigma_xi2": e.get("sigma_xi2", 0.0 if planted else 1.0),
        }


@dataclass(frozen=True)
class FigurePlan:
    """A figure of the report: its title, what to see in it, and the sweeps that it draws."""

    title: str
    caption: str
    sweeps: tuple[str, ...] = ()


FIGURES: dict[str, FigurePlan] = {
    "easy": FigurePlan(
        "Easy recovery: α = 0.8, ρ = 0.4, ρ̂ = 0.2",
        "Points are annealing at the paper's schedule, the line is the replica theory at N → ∞: "
        "the run stays in equilibrium down to the lowest temperature. The error of the "
        "coefficients vanishes with T, so the planted solution is found.",
        ("easy",),
    ),
    "phase-diagram": FigurePlan(
        "Where noiseless recovery is possible",
        "Above each line its method recovers the planted signal at N → ∞; the points are the "
        "paper's problems. Two of them lie below the l1 line, where annealing is put to the test; "
        "the fractions beside them count recoveries in the runs of this report.",
        ("easy", "hard", "slow", "bp-hard", "bp-slow"),
    ),
    "hard": FigurePlan(
        "Below the l1 limit: α = 0.8, ρ = 0.55, ρ̂ = 0.5",
        "Annealing follows the theory although l1 fails at these parameters (it needs α ≥ 0.831). "
        "The mean error levels off at low T because of a few samples, fewer at larger N: some have "
        "more planted columns than the support may have, others lag behind.",
        ("hard",),
    ),
    "metastable": FigurePlan(
        "Trapped: α = 0.75, ρ = 0.65, ρ̂ = 0.5",
        "Below T_c the equilibrium (black) jumps to the planted state, but cooling stays on the "
        "metastable branch (red, dashed). Heating from the truth (open symbols) follows the "
        "planted branch up to its own end, beyond T_c.",
        ("metastable", "heated"),
    ),
    "entropy": FigurePlan(
        "Free energy and entropy of both branches: α = 0.75, ρ = 0.65, ρ̂ = 0.5",
        "Lines are the theory; points are measured by thermodynamic integration, the cooled "
        "branch from T = ∞ and the planted one from T = 0 (the paper has no points here). The "
        "branches of g cross at T_c, and the entropy of the cooled branch runs to zero.",
        ("metastable", "heated"),
    ),
    "slow": FigurePlan(
        "Rapid and slow: α = 0.75, ρ = 0.55, ρ̂ = 0.5",
        "There is no transition here, yet five sweeps per temperature fall out of equilibrium on "
        "the way down. With a hundred they follow the theory farther, the more so the larger N; "
        "what is left in the mean error comes from the few samples that stay behind.",
        ("rapid", "slow"),
    ),
    "freezing": FigurePlan(
        "Cooling the trapped state on: α = 0.75, ρ = 0.65, ρ̂ = 0.5",
        "The same annealing, cooled on to T = 1e-9; medians of the runs that stay trapped. Their "
        "distortion stops falling long before the theory's entropy vanishes, and the slower run "
        "gets lower: what stops it at these sizes is the rate of cooling.",
        ("freezing", "freezing-slow"),
    ),
    "noise-only": FigurePlan(
        "Pure noise: α = 0.5, ρ = 0.2",
        "Annealing follows the theory at high temperature and leaves it where replica symmetry "
        "breaks. Its final distortion lies below those of l1, l1 with least squares and OMP, and "
        "above the limit that no support can beat.",
        ("noise", "omp", "l1"),
    ),
    "time": FigurePlan(
        "Computation time: α = 0.5, ρ = 0.2",
        "Processor seconds for one run at the paper's schedule, as the paper reports them and "
        "here, with an l1 solver (the whole LASSO path to k columns) and OMP beside it. Slopes are "
        "fitted orders in N.",
        ("noise", "noise-large", "omp", "omp-large", "l1", "l1-large"),
    ),
    "rho": FigurePlan(
        "What ρ does",
        "Without a plan (left), more columns always mean less distortion, at a temperature "
        "(filled) and at the end of the run (open). With one (middle, right) the theory's cooled "
        "branch jumps where the metastable state appears: beyond it the distortion falls on, but "
        "the error of the coefficients stays large.",
        tuple(f"rho-{name}" for name in ("noise-a", "noise-b", "planted-a", "planted-b")),
    ),
    "noisy": FigurePlan(
        "Finite temperature is better when there is noise: α = 0.6, ρ = 0.3, ρ̂ = 0.2",
        "The error of the coefficients is least at a temperature above zero, in theory and in the "
        "runs: colder supports fit the noise. The thin line is one single annealing run, whose "
        "samples at that temperature are there for the taking.",
        ("noisy-weak", "noisy-strong", "noisy-weak-one", "noisy-strong-one"),
    ),
    "seeded": FigurePlan(
        "A seeded dictionary against the metastable state: α = 0.75, ρ̂ = 0.5",
        "Bars count the runs that found the planted solution, on i.i.d. and on seeded dictionaries "
        "of equal size. On the right, the mean error along the dictionary: it is less at the seed "
        "(left end) and more at the far end, where the chain of help runs out.",
        tuple(f"seeded-{kind}-{rho}" for kind in ("iid", "chain") for rho in ("a", "b")),
    ),
}

RHOS = {
    "rho-noise-a": (0.5, 0.0, (0.05, 0.1, 0.2, 0.3, 0.4)),
    "rho-noise-b": (0.8, 0.0, (0.1, 0.2, 0.4, 0.6, 0.7)),
    "rho-planted-a": (0.75, 0.5, (0.5, 0.525, 0.55, 0.575, 0.6, 0.62, 0.65, 0.7)),
    "rho-planted-b": (0.8, 0.5, (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)),
}


def sweeps(quick: bool = False) -> dict[str, Sweep]:
    """All experiments by name, at full size or in small.

    Examples
    --------
    >>> sweeps()["easy"].samples
    {100: 100, 200: 100, 400: 100}
    """
    sizes = {50: 10, 100: 10} if quick else {100: 100, 200: 100, 400: 100}
    largest = max(sizes)
    some = {largest: sizes[largest]}

    def planted(alpha: float, rho_hat: float, **more: Any) -> dict[str, Any]:
        return {"kind": "planted", "alpha": alpha, "rho_hat": rho_hat, **more}

    def annealed(rho: float, schedule: Mapping[str, Any] = PAPER) -> dict[str, Any]:
        return {"kind": "anneal", "rho": rho, "schedule": schedule}

    noise = {"kind": "noise_only", "alpha": 0.5}
    omp, l1 = {"kind": "omp", "rho": 0.2}, {"kind": "l1", "rho": 0.2}
    slow_sizes = {50: 8} if quick else {100: 100, 200: 100, 400: 10}
    heat_sizes = {100: 8} if quick else {100: 100, 200: 100, 400: 10}
    heated = {"kind": "heat", "rho": 0.65, "mu_max": 1e7, "mu_min": 100.0, "n": 56, "tau": 20}
    colder = {"kind": "paper", "tau": 5, "n": 220}
    further = {200: 3} if quick else {800: 20}
    found = {
        "easy": Sweep(planted(0.8, 0.2), annealed(0.4), sizes),
        "hard": Sweep(planted(0.8, 0.5), annealed(0.55), sizes),
        "metastable": Sweep(planted(0.75, 0.5), annealed(0.65), sizes),
        "heated": Sweep(planted(0.75, 0.5, support="fixed"), heated, heat_sizes),
        "rapid": Sweep(planted(0.75, 0.5), annealed(0.55), sizes),
        "slow": Sweep(planted(0.75, 0.5), annealed(0.55, SLOW), slow_sizes),
        "freezing": Sweep(
            planted(0.75, 0.5), annealed(0.65, colder), {50: 10} if quick else {100: 40, 200: 16}
        ),
        "freezing-slow": Sweep(
            planted(0.75, 0.5),
            annealed(0.65, {**colder, "tau": 20 if quick else 100}),
            {50: 4} if quick else {100: 16},
        ),
        "noise": Sweep(noise, annealed(0.2), sizes),
        "noise-large": Sweep(noise, annealed(0.2), further),
        "omp": Sweep(noise, omp, sizes),
        "omp-large": Sweep(noise, omp, further),
        "l1": Sweep(noise, l1, sizes),
        "l1-large": Sweep(noise, l1, further),
        "bp-hard": Sweep(
            planted(0.8, 0.5), {"kind": "basis_pursuit"}, some if quick else {largest: 20}
        ),
        "bp-slow": Sweep(
            planted(0.75, 0.5), {"kind": "basis_pursuit"}, some if quick else {largest: 20}
        ),
    }
    found |= _rho_sweeps(quick, planted, annealed)
    for name, sigma_xi2 in (("weak", 0.02), ("strong", 0.1)):
        ensemble = planted(0.6, 0.2, sigma_xi2=sigma_xi2)
        samples, one = ({100: 10}, {200: 1}) if quick else ({200: 100}, {800: 1})
        found[f"noisy-{name}"] = Sweep(ensemble, annealed(0.3), samples)
        slower = {"kind": "paper", "tau": 5 if quick else 20, "n": 90}
        found[f"noisy-{name}-one"] = Sweep(ensemble, annealed(0.3, slower), one)
    for name, rho in (("a", 0.62), ("b", 0.65)):
        solver = annealed(rho, {"kind": "paper", "tau": 10, "n": 110})
        samples = {80: 4} if quick else {100: 100, 200: 24}
        found[f"seeded-iid-{name}"] = Sweep(planted(0.75, 0.5), solver, samples)
        chain = {"kind": "seeded", "alpha": 0.75, "rho_hat": 0.5}
        found[f"seeded-chain-{name}"] = Sweep(chain, solver, samples)
    return found


def _rho_sweeps(quick: bool, planted: Any, annealed: Any) -> dict[str, Sweep]:
    found = {}
    samples = {50: 4} if quick else {200: 10}
    for name, (alpha, rho_hat, rhos) in RHOS.items():
        ensemble = planted(alpha, rho_hat) if rho_hat else {"kind": "noise_only", "alpha": alpha}
        for rho in rhos[::2] if quick else rhos:
            found[f"{name}-{rho:g}"] = Sweep(ensemble, annealed(rho), samples)
    return found


def plan(figures: Iterable[str] = (), quick: bool = False) -> dict[str, Sweep]:
    """The experiments that the given figures need; all figures if none are given.

    Examples
    --------
    >>> sorted(plan(["slow"]))
    ['rapid', 'slow']
    """
    names = list(figures) or list(FIGURES)
    if unknown := [name for name in names if name not in FIGURES]:
        raise ValueError(f"there is no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    wanted = [sweep for name in names for sweep in FIGURES[name].sweeps]
    return {
        name: sweep
        for name, sweep in sweeps(quick).items()
        if any(name == w or (w in RHOS and name.startswith(w + "-")) for w in wanted)
    }


def tasks_of(chosen: Mapping[str, Sweep]) -> list[Task]:
    """All tasks of some sweeps, each once."""
    found = {
        task.id: task
        for sweep in chosen.values()
        for size in sweep.samples
        for task in sweep.tasks(size)
    }
    return list(found.values())
