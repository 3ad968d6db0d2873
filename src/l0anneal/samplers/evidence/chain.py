"""One attempt of evidence annealing: a chain that is cooled while it learns ρ and σ²."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.counts import log_choose
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.evidence_flip import evidence_flip
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.moves.outcome import ACCEPTED, PROPOSED
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import ENERGY, SIZE
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.message_passing import Beliefs

__all__ = ["Allowance", "EvidenceChain", "Model", "Prior"]

# temperatures are in units of ⟨y²⟩ = ‖y‖²/M
HOT, WINDOW, CRITICAL, COLD = 3.0, 1.0, 1e-3, 1e-9
WINDOW_STEPS = 100  # between WINDOW and CRITICAL, where recovery is decided
FAST = 0.6  # the factor between temperatures elsewhere
FOUND = 0.1  # residual variance below this fraction of T: the plan is found
CROWDED = 0.25  # more columns than this fraction of M: the noise may be a trap's
LOSS = 10.0  # of log evidence, summed over temperatures: this is below the noise
# At the noise level many small coefficients explain the data as well as a few large ones do. A sparse
# signal is one whose coefficients stand out: σ² is at least this times T log N, twice the square at
# which a column is told from noise.
STANDS_OUT = 4.0
MEMORY = 0.3  # weight of the newest temperature in the smoothed residual variance
SETTLED = 0.5  # below this one it is on its way there, and cooling may hurry


class Allowance:
    """Sweeps until a time of the clock, or, when a run is replayed, a number of them."""

    def __init__(self, deadline: float = math.inf, number: int | None = None) -> None:
        self.deadline, self.number = deadline, number
        self.used = 0

    def more(self) -> bool:
        """Whether there may be one more; the first always may."""
        if self.number is not None:
            return self.used < self.number
        return self.used == 0 or time.perf_counter() < self.deadline


@dataclass(frozen=True)
class Prior:
    """Of a column's probability: a Beta law, or a fixed value."""

    a: float = 2.0
    b: float = 25.0
    fixed: float | None = None

    @classmethod
    def of(cls, rho: Any) -> Prior:
        if rho is None:
            return cls()
        if np.ndim(rho) == 0:
            if not 0 < float(rho) < 1:
                raise ValueError(f"rho is a probability, strictly between 0 and 1; got {rho}")
            return cls(fixed=float(rho))
        if np.shape(rho) != (2,) or not all(math.isfinite(v) and v > 0 for v in rho):
            raise ValueError(f"rho is a probability or the two numbers of a Beta law; got {rho}")
        return cls(*map(float, rho))

    def mean(self, n_chosen: float, n: int) -> float:
        if self.fixed is not None:
            return self.fixed
        return (n_chosen + self.a) / (n + self.a + self.b)


@dataclass
class Moments:
    """Sums over sweeps of what expectation maximisation and the noise gauge need."""

    sizes: list[int] = field(default_factory=list)
    residual_variances: list[float] = field(default_factory=list)
    slabs: list[float] = field(default_factory=list)
    freedoms: list[float] = field(default_factory=list)  # of the residual


@dataclass(frozen=True)
class Model:
    """What is asked: of which problem, and what is given beside it."""

    problem: SparseProblem
    size: int | None
    prior: Prior
    known: float | None  # the noise variance, in the engine's units


