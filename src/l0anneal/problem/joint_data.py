"""Regression data with several outputs that share one support.

The energy of a support S is the sum over the outputs of their energies,

    E(S) = Σ_t min over β of ½‖y_t − X_S β − β₀‖²,

so that an output of a large variance counts more than one of a small variance; outputs are not scaled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.problem.projected import off_span
from l0anneal.problem.regression_data import Design

__all__ = ["JointDesign", "design_of"]

ROUNDING = 1e-13  # as in `projected`
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def design_of(X: Any, y: Floats, **options: Any) -> Design | JointDesign:
    """Prepare X and a y of one dimension or, for one support of all its columns, of two."""
    return Design.of(X, y, **options) if y.ndim == 1 else JointDesign.of(X, y, **options)


@dataclass(frozen=True, eq=False)
class JointDesign:
    """The data of several outputs; all have the same columns, weights and candidates."""

    outputs: tuple[Design, ...]

    @classmethod
    def of(cls, X: Any, Y: Floats, *, weights: Floats | None = None, **options: Any) -> JointDesign:
        """Prepare X of shape (M, N) and Y of shape (M, T); see `Design.of`."""
        first = Design.of(X, Y[:, 0], weights=weights, **options)
        rows = slice(None) if weights is None else weights > 0
        designs = [first]
        for t in range(1, Y.shape[1]):
            y = np.zeros(first.y.size)  # rows of the ridge are zero
            y[: first.n_rows] = Y[rows, t] * first.roots[: first.n_rows]
            left = off_span(y[:, None], first.Q)[:, 0]
            if np.linalg.norm(left) <= ROUNDING * np.linalg.norm(y):
                left = np.zeros_like(left)
            designs.append(replace(first, y=y, problem=first.problem.with_signal(left)))
        return cls(tuple(designs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.outputs[0], name)  # candidates, forced, n_samples, ...

    def correlations(self) -> Floats:
        """Return the products of the unit-norm candidates with the outputs, in units of ‖Y‖."""
        problems = [output.problem for output in self.outputs]
        total = np.sqrt(sum(problem.signal_energy for problem in problems)) or 1.0
        each = [p.unit_correlation * np.sqrt(p.unit_energy) for p in problems]
        return np.column_stack(each) / total

    def solve(self, support: Indices) -> tuple[Floats, Floats, float]:
        """Return coefficients (T, N), intercepts (T,) and the sum of the energies of a support."""
        coefs, intercepts, energies = zip(*(output.solve(support) for output in self.outputs))
        return np.array(coefs), np.array(intercepts), float(sum(energies))

    def leave_one_out(self, support: Indices) -> float:
        """Return the sum of the mean squared leave-one-out errors of a fixed support."""
        return float(sum(output.leave_one_out(support) for output in self.outputs))
