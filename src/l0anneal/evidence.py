"""Evidence annealing: the support's size is free, and the noise level is the temperature.

The paper's measure weighs a support of fixed size by exp(−E/T) with E = min_x ½‖y − Ax‖². Here the
coefficients are not minimised over but integrated out, under a Gaussian slab of variance σ² on those
of the chosen unit-norm columns, and each column is chosen with prior probability ρ:

    P(S) ∝ (ρ/(1 − ρ))^|S|  det(I + G_SS/λ)^(−1/2)  exp(−E_λ(S)/T),      λ = T/σ²,
    E_λ(S) = min_x ½‖y − A_S x‖² + ½ λ‖x‖².

Three terms were added to the paper's. The *determinant* is the volume of coefficients that a support
offers: a support that explains y only with finely tuned coefficients pays for it. That is what
removes the paper's metastable state, which lives on the many wrong supports that fit y well with
useless coefficients. The *prior odds* let the size fluctuate, so that a column can come before
another goes, and ρ need not be known. The *ridge* keeps supports of any size, larger than M too, well
defined. As T → 0 at fixed size the minimisers are again the paper's.

T is lowered from above ⟨y²⟩. Meanwhile ρ and σ² follow by expectation maximisation, and the residual
variance RSS/(M − df) is watched. In a noiseless problem it vanishes against T once the plan is
found. In a noisy one it stays behind as T falls: there T is the noise, and sampling goes on there.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from l0anneal._blas import one_blas_thread
from l0anneal._compile import patience, tiny_problem, warm_up
from l0anneal.evidence_result import EvidenceResult, EvidenceSchedule
from l0anneal.moves import new_tally
from l0anneal.moves.evidence_flip import evidence_flip
from l0anneal.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.moves.outcome import ACCEPTED, PROPOSED
from l0anneal.pace import check_time_limit
from l0anneal.problem import SparseProblem
from l0anneal.rng import stream
from l0anneal.seeds import RandomState, child, seed_of
from l0anneal.tableau import ENERGY, PIVOT, SIZE
from l0anneal.workspace import Workspace

__all__ = ["evidence_anneal"]

# temperatures are in units of ⟨y²⟩ = ‖y‖²/M
HOT, WINDOW, CRITICAL, COLD = 3.0, 1.0, 1e-3, 1e-9
WINDOW_STEPS = 100  # between WINDOW and CRITICAL, where recovery is decided
# columns in the beginning, as a fraction of min(M, N): in the first attempt, and in the others, which
# find other plans for it
FIRST, LATER = 0.05, 0.4
FAST = 0.6  # the factor between temperatures elsewhere
FOUND = 0.1  # residual variance below this fraction of T: the plan is found
CROWDED = 0.25  # more columns than this fraction of M: the noise may be a trap's
LOSS = 10.0  # of log evidence, summed over temperatures: this is below the noise
# At the noise level many small coefficients explain the data as well as a few large ones do. A sparse
# signal is one whose coefficients stand out: σ² is at least this times T log N, twice the square at
# which a column is told from noise, and its prior there weighs as much as so many columns.
STANDS_OUT, SLAB_WEIGHT = 4.0, 6.0
BURN_IN = 20  # sweeps before those that count
MEMORY = 0.3  # weight of the newest temperature in the smoothed residual variance
SETTLED = 0.5  # below this one it is on its way there, and cooling may hurry


def evidence_anneal(
    problem: SparseProblem,
    n_nonzero: int | None = None,
    *,
    rho: float | tuple[float, float] | None = None,
    noise_variance: float | None = None,
    tau: int = 5,
    n_samples: int = 100,
    max_attempts: int | None = None,
    time_limit: float | None = None,
    schedule: EvidenceSchedule | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> EvidenceResult:
    """Find which columns matter, how many, and how sure that is, without being told anything.

    Parameters
    ----------
    problem : SparseProblem
        A and y.
    n_nonzero : int, optional
        Fix the support's size; by default it is free.
    rho : float or pair of floats, optional
        Prior probability of a column, or (a, b) of a Beta prior on it; by default it is learned
        under Beta(2, 25), which weighs as much as 27 columns of which 2 matter.
    noise_variance : float, optional
        The noise variance, if it is known; by default it is inferred.
    tau : int
        Sweeps at each temperature of the first attempt; each further one has twice as many.
    n_samples : int
        Sweeps at the final temperature that the posterior is averaged over.
    max_attempts : int, optional
        By default 4, or with a time limit as many as there is time for. An attempt that finds a plan
        shows it: the residual vanishes. One that ends at a noise level with few columns is believed;
        one with many may be a trap, so further attempts are made, each slower than the last.
    time_limit : float, optional
        Seconds, except the compilation of kernels; a fifth of them are kept for the sampling. It ends
        before if the plan is found, or a noise level that is believed.
    schedule : EvidenceSchedule, optional
        ``result.schedule`` of an earlier run, which with that run's seed gives it again exactly; in
        place of tau, n_samples, max_attempts and time_limit.
    random_state : None, int, SeedSequence or Generator
        One seed, one result.
    progress : bool
        Show a bar with the temperature and the support's size.

    Returns
    -------
    EvidenceResult

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem, evidence_anneal
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 100))
    >>> y = A[:, [5, 50]] @ [2.0, -1.0] + 0.3 * rng.standard_normal(60)
    >>> result = evidence_anneal(SparseProblem(A, y), random_state=0)
    >>> result.support
    array([ 5, 50])
    """
    size = None if n_nonzero is None else problem.check_size(n_nonzero)
    counts = {"tau": tau, "n_samples": n_samples}
    if max_attempts is not None:
        counts["max_attempts"] = max_attempts
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be an integer ≥ 1; got {value!r}")
    if noise_variance is not None and not (math.isfinite(noise_variance) and noise_variance > 0):
        raise ValueError(f"noise_variance must be positive and finite; got {noise_variance}")
    check_time_limit(time_limit)
    if schedule is not None and time_limit is not None:
        raise ValueError("give a schedule or a time limit, not both: a schedule has its own length")
    prior = _Prior.of(rho)
    seed = seed_of(random_state)
    _warm_up()
    began = time.perf_counter()
    plan = schedule or EvidenceSchedule((), (), n_samples)
    ends = [math.inf] * 2  # when cooling and sampling have to stop
    if time_limit is not None:
        ends = [began + 0.8 * time_limit, began + 0.97 * time_limit]
    if max_attempts is None:
        max_attempts = 4 if time_limit is None else 10**6
    with one_blas_thread(), tqdm(unit="step", disable=not progress, leave=False) as bar:
        known = None
        if noise_variance is not None and problem.signal_energy:
            known = noise_variance / problem.unit_energy
        best = None
        taus: list[int] = []
        swept: list[int] = []
        while True:
            attempt = len(taus)
            taus.append(plan.tau[attempt] if schedule else tau)
            allowed = plan.sweeps[attempt] if schedule else None
            first = LATER if attempt else FIRST
            run = _Run(problem, size, prior, known, first, child(seed, attempt), bar)
            run.allowance = _Allowance(ends[0], allowed)
            start = time.perf_counter()
            run.cool(taus[-1])
            swept.append(run.allowance.used)
            run.allowance = _Allowance()
            if run.state != "found":
                run.settle(taus[-1])
            # noise that a slower attempt confirms is noise; what it undercuts was a trap
            confirmed = best is not None and run.temperature > 0.9 * best.temperature
            if best is None or run.rank < best.rank:
                best = run
            if schedule:
                done = len(taus) == len(plan.tau)
            else:
                now = time.perf_counter()
                slower = (ends[0] - now) / max(now - start, 1e-9)  # as there is time for
                tau = int(tau * min(2.0, slower)) if slower < 2.0 else 2 * tau
                done = slower < 0.5 or tau < 2 or len(taus) == max_attempts
            believed = run.state == "noise" and (not run.crowded or known is not None)
            if run.state == "found" or believed:
                break
            if done:
                if best.crowded and not confirmed:
                    best.state = "trapped"
                break
        if best.state != "found" and best.crowded and size is None:
            # among so many columns noise is fitted, too: try with fewer than it can be told from
            run = _Run(problem, size, prior, known, FIRST, child(seed, len(taus)), bar)
            run.largest = max(1, problem.n_samples // 2)
            run.cool(taus[0])
            run.settle(taus[0])
            if best.mean_size > run.largest or run.rank < best.rank:
                best = run
        best.allowance = _Allowance(ends[1], plan.n_samples if schedule else None)
        n_samples = best.sample(plan.n_samples)
        executed = EvidenceSchedule(tuple(taus), tuple(swept), n_samples)
        return best.result(seed, executed, time.perf_counter() - began)


@cache
def _warm_up() -> None:
    """Compile what only this sampler uses."""
    warm_up()
    with patience():
        workspace = Workspace(tiny_problem(), 2)
        state = stream(np.random.SeedSequence(0))
        for kernel in (evidence_flip, evidence_flip_direct):
            workspace.run(kernel, state, 1.0, 0.0, 0.0, 2, 4, new_tally())


class _Allowance:
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
class _Prior:
    """Of a column's probability: a Beta law, or a fixed value."""

    a: float = 2.0
    b: float = 25.0
    fixed: float | None = None

    @classmethod
    def of(cls, rho: Any) -> _Prior:
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
class _Moments:
    """Sums over sweeps of what expectation maximisation and the noise gauge need."""

    sizes: list[int] = field(default_factory=list)
    residual_variances: list[float] = field(default_factory=list)
    slabs: list[float] = field(default_factory=list)
    freedoms: list[float] = field(default_factory=list)  # of the residual


