"""The posterior of evidence annealing: supports sampled together with ρ, σ² and the noise level."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.tableau import ENERGY, SIZE
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.admissibility import PIVOT
from l0anneal.samplers.evidence.chain import Allowance, EvidenceChain
from l0anneal.samplers.evidence.result import EvidenceResult, EvidenceSchedule
from l0anneal.samplers.evidence.slab import Slab

__all__ = ["PROPOSALS", "Posterior"]

BURN_IN = 20  # samples before those that count, if there is time for more
PROPOSALS = 400  # at least, between samples: where columns are few, sweeps cost next to nothing
KIN = 0.5  # columns correlated more than this belong together
FAINT = 0.1  # no group is looked for around a less likely column


class Posterior:
    """Averages over a chain that has settled.

    Where the plan was found there is no noise level to be sampled: ρ, σ² and T stay as they are.
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

    def sample(self, n_samples: int, allowance: Allowance) -> None:
        """Average over ``n_samples`` samples after the burn-in, or as many as are allowed."""
        chain = self.chain
        chain.allowance = Allowance()
        noisy = chain.state != "found"
        burn_in = BURN_IN if noisy else 0
        between = max(1, PROPOSALS // chain.problem.n_columns)
        if noisy:
            chain.cap(max(chain.problem.n_samples // 2, chain.n_inside, 1))
        while allowance.used < burn_in + n_samples and allowance.more():
            if allowance.used == burn_in:
                self._clear()
            allowance.used += 1
            for _ in chain.sweeps(between):
                pass
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
        self.sizes[chain.n_inside] += 1
        self.noise += chain.temperature
        self.rho += chain.rho

    def _draw(self) -> None:
        """Gibbs steps: ρ given the size; coefficients; from them the slab and T.

        The priors are Beta on ρ, log-uniform on T, and on the slab that of `Slab`.
        """
        chain, rng = self.chain, self.rng
        t, k = chain.workspace.tableau, chain.n_inside
        n, m = chain.problem.n_columns, chain.problem.n_samples
        if chain.prior.fixed is None:
            draw = rng.beta(k + chain.prior.a, n - k + chain.prior.b)
            chain.rho = float(min(max(draw, 1e-12), 1 - 1e-12))
        z = rng.standard_normal(k)
        factor = np.linalg.cholesky(chain.workspace.inverse)
        x = t.x[:k] + math.sqrt(chain.temperature) * (factor @ z)
        ridge, held_to = chain.temperature / chain.slab, chain.hump * chain.signs[t.inside[:k]]
        # ½‖y − Ax‖² + ½λ‖x − held_to‖², twice
        total = 2.0 * (chain.problem.unit_signal + float(t.values[ENERGY]))
        total += chain.temperature * float(z @ z) + ridge * float(held_to @ held_to)
        residual = total - ridge * float((x - held_to) @ (x - held_to))
        signs = self.slab.draw(x, rng)
        chain.set_slab(self.slab.v, self.slab.m, signs)
        if chain.known is None:
            least = 1e-12 * m * chain.mean_square
            chain.temperature = max(residual, least) / float(rng.chisquare(m))

    def _conditional(self) -> tuple[NDArray[np.float64], ...]:
        """Each column's probability given the others, and its coefficient's moments if chosen.

        Averages of these conditional expectations have less variance than averages of the samples.
        """
        chain = self.chain
        chain.workspace.complete()
        t = chain.workspace.tableau
        k = int(t.counts[SIZE])
        inside, outside = t.inside[:k], t.outside[: t.b.size - k]
        T, ridge = chain.temperature, chain.temperature / chain.slab
        pull = ridge * chain.hump
        # what is left of each column and its correlation with the signal off the others' span
        gamma, r = np.empty(t.b.size), np.empty(t.b.size)
        gamma[inside] = 1.0 / np.diagonal(t.U)[:k]
        r[inside] = t.x[:k] * gamma[inside] - pull * chain.signs[inside]
        gamma[outside], r[outside] = t.gamma[: outside.size], t.r[: outside.size]
        open_ = gamma > PIVOT * t.diag
        gamma = np.where(open_, gamma, 1.0)
        lean = pull * r / (gamma * T)
        to_hump = pull * np.tanh(lean)  # on average over the sign
        mean = (r + to_hump) / gamma
        square = (r**2 + pull**2 + 2.0 * r * to_hump) / gamma**2 + T / gamma
        if chain.size is not None:
            p = np.zeros(t.b.size)
            p[inside] = 1.0  # at fixed size a column cannot be flipped alone
        else:
            log_odds = math.log(chain.rho) - math.log1p(-chain.rho)
            log_odds += 0.5 * r**2 / (gamma * T) - 0.5 * np.log(gamma / ridge)
            log_odds += np.logaddexp(lean, -lean) - math.log(2.0)
            log_odds += 0.5 * pull**2 * (1.0 / gamma - 1.0 / ridge) / T
            p = np.where(open_, 0.5 * (1.0 + np.tanh(0.5 * log_odds)), 0.0)
            if k >= chain.largest:
                p[outside] = 0.0  # there is no room for another
        return p, mean, square

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
        # two columns may both be likely that least squares cannot tell from each other
        workspace = Workspace(self.chain.problem, len(support))
        for j in sorted(support, key=lambda j: -self.chosen[j]):
            workspace.add(j)
        return workspace.support

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
