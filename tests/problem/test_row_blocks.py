"""Problems from blocks of rows have the sums of all rows, and say where a row is wrong."""

import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from l0anneal import SparseProblem
from l0anneal.problem import row_blocks

NAMES = ["a", "b", "c"]


def data(offset=0.0, scales=(1.0, 1.0, 1.0), n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n_rows, 3)) + offset) * np.array(scales)
    y = X @ [1.0 / scales[0], 0.0, -2.0 / scales[2]] + rng.standard_normal(n_rows) + offset
    return X, y, rng.integers(0, 4, n_rows) / 2


def cut(X, y, weights=None, size=7):
    arrays = (X, y) if weights is None else (X, y, weights)
    return [tuple(a[i : i + size] for a in arrays) for i in range(0, len(y), size)]


def exact(X, y, weights, intercept):
    """AᵀA with y as its last column, in rational numbers."""
    rows = [[Fraction(v) for v in (*x, t)] for x, t in zip(X.tolist(), y.tolist())]
    w = [Fraction(1)] * len(rows) if weights is None else [Fraction(v) for v in weights.tolist()]
    n = range(X.shape[1] + 1)
    means = [sum(v * r[j] for v, r in zip(w, rows)) / sum(w) * intercept for j in n]
    left = [[r[j] - means[j] for j in n] for r in rows]
    return np.array([[float(sum(v * r[i] * r[j] for v, r in zip(w, left))) for j in n] for i in n])


def sums_of(problem):
    """The same of a problem, from its public attributes."""
    norms = problem.column_norms
    b = problem.unit_correlation * np.sqrt(problem.unit_energy) * norms
    G = problem.gram * np.outer(norms, norms)
    return np.block([[G, b[:, None]], [b[None, :], np.array([[problem.signal_energy]])]])


def worst(problem, expected):
    """The largest error, in units of the norms of the columns."""
    norms = np.sqrt(np.diag(expected))
    return np.max(np.abs(sums_of(problem) - expected) / np.outer(norms, norms))


@pytest.fixture
def short_buffer(monkeypatch):
    """Buffers of 4 rows, so that sums are merged many times."""
    monkeypatch.setattr(row_blocks, "LEAST_ROWS", 4)
    monkeypatch.setattr(row_blocks, "BUFFER_BYTES", 1)


@pytest.mark.usefixtures("short_buffer")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize(
    ("offset", "scales"), [(0.0, (1, 1, 1)), (1e6, (1, 1, 1)), (1e3, (1e-9, 1, 1e9))]
)
def test_sums_are_exact(intercept, weighted, size, offset, scales):
    X, y, w = data(offset, scales)
    w = w if weighted else None
    problem = SparseProblem.from_blocks(cut(X, y, w, size), intercept=intercept)
    assert worst(problem, exact(X, y, w, intercept)) < 1e-12
    dense = SparseProblem(X, y, intercept=intercept, weights=w)
    assert problem.n_samples == dense.n_samples
    coef, energy = problem.least_squares([0, 2])
    if intercept:
        assert problem.column_means == pytest.approx(dense.column_means, rel=1e-14)
        assert coef == pytest.approx(dense.least_squares([0, 2])[0], rel=1e-11)
        assert energy == pytest.approx(dense.energy([0, 2]), rel=1e-11)
    else:
        assert problem.column_means is None


def test_products_without_centring_would_not_be_exact():
    X, y, _ = data(1e6)
    means, n = np.append(X.mean(axis=0), y.mean()), len(y)
    Z = np.column_stack([X, y])
    naive = Z.T @ Z - n * np.outer(means, means)
    expected = exact(X, y, None, True)
    norms = np.sqrt(np.diag(expected))
    assert np.max(np.abs(naive - expected) / np.outer(norms, norms)) > 1e-8


@pytest.mark.usefixtures("short_buffer")
def test_sorted_rows_with_an_offset_are_exact():
    X, y, _ = data(1e6)
    order = np.argsort(X[:, 0])  # the first rows are far from the means
    X, y = X[order], y[order]
    problem = SparseProblem.from_blocks(cut(X, y), intercept=True)
    assert worst(problem, exact(X, y, None, True)) < 1e-12


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 25), min_size=1, max_size=12))
def test_the_division_into_blocks_changes_nothing(lengths):
    X, y, w = data(1e3, n_rows=50)
    ends = np.minimum(np.cumsum(lengths), 50)
    parts = [np.split(array, ends) for array in (X, y, w)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "LEAST_ROWS", 8)
        patch.setattr(row_blocks, "BUFFER_BYTES", 1)
        whole = SparseProblem.from_blocks([(X, y, w)])
        cut_up = SparseProblem.from_blocks(zip(*parts))
    np.testing.assert_array_equal(whole.gram, cut_up.gram)
    np.testing.assert_array_equal(whole.column_norms, cut_up.column_norms)
    assert whole.signal_energy == cut_up.signal_energy


