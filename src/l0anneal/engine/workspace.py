"""A chain's own tableau, and its rows of the Gram matrix."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel_choice import choose_kernel
from l0anneal.engine.moves import DONE, SINGULAR, descend, pair_flip_direct
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.moves.multi_flip import MOST_PAIRS
from l0anneal.engine.moves.outcome import ACCEPTED, FULL, PROPOSED
from l0anneal.engine.moves.pursuit import pursue
from l0anneal.engine.pivots import add
from l0anneal.engine.tableau import (
    CLOCK,
    ENERGY,
    REFRESHES,
    SIZE,
    STALE,
    Tableau,
    empty_tableau,
    refresh,
    refresh_inverse,
)
from l0anneal.problem import sparse_problem as _problem
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Workspace"]

DIRECT = (pair_flip_direct, evidence_flip_direct)  # they keep only what concerns the support

_SINGULAR = "the support became singular to working precision; please report this problem"


class Workspace:
    """The tableau of one chain on one problem, grown from the empty support.

    Kernels work on ``tableau``. A kernel that needs a row of the Gram matrix that is not there
    returns which; `bring` fetches it, and the kernel is called again.
    """

    def __init__(self, problem: SparseProblem, capacity: int, ridge: float = 0.0) -> None:
        self.problem = problem
        self.pause: Callable[[], object] = lambda: None  # called now and then; may raise
        n = problem.n_columns
        if problem.gram_is_whole:
            rows, row_of = problem.gram, np.arange(n, dtype=np.int64)
            columns = np.empty((0, 0))
        else:
            n_rows = max(capacity + MOST_PAIRS, min(n, _problem.ROW_CACHE_BYTES // (8 * n)))
            rows, row_of = np.empty((n_rows, n)), np.full(n, -1, dtype=np.int64)
            columns = problem.unit_columns
            self._column_of = np.full(n_rows, -1, dtype=np.int64)
        self.tableau: Tableau = empty_tableau(
            rows,
            row_of,
            columns,
            problem.unit_diagonal(ridge),
            problem.unit_correlation.copy(),
            capacity,
        )

    @property
    def size(self) -> int:
        """K, the number of columns in the support."""
        return int(self.tableau.counts[SIZE])

    @property
    def unit_energy(self) -> float:
        """The tableau's running energy, counted from the empty support, in the engine's units."""
        return float(self.tableau.values[ENERGY])

    @property
    def support(self) -> NDArray[np.int64]:
        """The present support, sorted."""
        return np.sort(self.tableau.inside[: self.tableau.counts[SIZE]])

    @property
    def energy(self) -> float:
        """The tableau's running energy, in the caller's units."""
        return self.to_energy(float(self.tableau.values[ENERGY]))

    def to_energy(self, value: Any) -> Any:
        """The tableau's energy, counted from the empty support, as ½‖y − Ax‖² of the caller."""
        return (self.problem.unit_signal + value) * self.problem.unit_energy

    @property
    def coef(self) -> NDArray[np.float64]:
        """Dense coefficients from the tableau, in the caller's units."""
        size = self.tableau.counts[SIZE]
        return self.problem.from_unit_coef(self.tableau.x[:size], self.tableau.inside[:size])

    @property
    def inverse(self) -> NDArray[np.float64]:
        """U, both triangles."""
        size = self.tableau.counts[SIZE]
        lower = np.tril(self.tableau.U[:size, :size])
        return np.asarray(lower + np.tril(lower, -1).T)

    @property
    def refreshes(self) -> int:
        """How often the tableau was recomputed."""
        return int(self.tableau.counts[REFRESHES])

    def bring(self, j: int) -> None:
        """Make row j of the Gram matrix present; the row unused for longest makes way."""
        t = self.tableau
        if t.row_of[j] >= 0:
            return
        age = t.used.copy()
        age[t.row_of[t.inside[: t.counts[SIZE]]]] = np.iinfo(
            np.int64
        ).max  # the support's rows stay
        slot = int(np.argmin(age))
        if self._column_of[slot] >= 0:
            t.row_of[self._column_of[slot]] = -1
        self.pause()
        t.gram[slot] = self.problem.gram_row(j)
        t.counts[CLOCK] += 1
        t.used[slot] = t.counts[CLOCK]
        t.row_of[j], self._column_of[slot] = slot, j

    def grow(self, capacity: int) -> None:
        """Make room for ``capacity`` columns in the support."""
        t = self.tableau
        old = t.inside.size
        inside = np.full(capacity, -1, dtype=np.int64)
        U, x = np.zeros((capacity, capacity)), np.zeros(capacity)
        W, work = np.zeros((t.b.size, capacity)), np.zeros((t.work.shape[0], capacity))
        inside[:old], U[:old, :old], x[:old], W[:, :old] = t.inside, t.U, t.x, t.W
        self.tableau = t._replace(inside=inside, U=U, x=x, W=W, work=work)

    def set_ridge(self, ridge: float, pull: float | NDArray[np.float64] = 0.0) -> None:
        """Put ``ridge`` on the diagonal of the unit-norm columns' Gram matrix, and recompute.

        ``pull`` is added to their correlations with the signal: the ridge then holds coefficients not
        to zero but to pull/ridge.
        """
        t = self.tableau
        t.diag[:] = self.problem.unit_diagonal() + ridge
        t.b[:] = self.problem.unit_correlation + pull
        # what a direct kernel left behind stays behind: the rows for it may not be there
        if not (refresh_inverse(t) if t.counts[STALE] else refresh(t)):
            raise ArithmeticError(_SINGULAR)

    def add(self, j: int) -> bool:
        """Add column j to the support; False if the support would not be admissible."""
        t = self.tableau
        size = int(t.counts[SIZE])
        position = int(np.flatnonzero(t.outside[: t.b.size - size] == j)[0])
        if t.gamma[position] <= PIVOT * t.diag[j]:
            return False  # before its row of the Gram matrix is computed
        self.bring(j)
        return bool(add(t, position))

    def refresh(self) -> None:
        """Recompute the tableau from the Gram matrix."""
        if not refresh(self.tableau):
            raise ArithmeticError(_SINGULAR)

    def fill(self, size: int, order: NDArray[np.int64]) -> None:
        """Grow the support to ``size`` in the given order, passing over dependent columns.

        If the order runs out first, start again with the columns that stick out farthest, which
        reaches the rank; raise ValueError, naming the rank, if even that is too few.
        """
        if size <= min(self.problem.n_samples, order.size):
            for j in order:
                if self.tableau.counts[SIZE] == size:
                    break
                self.add(int(j))
        if self.tableau.counts[SIZE] < size:
            self._fill_by_pivots(size)
        self.refresh()

    def begin_at(self, support: NDArray[np.int64]) -> None:
        """Grow the support to the given one, or raise ValueError if it is not admissible."""
        for j in support:
            if not self.add(int(j)):
                raise ValueError(
                    f"the columns of the given support are linearly dependent: "
                    f"column {j} adds nothing to those before it"
                )
        self.refresh()

    def fill_greedily(self, size: int) -> None:
        """Grow the support to ``size``, each time by the column that lowers the energy most."""
        t = self.tableau
        while True:
            n_inside = int(t.counts[SIZE])
            while (outcome := pursue(t, min(size, n_inside + 16))) >= 0:
                self.bring(outcome)
            self.pause()
            n_inside = int(t.counts[SIZE])
            if n_inside == size:
                break
            if outcome == DONE:
                continue
            # the best column may not join: the next best that may
            n_outside = t.b.size - n_inside
            gamma = t.gamma[:n_outside]
            gain = np.where(gamma > PIVOT, t.r[:n_outside] ** 2 / np.maximum(gamma, PIVOT), -1.0)
            for position in np.argsort(-gain, kind="stable"):
                if gain[position] >= 0 and self.add(int(t.outside[position])):
                    break
            else:  # nothing joins these
                self._fill_by_pivots(size)
        self.refresh()

    def run(self, kernel: Callable[..., int], *args: Any, complete: bool = True) -> None:
        """Call a kernel until it is done, bringing the Gram rows that it asks for.

        With ``complete``, what a direct kernel left behind is computed first.
        """
        if complete and kernel not in DIRECT:
            self.complete()
        while (outcome := kernel(self.tableau, *args)) != DONE:
            if outcome == SINGULAR:
                raise ArithmeticError(_SINGULAR)
            if outcome == FULL:
                self.grow(min(2 * self.tableau.inside.size + 8, self.problem.n_columns))
            else:
                self.bring(outcome)

    def spare(self) -> Tableau:
        """A second tableau of this problem that shares what does not depend on the support."""
        own = ("inside", "outside", "U", "W", "x", "r", "gamma", "work", "counts", "values")
        return self.tableau._replace(**{name: getattr(self.tableau, name).copy() for name in own})

    def descend(self) -> int:
        """Walk down to a swap-local minimum; return the swaps made."""
        t = self.tableau
        n_outside = t.b.size - int(t.counts[SIZE])
        tally = np.zeros(4, dtype=np.int64)
        while tally[PROPOSED] < n_outside:
            self.run(descend, self.chunk, tally)
            self.pause()
        return int(tally[ACCEPTED])

    def prefers_direct(self, acceptance: float) -> bool:
        """Whether `pair_flip_direct` is the cheaper way to flip pairs at this rate of acceptance.

        By counts of operations, never by the clock, so that a run can be had again.
        """
        return self.choose_kernel("pair flip", acceptance) == "pair flip, direct"

    def choose_kernel(self, move: str, acceptance: float) -> str:
        """Return the kernel that ``move`` runs where the pair flip's acceptance is this."""
        t = self.tableau
        k = int(t.counts[SIZE])
        row = cross = 0.0
        if not self.problem.gram_is_whole:
            row = 2.0 * self.problem.n_samples * t.b.size
            cross = 2.0 * self.problem.n_samples * k if t.columns.size else np.inf
        return choose_kernel(move, acceptance, k, t.b.size - k, row, cross)

    def complete(self) -> None:
        """Compute what a direct kernel left behind, if one ran last."""
        t = self.tableau
        if t.counts[STALE]:
            for j in t.inside[: t.counts[SIZE]]:
                self.bring(int(j))
            self.refresh()

    @property
    def chunk(self) -> int:
        """Proposals that take some hundredths of a second even if all of them are accepted."""
        t = self.tableau
        size = int(t.counts[SIZE])
        return 1 + int(5e7 // (1 + size * t.b.size))

    def _fill_by_pivots(self, size: int) -> None:
        t = self.tableau
        t.counts[SIZE] = 0
        t.outside[:] = np.arange(t.b.size)
        t.r[:], t.gamma[:] = t.b, t.diag
        t.values[ENERGY] = 0.0
        limit = min(size, self.problem.n_samples)
        while (rank := int(t.counts[SIZE])) < limit:
            position = int(np.argmax(t.gamma[: t.b.size - rank]))
            if not self.add(int(t.outside[position])):
                break
        if rank < size:
            true_rank = self.problem.rank()
            if size > true_rank:
                raise ValueError(
                    f"n_nonzero = {size} exceeds the rank of A, which is {true_rank}: "
                    f"no {size} columns are linearly independent"
                )
            raise ValueError(
                f"n_nonzero = {size} is within the rank of A, which is {true_rank}, but its columns "
                f"are nearly dependent: only {rank} were found such that each keeps more than "
                f"{PIVOT:g} of its squared norm off the span of the others"
            )
