"""A chain over supports under the evidence of a spike-and-slab model, at given hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.moves.evidence_flip import evidence_flip
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.near_gram import lay_out
from l0anneal.engine.rng import stream
from l0anneal.engine.sweep import Sweeps
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.groups import flip_groups
from l0anneal.samplers.evidence.prior import Prior
from l0anneal.samplers.evidence.proposal import Proposal
from l0anneal.samplers.evidence.slab import SupportModel
from l0anneal.samplers.run import Run

__all__ = ["EvidenceChain", "Model"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """The problem, the prior, and what the caller knows about the answer.

    Attributes
    ----------
    problem : SparseProblem
        The dictionary and the signal.
    size : int or None
        The number of columns if it is given.
    prior : Prior
        The prior of the problem.
    known : float or None
        The noise variance in the engine's units, if it is given.
    """

    problem: SparseProblem
    size: int | None
    prior: Prior
    known: float | None = None

    @property
    def total(self) -> float:
        """‖y‖² in the engine's units."""
        return self.problem.signal_energy / self.problem.unit_energy

    @property
    def mean_square(self) -> float:
        """⟨y²⟩ in the engine's units."""
        return self.total / self.problem.n_samples or 1.0


class EvidenceChain:
    """A support, its noise variance T and its slab, all in the engine's units."""

    def __init__(self, run: Run, model: Model, generator: np.random.SeedSequence) -> None:
        self.run, self.model, self.problem = run, model, model.problem
        self.generator = stream(generator)
        self.workspace = run.workspace(model.problem, 64 if model.size is None else model.size)
        self.largest = 0 if model.size is not None else model.prior.largest
        self.size_odds, self.column_odds = model.prior.size_odds, model.prior.column_odds
        self.proposal = Proposal.of(np.ones(model.problem.n_columns))
        self.sweep_length = min(model.problem.n_columns, max(500, 8 * model.problem.n_samples))
        self.half = 0.0  # M/2 where the noise variance is integrated out
        self.group_rng = np.random.default_rng(generator.spawn(1)[0])
        self.temperature = model.mean_square
        self.slab = model.mean_square  # variance of the coefficients around their hump
        self.hump = 0.0  # the slab has two humps, at ± this number, or one if it is 0
        self.signs = np.zeros(model.problem.n_columns)
        self.held = (math.nan, math.nan)  # the ridge and the hump that the tableau has now
        self.acceptance = 1.0
        self.before = np.zeros(0, dtype=np.int64)  # the columns inside when the last sweeps began
        self.budget = run.budget()

    @property
    def n_inside(self) -> int:
        """K, the present size of the support."""
        return self.workspace.size

    @property
    def _surplus(self) -> int:
        """By how much the number of columns exceeds that of columns and groups."""
        groups = self.model.prior.groups
        inside = self.workspace.inside_columns
        return sum(group.size - 1 for group in groups if group[0] in inside)

    @property
    def n_units(self) -> int:
        """The number of columns in the support, a group counting as one."""
        return self.n_inside - self._surplus

    def _odds_by_size(self) -> Floats:
        """Return the prior odds of one more column, by the number of columns."""
        surplus = self._surplus
        if not surplus:
            return self.size_odds
        return np.concatenate([np.full(surplus, -np.inf), self.size_odds])

    def flip_groups(self) -> None:
        """Propose for each group of columns that it enters or leaves."""
        if self.model.prior.groups and self.model.size is None:
            self.hold()
            flip_groups(self, self.group_rng)

    def set_slab(self, variance: float, hump: float = 0.0, signs: Floats | None = None) -> None:
        """Change the slab; ``signs``, by slot, tell which hump each coefficient belongs to."""
        self.slab, self.hump = variance, hump
        self.signs[:] = 0.0
        if hump:
            self.signs[self.workspace.inside_columns] = signs
        self.held = (math.nan, math.nan)

    def hold(self) -> tuple[float, float]:
        """Give the tableau the present slab, and return its ridge and pull."""
        ridge = self.temperature / self.slab
        if (ridge, self.hump) != self.held:
            self.workspace.set_ridge(ridge, ridge * self.hump * self.signs)
            self.held = ridge, self.hump
        return ridge, ridge * self.hump

    def sweeps(self, n_sweeps: int) -> Iterator[None]:
        """Run sweeps at the present temperature and slab, one at each step of the iteration."""
        sweeps = self._sweeps(n_sweeps, self.sweep_length)
        for _ in sweeps.each():
            self.flip_groups()
            self.budget.used += 1
            yield
            if not self.budget.more():
                break
        self.acceptance = sweeps.acceptance

    def _sweeps(self, n_sweeps: int, length: int | None = None) -> Sweeps:
        """Return sweeps at the present temperature and slab, ready to be run."""
        ridge, pull = self.hold()
        w = self.workspace
        kernel = evidence_flip
        if self._prefers_direct():
            kernel = evidence_flip_direct
            lay_out(w.tableau, self.before)
            self.before = w.inside_columns.copy()
        noise = (1.0 / self.temperature, self.problem.unit_signal, self.half)
        law = (*noise, math.log(ridge), self._odds_by_size(), self.column_odds)
        return Sweeps(
            w,
            kernel,
            self.generator,
            *law,
            *self.proposal,
            pull,
            self.signs,
            self.largest,
            n_sweeps=n_sweeps,
            record=False,
            length=length,
        )

    def _prefers_direct(self) -> bool:
        """Whether the kernel without a tableau of the outside columns is the cheaper one.

        The numbers are nanoseconds, rounded from measurements; only the speed depends on them.
        """
        k, n = self.n_inside, self.problem.n_columns
        if not self.problem.gram_is_whole and self.problem.holds_unit_columns:
            return self.workspace.prefers_direct(self.acceptance)
        return self.acceptance * (5000.0 + 4.0 * n * k) > 400.0 + k * k

    def support_model(self) -> SupportModel:
        """Return the model of the signal given the present support."""
        inside = self.workspace.inside_columns
        return SupportModel(
            self.workspace.gram_inside(),
            self.problem.unit_correlation[inside],
            self.model.total,
            self.problem.n_samples,
            self.model.prior,
            self.model.known,
        )

    def log_joint(self) -> float:
        """Log P(y, S) of the present support, up to a constant; only the support is variable."""
        return self.support_model().log_evidence() + self.model.prior.log_weight(
            self.workspace.inside_columns
        )
