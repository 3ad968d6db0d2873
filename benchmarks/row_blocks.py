"""Rows per second of a problem from a Parquet file: ``python benchmarks/row_blocks.py``.

Writes random rows to a file in a temporary folder, and compares the time of
`SparseProblem.from_parquet` with that of reading the same batches and doing nothing.
``--rows 10000000 --columns 200 --float32`` needs 8 GB of disk. With ``--generator``, the rows are made
while they are added up, and never stored: ``--generator --rows 100000000 --columns 20 --float32`` shows
that the memory does not grow with the number of rows. The peak memory of the process is printed at the
end. Seconds are those of the processor, so that other work on the machine does not count.

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

from l0anneal import SparseProblem, kick_search
from origin import print_origin

BATCH = 65536


def batches(n_rows, n_columns, dtype, seed=0):
    """Yield standard normal columns as rows of X, and y, which depends on the first two of them."""
    rng = np.random.default_rng(seed)
    for first in range(0, n_rows, BATCH):
        X = rng.standard_normal((n_columns, min(BATCH, n_rows - first)), dtype=dtype)
        yield X, X[0] - X[1] + rng.standard_normal(X.shape[1], dtype=dtype)


def write(path, n_rows, n_columns, dtype):
    """Write the columns x0, x1, ... and y."""
    names = [f"x{j}" for j in range(n_columns)]
    schema = pa.schema([(name, pa.from_numpy_dtype(dtype)) for name in [*names, "y"]])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for X, y in batches(n_rows, n_columns, dtype):
            writer.write_table(pa.table([*X, y], schema=schema))


def read(path):
    """Read all batches, and return the number of rows."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        return sum(batch.num_rows for batch in file.iter_batches(batch_size=BATCH))


def timed(function, *arguments):
    """Return the seconds of the processor that a call takes, and its value."""
    began = time.process_time()
    value = function(*arguments)
    return time.process_time() - began, value


def peak_megabytes():
    """Return the largest memory of this process so far; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def from_file(n_rows, n_columns, dtype):
    """Write a file, read it, and add it up."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, n_rows, n_columns, dtype)
        size = path.stat().st_size
        read(path)  # so that both find the file in the cache, if it fits there
        reading, n_read = timed(read, path)
        adding, problem = timed(SparseProblem.from_parquet, path, "y")
    check(problem, n_read)
    print(f"{n_read} rows × {n_columns} columns of {dtype}, {size / 1e6:.0f} MB on disk")
    print(f"plain read    {n_rows / reading:12.0f} rows/s  {reading:8.2f} s")
    print(f"from_parquet  {n_rows / adding:12.0f} rows/s  {adding:8.2f} s")


def from_generator(n_rows, n_columns, dtype):
    """Make rows, and make and add them up, first a tenth of them and then all."""
    print(f"{n_rows} rows × {n_columns} columns of {dtype} from a generator")
    for part in (n_rows // 10, n_rows):
        making, n_made = timed(count, batches(part, n_columns, dtype))
        blocks = ((X.T, y) for X, y in batches(part, n_columns, dtype))
        adding, problem = timed(SparseProblem.from_blocks, blocks)
        check(problem, n_made)
        print(f"{part} rows: made in {making:.1f} s, made and added up in {adding:.1f} s ", end="")
        print(f"({part / adding:.0f} rows/s); peak memory so far {peak_megabytes() or 0:.0f} MB")


def count(made):
    """Return the number of rows in batches."""
    return sum(len(y) for _, y in made)


def check(problem, n_rows):
    """Raise RuntimeError if rows were lost, or the first two columns are not the best ones."""
    if problem.n_samples != n_rows - 1:
        raise RuntimeError(f"{n_rows} rows were read, but {problem.n_samples + 1} were added up")
    found = kick_search(problem, 2, n_kicks=10, random_state=0).support
    if found.tolist() != [0, 1]:
        raise RuntimeError(f"columns 0 and 1 were planted, but {found} were found")


def main():
    """Compare the times, and print the memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--float32", action="store_true", help="store single precision")
    parser.add_argument("--generator", action="store_true", help="store nothing")
    options = parser.parse_args()
    print_origin()
    dtype = np.dtype(np.float32 if options.float32 else np.float64)
    run = from_generator if options.generator else from_file
    run(options.rows, options.columns, dtype)
    peak = peak_megabytes()
    if peak is not None:
        print(f"peak memory of the process {peak:.0f} MB")


if __name__ == "__main__":
    main()
