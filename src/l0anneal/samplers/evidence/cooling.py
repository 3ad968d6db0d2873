"""One attempt of evidence annealing: a chain that is cooled while it learns ρ and the slab."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.chance import exact_columns
from l0anneal.samplers.evidence.chain import EvidenceChain, Model
from l0anneal.samplers.evidence.independent import independent
from l0anneal.samplers.evidence.message_passing import Beliefs
from l0anneal.samplers.evidence.prior import STANDS_OUT
from l0anneal.samplers.run import Run

__all__ = ["CoolingChain"]

# temperatures are in units of ⟨y²⟩ = ‖y‖²/M
HOT, WINDOW, CRITICAL, COLD = 3.0, 1.0, 1e-3, 1e-9
WINDOW_STEPS = 100  # between WINDOW and CRITICAL, where recovery is decided
FAST = 0.6  # the factor between temperatures elsewhere
FOUND = 0.1  # residual variance, as a fraction of T, below which an exact representation is likely
EXACT = 2e-12  # part of the signal that an exact representation may leave
CROWDED = 0.25  # with more columns than this fraction of M, the noise level may be spurious
LOSS = 10.0  # loss of log evidence at which T counts as below the noise level
MEMORY = 0.3  # weight of the newest temperature in the smoothed residual variance
CONVERGED = 0.03  # deviation of the residual variance from T at which the chain has settled
SETTLED = 0.5  # while the residual variance is below this fraction of T, cooling may be fast


@dataclass
class Moments:
    """What expectation maximisation and the search for the noise level need of each sweep."""

    sizes: list[int] = field(default_factory=list)
    residual_variances: list[float] = field(default_factory=list)
    slabs: list[float] = field(default_factory=list)
    freedoms: list[float] = field(default_factory=list)  # of the residual


class CoolingChain(EvidenceChain):
    """One attempt: cool, then settle.

    While T falls, ρ and the slab follow by expectation maximisation. This search is a heuristic that
    finds a promising support; its hyperparameters are not those of the posterior, which is sampled
    afterwards under the prior of the model.
    """

    def __init__(self, run: Run, model: Model, first: float, seeds: np.random.SeedSequence) -> None:
        order, flips, _ = seeds.spawn(3)
        super().__init__(run, model, flips)
        problem, size = model.problem, model.size
        n, m = problem.n_columns, problem.n_samples
        if size is not None:
            self.workspace.fill(size, np.random.default_rng(order).permutation(n))
        self.known, self.mean_square = model.known, model.mean_square
        self._set_density(size if size is not None else first * min(m, n))
        self.slab = m * self.mean_square / max(1.0, self.rho * n)  # the signal's variance, shared
        self.temperature = max(HOT * self.mean_square, self.known or 0.0)
        self.stage = "cooling"  # for the progress bar
        self.state = "trapped"
        self.crowded = True
        self.mean_size = 0.0
        self.log_evidence = -math.inf
        self.log: list[tuple[float, float, float, float, float, float]] = []

    def _set_density(self, size: float) -> None:
        """Set ρ to that of a support of the given size."""
        prior, n = self.model.prior, self.problem.n_columns
        if prior.density is None:
            self.rho = math.nan
        elif isinstance(prior.density.rho, float):
            self.rho = prior.density.rho
        else:
            self.rho = (size + 1.0) / (n + 2.0)
        if prior.density is not None:
            self.size_odds = np.full(
                self.size_odds.size, math.log(self.rho) - math.log1p(-self.rho)
            )

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
        self._set_density(float(np.mean(moments.sizes)))
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
        before = np.zeros(0, dtype=np.int64)
        while self.temperature > COLD * unit and self.budget.more():
            in_window = CRITICAL < self.temperature / unit <= WINDOW and behind > math.log(SETTLED)
            self.workspace.bring_support(before)  # the rows of columns that stay save time
            before = self.workspace.support
            moments = self.advance(tau if in_window else max(2, tau // 3))
            ratio = float(np.mean(moments.residual_variances)) / self.temperature
            self._note(moments, ratio)
            self._learn(moments)
            behind += MEMORY * (math.log(max(ratio, 1e-12)) - behind)
            if self.known is not None:
                if self.temperature <= self.known:
                    self.state = "noise"
                    return
            elif ratio < FOUND and self.fits_exactly(self.workspace.support):
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
        if not self.fits_exactly(support):
            return
        workspace = self.workspace = self.run.workspace(self.problem, self.exact.size)
        workspace.begin_at(self.exact)
        self.state = "found"
        self.temperature = COLD * self.mean_square
        self._set_density(self.exact.size)
        self.slab = float(np.mean(workspace.coefficients**2))

    def fits_exactly(self, support: NDArray[np.int64]) -> bool:
        """Whether least squares on the support fits the signal exactly, and not by chance.

        If so, ``exact`` holds the columns that are needed. A signal of zeros needs none.
        """
        if not self.problem.signal_energy:
            self.exact = np.zeros(0, dtype=np.int64)
            return True
        if support.size >= self.problem.n_samples:
            return False
        exact = exact_columns(self.problem, independent(self.problem, support), EXACT)
        if exact is None:
            return False
        exact = self.model.prior.with_groups(exact)
        if not self.model.prior.allows(exact) or exact.size >= self.problem.n_samples:
            return False
        self.exact = exact
        return True

    def _note(self, moments: Moments, ratio: float) -> None:
        mean_size = float(np.mean(moments.sizes))
        row = (self.temperature, mean_size, ratio, self.rho, self.slab, self.acceptance)
        self.log.append(row)
        t = self.temperature / self.mean_square
        self.run.advance(1, f"{self.stage}, T = {t:.1e} ⟨y²⟩, {mean_size:.0f} columns")

    @property
    def rank(self) -> tuple[bool, float]:
        """A key that sorts attempts: an exact representation first, then by evidence."""
        return self.state != "found", -self.log_evidence

    def settle(self, n_sweeps: int) -> None:
        """Let T and the hyperparameters converge, then compute the evidence."""
        self.stage = self.stage.replace("cooling", "settling")
        self.workspace.bring_support()
        for i in range(10):
            if not self.budget.more():
                break
            moments = self.advance(n_sweeps)
            ratio = float(np.mean(moments.residual_variances)) / self.temperature
            self._note(moments, ratio)
            self._learn(moments)
            # at the noise level many small coefficients explain the data as well as a few large ones do;
            # a sparse signal has coefficients that stand out
            self.slab = max(
                self.slab, STANDS_OUT * math.log(self.problem.n_columns) * self.temperature
            )
            if self.known is None:
                self.temperature *= min(2.0, max(0.5, ratio))
            if i >= 2 and abs(ratio - 1.0) < CONVERGED:
                break
        self.budget = self.run.budget()
        self.mean_size = float(np.mean(moments.sizes))
        self.crowded = self.mean_size > CROWDED * self.problem.n_samples
        self.log_evidence = self.log_joint()
