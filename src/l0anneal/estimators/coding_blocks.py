"""Codes of many signals, block by block, with a given number of atoms or to a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.coding import encode, sizes_of_pursuit
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import Tableau, empty_tableau
from l0anneal.samplers.run import Run

__all__ = ["Atoms", "Coding", "encode_within", "one_atom", "parts_of", "warm_up_coding"]

BLOCK = 32  # largest number of signals between two checks for Ctrl-C and the time limit
WORK = 2e7  # products of outside columns and slots between two such checks, about
EXCHANGES = 10  # that follow a kick, about
PURSUIT = -1  # given as a number of kicks: matching pursuit alone, without a descent
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

    def tableau(self, gram: Floats, k: int) -> Tableau:
        """Return an empty tableau for supports of up to k atoms."""
        diag = np.any(self.unit != 0, axis=1).astype(np.float64)
        n = len(self)
        return empty_tableau(gram, np.arange(n), np.empty((0, 0)), diag, np.zeros(n), k)


class Coding:
    """The codes of some signals, with k atoms each; threads take blocks of signals one by one."""

    def __init__(
        self, run: Run, Y: Floats, atoms: Atoms, gram: Floats, k: int, n_kicks: int
    ) -> None:
        self.run, self.Y, self.atoms = run, Y, atoms
        self.k, self.n_kicks = k, n_kicks
        self.codes, self.errors = np.zeros((len(Y), len(atoms))), np.ones(len(Y))
        self.key = stream(run.stream("coding"))
        work = EXCHANGES * (1 + n_kicks) * len(atoms) * k
        self.blocks = _blocks(len(Y), work)
        self.n_threads = max(1, min(len(self.blocks), run.n_threads))
        self.idle: SimpleQueue[tuple[Tableau, Tableau]] = SimpleQueue()
        for _ in range(self.n_threads):
            self.idle.put((atoms.tableau(gram, k), atoms.tableau(gram, k)))
        self.unfinished = len(self.blocks)
        self.pursuit_seconds = 0.0  # for one block

    def run_all(self) -> Mask:
        """Fill in the codes; return which signals were finished. The others have those of a pursuit."""
        if self.run.time_limit is not None:
            began = self.run.now()
            self._encode(self.blocks[0], PURSUIT)
            self.pursuit_seconds = self.run.now() - began
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
            self._encode(block, PURSUIT)
        else:
            self.codes[block] = one_atom(self.Y[block], self.atoms)

    def _finish(self, block: slice) -> bool:
        """Encode a block if there is time for it and for the pursuit of those after it."""
        to_pursue = self.unfinished * self.pursuit_seconds / self.n_threads
        if self.run.stopped or self.run.now() + to_pursue >= self.run.deadline:
            return False
        self._encode(block, self.n_kicks)
        self.unfinished -= 1
        self.run.advance(len(self.Y[block]))
        return True

    def _encode(self, block: slice, n_kicks: int) -> None:
        tableaux = self.idle.get()
        try:
            self.codes[block] = 0.0
            encode(
                *tableaux,
                self.atoms.unit,
                self.atoms.norms,
                self.Y[block],
                self.k,
                n_kicks,
                self.key,
                self.codes[block],
                self.errors[block],
            )
        finally:
            self.idle.put(tableaux)


def encode_within(
    run: Run, Y: Floats, atoms: Atoms, gram: Floats, most: int, n_kicks: int, tol: float
) -> tuple[Floats, Mask]:
    """Return codes with the fewest atoms that reach a squared error of ``tol``, and which are finished.

    Orthogonal matching pursuit tells how many atoms are enough. From there, a search with one atom
    less is made as long as it reaches the tolerance. A signal that ``most`` atoms do not bring within
    the tolerance has a code of ``most`` atoms.
    """
    parts = parts_of(Y, tol)
    codes = np.zeros((len(Y), len(atoms)))
    size, finished = _pursue_within(run, Y, atoms, gram, most, parts, codes)
    trying = finished & (size > 0)
    first = trying.copy()  # the search has not yet replaced the code of the pursuit
    while trying.any():
        # all signals of one size at a time, the largest first, so that each is tried in turn
        k = int(size[trying].max())
        rows = np.flatnonzero(trying & (size == k))
        if run.over:
            finished[rows] = trying[rows] = False
            continue
        run.note(f"{k} atoms: {rows.size} signals")
        coding = Coding(run, Y[rows], atoms, gram, k, n_kicks)
        done = coding.search()
        reached = done & (coding.errors <= parts[rows])
        # of a signal that stays above the tolerance, the error is made as small as possible
        above = done & first[rows] & (size[rows] == most)
        better = reached | above
        codes[rows[better]] = coding.codes[better]
        finished[rows] &= done
        trying[rows] = reached & (k > 1)
        first[rows] = False
        size[rows] = k - 1
    return codes, finished


def _pursue_within(
    run: Run, Y: Floats, atoms: Atoms, gram: Floats, most: int, parts: Floats, codes: Floats
) -> tuple[NDArray[np.int64], Mask]:
    """Fill in codes of matching pursuit that reach the tolerance; return their sizes.

    Also returns the signals for which there was time; the others have codes of at most one atom.
    """
    sizes, in_time = np.zeros(len(Y), dtype=np.int64), np.ones(len(Y), dtype=bool)
    tableau = atoms.tableau(gram, most)
    for block in _blocks(len(Y), len(atoms) * most):
        if run.now() < run.cutoff:
            sizes_of_pursuit(tableau, atoms.unit, Y[block], parts[block], most, sizes[block])
            run.advance(len(Y[block]), "matching pursuit")
        else:
            codes[block], in_time[block] = one_atom(Y[block], atoms), False
            codes[block][parts[block] >= 1.0] = 0.0
    waiting = in_time & (sizes > 0)
    while waiting.any():
        k = int(sizes[waiting].min())
        rows = np.flatnonzero(waiting & (sizes == k))
        coding = Coding(run, Y[rows], atoms, gram, k, PURSUIT)
        run.map(coding.pursue, coding.blocks)
        codes[rows] = coding.codes
        # refined errors decide: the energies of a tableau are too coarse for a small tolerance
        above = (coding.errors > parts[rows]) & (k < most)
        ended = np.count_nonzero(coding.codes, axis=1) < k  # no other atom is independent
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


def one_atom(Y: Floats, atoms: Atoms) -> Floats:
    """Return codes that have the best atom alone."""
    products = Y @ atoms.unit.T
    best, at = np.argmax(np.abs(products), axis=1), np.arange(len(Y))
    codes = np.zeros(products.shape)
    codes[at, best] = products[at, best] / atoms.norms[best]
    return codes


def _blocks(n_signals: int, work: float) -> list[slice]:
    """Return blocks of signals that take some hundredths of a second, given the work for one."""
    size = max(1, min(BLOCK, int(WORK / max(1.0, work))))
    return [slice(i, min(n_signals, i + size)) for i in range(0, n_signals, size)]


@cache
def warm_up_coding() -> None:
    """Compile the kernels of sparse coding."""
    atoms = Atoms.of(np.eye(4, 3) + 0.5)
    gram = atoms.unit @ atoms.unit.T
    t, spare = atoms.tableau(gram, 2), atoms.tableau(gram, 2)
    key, Y = stream(np.random.SeedSequence(0)), np.ones((1, 3))
    encode(t, spare, atoms.unit, atoms.norms, Y, 2, 1, key, np.zeros((1, 4)), np.zeros(1))
    sizes_of_pursuit(t, atoms.unit, Y, np.ones(1), 2, np.zeros(1, dtype=np.int64))
