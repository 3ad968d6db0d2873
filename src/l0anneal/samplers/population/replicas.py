"""Many supports but one tableau per thread, for more replicas than tableaus fit in memory.

A replica is its support and its random stream. To move it, its tableau is computed by a Cholesky
factorisation, which costs as much as K accepted moves, and discarded afterwards. What a replica
does depends only on its support, its stream and the temperature, not on the thread or on the
replica that was moved before it.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.moves.protocol import ACCEPTED, FULL, PROPOSED
from l0anneal.engine.replica_walk import draw, settle, walk
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.observables import Observable, observe
from l0anneal.samplers.run import Run

__all__ = ["Replicas"]


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
        run.prepare(problem)
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
        """Draw admissible supports uniformly or, if they are rare, in some other way."""
        workspace = self._first = self.run.workspace(self.problem, self.k)
        self._direct = direct = self.problem.gram_is_whole or self.problem.holds_unit_columns
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
        # tasks short enough for an interrupt to be noticed, and enough of them for all threads
        short = self._first.chunk(direct) // (n_sweeps * self.problem.n_columns)
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

    def observe(self, observables: dict[str, Observable]) -> dict[str, NDArray[np.float64]]:
        """Return the observables of each replica; supports that occur repeatedly are fitted once."""
        if not observables:
            return {}
        distinct, index = np.unique(self.supports, axis=0, return_inverse=True)
        workspace = self.run.workspace(self.problem, self.k)
        found = []
        for support in distinct:
            self.run.listen()
            workspace.run(settle, support, self._direct, complete=False)
            found.append(tuple(observe(observables, workspace.coef).values()))
        values = np.array(found)[index]
        return {name: values[:, i] for i, name in enumerate(observables)}

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
            self._first.chunk(direct),
            direct,
            self.energies[cut],
            self.mean_energies[cut],
            tally,
            np.zeros(6, dtype=np.int64),
            complete=False,
        )
        self.energies[cut] += self.problem.unit_signal
        self.mean_energies[cut] += self.problem.unit_signal
