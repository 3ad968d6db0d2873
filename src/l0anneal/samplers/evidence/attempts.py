"""The attempts of one evidence annealing: message passing, then coolings, each slower than the last."""

from __future__ import annotations

import math

from l0anneal.samplers.evidence.chain import Model
from l0anneal.samplers.evidence.cooling import CoolingChain
from l0anneal.samplers.evidence.message_passing import pass_messages, set_up_flops
from l0anneal.samplers.evidence.result import EvidenceSchedule
from l0anneal.samplers.run import Budget, Run

__all__ = ["Attempts", "best_of"]

# Number of columns at the start, as a fraction of min(M, N), in the first attempt and in later
# ones. Starting with more columns can find planted supports that the first attempt missed.
FIRST, LATER = 0.05, 0.4
_FOREIGN = (
    "this schedule belongs to another problem or seed; it replays only the run that it comes from"
)
# The most operations that message passing may need before its first step, and the speed that is
# assumed if there is a time limit.
SET_UP_FLOPS, FLOPS_PER_SECOND = 5e10, 2e9


class Attempts:
    """The attempts of one run, and how many steps they took."""

    def __init__(self, run: Run, model: Model, schedule: EvidenceSchedule | None) -> None:
        self.run, self.model, self.schedule = run, model, schedule
        # when message passing, the attempts, the capped attempt and the sampling have to end
        self.ends = [math.inf] * 4
        self.to_settle = 0.0
        self.flops = SET_UP_FLOPS
        if run.time_limit is not None:
            limit = run.time_limit
            self.ends = [run.began + share * limit for share in (0.3, 0.6, 0.8, 0.97)]
            self.to_settle = 0.1 * limit
            self.flops = min(self.flops, FLOPS_PER_SECOND * 0.2 * limit)
        self.messages = 0
        self.chains: list[CoolingChain] = []
        self.present: CoolingChain | None = None
        self.budgets: list[Budget] = []
        self.taus: list[int] = []
        self.sweeps: list[int] = []
        self.settling: list[int] = []
        self.out_of_time = False

    def executed(self, sampling: tuple[int, ...], in_rounds: bool) -> EvidenceSchedule:
        """Return the schedule that replays the run."""
        return EvidenceSchedule(
            tuple(self.taus),
            tuple(self.sweeps),
            tuple(self.settling),
            sampling,
            self.messages,
            in_rounds,
        )

    def why(self, best: CoolingChain) -> str:
        """Say why the run ended."""
        if best.state == "found":
            return "an exact representation was found"
        if self.out_of_time or any(budget.exhausted for budget in self.budgets):
            return "time limit"
        if best.state == "noise":
            return "the noise level was found and sampled"
        return "all attempts were made"

    def so_far(self) -> CoolingChain:
        """Return the best chain of an interrupted run, or the one that was running."""
        begun = [*self.chains]
        if not begun and self.present is not None and self.present.log:
            begun = [self.present]
        self.run.require(begun)
        return best_of(begun)

    def best(self, tau: int, max_attempts: int) -> CoolingChain:
        """Return the chain to be sampled from."""
        return self.search(tau, max_attempts) if self.schedule is None else self.replay()

    def new_chain(self, first: float) -> CoolingChain:
        """Return a chain with a random stream of its own."""
        seeds = self.run.stream("evidence attempt", len(self.taus))
        self.present = CoolingChain(self.run, self.model, first, seeds)
        return self.present

    def seeded(self, max_messages: int) -> CoolingChain | None:
        """Return a chain begun by message passing, if that finds an exact representation."""
        problem = self.model.problem
        free = self.model.size is None and self.model.known is None and problem.signal_energy > 0
        if self.schedule is not None:
            max_messages = self.schedule.messages
        elif not free or set_up_flops(problem) > self.flops:
            max_messages = 0
        if max_messages == 0:
            return None
        run, end = self.run, self.ends[0]
        run.note("message passing")
        beliefs = pass_messages(problem, max_messages, lambda: run.now() < end and not run.stopped)
        self.messages = len(beliefs.log)
        chain = self.new_chain(FIRST)
        chain.seed(beliefs)
        return chain if chain.state == "found" else None

    def attempt(self, tau: int, first: float, end: float) -> CoolingChain:
        """Cool a chain, and let it settle if it found no exact representation."""
        chain = self.new_chain(first)
        a = len(self.taus)
        chain.stage = f"attempt {a + 1}, cooling"
        s = self.schedule
        if s is not None and a >= len(s.tau):
            raise ValueError(_FOREIGN)
        cooling = chain.budget = self.run.budget(end, None if s is None else s.sweeps[a])
        chain.cool(tau)
        settling = self.run.budget(end + self.to_settle, None if s is None else s.settling[a])
        if chain.state != "found":
            if s is not None and s.settling[a] == 0:
                raise ValueError(_FOREIGN)
            chain.budget = settling
            chain.settle(tau)
        self.taus.append(tau)
        self.sweeps.append(cooling.used)
        self.settling.append(settling.used)
        self.budgets += [cooling, settling]
        self.chains.append(chain)
        return chain

    def search(self, tau: int, max_attempts: int) -> CoolingChain:
        """Make attempts, each slower than the last, until one is believed or the time is up."""
        while len(self.chains) < max_attempts:
            began = self.run.now()
            self.attempt(tau, LATER if self.chains else FIRST, self.ends[1])
            now = self.run.now()
            slower = min(2.0, (self.ends[1] - now) / max(now - began, 1e-9))  # as time allows
            tau = int(tau * slower)
            if _believed(self.chains[-1]):
                break
            if slower < 0.5 or tau < 2:
                self.out_of_time = True
                break
        return best_of(self.chains)

    def replay(self) -> CoolingChain:
        """Make the attempts of an earlier run."""
        assert self.schedule is not None
        taus = self.schedule.tau
        if not taus:
            raise ValueError(_FOREIGN)
        for a, tau in enumerate(taus):
            self.attempt(tau, LATER if a else FIRST, math.inf)
        return best_of(self.chains)


def _believed(chain: CoolingChain) -> bool:
    return chain.state == "found" or (
        chain.state == "noise" and (not chain.crowded or chain.known is not None)
    )


def best_of(chains: list[CoolingChain]) -> CoolingChain:
    """Return the attempt with the most evidence.

    It counts as trapped if it has many columns and the last attempt found a lower noise level.
    """
    best = min(chains, key=lambda chain: chain.rank)
    before = min(chains[:-1], key=lambda chain: chain.rank, default=None)
    confirmed = before is not None and chains[-1].temperature > 0.9 * before.temperature
    if not _believed(chains[-1]) and best.crowded and not confirmed:
        best.state = "trapped"
    return best
