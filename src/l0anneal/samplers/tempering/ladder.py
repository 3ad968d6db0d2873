"""Replicas on a ladder of temperatures, one on each rung.

In a round every replica makes one sweep at its rung, in threads, and then the replicas of
neighbouring rungs try to exchange places, even pairs and odd pairs in turn. With weights w for the
sizes, rungs a and b exchange with probability

    min(1, exp[(μ_b − μ_a)(E_b − E_a) + w_a(k_b) + w_b(k_a) − w_a(k_a) − w_b(k_b)]).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from l0anneal._util.counts import log_choose
from l0anneal._util.seeds import seed_of, stream_of
from l0anneal.engine.moves import pair_flip
from l0anneal.engine.moves.size_flip import size_flip
from l0anneal.engine.rng import stream
from l0anneal.engine.sweep import Mover, Sweeps
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.run import OutOfTime, Run

__all__ = ["MOST_RUNGS", "ReplicaLadder"]

Floats = NDArray[np.float64]
MOST_RUNGS = 64
SURVEYED_SIZES, SURVEY_TEMPERATURES = 9, 50
EVEN = 0.3  # visits count as even if the rarest size has this fraction of the mean


class ReplicaLadder:
    """Replicas on a ladder of temperatures.

    Arrays are by rung; energies and μ are in the engine's units.
    """

    def __init__(
        self,
        run: Run,
        problem: SparseProblem,
        least: int,
        most: int,
        mu: Floats,
        start: NDArray[np.int64] | None = None,
    ) -> None:
        self.run, self.problem, self.least, self.most = run, problem, least, most
        run.prepare(problem)
        self._rng = np.random.default_rng(run.stream("temper exchange"))
        self._n_streams = 0
        self.n_sizes = most - least + 1
        self.weights = np.zeros((mu.size, self.n_sizes))
        self.best: list[NDArray[np.int64] | None] = [None] * self.n_sizes
        self.lowest = np.full(self.n_sizes, np.inf)
        starts = self._random_starts(mu.size) if start is None else [start] * mu.size
        self._place(mu, starts)
        self.survey(0)

    def _random_starts(self, n_rungs: int) -> list[NDArray[np.int64]]:
        """Return a random support for each rung; sizes fall from the hot end to the cold one."""
        starts = []
        for a, size in enumerate(np.linspace(self.most, self.least, n_rungs).round().astype(int)):
            workspace = self.run.workspace(self.problem, self.most)
            rng = np.random.default_rng(self.run.stream("temper start", a))
            # names the rank if it is too small
            workspace.fill(self.most, rng.permutation(self.problem.n_columns))
            starts.append(workspace.inside_columns[:size].copy())
        return starts

    def _place(self, mu: Floats, supports: list[NDArray[np.int64]]) -> None:
        """Put a replica with the given support on each rung."""
        self.mu = mu
        n_rungs = mu.size
        self.workspaces = []
        self.states = []
        for support in supports:
            workspace = self.run.workspace(self.problem, self.most)
            workspace.begin_at(support)
            self.workspaces.append(workspace)
            self.states.append(stream(self.run.stream("temper replica", self._n_streams)))
            self._n_streams += 1
        self.at = np.arange(n_rungs)  # rung → replica
        self.energies = np.zeros(n_rungs)
        self.sizes = np.zeros(n_rungs, dtype=np.int64)
        self.visits = np.zeros((n_rungs, self.n_sizes), dtype=np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget all counts: exchange rates, round trips, visits."""
        n_rungs = self.mu.size
        self.attempts = 0
        self.chances = np.zeros(max(0, n_rungs - 1))
        self.tried = np.zeros(max(0, n_rungs - 1), dtype=np.int64)
        self.visits[:] = 0
        self.round_trips = self.size_trips = 0
        self._heading = np.zeros(n_rungs, dtype=np.int64)  # last end visited; 1: hot, 2: cold
        self._size_heading = np.zeros(n_rungs, dtype=np.int64)

    # ------------------------------------------------------------ one round

    def round(self, learn: bool = False) -> None:
        """Make one sweep at each rung; `energies` and `sizes` hold for it until `exchange`."""
        gains = self._gains() if learn else np.zeros(self.mu.size)
        parts = np.array_split(np.arange(self.mu.size), min(self.run.n_threads, self.mu.size))
        visits = self.visits.copy()
        try:
            self.run.map(lambda part: self._sweep(part, gains), parts)
        except OutOfTime:
            self.visits[:] = visits  # a round for which there is no time has not begun
            raise
        for a, r in enumerate(self.at):
            workspace = self.workspaces[r]
            self.energies[a] = self.problem.unit_signal + workspace.unit_energy
            self.sizes[a] = workspace.size
            i = int(self.sizes[a]) - self.least
            if self.energies[a] < self.lowest[i]:
                self.lowest[i], self.best[i] = self.energies[a], workspace.support
        self._count_trips()

    def _sweep(self, rungs: NDArray[np.int64], gains: Floats) -> None:
        for a in rungs:
            r = self.at[a]
            workspace, state, mu = self.workspaces[r], self.states[r], self.mu[a]
            if self.n_sizes == 1:
                Sweeps(workspace, pair_flip, state, mu, n_sweeps=1).all()
                self.visits[a, 0] += self.problem.n_columns
            else:
                law = (mu, self.weights[a], self.least, gains[a], self.visits[a])
                Sweeps(workspace, size_flip, state, *law, n_sweeps=1).all()

    def exchange(self) -> None:
        """Exchange neighbours: even pairs at one call, odd pairs at the next."""
        low = np.arange(self.attempts % 2, self.mu.size - 1, 2)
        self.attempts += 1
        if low.size == 0:
            return
        high = low + 1
        w, k = self.weights, self.sizes - self.least
        gain = (self.mu[high] - self.mu[low]) * (self.energies[high] - self.energies[low])
        gain += w[low, k[high]] + w[high, k[low]] - w[low, k[low]] - w[high, k[high]]
        chance = np.exp(np.minimum(gain, 0.0))
        self.chances[low] += chance
        self.tried[low] += 1
        for a in low[self._rng.random(low.size) < chance]:
            for values in (self.at, self.energies, self.sizes):
                values[a], values[a + 1] = values[a + 1], values[a]

    def supports(self) -> NDArray[np.int32]:
        """Return the support at each rung, sorted and padded with −1."""
        rows = np.full((self.mu.size, self.most), -1, dtype=np.int32)
        for a, r in enumerate(self.at):
            support = self.workspaces[r].support
            rows[a, : support.size] = support
        return rows

    def keep_present(self) -> None:
        """If no round was completed, count the present supports as the best ones."""
        if not self.begun:
            for workspace in self.workspaces:
                self.best[workspace.size - self.least] = workspace.support

    @property
    def begun(self) -> bool:
        """Whether a round was completed."""
        return any(support is not None for support in self.best)

    @property
    def exchange_rate(self) -> Floats:
        """Mean chance of an exchange between neighbours."""
        return self.chances / np.maximum(self.tried, 1)

    def _count_trips(self) -> None:
        heading = self._heading
        if self.mu.size > 1:
            hot, cold = self.at[0], self.at[-1]
            self.round_trips += int(heading[hot] == 2)
            heading[hot] = 1
            heading[cold] = 2 if heading[cold] else 0
        if self.n_sizes > 1:
            heading = self._size_heading
            small = self.at[self.sizes == self.least]
            large = self.at[self.sizes == self.most]
            self.size_trips += int(np.sum(heading[small] == 2))
            heading[small] = 1
            heading[large] = np.where(heading[large] > 0, 2, 0)

    # ------------------------------------------------------------ the ladder

    def tune(self, n_rungs: int | None) -> None:
        """Move the rungs so that all exchange rates would be equal, from the rates so far.

        The sum of the rejection rates up to a rung, as a function of its μ, hardly depends on the
        other rungs (Syed, Bouchard-Côté, Deligiannidis and Doucet 2022). It is therefore
        interpolated and divided into equal parts. If ``n_rungs`` is None there are 2Λ + 2 rungs,
        where Λ is the sum over the whole ladder.
        """
        rejections = np.maximum(1.0 - self.exchange_rate, 1e-3)
        barrier = np.concatenate(([0.0], np.cumsum(rejections)))
        if n_rungs is None:
            n_rungs = int(np.clip(np.ceil(2.0 * barrier[-1]) + 2, 3, MOST_RUNGS))
        scale = self.mu[1]
        x = np.log(self.mu + scale)
        wanted = np.linspace(0.0, barrier[-1], n_rungs)
        mu = np.exp(PchipInterpolator(barrier, x)(wanted)) - scale
        mu[0], mu[-1] = self.mu[0], self.mu[-1]
        x_new = np.log(mu + scale)
        learnt = self.weights - self._guess(self.mu)
        learnt = np.stack([np.interp(x_new, x, w) for w in learnt.T], axis=1)
        nearest = np.abs(x_new[:, None] - x).argmin(axis=1)
        supports = [self.workspaces[self.at[a]].support for a in nearest]
        self._place(mu, supports)
        self.weights = self._guess(mu) + learnt
        self._clear_learning()

    # ------------------------------------------------------------ the weights of sizes

    def survey(self, tau: int) -> None:
        """Weigh the sizes by an estimate of log G_k(μ), from short annealings at some of them.

        Thermodynamic integration gives the log G of each annealing. Its difference from log C(N, k) is
        smooth in k and μ and is interpolated. With τ = 0 that difference counts as zero.
        """
        n, top = self.problem.n_columns, float(self.mu[-1])
        every = np.arange(self.least, self.most + 1)
        self._counts = np.array([log_choose(n, int(k)) for k in every])
        lead_in = np.linspace(0.002, 0.02, 9)
        grid = np.geomspace(0.025, 1, SURVEY_TEMPERATURES - 1 - lead_in.size)
        self._grid = np.concatenate(([0.0], lead_in, grid)) * top
        self._surveyed = np.zeros((self._grid.size, self.n_sizes))
        if self.n_sizes > 1 and top > 0.0 and tau > 0:
            self._surveyed = self._cooled_log_g(every, tau)
        self.weights = self._guess(self.mu)
        self._clear_learning()

    def _cooled_log_g(self, every: NDArray[np.int64], tau: int) -> Floats:
        """Log G_k(μ) − log C(N, k) on the survey's grid, for every size."""
        some = np.unique(np.linspace(self.least, self.most, SURVEYED_SIZES).round().astype(int))
        mu = self._grid / self.problem.unit_energy
        found = []
        for k in some:
            energies = self._cooled_energies(int(k), mu, tau)
            found.append(-PchipInterpolator(mu, energies).antiderivative()(mu))
        return np.asarray(PchipInterpolator(some, np.stack(found, axis=1), axis=1)(every))

    def _cooled_energies(self, k: int, mu: Floats, tau: int) -> list[float]:
        """Mean energies of one short annealing, in the caller's units."""
        seed = seed_of(self.run.stream("temper survey", k))
        order, flips = stream_of(seed, "annealing chain", 0).spawn(2)
        workspace = self.run.workspace(self.problem, k)
        n = self.problem.n_columns
        workspace.fill(k, np.random.default_rng(order).permutation(n))
        mover = Mover(workspace, stream(flips))
        means = []
        for value in mu:
            sweeps = mover.at(value * self.problem.unit_energy, tau)
            sweeps.all()
            means.append(float(workspace.to_energy(sweeps.energies.mean())))
        return means

    def _guess(self, mu: Floats) -> Floats:
        """Return the weights −log G_k(μ) that the survey found."""
        if self.n_sizes == 1:
            return np.zeros((mu.size, 1))
        return -self._counts - np.stack(
            [np.interp(mu, self._grid, log_g) for log_g in self._surveyed.T], axis=1
        )

    def _clear_learning(self) -> None:
        self._rounds = 0
        self._coarse = np.full(self.mu.size, self.n_sizes / self.problem.n_columns)
        self._seen = np.zeros_like(self.visits)

    def _gains(self) -> Floats:
        """Return by how much a visit to a size lowers its weight, for each rung.

        The amount is halved whenever visits are even, and falls as 1/time in the end.
        """
        self._rounds += 1
        if self.n_sizes == 1:
            return np.zeros(self.mu.size)
        visits = self.visits - self._seen
        even = visits.min(axis=1) > EVEN * visits.mean(axis=1)
        self._coarse[even] *= 0.5
        self._seen[even] = self.visits[even]
        fine = self.n_sizes / (self.problem.n_columns * self._rounds)
        return np.minimum(np.maximum(self._coarse, fine), 1.0)
