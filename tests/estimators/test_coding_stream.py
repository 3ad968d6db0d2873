"""Signals that do not fit into memory: batches, checkpoints, sparse codes, Dask arrays."""

import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from helpers.processes import child
from l0anneal import AnnealedSparseCoder, sparse_encode
from l0anneal.estimators import coding_input, coding_stream

N_SIGNALS, BATCH = 100, 30


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Return a memory map of signals, which is read in batches of 30, and a dictionary."""
    monkeypatch.setattr(coding_input, "BATCH", BATCH)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "signals.npy", rng.standard_normal((N_SIGNALS, 12)))
    return np.load(tmp_path / "signals.npy", mmap_mode="r"), rng.standard_normal((20, 12))


def new_map(path, shape=(N_SIGNALS, 20), dtype=np.float64):
    return np.lib.format.open_memmap(path, "w+", dtype, shape=shape)


@pytest.fixture
def encoded(monkeypatch):
    """Count the batches that are encoded, by their first row's first number."""
    batches = []
    encode_batch = coding_stream._encode_batch

    def counted(run, Y, *arguments):
        batches.append(len(Y))
        return encode_batch(run, Y, *arguments)

    monkeypatch.setattr(coding_stream, "_encode_batch", counted)
    return batches


class OnDisk:
    """Something like a dataset of an HDF5 file, which counts the rows that are read at a time."""

    def __init__(self, values):
        self.values, self.read = values, []
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, rows):
        self.read.append(len(self.values[rows]))
        return self.values[rows]

    def __setitem__(self, rows, values):
        self.values[rows] = values


MODES = [
    {"n_nonzero_coefs": 3, "n_kicks": 2},
    {"n_nonzero_coefs": 3, "n_kicks": 0},
    {"n_nonzero_coefs": 3, "pursuit_only": True},
    {"tol": 3.0, "n_kicks": 1},
    {"tol": 3.0, "pursuit_only": True},
    {"n_nonzero_coefs": 0},
]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_way_gives_the_same_bits(data, tmp_path, encoded, mode):
    mapped, D = data
    codes = sparse_encode(np.array(mapped), D, random_state=0, **mode)
    assert encoded == [N_SIGNALS]
    for n_jobs in (1, 3):
        same = sparse_encode(mapped, D, random_state=0, n_jobs=n_jobs, **mode)
        np.testing.assert_array_equal(same, codes)
    assert encoded[1:] == [30, 30, 30, 10] * 2
    out = new_map(tmp_path / "codes.npy")
    assert sparse_encode(mapped, D, random_state=0, out=out, **mode) is out
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), codes)
    sparse = sparse_encode(mapped, D, random_state=0, sparse_output=True, **mode)
    assert isinstance(sparse, scipy.sparse.csr_array)
    assert sparse.has_canonical_format
    assert sparse.nnz == np.count_nonzero(codes)
    np.testing.assert_array_equal(sparse.toarray(), codes)
    kept = sparse_encode(mapped, D, random_state=0, checkpoint=tmp_path / "kept", **mode)
    np.testing.assert_array_equal(kept, codes)


def test_out_may_be_any_array(data):
    mapped, D = data
    codes = sparse_encode(mapped, D, 3, random_state=0)
    in_memory, single = np.full((100, 20), 7.0), np.full((100, 20), 7.0, dtype=np.float32)
    strided = np.full((200, 40), 7.0)[::2, ::2]
    other = OnDisk(np.full((100, 20), 7.0))
    for out in (in_memory, single, strided, other):
        assert sparse_encode(mapped, D, 3, random_state=0, out=out) is out
        np.testing.assert_array_equal(np.asarray(out[:]), codes.astype(out.dtype))
    source = OnDisk(np.array(mapped))
    sparse_encode(source, D, 3, random_state=0, out=in_memory)
    assert source.read == [30, 30, 30, 10]
    np.testing.assert_array_equal(in_memory, codes)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((100, 19)), r"out must be .* \(100, 20\) .* got shape \(100, 19\)"),
        (np.zeros((100, 20), dtype=int), "got shape .* and dtype int64"),
        ([[0.0] * 20] * 100, "got list"),
        (np.broadcast_to(0.0, (100, 20)), "this one is read-only"),
    ],
)
def test_what_out_must_be(data, out, message):
    mapped, D = data
    with pytest.raises(ValueError, match=message):
        sparse_encode(mapped, D, 3, out=out)


