"""Accepted changes per second of each move, hot and cold: ``python benchmarks/moves.py``.

Noise only, N = 400, α = .5, ρ = .2, one thread. Each move starts at a support that the pair flip
has brought to the temperature. Machines are noisy: compare the moves of one run.
"""

import argparse
import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from rich.console import Console
from rich.table import Table

from l0anneal import ensembles
from l0anneal.engine.moves import (
    heat_bath,
    multi_flip,
    new_tally,
    pair_flip,
    pair_flip_direct,
    rejection_free,
)
from l0anneal.engine.moves.protocol import ACCEPTED, PROPOSED
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from origin import print_origin

MOVES = {
    "pair flip, direct": pair_flip_direct,
    "pair flip": pair_flip,
    "heat bath": heat_bath,
    "multi flip, 2 pairs": multi_flip,
    "rejection free": rejection_free,
}
TEMPERATURES = {"hot": 1.0, "middle": 20.0, "cold": 300.0}


def run(workspace, move, mu, n_proposals, seed):
    """Run a move for ``n_proposals``; return its counts."""
    tally = new_tally()
    energies = np.zeros(n_proposals // workspace.problem.n_columns + 1)
    beta = mu * workspace.problem.unit_energy
    state = stream(np.random.SeedSequence(seed))
    workspace.run(move, state, beta, n_proposals, energies, tally)
    return tally


def measure(problem, k, path, move, seconds):
    """Anneal to the last μ of ``path`` by pair flips, then time the move there."""
    workspace = Workspace(problem, k)
    workspace.fill(k, np.random.default_rng(0).permutation(problem.n_columns))
    for i, mu in enumerate(path):
        run(workspace, pair_flip, mu, 20 * problem.n_columns, i)
    run(workspace, move, path[-1], 10 * problem.n_columns, 1000)  # compiled, and settled
    count, proposed, accepted = problem.n_columns, 0, 0
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        tally = run(workspace, move, path[-1], count, 2000 + proposed)
        proposed += int(tally[PROPOSED])
        accepted += int(tally[ACCEPTED])
        count *= 2
    return accepted / spent, accepted / proposed, spent / proposed


def main():
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="processor time for each number")
    options = parser.parse_args()
    print_origin()
    problem = ensembles.noise_only(400, 0.5, random_state=1).problem
    table = Table(title="Accepted changes per second (fraction of proposals, µs per proposal)")
    table.add_column("move")
    for name, mu in TEMPERATURES.items():
        table.add_column(f"{name}, μ = {mu:g}", justify="right")
    for name, move in MOVES.items():
        cells = []
        for mu in TEMPERATURES.values():
            path = np.geomspace(0.5, mu, 20)
            rate, fraction, each = measure(problem, 80, path, move, options.seconds)
            cells.append(f"{rate:,.0f} ({fraction:.2g}, {1e6 * each:.3g})")
        table.add_row(name, *cells)
    Console(highlight=False, width=120).print(table)


if __name__ == "__main__":
    main()
