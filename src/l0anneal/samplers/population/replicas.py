"""Many supports, one tableau per thread: for samplers with more replicas than tableaus fit.

A replica is its support and its random stream. To move it, its tableau is made anew by Cholesky,
which costs as much as K accepted moves, and thrown away afterwards. What a replica does depends on
its support, its stream and the temperature alone, not on the thread, nor on who came before it.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel import kernel
from l0anneal.engine.moves import DONE, SINGULAR, pair_flip, pair_flip_direct
from l0anneal.engine.moves.outcome import ACCEPTED, FULL, OUTSIDE, PROPOSED, SLOT
from l0anneal.engine.rng import below
from l0anneal.engine.tableau import ENERGY, SIZE, STALE, refresh, refresh_inverse
from l0anneal.problem.admissibility import PIVOT
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.run import Run

__all__ = ["Replicas"]

TRIES = 1000  # draws of one uniform support before rejection is given up


@kernel
def settle(t, support, direct):  # type: ignore[no-untyped-def]
    """Make ``t`` the tableau of a sorted support; outcome as of a move.

    With ``direct`` only what `pair_flip_direct` needs.
    """
    n_inside = support.size
    t.counts[SIZE] = n_inside
    t.inside[:n_inside] = support
    outside = 0
    m = 0
    for j in range(t.b.size):
        if m < n_inside and support[m] == j:
            m += 1
        else:
            t.outside[outside] = j
            outside += 1
    if direct:
        t.counts[STALE] = 1
        return DONE if refresh_inverse(t) else SINGULAR
    for j in support:
        if t.row_of[j] < 0:
            return j
    return DONE if refresh(t) else SINGULAR


@kernel
def draw(t, supports, states, direct, at):  # type: ignore[no-untyped-def]
    """Draw each replica's support uniformly from the admissible ones, by rejection.

    ``at`` is the replica at work, whether its draw waits to be judged, its draws, and all draws.
    `FULL` is returned when a replica has drawn `TRIES` times in vain; else outcome as of a move.
    """
    n_columns = t.b.size
    n_inside = supports.shape[1]
    order = np.arange(n_columns)
    while at[0] < supports.shape[0]:
        i = at[0]
        if at[1] == 0:
            if at[2] == TRIES:
                return FULL
            for m in range(n_inside):
                l = m + below(states[i], n_columns - m)
                order[m], order[l] = order[l], order[m]
            supports[i] = np.sort(order[:n_inside])
            at[1] = 1
            at[2] += 1
            at[3] += 1
        outcome = settle(t, supports[i], direct)
        if outcome >= 0:
            return outcome
        at[1] = 0
        fair = outcome == DONE
        for m in range(n_inside):
            fair = fair and t.U[m, m] * t.diag[t.inside[m]] * PIVOT < 1.0
        if fair:
            at[0] += 1
            at[2] = 0
    return DONE


@kernel
def walk(t, supports, states, mu, n_sweeps, direct, lasts, means, tally, at):  # type: ignore[no-untyped-def]
    """Let each replica make ``n_sweeps`` sweeps of pair flips; outcome as of a move.

    ``supports`` (sorted rows) and ``states`` are changed in place; ``lasts`` and ``means`` receive
    each replica's energy after its last sweep and its mean over the sweeps. ``at`` is the replica
    at work and whether its tableau is made, so the kernel resumes where it was.
    """
    series = np.zeros(n_sweeps)
    own = np.empty(4, dtype=np.int64)
    stop = n_sweeps * t.b.size
    while at[0] < supports.shape[0]:
        i = at[0]
        if at[1] == 0:
            outcome = settle(t, supports[i], direct)
            if outcome != DONE:
                return outcome
            at[1] = 1
            at[2:] = 0
            at[2 + SLOT] = at[2 + OUTSIDE] = -1
            means[i] = 0.0
        own[:] = at[2:]
        before = own[PROPOSED] // t.b.size
        if direct:
            outcome = pair_flip_direct(t, states[i], mu, stop, series, own)
        else:
            outcome = pair_flip(t, states[i], mu, stop, series, own)
        for sweep in range(before, own[PROPOSED] // t.b.size):
            means[i] += series[sweep] / n_sweeps
        at[2:] = own
        if outcome != DONE:
            return outcome
        supports[i] = np.sort(t.inside[: t.counts[SIZE]])
        lasts[i] = t.values[ENERGY]
        tally[PROPOSED] += own[PROPOSED]
        tally[ACCEPTED] += own[ACCEPTED]
        at[1] = 0
        at[0] += 1
    return DONE


class Replicas:
    """Supports that move independently of one another, in threads.

    Attributes
    ----------
    supports : int array of shape (n_replicas, k)
        Sorted rows.
    energies, mean_energies : arrays of shape (n_replicas,)
        After the last sweep, and means over the sweeps of the last call; in the engine's units.
    acceptance : float
        Fraction of the last call's proposals that were accepted.
    log_fraction, log_fraction_variance : float
        Log of the fraction of the C(N, k) sets of columns that are admissible supports, estimated from
        the first draws; NaN if these supports are too rare to be drawn uniformly.
    """

    def __init__(self, run: Run, problem: SparseProblem, k: int, n_replicas: int) -> None:
        self.run, self.problem, self.k = run, problem, k
        problem.make_ready()
        self._mine = threading.local()
        self._n_threads = min(n_replicas, run.n_threads)
        self.supports = np.empty((n_replicas, k), dtype=np.int64)
        self.energies = np.empty(n_replicas)
        self.mean_energies = np.empty(n_replicas)
        self.acceptance = 1.0
        words = run.stream("population replicas").generate_state(4 * n_replicas, np.uint64)
        self.states = words.reshape(-1, 4)
        self._begin()

    def _begin(self) -> None:
        """Draw supports uniformly from the admissible ones or, where these are rare, somehow."""
        workspace = self._first = self.run.workspace(self.problem, self.k)
        direct = self.problem.gram_is_whole or workspace.tableau.columns.size > 0
        at = np.zeros(4, dtype=np.int64)
        while (outcome := draw(workspace.tableau, self.supports, self.states, direct, at)) >= 0:
            workspace.bring(outcome)
        if outcome == FULL:
            self._begin_anyhow()
            return
        n_replicas, drawn = len(self.supports), int(at[3])
        fraction = (n_replicas - 1) / (drawn - 1) if drawn > n_replicas else 1.0
        self.log_fraction = float(np.log(fraction))
        self.log_fraction_variance = (1.0 - fraction) / n_replicas

    def _begin_anyhow(self) -> None:
        for i in range(len(self.supports)):
            workspace = self.run.workspace(self.problem, self.k)
            rng = np.random.default_rng(self.run.stream("population start", i))
            workspace.fill(self.k, rng.permutation(self.problem.n_columns))
            self.supports[i] = workspace.support
        self.log_fraction = self.log_fraction_variance = float("nan")

    def sweep(self, mu: float, n_sweeps: int) -> None:
        """Let every replica make ``n_sweeps`` sweeps at μ, in the caller's units.

        If the run is stopped in between, `RunStopped` is raised and the replicas are left half moved.
        """
        direct = self._first.prefers_direct(self.acceptance)
        n_replicas = len(self.supports)
        # tasks short enough for an interrupt to be heard, and enough of them for all threads
        short = self._first.chunk // (n_sweeps * self.problem.n_columns)
        per_task = max(1, min(short, n_replicas // (4 * self._n_threads)))
        cuts = [slice(start, start + per_task) for start in range(0, n_replicas, per_task)]
        unit_mu = mu * self.problem.unit_energy
        tallies = np.zeros((len(cuts), 4), dtype=np.int64)
        self.run.map(
            lambda task: self._walk(task[0], unit_mu, n_sweeps, direct, task[1]),
            zip(cuts, tallies),
        )
        proposed, accepted = tallies.sum(axis=0)[[PROPOSED, ACCEPTED]]
        self.acceptance = float(accepted / proposed)

    def _walk(
        self, cut: slice, mu: float, n_sweeps: int, direct: bool, tally: NDArray[np.int64]
    ) -> None:
        self.run.listen()
        # Rows of the Gram matrix that are computed on demand stay with the workspace that asked for
        # them. A direct walk uses such rows if they are there, and they are rounded differently from
        # its own products; so it has a workspace that never asks for a row.
        name = "direct" if direct else "tabled"
        workspace = getattr(self._mine, name, None)
        if workspace is None:
            workspace = self.run.workspace(self.problem, self.k)
            setattr(self._mine, name, workspace)
        workspace.run(
            walk,
            self.supports[cut],
            self.states[cut],
            mu,
            n_sweeps,
            direct,
            self.energies[cut],
            self.mean_energies[cut],
            tally,
            np.zeros(6, dtype=np.int64),
            complete=False,
        )
        self.energies[cut] += self.problem.unit_signal
        self.mean_energies[cut] += self.problem.unit_signal
