"""Seconds and memory against the number of columns: ``python benchmarks/sizes.py``.

Plants 20 columns in matrices of up to 2000 × 500,000, in the storage that such data have, and searches
for them with `kick_search`. Each search runs in a process of its own. Its memory is the largest resident
size of that process, less the size before the data were opened, and less the data themselves. Orthogonal
matching pursuit (OMP) is computed here in blocks of columns. abess is tried where it is installed, and
stopped after `PATIENCE` seconds, or at `MOST_MEMORY`.

The genotypes are counts 0, 1, 2 of an allele. Its frequency, between .05 and .5, is the same for 50
neighbouring columns, in which each chromosome copies the allele of the column before with probability
.8. The planted columns have equal effects in units of their standard deviation. Half of the variance of
y is noise, and a tenth where there are only 500 rows.

Seconds are those of the processor, so that other work on the machine does not count; the wall-clock time
is stored beside them.

Writes ``docs/beyond/sizes.json`` and ``sizes.png``, unless ``--quick`` is given. Needs 3 GB of disk.
"""

import argparse
import json
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse

from origin import print_origin

OUT = Path(__file__).parents[1] / "docs" / "beyond"
PLANTED, N_KICKS = 20, 4
PATIENCE = 120  # seconds
MOST_MEMORY = 14 * 2**30  # bytes for abess, which copies the data to double precision several times
# name: rows, columns, storage
LADDER = {f"genotypes {n}": (2000, n, "int8") for n in (1000, 3000, 10**4, 3 * 10**4, 10**5)}
CASES = {
    **LADDER,
    "genotypes 500000": (2000, 500_000, "int8"),
    "single precision": (2000, 50_000, "float32"),
    "memory map": (500, 200_000, "float32, memory map"),
    "sparse": (5000, 20_000, "sparse, 1 %"),
}
QUICK = {
    "genotypes 1000": (200, 1000, "int8"),
    "memory map": (200, 3000, "float32, memory map"),
    "sparse": (500, 2000, "sparse, 1 %"),
}


# ------------------------------------------------------------ data


def genotypes(m, n, rng):
    """Return counts of alleles, stored column by column."""
    A = np.empty((n, m), dtype=np.int8)
    chromosomes = np.zeros((2, m), dtype=bool)
    for j in range(n):
        if j % 50 == 0:
            frequency = rng.uniform(0.05, 0.5)
            chromosomes = rng.random((2, m), dtype=np.float32) < frequency
        draws = rng.integers(0, 256, (2, 2, m), dtype=np.uint8)
        new = draws[0] < round(256 * frequency)
        chromosomes = np.where(draws[1] < 205, chromosomes, new)
        A[j] = chromosomes.sum(axis=0, dtype=np.int8)
    return A.T


def make(name, shape, folder):
    """Write the matrix, y and the planted columns of a case."""
    m, n, storage = shape
    rng = np.random.default_rng([m, n])
    if storage == "int8":
        A = genotypes(m, n, rng)
    elif storage.startswith("sparse"):
        A = scipy.sparse.random(m, n, 0.01, "csc", np.float64, rng, rng.standard_normal)
    else:
        A = rng.standard_normal((m, n), dtype=np.float32)
    planted = np.sort(rng.choice(n, PLANTED, replace=False))
    columns = A[:, planted].toarray() if scipy.sparse.issparse(A) else A[:, planted].astype(float)
    spread = np.where(columns.std(axis=0) > 0, columns.std(axis=0), 1.0)
    signal = (columns - columns.mean(axis=0)) / spread @ rng.choice([-1, 1], PLANTED)
    noise = 1.0 if m > 500 else 1.0 / 3.0
    y = signal + noise * signal.std() * rng.standard_normal(m)
    if scipy.sparse.issparse(A):
        scipy.sparse.save_npz(folder / f"{name}.npz", A, compressed=False)
    else:
        np.save(folder / f"{name}.npy", A)
    np.savez(folder / f"{name}.y.npz", y=y, planted=planted)


def load(name, shape, folder):
    """Return the matrix of a case, opened as its storage says."""
    storage = shape[2]
    if storage.startswith("sparse"):
        return scipy.sparse.load_npz(folder / f"{name}.npz")
    return np.load(folder / f"{name}.npy", mmap_mode="r" if "map" in storage else None)


# ------------------------------------------------------------ methods


def by_kicks(A, y):
    """Search with kicks, and return the support."""
    from l0anneal import SparseProblem, kick_search

    intercept = None if scipy.sparse.issparse(A) else True
    problem = SparseProblem(A, y, intercept=intercept)
    return kick_search(problem, PLANTED, n_kicks=N_KICKS, random_state=0, progress=True).support


def by_omp(A, y, width=2048):
    """Orthogonal matching pursuit on centred columns of unit norm, read in blocks."""
    sparse = scipy.sparse.issparse(A)
    y = y if sparse else y - y.mean()
    norms, chosen, residual = np.ones(A.shape[1]), [], y
    for step in range(PLANTED):
        score = np.empty(A.shape[1])
        for start in range(0, A.shape[1], width):
            cut = slice(start, start + width)
            block = A[:, cut].toarray() if sparse else A[:, cut].astype(np.float64)
            if step == 0:
                shift = 0.0 if sparse else block.mean(axis=0)
                squares = np.maximum(((block - shift) ** 2).sum(axis=0), 1e-300)
                norms[cut] = np.sqrt(squares)
            score[cut] = np.abs(block.T @ residual) / norms[cut]  # the residual has mean zero
        score[chosen] = -1.0
        chosen.append(int(np.argmax(score)))
        columns = A[:, chosen].toarray() if sparse else A[:, chosen].astype(np.float64)
        columns = columns if sparse else columns - columns.mean(axis=0)
        residual = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    return np.sort(chosen)


