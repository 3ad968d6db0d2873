"""The columns of a fitted regressor as a table: coefficients, probabilities, credible sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.checks import check_positive

if TYPE_CHECKING:
    import pandas

__all__ = ["CoefficientTable", "joined_frames"]

LIKELY = 0.05  # columns with a lower probability are left out of a summary, unless they are chosen
WIDEST = 28  # characters of a name in a summary
STATES = {
    "found": "the columns fit y exactly",
    "noise": "the search settled at a noise level",
    "disagreed": "independent chains found different columns: the probabilities are uncertain",
    "trapped": "the search found no noise level: do not trust the columns or the probabilities",
    "begun": "the search was stopped before it could sample: there are no probabilities",
}


class CoefficientTable:
    """The columns of a model with one target, the most probable first.

    Parameters
    ----------
    model : AnnealedSubsetRegressor
        A fitted regressor.
    coverage : float
        Coverage of the credible sets.
    """

    def __init__(self, model: Any, coverage: float = 0.95) -> None:
        check_positive("coverage", coverage)
        self.model = model
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(model.n_features_in_)]
        self.names = np.array([str(name) for name in names], dtype=object)
        self.sets: NDArray[np.int64] = np.zeros(self.names.size, dtype=np.int64)  # 0: in no set
        evidence = model.evidence_
        if evidence is not None and evidence.likely_sets():
            for i, found in enumerate(model.credible_sets(coverage), start=1):
                self.sets[found.columns] = i
        p, coef = model.inclusion_probability_, model.coef_
        self.order = np.lexsort((np.arange(p.size), -np.abs(coef) * self.spread, -p.round(3)))

    @property
    def spread(self) -> NDArray[np.float64]:
        """By what to multiply coefficients so that they do not depend on the units of columns."""
        std = self.model.coef_std_
        return np.divide(1.0, std, out=np.zeros_like(std), where=std > 0)

    def frame(self) -> pandas.DataFrame:
        """Return a row for each column of X."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame returns a DataFrame, but pandas is not installed: pip install pandas, or use "
                "summary(), coef_, inclusion_probability_ and coef_std_"
            ) from error
        model, order = self.model, self.order
        sets = pd.array(np.where(self.sets > 0, self.sets, 0)[order], dtype="Int64")
        sets[self.sets[order] == 0] = pd.NA
        return pd.DataFrame(
            {
                "coef": model.coef_[order],
                "averaged_coef": model.averaged_coef_[order],
                "std": model.coef_std_[order],
                "probability": model.inclusion_probability_[order],
                "set": sets,
            },
            index=pd.Index(self.names[order], name="column"),
        )

    def text(self) -> str:
        """Return the chosen and the likely columns, the fit, and what to make of it, in 80 columns."""
        model, p = self.model, self.model.inclusion_probability_
        inside = np.isin(np.arange(p.size), model.support_)
        shown = [j for j in self.order if inside[j] or p[j] >= LIKELY]
        most = max(20, model.support_.size)
        width = min(WIDEST, max([9, *(len(self.names[j]) for j in shown[:most])]))
        lines = [
            f"{model.support_.size} of {p.size} columns, R² {model.r2_:.3f}, "
            f"noise {math.sqrt(model.noise_variance_):.4g} (standard deviation)",
            "",
            f"{'column':<{width}} {'coef':>10} {'averaged':>10} {'std':>9} {'prob':>5}  set",
        ]
        for j in shown[:most]:
            name = self.names[j]
            name = name if len(name) <= width else name[: width - 1] + "…"
            coef = f"{model.coef_[j]:.4g}" if inside[j] else "–"
            number = str(self.sets[j]) if self.sets[j] else ""
            row = f"{name:<{width}} {coef:>10} {model.averaged_coef_[j]:>10.4g} "
            row += f"{model.coef_std_[j]:>9.2g} {_two_digits(p[j]):>5}  {number}"
            lines.append(row.rstrip())
        if len(shown) > most:
            lines.append(f"and {len(shown) - most} more with a probability of {LIKELY} or more")
        if model.fit_intercept:
            lines.append(
                f"{'intercept':<{width}} {model.intercept_:>10.4g} "
                f"{model.averaged_intercept_:>10.4g} {model.intercept_std_:>9.2g}"
            )
        return "\n".join([*lines, "", *self._remarks()])

    def _remarks(self) -> list[str]:
        model = self.model
        by_average = model.averages
        used = "averaged" if by_average else "coef"
        remarks = [f"predict uses the column '{used}' (averaging={model.averaging!r})"]
        if np.bincount(self.sets)[1:].max(initial=0) > 1:
            remarks.append("columns with the same set number can stand in for each other")
        if model.evidence_ is None:
            remarks.append("no probabilities were sampled: the chosen columns count as certain")
        else:
            remarks.append(STATES[model.evidence_.state])
        if model.two_valued_:
            remarks.append("y has only the values 0 and 1: this is a least-squares fit to them")
        if model.interrupted_:
            remarks.append("the fit was interrupted: these are the best columns found so far")
        return remarks


def _two_digits(probability: float) -> str:
    return "–" if math.isnan(probability) else f"{probability:.2f}"


def joined_frames(frames: list[Any], outputs: list[Any]) -> pandas.DataFrame:
    """Return the tables of several targets in one, with the name of the target as first index."""
    import pandas as pd

    return pd.concat(frames, keys=outputs, names=["output"])
