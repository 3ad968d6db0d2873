"""Large matrices that stay as they are stored: the numbers are those of a centred copy in float64."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from l0anneal import SparseProblem, kick_search
from l0anneal.problem import arrays, stored
from l0anneal.problem.stored import StoredColumns

ROUNDING = 1e-12  # of numbers of order one, from sums over a few hundred terms


@pytest.fixture
def large(monkeypatch):
    """Make every dense matrix count as large, and tiles so small that each matrix has many."""
    monkeypatch.setattr(arrays, "LARGE_BYTES", 0)
    monkeypatch.setattr(stored, "TILE_BYTES", 2**13)


def counts(m=300, n=70, seed=0):
    """Return counts of 0, 1, 2 with a constant column and a zero column."""
    A = np.random.default_rng(seed).integers(0, 3, (m, n)).astype(np.int8)
    A[:, 5], A[:, 6] = 1, 0
    return A


STORAGES = {
    "int8": counts(),
    "uint8, Fortran order": np.asfortranarray(counts().astype(np.uint8)),
    "bool": counts() > 0,
    "float32": counts().astype(np.float32) - 1.5,
    "float32, Fortran order": np.asfortranarray(counts().astype(np.float32)),
    "float16, every other row": counts(600).astype(np.float16)[::2],
    "float64, backwards": (counts().astype(np.float64) + 0.1)[:, ::-1],
}
WEIGHTS = np.random.default_rng(1).integers(0, 3, 300).astype(np.float64)


class Chunked:
    """An array that is read by slices, as one of Zarr; records the largest read in bytes."""

    def __init__(self, A, chunks):
        self.A, self.chunks = A, chunks
        self.shape, self.dtype, self.ndim = A.shape, A.dtype, 2
        self.largest_read = 0

    def __getitem__(self, key):
        part = self.A[key].copy()
        self.largest_read = max(self.largest_read, part.nbytes)
        return part


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_the_problem_is_that_of_a_copy(large, storage, intercept, weights):
    A = STORAGES[storage]
    y = np.random.default_rng(2).standard_normal(300) + 3.0
    options = {"intercept": intercept, "weights": weights}
    problem = SparseProblem(A, y, **options)
    assert isinstance(problem.A, StoredColumns)
    w = np.ones(300) if weights is None else weights
    copy, signal = A.astype(np.float64), y
    if intercept:
        copy, signal = copy - w @ copy / w.sum(), y - w @ y / w.sum()
    copy, signal = np.sqrt(w)[:, None] * copy, np.sqrt(w) * signal
    norms = np.linalg.norm(copy, axis=0)
    norms[norms < 1e-12] = 0.0
    unit = copy / np.where(norms > 0, norms, np.inf)
    np.testing.assert_allclose(problem.column_norms, norms, rtol=ROUNDING)
    np.testing.assert_allclose(problem.signal_energy, signal @ signal, rtol=ROUNDING)
    scale = np.sqrt(problem.unit_energy)
    np.testing.assert_allclose(problem.unit_correlation * scale, unit.T @ signal, atol=1e-10)
    several = problem.fresh_rows(np.arange(9))
    np.testing.assert_allclose(several, unit[:, :9].T @ unit, atol=ROUNDING)
    np.testing.assert_allclose(problem.fresh_row(8), several[8], atol=ROUNDING)
    left = signal - unit[:, :3] @ np.linalg.lstsq(unit[:, :3], signal, rcond=None)[0]
    assert problem.energy([0, 1, 2]) == pytest.approx(0.5 * left @ left, rel=1e-12)
    np.testing.assert_allclose(problem.A[:, 2:9], copy[:, 2:9], atol=ROUNDING)
    np.testing.assert_allclose(problem.A[10:20], copy[10:20], atol=ROUNDING)
    np.testing.assert_allclose(np.asarray(problem.A), copy, atol=ROUNDING)
    assert problem.n_samples == max(1, round(w.sum()) - intercept)
    assert problem.rank() == np.linalg.matrix_rank(unit)
    if intercept:
        np.testing.assert_allclose(problem.column_means, w @ A.astype(np.float64) / w.sum())


def test_products_of_integers_are_exact(large):
    rng = np.random.default_rng(0)
    A = rng.integers(-128, 128, (3000, 40)).astype(np.int8)
    # 2000 · 110² exceeds the integers that single precision has
    A[:, :20] = rng.integers(110, 128, (3000, 20))
    rows = StoredColumns(np.asfortranarray(A)).gram_rows(np.arange(40))
    exact = A.astype(np.int64).T @ A.astype(np.int64)
    np.testing.assert_array_equal(rows, exact)


@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_columns_far_from_zero_keep_their_digits(large, dtype):
    rng = np.random.default_rng(0)
    A = (rng.integers(0, 3, (200, 30)) + (30_000 if dtype == np.int16 else 1e7)).astype(dtype)
    problem = SparseProblem(A, rng.standard_normal(200), intercept=True)
    assert problem.A.steep
    exact = A.astype(np.longdouble) - A.astype(np.longdouble).mean(axis=0)
    exact /= np.sqrt(np.sum(exact**2, axis=0))
    # without subtracting from the tiles, the errors would be 1e-16 times the mean square: 1e-2
    largest = 1e-16 * float(A.max()) * np.sqrt(200)
    np.testing.assert_allclose(
        problem.fresh_rows(np.arange(9)), exact[:, :9].T @ exact, atol=largest
    )


@pytest.mark.parametrize("chunks", [(300, 8), (50, 16), (7, 70), None])
def test_chunked_arrays_are_read_by_chunks(large, monkeypatch, chunks):
    monkeypatch.setattr(stored, "SLAB_BYTES", 4000)
    A = counts()
    y = np.random.default_rng(2).standard_normal(300)
    source = Chunked(A, chunks)
    problem = SparseProblem(source, y, intercept=True)
    assert problem.A.data is source
    expected = SparseProblem(A, y, intercept=True)
    np.testing.assert_allclose(problem.column_norms, expected.column_norms, rtol=ROUNDING)
    rows = problem.fresh_rows(np.array([3, 50]))
    np.testing.assert_allclose(rows, expected.fresh_rows(np.array([3, 50])), atol=ROUNDING)
    assert source.largest_read <= 4000
    np.testing.assert_allclose(problem.A[:, np.array([4, 2])], expected.A[:, np.array([4, 2])])
    found = kick_search(problem, 3, n_kicks=5, random_state=0)
    assert (
        found.support.tolist()
        == kick_search(expected, 3, n_kicks=5, random_state=0).support.tolist()
    )


def test_small_chunked_arrays_are_read_whole():
    problem = SparseProblem(Chunked(counts(), (10, 10)), np.arange(300.0))
    assert type(problem.A) is np.ndarray


@pytest.mark.parametrize("library", ["zarr", "h5py"])
def test_arrays_of_zarr_and_h5py(large, library, tmp_path):
    module = pytest.importorskip(library)
    A, y = counts(), np.random.default_rng(2).standard_normal(300)
    if library == "zarr":
        source = module.create_array(
            str(tmp_path / "A.zarr"), shape=A.shape, chunks=(300, 16), dtype=A.dtype
        )
        source[:] = A
        source = tmp_path / "A.zarr"
    else:
        source = module.File(tmp_path / "A.h5", "w").create_dataset("A", data=A, chunks=(100, 16))
    problem = SparseProblem(source, y, intercept=True)
    assert isinstance(problem.A, StoredColumns)
    assert not isinstance(problem.A.data, np.ndarray)
    expected = SparseProblem(A, y, intercept=True)
    np.testing.assert_array_equal(problem.gram, expected.gram)


def test_the_path_of_an_npy_file_is_mapped(large, tmp_path):
    A, y = counts(), np.random.default_rng(2).standard_normal(300)
    np.save(tmp_path / "A.npy", A)
    problem = SparseProblem(tmp_path / "A.npy", y)
    assert isinstance(problem.A.data, np.memmap)
    assert problem.energy([1, 2]) == SparseProblem(A, y).energy([1, 2])


def test_paths_that_cannot_be_opened(monkeypatch):
    with pytest.raises(ValueError, match=r"\.npy file or a \.zarr folder; got 'A\.csv'"):
        SparseProblem("A.csv", [1.0])
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"l0anneal\[zarr\]"):
        SparseProblem("A.zarr", [1.0])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "NaN or infinity.* row 7, column 11"),
        (-np.inf, "NaN or infinity.* row 7, column 11"),
        (1e200, "that of column 11 is not: rescale"),
    ],
)
def test_numbers_that_do_not_fit(large, value, message):
    A = np.random.default_rng(0).standard_normal((40, 500))
    A[7, 11] = value
    with pytest.raises(ValueError, match=message):
        SparseProblem(A, np.ones(40), intercept=True)


def test_columns_too_short_for_a_square(large):
    A = np.random.default_rng(0).standard_normal((40, 5))
    A[:, 3] *= 1e-170
    with pytest.raises(ValueError, match="column 3 is not: rescale"):
        SparseProblem(A, np.ones(40))


def test_the_search_finds_the_columns_of_a_copy(large):
    rng = np.random.default_rng(3)
    A = rng.integers(0, 3, (200, 400)).astype(np.int8)
    y = A[:, [3, 77, 200]] @ [1.0, -1.0, 0.5] + rng.standard_normal(200) + 9.0
    result = kick_search(SparseProblem(A, y, intercept=True), 3, n_kicks=20, random_state=0)
    assert result.support.tolist() == [3, 77, 200]
    design = np.column_stack([np.ones(200), A[:, [3, 77, 200]]])
    coef = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose([result.intercept, *result.coef[[3, 77, 200]]], coef, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident sizes are read from /proc")
def test_memory_beside_the_data_is_bounded():
    # 1000 × 100,000 counts have 100 MB, and 800 MB in float64, of which no copy may be made
    program = """
        import re
        from pathlib import Path
        import numpy as np
        from l0anneal import SparseProblem, kick_search

        rng = np.random.default_rng(0)
        kick_search(SparseProblem(rng.standard_normal((50, 80)), np.arange(50.0)), 3, n_kicks=1)
        A = np.empty((1000, 100_000), dtype=np.int8)
        for row in A:
            row[:] = rng.integers(0, 3, row.size, dtype=np.int8)
        y = A[:, :5].sum(axis=1) + rng.standard_normal(1000)

        def peak():  # ru_maxrss would begin with that of the parent process
            status = Path("/proc/self/status").read_text()
            return int(re.search("VmHWM:[^0-9]*([0-9]+) kB", status).group(1)) / 1024

        before = peak()
        problem = SparseProblem(A, y, intercept=True)
        of_problem = peak() - before
        found = kick_search(problem, 5, n_kicks=3, random_state=0).support
        print(*found, of_problem, peak() - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert output[:5] == ["0", "1", "2", "3", "4"]
    # one tile and vectors of length N; then 256 MiB of rows, and two tableaus of 5 columns
    assert float(output[5]) < 40
    assert float(output[6]) < 256 + 100