def test_a_constant_column_is_never_chosen():
    X, y, _ = data()
    X[:, 1] = 0.1
    problem = SparseProblem.from_blocks(cut(X, y))
    assert problem.column_norms[1] == 0
    assert np.all(problem.column_norms[[0, 2]] > 0)


def test_frames_lists_and_sparse_blocks_are_read():
    X, y, _ = data()
    expected = SparseProblem.from_blocks([(X, y)])
    frame = pd.DataFrame(X, columns=NAMES)
    assert SparseProblem.from_blocks([(frame, pd.Series(y))]).feature_names == ("a", "b", "c")
    for same in (frame, X.tolist(), scipy.sparse.coo_array(X), np.ma.asarray(X)):
        problem = SparseProblem.from_blocks([(same, y)])
        np.testing.assert_array_equal(problem.gram, expected.gram)
    named = SparseProblem.from_blocks([(X, y)], feature_names=["u", "v", "w"])
    assert named.feature_names == ("u", "v", "w")


def broken(**changes):
    """Three blocks of which the second has something wrong."""
    X, y, w = data(n_rows=20)
    wrong = {"X": X.copy(), "y": y.copy(), "w": w.copy()}
    for name, change in changes.items():
        wrong[name] = change(wrong[name])
    return [(X, y, w), (wrong["X"], wrong["y"], wrong["w"]), (X, y, w)]


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": put((5, 1), np.nan)}, "block 1 has NaN or infinity in column 1, row 5;"),
        ({"X": put((0, 2), -np.inf)}, "block 1 has NaN or infinity in column 2, row 0;"),
        ({"y": put(19, np.inf)}, "block 1 has NaN or infinity in y, row 19;"),
        ({"X": lambda X: X[:, :2]}, "block 1 has 2 columns, but block 0 has 3"),
        ({"X": lambda X: X[0]}, "X of block 1 must be a matrix of rows; got 1 dim"),
        ({"X": lambda X: X.astype(str)}, "X of block 1 must hold real numbers; got <U"),
        ({"y": lambda y: y[:7]}, "y of block 1 has length 7, but its X has 20 rows"),
        (
            {"y": lambda y: np.ones((20, 2))},
            r"y of block 1 must be one vector; got shape \(20, 2\)",
        ),
        ({"w": put(3, -1.0)}, "weights must be finite and ≥ 0; block 1 has -1 in row 3"),
        ({"w": put(3, np.nan)}, "block 1 has nan in row 3"),
        ({"w": lambda w: w[1:]}, "weights of block 1 has length 19"),
    ],
)
def test_errors_name_the_block(changes, message):
    SparseProblem.from_blocks(broken())
    with pytest.raises(ValueError, match=message):
        SparseProblem.from_blocks(broken(**changes))


def test_the_row_is_counted_in_the_block_across_buffers(monkeypatch):
    monkeypatch.setattr(row_blocks, "LEAST_ROWS", 4)
    monkeypatch.setattr(row_blocks, "BUFFER_BYTES", 1)
    with pytest.raises(ValueError, match="block 1 has NaN or infinity in column 0, row 17;"):
        SparseProblem.from_blocks(broken(X=put((17, 0), np.nan)))


def test_errors_name_the_column_of_a_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.array([1, None], dtype="Int64")})
    with pytest.raises(ValueError, match="block 0 has NaN or infinity in column 'b', row 1;"):
        SparseProblem.from_blocks([(frame, [1.0, 2.0])])
    swapped = frame.fillna(0)[["b", "a"]]
    with pytest.raises(ValueError, match="block 1 has column 'b' where the first block has 'a'"):
        SparseProblem.from_blocks([(frame.fillna(0), [1.0, 2.0]), (swapped, [1.0, 2.0])])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "there are no rows"),
        ([(np.zeros((0, 3)), np.zeros(0))], "there are no rows"),
        ([(np.ones((2, 3)), np.ones(2), np.zeros(2))], "none of positive weight"),
        ([np.ones((2, 3))], r"block 0 must be \(X, y\) or \(X, y, weights\); got ndarray"),
        ([(np.ones((2, 3)),)], "got 1 items"),
        (3, "blocks must be an iterable"),
        ([(np.ones((2, 0)), np.ones(2))], "has no columns"),
        ([(np.array([[1e200], [2e200]]), np.ones(2))], "column 0 has values whose squares"),
        ([(np.array([[1e-200], [2e-200]]), np.ones(2))], "column 0 has values whose squares"),
    ],
)
def test_what_is_no_problem_is_refused(blocks, message):
    with pytest.raises(ValueError, match=message):
        SparseProblem.from_blocks(blocks)


