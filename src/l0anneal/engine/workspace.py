"""The workspace of one chain: it reads, changes and maintains a tableau, and runs kernels on it."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.held_rows import first_rows, fresh_rows, hold_row, with_room_for_rows
from l0anneal.engine.kernel_choice import choose_kernel
from l0anneal.engine.moves.descent import descend
from l0anneal.engine.moves.protocol import (
    ACCEPTED,
    DONE,
    FULL,
    OUTSIDE,
    PAUSED,
    PROPOSED,
    SINGULAR,
    SPARE_ROWS,
    is_direct,
    new_tally,
)
from l0anneal.engine.moves.pursuit import pursue
from l0anneal.engine.pivots import add, remove
from l0anneal.engine.refresh import refresh, refresh_inverse
from l0anneal.engine.start import clear, set_support
from l0anneal.engine.tableau import (
    CAREFUL,
    ENERGY,
    REFRESHES,
    SINGULARITY,
    SIZE,
    STALE,
    Tableau,
    empty_tableau,
    grown_tableau,
)
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Workspace"]

_SINGULAR = (
    "the columns of the support became linearly dependent to working precision (singular Gram "
    "matrix), which an admissible support cannot; please report this problem with its data"
)


class Workspace:
    """The tableau of one chain on one problem.

    The support is empty at first; `fill`, `fill_greedily` or `begin_at` give it columns. Kernels work
    on ``tableau``. A kernel that needs a row of the Gram matrix that is not held returns the index of
    the column; `run` then computes the row (`bring`) and calls the kernel again.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary and the signal.
    capacity : int
        Largest size of the support; `grow` increases it.
    ridge : float
        Ridge on the diagonal of the Gram matrix, in the caller's units.

    Attributes
    ----------
    pause : callable
        Called without arguments between pieces of work; it may raise an exception to stop the run.
    """

    def __init__(self, problem: SparseProblem, capacity: int, ridge: float = 0.0) -> None:
        self.problem = problem
        self.pause: Callable[[], object] = lambda: None
        rows, row_of = first_rows(problem, capacity)
        columns = np.empty((0, 0)) if problem.gram_is_whole else problem.unit_columns
        self.tableau: Tableau = empty_tableau(
            rows,
            row_of,
            columns,
            problem.unit_diagonal(ridge),
            problem.unit_correlation.copy(),
            capacity,
        )

    # ------------------------------------------------------------ reading

    @property
    def size(self) -> int:
        """K, the number of columns in the support."""
        return int(self.tableau.counts[SIZE])

    @property
    def support(self) -> NDArray[np.int64]:
        """The columns of the support, sorted."""
        return np.sort(self.inside_columns)

    @property
    def unit_energy(self) -> float:
        """The tableau's energy, relative to the empty support, in the engine's units."""
        return float(self.tableau.values[ENERGY])

    @property
    def energy(self) -> float:
        """½‖y − Ax‖² in the caller's units, from the tableau."""
        return self.to_energy(self.unit_energy)

    def to_energy(self, value: Any) -> Any:
        """Convert energies of the tableau to ½‖y − Ax‖² in the caller's units."""
        return (self.problem.unit_signal + value) * self.problem.unit_energy

    @property
    def coef(self) -> NDArray[np.float64]:
        """Coefficients of all columns in the caller's units, from the tableau."""
        return self.problem.from_unit_coef(self.coefficients, self.inside_columns)

    @property
    def inverse(self) -> NDArray[np.float64]:
        """U, the inverse Gram matrix of the support, as a full symmetric matrix."""
        lower, slot = self.tableau.U[: self.size, : self.size], np.arange(self.size)
        return np.where(slot[:, None] < slot, lower.T, lower)

    @property
    def diagonal(self) -> NDArray[np.float64]:
        """The diagonal of the Gram matrix of the unit-norm columns, with the ridge."""
        return self.tableau.diag

    def gram_inside(self) -> NDArray[np.float64]:
        """Return the Gram matrix of the unit-norm columns of the support, by slot, without ridge."""
        t, columns = self.tableau, self.inside_columns
        rows = t.row_of[columns]
        if np.array_equal(t.known[: self.size], columns):
            return t.inner[: self.size, : self.size].copy()
        if self.problem.gram_is_whole or np.any(rows < 0):
            return self.problem.gram_of(columns)
        return np.asarray(t.gram[rows[:, None], columns])

    @property
    def is_near_singular(self) -> bool:
        """Whether the support is near-singular, as the docstring of `tableau` defines it."""
        return bool(self.tableau.values[SINGULARITY] * CAREFUL >= 1.0)

    @property
    def refreshes(self) -> int:
        """How many times the tableau was recomputed."""
        return int(self.tableau.counts[REFRESHES])

    # The following are views, in the engine's units, which change when the chain moves.

    @property
    def inside_columns(self) -> NDArray[np.int64]:
        """The columns of the support, by slot."""
        return self.tableau.inside[: self.size]

    @property
    def outside_columns(self) -> NDArray[np.int64]:
        """The columns outside the support, by outside position."""
        return self.tableau.outside[: self.problem.n_columns - self.size]

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """x, the coefficients of the support, by slot."""
        return self.tableau.x[: self.size]

    @property
    def inverse_diagonal(self) -> NDArray[np.float64]:
        """The diagonal of U, by slot."""
        return np.diagonal(self.tableau.U)[: self.size]

    @property
    def outside_correlations(self) -> NDArray[np.float64]:
        """r, by outside position; call `complete` first if a direct kernel may have run last."""
        return self.tableau.r[: self.problem.n_columns - self.size]

    @property
    def outside_distances(self) -> NDArray[np.float64]:
        """γ, by outside position; call `complete` first if a direct kernel may have run last."""
        return self.tableau.gamma[: self.problem.n_columns - self.size]

    def distances_and_correlations(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return γ and r by column, for the columns outside; those inside have any value.

        The return value is None where a direct kernel ran last, which leaves them stale.
        """
        t = self.tableau
        if t.counts[STALE]:
            return None
        gamma, r = t.diag.copy(), t.b.copy()
        gamma[self.outside_columns] = self.outside_distances
        r[self.outside_columns] = self.outside_correlations
        return gamma, r

    @property
    def outside_gains(self) -> NDArray[np.float64]:
        """r²/γ, twice the fall of the energy, by outside position; −1 if a column cannot enter."""
        gamma = self.outside_distances
        gain = self.outside_correlations**2 / np.maximum(gamma, PIVOT)
        return np.where(gamma > PIVOT, gain, -1.0)

    def exchange_costs(self, at_most: int = 10**6) -> NDArray[np.float64]:
        """Return the energy changes of about ``at_most`` exchanges, in the engine's units.

        If there are more exchanges, those of evenly spaced outside columns are returned. Exchanges
        whose entering column is not admissible are left out. The support must not be empty.
        """
        t, k = self.tableau, self.size
        n_outside = t.b.size - k
        n_rows = min(n_outside, max(1, at_most // k))
        rows = np.unique(np.linspace(0, n_outside - 1, n_rows).astype(int))
        W, x, freed = t.W[rows, :k], t.x[:k], 1.0 / np.diag(t.U)[:k]
        gamma = t.gamma[rows, None] + W**2 * freed
        r = t.r[rows, None] + W * (x * freed)
        allowed = gamma > PIVOT
        return (0.5 * x**2 * freed - 0.5 * r**2 / np.where(allowed, gamma, 1.0))[allowed]

    # ------------------------------------------------------------ changing the support

    def add(self, j: int) -> bool:
        """Add column j to the support; return False if the support would not be admissible."""
        t = self.tableau
        position = int(np.flatnonzero(self.outside_columns == j)[0])
        if t.gamma[position] <= PIVOT * t.diag[j]:
            return False  # before computing a row of the Gram matrix
        self.bring(j)
        return bool(add(t, position))

    def remove(self, j: int) -> None:
        """Remove column j from the support; call `complete` first if a direct kernel ran last."""
        remove(self.tableau, int(np.flatnonzero(self.inside_columns == j)[0]))

    def remove_worst(self) -> None:
        """Remove the column whose removal raises the energy least, and refresh the tableau."""
        remove(self.tableau, int(np.argmin(self.coefficients**2 / self.inverse_diagonal)))
        self.refresh()

    def fill(self, size: int, order: NDArray[np.int64]) -> None:
        """Add columns in the given order until the support has ``size``, skipping dependent ones.

        If the order is exhausted first, start again and add the columns that are farthest from the
        span of the others, which reaches the rank. Raises ValueError if ``size`` exceeds the rank.
        """
        if size <= min(self.problem.n_samples, order.size):
            if self._set(order[:size]):
                return
            for j in order:
                if self.size == size:
                    break
                self.add(int(j))
        if self.size < size:
            self._fill_by_distance(size)
        self.refresh()

    def begin_at(self, support: NDArray[np.int64]) -> None:
        """Add the columns of ``support``; raise ValueError if they are linearly dependent."""
        if self._set(support):
            return
        for j in support:
            if not self.add(int(j)):
                raise ValueError(
                    f"the columns of the given support are linearly dependent: column {j} lies in "
                    f"the span of those before it; remove it or choose another column"
                )
        self.refresh()

    def _set(self, columns: NDArray[np.int64]) -> bool:
        """Make an empty support that of ``columns`` at once; return False where that is not possible."""
        whole = self.problem.gram_is_whole
        return self.size == 0 and whole and set_support(self.tableau, columns)

    def fill_greedily(self, size: int) -> None:
        """Add the column that lowers the energy most, until the support has ``size`` columns."""
        while True:
            next_pause = min(size, self.size + 16)
            while (outcome := pursue(self.tableau, next_pause)) >= 0:
                self.bring(outcome)
            self.pause()
            if self.size == size:
                break
            if outcome != DONE and not self._add_next_best():
                self._fill_by_distance(size)
        self.refresh()

    def descend(self) -> int:
        """Descend to a swap-local minimum, and return the number of exchanges made."""
        n_outside = self.problem.n_columns - self.size
        tally = new_tally()
        tally[OUTSIDE] = 0
        while tally[PROPOSED] < n_outside:
            self.run(descend, self.chunk(), tally)
            self.pause()
        return int(tally[ACCEPTED])

    # ------------------------------------------------------------ running kernels

    def run(self, kernel: Callable[..., int], *args: Any, complete: bool = True) -> None:
        """Call a kernel until it is done, and provide the rows of the Gram matrix that it asks for.

        Unless ``complete`` is False, the parts of the tableau that a direct kernel left stale are
        recomputed before a kernel that is not direct.
        """
        if complete and not is_direct(kernel):
            self.complete()
        while (outcome := kernel(self.tableau, *args)) != DONE:
            if outcome == SINGULAR:
                raise ArithmeticError(_SINGULAR)
            if outcome == FULL:
                self.make_room()
            elif outcome == PAUSED:
                self.pause()
            else:
                self.bring(outcome)

    def chunk(self, direct: bool = False) -> int:
        """Return how many proposals take a few hundredths of a second even if all are accepted.

        ``direct`` says whether a direct kernel makes them.
        """
        operations = self.size * self.problem.n_columns
        if direct:
            rows = 0 if self.problem.gram_is_whole else self.problem.n_samples
            operations = min(operations, self.size * (self.size + rows))
        return 1 + int(5e7 // (500 + operations))

    def choose_kernel(self, move: str, acceptance: float) -> str:
        """Return the cheapest kernel of ``move`` at an acceptance rate of the pair flip."""
        t, k = self.tableau, self.size
        row = cross = 0.0
        if not self.problem.gram_is_whole:
            row = 2.0 * self.problem.n_samples * t.b.size
            cross = 2.0 * self.problem.n_samples * k if t.columns.size else np.inf
        return choose_kernel(move, acceptance, k, t.b.size - k, row, cross)

    def prefers_direct(self, acceptance: float) -> bool:
        """Whether the direct kernel of the pair flip is the cheaper one at an acceptance rate."""
        return self.choose_kernel("pair flip", acceptance) == "pair flip, direct"

    # ------------------------------------------------------------ maintaining the tableau

    def bring(self, j: int) -> None:
        """Make row j of the Gram matrix available, in place of the row unused for longest."""
        if self.tableau.row_of[j] < 0:
            self.pause()
            hold_row(self.tableau, j, self.problem.gram_row(j))

    def bring_support(self, among: NDArray[np.int64] | None = None) -> None:
        """Make the rows of the support available, or of those of its columns that are ``among`` some."""
        columns = self.inside_columns
        if among is not None:
            columns = columns[np.isin(columns, among)]
        self.hold_rows(columns)

    def hold_rows(self, columns: NDArray[np.int64]) -> None:
        """Make the rows of some columns available, computing all that are missing at once."""
        missing = columns[self.tableau.row_of[columns] < 0]
        for cut, rows in fresh_rows(self.problem, missing, self.pause):
            for j, row in zip(missing[cut].tolist(), rows):
                hold_row(self.tableau, j, row)

    def n_rows_missing(self, columns: NDArray[np.int64]) -> int:
        """Return how many rows of these columns are not held."""
        return int(np.count_nonzero(self.tableau.row_of[columns] < 0))

    def gram_rows(self, columns: NDArray[np.int64], hold: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return rows of the Gram matrix, and hold those of the columns in ``hold`` for the kernels."""
        t = self.tableau
        held = t.row_of[columns] >= 0
        rows = np.empty((columns.size, t.b.size))
        rows[held] = t.gram[t.row_of[columns[held]]]
        missing = np.flatnonzero(~held)
        for cut, fresh in fresh_rows(self.problem, columns[missing], self.pause):
            rows[missing[cut]] = fresh
        for position in missing[np.isin(columns[missing], hold)]:
            hold_row(t, int(columns[position]), rows[position])
        return rows

    def make_room(self, n_more: int = 1) -> None:
        """Make room for ``n_more`` more columns in the support; add spare room if there is none."""
        needed = self.size + n_more
        if needed > self.tableau.inside.size:
            self.grow(min(2 * needed + 8, self.problem.n_columns))

    def grow(self, capacity: int) -> None:
        """Make room for ``capacity`` columns in the support."""
        self.tableau = grown_tableau(self.tableau, capacity)
        if not self.problem.gram_is_whole:
            self.tableau = with_room_for_rows(self.tableau, capacity + SPARE_ROWS)

    def set_ridge(self, ridge: float, pull: float | NDArray[np.float64] = 0.0) -> None:
        """Set the ridge on the Gram matrix of the unit-norm columns, and recompute the tableau.

        ``pull`` is added to the correlations of the columns with the signal. The ridge then draws
        coefficients to pull/ridge instead of zero.
        """
        t = self.tableau
        t.diag[:] = self.problem.unit_diagonal() + ridge
        t.b[:] = self.problem.unit_correlation + pull
        # a stale part stays stale, because the rows to recompute it may not be held
        if not (refresh_inverse(t) if t.counts[STALE] else refresh(t)):
            raise ArithmeticError(_SINGULAR)

    def refresh(self) -> None:
        """Recompute the tableau from the Gram matrix."""
        if not refresh(self.tableau):
            raise ArithmeticError(_SINGULAR)

    def complete(self) -> None:
        """Recompute the parts of the tableau that a direct kernel left stale."""
        if self.tableau.counts[STALE]:
            self.bring_support()
            self.refresh()

    def _add_next_best(self) -> bool:
        """Add the column that lowers the energy most among the admissible ones, if there is any."""
        gain = self.outside_gains
        return any(
            gain[position] >= 0 and self.add(int(self.outside_columns[position]))
            for position in np.argsort(-gain, kind="stable")
        )

    def _fill_by_distance(self, size: int) -> None:
        """Start again, and add the column farthest from the span of the others, one after another."""
        t = self.tableau
        clear(t)
        limit = min(size, self.problem.n_samples)
        while self.size < limit:
            farthest = int(np.argmax(self.outside_distances))
            if not self.add(int(t.outside[farthest])):
                break
        if self.size < size:
            self._raise_too_large(size)

    def _raise_too_large(self, size: int) -> NoReturn:
        rank = self.problem.rank()
        if size > rank:
            raise ValueError(
                f"n_nonzero = {size} exceeds the rank of A, which is {rank}: no {size} columns are "
                f"linearly independent; choose n_nonzero ≤ {rank}"
            )
        raise ValueError(
            f"n_nonzero = {size} is within the rank of A, which is {rank}, but its columns are nearly "
            f"dependent: a support needs columns whose squared distance from the span of the others "
            f"is more than {PIVOT:g} of their squared norm, and only {self.size} such columns were "
            f"found; choose a smaller n_nonzero"
        )
