"""What every sampler's run needs: a clock, threads, Ctrl-C, a progress bar and random streams.

A public sampler checks its arguments and then works inside a run::

    with Run(time_limit=time_limit, n_jobs=n_jobs, ...) as run:
        run.compile(my_warm_up)
        chains = [MyChain(run, c) for c in range(n_chains)]
        run.map(MyChain.search, chains)
        return MyResult(..., **run.record("all kicks were made"))

Chains call ``run.listen()`` between kernel calls, at most some hundredths of a second apart, and ask
``run.over`` whether to begin another step. Everything else follows from that: time limits, interrupts
that keep the best so far, and errors in one thread that stop the others.

A time limit normally ends a run between two steps, so that it can be replayed. A step that is still
going on at ``run.cutoff``, shortly after the limit, is stopped by `OutOfTime`, which `listen` raises.
The sampler then discards that step and returns what it had before. A sampler whose first step has not
ended after half of its time (`Run.to_start`) gives up, and returns greedy columns (`samplers.greedy`).
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Literal, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_choice, check_integer, check_time_limit
from l0anneal._util.seeds import RandomState, seed_of, stream_of
from l0anneal.engine.warm_up import compile_notice
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.interrupts import Interrupts

__all__ = ["Budget", "OnInterrupt", "OutOfTime", "Run", "RunStopped"]

OnInterrupt = Literal["raise", "return"]
Item = TypeVar("Item")
Value = TypeVar("Value")

MARGIN = 0.03  # part of a time limit that is kept for packing up the result
GRACE = 0.1  # seconds after a time limit at which a step that is still going on is stopped
START = 0.5  # part of a time limit in which the first step has to be made
POLL = 0.1  # seconds; some systems deliver Ctrl-C only between two waits


class RunStopped(Exception):
    """Raised by `Run.listen` inside a chain to end it between two kernel calls."""


class OutOfTime(RunStopped):
    """Raised by `Run.listen` in the middle of a step for which there is no more time."""

    def __init__(self) -> None:
        super().__init__("the time limit ended the run before it had found anything")


class _Shared:
    """What a run and its parts have in common."""

    def __init__(self, bar: Any, n_threads: int) -> None:
        self.bar, self.n_threads = bar, n_threads
        # plain flags: a signal handler must not wait for the lock of an Event
        self.stop = self.interrupted = False
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None
        self.compiling = 0.0  # seconds during which the clock stood still


class Run:
    """The context of one call of a sampler.

    Parameters
    ----------
    time_limit : float, optional
        Wall-clock time of the whole call in seconds, not counting the compilation of kernels.
    n_jobs : int, optional
        Number of threads (−1: all cores). Results must not depend on it.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers. The same seed gives the same result; None draws a new one.
    progress : bool
        Show a progress bar on stderr.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or end the run as a time limit would, so that the
        caller gets what was found so far.
    unit : str
        What the progress bar counts.

    Attributes
    ----------
    seed : int
        The integer that stands for ``random_state``.
    n_threads : int
        How many threads ``n_jobs`` means.
    interrupted : bool
        Whether Ctrl-C ended the run.
    deadline : float
        When to end, on the run's own clock (`now`); infinite without a time limit.
    cutoff : float
        When to stop even in the middle of a step; infinite without a time limit.
    """

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState | np.random.RandomState = None,
        progress: bool = False,
        on_interrupt: OnInterrupt = "raise",
        unit: str = "sweep",
    ) -> None:
        check_time_limit(time_limit)
        check_choice("on_interrupt", on_interrupt, ("raise", "return"))
        self.on_interrupt = on_interrupt
        self._interrupts = Interrupts()
        self.seed = seed_of(random_state)
        if n_jobs is not None and check_integer("n_jobs", n_jobs, -(10**6)) == 0:
            raise ValueError("n_jobs must be a number of threads, or −1 for all cores; got 0")
        self.n_threads = effective_n_jobs(1 if n_jobs is None else n_jobs)
        bar = tqdm(unit=unit, disable=not progress, leave=False, delay=0.2)
        self._shared = _Shared(bar, self.n_threads)
        self._start_clock(time_limit, MARGIN)

    def _start_clock(
        self, time_limit: float | None, margin: float, began: float | None = None
    ) -> None:
        self.began = self.now() if began is None else began
        self.time_limit = time_limit
        self.deadline = self.cutoff = math.inf
        if time_limit is not None:
            self.deadline = self.began + (1.0 - margin) * time_limit
            self.cutoff = self.began + time_limit + GRACE

    def count_from(self, began: float) -> None:
        """Count the seconds since an earlier ``time.perf_counter()``, in which data were checked."""
        spent = time.perf_counter() - began
        self._start_clock(self.time_limit, MARGIN, self.now() - spent)

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._stack.enter_context(one_blas_thread())
        self._stack.enter_context(self._shared.bar)
        self._stack.enter_context(self._threads())
        if self.on_interrupt == "return":
            self._stack.enter_context(self._interrupts.ending(self._interrupt))
        self._start_clock(self.time_limit, MARGIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: Any
    ) -> None:
        self._stack.close()
        if isinstance(error, RunStopped) and not isinstance(error, OutOfTime):
            raise KeyboardInterrupt from None  # interrupted before there was anything to return

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """Stop every chain at the end and wait until all of them have stopped."""
        try:
            yield
        finally:
            self._shared.stop = True
            if self._shared.pool is not None:
                self._shared.pool.shutdown(wait=True, cancel_futures=True)

    def _interrupt(self) -> None:
        self._shared.interrupted = self._shared.stop = True

    def part(
        self,
        seconds: float | None = None,
        *,
        random_state: RandomState = None,
        n_threads: int | None = None,
    ) -> Run:
        """Return a run inside this one, with the same clock, interrupts and progress bar.

        A sampler that calls another one passes it such a part. No ``with`` is needed for a part.

        Parameters
        ----------
        seconds : float, optional
            Time limit of the part, if this run has one; by default the time that is left.
        random_state : None, int, SeedSequence or Generator
            By default the seed of this run.
        n_threads : int, optional
            By default those of this run. A part that is used in a thread of this run must have 1.
        """
        part = copy.copy(self)
        if random_state is not None:
            part.seed = seed_of(random_state)
        if n_threads is not None:
            part.n_threads = n_threads
        limit = None
        if self.time_limit is not None:
            limit = max(1e-3, self.left if seconds is None else min(seconds, self.left))
        part._start_clock(limit, 0.0)
        part.cutoff = min(part.cutoff, self.cutoff)
        return part

    # ------------------------------------------------------------ the clock

    def now(self) -> float:
        """Seconds on the run's clock, which stands still while kernels are compiled."""
        return time.perf_counter() - self._shared.compiling

    @property
    def seconds(self) -> float:
        """How long the run has taken."""
        return self.now() - self.began

    @property
    def left(self) -> float:
        """Seconds before the deadline."""
        return self.deadline - self.now()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self._shared.interrupted

    @property
    def stopped(self) -> bool:
        """Whether chains have to end at once: after Ctrl-C, or an error in another thread."""
        return self._shared.stop

    @property
    def over(self) -> bool:
        """Whether no further step should begin: the time is up, or the run was interrupted."""
        return self.stopped or self.now() >= self.deadline

    def listen(self) -> None:
        """Raise `RunStopped` if the run was stopped; chains call this between kernel calls.

        After `cutoff`, raise `OutOfTime`.
        """
        if self.stopped:
            raise RunStopped
        if self.now() >= self.cutoff:
            raise OutOfTime

    @contextmanager
    def until(self, when: float) -> Iterator[None]:
        """Let `listen` raise `OutOfTime` from a time on the run's clock on, inside a block."""
        before = self.cutoff
        self.cutoff = min(before, when)
        try:
            yield
        finally:
            self.cutoff = before

    def to_start(self, share: float = START) -> AbstractContextManager[None]:
        """Let `listen` raise `OutOfTime` if a block takes longer than a share of the time limit."""
        limit = math.inf if self.time_limit is None else share * self.time_limit
        return self.until(self.began + limit + GRACE)

    def compile(self, warm_up: Callable[..., object], *arguments: Any) -> None:
        """Compile kernels, or load them from the cache, while the clock stands still.

        Ctrl-C raises KeyboardInterrupt meanwhile, since there is nothing to return yet.
        """
        with self._shared.lock, self._interrupts.as_before(), compile_notice():
            began = time.perf_counter()
            warm_up(*arguments)
            self._shared.compiling += time.perf_counter() - began

    # ------------------------------------------------------------ work

    def stream(self, name: str, *indices: int) -> np.random.SeedSequence:
        """Return a named random stream of this run; see `l0anneal._util.seeds`."""
        return stream_of(self.seed, name, *indices)

    def prepare(self, problem: SparseProblem) -> None:
        """Compute the arrays that chains share; raise `OutOfTime` if they will not be ready in time."""
        self.listen()
        if self.cutoff < math.inf and problem.seconds_to_make_ready() > self.cutoff - self.now():
            raise OutOfTime
        problem.make_ready(self.listen)

    def workspace(self, problem: SparseProblem, capacity: int) -> Workspace:
        """Return a workspace whose long operations stop when the run is stopped."""
        workspace = Workspace(problem, capacity)
        workspace.pause = self.listen
        return workspace

    def polished(self, problem: SparseProblem, support: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the swap-local minimum below a support, or how far the descent came.

        How far it came depends on when the user stopped the run. If the time limit stops the descent,
        `OutOfTime` is raised instead, so that the run can be replayed without the descent.
        """
        workspace = self.workspace(problem, support.size)
        try:
            workspace.begin_at(support)
            workspace.descend()
        except OutOfTime:
            raise
        except RunStopped:
            return workspace.support if workspace.size == support.size else support
        return workspace.support

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> list[Value]:
        """Call a function for every item, in threads; return its values in order.

        The first error stops all other calls and is raised here.
        """
        items = list(items)
        if self.n_threads == 1 or len(items) == 1:
            return [function(item) for item in items]
        shared = self._shared
        with shared.lock:
            if shared.pool is None:
                shared.pool = ThreadPoolExecutor(shared.n_threads, thread_name_prefix="l0anneal")
            pool = shared.pool
        futures: list[Future[Value]] = [pool.submit(function, item) for item in items]
        try:
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, POLL, FIRST_EXCEPTION)
                # an error of a chain comes before the stop that it caused in the others
                for future in sorted(done, key=lambda f: isinstance(f.exception(), RunStopped)):
                    future.result()
        except BaseException as error:
            # after a time limit the other calls hear of it by themselves, and the run goes on
            shared.stop |= not isinstance(error, OutOfTime)
            for future in futures:
                future.cancel()
            wait(futures)  # nobody may still be writing when the caller goes on
            raise
        return [future.result() for future in futures]

    def expect(self, total: int | None) -> None:
        """Tell the progress bar how many steps there will be, if that is known."""
        self._shared.bar.total = total
        self._shared.bar.refresh()

    def advance(self, n: int = 1, note: str = "") -> None:
        """Move the progress bar by ``n`` steps."""
        with self._shared.lock:
            if note:
                self._shared.bar.set_postfix_str(note, refresh=False)
            self._shared.bar.update(n)

    def note(self, text: str) -> None:
        """Say on the progress bar what the run does, before there is a step to count."""
        with self._shared.lock:
            self._shared.bar.set_postfix_str(text)

    # ------------------------------------------------------------ the end

    def budget(self, end: float = math.inf, replay: int | None = None) -> Budget:
        """Return an allowance of steps until a time on the run's clock, or of a number of steps."""
        return Budget(self, end, replay)

    def require(self, found: object) -> None:
        """Raise `RunStopped` or `OutOfTime` if the run was stopped before it had found anything."""
        if not found:
            raise RunStopped if self.stopped or self.time_limit is None else OutOfTime

    def record(self, ended: str) -> dict[str, Any]:
        """Return what every result says of its run, as fields of a result.

        ``ended`` says why the run ended; it is replaced if Ctrl-C ended the run.
        """
        if self.interrupted:
            ended = "interrupted by the user"
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "ended": ended,
        }


class Budget:
    """An allowance of steps: until a deadline or, if a run is replayed, a given number.

    The result's schedule records the steps that were used. Passed as ``replay``, they make the same
    run again, however long it takes.
    """

    def __init__(self, run: Run, end: float, replay: int | None) -> None:
        self.run, self.end, self.replay = run, end, replay
        self.used = 0
        self.exhausted = False

    def more(self) -> bool:
        """Whether one more step may be made; the first one always may."""
        if self.replay is not None:
            return self.used < self.replay
        if self.used and self.run.now() >= self.end:
            self.exhausted = True
        return not self.exhausted

    def spend(self) -> None:
        """As the ``pause`` of a workspace, count pieces of work; `OutOfTime` if no other may follow."""
        self.used += 1
        self.run.listen()
        if not self.more():
            raise OutOfTime
