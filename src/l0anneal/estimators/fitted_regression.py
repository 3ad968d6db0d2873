"""What a fitted regressor can tell: predictions, tables and credible sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from l0anneal.estimators.coefficient_table import CoefficientTable, joined_frames
from l0anneal.estimators.single_target import Fitted
from l0anneal.estimators.targets import warn_of_classes
from l0anneal.estimators.training_data import TrainingData
from l0anneal.samplers.evidence.draws import ENOUGH, CredibleSet

if TYPE_CHECKING:
    import pandas

__all__ = ["FittedRegression"]

# attributes of the fit of one target: those that are stacked for several targets, and those listed
STACKED = (
    "coef_",
    "intercept_",
    "averaged_coef_",
    "averaged_intercept_",
    "inclusion_probability_",
    "coef_std_",
    "intercept_std_",
    "noise_variance_",
    "two_valued_",
    "r2_",
)
LISTED = ("path_", "result_", "evidence_")
Floats = NDArray[np.float64]


class FittedRegression:
    """The part of `AnnealedSubsetRegressor` that reads what a fit has found."""

    n_nonzero_coefs: int | str
    averaging: bool | Literal["auto"]
    joint: bool
    time_limit: float | None

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    def predict(self, X: Any, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Predict with ``averaged_coef_`` or ``coef_``, depending on ``averaging``.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            The columns, as in the fit.
        return_std : bool
            Also return standard deviations, as `sklearn.linear_model.BayesianRidge` does. They are
            those of new values of y around the prediction, which include the noise, the uncertainty of
            the support and of its coefficients, and that of the intercept and of the columns always
            included. About 95 % of new values are within 1.96 standard deviations of the prediction.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The predictions.
        std : ndarray of the same shape
            Their standard deviations. Only returned if ``return_std`` is true.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import AnnealedSubsetRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 20))
        >>> y = X[:, 3] + 0.5 * rng.standard_normal(100)
        >>> model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
        >>> mean, std = model.predict(X[:2], return_std=True)
        >>> std.round(1)
        array([0.5, 0.5])
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=np.float64, reset=False)
        if np.any(self.two_valued_):
            warn_of_classes(stacklevel=3)
        coef = self.averaged_coef_ if self.averages else self.coef_
        intercept = self.averaged_intercept_ if self.averages else self.intercept_
        mean = np.asarray(X @ coef.T + intercept)
        if not return_std:
            return mean
        average = np.asarray(X @ self.averaged_coef_.T + self.averaged_intercept_)
        if mean.ndim == 1:
            return mean, self._predictive.deviation(X, mean, average)
        each = [
            one._predictive.deviation(X, m, a)
            for one, m, a in zip(self.estimators_, mean.T, average.T)
        ]
        return mean, np.column_stack(each)

    @property
    def averages(self) -> bool:
        """Whether ``predict`` uses ``averaged_coef_``."""
        return bool(self.n_nonzero_coefs == "auto" if self.averaging == "auto" else self.averaging)

    def to_frame(self, coverage: float = 0.95) -> pandas.DataFrame:
        """Return a table with a row for each column of X, the most probable first.

        Parameters
        ----------
        coverage : float
            Coverage of the credible sets.

        Returns
        -------
        pandas.DataFrame
            The index has the names of the columns (x0, x1, ... if X has none). ``coef`` and
            ``averaged_coef`` are the two sets of coefficients, ``std`` is the posterior standard
            deviation, ``probability`` that of being in the support, and ``set`` the number of the
            credible set that a column belongs to, if it belongs to one. If y has two dimensions, the
            output is the first level of the index, by name if y was a DataFrame and else by number.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import AnnealedSubsetRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 20))
        >>> y = X[:, 3] + 0.5 * rng.standard_normal(100)
        >>> frame = AnnealedSubsetRegressor(random_state=0).fit(X, y).to_frame()
        >>> frame.index[0], frame["probability"].iloc[0].round(2).item()
        ('x3', 1.0)
        """
        check_is_fitted(self, "coef_")
        if hasattr(self, "estimators_"):
            frames = [one.to_frame(coverage) for one in self.estimators_]
            return joined_frames(frames, self._outputs)
        return CoefficientTable(self, coverage).frame()

    def summary(self) -> str:
        """Return the chosen and the likely columns, their coefficients and probabilities as text.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import AnnealedSubsetRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 20))
        >>> y = X[:, 3] + 0.5 * rng.standard_normal(100)
        >>> model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
        >>> print(model.summary())  # doctest: +ELLIPSIS
        1 of 20 columns, R² 0..., noise 0... (standard deviation)
        ...
        """
        check_is_fitted(self, "coef_")
        if not hasattr(self, "estimators_"):
            return CoefficientTable(self).text()
        outputs = [f"output {name}" for name in self._outputs]
        each = [f"{name}: {one.summary()}" for name, one in zip(outputs, self.estimators_)]
        how = (
            "one set of columns for all outputs"
            if self.joint
            else "the outputs were fitted one by one"
        )
        return "\n\n".join([how, *each])

    def credible_sets(self, coverage: float = 0.95, min_purity: float = 0.5) -> list[CredibleSet]:
        """Return disjoint sets of columns, each with at least one member in the support.

        If columns are correlated, the data may show that one of them matters without showing which
        one. Columns that are always included are in no set.

        Parameters
        ----------
        coverage : float
            Least posterior probability that at least one member belongs to the support.
        min_purity : float
            Least absolute correlation between two members of a set, after regression on the
            intercept and the columns always included.

        Returns
        -------
        list of CredibleSet
            The columns are those of X; the sets have ``names`` if X was a DataFrame.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import AnnealedSubsetRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 20))
        >>> X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(100)  # a near copy
        >>> y = X[:, 0] + X[:, 9] + rng.standard_normal(100)
        >>> model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
        >>> [sorted(found.columns.tolist()) for found in model.credible_sets()]
        [[9], [0, 1]]
        """
        check_is_fitted(self)
        if hasattr(self, "estimators_"):
            raise ValueError(
                "y has several columns, each with credible sets of its own: call "
                "estimators_[i].credible_sets() for one of them"
            )
        if self.evidence_ is None:
            return []
        names = getattr(self, "feature_names_in_", None)
        found = []
        for one in self._sets(coverage, min_purity):
            columns = self.candidates_[one.columns]
            labels = () if names is None else tuple(str(names[j]) for j in columns)
            found.append(replace(one, columns=columns, names=labels))
        return found

    # ------------------------------------------------------------ what a fit keeps

    def _sets(self, coverage: float, min_purity: float) -> list[CredibleSet]:
        evidence: Any = self.evidence_
        if evidence.draws is not None and evidence.effective_sample_size < ENOUGH:
            longer = (
                "a time limit ended the fit: raise time_limit"
                if self.time_limit is not None
                else "give more rows, or the number of columns as n_nonzero_coefs"
            )
            raise ValueError(
                f"credible sets need at least {ENOUGH} effective draws from the posterior; those of "
                f"this fit are worth {evidence.effective_sample_size:.0f}: {longer}"
            )
        return evidence.credible_sets(coverage, min_purity)

    def _keep(self, fit: Fitted, data: TrainingData) -> None:
        """Set the fitted attributes of one target."""
        if hasattr(self, "estimators_"):
            del self.estimators_
        self.candidates_ = fit.candidates
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        self.averaged_coef_ = fit.averaged_coef
        self.averaged_intercept_ = fit.averaged_intercept
        self.inclusion_probability_ = fit.inclusion_probability
        self.support_ = fit.support
        self.n_nonzero_coefs_ = int(fit.support.size)
        self.path_, self.result_, self.evidence_ = fit.path, fit.result, fit.evidence
        self.replay_ = fit.replay
        self._predictive = fit.predictive
        self.coef_std_ = fit.predictive.coef_std
        self.intercept_std_ = fit.predictive.intercept_std
        self.noise_variance_ = fit.predictive.noise_variance
        self.two_valued_ = data.has_classes
        self.r2_ = data.r2(fit.coef, fit.intercept)

    def _keep_all(self, fits: list[Fitted], each: Sequence[TrainingData], names: Any) -> None:
        """Set the fitted attributes of several targets, which may have names."""
        models = []
        for fit, data in zip(fits, each):
            one = clone(self)
            for name in ("n_features_in_", "feature_names_in_", "interrupted_"):
                if hasattr(self, name):
                    setattr(one, name, getattr(self, name))
            one._keep(fit, data)
            models.append(one)
        self.estimators_ = models
        self._outputs: list[Any] = list(range(len(fits)) if names is None else names)
        self.candidates_ = fits[0].candidates
        self.support_ = np.unique(np.concatenate([fit.support for fit in fits]))
        self.n_nonzero_coefs_ = int(self.support_.size)
        for name in STACKED:
            setattr(self, name, np.array([getattr(one, name) for one in models]))
        for name in LISTED:
            setattr(self, name, [getattr(one, name) for one in models])
        self.replay_ = {"outputs": [one.replay_ for one in models]}
