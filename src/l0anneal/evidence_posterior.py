"""The posterior of evidence annealing: supports sampled together with ρ, σ² and the noise level."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from l0anneal.evidence_chain import Allowance, EvidenceChain
from l0anneal.evidence_result import EvidenceResult, EvidenceSchedule
from l0anneal.tableau import ENERGY, PIVOT, SIZE

__all__ = ["Posterior"]

BURN_IN = 20  # sweeps before those that count, if there is time for more
KIN = 0.5  # columns correlated more than this belong together
FAINT = 0.1  # no group is looked for around a less likely column
SLAB_WEIGHT = 6.0  # the prior on σ² weighs as much as so many columns


class Posterior:
    """Averages over a chain that has settled.

    Where the plan was found there is no noise level to be sampled: ρ, σ² and T stay as they are.
    """

    def __init__(self, chain: EvidenceChain) -> None:
        self.chain = chain
        self.rng = np.random.default_rng(chain.draws)
        self.centre = chain.slab  # of the prior on σ²
        self._clear()

    def _clear(self) -> None:
        n = self.chain.problem.n_columns
        self.chosen, self.first, self.second = np.zeros(n), np.zeros(n), np.zeros(n)
        self.sizes = np.zeros(n + 1)
        self.noise = self.rho = 0.0
        self.counted = 0

    def sample(self, n_samples: int, allowance: Allowance) -> None:
        """Average over ``n_samples`` sweeps after the burn-in, or as many as are allowed."""
        chain = self.chain
        chain.allowance = Allowance()
        noisy = chain.state != "found"
        burn_in = BURN_IN if noisy else 0
        if noisy:
            chain.cap(max(chain.problem.n_samples // 2, chain.n_ones, 1))
        while allowance.used < burn_in + n_samples and allowance.more():
            if allowance.used == burn_in:
                self._clear()
            allowance.used += 1
            chain.advance(1)
            self._count()
            if noisy:
                self._draw()
        for total in (self.chosen, self.first, self.second, self.sizes):
            total /= self.counted
        self.noise /= self.counted
        self.rho /= self.counted

    def _count(self) -> None:
        chain = self.chain
        p, mean, square = self._conditional()
        self.counted += 1
        self.chosen += p
        self.first += p * mean
        self.second += p * square
        self.sizes[chain.n_ones] += 1
        self.noise += chain.temperature
        self.rho += chain.rho

    def _draw(self) -> None:
        """Gibbs steps: ρ given the size; coefficients; from them σ² and T.

        The priors are Beta on ρ, log-uniform on T, and on σ² an inverse χ² about what expectation
        maximisation found.
        """
        chain, rng = self.chain, self.rng
        t, k = chain.workspace.tableau, chain.n_ones
        n, m = chain.problem.n_columns, chain.problem.n_samples
        if chain.prior.fixed is None:
            draw = rng.beta(k + chain.prior.a, n - k + chain.prior.b)
            chain.rho = float(min(max(draw, 1e-12), 1 - 1e-12))
        z = rng.standard_normal(k)
        factor = np.linalg.cholesky(chain.workspace.inverse)
        x = t.x[:k] + math.sqrt(chain.temperature) * (factor @ z)
        square = float(x @ x)
        chain.slab = (SLAB_WEIGHT * self.centre + square) / float(rng.chisquare(SLAB_WEIGHT + k))
        if chain.known is None:
            residual = 2.0 * (chain.problem.unit_signal + float(t.values[ENERGY]))
            residual += chain.temperature * float(z @ z) - chain.ridge * square
            least = 1e-12 * m * chain.mean_square
            chain.temperature = max(residual, least) / float(rng.chisquare(m))

    def _conditional(self) -> tuple[NDArray[np.float64], ...]:
        """Each column's probability given the others, and its coefficient's moments if chosen.

        Averages of these conditional expectations have less variance than averages of the samples.
        """
        self.chain.workspace.complete()
        t = self.chain.workspace.tableau
        k = int(t.counts[SIZE])
        ones, zeros = t.ones[:k], t.zeros[: t.b.size - k]
        T = self.chain.temperature
        log_ridge = math.log(T / self.chain.slab)
        log_odds = math.log(self.chain.rho) - math.log1p(-self.chain.rho)
        u, x = np.diagonal(t.U)[:k], t.x[:k]
        gamma, r = t.gamma[: zeros.size], t.r[: zeros.size]
        p, mean, variance = np.zeros(t.b.size), np.zeros(t.b.size), np.zeros(t.b.size)
        mean[ones], variance[ones] = x, T * u
        open_ = gamma > PIVOT * t.diag[zeros]
        safe = np.where(open_, gamma, 1.0)
        mean[zeros], variance[zeros] = (
            np.where(open_, r / safe, 0.0),
            np.where(open_, T / safe, 0.0),
        )
        if self.chain.size is not None:
            p[ones] = 1.0  # at fixed size a column cannot be flipped alone
        else:
            out = -0.5 * (np.log(u) + log_ridge) - 0.5 * x**2 / (u * T) - log_odds
            into = log_odds - 0.5 * (np.log(safe) - log_ridge) + 0.5 * r**2 / (safe * T)
            p[ones] = 0.5 * (1.0 + np.tanh(-0.5 * out))
            p[zeros] = np.where(open_, 0.5 * (1.0 + np.tanh(0.5 * into)), 0.0)
        return p, mean, mean**2 + variance

    def _likely(self) -> NDArray[np.int64]:
        """Columns more likely in than out, and of groups that hold one likely, the likeliest each.

        Where neighbours are correlated the data may say that one of them is there without saying which:
        then none has a probability above one half, but together they do.
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
        return np.array(sorted(support), dtype=np.int64)

    def _kin(self, j: int) -> NDArray[np.bool_]:
        """Columns correlated with column j, and j itself."""
        kin: NDArray[np.bool_] = np.abs(self.chain.problem.gram_row(j)) > KIN
        kin[j] = True
        return kin

    def result(self, seed: int, schedule: EvidenceSchedule, seconds: float) -> EvidenceResult:
        """Back to the caller's units; coefficients by least squares on the chosen columns."""
        chain, problem = self.chain, self.chain.problem
        every = np.arange(problem.n_columns)
        if chain.state == "found":
            support = chain.exact
        elif chain.size is None:
            support = self._likely()
        else:
            support = np.sort(np.argsort(-self.chosen, kind="stable")[: chain.size])
        support = support.astype(np.int64)
        x, energy = problem.least_squares(support)
        coef = np.zeros(problem.n_columns)
        coef[support] = x
        spread = np.sqrt(np.maximum(self.second - self.first**2, 0.0))
        log = np.array(chain.log).reshape(-1, 6)
        unit = problem.unit_energy
        log[:, 0] *= unit
        largest = int(np.max(np.flatnonzero(self.sizes), initial=0))
        return EvidenceResult(
            support=support,
            coef=coef,
            energy=energy,
            n_samples=problem.n_samples,
            state=chain.state,
            inclusion_probability=self.chosen,
            size_posterior=self.sizes[: largest + 1],
            averaged_coef=problem.from_unit_coef(self.first, every),
            coef_std=np.abs(problem.from_unit_coef(spread, every)),
            noise_variance=self.noise * unit if chain.state != "found" else 0.0,
            rho=self.rho if chain.prior.fixed is None else chain.prior.fixed,
            log=log,
            schedule=schedule,
            seed=seed,
            seconds=seconds,
        )
