"""One attempt of evidence annealing: a chain that is cooled while it learns ρ and σ²."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.counts import log_choose
from l0anneal.engine.moves.evidence_flip import evidence_flip
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.rng import stream
from l0anneal.engine.sweep import Sweeps
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.message_passing import Beliefs
from l0anneal.samplers.run import Run

__all__ = ["EvidenceChain", "Model", "Prior"]

# temperatures are in units of ⟨y²⟩ = ‖y‖²/M
HOT, WINDOW, CRITICAL, COLD = 3.0, 1.0, 1e-3, 1e-9
WINDOW_STEPS = 100  # between WINDOW and CRITICAL, where recovery is decided
FAST = 0.6  # the factor between temperatures elsewhere
FOUND = 0.1  # residual variance, as a fraction of T, below which an exact representation is likely
CROWDED = 0.25  # with more columns than this fraction of M, the noise level may be spurious
LOSS = 10.0  # loss of log evidence at which T counts as below the noise level
# At the noise level many small coefficients explain the data as well as a few large ones do. A
# sparse signal has coefficients that stand out: σ² is kept above this number times T log N. (A
# column can be told from noise if its squared coefficient exceeds about 2 T log N.)
STANDS_OUT = 4.0
MEMORY = 0.3  # weight of the newest temperature in the smoothed residual variance
SETTLED = 0.5  # while the residual variance is below this fraction of T, cooling may be fast


@dataclass(frozen=True)
class Prior:
    """The prior on the probability of a column: a Beta distribution, or a fixed value."""

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
    """What expectation maximisation and the search for the noise level need of each sweep."""

    sizes: list[int] = field(default_factory=list)
    residual_variances: list[float] = field(default_factory=list)
    slabs: list[float] = field(default_factory=list)
    freedoms: list[float] = field(default_factory=list)  # of the residual


@dataclass(frozen=True)
class Model:
    """The problem, and what the caller knows about the answer."""

    problem: SparseProblem
    size: int | None
    prior: Prior
    known: float | None  # the noise variance in the engine's units, if it is given


class EvidenceChain:
    """One attempt: cool, then settle. Temperatures are in the engine's units."""

    def __init__(
        self,
        run: Run,
        model: Model,
        first: float,
        seeds: np.random.SeedSequence,
    ) -> None:
        problem, size, prior = model.problem, model.size, model.prior
        self.problem, self.size, self.prior, self.known = problem, size, prior, model.known
        self.run = run
        n, m = problem.n_columns, problem.n_samples
        order, flips, self.draws = seeds.spawn(3)  # the last stream is for the posterior
        self.generator = stream(flips)
        self.workspace = run.workspace(problem, 64 if size is None else size)
        self.largest = 0 if size is not None else min(m, n)
        if size is not None:
            self.workspace.fill(size, np.random.default_rng(order).permutation(n))
        self.rho = prior.mean((size if size is not None else first * min(m, n)), n)
        # ⟨y²⟩ in the engine's units
        self.mean_square = problem.signal_energy / problem.unit_energy / m or 1.0
        self.slab = m * self.mean_square / max(1.0, self.rho * n)  # the signal's variance, shared
        self.temperature = HOT * self.mean_square
        self.hump = 0.0  # the slab has two humps, at ± this number, or one if it is 0
        self.signs = np.zeros(n)
        self.held = (math.nan, math.nan)  # the ridge and the hump that the tableau has now
        self.state = "trapped"
        self.crowded = True
        self.mean_size = 0.0
        self.log_evidence = -math.inf
        self.acceptance = 1.0
        self.budget = run.budget()
        self.log: list[tuple[float, float, float, float, float, float]] = []

    @property
    def n_inside(self) -> int:
        """K, the present size of the support."""
        return self.workspace.size

    def cap(self, most: int | None) -> None:
        """Allow supports of at most ``most`` columns, where the size is free."""
        if most is not None and self.largest:
            self.largest = min(self.largest, most)

    def set_slab(self, variance: float, hump: float, signs: NDArray[np.float64]) -> None:
        """Change the slab; ``signs``, by slot, tell which hump each coefficient belongs to."""
        self.slab, self.hump = variance, hump
        self.signs[:] = 0.0
        if hump:
            self.signs[self.workspace.inside_columns] = signs
        self.held = (math.nan, math.nan)

    def sweeps(self, n_sweeps: int) -> Iterator[None]:
        """Run sweeps at the present temperature, ρ and slab, one at each step of the iteration."""
        ridge = self.temperature / self.slab
        pull = ridge * self.hump
        w = self.workspace
        if (ridge, self.hump) != self.held:
            w.set_ridge(ridge, pull * self.signs)
            self.held = ridge, self.hump
        kernel = evidence_flip_direct if w.prefers_direct(self.acceptance) else evidence_flip
        log_odds = math.log(self.rho) - math.log1p(-self.rho)
        law = (1.0 / self.temperature, math.log(ridge), log_odds, pull, self.signs, self.largest)
        sweeps = Sweeps(w, kernel, self.generator, *law, n_sweeps=n_sweeps, record=False)
        for _ in sweeps.each():
            self.budget.used += 1
            yield
            if not self.budget.more():
                break
        self.acceptance = sweeps.acceptance

    def advance(self, n_sweeps: int) -> Moments:
        """Run sweeps under a slab of one hump; return their moments."""
        w, m = self.workspace, self.problem.n_samples
        ridge = self.temperature / self.slab
        moments = Moments()
        total = self.problem.signal_energy / self.problem.unit_energy
        for _ in self.sweeps(n_sweeps):
            k, x, u = w.size, w.coefficients, w.inverse_diagonal
            freedom = k - ridge * float(u.sum())
            residual = max(0.0, total + 2.0 * w.unit_energy - ridge * float(x @ x))
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
        """Lower T until an exact fit is found, the noise level is reached, or T is negligible."""
        unit = self.mean_square
        slow = (CRITICAL / WINDOW) ** (1.0 / WINDOW_STEPS)
        behind = 0.0  # smoothed log of the ratio of residual variance to T
        lost = 0.0  # log evidence lost since its maximum
        step = 0.0  # by how much log T fell at the last step
        peak = self.temperature
        while self.temperature > COLD * unit and self.budget.more():
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
            # d(log evidence)/d(log T) = ½ (RSS/T − freedom), summed over the steps
            lost = max(0.0, lost + 0.5 * float(np.mean(moments.freedoms)) * (ratio - 1.0) * step)
            if self.temperature * math.exp(step) > WINDOW * unit:
                lost = 0.0  # the fast cooling up to here is out of equilibrium
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
        """Begin at the columns that message passing found, if they represent the signal exactly."""
        support = np.flatnonzero(beliefs.probability > 0.5)
        unknown = math.nan
        self.log = [(T, k, unknown, rho, slab, unknown) for T, k, rho, slab in beliefs.log]
        if not self._fits_exactly(support):
            return
        workspace = self.workspace = self.run.workspace(self.problem, self.exact.size)
        workspace.begin_at(self.exact)
        self.state = "found"
        self.temperature = COLD * self.mean_square
        self.rho = self.prior.mean(self.exact.size, self.problem.n_columns)
        self.slab = float(np.mean(workspace.coefficients**2))

    def _fits_exactly(self, support: NDArray[np.int64]) -> bool:
        """Whether least squares on the support fits the signal exactly, and not by chance.

        For a signal without structure, a residual with f degrees of freedom holds less than a
        fraction δ of the signal with a probability of about δ^(f/2), and there are C(N, K) supports
        to choose from. If the fit is exact, ``exact`` holds the columns that are needed.
        """
        if support.size >= self.problem.n_samples:
            return False
        workspace = Workspace(self.problem, support.size)
        for j in support:
            workspace.add(int(j))  # skips a column in the span of the previous ones
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
        self.run.advance(1, f"T = {t:.1e} ⟨y²⟩, {mean_size:.0f} columns")

    @property
    def rank(self) -> tuple[bool, float]:
        """A key that sorts attempts: an exact representation first, then by evidence."""
        return self.state != "found", -self.log_evidence

    def settle(self, n_sweeps: int) -> None:
        """Let T and the hyperparameters converge, then compute the evidence."""
        for _ in range(10):
            if not self.budget.more():
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
        self.budget = self.run.budget()
        self.mean_size = float(np.mean(moments.sizes))
        self.crowded = self.mean_size > CROWDED * self.problem.n_samples
        self.log_evidence = self._log_joint()

    def _log_joint(self) -> float:
        """Log P(y, S) of the present support, coefficients integrated out."""
        self.advance(1)
        n, k = self.problem.n_columns, self.n_inside
        log_det = np.linalg.slogdet(self.workspace.inverse)[1]
        T = self.temperature
        log_likelihood = 0.5 * (log_det + k * math.log(T / self.slab))
        log_likelihood -= 0.5 * self.problem.n_samples * math.log(2.0 * math.pi * T)
        log_likelihood -= (self.problem.unit_signal + self.workspace.unit_energy) / T
        return log_likelihood + k * math.log(self.rho) + (n - k) * math.log1p(-self.rho)
