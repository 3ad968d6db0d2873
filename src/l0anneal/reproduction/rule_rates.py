"""How often each rule of the verdicts says "agrees": at its margin, for the claim, and against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.rules import (
    Status,
    Verdict,
    bracket,
    decide,
    larger,
    more_often,
    more_often_paired,
    more_often_together,
    not_less_often,
    rate_above,
    within,
)

__all__ = ["CASES", "Case", "rate"]

Truth = Literal["margin", "claim", "violation"]
_N_POINTS = 30


@dataclass(frozen=True)
class Case:
    """A rule with data to try it on.

    Attributes
    ----------
    draw : callable
        Takes a random generator, the number of samples and the place of the truth, and returns the
        verdict on fresh data.
    places : mapping
        Where the truth lies at the margin, for the claim and against it.
    says : str
        The three places in words.
    """

    draw: Callable[[np.random.Generator, int, float], Verdict]
    places: dict[Truth, float]
    says: str


def rate(
    name: str, truth: Truth, n_samples: int, n_trials: int, status: Status = "agrees", seed: int = 0
) -> float:
    """Return the fraction of trials in which a rule, alone on its page, gives a status.

    Examples
    --------
    >>> rate("more often", "violation", 100, 20)
    0.0
    """
    rng = np.random.default_rng([seed, sorted(CASES).index(name)])
    case = CASES[name]
    verdicts = [case.draw(rng, n_samples, case.places[truth]) for _ in range(n_trials)]
    return sum(decide([verdict])[0].status == status for verdict in verdicts) / n_trials


def _mean(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return within(Estimate([rng.normal(place, 1.0, n)], [1]), 0.0, 0.5)


def _skewed_mean(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return within(Estimate([rng.exponential(1.0, n) - 1.0 + place], [1]), 0.0, 0.5)


def _limit(rng: np.random.Generator, n: int, place: float) -> Verdict:
    sizes = np.array([100, 200, 400])
    groups = [rng.normal(place + 5.0 / size, 1.0, n) for size in sizes]
    return within(Estimate(groups, limit_of_lines(sizes)), 0.0, 0.8)


def limit_of_lines(sizes: NDArray[np.int_]) -> list[float]:
    """Return the weights of the intercept of a straight line in 1/N, fitted with equal weights."""
    x = 1.0 / sizes
    return list(1 / sizes.size - x.mean() * (x - x.mean()) / np.sum((x - x.mean()) ** 2))


def _curve(rng: np.random.Generator, n: int, place: float) -> Verdict:
    """Curves whose points are correlated like those of a run; one point is off."""
    walks = rng.normal(size=(n, _N_POINTS)).cumsum(axis=1) / np.sqrt(np.arange(1, _N_POINTS + 1))
    walks[:, 7] += place
    return within(Estimate([walks], [1]), 0.0, 0.5)


def _paired(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return larger(Estimate([rng.exponential(1.0, n) - 1.0 + place], [1]))


def _unpaired(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return larger(Estimate([rng.normal(place, 2.0, n), rng.normal(0.0, 1.0, n)], [1, -1]))


def _every_point(rng: np.random.Generator, n: int, place: float) -> Verdict:
    """Ten gains of one run each; one of them is off."""
    gains = rng.normal(0.5, 1.0, (n, 10)) + 0.5 * rng.normal(size=(n, 1))
    gains[:, 3] += place - 0.5
    return larger(Estimate([gains], [1]))


def _mcnemar(rng: np.random.Generator, n: int, place: float) -> Verdict:
    kind = rng.choice(4, n, p=[0.3, 0.3, 0.2 + place, 0.2 - place])
    return more_often_paired((kind == 0) | (kind == 2), (kind == 0) | (kind == 3))


def _fisher(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return more_often((rng.binomial(n, 0.4 + place), n), (rng.binomial(n, 0.4), n))


def _together(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return more_often_together(
        [
            ((rng.binomial(n, rate + place), n), (rng.binomial(n, rate), n))
            for rate in (0.2, 0.4, 0.6)
        ]
    )


def _not_less(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return not_less_often((rng.binomial(n, 0.7 + place), n), (rng.binomial(n, 0.7), n), 0.2)


def _rate(rng: np.random.Generator, n: int, place: float) -> Verdict:
    return rate_above((rng.binomial(n, place), n), 0.9)


def _bracket(rng: np.random.Generator, n: int, place: float) -> Verdict:
    below, above = rng.binomial(n, 1 - place), rng.binomial(n, 0.9)
    return bracket(rate_above((n - below, n), 0.5), rate_above((above, n), 0.5))


def _in_units(margin: float) -> str:
    return f"mean {margin:g} σ off at the margin, at it for the claim, {2 * margin:g} σ off against"


CASES: dict[str, Case] = {
    "within, mean": Case(_mean, {"margin": 0.5, "claim": 0.0, "violation": 1.0}, _in_units(0.5)),
    "within, skewed mean": Case(
        _skewed_mean, {"margin": 0.5, "claim": 0.0, "violation": 1.0}, "the same, exponential data"
    ),
    "within, limit of N": Case(
        _limit, {"margin": 0.8, "claim": 0.0, "violation": 1.6}, _in_units(0.8) + ", 1/N line"
    ),
    "within, curve": Case(
        _curve, {"margin": 0.5, "claim": 0.0, "violation": 1.0}, "one point of 30, correlated"
    ),
    "larger, paired": Case(
        _paired, {"margin": 0.0, "claim": 0.5, "violation": -0.5}, "no gain, ±0.5 σ; exponential"
    ),
    "larger, unpaired": Case(
        _unpaired, {"margin": 0.0, "claim": 1.0, "violation": -1.0}, "no gain, ±1; σ = 2 and 1"
    ),
    "larger, every point": Case(
        _every_point,
        {"margin": 0.0, "claim": 0.5, "violation": -0.5},
        "one point of 10 has no gain, or −0.5; the others 0.5; σ = 1.1",
    ),
    "more often, paired": Case(
        _mcnemar, {"margin": 0.0, "claim": 0.15, "violation": -0.15}, "0.2 ± 0.15 discordant"
    ),
    "more often": Case(
        _fisher, {"margin": 0.0, "claim": 0.25, "violation": -0.25}, "rates 0.4 ± 0.25 and 0.4"
    ),
    "more often, together": Case(
        _together, {"margin": 0.0, "claim": 0.15, "violation": -0.15}, "rates 0.2, 0.4, 0.6 ± 0.15"
    ),
    "not less often": Case(
        _not_less, {"margin": -0.2, "claim": 0.0, "violation": -0.5}, "rate 0.7, margin 0.2"
    ),
    "rate above": Case(
        _rate, {"margin": 0.9, "claim": 0.98, "violation": 0.7}, "rates 0.9, 0.98, 0.7; claim 0.9"
    ),
    "bracket": Case(
        _bracket, {"margin": 0.5, "claim": 0.9, "violation": 0.2}, "two rates on both sides of 0.5"
    ),
}
