"""The posterior of evidence annealing: draws of supports together with ρ, σ² and the noise level."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.workspace import Workspace
from l0anneal.problem.admissibility import PIVOT
from l0anneal.samplers.evidence.chain import EvidenceChain
from l0anneal.samplers.evidence.result import EvidenceResult, EvidenceSchedule
from l0anneal.samplers.evidence.slab import Slab
from l0anneal.samplers.result import fitted
from l0anneal.samplers.run import Budget, RunStopped

__all__ = ["PROPOSALS", "Posterior"]

BURN_IN = 20  # draws that are not averaged, if there is time for more
PROPOSALS = 400  # least number between two draws; with few columns, sweeps take almost no time
KIN = 0.5  # columns with a larger correlation belong to one group
FAINT = 0.1  # a column with a lower probability does not start a group


class Posterior:
    """Averages over a chain that has settled.

    If an exact representation was found, there is no noise level to draw, and ρ, σ² and T stay
    fixed.
    """

    def __init__(self, chain: EvidenceChain) -> None:
        self.chain = chain
        self.rng = np.random.default_rng(chain.draws)
        self.slab = Slab(chain.slab)
        self._clear()

    def _clear(self) -> None:
        n = self.chain.problem.n_columns
        self.chosen, self.first, self.second = np.zeros(n), np.zeros(n), np.zeros(n)
        self.sizes = np.zeros(n + 1)
        self.noise = self.rho = 0.0
        self.counted = 0

    def sample(self, n_draws: int, budget: Budget) -> None:
        """Average over ``n_draws`` draws after the burn-in, or as many as the budget allows."""
        chain = self.chain
        chain.budget = chain.run.budget()
        if chain.state != "found":
            chain.cap(max(chain.problem.n_samples // 2, chain.n_inside, 1))
        with suppress(RunStopped):  # the draws so far are counted
            self._sample(n_draws, budget)
        if self.counted == 0:
            chain.workspace.pause = lambda: None  # one average, also of an interrupted run
            self._count()
        for total in (self.chosen, self.first, self.second, self.sizes):
            total /= self.counted
        self.noise /= self.counted
        self.rho /= self.counted

    def _sample(self, n_draws: int, budget: Budget) -> None:
        chain = self.chain
        noisy = chain.state != "found"
        burn_in = BURN_IN if noisy else 0
        between = max(1, PROPOSALS // chain.problem.n_columns)
        while budget.used < burn_in + n_draws and budget.more():
            if budget.used == burn_in:
                self._clear()
            budget.used += 1
            for _ in chain.sweeps(between):
                pass
            self._count()
            if noisy:
                self._draw()
            chain.run.advance(1, f"{budget.used} draws")

    def _count(self) -> None:
        chain = self.chain
        p, mean, square = self._conditional()
        self.counted += 1
        self.chosen += p
        self.first += p * mean
        self.second += p * square
        self.sizes[chain.n_inside] += 1
        self.noise += chain.temperature
        self.rho += chain.rho

    def _draw(self) -> None:
        """Make Gibbs steps: ρ given the size, the coefficients, and from them the slab and T.

        The priors are a Beta distribution for ρ, a log-uniform one for T, and that of `Slab` for
        the slab.
        """
        chain, rng = self.chain, self.rng
        workspace, k = chain.workspace, chain.n_inside
        n, m = chain.problem.n_columns, chain.problem.n_samples
        if chain.prior.fixed is None:
            draw = rng.beta(k + chain.prior.a, n - k + chain.prior.b)
            chain.rho = float(min(max(draw, 1e-12), 1 - 1e-12))
        z = rng.standard_normal(k)
        factor = np.linalg.cholesky(workspace.inverse)
        x = workspace.coefficients + math.sqrt(chain.temperature) * (factor @ z)
        ridge, held_to = (
            chain.temperature / chain.slab,
            chain.hump * chain.signs[workspace.inside_columns],
        )
        # ½‖y − Ax‖² + ½λ‖x − held_to‖², twice
        total = 2.0 * (chain.problem.unit_signal + workspace.unit_energy)
        total += chain.temperature * float(z @ z) + ridge * float(held_to @ held_to)
        residual = total - ridge * float((x - held_to) @ (x - held_to))
        signs = self.slab.draw(x, rng)
        chain.set_slab(self.slab.v, self.slab.m, signs)
        if chain.known is None:
            least = 1e-12 * m * chain.mean_square
            chain.temperature = max(residual, least) / float(rng.chisquare(m))

    def _conditional(self) -> tuple[NDArray[np.float64], ...]:
        """Return each column's probability given the others, and the moments of its coefficient.

        Averages of these conditional expectations have less variance than averages of the draws.
        """
        chain, workspace = self.chain, self.chain.workspace
        workspace.complete()
        n, k = chain.problem.n_columns, workspace.size
        inside, outside = workspace.inside_columns, workspace.outside_columns
        T, ridge = chain.temperature, chain.temperature / chain.slab
        pull = ridge * chain.hump
        # squared norm of each column and its correlation with the signal, given the others
        gamma, r = np.empty(n), np.empty(n)
        gamma[inside] = 1.0 / workspace.inverse_diagonal
        r[inside] = workspace.coefficients * gamma[inside] - pull * chain.signs[inside]
        gamma[outside], r[outside] = workspace.outside_distances, workspace.outside_correlations
        open_ = gamma > PIVOT * workspace.tableau.diag
        gamma = np.where(open_, gamma, 1.0)
        lean = pull * r / (gamma * T)
        to_hump = pull * np.tanh(lean)  # averaged over the sign
        mean = (r + to_hump) / gamma
        square = (r**2 + pull**2 + 2.0 * r * to_hump) / gamma**2 + T / gamma
        if chain.size is not None:
            p = np.zeros(n)
            p[inside] = 1.0  # at a fixed size no column can be flipped alone
        else:
            log_odds = math.log(chain.rho) - math.log1p(-chain.rho)
            log_odds += 0.5 * r**2 / (gamma * T) - 0.5 * np.log(gamma / ridge)
            log_odds += np.logaddexp(lean, -lean) - math.log(2.0)
            log_odds += 0.5 * pull**2 * (1.0 / gamma - 1.0 / ridge) / T
            p = np.where(open_, 0.5 * (1.0 + np.tanh(0.5 * log_odds)), 0.0)
            if k >= chain.largest:
                p[outside] = 0.0  # no further column is allowed
        return p, mean, square

    def _likely(self) -> NDArray[np.int64]:
        """Return the likely columns, and the likeliest column of each group that is likely.

        If columns are correlated, the data may say that one of them belongs to the support without
        saying which one. Then no column has a probability above one half, but the sum of their
        probabilities is above one half.
        """
        taken = self.chosen > 0.5
        support = np.flatnonzero(taken).tolist()
        for j in support:
            taken |= self._kin(j)
        for j in np.argsort(-self.chosen, kind="stable"):
            if self.chosen[j] < FAINT:
                break
            if not taken[j]:
                group = self._kin(int(j)) & ~taken
                taken |= group
                if float(self.chosen[group].sum()) > 0.5:
                    support.append(int(j))
        # two columns may both be likely although least squares cannot tell them apart
        workspace = Workspace(self.chain.problem, len(support))
        for j in sorted(support, key=lambda j: -self.chosen[j]):
            workspace.add(j)
        return workspace.support

    def _kin(self, j: int) -> NDArray[np.bool_]:
        """Return a mask of column j and the columns correlated with it."""
        kin: NDArray[np.bool_] = np.abs(self.chain.problem.gram_row(j)) > KIN
        kin[j] = True
        return kin

    def result(self, schedule: EvidenceSchedule, record: dict[str, Any]) -> EvidenceResult:
        """Return the result, in the caller's units and with least squares on the chosen columns."""
        chain, problem = self.chain, self.chain.problem
        every = np.arange(problem.n_columns)
        if chain.state == "found":
            support = chain.exact
        elif chain.size is None:
            support = self._likely()
        else:
            support = np.sort(np.argsort(-self.chosen, kind="stable")[: chain.size])
        spread = np.sqrt(np.maximum(self.second - self.first**2, 0.0))
        log = np.array(chain.log).reshape(-1, 6)
        log[:, 0] *= problem.unit_energy
        largest = int(np.max(np.flatnonzero(self.sizes), initial=0))
        return EvidenceResult(
            **fitted(problem, support.astype(np.int64)),
            **record,
            state=chain.state,
            inclusion_probability=self.chosen,
            size_posterior=self.sizes[: largest + 1],
            averaged_coef=problem.from_unit_coef(self.first, every),
            coef_std=np.abs(problem.from_unit_coef(spread, every)),
            noise_variance=self.noise * problem.unit_energy if chain.state != "found" else 0.0,
            rho=self.rho if chain.prior.fixed is None else chain.prior.fixed,
            log=log,
            schedule=schedule,
        )
