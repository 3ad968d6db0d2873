"""Search among minima: walk from one to the next, and shake the walk when it finds nothing better.

A support is a *swap-local minimum* if no exchange of a single column lowers its energy. The walk
leaves a minimum by the exchange that costs least, and does not undo it for some time (a tabu search).
Each step is O(NK), like an accepted pair flip. There are two such walks: `moves.kick` weighs all
exchanges, `moves.ranked_kick` those of the column that gains most, in a third of the time. The search
does not sample from a known distribution and therefore gives no entropies. Of all samplers here, it
reaches the lowest distortion in a given time; `benchmarks/frontier.py` compares them.

If a few columns of the first minimum dwarf the others, such as a constant column for a signal with
a large offset, the energies of all supports with these columns are equal to the engine. The chain
then searches in the problem that is left without them (`problem.dominant`), and descends in the
original problem at the end, where they may leave again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.checks import check_integer
from l0anneal._util.seeds import RandomState
from l0anneal.engine.assistant import run_steps
from l0anneal.engine.moves.descent import RESOLUTION
from l0anneal.engine.moves.kick import kick
from l0anneal.engine.moves.ranked_kick import ranked_kick
from l0anneal.engine.moves.walk import BEST, FLOOR, KICKS, LEVELS, start_of_walk
from l0anneal.engine.ranking import empty_ranking
from l0anneal.engine.rng import stream
from l0anneal.engine.warm_up import tiny_problem, workspace_steps
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.dominant import Remainder, dominant_columns, without
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.comparison import compare_chains
from l0anneal.samplers.greedy import NOT_BEGUN, completed, greedy_order
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.kicks.walk import Walk
from l0anneal.samplers.result import chain_fields
from l0anneal.samplers.run import Budget, OnInterrupt, OutOfTime, Run, RunStopped

__all__ = ["kick_search", "kick_search_in"]

EXACT = 1e-13  # energy, in the engine's units, below which the fit counts as exact
DWARFED = 1e-6  # columns that leave at most this fraction of the signal are projected out
ENDLESS = 2**50
NO_MINIMUM = "time limit, before the first minimum: the columns are the best until then"
PAUSE = 0.01  # seconds of kicks between two checks of the clock


def kick_search(
    problem: SparseProblem,
    n_nonzero: int,
    *,
    n_kicks: int | Sequence[int] | None = None,
    n_chains: int = 1,
    n_jobs: int | None = None,
    initial_support: ArrayLike | None = None,
    time_limit: float | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: OnInterrupt = "raise",
) -> KickResult:
    """Find the best ``n_nonzero`` columns by a walk over local minima.

    A descent first exchanges single columns as long as this lowers the error. The search then leaves the
    minimum by the exchange that raises the error least, and goes on in this way without undoing its
    latest exchanges. Where it finds nothing better for long, it exchanges about a quarter of the columns
    at random. It takes turns between this walk and a faster one, which at each step weighs the exchanges
    of a single column, and mostly uses the one that comes lower. A *kick* is 25 steps of the first walk,
    or 75 of the second, which take about the same time.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary A and the signal y.
    n_nonzero : int
        k, the number of columns.
    n_kicks : int or sequence of int, optional
        The number of kicks of all chains, or of each chain. By default it is 1000 or, with a time
        limit, as many as there is time for. A chain ends early if its columns fit the signal
        exactly.
    n_chains, n_jobs : int
        The number of independent chains, of which the best is returned, and the number of threads
        that run them (−1: all cores). The first chain starts at the greedy support (orthogonal
        least squares), the others at random ones. The result does not depend on ``n_jobs``.
    initial_support : array of k column indices, optional
        Where every chain starts.
    time_limit : float, optional
        Wall-clock time of the whole call in seconds, not counting the compilation of kernels. One
        descent is always made. The result records how many kicks each chain made (``n_kicks``);
        pass them in place of the time limit to replay the run exactly.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers. Without a time limit, the same seed gives the same result for
        any ``n_jobs``. None draws a new seed, which the result stores as ``seed``.
    progress : bool
        Show a progress bar.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the best support found so far. Before
        the first descent has ended there is nothing to return, and KeyboardInterrupt is raised.

    Returns
    -------
    KickResult

    See Also
    --------
    solve : Run this search for a given time.
    subset_path : The best columns of every size.
    KickResult : The result.
    diagnose : Decide whether to trust the result.

    Examples
    --------
    >>> from l0anneal import ensembles, kick_search
    >>> instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    >>> result = kick_search(instance.problem, 6, random_state=0)
    >>> bool((result.support == instance.support).all())
    True
    """
    k = problem.check_size(n_nonzero)
    n_chains = check_integer("n_chains", n_chains, 1)
    if n_kicks is None:
        n_kicks = 1000 if time_limit is None else ENDLESS
    each = [n_kicks] * n_chains if np.ndim(n_kicks) == 0 else list(n_kicks)  # type: ignore[arg-type]
    each = [check_integer("n_kicks", n, 0 if np.ndim(n_kicks) == 0 else -ENDLESS) for n in each]
    if len(each) != n_chains:
        raise ValueError(f"n_kicks needs one number per chain, {n_chains}; got {len(each)}")
    start = None if initial_support is None else problem.check_support(initial_support, k)
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress,
        on_interrupt=on_interrupt,
        unit="kick",
    ) as run:
        return kick_search_in(run, problem, k, each, start)


def kick_search_in(
    run: Run,
    problem: SparseProblem,
    k: int,
    n_kicks: Sequence[int] | None = None,
    start: NDArray[np.int64] | None = None,
    n_chains: int = 1,
) -> KickResult:
    """Search inside a run that has begun, with arguments that have been checked."""
    if n_kicks is None:
        n_kicks = [1000 if run.time_limit is None else ENDLESS] * n_chains
    run.compile(_warm_up)
    try:
        with run.to_start():
            run.prepare(problem)
    except OutOfTime:
        return _not_begun(run, problem, k, start)
    run.expect(sum(n_kicks) if max(n_kicks) < ENDLESS else None)
    n_rounds = math.ceil(len(n_kicks) / run.n_threads)
    chains = [_Chain(run, problem, k, c, n, start, n_rounds) for c, n in enumerate(n_kicks)]
    run.map(_Chain.search, chains)
    begun = [chain for chain in chains if chain.best is not None]
    run.require(begun)
    ended = "all kicks were made"
    if all(chain.exact for chain in begun):
        ended = "the columns represent the signal exactly"
    elif any(chain.pieces for chain in begun):
        ended = NO_MINIMUM
    elif any(chain.kicks < chain.n_kicks and not chain.exact for chain in begun):
        ended = "time limit"
    supports = [chain.support for chain in begun]
    answer = chain_fields(problem, supports)
    resolution = RESOLUTION * max(chain.unit_energy for chain in begun)
    return KickResult(
        **answer,
        **run.record(ended),
        n_kicks=np.array([chain.kicks - chain.pieces for chain in begun]),
        comparison=compare_chains(problem, supports, answer["chain_energies"], resolution),
    )


def _not_begun(
    run: Run, problem: SparseProblem, k: int, start: NDArray[np.int64] | None
) -> KickResult:
    """Return greedy columns, because the Gram matrix alone takes longer than the time limit."""
    support = np.sort(greedy_order(run, problem, k)) if start is None else np.sort(start)
    answer = chain_fields(problem, [support])
    return KickResult(
        **answer,
        **run.record(NOT_BEGUN),
        n_kicks=np.zeros(1, dtype=np.int64),
        comparison=compare_chains(problem, [support], answer["chain_energies"], 0.0),
    )


class _Chain:
    """One chain; `search` may be called in a thread.

    A negative ``n_kicks`` says after how many pieces of work the time limit ended the search for the
    first minimum, and makes the search end there again.
    """

    def __init__(
        self,
        run: Run,
        problem: SparseProblem,
        k: int,
        index: int,
        n_kicks: int,
        start: NDArray[np.int64] | None,
        n_rounds: int,
    ) -> None:
        self.run, self.problem, self.k, self.index = run, problem, k, index
        self.start, self.n_rounds = start, n_rounds
        self.n_kicks = max(0, n_kicks) if 0 < k < problem.n_columns else 0
        self.to_replay = -n_kicks if n_kicks < 0 else None
        self.pieces = (
            0  # of work in a search for the first minimum that was ended by the time limit
        )
        self.marks, self.at = start_of_walk(problem.n_columns)
        self.best: NDArray[np.int64] | None = None  # None until there is one
        self.rest: Remainder | None = (
            None  # the problem that ``best`` belongs to, if not the original
        )
        self.exact = False

    @property
    def kicks(self) -> int:
        """How many kicks were made."""
        return int(self.at[KICKS])

    @property
    def support(self) -> NDArray[np.int64]:
        """The best support, sorted."""
        assert self.best is not None
        return np.sort(self.best) if self.rest is None else self.rest.whole(self.best)

    @property
    def unit_energy(self) -> float:
        """One engine unit of energy in the caller's units."""
        return (self.problem if self.rest is None else self.rest.problem).unit_energy

    def search(self) -> None:
        """Find the first minimum and kick from there."""
        run = self.run
        share = (run.deadline - run.began) / self.n_rounds
        end = min(run.deadline, run.now() + share)
        budget = run.budget(end, self.to_replay)
        try:
            workspace = self._without_dominant(self._begin(budget), budget)
        except OutOfTime:
            self.pieces = budget.used
            return
        except RunStopped:
            return
        workspace.pause = run.listen
        unit_signal = workspace.problem.unit_signal
        energy = workspace.unit_energy
        levels = np.array([energy, energy, EXACT - unit_signal])
        state = stream(run.stream("kick chain", self.index))
        with suppress(RunStopped):  # ``best`` holds the best support so far
            self._kick(workspace, state, levels, end)
        self.exact = bool(levels[BEST] <= levels[FLOOR])
        if self.rest is not None:
            self._restore()

    def _without_dominant(self, workspace: Workspace, budget: Budget) -> Workspace:
        """Return a workspace without the dominant columns, or the given one if there are none."""
        problem = self.problem
        if workspace.energy > 0.5 * DWARFED * problem.signal_energy:
            return workspace
        dominant, _ = dominant_columns(problem, workspace.support, DWARFED)
        rest = without(problem, dominant) if dominant.size else None
        if rest is None:
            return workspace
        support = np.setdiff1d(workspace.support, dominant)
        within = self.run.workspace(rest.problem, support.size)
        within.pause = budget.spend
        within.begin_at(np.searchsorted(rest.candidates, support))
        within.descend()
        self.rest, self.best = rest, within.support
        self.marks, self.at = start_of_walk(rest.problem.n_columns)
        if support.size == rest.candidates.size:
            self.n_kicks = 0
        return within

    def _restore(self) -> None:
        """Return to the original problem, where dominant columns may leave if that lowers the energy."""
        support = self.support
        # nearly dependent only beside the dominant columns, or too late
        with suppress(ValueError, OutOfTime):
            polished = self.run.polished(self.problem, support)
            if self.problem.energy(polished) < self.problem.energy(support):
                self.best, self.rest = polished, None

    def _kick(
        self,
        workspace: Workspace,
        state: NDArray[np.uint64],
        levels: NDArray[np.float64],
        end: float,
    ) -> None:
        """Kick in batches, so that the clock is checked about every `PAUSE` seconds.

        A batch that is stopped in the middle counts as not begun, so that the kicks can be replayed.
        """
        run, batch = self.run, 1
        assert self.best is not None
        walk = Walk(workspace, state, levels, self.marks, self.at)
        while self.kicks < self.n_kicks and levels[BEST] > levels[FLOOR]:
            run.listen()
            now, before = run.now(), self.kicks
            if now >= end:
                break
            stop = min(self.n_kicks, before + batch)
            lowest = levels[BEST]
            try:
                walk.go_on(stop)
            except RunStopped:
                levels[BEST], self.at[KICKS] = lowest, before
                raise
            self.best = walk.best.copy()
            took = run.now() - now
            run.advance(self.kicks - before)
            fits = PAUSE / max(took / batch, 1e-9)
            batch = max(1, int(min(2 * batch, fits, (end - now - took) * fits / PAUSE)))

    def _begin(self, budget: Budget) -> Workspace:
        """Return a workspace at the first minimum; out of time, ``best`` is the best so far."""
        run, problem, k = self.run, self.problem, self.k
        workspace = run.workspace(problem, k)

        def pause() -> None:
            budget.spend()
            run.note(f"to the first minimum, {workspace.size} of {k} columns")

        workspace.pause = pause
        try:
            if self.start is not None:
                workspace.begin_at(self.start)
            elif self.index == 0:
                workspace.fill_greedily(k)
            else:
                rng = np.random.default_rng(run.stream("kick start", self.index))
                workspace.fill(k, rng.permutation(problem.n_columns))
            workspace.descend()
        except OutOfTime:
            self.best = self._complete(workspace)
            raise
        run.note("")
        self.best = workspace.support
        return workspace

    def _complete(self, workspace: Workspace) -> NDArray[np.int64]:
        """Return k columns: those of a workspace, and others that lower the energy most."""
        if workspace.size < self.k and self.start is not None:
            return np.sort(self.start)
        gains = np.full(self.problem.n_columns, -1.0)
        gains[workspace.outside_columns] = workspace.outside_gains
        return np.sort(completed(workspace.support, gains, self.k))


@cache
def _warm_up() -> None:
    """Compile the kernels of this search, or load them, once per process."""
    run_steps(_steps)


def _steps() -> list[Callable[[], object]]:
    return [*workspace_steps("pair flip"), _kick_never, _ranked_kick_never]


def _kick_never() -> None:
    marks, at = start_of_walk(tiny_problem().n_columns)
    best = np.empty(2, dtype=np.int64)
    Workspace(tiny_problem(), 2).run(kick, *_nothing_to_do(), best, marks, at)


def _ranked_kick_never() -> None:
    marks, at = start_of_walk(tiny_problem().n_columns)
    ranking = empty_ranking(tiny_problem().n_columns, 2)
    Workspace(tiny_problem(), 2).run(ranked_kick, *_nothing_to_do(), marks, at, ranking)


def _nothing_to_do() -> tuple[NDArray[np.uint64], int, NDArray[np.float64]]:
    return stream(np.random.SeedSequence(0)), 0, np.zeros(LEVELS)
