"""What a user knows about the columns and the noise, as parameters of the regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.checks import check_choice, check_positive
from l0anneal.estimators.columns import column_indices
from l0anneal.problem.regression_data import Design
from l0anneal.samplers.evidence.groups import check_groups
from l0anneal.samplers.evidence.prior import SLABS, check_density

if TYPE_CHECKING:
    from l0anneal.estimators.subset_regressor import AnnealedSubsetRegressor

__all__ = ["GivenPrior"]

DEFAULTS = {"rho": None, "groups": None, "slab": "learned", "noise_variance": None}
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GivenPrior:
    """The parameters of the same names, checked; columns are those of X."""

    rho: Any
    groups: tuple[Indices, ...]
    slab: str
    noise_variance: float | None

    @classmethod
    def of(cls, model: AnnealedSubsetRegressor, n_columns: int, names: Any) -> GivenPrior:
        """Check the parameters of a regressor, or raise ValueError."""
        given = [name for name, usual in DEFAULTS.items() if _differs(getattr(model, name), usual)]
        if given and model.n_nonzero_coefs != "auto":
            raise ValueError(
                f"{given[0]} is part of the model of n_nonzero_coefs='auto'; got n_nonzero_coefs="
                f"{model.n_nonzero_coefs!r}: leave {given[0]} out, or choose 'auto'"
            )
        check_choice("slab", model.slab, tuple(SLABS))
        if model.noise_variance is not None:
            check_positive("noise_variance", model.noise_variance)
        rho = check_density(model.rho, n_columns)
        listed = [
            column_indices(group, n_columns, names, "groups")
            for group in ([] if model.groups is None else model.groups)
        ]
        groups = check_groups(listed, np.ones(n_columns))
        if groups and model.slab == "two humps":
            raise ValueError("groups need a slab of one hump; got slab='two humps'")
        if groups and isinstance(rho, np.ndarray):
            raise ValueError("give groups or a rho for each column, not both")
        slab = "one hump" if groups else str(model.slab)
        return cls(rho, groups, slab, model.noise_variance)

    @property
    def certain(self) -> Indices:
        """Columns with a prior probability of 1, which are always included."""
        if not isinstance(self.rho, np.ndarray):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.rho == 1.0).astype(np.int64)

    def options(self, design: Design) -> dict[str, Any]:
        """Return options of `evidence_anneal_in`, whose columns are the candidates of the design."""
        place = np.full(design.n_columns, -1, dtype=np.int64)
        place[design.candidates] = np.arange(design.candidates.size)
        groups = []
        for group in self.groups:
            forced = np.isin(group, design.forced)
            if 0 < forced.sum() < group.size:
                raise ValueError(
                    f"always_include must have all columns of a group or none; got {group[forced]} of "
                    f"the group {group}"
                )
            left = place[group][place[group] >= 0]  # without constant columns
            if left.size > 1:
                groups.append(left)
        per_column = isinstance(self.rho, np.ndarray)
        return {
            "rho": self.rho[design.candidates] if per_column else self.rho,
            "groups": tuple(groups),
            "slab": self.slab,
            "noise_variance": self.noise_variance,
        }


def _differs(value: Any, usual: Any) -> bool:
    return value is not usual and not (isinstance(value, str) and value == usual)
