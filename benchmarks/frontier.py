"""Distortion against seconds on noise, ours and the peers: ``python benchmarks/frontier.py``.

Noise only, α = .5, ρ = .2: the paper's case without a planted signal. All tools run on the same
instances and one thread, and get least squares on their k columns. Peers that are not installed are left
out with a notice; ``pip install l0anneal[benchmark]`` brings them. Writes ``docs/beyond/frontier.json``
and ``frontier.png``, unless other names are given.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from l0anneal import (
    Schedule,
    anneal,
    baselines,
    ensembles,
    evidence_anneal,
    population_anneal,
    solve,
    temper,
)
from origin import print_origin

OUT = Path(__file__).parents[1] / "docs" / "beyond"
LIMITS = (0.05, 0.1, 0.2, 0.4, 1.0, 2.0)
OUR_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
PEER_COLORS = ("#D55E00", "#E69F00", "#F0E442", "#999999", "#000000")


def skglm_mcp(instance, k):
    """The first point of the MCP path with at least k columns, cut to the k largest.

    Columns are standardised, as its penalty expects.
    """
    from skglm import MCPRegression

    y = instance.y
    A = np.asfortranarray(instance.A / instance.problem.column_norms * np.sqrt(y.size))
    largest = np.max(np.abs(A.T @ y)) / y.size
    model = MCPRegression(warm_start=True, fit_intercept=False)
    coef = np.zeros(A.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for alpha in largest * np.geomspace(1.0, 1e-3, 100):
            coef = model.set_params(alpha=alpha).fit(A, y).coef_
            if np.count_nonzero(coef) >= k:
                break
    return np.argsort(-np.abs(coef))[:k]


def abess(instance, k):
    """Splicing along the path of sizes up to k, whose end has the least loss."""
    from abess.linear import LinearRegression

    model = LinearRegression(
        support_size=range(k + 1), ic_type="loss", important_search=0, thread=1, fit_intercept=False
    )
    model.fit(instance.A, instance.y)
    return np.flatnonzero(np.ravel(model.coef_))


def soft_min(instance, k):
    """Generalised soft-min, its fast profile."""
    from sparse_approx_gsm import sparse_approx_gsm

    return np.flatnonzero(sparse_approx_gsm(instance.A, instance.y, k, profile="fast", verbosity=0))


PEERS = {
    "OMP (scikit-learn)": lambda i, k: np.flatnonzero(baselines.omp(i.problem, k)),
    "abess": abess,
    "MCP path (skglm)": skglm_mcp,
    "soft-min (sparse-approx-gsm)": soft_min,
}
PAPER = "the paper's schedule"
# each with a time limit; the last two sample a law, and are here for comparison
OURS = {
    "solve: a walk over minima": lambda p, k, limit: solve(p, k, time_limit=limit, random_state=0),
    "annealing": lambda p, k, limit: anneal(p, k, time_limit=limit, random_state=0),
    "evidence at fixed size": lambda p, k, limit: evidence_anneal(
        p, k, time_limit=limit, random_state=0
    ),
    "replica exchange": lambda p, k, limit: temper(p, k, time_limit=limit, random_state=0),
    "population annealing": lambda p, k, limit: population_anneal(
        p, k, time_limit=limit, random_state=0
    ),
}
SOLVERS = PEERS | {
    PAPER: lambda i, k: anneal(i.problem, k, Schedule.paper(), polish=False, random_state=0).support
}
SOLVERS |= {
    f"{name}, {limit} s": lambda i, k, sampler=sampler, limit=limit: (
        sampler(i.problem, k, limit).support
    )
    for name, sampler in OURS.items()
    for limit in LIMITS
}


def measure(n, n_instances):
    """Distortion and seconds of each solver on each instance."""
    k = n // 5
    table = {}
    first = ensembles.noise_only(n, 0.5, random_state=10**6)
    for name, solver in SOLVERS.items():
        try:
            solver(first, k)  # compiled, imported
        except ImportError as error:
            print(f"{name}: left out ({error})")
            continue
        rows = []
        for s in range(n_instances):
            instance = ensembles.noise_only(n, 0.5, random_state=s)
            _ = instance.problem.gram  # A and y are at hand for all
            began = time.perf_counter()
            support = solver(instance, k)
            seconds = time.perf_counter() - began
            rows.append((instance.problem.energy(support) / instance.y.size, seconds))
        table[name] = np.array(rows).tolist()
        eps, seconds = np.array(rows).T
        print(
            f"{name:34s} ε = {eps.mean():.4f} ± {eps.std() / np.sqrt(len(eps)):.4f}   "
            f"{np.median(seconds):.3f} s",
            flush=True,
        )
    return table


def draw(path, table, n):
    """One plot: a line of ours, points of the others."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.4, 4.6), layout="constrained")

    def point(rows):
        eps, seconds = np.array(rows).T
        return np.median(seconds), eps.mean(), eps.std() / np.sqrt(len(eps))

    n_signals = len(next(iter(table.values())))
    for name, color, mark in zip(OURS, OUR_COLORS, "osv^D"):
        points = [point(table[f"{name}, {limit} s"]) for limit in LIMITS]
        style = {"color": color, "capsize": 2, "marker": mark, "markersize": 5}
        ax.errorbar(*np.array(points).T, label=name, **style)
    for name, color, mark in zip((PAPER, *PEERS), PEER_COLORS, "*PXhd"):
        if name in table:
            style = {"color": color, "capsize": 2, "marker": mark, "markersize": 9, "mec": "black"}
            ax.errorbar(*point(table[name]), linestyle="none", label=name, **style)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="seconds per signal, one thread",
        ylabel="distortion ε = ‖y − Ax‖²/2M",
        title=f"Noise only, N = {n}, M = {n // 2}, k = {n // 5}, {n_signals} signals",
    )
    ticks = [0.015, 0.02, 0.03, 0.05, 0.1, 0.2]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def main():
    """Measure, keep, draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--data", type=Path, default=OUT / "frontier.json")
    parser.add_argument("--plot", type=Path, default=OUT / "frontier.png")
    options = parser.parse_args()
    print_origin()
    table = measure(options.n, options.instances)
    options.data.write_text(json.dumps(table), encoding="utf-8")
    draw(options.plot, table, options.n)


if __name__ == "__main__":
    main()