class _Run:
    """One attempt: cool, then sample. Temperatures here are in the engine's units."""

    def __init__(
        self,
        problem: SparseProblem,
        size: int | None,
        prior: _Prior,
        known: float | None,
        first: float,
        seed: np.random.SeedSequence,
        bar: Any,
    ) -> None:
        self.problem, self.size, self.prior, self.known, self.bar = problem, size, prior, known, bar
        n, m = problem.n_columns, problem.n_samples
        order, flips, draws = seed.spawn(3)
        self.draws = np.random.default_rng(draws)
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
        self.ridge = math.nan
        self.state = "trapped"
        self.crowded = True
        self.mean_size = 0.0
        self.log_evidence = -math.inf
        self.acceptance = 1.0
        self.allowance = _Allowance()
        self.log: list[tuple[float, float, float, float, float, float]] = []

    # ------------------------------------------------------------ the chain

    def _advance(self, n_sweeps: int) -> _Moments:
        """Run sweeps at the present temperature, ρ and σ²."""
        ridge = self.temperature / self.slab
        w = self.workspace
        if ridge != self.ridge:
            w.set_ridge(ridge)
            self.ridge = ridge
        n, m = self.problem.n_columns, self.problem.n_samples
        tally = new_tally()
        kernel = evidence_flip_direct if w.prefers_direct(self.acceptance) else evidence_flip
        moments = _Moments()
        total = self.problem.signal_energy / self.problem.unit_energy
        log_odds = math.log(self.rho) - math.log1p(-self.rho)
        for sweep in range(1, n_sweeps + 1):
            if sweep > 1 and not self.allowance.more():
                break
            while tally[PROPOSED] < sweep * n:
                stop = min(sweep * n, int(tally[PROPOSED]) + w.chunk)
                arguments = (1.0 / self.temperature, math.log(ridge), log_odds, self.largest)
                w.run(kernel, self.generator, *arguments, stop, tally)
            self.allowance.used += 1
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
        self.acceptance = tally[ACCEPTED] / max(1, tally[PROPOSED])
        return moments

    def _learn(self, moments: _Moments) -> None:
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
            moments = self._advance(tau if in_window else max(2, tau // 3))
            ratio = float(np.mean(moments.residual_variances)) / self.temperature
            self._note(moments, ratio)
            self._learn(moments)
            behind += MEMORY * (math.log(max(ratio, 1e-12)) - behind)
            if self.known is not None:
                if self.temperature <= self.known:
                    self.state = "noise"
                    return
            elif ratio < FOUND and self._fits_exactly():
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

    def _fits_exactly(self) -> bool:
        """Whether least squares leaves nothing of the signal, and not by chance; keep what it needs.

        f degrees of freedom of a signal without structure are left with a fraction below δ of it with
        probability about δ^(f/2), and there are C(N, K) supports to choose from.
        """
        support = self.workspace.support
        n, k = self.problem.n_columns, support.size
        if k >= self.problem.n_samples:
            return False
        x, energy = self.problem.least_squares(support)
        fraction = 2.0 * energy / (self.problem.signal_energy or 1.0)
        if fraction >= 2e-12:
            return False
        choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        by_chance = 0.5 * (self.problem.n_samples - k) * math.log(max(fraction, 1e-28)) + choices
        if by_chance > -10.0:
            return False
        size = np.abs(x) * self.problem.column_norms[support]
        self.exact = support[size > 1e-7 * np.max(size, initial=0.0)]
        return True

    def _note(self, moments: _Moments, ratio: float) -> None:
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
            moments = self._advance(n_sweeps)
            ratio = float(np.mean(moments.residual_variances)) / self.temperature
            self._note(moments, ratio)
            self._learn(moments)
            self.slab = max(
                self.slab, STANDS_OUT * math.log(self.problem.n_columns) * self.temperature
            )
            if self.known is None:
                self.temperature *= min(2.0, max(0.5, ratio))
        self.mean_size = float(np.mean(moments.sizes))
        self.crowded = self.mean_size > CROWDED * self.problem.n_samples
        self.log_evidence = self._log_joint()

    def _log_joint(self) -> float:
        """Log P(y, S) of the present support, coefficients integrated out."""
        self._advance(1)
        t = self.workspace.tableau
        n, k = self.problem.n_columns, int(t.counts[SIZE])
        lower = np.tril(t.U[:k, :k])
        log_det = np.linalg.slogdet(lower + np.tril(lower, -1).T)[1] if k else 0.0
        T = self.temperature
        log_likelihood = 0.5 * (log_det + k * math.log(self.ridge))
        log_likelihood -= 0.5 * self.problem.n_samples * math.log(2.0 * math.pi * T)
        log_likelihood -= (self.problem.unit_signal + float(t.values[ENERGY])) / T
        return log_likelihood + k * math.log(self.rho) + (n - k) * math.log1p(-self.rho)

    # ------------------------------------------------------------ the posterior

    def sample(self, n_samples: int) -> int:
        """Sample supports together with ρ, σ² and the noise level, and average.

        Returns the number of samples that there was time for. Where the plan was found there is no
        noise level to be sampled.
        """
        limit, self.allowance = self.allowance, _Allowance()
        n = self.problem.n_columns
        slab, noise, rho = self.slab, 0.0, 0.0  # the first: where the prior on σ² is centred
        if self.state != "found":
            if self.largest:
                half = max(self.problem.n_samples // 2, int(self.workspace.tableau.counts[SIZE]))
                self.largest = min(self.largest, half)
            for _ in range(BURN_IN):
                self._advance(1)
                self._draw(slab)
        self.chosen = np.zeros(n)
        self.first = np.zeros(n)
        self.second = np.zeros(n)
        self.sizes = np.zeros(n + 1)
        while limit.used < n_samples and limit.more():
            limit.used += 1
            self._advance(1)
            if self.state != "found":
                self._draw(slab)
            noise += self.temperature
            rho += self.rho
            p, mean, square = self._conditional()
            self.chosen += p
            self.first += p * mean
            self.second += p * square
            self.sizes[self.workspace.tableau.counts[SIZE]] += 1
        for total in (self.chosen, self.first, self.second, self.sizes):
            total /= limit.used
        if self.known is None:
            self.temperature = noise / limit.used
        if self.prior.fixed is None:
            self.rho = rho / limit.used
        return limit.used

    def _draw(self, slab: float) -> None:
        """Gibbs steps: ρ given the size; coefficients; from them σ² and T, which set the ridge.

        The priors are Beta on ρ, log-uniform on T, and on σ² an inverse χ² about what expectation
        maximisation found.
        """
        t, rng = self.workspace.tableau, self.draws
        n, m, k = self.problem.n_columns, self.problem.n_samples, int(t.counts[SIZE])
        if self.prior.fixed is None:
            draw = rng.beta(k + self.prior.a, n - k + self.prior.b)
            self.rho = float(min(max(draw, 1e-12), 1 - 1e-12))
        lower = np.tril(t.U[:k, :k])
        z = rng.standard_normal(k)
        x = t.x[:k] + math.sqrt(self.temperature) * (
            np.linalg.cholesky(lower + np.tril(lower, -1).T) @ z
        )
        square = float(x @ x)
        self.slab = (SLAB_WEIGHT * slab + square) / float(rng.chisquare(SLAB_WEIGHT + k))
        if self.known is None:
            residual = 2.0 * (self.problem.unit_signal + float(t.values[ENERGY]))
            residual += self.temperature * float(z @ z) - self.ridge * square
            self.temperature = max(residual, 1e-12 * m * self.mean_square) / float(rng.chisquare(m))
        self.workspace.set_ridge(self.temperature / self.slab)
        self.ridge = self.temperature / self.slab

    def _conditional(self) -> tuple[NDArray[np.float64], ...]:
        """Each column's probability given the others, and its coefficient's moments if chosen.

        Averages of these conditional expectations have less variance than averages of the samples.
        """
        self.workspace.complete()
        t = self.workspace.tableau
        k = int(t.counts[SIZE])
        ones, zeros = t.ones[:k], t.zeros[: t.b.size - k]
        T = self.temperature
        log_ridge = math.log(T / self.slab)
        log_odds = math.log(self.rho) - math.log1p(-self.rho)
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
        if self.size is not None:
            p[ones] = 1.0  # at fixed size a column cannot be flipped alone
        else:
            out = -0.5 * (np.log(u) + log_ridge) - 0.5 * x**2 / (u * T) - log_odds
            into = log_odds - 0.5 * (np.log(safe) - log_ridge) + 0.5 * r**2 / (safe * T)
            p[ones] = 0.5 * (1.0 + np.tanh(-0.5 * out))
            p[zeros] = np.where(open_, 0.5 * (1.0 + np.tanh(0.5 * into)), 0.0)
        return p, mean, mean**2 + variance

    def result(self, seed: int, schedule: EvidenceSchedule, seconds: float) -> EvidenceResult:
        """Back to the caller's units; coefficients by least squares on the chosen columns."""
        problem = self.problem
        every = np.arange(problem.n_columns)
        if self.state == "found":
            support = self.exact
        elif self.size is None:
            support = np.flatnonzero(self.chosen > 0.5)
        else:
            support = np.sort(np.argsort(-self.chosen, kind="stable")[: self.size])
        support = support.astype(np.int64)
        x, energy = problem.least_squares(support)
        coef = np.zeros(problem.n_columns)
        coef[support] = x
        spread = np.sqrt(np.maximum(self.second - self.first**2, 0.0))
        log = np.array(self.log).reshape(-1, 6)
        unit = problem.unit_energy
        log[:, 0] *= unit
        largest = int(np.max(np.flatnonzero(self.sizes), initial=0))
        return EvidenceResult(
            support=support,
            coef=coef,
            energy=energy,
            n_samples=problem.n_samples,
            state=self.state,
            inclusion_probability=self.chosen,
            size_posterior=self.sizes[: largest + 1],
            averaged_coef=problem.from_unit_coef(self.first, every),
            coef_std=np.abs(problem.from_unit_coef(spread, every)),
            noise_variance=self.temperature * unit if self.state != "found" else 0.0,
            rho=self.rho,
            log=log,
            schedule=schedule,
            seed=seed,
            seconds=seconds,
        )
