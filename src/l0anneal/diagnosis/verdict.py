"""The verdict on a result, with reasons and advice."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import TextWrapper
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Diagnosis", "listed", "search_longer"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The verdict of `diagnose`, with reasons and advice; ``print`` shows all of them.

    Attributes
    ----------
    verdict : {"exact", "agreed", "doubtful", "trapped", "unknown"}
        exact: the columns fit the signal exactly, which they cannot do by chance. agreed:
        independent chains ended with the same fit, or the sampler's own checks passed. trapped: the
        chains ended with fits that have little in common, a short search from the best support
        found a better one, or evidence annealing found no noise level. doubtful: the chains differ
        in less than that, the sampler's own checks failed, or the columns fit only because there
        are so many of them to choose from. unknown: there is only one chain, so that nothing can be
        compared.
    disagreement : float
        By how much the fits of the chains differ: 0 if they are the same, 1 if they have nothing in
        common; NaN if there is only one chain. It does not depend on the units of the columns and of
        the signal. For evidence annealing, by how much the probabilities of the chains differ.
    undecided : tuple of int
        Columns that some chains chose and others did not or, for evidence annealing, columns with a
        probability between .05 and .95.
    groups : tuple of tuples of int
        Columns that stand in for each other: correlated columns of which different chains chose
        different ones or, for evidence annealing, credible sets of several columns.
    excluded : tuple of int
        Columns that are nearly linearly dependent and were therefore not considered together, although
        they fit much better together.
    hysteresis : float
        The largest excess of the distortion during cooling over that when the run is heated again,
        as a fraction of the latter; NaN if the problem was not given, or if the result is not from
        `anneal`.
    fell_behind : float
        The temperature below which this excess is significant, so that the run was no longer in
        equilibrium; NaN if it never is, or if this is not known.
    distortion, theory_distortion : float
        The distortion ε of the run, and what replica symmetry estimates for the best k columns of a
        random dictionary of the same shape and a signal without structure (at the freezing
        temperature). This is no bound: where replica symmetry is unstable, the minimum lies higher.
    reasons, advice : tuples of str
        The reasons for the verdict, and what to do next.

    See Also
    --------
    diagnose : Make a diagnosis.
    stability : How the choice depends on the rows.

    Examples
    --------
    >>> from l0anneal import diagnose, ensembles, kick_search
    >>> instance = ensembles.noise_only(30, 0.5, random_state=1)
    >>> result = kick_search(instance.problem, 3, n_kicks=4, n_chains=2, random_state=0)
    >>> diagnosis = diagnose(result)
    >>> diagnosis.verdict, diagnosis.undecided
    ('doubtful', ())
    """

    verdict: str
    disagreement: float = math.nan
    undecided: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    excluded: tuple[int, ...] = ()
    hysteresis: float = math.nan
    fell_behind: float = math.nan
    distortion: float = math.nan
    theory_distortion: float = math.nan
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    curves: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        reason = f": {self.reasons[0]}" if self.reasons else ""
        return f"<Diagnosis, {self.verdict}{reason}>"

    def __str__(self) -> str:
        rows = [("verdict", self.verdict)]
        rows += [("because", reason) for reason in self.reasons]
        rows += [("advice", advice) for advice in self.advice]
        wrap = TextWrapper(width=80, subsequent_indent=" " * 13, break_long_words=False)
        return "\n".join(wrap.fill(f"{name:<12} {text}") for name, text in rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, its reasons and the advice as plain data that JSON can hold."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "advice": list(self.advice),
            "undecided": list(self.undecided),
            "groups": [list(group) for group in self.groups],
            "excluded": list(self.excluded),
        }


def search_longer(result: Any) -> str:
    """Advise to search longer, by the one parameter that every sampler and estimator has."""
    if result.ended == "time limit":
        return f"search longer: raise time_limit, which ended this run after {result.seconds:.2g} s"
    return f"search longer: set a time_limit above the {result.seconds:.2g} s of this run"


def listed(columns: Iterable[int | str], most: int = 8) -> str:
    """Return a list of columns, by number or by name, as text.

    Examples
    --------
    >>> listed([3, 8, 9]), listed(range(20), 3)
    ('3, 8 and 9', '0, 1, 2 and 17 more')
    """
    shown = [str(j) for j in columns]
    if len(shown) > most:
        shown = [*shown[:most], f"{len(shown) - most} more"]
    return " and ".join([", ".join(shown[:-1])] * (len(shown) > 1) + shown[-1:])
