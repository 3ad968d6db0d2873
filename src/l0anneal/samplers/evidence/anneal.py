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

The beginning is a guess by message passing (`message_passing`), which takes a small part of the time. If
the columns that it names represent y exactly, they are the answer; if not, the guess is forgotten.

T is lowered from above ⟨y²⟩. Meanwhile ρ and σ² follow by expectation maximisation, and the residual
variance RSS/(M − df) is watched. In a noiseless problem it vanishes against T once the plan is
found. In a noisy one it stays behind as T falls: there T is the noise, and sampling goes on there, of
supports together with ρ, T and the slab, which may then have two humps (`slab`).
"""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.checks import check_integer, check_time_limit
from l0anneal._util.seeds import RandomState, child, seed_of
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.evidence_flip import evidence_flip
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.rng import stream
from l0anneal.engine.warm_up import patience, tiny_problem, warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.chain import Allowance, EvidenceChain, Model, Prior
from l0anneal.samplers.evidence.message_passing import pass_messages, set_up_flops
from l0anneal.samplers.evidence.posterior import PROPOSALS, Posterior
from l0anneal.samplers.evidence.result import EvidenceResult, EvidenceSchedule

__all__ = ["evidence_anneal"]

# columns in the beginning, as a fraction of min(M, N): in the first attempt, and in the others, which
# find other plans for it
FIRST, LATER = 0.05, 0.4
_FOREIGN = "this schedule is of another problem or seed: it replays only the run that it comes from"
# operations that message passing may need before the first; with a time limit it counts on this speed
SET_UP_FLOPS, FLOPS_PER_SECOND = 5e10, 2e9


def evidence_anneal(
    problem: SparseProblem,
    n_nonzero: int | None = None,
    *,
    rho: float | tuple[float, float] | None = None,
    noise_variance: float | None = None,
    tau: int = 5,
    n_samples: int | None = None,
    max_attempts: int | None = None,
    max_messages: int = 500,
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
    n_samples : int, optional
        Samples at the final temperature that the posterior is averaged over: 100, one after each sweep;
        where there are fewer than 400 columns, 300, each after as many sweeps as make 400 proposals.
    max_attempts : int, optional
        By default 4, or with a time limit as many as there is time for. An attempt that finds a plan
        shows it: the residual vanishes. One that ends at a noise level with few columns is believed;
        one with many may be a trap, so further attempts are made, each slower than the last.
    max_messages : int
        Steps of message passing before the first attempt, to guess the plan; 0 for Monte Carlo alone.
        They are spared where the size or the noise is given, or A is too large for its spectrum.
    time_limit : float, optional
        Seconds, except the compilation of kernels; a fifth of them are kept for the sampling. It ends
        before if the plan is found, or a noise level that is believed.
    schedule : EvidenceSchedule, optional
        ``result.schedule`` of an earlier run, which with that run's seed gives it again exactly; in
        place of tau, n_samples, max_attempts, max_messages and time_limit.
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
    tau = check_integer("tau", tau, 1)
    if n_samples is None:
        n_samples = 100 if problem.n_columns >= PROPOSALS else 300
    n_samples = check_integer("n_samples", n_samples, 1)
    if max_attempts is None:
        max_attempts = 4 if time_limit is None else 10**6
    max_attempts = check_integer("max_attempts", max_attempts, 1)
    max_messages = check_integer("max_messages", max_messages, 0)
    if noise_variance is not None and not (math.isfinite(noise_variance) and noise_variance > 0):
        raise ValueError(f"noise_variance must be positive and finite; got {noise_variance}")
    check_time_limit(time_limit)
    if schedule is not None and time_limit is not None:
        raise ValueError("give a schedule or a time limit, not both: a schedule has its own length")
    known = None
    if noise_variance is not None and problem.signal_energy:
        known = noise_variance / problem.unit_energy
    _warm_up()
    began = time.perf_counter()
    with one_blas_thread(), tqdm(unit="step", disable=not progress, leave=False) as bar:
        model = Model(problem, size, Prior.of(rho), known)
        run = _Run(model, seed_of(random_state), schedule, bar)
        run.time_limit(time_limit)
        best = run.seeded(max_messages) or run.best(tau, max_attempts)
        posterior = Posterior(best)
        allowance = Allowance(run.ends[-1])
        if schedule is not None:
            allowance = Allowance(number=schedule.sampling)
            n_samples = schedule.sampling
        posterior.sample(n_samples, allowance)
        return posterior.result(run.seed, run.executed(allowance.used), time.perf_counter() - began)


class _Run:
    """The attempts of one run, and what they took."""

    def __init__(
        self, model: Model, seed: int, schedule: EvidenceSchedule | None, bar: Any
    ) -> None:
        self.model, self.seed, self.schedule, self.bar = model, seed, schedule, bar
        self.ends = [math.inf] * 4
        self.to_settle = 0.0
        self.flops = SET_UP_FLOPS
        self.messages = 0
        self.taus: list[int] = []
        self.sweeps: list[int] = []
        self.settling: list[int] = []
        self.capped = False

    def time_limit(self, seconds: float | None) -> None:
        """When message passing, attempts, the capped one, and sampling have to stop."""
        if seconds is not None:
            now = time.perf_counter()
            self.ends = [now + share * seconds for share in (0.3, 0.6, 0.8, 0.97)]
            self.to_settle = 0.1 * seconds
            self.flops = min(self.flops, FLOPS_PER_SECOND * 0.2 * seconds)

    def executed(self, sampling: int) -> EvidenceSchedule:
        """What was run, to be run again."""
        return EvidenceSchedule(
            tuple(self.taus),
            tuple(self.sweeps),
            tuple(self.settling),
            sampling,
            self.capped,
            self.messages,
        )

    def best(self, tau: int, max_attempts: int) -> EvidenceChain:
        """The chain to be sampled from."""
        best = self.search(tau, max_attempts) if self.schedule is None else self.replay()
        crowded = best.state != "found" and best.crowded and self.model.size is None
        self.capped = crowded if self.schedule is None else self.schedule.capped
        if self.capped:
            # among so many columns noise is fitted, too: try with fewer than it can be told from
            most = max(1, self.model.problem.n_samples // 2)
            chain = self.attempt(self.taus[0], FIRST, self.ends[2], most)
            if best.mean_size > most or chain.rank < best.rank:
                best = chain
        return best

    def new_chain(self, first: float) -> EvidenceChain:
        """A chain with a seed of its own."""
        seed = child(self.seed, len(self.taus))
        return EvidenceChain(self.model, first, seed, self.bar)

    def seeded(self, max_messages: int) -> EvidenceChain | None:
        """A chain begun by message passing, if that finds the plan."""
        problem = self.model.problem
        free = self.model.size is None and self.model.known is None and problem.signal_energy > 0
        if self.schedule is not None:
            max_messages = self.schedule.messages
        elif not free or set_up_flops(problem) > self.flops:
            max_messages = 0
        if max_messages == 0:
            return None
        end = self.ends[0]
        beliefs = pass_messages(problem, max_messages, lambda: time.perf_counter() < end)
        self.messages = len(beliefs.log)
        chain = self.new_chain(FIRST)
        chain.seed(beliefs)
        return chain if chain.state == "found" else None

    def attempt(self, tau: int, first: float, end: float, cap: int | None = None) -> EvidenceChain:
        """Cool a chain, and let it settle where it did not find the plan."""
        chain = self.new_chain(first)
        chain.cap(cap)
        a = len(self.taus)
        s = self.schedule
        if s is not None and a >= len(s.tau):
            raise ValueError(_FOREIGN)
        cooling = chain.allowance = Allowance(end, None if s is None else s.sweeps[a])
        chain.cool(tau)
        settling = Allowance(end + self.to_settle, None if s is None else s.settling[a])
        if chain.state != "found":
            if s is not None and s.settling[a] == 0:
                raise ValueError(_FOREIGN)
            chain.allowance = settling
            chain.settle(tau)
        self.taus.append(tau)
        self.sweeps.append(cooling.used)
        self.settling.append(settling.used)
        return chain

    def search(self, tau: int, max_attempts: int) -> EvidenceChain:
        """Attempts, each slower than the last, until one is believed or there is no time for more."""
        chains: list[EvidenceChain] = []
        while len(chains) < max_attempts:
            began = time.perf_counter()
            chains.append(self.attempt(tau, LATER if chains else FIRST, self.ends[1]))
            now = time.perf_counter()
            slower = min(2.0, (self.ends[1] - now) / max(now - began, 1e-9))  # as there is time for
            tau = int(tau * slower)
            if _believed(chains[-1]) or slower < 0.5 or tau < 2:
                break
        return _best(chains)

    def replay(self) -> EvidenceChain:
        """The attempts of an earlier run."""
        assert self.schedule is not None
        taus = self.schedule.tau[: len(self.schedule.tau) - self.schedule.capped]
        if not taus:
            raise ValueError(_FOREIGN)
        return _best(
            [self.attempt(tau, LATER if a else FIRST, math.inf) for a, tau in enumerate(taus)]
        )


def _believed(chain: EvidenceChain) -> bool:
    return chain.state == "found" or (
        chain.state == "noise" and (not chain.crowded or chain.known is not None)
    )


def _best(chains: list[EvidenceChain]) -> EvidenceChain:
    """The attempt with most evidence; trapped, if it has many columns and the last goes below it."""
    best = min(chains, key=lambda chain: chain.rank)
    before = min(chains[:-1], key=lambda chain: chain.rank, default=None)
    confirmed = before is not None and chains[-1].temperature > 0.9 * before.temperature
    if not _believed(chains[-1]) and best.crowded and not confirmed:
        best.state = "trapped"
    return best


@cache
def _warm_up() -> None:
    """Compile what only this sampler uses."""
    warm_up()
    with patience():
        workspace = Workspace(tiny_problem(), 2)
        state = stream(np.random.SeedSequence(0))
        for kernel in (evidence_flip, evidence_flip_direct):
            workspace.run(kernel, state, 1.0, 0.0, 0.0, 0.0, np.zeros(4), 2, 4, new_tally())
