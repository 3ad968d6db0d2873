"""The fit of one target: choose columns inside a run, and work out what follows from the choice."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from l0anneal.estimators.columns import check_free_columns, column_indices
from l0anneal.estimators.criteria import CRITERIA, choose_size
from l0anneal.estimators.given_prior import GivenPrior
from l0anneal.estimators.path import SubsetPath, subset_path_in
from l0anneal.estimators.predictive import Predictive
from l0anneal.estimators.training_data import TrainingData
from l0anneal.problem.projected import counting_as
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.evidence.anneal import evidence_anneal_in
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.greedy import NOT_BEGUN
from l0anneal.samplers.kicks.search import kick_search_in
from l0anneal.samplers.run import OutOfTime, Run, RunStopped

if TYPE_CHECKING:
    from l0anneal.estimators.subset_regressor import AnnealedSubsetRegressor

__all__ = ["CROSS_VALIDATED", "LONGEST_PATH", "Fitted", "fit_target", "longest_path"]

LONGEST_PATH = 50
SEARCH = 0.85  # part of a time limit for the search; the rest is for the probabilities
CALLER = 5  # frames between a warning of this module and the caller of `fit`
CROSS_VALIDATED = ("cv", "cv_min")
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit found out about one target; the regressor's attributes of the same names say more."""

    coef: Floats
    intercept: float
    averaged_coef: Floats
    averaged_intercept: float
    inclusion_probability: Floats
    support: Indices
    candidates: Indices
    path: SubsetPath | None
    result: Any
    evidence: EvidenceResult | None
    predictive: Predictive
    replay: dict[str, Any] = field(default_factory=dict)


def fit_target(
    model: AnnealedSubsetRegressor,
    run: Run,
    data: TrainingData,
    replay: dict[str, Any],
) -> Fitted:
    """Choose columns for one target by the parameters of a regressor, inside a run."""
    names = getattr(model, "feature_names_in_", None)
    prior = GivenPrior.of(model, data.n_columns, names)
    forced = column_indices(model.always_include, data.n_columns, names)
    options: dict[str, Any] = {
        "fit_intercept": bool(model.fit_intercept),
        "forced": np.union1d(forced, prior.certain),
        "alpha": float(model.alpha),
    }
    design = data.design(options)
    fit = _Fit(model, design, replay, names, CALLER + data.extra_frames)
    k = model.n_nonzero_coefs
    if k == "auto":
        support = fit.by_evidence(run, prior.options(design))
    else:
        search = run.part(SEARCH * run.left)
        if isinstance(k, str):
            folds = data.folds(run, options) if k in CROSS_VALIDATED else None
            support = fit.by_path(search, folds)
        else:
            support = fit.by_number(search)
        run.advance(0, "sampling, for the probabilities")
        with suppress(RunStopped):  # the support is found; without probabilities it is certain
            fit.sample_around(run.part(), support.size)
    return fit.fitted(support)


