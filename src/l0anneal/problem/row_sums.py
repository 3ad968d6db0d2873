"""Sums over all rows, by fold of a cross-validation, while rows are read and when all are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from l0anneal.problem.moments import Moments, merged

__all__ = ["Folds", "PartialSums", "RowSums", "column_label"]


class Folds(NamedTuple):
    """How to divide rows at random: the number of folds, and the seed of the random numbers."""

    n_folds: int
    seed: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RowSums:
    """The sums over all rows, or over each fold of them.

    Attributes
    ----------
    folds : tuple of Moments
        The sums over the rows of each fold; only one if the rows were not divided.
    names : tuple of str or None
        Names of the columns.
    """

    folds: tuple[Moments, ...]
    names: tuple[str, ...] | None

    def total(self) -> Moments:
        """Return the sums over all rows."""
        return merged(self.folds)

    def check_range(self) -> None:
        """Raise ValueError if a column is too large or too small to be squared."""
        total = self.total() if len(self.folds) > 1 else self.folds[0]
        bad = total.out_of_range()
        if bad.size:
            raise ValueError(
                f"{column_label(int(bad[0]), len(total.offset) - 1, self.names)} has values whose "
                "squares are too large or too small for a float: rescale it"
            )


class PartialSums(NamedTuple):
    """The sums over some of the rows, by fold; None for a fold that has no rows yet."""

    folds: tuple[Moments | None, ...]
    names: tuple[str, ...] | None

    def joined(self, other: PartialSums) -> PartialSums:
        """Return the sums over the rows of both."""
        pairs = [[one for one in pair if one is not None] for pair in zip(self.folds, other.folds)]
        return PartialSums(
            tuple(merged(p) if p else None for p in pairs), self.names or other.names
        )

    def complete(self) -> RowSums:
        """Return the sums if these were all rows, or raise ValueError if they are too few."""
        found = tuple(one for one in self.folds if one is not None)
        if not found:
            raise ValueError(
                "there are no rows, or none of positive weight; at least one is needed (an iterator "
                "that was used before is empty)"
            )
        if len(found) < len(self.folds):
            n_rows = sum(one.n_rows for one in found)
            raise ValueError(
                f"cross-validation divides the rows at random into {len(self.folds)} folds, and with "
                f"{n_rows} rows one of them is empty: give more rows"
            )
        sums = RowSums(found, self.names)
        sums.check_range()
        return sums


def column_label(j: int, n_columns: int, names: tuple[str, ...] | None) -> str:
    """Return what to call column j in a message; N stands for y."""
    if j == n_columns:
        return "y"
    return f"column {j}" if names is None else f"column {names[j]!r}"