def test_the_first_block_can_be_checked_too():
    X, y, _ = data()
    with pytest.raises(ValueError, match="block 0 has 3 columns, but n_columns is 4"):
        SparseProblem.from_blocks([(X, y)], n_columns=4)
    with pytest.raises(ValueError, match="block 0 has 3 columns, but feature_names has 2"):
        SparseProblem.from_blocks([(X, y)], feature_names=["a", "b"])


def test_an_exception_of_the_iterator_says_how_many_rows_were_read():
    X, y, _ = data()

    def blocks():
        yield X[:40], y[:40]
        yield X[40:], y[40:]
        raise OSError("the line is dead")

    with pytest.raises(OSError, match="the line is dead") as caught:
        SparseProblem.from_blocks(blocks())
    assert caught.value.__notes__ == ["60 rows in 2 blocks had been read before"]


# ---------------------------------------------------------------- sources


@pytest.fixture
def table():
    X, y, w = data(1e3, (1.0, 1e-3, 1e3))
    return pd.DataFrame(X, columns=NAMES).assign(y=y, w=w)


def assert_same(problem, table, weights):
    dense = SparseProblem.from_table(table, "y", columns=NAMES, weights=weights)
    w = None if weights is None else table["w"].to_numpy()
    expected = exact(table[NAMES].to_numpy(), table["y"].to_numpy(), w, True)
    assert worst(problem, expected) < 1e-12
    assert problem.n_samples == dense.n_samples
    assert problem.column_means == pytest.approx(dense.column_means, rel=1e-13)


@pytest.mark.parametrize("weights", [None, "w"])
def test_dask_frames_and_arrays(table, weights):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(table, npartitions=5)
    problem = SparseProblem.from_dask(frame, "y", columns=NAMES, weights=weights)
    assert_same(problem, table, weights)
    assert problem.feature_names == ("a", "b", "c")
    X = da.from_array(table[NAMES].to_numpy(), chunks=(13, 2))
    w = None if weights is None else da.from_array(table["w"].to_numpy(), chunks=60)
    y = da.from_array(table["y"].to_numpy(), chunks=20)
    assert_same(SparseProblem.from_dask(X, y, weights=w), table, weights)


def test_dask_errors(table):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(table, npartitions=5)
    with pytest.raises(ValueError, match="needs a Dask array or data frame; got DataFrame"):
        SparseProblem.from_dask(table, "y")
    with pytest.raises(ValueError, match="has no column 'z'"):
        SparseProblem.from_dask(frame, "z")
    with pytest.raises(ValueError, match="need the same partitions; they have 5 and 3"):
        SparseProblem.from_dask(frame[NAMES], frame.repartition(npartitions=3)["y"])
    table.loc[30, "b"] = np.nan
    with pytest.raises(ValueError, match="partition 2 has NaN or infinity in column 'b', row 6"):
        SparseProblem.from_dask(dd.from_pandas(table, npartitions=5), "y")


@pytest.fixture
def folder(table, tmp_path):
    pytest.importorskip("pyarrow")
    table[:25].to_parquet(tmp_path / "first.parquet")
    table[25:].to_parquet(tmp_path / "second.parquet")
    return tmp_path


@pytest.mark.parametrize("weights", [None, "w"])
def test_a_folder_of_parquet_files(table, folder, weights):
    for path in (folder, [folder / "first.parquet", folder / "second.parquet"]):
        problem = SparseProblem.from_parquet(
            path, "y", columns=NAMES, weights=weights, batch_size=8
        )
        assert_same(problem, table, weights)


def test_a_truncated_parquet_file_is_named(folder):
    second = folder / "second.parquet"
    second.write_bytes(second.read_bytes()[:-500])
    with pytest.raises(ValueError, match=r"second\.parquet: not a readable Parquet file") as caught:
        SparseProblem.from_parquet(folder, "y")
    assert caught.value.__notes__ == ["25 rows had been read before"]