def test_out_is_not_sparse_and_not_the_signals(data):
    mapped, D = data
    with pytest.raises(ValueError, match="give out or sparse_output=True, not both"):
        sparse_encode(mapped, D, 3, out=np.zeros((100, 20)), sparse_output=True)
    Y = np.array(mapped)
    with pytest.raises(ValueError, match="out shares memory with the signals"):
        sparse_encode(Y, np.eye(12), 3, out=Y)


def test_a_bad_signal_in_a_later_batch_loses_nothing(data, tmp_path, encoded):
    mapped, D = data
    Y = np.array(mapped)
    codes = sparse_encode(Y, D, 3, random_state=0)
    Y[75, 2] = np.nan
    np.save(tmp_path / "bad.npy", Y)
    bad = np.load(tmp_path / "bad.npy", mmap_mode="r")
    del encoded[:]
    with pytest.raises(ValueError, match="NaN or infinity in row 75"):
        sparse_encode(bad, D, 3, random_state=0)
    assert encoded == []  # nothing could be kept, so nothing was begun
    out = new_map(tmp_path / "codes.npy")
    with pytest.raises(ValueError, match="NaN or infinity in row 75"):
        sparse_encode(bad, D, 3, random_state=0, out=out)
    np.testing.assert_array_equal(out[:60], codes[:60])
    with pytest.raises(ValueError, match="NaN or infinity in row 75"):
        sparse_encode(bad, D, 3, random_state=0, checkpoint=tmp_path / "kept")
    del encoded[:]
    kept = sparse_encode(mapped, D, 3, random_state=0, checkpoint=tmp_path / "kept")
    assert encoded == [30, 10]
    np.testing.assert_array_equal(kept, codes)


# ---------------------------------------------------------------- checkpoints

# Encodes the signals in a folder and, when two batches are kept, waits inside the third.
PROGRAM = """
    import sys, threading
    import numpy as np
    from l0anneal import sparse_encode
    from l0anneal.estimators import coding_input, coding_stream

    folder = sys.argv[1]
    coding_input.BATCH = {batch}
    store = coding_stream.Store
    write, n_kept = store.write, 0

    def slow_write(self, *arguments, **options):
        global n_kept
        if n_kept == 2:
            print("two batches are kept", flush=True)
            threading.Event().wait()
        write(self, *arguments, **options)
        n_kept += 1

    store.write = slow_write
    signals = np.load(folder + "/signals.npy", mmap_mode="r")
    dictionary = np.load(folder + "/dictionary.npy")
    sparse_encode(signals, dictionary, 3, random_state=0, checkpoint=folder + "/kept")
"""


def test_a_killed_run_continues_where_it_was(data, tmp_path, encoded):
    mapped, D = data
    np.save(tmp_path / "dictionary.npy", D)
    program = textwrap.dedent(PROGRAM.format(batch=BATCH))
    with child(["-c", program, str(tmp_path)]) as process:
        process.wait_for("two batches are kept")
        process.kill()
        assert process.finish().returncode == -9
    codes = sparse_encode(mapped, D, 3, random_state=0, checkpoint=tmp_path / "kept")
    assert encoded == [30, 10]
    np.testing.assert_array_equal(codes, sparse_encode(mapped, D, 3, random_state=0))


def test_a_checkpoint_knows_what_its_codes_depend_on(data, tmp_path, encoded):
    mapped, D = data
    usual = {"n_nonzero_coefs": 3, "random_state": 0, "checkpoint": tmp_path / "kept"}
    codes = sparse_encode(mapped, D, **usual)
    del encoded[:]
    np.testing.assert_array_equal(sparse_encode(np.array(mapped), D, n_jobs=2, **usual), codes)
    assert encoded == []
    for other in (
        {"random_state": 1},
        {"n_kicks": 3},
        {"n_nonzero_coefs": 2},
        {"tol": 1.0},
        {"pursuit_only": True},
    ):
        arguments = {**usual, **other}
        plain = {name: value for name, value in arguments.items() if name != "checkpoint"}
        np.testing.assert_array_equal(
            sparse_encode(mapped, D, **arguments), sparse_encode(mapped, D, **plain)
        )
        assert encoded == [30, 30, 30, 10] * 2
        del encoded[:]
    sparse_encode(mapped, 2.0 * D, **usual)
    assert encoded == [30, 30, 30, 10]
    del encoded[:]
    Y = np.array(mapped)
    Y[40] += 1.0
    changed = sparse_encode(Y, D, **usual)
    assert encoded == [30]
    np.testing.assert_array_equal(changed[:30], codes[:30])
    assert (changed[40] != codes[40]).any()


