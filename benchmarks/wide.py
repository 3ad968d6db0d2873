"""Wide data, 1000 × 20,000 with 50 true columns: ``python benchmarks/wide.py``, and in ``make bench``.

Columns and coefficients are Gaussian, and the signal-to-noise ratio is 5. `evidence_anneal` is told
nothing, `kick_search` makes 20 kicks with k = 50. Seconds are those of the processor.
"""

import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from rich.console import Console
from rich.table import Table

from l0anneal import SparseProblem, evidence_anneal, kick_search
from origin import print_origin

M, N, K, SNR = 1000, 20_000, 50, 5.0


def data(seed):
    """Return the columns, the target, the coefficients and the signal without noise."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N))
    coef = np.zeros(N)
    coef[rng.choice(N, K, replace=False)] = rng.standard_normal(K)
    signal = A @ coef
    return A, signal + rng.standard_normal(M) * np.sqrt(signal.var() / SNR), coef, signal


def f1(chosen, coef):
    """The harmonic mean of precision and recall of the chosen columns."""
    return 2 * np.count_nonzero(coef[chosen]) / (len(chosen) + K)


def wide_data(n_instances, console):
    """Print a table; return the mean seconds of `evidence_anneal` and of `kick_search`."""
    small = SparseProblem(np.eye(4), np.arange(4.0))  # compile first
    evidence_anneal(small, n_draws=2, max_attempts=1, random_state=0)
    kick_search(small, 2, n_kicks=1, random_state=0)
    table = Table(title=f"Wide data, {M} × {N:,}, {K} true columns, signal-to-noise ratio {SNR:g}")
    for name in ("data set", "evidence, s", "F1, p > ½", "error", "20 kicks, s", "F1"):
        table.add_column(name, justify="right")
    found = []
    for seed in range(n_instances):
        A, y, coef, signal = data(seed)
        seconds, results = [], []
        for search in (
            lambda problem: evidence_anneal(problem, random_state=0),
            lambda problem: kick_search(problem, K, n_kicks=20, random_state=0),
        ):
            began = time.process_time()
            results.append(search(SparseProblem(A, y)))
            seconds.append(time.process_time() - began)
        posterior, best = results
        error = np.sum((A @ posterior.coef - signal) ** 2) / np.sum(signal**2)
        likely = np.flatnonzero(posterior.inclusion_probability > 0.5)
        table.add_row(
            str(seed),
            f"{seconds[0]:.1f}",
            f"{f1(likely, coef):.2f}",
            f"{error:.3f}",
            f"{seconds[1]:.1f}",
            f"{f1(best.support, coef):.2f}",
        )
        found.append(seconds)
    console.print(table)
    evidence, kicks = np.mean(found, axis=0)
    return float(evidence), float(kicks)


if __name__ == "__main__":
    print_origin()
    wide_data(3, Console(highlight=False))
