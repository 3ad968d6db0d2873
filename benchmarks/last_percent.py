"""How close a search comes to the best known support: ``python benchmarks/last_percent.py``.

Noise only, α = .5, ρ = .2, one thread. Each instance is searched twice: by `kick_search` for a few time
limits, which are judged, and by several long searches with other seeds. The lowest energy of all of them
counts as the best known. The table has the excess of each limit over it, and in how many instances the
best known was found by two searches or more.
"""

import argparse
import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from rich.console import Console
from rich.table import Table

from l0anneal import ensembles, kick_search
from origin import print_origin

console = Console(highlight=False)


def judge(n, n_instances, limits, n_long, long):
    """Excess over the best known energy by time limit and instance, and how often that was found."""
    excess, agreed = np.empty((len(limits), n_instances)), 0
    for i in range(n_instances):
        problem, k = ensembles.noise_only(n, 0.5, random_state=i + 1).problem, n // 5
        judged = [kick_search(problem, k, time_limit=t, random_state=0).energy for t in limits]
        others = [
            kick_search(problem, k, time_limit=long, random_state=seed + 1).energy
            for seed in range(n_long)
        ]
        best = min(judged + others)
        excess[:, i] = np.array(judged) / best - 1.0
        agreed += int(np.sum(np.array([judged[-1], *others]) < best * (1.0 + 1e-9)) > 1)
        console.print(f"N = {n}, instance {i}: " + ", ".join(f"{e:.2%}" for e in excess[:, i]))
    return excess, agreed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=400)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--limits", type=float, nargs="+", default=[1.0, 5.0, 20.0])
    parser.add_argument("--n-long", type=int, default=2)
    parser.add_argument("--long", type=float, default=20.0, help="seconds of each long search")
    a = parser.parse_args()
    print_origin()
    kick_search(ensembles.noise_only(20, 0.5, random_state=0).problem, 4, n_kicks=1)  # compile
    excess, agreed = judge(a.n, a.instances, a.limits, a.n_long, a.long)
    table = Table(title=f"Excess over the best known energy, N = {a.n}, {a.instances} instances")
    for name in ("seconds", "median", "largest", "within 1 %", "within 2 %"):
        table.add_column(name, justify="right")
    for limit, row in zip(a.limits, excess, strict=True):
        within = [f"{np.sum(row <= share)} of {row.size}" for share in (0.01, 0.02)]
        table.add_row(f"{limit:g}", f"{np.median(row):.2%}", f"{row.max():.2%}", *within)
    console.print(table)
    console.print(f"found by at least two of the {a.n_long + 1} long searches: {agreed}")


if __name__ == "__main__":
    main()
