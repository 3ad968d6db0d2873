"""Where a planted signal is recovered: ``python benchmarks/success_map.py --plot map.png``.

Noiseless signals with supports of fixed size, over the density ρ̂ and the measurements per column α.
Evidence annealing is told nothing; the paper's annealing, cooled on until "recovered" can be asked, and
OMP are told k. Recovered means a mean square error below 1e-6. Lines are theory, N → ∞.
"""

import argparse
import json
import os
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from tqdm.auto import tqdm

from l0anneal import Schedule, anneal, baselines, ensembles, evidence_anneal
from origin import print_origin

DENSITIES = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
RATIOS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
COOLED_ON = Schedule.paper(n=181)
SOLVERS = {
    "evidence annealing, told nothing": lambda i, k, s: (
        evidence_anneal(i.problem, random_state=s, max_attempts=3, n_draws=10).coef
    ),
    "the paper's annealing, told k": lambda i, k, s: (
        anneal(i.problem, k, COOLED_ON, random_state=s).coef
    ),
    "OMP, told k": lambda i, k, s: baselines.omp(i.problem, k),
    "basis pursuit": lambda i, k, s: baselines.basis_pursuit(i.problem),
}


def measure(n, samples):
    """Fraction recovered, by solver, α and ρ̂; where α ≤ ρ̂ nothing can be."""
    table = {name: np.zeros((RATIOS.size, DENSITIES.size)) for name in SOLVERS}
    cells = [
        (a, r)
        for a in range(RATIOS.size)
        for r in range(DENSITIES.size)
        if RATIOS[a] > DENSITIES[r]
    ]
    for a, r in tqdm(cells, unit="cell"):
        for s in range(samples):
            instance = ensembles.planted(
                n, float(RATIOS[a]), float(DENSITIES[r]), support="fixed", random_state=s
            )
            for name, solver in SOLVERS.items():
                coef = solver(instance, instance.support.size, s)
                table[name][a, r] += (instance.mse(coef) < 1e-6) / samples
    return table


def draw(path, table, n, samples):
    """One panel per solver, the three theory lines on each."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from l0anneal.theory import bayes, l1

    rho = np.linspace(0.02, 0.63, 40)
    lines = {
        "ℓ1 limit": ([l1.reconstruction_limit(r) for r in rho], "#D55E00", "-"),
        "Bayes-optimal AMP": ([bayes.amp_threshold(r) for r in rho], "#009E73", "--"),
        "α = ρ̂, nothing beyond": (rho, "black", ":"),
    }
    figure, axes = plt.subplots(1, 4, figsize=(13, 4.1), sharey=True, layout="constrained")
    for ax, (name, values) in zip(axes, table.items()):
        x, y = np.meshgrid(DENSITIES, RATIOS)
        open_ = y > x
        points = ax.scatter(
            x[open_], y[open_], c=values[open_], cmap="cividis", vmin=0, vmax=1, s=110, marker="s"
        )
        for label, (alpha, color, style) in lines.items():
            ax.plot(rho, alpha, style, color=color, linewidth=2, label=label)
        ax.set(title=name, xlabel="density of the signal, ρ̂", xlim=(0, 0.65), ylim=(0.03, 0.97))
    axes[0].set_ylabel("measurements per column, α")
    figure.colorbar(points, ax=axes, label=f"fraction of {samples} recovered", pad=0.01)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"Exact recovery of noiseless signals, N = {n}")
    figure.savefig(path, dpi=110)


def main():
    """Measure, or with ``--data`` that exists read, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--plot", required=True)
    options = parser.parse_args()
    print_origin()
    if options.data and options.data.exists():
        kept = json.loads(options.data.read_text(encoding="utf-8"))
        table = {name: np.array(values) for name, values in kept["table"].items()}
        options.n, options.samples = kept["n"], kept["samples"]
    else:
        table = measure(options.n, options.samples)
    if options.data and not options.data.exists():
        kept = {name: values.tolist() for name, values in table.items()}
        text = json.dumps({"n": options.n, "samples": options.samples, "table": kept})
        options.data.write_text(text, encoding="utf-8")
    draw(options.plot, table, options.n, options.samples)


if __name__ == "__main__":
    main()
