"""Distortion against seconds on noise, ours and the peers: ``python benchmarks/frontier.py``.

Noise only, α = .5, ρ = .2: the paper's case without a plan. The same instances for all, one thread,
least squares on each tool's k columns. Peers that are not installed are left out with a word (the extra:
``pip install l0anneal[benchmark]``).
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

from l0anneal import Schedule, anneal, baselines, ensembles, solve

LIMITS = (0.05, 0.1, 0.2, 0.4, 1.0, 2.0)


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


SOLVERS = {
    "OMP (scikit-learn)": lambda i, k: np.flatnonzero(baselines.omp(i.problem, k)),
    "abess": abess,
    "MCP path (skglm)": skglm_mcp,
    "the paper's schedule": lambda i, k: (
        anneal(i.problem, k, Schedule.paper(), polish=False, random_state=0).support
    ),
} | {
    f"solve, {limit} s": lambda i, k, limit=limit: (
        solve(i.problem, k, time_limit=limit, random_state=0).support
    )
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
            f"{name:22s} ε = {eps.mean():.4f} ± {eps.std() / np.sqrt(len(eps)):.4f}   "
            f"{np.median(seconds):.3f} s",
            flush=True,
        )
    return table


def draw(path, table, n):
    """One plot: a line of ours, points of the others."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    colors = iter(["#E69F00", "#009E73", "#CC79A7", "#D55E00"])
    ours = []
    for name, rows in table.items():
        eps, seconds = np.array(rows).T
        point = (np.median(seconds), eps.mean(), eps.std() / np.sqrt(len(eps)))
        if name.startswith("solve"):
            ours.append(point)
        else:
            ax.errorbar(*point, fmt="s", color=next(colors), capsize=3, label=name)
    t, eps, error = np.array(ours).T
    ax.errorbar(t, eps, error, fmt="o-", color="#0072B2", capsize=3, label="solve(time_limit=…)")
    ax.set(
        xscale="log",
        xlabel="seconds per signal, one thread",
        ylabel="distortion ε = ‖y − Ax‖²/2M",
        title=f"Noise only, N = {n}, M = {n // 2}, k = {n // 5}, {len(rows)} signals",
    )
    ax.legend(frameon=False)
    figure.savefig(path, dpi=130)


def main():
    """Measure, keep, draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--plot")
    options = parser.parse_args()
    table = measure(options.n, options.instances)
    if options.data:
        options.data.write_text(json.dumps(table), encoding="utf-8")
    if options.plot:
        draw(options.plot, table, options.n)


if __name__ == "__main__":
    main()