def longest_path(design: Design) -> int:
    """Return the largest size that criteria consider by default, with the columns always included."""
    half = max(1, round(design.n_samples - design.n_projected) // 2)
    return int(design.forced.size) + min(design.most, LONGEST_PATH, half)


class _Fit:
    """The fit of one target, while it is under way."""

    def __init__(
        self,
        model: AnnealedSubsetRegressor,
        design: Design,
        replay: dict[str, Any],
        names: Any,
        caller: int,
    ) -> None:
        self.model, self.design, self.replay, self.caller = model, design, replay, caller
        self.names = None if names is None else tuple(str(name) for name in names)
        self.path: SubsetPath | None = None
        self.result: Any = None
        self.evidence: EvidenceResult | None = None
        self.noise_scale = 1.0
        self.made: dict[str, Any] = {}  # the steps that were made, to replay the fit

    # ------------------------------------------------------------ ways to choose

    def by_evidence(self, run: Run, options: dict[str, Any]) -> Indices:
        """Choose the columns that are likely among supports of all sizes."""
        design = self.design
        if design.n_samples - design.n_projected < 1:
            raise ValueError(
                f"n_nonzero_coefs='auto' needs more samples: weights that sum to "
                f"{design.n_samples:g} leave nothing beside the intercept and the "
                "columns always included"
            )
        if design.candidates.size == 0:
            return np.zeros(0, dtype=np.int64)
        if self.replay.get("schedule", "") is None:
            raise ValueError(
                "the fit of this replay had no time to begin: give a longer time_limit"
            )
        self.result = self.evidence = self._sampled(run, design.counted(), **options)
        if not run.interrupted:
            self._warn(self.evidence)
        # the sampler's slab allows for two equal columns in a support; least squares does not
        p = self.evidence.inclusion_probability
        return design.independent(self.evidence.support, np.nan_to_num(p, nan=1.0))

    def by_number(self, run: Run) -> Indices:
        """Choose a given number of columns."""
        free = check_free_columns("n_nonzero_coefs", self.model.n_nonzero_coefs, self.design)
        if free == 0:
            return np.zeros(0, dtype=np.int64)
        result = kick_search_in(
            run,
            self.design.problem,
            free,
            self.replay.get("n_kicks"),
            n_chains=self.model.n_chains,
        )
        self.made["n_kicks"] = result.n_kicks.tolist()
        self.result = replace(result, feature_names=self._candidate_names())
        return result.support

    def by_path(self, run: Run, folds: Any) -> Indices:
        """Choose the best columns of each size, and a size by a criterion."""
        design, criterion = self.design, str(self.model.n_nonzero_coefs)
        most = self.model.max_nonzero_coefs
        if most is None:
            most = longest_path(design)
        free = check_free_columns("max_nonzero_coefs", most, design)
        steps = self.replay.get("steps")
        path = subset_path_in(run, design, free, folds, steps=steps, names=self.names)
        self.path = self.result = path
        self.made["steps"] = path.steps
        if criterion in CROSS_VALIDATED and "cv" not in path.criteria:
            criterion = "evidence"  # the cross-validation was interrupted
        assert criterion in CRITERIA
        size = choose_size(path, criterion)
        if size == most and size == design.forced.size + LONGEST_PATH:
            warnings.warn(
                f"{criterion} chose the largest size that it considered, {most}: "
                "raise max_nonzero_coefs",
                stacklevel=self.caller,
            )
        chosen = np.setdiff1d(path.support(size), design.forced)
        return np.searchsorted(design.candidates, chosen)

    def sample_around(self, run: Run, size: int) -> None:
        """Sample supports of the chosen size, for probabilities and the average."""
        design = self.design
        rows = design.n_rows - design.n_projected
        n_samples = round(design.n_samples) - design.n_projected
        if n_samples <= size:
            n_samples = rows
            self.noise_scale = design.n_rows / design.n_samples
        if 0 < size < min(n_samples, design.candidates.size):
            problem = counting_as(design.problem, n_samples)
            evidence = self._sampled(run, problem, size)
            if not run.interrupted and evidence.ended != NOT_BEGUN:
                self.evidence = evidence

    def _sampled(
        self, run: Run, problem: Any, size: int | None = None, **options: Any
    ) -> EvidenceResult:
        schedule = self.replay.get("schedule")
        if schedule is None and "schedule" in self.replay:
            raise OutOfTime  # as in the fit that is replayed
        result = evidence_anneal_in(run, problem, size, schedule=schedule, **options)
        self.made["schedule"] = None if result.ended == NOT_BEGUN else result.schedule
        return replace(result, feature_names=self._candidate_names())

    # ------------------------------------------------------------ what follows

    def fitted(self, support: Indices) -> Fitted:
        """Return least squares on the chosen columns, and the average over supports."""
        design = self.design
        coef, intercept, _ = design.solve(support)
        if self.evidence is None:
            probability = design.spread(np.ones(support.size), support)
            averaged, averaged_intercept = coef, intercept
        else:
            probability = design.spread(self.evidence.inclusion_probability)
            averaged, averaged_intercept = design.complete(
                design.spread(self.evidence.averaged_coef)
            )
        probability[design.forced] = 1.0
        return Fitted(
            coef=coef,
            intercept=intercept,
            averaged_coef=averaged,
            averaged_intercept=averaged_intercept,
            inclusion_probability=probability,
            support=np.union1d(design.forced, design.candidates[support]).astype(np.int64),
            candidates=design.candidates,
            path=self.path,
            result=self.result,
            evidence=self.evidence,
            predictive=Predictive.of(design, support, self.evidence, self.noise_scale),
            replay=self.made,
        )

    def _candidate_names(self) -> tuple[str, ...] | None:
        """Return the names of the columns of the sampler's problem, as scikit-learn names them."""
        candidates = self.design.candidates
        if self.names is not None:
            return tuple(self.names[j] for j in candidates)
        if candidates.size == self.design.n_columns:
            return None  # the numbers are the caller's
        return tuple(f"x{j}" for j in candidates)

    def _warn(self, evidence: EvidenceResult) -> None:
        """Warn of an answer that is not to be trusted, with advice for users of the regressor."""
        limit = self.model.time_limit
        if limit is None:
            longer = (
                f"search longer, by a time_limit above the {evidence.seconds:.2g} s of this fit"
            )
        else:
            longer = f"search longer, by a time_limit above {limit:g} s"
        if evidence.ended == NOT_BEGUN:
            warnings.warn(
                "time_limit was too short for the search: these columns were chosen greedily, and "
                "there are no probabilities; raise time_limit",
                ConvergenceWarning,
                stacklevel=self.caller,
            )
        if evidence.state in ("trapped", "disagreed") and evidence.has_few_samples:
            warnings.warn(
                f"{_rows_in_words(self.design)} are too few to tell columns from noise: do not trust "
                "these columns; more time would not help: give more rows, or the number of columns as "
                "n_nonzero_coefs",
                ConvergenceWarning,
                stacklevel=self.caller,
            )
        elif evidence.state == "trapped":
            warnings.warn(
                "the search found neither an exact representation nor a noise level that it could "
                f"confirm: do not trust these columns; {longer}, or give the number of columns as "
                "n_nonzero_coefs",
                ConvergenceWarning,
                stacklevel=self.caller,
            )
        elif evidence.state == "disagreed":
            warnings.warn(
                "independent chains found different supports (inclusion probabilities differ by up to "
                f"{evidence.disagreement:.2f}, mean sizes by "
                f"{np.ptp(evidence.chain_size):.1f}): the probabilities are uncertain; {longer}, give "
                "more rows, or give the number of columns as n_nonzero_coefs",
                ConvergenceWarning,
                stacklevel=self.caller,
            )


def _rows_in_words(design: Design) -> str:
    n = f"{design.n_samples:g}"
    return f"{n} rows" if n == str(design.n_rows) else f"rows whose weights sum to {n}"