def by_abess(A, y):
    """Run abess with the number of columns given."""
    from abess.linear import LinearRegression

    dense = A if scipy.sparse.issparse(A) else np.ascontiguousarray(A, dtype=np.float64)
    model = LinearRegression(support_size=PLANTED, fit_intercept=not scipy.sparse.issparse(A))
    return np.flatnonzero(model.fit(dense, y).coef_)


METHODS = {"kick_search": by_kicks, "OMP": by_omp, "abess": by_abess}


# ------------------------------------------------------------ one row of the table


def resident():
    """Return the present resident size of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak():
    """Return the largest resident size of this process in bytes.

    ``ru_maxrss`` is not used, because Linux lets it begin with the largest size of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


def data_bytes(A):
    """Return the size of a matrix in its storage."""
    if scipy.sparse.issparse(A):
        return A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    return A.nbytes


def measure(name, shape, folder, method):
    """Run one method on one case, and print what it took as JSON."""
    truth = np.load(folder / f"{name}.y.npz")
    if method == "kick_search":
        import l0anneal.samplers.kicks.search  # noqa: F401

        by_kicks(np.random.default_rng(0).standard_normal((100, 60)), np.arange(100.0))
    elif method == "abess":
        import abess.linear  # noqa: F401

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    before = resident()
    A = load(name, shape, folder)
    began, worked = time.perf_counter(), time.process_time()
    support = METHODS[method](A, truth["y"])
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    beside = max(0, peak() - before - data_bytes(A))
    common = np.intersect1d(support, truth["planted"]).size
    f1 = 2 * common / (len(support) + PLANTED)
    print(json.dumps({"seconds": seconds, "cpu": cpu, "beside": beside / 2**20, "f1": f1}))


def run(name, folder, method, quick):
    """Return what `measure` prints in a process of its own; None if that fails or takes too long."""
    command = [sys.executable, __file__, "--measure", name, method, str(folder)]
    limit = PATIENCE if method == "abess" else None
    try:
        done = subprocess.run(
            command + ["--quick"] * quick, stdout=subprocess.PIPE, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    return json.loads(done.stdout.splitlines()[-1])


# ------------------------------------------------------------ the table


def exponent(table):
    """Return the slope of log seconds against log N on the genotypes, by least squares."""
    ladder = [row for row in table if row["case"].startswith("genotypes")]
    n = [row["columns"] for row in ladder]
    seconds = [row["kick_search"]["cpu"] for row in ladder]
    return float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def show(shape, row):
    """Print one row of the table."""
    m, n, storage = shape
    print(f"{m:5d} × {n:<7d} {storage:20s}", end="")
    for method in METHODS:
        found = row[method]
        if found is None:
            print(f" | {method:11s}      –", end="")
        else:
            print(f" | {method:11s} {found['cpu']:6.1f} s", end="")
            print(f" {found['beside']:6.0f} MiB  F1 {found['f1']:.2f}", end="")
    print(flush=True)


def draw(table, slope):
    """Draw seconds and memory against the number of columns."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in table if row["case"].startswith("genotypes")]
    n = [row["columns"] for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for method, marker in zip(METHODS, "os^"):
        there = [row for row in rows if row[method] is not None]
        at = [row["columns"] for row in there]
        left.loglog(at, [row[method]["cpu"] for row in there], marker + "-", label=method)
        right.loglog(at, [row[method]["beside"] for row in there], marker + "-", label=method)
    right.loglog(n, [2000 * j / 2**20 for j in n], "k:", label="the data")
    left.set(
        xlabel="columns N",
        ylabel="seconds of the processor",
        title=f"kick_search: seconds ∝ N$^{{{slope:.2f}}}$",
    )
    right.set(
        xlabel="columns N", ylabel="MiB beside the data", title="2000 rows of 8-bit genotypes"
    )
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    figure.savefig(OUT / "sizes.png", dpi=150)


def main():
    """Make the data of each case, run the methods, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small matrices, and nothing is written"
    )
    parser.add_argument(
        "--only", nargs="+", choices=CASES, help="run these, and keep the other rows"
    )
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = QUICK if options.quick else CASES
    if options.measure:
        name, method, folder = options.measure
        measure(name, cases[name], Path(folder), method)
        return
    print_origin()
    table = {}
    if options.only:
        table = {row["case"]: row for row in json.loads((OUT / "sizes.json").read_text())["table"]}
    for name in options.only or cases:
        shape = cases[name]
        with tempfile.TemporaryDirectory() as folder:
            make(name, shape, Path(folder))
            row = {method: run(name, Path(folder), method, options.quick) for method in METHODS}
        if row["kick_search"] is None:
            raise RuntimeError(f"kick_search failed on {name}; its error is above")
        show(shape, row)
        m, n, storage = shape
        table[name] = {"case": name, "rows": m, "columns": n, "storage": storage, **row}
    if options.quick:
        return
    rows = list(table.values())
    slope = exponent(rows)
    print(f"seconds of kick_search grow as N^{slope:.2f}, from N = 10³ to 5·10⁵")
    content = {"exponent": slope, "n_kicks": N_KICKS, "machine": platform.machine(), "table": rows}
    (OUT / "sizes.json").write_text(json.dumps(content, indent=1) + "\n")
    draw(rows, slope)


if __name__ == "__main__":
    main()
