"""Rows per second of a problem from a Parquet file: ``python benchmarks/row_blocks.py``.

Writes random rows to a file in a temporary folder, and compares the time of `SparseProblem.from_parquet`
with that of reading the same batches and doing nothing. ``--rows 10000000 --columns 200`` needs 16 GB of
disk. The peak memory of the process is printed at the end.

Needs the extra: ``pip install l0anneal[tables]``.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from l0anneal import SparseProblem

BATCH = 65536


def write(path, n_rows, n_columns, seed=0):
    """Write standard normal columns, and y, which depends on the first two of them."""
    rng = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(n_columns)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for first in range(0, n_rows, BATCH):
            X = rng.standard_normal((n_columns, min(BATCH, n_rows - first)))
            y = X[0] - X[1] + rng.standard_normal(X.shape[1])
            writer.write_table(pa.table([*X, y], schema=schema))


def read(path):
    """Read all batches, and return the number of rows."""
    with pq.ParquetFile(path) as file:
        return sum(batch.num_rows for batch in file.iter_batches(batch_size=BATCH))


def timed(function, *arguments):
    """Return the seconds that a call takes, and its value."""
    began = time.perf_counter()
    value = function(*arguments)
    return time.perf_counter() - began, value


def peak_megabytes():
    """Return the largest memory of this process so far; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def main():
    """Write, read and add up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--columns", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, options.rows, options.columns)
        size = path.stat().st_size
        read(path)  # so that both find the file in the cache, if it fits there
        reading, n_rows = timed(read, path)
        adding, problem = timed(SparseProblem.from_parquet, path, "y")
    if problem.n_samples != n_rows - 1:
        raise RuntimeError(f"{n_rows} rows were read, but {problem.n_samples + 1} were added up")
    print(f"{n_rows} rows × {options.columns} columns, {size / 1e6:.0f} MB on disk")
    print(f"plain read    {n_rows / reading:12.0f} rows/s  {reading:8.2f} s")
    print(f"from_parquet  {n_rows / adding:12.0f} rows/s  {adding:8.2f} s")
    peak = peak_megabytes()
    if peak is not None:
        print(f"peak memory of the process {peak:.0f} MB")


if __name__ == "__main__":
    main()