def test_a_checkpoint_needs_a_seed(data, tmp_path):
    mapped, D = data
    for seed in (None, np.random.default_rng(0)):
        with pytest.raises(ValueError, match="checkpoint needs an integer as random_state"):
            sparse_encode(mapped, D, 3, random_state=seed, checkpoint=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_unfinished_codes_are_not_kept(data, tmp_path, encoded):
    mapped, D = data
    usual = {"n_nonzero_coefs": 3, "random_state": 0, "checkpoint": tmp_path / "kept"}
    with pytest.warns(UserWarning, match="time limit"):
        _, finished = sparse_encode(
            mapped, D, n_kicks=10**5, time_limit=0.05, return_finished=True, **usual
        )
    assert not finished.all()
    assert not list((tmp_path / "kept").rglob("*.npz"))
    np.testing.assert_array_equal(
        sparse_encode(mapped, D, n_kicks=1, **usual),
        sparse_encode(mapped, D, 3, n_kicks=1, random_state=0),
    )


# ---------------------------------------------------------------- memory

PEAK = """
    import resource, sys
    import numpy as np
    from l0anneal import sparse_encode

    folder = sys.argv[1]
    signals = np.load(folder + "/many.npy", mmap_mode="r")
    D = np.random.default_rng(0).standard_normal((96, 64))
    out = np.lib.format.open_memmap(folder + "/codes.npy", "w+", shape=(len(signals), 96))
    options = dict(n_nonzero_coefs=2, pursuit_only=True, random_state=0)
    sparse_encode(signals[:20_000], D, out=out[:20_000], **options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sparse_encode(signals, D, out=out, **options)
    sparse_encode(signals, D, sparse_output=True, checkpoint=folder + "/kept", **options)
    print("grown by", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_signals(tmp_path):
    n = 400_000  # 205 MB of signals, 307 MB of codes, 10 MB of sparse codes
    many = np.lib.format.open_memmap(tmp_path / "many.npy", "w+", shape=(n, 64))
    rng = np.random.default_rng(0)
    for start in range(0, n, 10_000):
        many[start : start + 10_000] = rng.standard_normal((10_000, 64))
    del many
    with child(["-c", textwrap.dedent(PEAK), str(tmp_path)]) as process:
        ended = process.finish(timeout=300.0)
    assert ended.returncode == 0, ended.stderr
    kilobytes = int(ended.stdout.split()[-1])
    assert (
        kilobytes < 40_000
    )  # the sparse codes, twice while they are put together, and two batches


def test_pages_of_a_copy_on_write_map_are_kept(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3000, 64)))
    private = np.load(tmp_path / "a.npy", mmap_mode="c")
    private[:] = 1.0
    coding_input.release_pages(private, slice(0, 3000))
    assert private.all()
    shared = np.load(tmp_path / "a.npy", mmap_mode="r+")
    shared[:] = 2.0
    coding_input.release_pages(shared, slice(10, 2000))
    coding_input.release_pages(shared[5:], slice(0, 2))
    assert (shared == 2.0).all()
    assert (np.load(tmp_path / "a.npy") == 2.0).all()


# ---------------------------------------------------------------- Dask


@pytest.mark.parametrize("mode", MODES[:4], ids=str)
def test_dask_arrays_give_lazy_codes_with_the_same_bits(data, mode):
    da = pytest.importorskip("dask.array")
    mapped, D = data
    codes = sparse_encode(mapped, D, random_state=5, **mode)
    lazy = sparse_encode(da.from_array(mapped, chunks=(17, 5)), D, random_state=5, **mode)
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (100, 20)
    assert lazy.chunks[0] == (17,) * 5 + (15,)
    assert lazy.dtype == np.float64
    for scheduler in ("synchronous", "threads"):
        np.testing.assert_array_equal(lazy.compute(scheduler=scheduler), codes)


def test_dask_arrays_are_not_computed_before_they_are_asked_for(data):
    da = pytest.importorskip("dask.array")
    mapped, D = data
    computed = []

    def block(values):
        computed.append(len(values))
        return values

    X = da.from_array(np.array(mapped), chunks=(50, 12)).map_blocks(
        block, dtype=float, meta=mapped[:0]
    )
    lazy = sparse_encode(X, D, 3)
    assert computed == []
    first = lazy.compute(scheduler="synchronous")
    assert computed == [50, 50]
    # one seed was drawn for all blocks and all computations
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), first)


def test_sparse_codes_of_a_dask_array(data):
    da = pytest.importorskip("dask.array")
    mapped, D = data
    codes = sparse_encode(mapped, D, 3, random_state=0)
    X = da.from_array(np.array(mapped), chunks=(40, 12))
    lazy = sparse_encode(X, D, 3, random_state=0, sparse_output=True)
    blocks = [block.compute() for block in lazy.to_delayed().ravel()]
    assert all(scipy.sparse.issparse(block) for block in blocks)
    np.testing.assert_array_equal(scipy.sparse.vstack(blocks).toarray(), codes)


def test_what_does_not_go_with_dask(data, tmp_path):
    da = pytest.importorskip("dask.array")
    mapped, D = data
    X = da.from_array(np.array(mapped), chunks=(50, 12))
    for name, value in {
        "out": np.zeros((100, 20)),
        "checkpoint": tmp_path,
        "time_limit": 1.0,
        "return_finished": True,
    }.items():
        with pytest.raises(ValueError, match=f"{name} does not go with a Dask array"):
            sparse_encode(X, D, 3, **{name: value})
    with pytest.raises(ValueError, match=r"unknown sizes.*compute_chunk_sizes\(\)"):
        sparse_encode(X[X[:, 0] > 0], D, 3)
    with pytest.raises(ValueError, match=r"signals have 11 features, but the atoms .* have 12"):
        sparse_encode(X[:, :11], D, 3)
    with pytest.raises(ValueError, match=r"got shape \(100,\)"):
        sparse_encode(X[:, 0], D, 3)
    with pytest.raises(ValueError, match="exceeds the rank of the dictionary"):
        sparse_encode(X, D, 13)
    frame = pytest.importorskip("dask.dataframe").from_dask_array(X)
    with pytest.raises(ValueError, match=r"give its to_dask_array\(lengths=True\)"):
        sparse_encode(frame, D, 3)
    Y = np.array(mapped)
    Y[60, 0] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity"):
        sparse_encode(da.from_array(Y, chunks=(50, 12)), D, 3).compute()


# ---------------------------------------------------------------- pursuit only


def test_the_pursuit_alone_is_better_than_omp_on_the_whole():
    rng = np.random.default_rng(1)
    D, Y = rng.standard_normal((60, 16)), rng.standard_normal((400, 16))
    unit = D / np.linalg.norm(D, axis=1, keepdims=True)
    from sklearn.linear_model import orthogonal_mp_gram

    omp = orthogonal_mp_gram(unit @ unit.T, unit @ Y.T, n_nonzero_coefs=5).T @ unit
    codes = sparse_encode(Y, D, 5, pursuit_only=True)
    assert (np.count_nonzero(codes, axis=1) == 5).all()
    left, of_omp = np.sum((Y - codes @ D) ** 2, axis=1), np.sum((Y - omp) ** 2, axis=1)
    # 400 signals: the mean difference is many standard errors below zero
    difference = left - of_omp
    assert difference.mean() < -4 * difference.std() / 20
    searched = np.sum((Y - sparse_encode(Y, D, 5, n_kicks=0) @ D) ** 2, axis=1)
    assert searched.mean() < left.mean()
    coder = AnnealedSparseCoder(D, transform_n_nonzero_coefs=5, pursuit_only=True)
    np.testing.assert_array_equal(coder.transform(Y), codes)


def test_the_folder_of_a_checkpoint_can_be_text(data, tmp_path):
    mapped, D = data
    sparse_encode(mapped, D, 3, random_state=0, checkpoint=str(tmp_path / "a" / "b"))
    assert len(list(Path(tmp_path / "a" / "b").rglob("*.npz"))) == 4