class EvidenceChain:
    """One attempt: cool, then settle. Temperatures here are in the engine's units."""

    def __init__(
        self,
        model: Model,
        first: float,
        seed: np.random.SeedSequence,
        bar: Any,
    ) -> None:
        problem, size, prior = model.problem, model.size, model.prior
        self.problem, self.size, self.prior, self.known = problem, size, prior, model.known
        self.bar = bar
        n, m = problem.n_columns, problem.n_samples
        order, flips, self.draws = seed.spawn(3)  # the last: for the posterior
        self.generator = stream(flips)
        self.workspace = Workspace(problem, 64 if size is None else size)
        self.largest = 0 if size is not None else min(m, n)
        if size is not None:
            self.workspace.fill(size, np.random.default_rng(order).permutation(n))
        self.rho = prior.mean((size if size is not None else first * min(m, n)), n)
        # ⟨y²⟩ in the engine's units
        self.mean_square = problem.signal_energy / problem.unit_energy / m or 1.0
        self.slab = m * self.mean_square / max(1.0, self.rho * n)  # the signal's variance, shared
        self.temperature = HOT * self.mean_square
        self.hump = 0.0  # where the slab has its two humps; 0: it has one
        self.signs = np.zeros(n)
        self.held = (math.nan, math.nan)  # the ridge and the hump that the tableau has
        self.state = "trapped"
        self.crowded = True
        self.mean_size = 0.0
        self.log_evidence = -math.inf
        self.acceptance = 1.0
        self.allowance = Allowance()
        self.log: list[tuple[float, float, float, float, float, float]] = []

    @property
    def n_inside(self) -> int:
        """K, the present size of the support."""
        return int(self.workspace.tableau.counts[SIZE])

    def cap(self, most: int | None) -> None:
        """Allow supports of at most ``most`` columns, where the size is free."""
        if most is not None and self.largest:
            self.largest = min(self.largest, most)

    def set_slab(self, variance: float, hump: float, signs: NDArray[np.float64]) -> None:
        """Change the slab; ``signs`` are those of the humps of the support's coefficients, by slot."""
        self.slab, self.hump = variance, hump
        self.signs[:] = 0.0
        if hump:
            self.signs[self.workspace.tableau.inside[: self.n_inside]] = signs
        self.held = (math.nan, math.nan)

    def sweeps(self, n_sweeps: int) -> Iterator[None]:
        """Run sweeps at the present temperature, ρ and slab; one at each step of the iteration."""
        ridge = self.temperature / self.slab
        pull = ridge * self.hump
        w = self.workspace
        if (ridge, self.hump) != self.held:
            w.set_ridge(ridge, pull * self.signs)
            self.held = ridge, self.hump
        n = self.problem.n_columns
        tally = new_tally()
        kernel = evidence_flip_direct if w.prefers_direct(self.acceptance) else evidence_flip
        log_odds = math.log(self.rho) - math.log1p(-self.rho)
        law = (1.0 / self.temperature, math.log(ridge), log_odds, pull, self.signs)
        for sweep in range(1, n_sweeps + 1):
            if sweep > 1 and not self.allowance.more():
                break
            while tally[PROPOSED] < sweep * n:
                stop = min(sweep * n, int(tally[PROPOSED]) + w.chunk)
                w.run(kernel, self.generator, *law, self.largest, stop, tally)
            self.allowance.used += 1
            yield
        self.acceptance = tally[ACCEPTED] / max(1, tally[PROPOSED])

    def advance(self, n_sweeps: int) -> Moments:
        """Run sweeps under a slab of one hump, and note their moments."""
        w, m = self.workspace, self.problem.n_samples
        ridge = self.temperature / self.slab
        moments = Moments()
        total = self.problem.signal_energy / self.problem.unit_energy
        for _ in self.sweeps(n_sweeps):
            t = w.tableau
            k = int(t.counts[SIZE])
            x, u = t.x[:k], np.diagonal(t.U)[:k]
            freedom = k - ridge * float(u.sum())
            residual = max(0.0, total + 2.0 * float(t.values[ENERGY]) - ridge * float(x @ x))
            moments.sizes.append(k)
            moments.residual_variances.append(residual / max(m - freedom, 1e-9))
            moments.freedoms.append(m - freedom)
            if k:
                moments.slabs.append(float(np.mean(x**2 + self.temperature * u)))
        return moments

    def _learn(self, moments: Moments) -> None:
        """Expectation maximisation of ρ and σ², the latter smoothed."""
        self.rho = self.prior.mean(float(np.mean(moments.sizes)), self.problem.n_columns)
        if moments.slabs:
            self.slab = math.sqrt(self.slab * float(np.mean(moments.slabs)))

    def cool(self, tau: int) -> None:
        """Lower T until the plan is found, the noise is met, or nothing is left to do."""
        unit = self.mean_square
        slow = (CRITICAL / WINDOW) ** (1.0 / WINDOW_STEPS)
        behind = 0.0  # smoothed log of the residual variance over T
        lost = 0.0  # log evidence since it was highest
        step = 0.0  # by which log T fell last
        peak = self.temperature
        while self.temperature > COLD * unit and self.allowance.more():
            in_window = CRITICAL < self.temperature / unit <= WINDOW and behind > math.log(SETTLED)
            moments = self.advance(tau if in_window else max(2, tau // 3))
            ratio = float(np.mean(moments.residual_variances)) / self.temperature
            self._note(moments, ratio)
            self._learn(moments)
            behind += MEMORY * (math.log(max(ratio, 1e-12)) - behind)
            if self.known is not None:
                if self.temperature <= self.known:
                    self.state = "noise"
                    return
            elif ratio < FOUND and self._fits_exactly(self.workspace.support):
                self.state = "found"
                return
            # d(log evidence)/d(log T) = ½ (RSS/T − freedom), summed up over the way
            lost = max(0.0, lost + 0.5 * float(np.mean(moments.freedoms)) * (ratio - 1.0) * step)
            if self.temperature * math.exp(step) > WINDOW * unit:
                lost = 0.0  # what was lost on the fast way here was lost to haste
            if lost == 0.0:
                peak = self.temperature
            if self.known is None and lost > LOSS and self.temperature < WINDOW * unit:
                self.temperature = peak
                self.state = "noise"
                return
            step = -math.log(slow if in_window else FAST)
            self.temperature *= math.exp(-step)
            if self.known is not None:
                self.temperature = max(self.temperature, self.known)

    def seed(self, beliefs: Beliefs) -> None:
        """Begin at the columns that message passing names, if they represent the signal exactly."""
        support = np.flatnonzero(beliefs.probability > 0.5)
        unknown = math.nan
        self.log = [(T, k, unknown, rho, slab, unknown) for T, k, rho, slab in beliefs.log]
        if not self._fits_exactly(support):
            return
        workspace = self.workspace = Workspace(self.problem, self.exact.size)
        workspace.begin_at(self.exact)
        self.state = "found"
        self.temperature = COLD * self.mean_square
        self.rho = self.prior.mean(self.exact.size, self.problem.n_columns)
        self.slab = float(np.mean(workspace.tableau.x[: self.n_inside] ** 2))

    def _fits_exactly(self, support: NDArray[np.int64]) -> bool:
        """Whether least squares leaves nothing of the signal, and not by chance; keep what it needs.

        f degrees of freedom of a signal without structure are left with a fraction below δ of it with
        probability about δ^(f/2), and there are C(N, K) supports to choose from.
        """
        if support.size >= self.problem.n_samples:
            return False
        workspace = Workspace(self.problem, support.size)
        for j in support:
            workspace.add(int(j))  # or not, if those before represent it
        support = workspace.support
        n, k = self.problem.n_columns, support.size
        x, energy = self.problem.least_squares(support)
        fraction = 2.0 * energy / (self.problem.signal_energy or 1.0)
        if fraction >= 2e-12:
            return False
        freedom = self.problem.n_samples - k
        by_chance = 0.5 * freedom * math.log(max(fraction, 1e-28)) + log_choose(n, k)
        if by_chance > -10.0:
            return False
        size = np.abs(x) * self.problem.column_norms[support]
        self.exact = support[size > 1e-7 * np.max(size, initial=0.0)]
        return True

    def _note(self, moments: Moments, ratio: float) -> None:
        mean_size = float(np.mean(moments.sizes))
        row = (self.temperature, mean_size, ratio, self.rho, self.slab, self.acceptance)
        self.log.append(row)
        t = self.temperature / self.mean_square
        self.bar.set_postfix_str(f"T = {t:.1e} ⟨y²⟩, {mean_size:.0f} columns", refresh=False)
        self.bar.update()

    @property
    def rank(self) -> tuple[bool, float]:
        """Attempts in order of trust: one that found the plan, then by evidence."""
        return self.state != "found", -self.log_evidence

    def settle(self, n_sweeps: int) -> None:
        """Adjust T and the hyperparameters to each other; note the evidence."""
        for _ in range(10):
            if not self.allowance.more():
                break
            moments = self.advance(n_sweeps)
            ratio = float(np.mean(moments.residual_variances)) / self.temperature
            self._note(moments, ratio)
            self._learn(moments)
            self.slab = max(
                self.slab, STANDS_OUT * math.log(self.problem.n_columns) * self.temperature
            )
            if self.known is None:
                self.temperature *= min(2.0, max(0.5, ratio))
        self.allowance = Allowance()
        self.mean_size = float(np.mean(moments.sizes))
        self.crowded = self.mean_size > CROWDED * self.problem.n_samples
        self.log_evidence = self._log_joint()

    def _log_joint(self) -> float:
        """Log P(y, S) of the present support, coefficients integrated out."""
        self.advance(1)
        t = self.workspace.tableau
        n, k = self.problem.n_columns, int(t.counts[SIZE])
        log_det = np.linalg.slogdet(self.workspace.inverse)[1]
        T = self.temperature
        log_likelihood = 0.5 * (log_det + k * math.log(T / self.slab))
        log_likelihood -= 0.5 * self.problem.n_samples * math.log(2.0 * math.pi * T)
        log_likelihood -= (self.problem.unit_signal + float(t.values[ENERGY])) / T
        return log_likelihood + k * math.log(self.rho) + (n - k) * math.log1p(-self.rho)
