"""Times of the engine, as ratios within one run: ``make bench``, or ``python benchmarks/run.py``.

Single-threaded throughout. Machines are noisy: compare ratios, not seconds. The last table has the main
figures beside those of the first version that had all samplers, and beside the goals set then. How close
a search comes to the best known support takes long: ``python benchmarks/last_percent.py``.
"""

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from rich.console import Console
from rich.table import Table

from l0anneal import Schedule, anneal, ensembles, sparse_encode
from l0anneal.engine.moves import pair_flip
from l0anneal.engine.moves.protocol import ACCEPTED, OUTSIDE, SLOT
from l0anneal.engine.refresh import refresh
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from origin import print_origin
from paper_numpy import paper_annealing
from wide import wide_data

console = Console(highlight=False)
PAPER = Schedule.paper()
MATLAB = {100: 6, 200: 15, 400: 38}
# seconds of the first version, by number of atoms and of kicks
CODING_BEFORE = {
    (5, 0): 0.18,
    (5, 2): 0.62,
    (5, 10): 2.02,
    (12, 0): 0.39,
    (12, 2): 1.04,
    (12, 10): 3.94,
    (20, 0): 0.96,
    (20, 2): 2.33,
    (20, 10): 6.69,
}


def best_of(function, repeats=3):
    """Least seconds of a few calls, and what the last one returned."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        value = function()
        seconds.append(time.perf_counter() - began)
    return min(seconds), value


def paper_schedule(quick):
    """Ours against the paper's algorithm, same problem, same schedule."""
    table = Table(title="The paper's schedule, α = .5, ρ = .2, noise only: seconds per run")
    for name in ("N", "paper, MATLAB", "its algorithm in NumPy", "l0anneal", "ratio", "refreshing"):
        table.add_column(name, justify="right")
    ours_by_n, ratios = {}, {}
    for n in (100, 200, 400, 1000):
        instance = ensembles.noise_only(n, 0.5, random_state=1)
        k = n // 5
        anneal(instance.problem, k, Schedule.paper(n=2), polish=False)

        def run(problem=instance.problem, k=k):
            return anneal(problem, k, PAPER, polish=False, random_state=0)

        ours, result = best_of(run, 5)
        mus = PAPER.mu[:: 10 if quick or n > 400 else 1]
        theirs, _ = best_of(lambda i=instance, k=k, m=mus: paper_annealing(i.A, i.y, k, m, 5, 0), 1)
        theirs *= len(PAPER) / len(mus)
        workspace = Workspace(instance.problem, k)
        workspace.fill(k, result.support)
        each, _ = best_of(lambda t=workspace.tableau: refresh(t), 20)
        table.add_row(
            str(n),
            str(MATLAB.get(n, "–")),
            f"{theirs:.2f}",
            f"{ours:.4f}",
            f"{theirs / ours:.0f} ×",
            f"{each * result.refreshes / ours:.1%}",
        )
        ours_by_n[n] = ours
        ratios[n] = theirs / ours
    console.print(table)
    for n in () if quick else (1600,):
        instance = ensembles.noise_only(n, 0.5, random_state=1)
        ours_by_n[n], _ = best_of(
            lambda p=instance.problem, k=n // 5: anneal(p, k, PAPER, polish=False, random_state=0),
            1,
        )
    sizes = np.array(list(ours_by_n))
    seconds = np.array(list(ours_by_n.values()))
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    times = ", ".join(f"{n}: {s:.3g} s" for n, s in ours_by_n.items())
    console.print(f"time ∝ N^{slope:.2f}   ({times}); the paper's order is N³\n")
    return ratios


