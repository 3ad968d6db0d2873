"""Codes of many signals, block by block, with a given number of atoms or to a tolerance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.assistant import run_steps
from l0anneal.engine.coding import OMP, PURSUIT, encode, sizes_of_pursuit
from l0anneal.engine.coding_search import search
from l0anneal.engine.coding_state import (
    CodeTableau,
    CodingDictionary,
    coding_dictionary,
    empty_code_tableau,
)
from l0anneal.engine.rng import stream
from l0anneal.estimators.codes import Codes
from l0anneal.samplers.run import Run

__all__ = ["PURSUIT", "Atoms", "Coding", "encode_within", "one_atom", "parts_of", "warm_up_coding"]

BLOCK = 512  # largest number of signals between two checks for Ctrl-C and the time limit
WORK = 2e7  # products of atoms and slots between two such checks, about
EXCHANGES = 10  # that follow a kick, about
BLOCKS_PER_THREAD = 4  # at least, so that threads end at about the same time
EXACT = 1e-20  # a residual below this part of ‖y‖² is a rounding error
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Atoms:
    """A dictionary of unit-norm atoms.

    Attributes
    ----------
    unit : ndarray of shape (n_atoms, n_features)
        The atoms; a zero atom stays zero.
    norms : ndarray of shape (n_atoms,)
        Their norms in the caller's units, 1 for a zero atom.
    prepared : CodingDictionary
        What the kernels need, computed when it is first used.
    """

    unit: Floats
    norms: Floats

    @classmethod
    def of(cls, D: Floats) -> Atoms:
        """Scale the rows of a dictionary, of any magnitude, to unit norm."""
        largest = np.max(np.abs(D), axis=1)
        scale = np.where(largest > 0, largest, 1.0)
        norms = np.linalg.norm(D / scale[:, None], axis=1)
        norms[norms == 0] = 1.0
        return cls(D / scale[:, None] / norms[:, None], scale * norms)

    def __len__(self) -> int:
        return int(self.unit.shape[0])

    @cached_property
    def prepared(self) -> CodingDictionary:
        """The padded atoms and their Gram matrix."""
        return coding_dictionary(self.unit)

    def tableau(self, k: int) -> CodeTableau:
        """Return an empty tableau for supports of up to k atoms."""
        return empty_code_tableau(self.prepared, k)


class Coding:
    """The codes of some signals, with k atoms each; threads take blocks of signals one by one.

    Parameters
    ----------
    run : Run
    Y : ndarray of shape (n_signals, n_features)
    atoms : Atoms
    k, n_kicks : int
        Number of atoms, and number of kicks or `PURSUIT`.
    n_later : int
        Number of signals for whose pursuit a run with a time limit has to keep time when it has finished
        these.
    """

    def __init__(
        self, run: Run, Y: Floats, atoms: Atoms, k: int, n_kicks: int, n_later: int = 0
    ) -> None:
        self.run, self.Y, self.atoms = run, Y, atoms
        self.k, self.n_kicks = k, n_kicks
        self.codes, self.errors = Codes.empty(len(Y), k), np.ones(len(Y))
        self.key = stream(run.stream("coding"))
        work = (k + EXCHANGES * (1 + max(0, n_kicks))) * len(atoms) * k
        self.blocks = _blocks(len(Y), work, run.n_threads)
        self.n_threads = max(1, min(len(self.blocks), run.n_threads))
        self.idle: SimpleQueue[tuple[CodeTableau, CodeTableau]] = SimpleQueue()
        for _ in range(self.n_threads):
            self.idle.put((atoms.tableau(k), atoms.tableau(k)))
        self.n_left = len(Y) + n_later
        self.pursuit_seconds = 0.0  # for one signal

    def run_all(self) -> Mask:
        """Fill in the codes; return which signals were finished. The others have those of a pursuit."""
        if self.run.time_limit is not None:
            began = self.run.now()
            self._encode(self.blocks[0], OMP)
            self.pursuit_seconds = (self.run.now() - began) / len(self.Y[self.blocks[0]])
        finished = self.search()
        left = [block for block in self.blocks if not finished[block].all()]
        self.run.map(self.pursue, left)
        return finished

    def search(self) -> Mask:
        """Fill in the codes for which there is time; return which."""
        done = self.run.map(self._finish, self.blocks)
        finished = np.zeros(len(self.Y), dtype=bool)
        for block, each in zip(self.blocks, done):
            finished[block] = each
        return finished

    def pursue(self, block: slice) -> None:
        """Fill in the codes of matching pursuit or, where it is late, codes of one atom."""
        if self.run.now() < self.run.cutoff:
            self._encode(block, OMP)
        else:
            self.codes.replace(block, one_atom(self.Y[block], self.atoms))

    def _finish(self, block: slice) -> bool:
        """Encode a block if there is time for it and for the pursuit of those after it."""
        to_pursue = self.n_left * self.pursuit_seconds / self.n_threads
        if self.run.stopped or self.run.now() + to_pursue >= self.run.deadline:
            return False
        self._encode(block, self.n_kicks)
        n = len(self.Y[block])
        self.n_left -= n
        self.run.advance(n)
        return True

    def _encode(self, block: slice, n_kicks: int) -> None:
        tableaux = self.idle.get()
        codes = self.codes[block]
        try:
            encode(
                self.atoms.prepared,
                *tableaux,
                self.atoms.norms,
                _writeable(self.Y[block]),
                self.k,
                n_kicks,
                self.key,
                codes.supports,
                codes.coefs,
                codes.sizes,
                self.errors[block],
            )
        finally:
            self.idle.put(tableaux)


def encode_within(
    run: Run, Y: Floats, atoms: Atoms, most: int, n_kicks: int, tol: float
) -> tuple[Codes, Mask]:
    """Return codes with the fewest atoms that reach a squared error of ``tol``, and which are finished.

    Orthogonal matching pursuit tells how many atoms are enough. From there, a search with one atom
    less is made as long as it reaches the tolerance. A signal that ``most`` atoms do not bring within
    the tolerance has a code of ``most`` atoms. With `PURSUIT` for a number of kicks, there is no search.
    """
    parts = parts_of(Y, tol)
    codes = Codes.empty(len(Y), most)
    size, finished = _pursue_within(run, Y, atoms, most, parts, codes)
    trying = finished & (size > 0) & (n_kicks != PURSUIT)
    first = trying.copy()  # the search has not yet replaced the code of the pursuit
    while trying.any():
        # all signals of one size at a time, the largest first, so that each is tried in turn
        k = int(size[trying].max())
        rows = np.flatnonzero(trying & (size == k))
        if run.over:
            finished[rows] = trying[rows] = False
            continue
        run.note(f"{k} atoms: {rows.size} signals")
        coding = Coding(run, Y[rows], atoms, k, n_kicks)
        done = coding.search()
        reached = done & (coding.errors <= parts[rows])
        # of a signal that stays above the tolerance, the error is made as small as possible
        above = done & first[rows] & (size[rows] == most)
        better = np.flatnonzero(reached | above)
        codes.replace(rows[better], coding.codes[better])
        finished[rows] &= done
        trying[rows] = reached & (k > 1)
        first[rows] = False
        size[rows] = k - 1
    return codes, finished


def _pursue_within(
    run: Run, Y: Floats, atoms: Atoms, most: int, parts: Floats, codes: Codes
) -> tuple[NDArray[np.int64], Mask]:
    """Fill in codes of matching pursuit that reach the tolerance; return their sizes.

    Also returns the signals for which there was time; the others have codes of at most one atom.
    """
    sizes, in_time = np.zeros(len(Y), dtype=np.int64), np.ones(len(Y), dtype=bool)
    tableau = atoms.tableau(most)
    for block in _blocks(len(Y), len(atoms) * most * most, 1):
        if run.now() < run.cutoff:
            sizes_of_pursuit(
                atoms.prepared, tableau, _writeable(Y[block]), parts[block], most, sizes[block]
            )
            run.advance(len(Y[block]), "matching pursuit")
        else:
            codes.replace(block, one_atom(Y[block], atoms))
            codes.sizes[block][parts[block] >= 1.0] = 0
            in_time[block] = False
    waiting = in_time & (sizes > 0)
    while waiting.any():
        k = int(sizes[waiting].min())
        rows = np.flatnonzero(waiting & (sizes == k))
        coding = Coding(run, Y[rows], atoms, k, OMP)
        run.map(coding.pursue, coding.blocks)
        codes.replace(rows, coding.codes)
        # refined errors decide: the energies of a tableau are too coarse for a small tolerance
        above = (coding.errors > parts[rows]) & (k < most)
        ended = coding.codes.sizes < k  # no other atom is independent
        again = above & ~ended
        sizes[rows[again]] += 1
        sizes[rows[above & ended]] = most
        waiting[rows[~again]] = False
    return sizes, in_time


def parts_of(Y: Floats, tol: float) -> Floats:
    """Return the tolerance as a part of ‖y‖² of each signal; infinite for a zero signal."""
    largest = np.max(np.abs(Y), axis=1, initial=0.0)
    lengths = largest * np.linalg.norm(Y / np.where(largest > 0, largest, 1.0)[:, None], axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        parts = (np.sqrt(tol) / lengths) ** 2
    return np.where(lengths > 0, np.maximum(parts, EXACT), np.inf)


def one_atom(Y: Floats, atoms: Atoms) -> Codes:
    """Return codes that have the best atom alone."""
    products = Y @ atoms.unit.T
    best, at = np.argmax(np.abs(products), axis=1), np.arange(len(Y))
    coefs = products[at, best] / atoms.norms[best]
    return Codes(best[:, None], coefs[:, None], (coefs != 0).astype(np.int64))


def _writeable(Y: Floats) -> Floats:
    """Return a copy of signals that are read-only, for which the kernels would be compiled again."""
    return Y if Y.flags.writeable else Y.copy()


def _blocks(n_signals: int, work: float, n_threads: int) -> list[slice]:
    """Return blocks of signals that take some hundredths of a second, given the work for one."""
    size = min(BLOCK, int(WORK / max(1.0, work)))
    if n_threads > 1:
        size = min(size, n_signals // (BLOCKS_PER_THREAD * n_threads))
    size = max(1, size)
    return [slice(i, min(n_signals, i + size)) for i in range(0, n_signals, size)]


@cache
def warm_up_coding() -> None:
    """Compile the kernels of sparse coding, or load them, once per process."""
    run_steps(_steps)


def _steps() -> list[Callable[[], object]]:
    return [_search_nothing, _encode_one, _pursue_one]


def _search_nothing() -> None:
    atoms, key = Atoms.of(np.eye(4, 3) + 0.5), stream(np.random.SeedSequence(0))
    search(atoms.prepared, atoms.tableau(2), atoms.tableau(2), 4, 0, key)


def _encode_one() -> None:
    atoms = Atoms.of(np.eye(4, 3) + 0.5)
    key, codes = stream(np.random.SeedSequence(0)), Codes.empty(1, 2)
    tableaus = atoms.tableau(2), atoms.tableau(2)
    arrays = codes.supports, codes.coefs, codes.sizes
    encode(atoms.prepared, *tableaus, atoms.norms, np.ones((1, 3)), 2, 1, key, *arrays, np.zeros(1))


def _pursue_one() -> None:
    atoms = Atoms.of(np.eye(4, 3) + 0.5)
    sizes = np.zeros(1, dtype=np.int64)
    sizes_of_pursuit(atoms.prepared, atoms.tableau(2), np.ones((1, 3)), np.ones(1), 2, sizes)
