"""Draws from the posterior: supports, coefficients, noise, ρ and the slab, by several chains.

Each step of a chain makes proposals for the support and then Gibbs steps for the hyperparameters
(`slab`). The chains start differently: the first where the cooling ended, the others from the empty
support, and from many columns. Where they agree their draws are pooled. Where they do not, each chain
is weighed by the evidence of the region that it explored, and not by how many chains fell into it:

    log Z ≈ ⟨log P(y, S)⟩ + Σ_j h(p_j),      h(p) = −p log p − (1 − p) log(1 − p),

the mean over the chain's draws plus the entropy of independent columns with the chain's inclusion
probabilities, which bounds the entropy of the region from above.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.samplers.autocorrelation import autocorrelation_time
from l0anneal.samplers.evidence.chain import EvidenceChain, Model
from l0anneal.samplers.evidence.conditional import (
    Doubtful,
    Snapshot,
    moments_among,
    moments_of,
    rows_needed,
)
from l0anneal.samplers.evidence.cooling import CROWDED, CoolingChain
from l0anneal.samplers.evidence.draws import WEIGHTY
from l0anneal.samplers.evidence.proposal import Proposal
from l0anneal.samplers.evidence.slab import Hyperparameters
from l0anneal.samplers.evidence.sums import Draw, Sums
from l0anneal.samplers.run import Budget, Run, RunStopped

__all__ = ["AGREE", "Draw", "Posterior", "PosteriorChain"]

BURN_IN = 40  # steps of a chain that are not counted
PROPOSALS = 800  # between two draws of the hyperparameters
FEWEST = 200  # where these are what is slow
UNIFORM = 0.25  # of the proposals; the others are columns that are in doubt
SLOW = 0.3  # effective draws per draw below which a chain makes more steps between two draws
ROUND = 100  # draws of each chain between two looks at the error
TURN = 20  # draws of one chain before it is the next one's turn, if time is limited
ENOUGH = 420.0  # effective number of draws at which the sampling ends
MOST_ROUNDS = 12
FEW_ROUNDS = 2  # after which chains that cannot agree are given up
MOST_STEPS = 8
AGREE = 0.15  # largest difference between two chains in the probability of a column
UNCERTAIN = 16  # columns whose autocorrelation is measured
DOUBTFUL = 512  # columns that are looked at more often, where a look at all columns is expensive
DOUBTFUL_DRAWS = 4  # draws for each look at them
LOOKS = 12  # looks, of which one is at all columns
Floats = NDArray[np.float64]


def mostly(weights: Floats) -> Proposal:
    """Return the law that proposes columns in proportion to their weights, and some uniformly."""
    share = weights / max(1e-9, weights.sum())
    return Proposal.of(UNIFORM / weights.size + (1.0 - UNIFORM) * share)


class PosteriorChain(EvidenceChain):
    """A chain over supports, T and the slab under the model's prior.

    ``start`` is "empty", "dense" or the chain that was cooled.
    """

    def __init__(
        self, run: Run, model: Model, start: CoolingChain | str, seeds: np.random.SeedSequence
    ) -> None:
        flips, hyper, order = seeds.spawn(3)
        super().__init__(run, model, flips)
        self.rng = np.random.default_rng(hyper)
        self.rounds = [Sums.empty(self.problem.n_columns)]
        self.waiting: list[Snapshot] = []  # whose moments will be computed together
        self.steps_per_draw = 1
        self.n_proposals = PROPOSALS  # of a step
        # Without the whole Gram matrix, the moments of all columns cost more than a draw.
        self.draws_per_look = 1 if self.problem.gram_is_whole else 8
        self.doubtful: Doubtful | None = None  # columns that are looked at more often than all
        self.settled = False  # whether the steps of the burn-in have been forgotten
        self.first_probability: Floats | None = None  # inclusion probabilities of the burn-in
        self.hyper = Hyperparameters(model.known or model.mean_square, 1.0, 0.0, np.zeros(0))
        self.budget = run.budget()
        m = self.problem.n_samples
        usable = np.random.default_rng(order).permutation(
            np.flatnonzero(np.isfinite(self.column_odds))
        )
        if isinstance(start, CoolingChain):
            self.workspace.hold_rows(start.workspace.support)
            for j in start.workspace.support:  # groups enter by their own moves
                room = self.n_inside < max(self.largest, model.size or 0)
                if room and np.isfinite(self.column_odds[j]):
                    self._begin_with(int(j))
        elif model.size is not None:
            self.workspace.fill(model.size, usable)
        elif start == "dense":
            for j in usable[: max(1, min(m // 3, usable.size // 2, self.largest))]:
                self._begin_with(int(j))
        self.workspace.refresh()
        self._redraw()

    def _begin_with(self, j: int) -> None:
        self.workspace.make_room()
        self.workspace.add(j)

    # ------------------------------------------------------------ steps

    def sample(self, budget: Budget, n_steps: int) -> None:
        """Make steps, as many as the budget allows, and add them to the last round.

        The first steps are forgotten once there are `BURN_IN` of them; they tell which columns to
        propose (`Posterior.propose_doubtful`).
        """
        with suppress(RunStopped):  # the steps so far are counted
            for _ in range(n_steps):
                if not budget.more():
                    break
                draw = self._step()
                if budget.used % self.draws_per_look == 0:
                    self._look()
                self.rounds[-1].draws.append(draw)  # after a look that may be interrupted
                budget.used += 1
                self.run.advance(1, f"drawing from the posterior, {self.n_inside} columns")
                if budget.used == BURN_IN:
                    self.first_probability = self.average("probability")
                    self.rounds = [Sums.empty(self.problem.n_columns)]
                    self.settled = True

    def _look(self) -> None:
        """Take the conditional moments of the present state, now or together with later ones."""
        if not self.settled:
            snapshot = Snapshot.of(self)
            moments = moments_of(self, [snapshot])[0]
            self.rounds[-1].count(snapshot, moments)
            if self.problem.n_columns > PROPOSALS:
                self._propose_wanted(moments[0])
            return
        snapshot, sums = Snapshot.of(self), self.rounds[-1]
        n_looks = sums.n + len(self.waiting)
        # What is looked at must not depend on the state, or states would have unequal weights.
        if self.doubtful and n_looks % LOOKS:
            moments = moments_among(self, snapshot, self.doubtful)
            sums.count_among(self.doubtful.columns, snapshot, moments)
            return
        self.waiting.append(snapshot)
        if not sums.n or rows_needed(self, self.waiting):
            self.count_waiting()

    def look_at(self, doubtful: Doubtful | None) -> None:
        """Look at these columns more often than at all of them."""
        self.doubtful = doubtful
        self.draws_per_look = self.draws_per_look if doubtful is None else DOUBTFUL_DRAWS

    def _propose_wanted(self, p: Floats) -> None:
        """Propose mostly columns that are likely to flip, given each one's probability now.

        Among many columns a uniform law takes long to propose the few that are missing. The law changes
        with the state, which is right in the burn-in alone.
        """
        wanted = p.copy()
        wanted[self.workspace.inside_columns] = 1.0 - p[self.workspace.inside_columns]
        self.proposal = mostly(wanted)

    def _step(self) -> Draw:
        length = self.n_proposals
        if not self.settled:
            length = max(length, self.problem.n_columns // 8)
        for _ in range(self.steps_per_draw):
            sweeps = self._sweeps(1, length)
            sweeps.all()
            self.acceptance = sweeps.acceptance
            self.flip_groups()
            draw = self._redraw()
        return draw

    def _prefers_direct(self) -> bool:
        """Whether the direct kernel is cheaper: the other needs a new tableau for each slab drawn."""
        direct = super()._prefers_direct()
        if direct or self.problem.gram_is_whole:
            return direct
        k, n = self.n_inside, self.problem.n_columns
        return 0.2 * n * k * k / PROPOSALS > 400.0 + k * k  # nanoseconds for each proposal

    def _redraw(self) -> Draw:
        """Draw T, the slab and the coefficients given the support."""
        w, old = self.workspace, self.hyper
        columns = w.inside_columns.copy()
        support = self.support_model()
        log_joint = support.log_evidence() + self.model.prior.log_weight(columns)
        self.hyper, x = support.draw(old._replace(signs=self.signs[columns]), self.rng)
        self.temperature = self.hyper.noise
        self.set_slab(self.hyper.variance, self.hyper.hump, self.hyper.signs)
        collapsed = self.hyper.c == 0.0 and self.model.known is None
        self.half = 0.5 * self.problem.n_samples if collapsed else 0.0
        return Draw(columns, x, self.hyper.noise, self.hyper.g, self.hyper.c, log_joint)

    def count_waiting(self) -> None:
        """Add the conditional moments of the snapshots that wait to the last round."""
        for snapshot, moments in zip(self.waiting, moments_of(self, self.waiting)):
            self.rounds[-1].count(snapshot, moments)
        self.waiting.clear()

    # ------------------------------------------------------------ averages

    @property
    def kept(self) -> list[Sums]:
        """The rounds that are counted: the first ones may not have forgotten the start."""
        looked_at = [sums for sums in self.rounds if sums.n]
        return looked_at[len(looked_at) // 4 :]

    @property
    def draws(self) -> list[Draw]:
        """The draws that are counted."""
        return [draw for sums in self.kept for draw in sums.draws]

    def average(self, name: str) -> Floats:
        """Return the mean of "probability", "first" or "second" over the draws."""
        total: Floats = sum(getattr(sums, name) for sums in self.kept)
        count = "looks" if name == "probability" else "n"
        return total / np.maximum(1, sum(getattr(sums, count) for sums in self.kept))

    @property
    def mean_size(self) -> float:
        """The mean number of columns."""
        return float(np.mean([draw.columns.size for draw in self.draws]))

    @property
    def log_joints(self) -> Floats:
        """Log P(y, S) of the draws, where it is finite."""
        logs = np.array([draw.log_joint for draw in self.draws])
        return logs[np.isfinite(logs)]

    def log_mass(self) -> float:
        """Estimate the log evidence of the region that the chain explored."""
        logs = self.log_joints
        p = np.clip(self.average("probability"), 1e-300, 1.0 - 1e-16)
        entropy = -float(np.sum(p * np.log(p) + (1.0 - p) * np.log1p(-p)))
        return float(np.mean(logs)) + entropy if logs.size else -math.inf

    def effective_size(self, columns: NDArray[np.int64], overall: bool = True) -> float:
        """Return the effective number of draws: the least of size, noise, and given columns.

        Without ``overall``, only the columns count.
        """
        draws = self.draws
        if len(draws) < 4:
            return 0.0
        series = [np.array([float(d.columns.size) for d in draws])] if overall else []
        if self.model.known is None and overall:
            series.append(np.log([d.noise for d in draws]))
        position = {int(j): i for i, j in enumerate(columns)}
        inside = np.zeros((columns.size, len(draws)))
        for i, d in enumerate(draws):
            for j in d.columns:
                if (at := position.get(int(j))) is not None:
                    inside[at, i] = 1.0
        times = [autocorrelation_time(s) for s in [*series, *inside]]
        return len(draws) / max([1.0, *times])


class Posterior:
    """Several chains, sampled until the Monte Carlo error is small."""

    def __init__(self, run: Run, model: Model, best: CoolingChain) -> None:
        self.run, self.model, self.best = run, model, best
        self.chains: list[PosteriorChain] = []
        self.budgets: list[Budget] = []

    def _begin(self, starts: list[CoolingChain | str]) -> list[PosteriorChain]:
        first = len(self.chains)
        new = [
            PosteriorChain(
                self.run, self.model, start, self.run.stream("evidence posterior", first + i)
            )
            for i, start in enumerate(starts)
        ]
        self.chains += new
        return new

    def sample(self, n_draws: int | None, end: float, replay: tuple[int, ...] | None) -> None:
        """Sample until the error is small, or a number of draws in all, or until the time is up.

        With ``replay``, the steps of each chain of an earlier run, ``n_draws`` only tells whether that
        run had been given a number.
        """
        starts: list[CoolingChain | str] = [self.best, "empty"]
        with suppress(RunStopped), one_blas_thread():
            self._sample(starts, n_draws, end, None if replay is None else replay[:2])
            if not self.counted:
                return  # there was no time for a draw
            again = self.differ and n_draws is None and not self.hopeless and self.run.now() < end
            if again if replay is None else len(replay) > 2:
                more: list[CoolingChain | str] = ["dense", "empty"]
                self._sample(more, None, end, None if replay is None else replay[2:])

    def _sample(
        self,
        starts: list[CoolingChain | str],
        n_draws: int | None,
        end: float,
        replay: tuple[int, ...] | None,
    ) -> None:
        """Begin chains and sample them in rounds, so that they share the time."""
        new = self._begin(starts)
        budgets = [
            self.run.budget(end, None if replay is None else replay[i]) for i in range(len(new))
        ]
        self.budgets += budgets
        pairs = list(zip(new, budgets))
        turn = ROUND if self.run.time_limit is None else TURN
        self._share(pairs, BURN_IN, turn)
        self.propose_doubtful()
        if n_draws is not None:
            n_steps = max(replay) - BURN_IN if replay else -(-n_draws // len(new))
            self._share(pairs, n_steps, max(1, n_steps))
            return
        for i in range(MOST_ROUNDS):
            for chain in new if i else ():
                chain.rounds.append(Sums.empty(self.model.problem.n_columns))
            self._share(pairs, ROUND, turn)
            size = self.effective_size
            enough = size >= ENOUGH or (i + 1 >= FEW_ROUNDS and self.hopeless)
            if (enough and replay is None) or not any(budget.more() for budget in budgets):
                break
            slow = SLOW * sum(len(chain.draws) for chain in self.chains)
            if size < slow:
                hyper = self._effective_size(overall=False) >= slow  # whether columns are not slow
                for chain in new:
                    chain.steps_per_draw = min(2 * chain.steps_per_draw, MOST_STEPS)
                    chain.n_proposals = max(chain.n_proposals // (1 + hyper), FEWEST)

    def _share(self, pairs: list[tuple[PosteriorChain, Budget]], n_steps: int, turn: int) -> None:
        """Let each chain make steps, ``turn`` at a time."""

        def sample(pair: tuple[PosteriorChain, Budget]) -> None:
            pair[0].sample(pair[1], n)

        for done in range(0, n_steps, turn):
            n = min(turn, n_steps - done)
            self.run.map(sample, pairs)
        self.run.map(PosteriorChain.count_waiting, [chain for chain, _ in pairs])

    def propose_doubtful(self) -> None:
        """Let all chains propose mostly columns that are neither certain nor out of the question.

        Which ones these are is taken from the first steps of all chains, because a single chain that
        began far from the answer has not seen it yet. The law is then fixed.
        """
        known = [c.first_probability for c in self.chains if c.first_probability is not None]
        if known:
            p = np.mean(known, axis=0)
            doubt = p * (1.0 - p)
            law = mostly(doubt)
            problem, doubtful = self.model.problem, None
            if not problem.gram_is_whole and problem.holds_unit_columns:
                columns = np.sort(np.argsort(-doubt, kind="stable")[:DOUBTFUL])
                doubtful = Doubtful(columns, problem.unit_columns[columns])
            for chain in self.chains:
                chain.proposal = law._replace(where=np.zeros(p.size, dtype=np.int64))
                chain.look_at(doubtful)

    # ------------------------------------------------------------ all chains together

    @property
    def counted(self) -> list[PosteriorChain]:
        """The chains that have settled or, if there is none, those that have any draw."""
        begun = [chain for chain in self.chains if chain.draws]
        return [chain for chain in begun if chain.settled] or begun

    @property
    def probability(self) -> Floats:
        """Inclusion probabilities of each chain, as rows."""
        return np.array([chain.average("probability") for chain in self.counted])

    @property
    def differ(self) -> bool:
        """Whether two chains, whatever their weights, differ in the probability of a column."""
        return bool(np.max(np.ptp(self.probability, axis=0), initial=0.0) > AGREE)

    @property
    def hopeless(self) -> bool:
        """Whether more draws would not help, so that the probabilities are better withdrawn soon.

        Chains with many columns that differ, or that began at a support which counts as trapped, lie in
        local minima that flips of columns do not leave.
        """
        counted = self.counted
        if not counted:
            return False  # the run was stopped before the first draw
        many = CROWDED * self.model.problem.n_samples
        crowded = all(chain.mean_size > many for chain in counted)
        return crowded and (self.best.state == "trapped" or self.differ)

    @property
    def weights(self) -> Floats:
        """The weight of each chain: equal if they agree, and by evidence if not."""
        counted = self.counted
        if not counted:
            return np.zeros(0)
        if not self.differ:
            return np.full(len(counted), 1.0 / len(counted))
        logs = np.array([chain.log_mass() for chain in counted])
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    @property
    def disagreement(self) -> float:
        """The largest difference in a column's probability between chains that have weight."""
        p = self.probability[self.weights > WEIGHTY]
        return float(np.max(np.ptp(p, axis=0), initial=0.0))

    @property
    def effective_size(self) -> float:
        """The effective number of draws of all chains, weighed."""
        return self._effective_size(overall=True)

    def _effective_size(self, overall: bool) -> float:
        counted, weights = self.counted, self.weights
        if not counted:
            return 0.0
        p = weights @ self.probability
        order = np.argsort(-p * (1.0 - p), kind="stable")[:UNCERTAIN]
        uncertain = order[(p[order] > 0.02) & (p[order] < 0.98)]
        sizes = np.array([chain.effective_size(uncertain, overall) for chain in counted])
        if np.any((sizes == 0) & (weights > WEIGHTY)):
            return 0.0
        return float(1.0 / np.sum(weights**2 / np.maximum(sizes, 1e-9)))