def rejected_proposals():
    """Nanoseconds per proposal where none is accepted."""
    table = Table(title="Rejected proposals, α = .5, ρ = .2")
    table.add_column("N", justify="right")
    table.add_column("ns each", justify="right")
    cost = []
    for n in (100, 200, 400, 800, 1600):
        instance = ensembles.noise_only(n, 0.5, random_state=1)
        workspace = Workspace(instance.problem, n // 5)
        workspace.fill_greedily(n // 5)
        workspace.descend()
        count = 10**6
        seconds, tally = best_of(lambda w=workspace, c=count: flip(w, 1e15, c), 5)
        assert tally[ACCEPTED] == 0
        cost.append(seconds / count * 1e9)
        table.add_row(str(n), f"{cost[-1]:.1f}")
    console.print(table)
    console.print(f"largest / smallest: {max(cost) / min(cost):.2f} (O(1) per proposal)\n")
    return cost


def accepted_moves():
    """Rate of the update of an accepted move, beside a matrix product on this machine."""
    a = np.random.default_rng(0).standard_normal((800, 800))
    seconds, _ = best_of(lambda: a @ a, 5)
    dgemm = 2 * 800**3 / seconds / 1e9
    table = Table(title=f"Accepted moves; DGEMM here: {dgemm:.1f} Gflop/s")
    for name in ("N", "K", "µs each", "Gflop/s", "of DGEMM"):
        table.add_column(name, justify="right")
    for n, k in ((100, 20), (400, 80), (400, 260), (1600, 320)):
        instance = ensembles.noise_only(n, 0.8, random_state=1)
        workspace = Workspace(instance.problem, k)
        workspace.fill(k, np.arange(n))
        count = 2 * n
        seconds, tally = best_of(lambda w=workspace, c=count: flip(w, 0.0, c), 7)
        assert tally[ACCEPTED] == count
        flops = 6 * (n - k) * k + 2 * k * k
        rate = flops * count / seconds / 1e9
        each = seconds / count * 1e6
        table.add_row(str(n), str(k), f"{each:.2f}", f"{rate:.1f}", f"{rate / dgemm:.0%}")
    console.print(table)
    console.print("(the whole proposal counted; flops: 6(N − K)K + 2K²)\n")


def flip(workspace, mu, count):
    """Run the pair flip with the whole tableau for ``count`` proposals."""
    tally = np.zeros(4, dtype=np.int64)
    tally[SLOT] = tally[OUTSIDE] = -1
    energies = np.zeros(count // workspace.problem.n_columns + 1)
    workspace.run(pair_flip, stream(np.random.SeedSequence(0)), mu, count, energies, tally)
    return tally


def mean_distortion(count):
    """The paper's schedule at N = 400 over many instances."""
    values = []
    for seed in range(count):
        instance = ensembles.noise_only(400, 0.5, random_state=1000 + seed)
        values.append(
            anneal(instance.problem, 80, PAPER, polish=False, random_state=seed).distortion
        )
    error = np.std(values, ddof=1) / np.sqrt(count)
    console.print(
        f"distortion of the paper's schedule, N = 400, {count} instances: "
        f"{np.mean(values):.5f} ± {error:.5f}   (paper: 0.0272 ± 0.0006)\n"
    )


FRONT_DOORS = {
    "anneal": "l0anneal.anneal(problem, 4, random_state=0)",
    "solve": "l0anneal.solve(problem, 4, time_limit=0.1, random_state=0)",
    "fit": "l0anneal.AnnealedSubsetRegressor(random_state=0).fit(A, y)",
    "all samplers": """
l0anneal.anneal(problem, 4, short, move="auto", random_state=0)
l0anneal.anneal(problem, 4, short, move="multi flip", random_state=0)
l0anneal.kick_search(problem, 4, n_kicks=5, random_state=0)
l0anneal.temper(problem, sizes=(3, 5), n_sweeps=100, random_state=0)
l0anneal.population_anneal(problem, 4, random_state=0)
l0anneal.evidence_anneal(problem, n_draws=100, random_state=0)
l0anneal.sparse_encode(A[:5], A[5:], 3, random_state=0)
""",
}
FIRST_USE = """
import time, warnings
import numpy as np, sklearn.linear_model
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
A = rng.standard_normal((60, 30))
y = A[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(60)
began = time.perf_counter()
import l0anneal
problem = l0anneal.SparseProblem(A, y)
short = l0anneal.Schedule.geometric(0.1, 10.0, n=5, tau=1)
{call}
print(time.perf_counter() - began)
"""


def coding():
    """Seconds of sparse coding by number of atoms and of kicks."""
    from coding import SIZES, cosines, patches

    Y, D = patches(5000), cosines()[1:]
    table = Table(title="Coding of 5,000 patches of 8 × 8 pixels, 255 atoms: seconds")
    n_kicks = (0, 2, 10)
    for name in ("k", *(f"{n} kicks" for n in n_kicks)):
        table.add_column(name, justify="right")
    found = {}
    sparse_encode(Y[:2], D, 3, n_kicks=1, random_state=0)
    for k in SIZES:
        for n in n_kicks:
            call = functools.partial(sparse_encode, Y, D, k, n_kicks=n, random_state=0)
            found[k, n], _ = best_of(call, 3)
        table.add_row(str(k), *(f"{found[k, n]:.2f}" for n in n_kicks))
    console.print(table)
    return found


def first_use():
    """Import to first answer with an empty cache of kernels, and in the next process."""
    table = Table(title="Import to answer, 60 × 30, seconds (scikit-learn imported before)")
    for name in ("front door", "first use", "next process"):
        table.add_column(name, justify="right")
    found = {}
    for door, call in FRONT_DOORS.items():
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            command = [sys.executable, "-c", FIRST_USE.format(call=call)]
            seconds = [
                float(
                    subprocess.run(
                        command, env=environment, check=True, capture_output=True, text=True
                    ).stdout
                )
                for _ in range(3)
            ]
        table.add_row(door, f"{seconds[0]:.1f}", f"{min(seconds[1:]):.2f}")
        found[door] = seconds[0], min(seconds[1:])
    console.print(table)
    return found


def before_after(ratios, rejected, wide, codes, first):
    """Print the main figures beside those of the first version, and beside the goals."""
    rows = [
        ("first use of anneal, s", "80", f"{first['anneal'][0]:.1f}", "20"),
        ("first use of solve, s", "66 to 75", f"{first['solve'][0]:.1f}", "20"),
        ("first use of fit, s", "", f"{first['fit'][0]:.1f}", "20"),
        ("first use of all samplers, s", "160", f"{first['all samplers'][0]:.1f}", "60"),
        ("next process, the slowest, s", "18", f"{max(s for _, s in first.values()):.2f}", "1.5"),
        ("evidence, 1000 × 20,000, s", "90", f"{wide[0]:.1f}", "10"),
        ("20 kicks, 1000 × 20,000, s", "10", f"{wide[1]:.1f}", "3"),
    ]
    for (k, n), before in CODING_BEFORE.items():
        now = f"{codes[k, n]:.2f}"
        rows.append((f"coding, k = {k}, {n} kicks, s", f"{before:.2f}", now, f"{before / 2:.2f}"))
    for n in (400, 1000):
        rows.append((f"annealing, NumPy = 1, N = {n}", "38 to 50", f"{ratios[n]:.0f}", "100"))
    rows.append(("rejected proposals, N = 800, ns", "20", f"{rejected[-2]:.1f}", "flat"))
    rows.append(("rejected proposals, N = 1600, ns", "100", f"{rejected[-1]:.1f}", "flat"))
    table = Table(title="Before and after, one thread; before: another machine")
    for name, justify in (("", "left"), ("before", "right"), ("now", "right"), ("goal", "right")):
        table.add_column(name, justify=justify)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main():
    """Run all of it, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the slow rival's run")
    parser.add_argument("--instances", type=int, default=40)
    options = parser.parse_args()
    print_origin()
    ratios = paper_schedule(options.quick)
    rejected = rejected_proposals()
    accepted_moves()
    mean_distortion(options.instances)
    wide = wide_data(1 if options.quick else 3, console)
    codes = coding()
    before_after(ratios, rejected, wide, codes, first_use())


if __name__ == "__main__":
    main()
