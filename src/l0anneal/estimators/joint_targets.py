"""The fit of several targets with one support for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.estimators.columns import check_free_columns, column_indices
from l0anneal.estimators.criteria import choose_size
from l0anneal.estimators.folds import folds_of
from l0anneal.estimators.given_prior import GivenPrior
from l0anneal.estimators.path import SubsetPath, subset_path_in
from l0anneal.estimators.predictive import Predictive
from l0anneal.estimators.single_target import CROSS_VALIDATED, Fitted, longest_path
from l0anneal.problem.joint_data import JointDesign
from l0anneal.samplers.joint_search import JointResult, joint_search
from l0anneal.samplers.run import Run

if TYPE_CHECKING:
    from l0anneal.estimators.subset_regressor import AnnealedSubsetRegressor

__all__ = ["fit_jointly"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def fit_jointly(
    model: AnnealedSubsetRegressor,
    run: Run,
    X: Any,
    Y: Floats,
    weights: Floats | None,
    replay: dict[str, Any],
) -> list[Fitted]:
    """Choose one support for all columns of Y, and fit each of them on it."""
    names = getattr(model, "feature_names_in_", None)
    GivenPrior.of(model, X.shape[1], names)  # these parameters belong to "auto"
    options: dict[str, Any] = {
        "fit_intercept": bool(model.fit_intercept),
        "forced": column_indices(model.always_include, X.shape[1], names),
        "alpha": float(model.alpha),
    }
    design = JointDesign.of(X, Y, weights=weights, **options)
    labels = None if names is None else tuple(str(name) for name in names)
    if isinstance(model.n_nonzero_coefs, str):
        folds = None
        if model.n_nonzero_coefs in CROSS_VALIDATED:
            folds = folds_of(run, min(5, design.n_rows), X, Y, weights, options)
        path, support = _by_path(model, run, design, folds, replay, labels)
        return _fitted(design, support, path, path, {"steps": path.steps})
    result, support = _by_number(model, run, design, replay, labels)
    return _fitted(design, support, None, result, {"n_steps": result.n_steps})


def _by_path(
    model: AnnealedSubsetRegressor,
    run: Run,
    design: JointDesign,
    folds: Any,
    replay: dict[str, Any],
    names: tuple[str, ...] | None,
) -> tuple[SubsetPath, Indices]:
    most = model.max_nonzero_coefs
    if most is None:
        most = longest_path(design.outputs[0])
    free = check_free_columns("max_nonzero_coefs", most, design)
    path = subset_path_in(run, design, free, folds, steps=replay.get("steps"), names=names)
    criterion = str(model.n_nonzero_coefs)
    if criterion in CROSS_VALIDATED and "cv" not in path.criteria:
        criterion = "evidence"  # the cross-validation was interrupted
    chosen = np.setdiff1d(path.support(choose_size(path, criterion)), design.forced)
    return path, np.searchsorted(design.candidates, chosen)


def _by_number(
    model: AnnealedSubsetRegressor,
    run: Run,
    design: JointDesign,
    replay: dict[str, Any],
    names: tuple[str, ...] | None,
) -> tuple[JointResult, Indices]:
    free = check_free_columns("n_nonzero_coefs", model.n_nonzero_coefs, design)
    found = joint_search(run, design.problem, design.correlations(), free, replay.get("n_steps"))
    support = found.supports[-1]
    if support.size < free:
        run.require(not run.stopped)  # interrupted before there was a support
        raise ValueError(
            f"n_nonzero_coefs = {model.n_nonzero_coefs} is too large: only "
            f"{support.size + design.forced.size} columns are linearly independent"
        )
    result = JointResult(
        support=np.union1d(design.forced, design.candidates[support]).astype(np.int64),
        energy=design.solve(support)[2],
        n_steps=found.n_steps,
        feature_names=names,
        **run.record(found.ended),
    )
    return result, support


def _fitted(
    design: JointDesign,
    support: Indices,
    path: SubsetPath | None,
    result: Any,
    made: dict[str, Any],
) -> list[Fitted]:
    """Return least squares of each output; the support counts as certain."""
    fits = []
    for output in design.outputs:
        coef, intercept, _ = output.solve(support)
        probability = output.spread(np.ones(support.size), support)
        probability[output.forced] = 1.0
        fits.append(
            Fitted(
                coef=coef,
                intercept=intercept,
                averaged_coef=coef,
                averaged_intercept=intercept,
                inclusion_probability=probability,
                support=np.union1d(output.forced, output.candidates[support]).astype(np.int64),
                candidates=output.candidates,
                path=path,
                result=result,
                evidence=None,
                predictive=Predictive.of(output, support, None, 1.0),
                replay=made,
            )
        )
    return fits