def test_parquet_errors(table, folder):
    with pytest.raises(ValueError, match=r"first\.parquet has no column 'why'"):
        SparseProblem.from_parquet(folder, "why")
    with pytest.raises(FileNotFoundError):
        SparseProblem.from_parquet(folder / "third.parquet", "y")
    (folder / "empty").mkdir()
    with pytest.raises(ValueError, match=r"has no \.parquet files"):
        SparseProblem.from_parquet(folder / "empty", "y")
    table[25:].drop(columns="b").to_parquet(folder / "second.parquet")
    with pytest.raises(ValueError, match=r"second\.parquet: it has no column 'b'"):
        SparseProblem.from_parquet(folder, "y")
    table[25:].astype({"b": str}).to_parquet(folder / "second.parquet")
    with pytest.raises(ValueError, match=r"second\.parquet: column 'b' has the type"):
        SparseProblem.from_parquet(folder, "y")
    table.loc[45, "c"] = np.nan
    table[25:].to_parquet(folder / "second.parquet")
    message = r"second\.parquet has NaN or infinity in column 'c', row 20;"
    with pytest.raises(ValueError, match=message):
        SparseProblem.from_parquet(folder, "y", batch_size=8)


@pytest.mark.parametrize("weights", [None, "w"])
def test_sql(table, weights, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "rows.db"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE houses AS SELECT * FROM frame")
        for query in ("houses", "SELECT * FROM houses;"):
            problem = SparseProblem.from_sql(connection, query, "y", columns=NAMES, weights=weights)
            assert_same(problem, table, weights)
    problem = SparseProblem.from_sql(path, "houses", "y", columns=NAMES, weights=weights)
    assert_same(problem, table, weights)


def test_sql_errors(table):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("frame", table)
        for query, message in [
            ("SELECT a, 'x' AS b, y FROM frame", "column 'b' has the type VARCHAR"),
            ("SELECT a, NULL::DOUBLE AS b, y FROM frame", "column 'b' has 60 values that are NULL"),
            ("SELECT a, 'nan'::DOUBLE AS y FROM frame", "column 'y' has 60 values"),
            ("SELECT a, y FROM frame WHERE a < 0", "has no rows"),
            ("SELECT a, b FROM frame", "has no column 'y'"),
        ]:
            with pytest.raises(ValueError, match=message):
                SparseProblem.from_sql(connection, query, "y")
        query = "SELECT a, y, -w AS w FROM frame"
        with pytest.raises(ValueError, match="weights must be ≥ 0"):
            SparseProblem.from_sql(connection, query, "y", weights="w")
    with pytest.raises(ValueError, match="must be a connection of DuckDB"):
        SparseProblem.from_sql(3, "houses", "y")


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("pyarrow.parquet", lambda: SparseProblem.from_parquet("x.parquet", "y"), "tables"),
        ("duckdb", lambda: SparseProblem.from_sql("x.db", "t", "y"), "sql"),
        ("dask", lambda: SparseProblem.from_dask(None, "y"), "cluster"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, module, call, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'l0anneal\[{extra}\]'"):
        call()


# ---------------------------------------------------------------- memory


def peak(n_blocks):
    rng = np.random.default_rng(0)

    def blocks():
        for _ in range(n_blocks):
            X = rng.standard_normal((2000, 20))
            yield X, X[:, 0]

    tracemalloc.start()
    try:
        problem = SparseProblem.from_blocks(blocks())
        return problem.n_samples, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows():
    peak(20)  # what is imported and cached the first time
    n_few, few = peak(20)
    n_many, many = peak(600)
    assert (n_few, n_many) == (39_999, 1_199_999)
    assert many < 1.2 * few  # all rows would take 190 MB


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident sizes are read from /proc")
def test_memory_does_not_grow_with_a_parquet_file(tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    program = (
        "import re, sys; from pathlib import Path; from l0anneal import SparseProblem;"
        "problem = SparseProblem.from_parquet(sys.argv[1], 'y', batch_size=4096);"
        "status = Path('/proc/self/status').read_text();"
        "peak = re.search('VmHWM:[^0-9]*([0-9]+) kB', status).group(1);"
        "print(problem.n_samples, int(peak) / 1024)"
    )
    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float32()) for name in [f"x{j}" for j in range(60)] + ["y"]])
    peaks = []
    for n_groups in (4, 300):
        path = tmp_path / f"{n_groups}.parquet"
        with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
            for _ in range(n_groups):
                rows = rng.standard_normal((61, 4096), dtype=np.float32)
                writer.write_table(pa.table(list(rows), schema=schema))
        command = [sys.executable, "-c", program, str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        n_samples, peak = ended.stdout.split()
        assert int(n_samples) == 4096 * n_groups - 1
        peaks.append(float(peak))
    assert peaks[1] - peaks[0] < 60  # MiB; the longer file has 290
