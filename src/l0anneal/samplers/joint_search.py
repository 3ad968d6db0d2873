"""One support for several signals: descents and kicks on the sum of their energies.

The tableau of the engine has one right-hand side. Here there are T of them, B = Aᵀ Y with a column for
each signal, and the kernels of the engine stay as they are: this search works on whole arrays in NumPy.
With unit-norm columns, U = (G_SS)⁻¹, W = G_{·S} U, X = U B_S, R = B − G_{·S} X and γ = 1 − Σ_s W_s G_s,
the exchange of slot s for column p changes twice the energy by

    f ‖X_s‖² − ‖R_p + f W_ps X_s‖² / (γ_p + f W_ps²),      f = 1/U_ss,

where norms are those over the signals. For all exchanges together this takes O(N k (k + T)) operations,
and all numbers are computed afresh for each support, so that rounding errors do not add up.

The search for one size is a greedy start, a steepest descent, and kicks of a few random exchanges, each
followed by a descent; it returns to the best support after a kick that did not lower the energy. For a
path, passes up and down the sizes come before the kicks, as in `path_search`. Rows of the Gram matrix
are computed when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from l0anneal.engine.moves.descent import RESOLUTION
from l0anneal.problem import scaled
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.greedy import completed
from l0anneal.samplers.path_search import NOT_ALL, TO_THE_END, Supports
from l0anneal.samplers.result import Record
from l0anneal.samplers.run import OutOfTime, Run, RunStopped

__all__ = ["JointResult", "joint_path", "joint_search"]

KICKED = 3  # exchanges of a kick
KICKS, KICKS_OF_A_SIZE = 200, 30  # of a search for one size, and for each size of a path
MOST_PASSES = 20
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JointResult(Record):
    """The result of a search for one support of several outputs.

    Attributes
    ----------
    support : ndarray of int
        The chosen columns, sorted.
    energy : float
        The sum over the outputs of ½‖y − Ax‖².
    n_steps : int
        How many supports were looked at, which replays the run; −1 if all kicks were made.
    feature_names : tuple of str, or None
        Names of the columns.
    """

    support: Indices
    energy: float
    n_steps: int
    feature_names: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        found = {"support": self.support.tolist(), "energy": self.energy, "n_steps": self.n_steps}
        return found | super().to_dict()

    def _lines(self) -> list[tuple[str, str]]:
        names = self.feature_names
        shown = [str(j) if names is None else names[j] for j in self.support]
        return [("support", ", ".join(shown) or "empty"), ("energy", f"{self.energy:.6g}")]


def joint_search(
    run: Run, problem: SparseProblem, B: Floats, size: int, n_steps: int | None = None
) -> Supports:
    """Return the best support found of one size, as the last one of ``supports``.

    Parameters
    ----------
    run : Run
        The run, which has begun. With a time limit, kicks go on until its end.
    problem : SparseProblem
        The columns; its signal is not used.
    B : array of shape (N, T)
        Products of the unit-norm columns with the signals, which together have at most unit norm.
    size : int
        The number of columns.
    n_steps : int, optional
        ``n_steps`` of an earlier search, to replay that search.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem
    >>> problem = SparseProblem(np.eye(3), np.ones(3))
    >>> B = np.array([[0.5, 0.0], [0.5, 0.5], [0.0, 0.5]])
    >>> with Run(random_state=0) as run:
    ...     joint_search(run, problem, B, 1).supports[-1]
    array([1])
    """
    search = _Search(run, problem, B, size, n_steps)
    endless = run.time_limit is not None if n_steps is None else n_steps != TO_THE_END
    return search.run(lambda: search.one_size(None if endless else KICKS))


def joint_path(
    run: Run, problem: SparseProblem, B: Floats, most: int, n_steps: int | None = None
) -> Supports:
    """Return the best support found for each size up to ``most``, or to the rank if that is lower.

    The parameters are those of `joint_search`, with ``most`` in place of ``size``.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem
    >>> problem = SparseProblem(np.eye(3), np.ones(3))
    >>> B = np.array([[0.5, 0.0], [0.5, 0.5], [0.0, 0.6]])
    >>> with Run(random_state=0) as run:
    ...     joint_path(run, problem, B, 2).supports
    [array([], dtype=int64), array([1]), array([1, 2])]
    """
    search = _Search(run, problem, B, most, n_steps)
    return search.run(search.all_sizes)


class _Tableau:
    """A support and what follows from it for every column."""

    def __init__(self, rows: _Rows, B: Floats, support: Indices) -> None:
        self.rows, self.B, self.support = rows, B, support
        G = rows.of(support)  # (k, N)
        inside = G[:, support]
        factor = scipy.linalg.cho_factor(inside + 0.0, lower=True)
        self.U = scipy.linalg.cho_solve(factor, np.eye(support.size))
        self.X = scipy.linalg.cho_solve(factor, B[support])
        self.W = self.U @ G
        self.R = B - G.T @ self.X
        self.gamma = rows.diagonal - np.sum(self.W * G, axis=0)
        self.gamma[support] = 0.0
        self.energy = -0.5 * float(np.sum(B[support] * self.X))

    def entering_gains(self) -> Floats:
        """By how much each column would lower twice the energy; −1 where it cannot enter."""
        gains = np.sum(self.R**2, axis=1) / np.maximum(self.gamma, PIVOT)
        return np.where(self.gamma > PIVOT, gains, -1.0)

    def leaving_losses(self) -> Floats:
        """By how much twice the energy would rise if each column of the support left."""
        return np.sum(self.X**2, axis=1) / np.diag(self.U)

    def best_exchange(self) -> tuple[float, int, int]:
        """Return the fall of twice the energy, the slot and the column of the best exchange."""
        f = 1.0 / np.diag(self.U)[:, None]
        own = f * np.sum(self.X**2, axis=1)[:, None]
        gamma = self.gamma + f * self.W**2
        square = np.sum(self.R**2, axis=1) + f * self.W * (2.0 * (self.X @ self.R.T) + own * self.W)
        allowed = gamma > PIVOT
        allowed[:, self.support] = False
        gain = np.where(allowed, square / np.where(allowed, gamma, 1.0) - own, -np.inf)
        slot, column = divmod(int(np.argmax(gain)), gain.shape[1])
        return float(gain[slot, column]), slot, column


class _Rows:
    """Rows of the Gram matrix, computed when they are needed."""

    def __init__(self, problem: SparseProblem) -> None:
        self.problem, self.diagonal = problem, problem.unit_diagonal()
        self.held: dict[int, Floats] = {}
        self.most = max(64, scaled.ROW_CACHE_BYTES // (8 * problem.n_columns))

    def of(self, columns: Indices) -> Floats:
        """Return the rows of some columns as an array of shape (k, N)."""
        missing = [int(j) for j in columns if int(j) not in self.held]
        if len(self.held) + len(missing) > self.most:
            self.held = {int(j): self.held[int(j)] for j in columns if int(j) in self.held}
        for j in missing:
            self.held[j] = self.problem.fresh_row(j)
        if columns.size == 0:
            return np.zeros((0, self.diagonal.size))
        return np.array([self.held[int(j)] for j in columns])


class _Search:
    """The best support of each size so far, and the ways to improve it."""

    def __init__(
        self, run: Run, problem: SparseProblem, B: Floats, most: int, n_steps: int | None
    ) -> None:
        self.context, self.B, self.most = run, B, problem.check_size(most)
        self.rows, self.n_samples = _Rows(problem), problem.n_samples
        self.rng = np.random.default_rng(run.stream("joint kicks"))
        replay = None if n_steps in (None, TO_THE_END) else n_steps
        self.budget = run.budget(run.deadline if n_steps is None else np.inf, replay)
        self.supports: list[Indices] = [np.zeros(0, dtype=np.int64)]
        self.energies = [0.0]

    def run(self, strategy: Callable[[], None]) -> Supports:
        """Follow a strategy until it ends or the time does."""
        ended, used = "all kicks were made", TO_THE_END
        try:
            strategy()
        except RunStopped as stop:
            ended, used = "time limit", self.budget.used
            if len(self.supports) <= self.most and isinstance(stop, OutOfTime):
                ended = NOT_ALL
                self.complete()
        return Supports([np.sort(support) for support in self.supports], used, ended)

    # ------------------------------------------------------------ strategies

    def one_size(self, n_kicks: int | None) -> None:
        """Search for the largest size only."""
        t = self.begin(descents=False)
        if t is not None:
            self.kick(t, n_kicks)

    def all_sizes(self) -> None:
        """Search for all sizes: passes up and down, kicks at each size, and passes again."""
        self.begin(descents=True)
        self.settle()
        for size in range(len(self.supports) - 1, 0, -1):
            self.context.advance(1, f"kicks, {size} columns")
            self.kick(self.at(self.supports[size]), KICKS_OF_A_SIZE)
        self.settle()

    def begin(self, descents: bool) -> _Tableau | None:
        """Add the best column, size by size, until no other is independent."""
        t = self.at(self.supports[0])
        while t.support.size < min(self.most, self.n_samples):
            gains = t.entering_gains()
            j = int(np.argmax(gains))
            if gains[j] < 0:
                break
            t = self.at(np.append(t.support, j))
            if descents or t.support.size == self.most:
                t = self.descend(t)
            self.supports.append(t.support)
            self.energies.append(t.energy)
            self.context.advance(1, f"first pass, {t.support.size} columns")
        self.most = t.support.size
        return t if t.support.size else None

    def settle(self) -> None:
        """Pass down and up until neither improves any size."""
        last = len(self.supports) - 1
        for _ in range(MOST_PASSES):
            better = False
            t = self.at(self.supports[last])
            for size in range(last - 1, 0, -1):
                t = self.at(np.delete(t.support, np.argmin(t.leaving_losses())))
                t, improved = self.keep(self.descend(t))
                better |= improved
                self.context.advance(1, f"pass down, {size} columns")
            t = self.at(self.supports[0])
            for size in range(1, last + 1):
                gains = t.entering_gains()
                if np.max(gains) < 0:  # nearly dependent columns block the way
                    t = self.at(self.supports[size])
                    continue
                t = self.at(np.append(t.support, np.argmax(gains)))
                t, improved = self.keep(self.descend(t))
                better |= improved
                self.context.advance(1, f"pass up, {size} columns")
            if not better:
                break

    def kick(self, t: _Tableau, n_kicks: int | None) -> None:
        """Exchange random columns and descend, again and again, from the best support of a size."""
        n, k = self.rows.diagonal.size, t.support.size
        made = 0
        while k < n and (n_kicks is None or made < n_kicks):
            support = t.support.copy()
            for _ in range(min(KICKED, k)):
                outside = np.setdiff1d(np.arange(n), support)
                support[self.rng.integers(k)] = outside[self.rng.integers(outside.size)]
            made += 1
            kicked = self.try_at(support)
            if kicked is not None:
                t, _ = self.keep(self.descend(kicked))
            self.context.advance(1)

    # ------------------------------------------------------------ steps

    def at(self, support: Indices) -> _Tableau:
        """Return the tableau of a support; this is the step that the budget counts."""
        self.budget.spend()
        return _Tableau(self.rows, self.B, np.asarray(support, dtype=np.int64))

    def try_at(self, support: Indices) -> _Tableau | None:
        """Return the tableau of a support, or None if its columns are nearly dependent."""
        try:
            t = self.at(support)
        except np.linalg.LinAlgError:
            return None
        return t if np.max(np.diag(t.U)) * PIVOT < 1.0 else None

    def descend(self, t: _Tableau) -> _Tableau:
        """Make the best exchange until none lowers the energy."""
        while t.support.size:
            gain, slot, column = t.best_exchange()
            if not 0.5 * gain > RESOLUTION:
                break
            support = t.support.copy()
            support[slot] = column
            lower = self.try_at(support)
            if lower is None or not lower.energy < t.energy - 0.5 * RESOLUTION:
                break
            t = lower
        return t

    def keep(self, t: _Tableau) -> tuple[_Tableau, bool]:
        """Keep the support if it is the best of its size so far, or return to that."""
        size = t.support.size
        if t.energy < self.energies[size] - RESOLUTION:
            self.energies[size], self.supports[size] = t.energy, t.support
            return t, True
        if np.array_equal(np.sort(t.support), np.sort(self.supports[size])):
            return t, False
        return self.at(self.supports[size]), False

    def complete(self) -> None:
        """Give the sizes that were not reached the columns that explain most beside the last support."""
        t = _Tableau(self.rows, self.B, self.supports[-1])
        gains = t.entering_gains()
        admissible = t.support.size + int(np.sum(gains >= 0))
        most = max(t.support.size, min(self.most, self.n_samples, admissible))
        order = completed(t.support, gains, most)
        for size in range(t.support.size + 1, most + 1):
            self.supports.append(order[:size])
