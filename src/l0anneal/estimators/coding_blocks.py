"""Codes of many signals, block by block, and the fewest atoms that reach a tolerance."""

from __future__ import annotations

import warnings
from functools import cache
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import orthogonal_mp_gram

from l0anneal.engine.coding import encode
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import Tableau, empty_tableau
from l0anneal.samplers.run import Run

__all__ = ["Coding", "encode_within", "normalise", "warm_up_coding"]

BLOCK = 32  # largest number of signals between two checks for Ctrl-C and the time limit
KICKS = 1000  # number of kicks between two such checks, about
PURSUIT = -1  # given as a number of kicks: matching pursuit alone, without a descent
ROUNDING = 1e-10  # part of ‖y‖² by which a code may be worse than matching pursuit
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Coding:
    """The blocks of one call, which threads take one by one."""

    def __init__(
        self,
        run: Run,
        Y: Floats,
        atoms: Floats,
        norms: Floats,
        k: int,
        n_kicks: int,
        codes: Floats,
    ) -> None:
        self.run, self.Y, self.atoms, self.norms = run, Y, atoms, norms
        self.k, self.n_kicks, self.codes = k, n_kicks, codes
        self.key = stream(run.stream("coding"))
        gram = np.ascontiguousarray(atoms @ atoms.T)
        self.block = max(1, min(BLOCK, KICKS // (1 + n_kicks)))
        self.blocks = [slice(i, i + self.block) for i in range(0, Y.shape[0], self.block)]
        self.idle: SimpleQueue[tuple[Tableau, Tableau]] = SimpleQueue()
        self.n_threads = max(1, min(len(self.blocks), run.n_threads))
        for _ in range(self.n_threads):
            self.idle.put(_two_tableaux(atoms, gram, k))
        self.unfinished = len(self.blocks)
        self.pursuit_seconds = 0.0  # for one block

    def run_all(self) -> NDArray[np.bool_]:
        """Fill in the codes; return which signals were finished."""
        self.run.expect(self.Y.shape[0])
        if self.run.time_limit is not None:
            began = self.run.now()
            self._encode(self.blocks[0], PURSUIT)
            self.pursuit_seconds = self.run.now() - began
        done = np.array(self.run.map(self._finish, self.blocks))
        left = [block for block, finished in zip(self.blocks, done) if not finished]
        self.run.map(lambda block: self._encode(block, PURSUIT), left)
        return np.repeat(done, self.block)[: self.Y.shape[0]]

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
                self.atoms,
                self.norms,
                self.Y[block],
                self.k,
                n_kicks,
                self.key,
                self.codes[block],
            )
        finally:
            self.idle.put(tableaux)


def encode_within(
    run: Run, Y: Floats, atoms: Floats, norms: Floats, most: int, n_kicks: int, tol: float
) -> tuple[Floats, Mask]:
    """Return codes with the fewest atoms that reach a squared error of ``tol``, and which are finished.

    Orthogonal matching pursuit tells how many atoms are enough. From there, a search with one atom
    less is made as long as it reaches the tolerance. A signal that ``most`` atoms do not bring within
    the tolerance has a code of ``most`` atoms.
    """
    energy = np.sum(Y**2, axis=1)
    codes, finished = np.zeros((Y.shape[0], atoms.shape[0])), np.ones(Y.shape[0], dtype=bool)
    size = np.where(energy > tol, _enough(Y, atoms, energy, most, tol), 0)
    trying = size > 0
    while trying.any():
        # all signals of one size at a time, the largest first, so that each is tried in turn
        k = int(size[trying].max())
        rows = np.flatnonzero(trying & (size == k))
        first = ~np.any(codes[rows], axis=1)
        if run.over and not first.any():
            finished[rows], trying[rows] = False, False
            continue
        found = np.zeros((rows.size, atoms.shape[0]))
        done = Coding(run, Y[rows], atoms, norms, k, n_kicks, found).run_all()
        error = np.sum((Y[rows] - found @ (atoms * norms[:, None])) ** 2, axis=1)
        reached = error <= tol + ROUNDING * energy[rows] * first
        better = reached | first
        codes[rows[better]] = found[better]
        finished[rows] &= done
        trying[rows] = reached & done & (k > 1)
        size[rows] = k - 1
    return codes, finished


def _enough(Y: Floats, atoms: Floats, energy: Floats, most: int, tol: float) -> NDArray[np.int64]:
    """Return how many atoms matching pursuit needs to reach the tolerance, at most ``most``."""
    sizes = np.zeros(Y.shape[0], dtype=np.int64)
    gram = atoms @ atoms.T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # dependent atoms: the pursuit ends early
        for i in np.flatnonzero(energy > tol):
            code = orthogonal_mp_gram(gram, atoms @ Y[i], tol=tol, norms_squared=energy[i : i + 1])
            left = float(np.sum((Y[i] - code @ atoms) ** 2))
            within = left <= tol + ROUNDING * energy[i]
            sizes[i] = min(most, int(np.count_nonzero(code))) if within else most
    return sizes


def normalise(D: Floats) -> tuple[Floats, Floats]:
    """Return atoms of unit norm, and their norms (1 for a zero atom, which stays zero)."""
    largest = np.max(np.abs(D), axis=1)
    scale = np.where(largest > 0, largest, 1.0)
    norms = np.linalg.norm(D / scale[:, None], axis=1)
    norms[norms == 0] = 1.0
    return D / scale[:, None] / norms[:, None], scale * norms


def _two_tableaux(atoms: Floats, gram: Floats, k: int) -> tuple[Tableau, Tableau]:
    """Return the tableaus of a thread: one for the present support, one for the best so far."""
    n = atoms.shape[0]
    diag = np.any(atoms != 0, axis=1).astype(np.float64)
    present, best = (
        empty_tableau(gram, np.arange(n), np.empty((0, 0)), diag, np.zeros(n), k) for _ in range(2)
    )
    return present, best


@cache
def warm_up_coding() -> None:
    """Compile the kernels of sparse coding."""
    atoms, norms = normalise(np.eye(4, 3) + 0.5)
    tableaux = _two_tableaux(atoms, atoms @ atoms.T, 2)
    key = stream(np.random.SeedSequence(0))
    encode(*tableaux, atoms, norms, np.ones((1, 3)), 2, 1, key, np.zeros((1, 4)))
