"""An answer by the names of its columns: coefficients, probabilities, sets, and predictions."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.draws import CredibleSet
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.result import Result

__all__ = ["Answer", "Row"]

LIKELY = 0.05  # columns that were not chosen are shown from this probability on
CERTAIN = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """What is known about one column; None where it is not known."""

    name: str
    index: int
    chosen: bool
    coef: float
    std: float | None
    probability: float | None
    set: str | None


class Answer:
    """A result together with its problem."""

    def __init__(self, result: Result, problem: SparseProblem) -> None:
        self.result, self.problem = result, problem
        self.names = problem.feature_names or tuple(str(j) for j in range(problem.n_columns))
        self.target = problem.table.target if problem.table is not None else "y"

    @property
    def has_intercept(self) -> bool:
        """Whether an intercept was fitted."""
        return self.problem.column_means is not None

    @property
    def r2(self) -> float:
        """The fraction of the signal's square that the fit explains, or of its variance."""
        if not self.result.signal_energy:
            return math.nan
        return 1.0 - 2.0 * self.result.energy / self.result.signal_energy

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise: as inferred, or that of the residuals."""
        if isinstance(self.result, EvidenceResult):
            return math.sqrt(max(0.0, self.result.noise_variance))
        free = self.result.n_samples - self.result.support.size
        return math.sqrt(2.0 * self.result.energy / free) if free > 0 else math.nan

    def sets(self) -> list[tuple[str, CredibleSet]]:
        """Return the credible sets of several columns, each with a letter."""
        if not isinstance(self.result, EvidenceResult):
            return []
        together = [set(group) for group in self.problem.groups]
        several = [
            found
            for found in self.result.likely_sets()
            if found.columns.size > 1 and not any(set(found.columns) <= group for group in together)
        ]
        return [(_letter(i), found) for i, found in enumerate(several)]

    def rows(self) -> list[Row]:
        """Return the chosen columns and then the other likely ones, likeliest first."""
        result = self.result
        in_set = {int(j): letter for letter, found in self.sets() for j in found.columns}
        chosen = set(result.support.tolist())
        strength = np.abs(result.coef) * self.problem.column_norms
        p: Floats | None = None
        shown = chosen
        if isinstance(result, EvidenceResult):
            p, std = result.inclusion_probability, result.coef_std
            shown = chosen | set(in_set) | set(np.flatnonzero(p > LIKELY).tolist())
        else:
            std = self._standard_errors()

        def place(j: int) -> tuple[bool, float, float]:
            return j not in chosen, -round(float(p[j]), 2) if p is not None else 0.0, -strength[j]

        return [
            Row(
                name=self.names[j],
                index=j,
                chosen=j in chosen,
                coef=float(result.coef[j]),
                std=_number(std[j]),
                probability=None if p is None else float(p[j]),
                set=in_set.get(j),
            )
            for j in sorted(shown, key=place)
        ]

    def _standard_errors(self) -> Floats:
        """Return standard errors of least squares, given the chosen columns."""
        support = self.result.support
        errors = np.full(self.problem.n_columns, np.nan)
        inverse = self._inverse()
        if inverse is not None:
            scale = self.problem.column_norms[support]
            errors[support] = self.noise_std * np.linalg.norm(inverse, axis=1) / scale
        return errors

    def _inverse(self) -> Floats | None:
        """Return the pseudo-inverse of the chosen columns, scaled to unit norm.

        None if there are as many of them as samples, or if only their products are known.
        """
        support = self.result.support
        if self.result.n_samples <= support.size or self.problem.A is None:
            return None
        columns = self.problem.A[:, support]
        columns = columns.toarray() if hasattr(columns, "toarray") else np.asarray(columns)
        return np.asarray(np.linalg.pinv(columns / self.problem.column_norms[support]))

    def predict(self, X: Floats) -> tuple[Floats, Floats | None]:
        """Return predictions and, where there are draws, the standard deviations of new values.

        Predictions average over the supports of the posterior if there is one, as those of
        `AnnealedSubsetRegressor` do. Otherwise they are least squares on the chosen columns, and the
        standard deviations take these columns for granted.
        """
        result, problem = self.result, self.problem
        centred = X if problem.column_means is None else X - problem.column_means
        if not isinstance(result, EvidenceResult) or result.draws is None:
            mean = problem.intercept_of(result.coef) + X @ result.coef
            inverse = self._inverse()
            if inverse is None:
                return mean, None
            support = result.support
            leverage = np.sum(
                (centred[:, support] / problem.column_norms[support] @ inverse) ** 2, 1
            )
            if self.has_intercept:
                leverage += 1.0 / (result.n_samples + 1)
            return mean, self.noise_std * np.sqrt(1.0 + leverage)
        mean = problem.intercept_of(result.averaged_coef) + X @ result.averaged_coef
        draws = result.draws
        values = draws.predict(centred)
        spread = draws.weight @ (values - draws.weight @ values) ** 2
        noise = result.noise_variance
        if self.has_intercept:
            noise *= 1.0 + 1.0 / (result.n_samples + 1)
        return mean, np.sqrt(spread + noise)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        return self.result.to_dict() | {
            "target": self.target,
            "r2": _number(self.r2),
            "noise_std": _number(self.noise_std),
            "columns": [asdict(row) for row in self.rows()],
        }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _letter(i: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return letters[i] if i < len(letters) else f"{letters[i % 26]}{i // 26}"
