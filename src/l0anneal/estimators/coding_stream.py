"""Codes of signals in batches: read, encoded, stored and written, in memory that does not grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal.estimators.codes import Codes
from l0anneal.estimators.coding_blocks import Atoms, Coding, encode_within
from l0anneal.estimators.coding_input import Signals, release_pages
from l0anneal.estimators.greedy_codes import greedy_codes
from l0anneal.samplers.run import Run
from l0anneal.tasks.store import Store
from l0anneal.tasks.task import StoredTask, array_digest

__all__ = ["Checkpoint", "Dense", "Output", "Settings", "Sparse", "encode_signals"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Settings:
    """What decides on a code besides its signal, the dictionary and the seed."""

    k: int
    n_kicks: int
    tol: float | None


# ---------------------------------------------------------------- where codes go


class Output(Protocol):
    """What takes the codes of one batch after the other."""

    def put(self, rows: slice, codes: Codes) -> None:
        """Take the codes of the next rows."""

    def result(self) -> Any:
        """Return all codes."""


class Dense:
    """Codes as rows of an array: a new one, or the one that the user gave."""

    def __init__(self, shape: tuple[int, int], out: Any = None) -> None:
        self.shape = shape
        self.out = np.empty(shape) if out is None else out

    def put(self, rows: slice, codes: Codes) -> None:
        """Write the codes into their rows."""
        if isinstance(self.out, np.ndarray):
            codes.write(self.out[rows])
        else:
            buffer = np.empty((len(codes), self.shape[1]))
            codes.write(buffer)
            self.out[rows] = buffer
        release_pages(self.out, rows)

    def result(self) -> Any:
        """Return the array."""
        return self.out


class Sparse:
    """Codes as a sparse matrix in the format CSR."""

    def __init__(self, shape: tuple[int, int], most: int) -> None:
        self.shape = shape
        room = shape[0] * most  # memory that is not written to is not used
        self.index = np.int32 if max(room, shape[1]) < 2**31 else np.int64
        self.indices, self.data = np.empty(room, dtype=self.index), np.empty(room)
        self.indptr = np.zeros(shape[0] + 1, dtype=self.index)

    def put(self, rows: slice, codes: Codes) -> None:
        """Append the codes to those of the rows before."""
        _, atoms, coefs = codes.entries()
        start = int(self.indptr[rows.start])
        self.indices[start : start + atoms.size], self.data[start : start + coefs.size] = (
            atoms,
            coefs,
        )
        self.indptr[rows.start + 1 : rows.start + len(codes) + 1] = start + np.cumsum(codes.sizes)

    def result(self) -> Any:
        """Return the matrix."""
        n = int(self.indptr[-1])
        self.indices.resize(n, refcheck=False)
        self.data.resize(n, refcheck=False)
        return scipy.sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape)


# ---------------------------------------------------------------- finished batches on disk


@dataclass(frozen=True, eq=False)
class EncodedBatch(StoredTask):
    """The codes of a batch, identified by everything that they depend on."""

    signals: str
    dictionary: str
    seed_of_run: int
    settings: Settings
    format = "EncodedBatch/1"

    def content(self) -> Mapping[str, Any]:
        """Return hashes of the signals and of the dictionary, the seed and the settings."""
        tol = self.settings.tol
        return {
            "signals": self.signals,
            "dictionary": self.dictionary,
            "seed": str(self.seed_of_run),
            "k": self.settings.k,
            "n_kicks": self.settings.n_kicks,
            "tol": None if tol is None else float(tol).hex(),
        }


class Checkpoint:
    """A directory in which finished batches are kept, so that a run that was ended can go on."""

    def __init__(self, directory: Path, D: Floats, seed: int, settings: Settings) -> None:
        self.store = Store(directory)
        self.dictionary, self.seed, self.settings = array_digest(D), seed, settings
        directory.mkdir(parents=True, exist_ok=True)
        self.store.sweep_temporaries()

    def task(self, Y: Floats) -> EncodedBatch:
        """Return the task that stands for a batch of signals."""
        return EncodedBatch(array_digest(Y), self.dictionary, self.seed, self.settings)

    def load(self, task: EncodedBatch) -> Codes | None:
        """Return the codes of a batch if it was finished before."""
        if task not in self.store:
            return None
        arrays = self.store.read(task).arrays
        return Codes(*(np.asarray(arrays[name]) for name in ("supports", "coefs", "sizes")))

    def save(self, task: EncodedBatch, codes: Codes, seconds: float) -> None:
        """Keep the codes of a finished batch."""
        arrays = {"supports": codes.supports, "coefs": codes.coefs, "sizes": codes.sizes}
        self.store.write(task, arrays, seconds=seconds)


# ---------------------------------------------------------------- all batches


def encode_signals(
    run: Run,
    signals: Signals,
    atoms: Atoms,
    settings: Settings,
    output: Output,
    *,
    checkpoint: Checkpoint | None,
    has_gram: bool,
) -> Mask:
    """Encode all signals into ``output``; return which are finished.

    Signals in memory are one batch, unless batches are kept in a checkpoint.
    """
    batches = signals.batches(len(atoms))
    if not signals.on_disk and checkpoint is None:
        batches = [slice(0, len(signals))]
    finished = np.ones(len(signals), dtype=bool)
    for rows in batches:
        Y = signals.read(rows)
        task = None if checkpoint is None else checkpoint.task(Y)
        codes = None if checkpoint is None or task is None else checkpoint.load(task)
        if codes is None:
            began = run.now()
            codes, finished[rows] = _encode_batch(
                run, Y, atoms, settings, len(signals) - rows.stop, has_gram
            )
            if checkpoint is not None and task is not None and finished[rows].all():
                checkpoint.save(task, codes, run.now() - began)
        else:
            run.advance(len(Y), "from the checkpoint")
        output.put(rows, codes)
        release_pages(signals.source, rows)
    return finished


def _encode_batch(
    run: Run, Y: Floats, atoms: Atoms, settings: Settings, n_later: int, has_gram: bool
) -> tuple[Codes, Mask]:
    """Return the codes of a batch, and which of them are finished."""
    k, n_kicks, tol = settings.k, settings.n_kicks, settings.tol
    if k == 0 or len(Y) == 0:
        return Codes.empty(len(Y), k), np.ones(len(Y), dtype=bool)
    if not has_gram:
        return greedy_codes(run, Y, atoms, k, tol), np.zeros(len(Y), dtype=bool)
    if tol is None:
        coding = Coding(run, Y, atoms, k, n_kicks, n_later)
        finished = coding.run_all()
        return coding.codes, finished
    part = run
    if run.time_limit is not None and n_later > 0:
        part = run.part(max(0.0, run.left) * len(Y) / (len(Y) + n_later))
    return encode_within(part, Y, atoms, k, n_kicks, tol)
