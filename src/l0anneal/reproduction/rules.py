"""The rules of the verdicts: whether numbers show a claim, contradict it, or leave it open.

A rule tests a claim in both directions. Its ``p`` is the p-value of the test whose alternative is the
claim, so that a small ``p`` shows the claim; its ``p_against`` is the p-value of the test whose
alternative is that the claim fails. A claim of equality holds within a margin, and is shown by two
one-sided tests. `decide` applies Holm's method to all verdicts of a page. A verdict that neither test
decides is "undecided" or, if so few samples could not have shown the claim at all and do not speak
against it either, "too few".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal.reproduction.estimate import Estimate

__all__ = [
    "LEVEL",
    "Decision",
    "Status",
    "Verdict",
    "bracket",
    "decide",
    "holm",
    "larger",
    "more_often",
    "more_often_paired",
    "more_often_together",
    "not_less_often",
    "rate_above",
    "same_number",
    "too_few",
    "within",
]

Floats = NDArray[np.float64]
Status = Literal["agrees", "differs", "undecided", "too few"]

#: The probability that a page has a false "agrees" at all, and the same for a false "differs".
LEVEL = 0.05


@dataclass(frozen=True)
class Verdict:
    """The numbers of one verdict, before the other verdicts of the page are taken into account.

    Attributes
    ----------
    rule : str
        The name of the rule.
    text : str
        The claim with its margin, and the interval or the counts.
    p, p_against : float
        The p-values for and against the claim.
    best_p : float
        The smallest p that as many samples could have given.
    is_test : bool
        False for a comparison of two numbers that do not fluctuate.
    """

    rule: str
    text: str
    p: float
    p_against: float
    best_p: float = 0.0
    is_test: bool = True

    def saying(self, text: str) -> Verdict:
        """Return the same verdict with a text before its own."""
        return replace(self, text=f"{text}: {self.text}" if self.text else text)


@dataclass(frozen=True)
class Decision:
    """The status of a verdict on its page, and its p-values after Holm's method."""

    verdict: Verdict
    status: Status
    p: float
    p_against: float


# ---------------------------------------------------------------- all verdicts of a page


def holm(p: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values; those below a level are significant together.

    Examples
    --------
    >>> [round(x, 6) for x in holm([0.01, 0.04, 0.03]).tolist()]
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def decide(verdicts: Sequence[Verdict], level: float = LEVEL) -> list[Decision]:
    """Decide all verdicts of a page together.

    Holm's method is applied to the p-values for the claims, and to those against them. Comparisons
    that are no tests are not counted.

    Examples
    --------
    >>> shown, open_ = more_often((19, 100), (0, 100)), more_often((5, 10), (4, 10))
    >>> [decision.status for decision in decide([shown, open_, too_few("no runs")])]
    ['agrees', 'undecided', 'too few']
    """
    tests = [i for i, verdict in enumerate(verdicts) if verdict.is_test]
    adjusted = np.array([[v.p, v.p_against] for v in verdicts]).reshape(-1, 2)
    for column in (0, 1):
        adjusted[tests, column] = holm(adjusted[tests, column])
    decisions = []
    for verdict, (p, p_against) in zip(verdicts, adjusted.tolist()):
        status: Status = "undecided"
        if p <= level:
            status = "agrees"
        elif p_against <= level:
            status = "differs"
        elif verdict.best_p > level / max(len(tests), 1) and verdict.p_against > level:
            status = "too few"
        decisions.append(Decision(verdict, status, p, p_against))
    return decisions


def too_few(reason: str) -> Verdict:
    """Return the verdict where there are not even enough samples for a test."""
    return Verdict("too few samples", reason, 1.0, 1.0, 1.0)


# ---------------------------------------------------------------- numbers that do not fluctuate


def same_number(value: float, printed: float, margin: float) -> Verdict:
    """Claim that a computed number is the printed one, within a margin.

    Examples
    --------
    >>> decide([same_number(0.8313, 0.831, 0.001), same_number(0.00905, 0.00919, 1e-5)])[1].status
    'differs'
    """
    same = abs(value - printed) <= margin * (1 + 1e-9)
    text = f"{value:.5g} against {printed:g} ± {margin:.2g}"
    return Verdict("same number", text, float(not same), float(same), is_test=False)


# ---------------------------------------------------------------- means and curves


def within(
    estimate: Estimate,
    target: ArrayLike,
    margin: ArrayLike,
    unit: str = "",
    scale: float = 1.0,
    places: Sequence[str] = (),
) -> Verdict:
    """Claim that a mean, or every point of a mean curve, lies within a margin of its target.

    The claim is shown if two one-sided tests show it at every point; the largest p counts, which
    needs no correction for the number of points. The claim fails if the largest excess over the
    margin is significant, measured by the largest pivot of each resampled curve.

    Parameters
    ----------
    estimate : Estimate
        What was measured.
    target, margin : float or array
        The claimed values, and how far from them the mean may be.
    unit, scale : str, float
        Numbers in the text are multiplied by the scale and followed by the unit.
    places : sequence of str
        The names of the points, for the text.

    Examples
    --------
    >>> near = Estimate([np.random.default_rng(0).normal(1.01, 0.1, 100)], [1])
    >>> decide([within(near, 1.0, 0.05), within(near, 1.2, 0.05)])[1].status
    'differs'
    """
    from scipy.stats import t

    target, margin = (np.broadcast_to(v, estimate.mean.shape) for v in (target, margin))
    p = max(
        float(estimate.p_below(target + margin).max()),
        float(estimate.p_above(target - margin).max()),
    )
    excess = (np.abs(estimate.mean - target) - margin) / estimate.error
    worst = int(np.argmax(excess))
    largest = np.abs(estimate.pivots).max(axis=1)
    share = (1 + int(np.sum(largest >= excess[worst]))) / (largest.size + 1)
    p_against = max(
        min(estimate.caution * share, 1.0),
        float(t.sf(excess[worst], estimate.freedom[worst])),
    )
    best_p = float(np.max(t.sf(margin / estimate.error, estimate.freedom)))
    low, high = estimate.interval(LEVEL)
    text = (
        f"{'clearest ' if estimate.mean.size > 1 else ''}deviation "
        f"{scale * (estimate.mean - target)[worst]:+.3g}{unit} "
        f"({scale * (low - target)[worst]:+.3g} to {scale * (high - target)[worst]:+.3g}), "
        f"margin {scale * margin[worst]:.2g}{unit}"
        f"{f', at {places[worst]}' if len(places) else ''}"
    )
    return Verdict("within a margin", text, p, p_against, best_p)


def larger(
    estimate: Estimate, than: float = 0.0, unit: str = "", places: Sequence[str] = ()
) -> Verdict:
    """Claim that a mean, or a mean difference, is larger than a number.

    With one group of differences on shared instances this is the paired test, with two groups and
    the weights 1 and −1 the unpaired one (Welch). Of several points, every one has to be larger; the
    claim fails if the lowest of them is significantly below, beside the lowest pivot of each resampled
    curve.

    Examples
    --------
    >>> gain = np.random.default_rng(0).normal(0.5, 1.0, 100)
    >>> decide([larger(Estimate([gain], [1])), larger(Estimate([-gain], [1]))])[1].status
    'differs'
    """
    worst = int(np.argmin((estimate.mean - than) / estimate.error))
    low, high = estimate.interval(LEVEL)
    text = f"{estimate.mean[worst]:+.3g}{unit} ({low[worst]:+.3g} to {high[worst]:+.3g})"
    if than:
        text += f", claimed above {than:+.3g}{unit}"
    if len(places):
        text = f"least clear at {places[worst]}: {text}"
    p = float(estimate.p_above(than).max())
    p_against = estimate.p_some_below(than)
    # if all samples point one way, permuting the signs or the labels gives this p: the law of fewer
    # samples is not known well enough for a smaller one
    n = estimate.n_samples
    best_p = 0.5 ** n[0] if len(n) == 1 else 1.0 / math.comb(sum(n), n[0])
    return Verdict("larger", text, max(p, best_p), max(p_against, best_p), best_p)


# ---------------------------------------------------------------- counts


def more_often_paired(a: ArrayLike, b: ArrayLike) -> Verdict:
    """Claim that a succeeds more often than b on the same instances (McNemar's exact test).

    Examples
    --------
    >>> decide([more_often_paired([True] * 9, [False] * 9)])[0].status
    'agrees'
    """
    from scipy.stats import binom

    a, b = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    only_a, only_b = int(np.sum(a & ~b)), int(np.sum(b & ~a))
    differ = only_a + only_b
    text = f"of {a.size} shared instances {only_a} only by the first, {only_b} only by the second"
    return Verdict(
        "more often, paired",
        text,
        float(binom.sf(only_a - 1, differ, 0.5)),
        float(binom.sf(only_b - 1, differ, 0.5)),
        0.5**a.size,
    )


def more_often(a: tuple[int, int], b: tuple[int, int]) -> Verdict:
    """Claim that a succeeds more often than b on other instances (Fisher's exact test).

    Examples
    --------
    >>> decide([more_often((0, 100), (19, 100))])[0].status
    'differs'
    """
    from scipy.stats import fisher_exact

    table = [[a[0], a[1] - a[0]], [b[0], b[1] - b[0]]]
    p, p_against = (fisher_exact(table, alternative=side).pvalue for side in ("greater", "less"))
    best_p = 1.0 / math.comb(a[1] + b[1], a[1])
    text = f"{a[0]} of {a[1]} against {b[0]} of {b[1]}"
    return Verdict("more often", text, float(p), float(p_against), best_p)


def more_often_together(pairs: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> Verdict:
    """Claim that a succeeds more often than b in several cases together (exact).

    Given how many succeed in each case, the successes of a follow hypergeometric laws if there is no
    difference. Their sum is tested. One case gives Fisher's test.

    Examples
    --------
    >>> cases = [((30, 100), (20, 100)), ((20, 100), (10, 100))]
    >>> [round(more_often_together(c).p, 4) for c in (cases, cases[:1])]
    [0.0082, 0.0706]
    """
    from scipy.stats import hypergeom

    law = np.ones(1)
    for (k, n), (other, m) in pairs:
        law = np.convolve(law, hypergeom(n + m, k + other, n).pmf(np.arange(n + 1)))
    total, of = (sum(a[i] for a, _ in pairs) for i in (0, 1))
    other_total, other_of = (sum(b[i] for _, b in pairs) for i in (0, 1))
    return Verdict(
        "more often, together",
        f"{total} of {of} against {other_total} of {other_of}",
        min(1.0, float(law[total:].sum())),
        min(1.0, float(law[: total + 1].sum())),
        1.0 / math.prod(math.comb(a[1] + b[1], a[1]) for a, b in pairs),
    )


def not_less_often(a: tuple[int, int], b: tuple[int, int], margin: float) -> Verdict:
    """Claim that the rate of a is below that of b by less than a margin, if at all.

    The difference of two rates has Agresti and Caffo's standard error: one success and one failure
    are added to each.

    Examples
    --------
    >>> decide([not_less_often((90, 100), (88, 100), 0.1)])[0].status
    'agrees'
    """
    from scipy.stats import norm

    def z_of(successes: tuple[int, int]) -> float:
        both = [((k + 1) / (n + 2), n + 2) for k, (_, n) in zip(successes, (a, b))]
        error = math.sqrt(sum(rate * (1 - rate) / n for rate, n in both))
        return (both[0][0] - both[1][0] + margin) / error

    z, best = z_of((a[0], b[0])), z_of((a[1], b[1]))
    text = f"{a[0]} of {a[1]} against {b[0]} of {b[1]}, margin {margin:g}"
    return Verdict(
        "not less often", text, float(norm.sf(z)), float(norm.cdf(z)), float(norm.sf(best))
    )


def rate_above(count: tuple[int, int], rate: float) -> Verdict:
    """Claim that a success rate is above a number (exact binomial test).

    Examples
    --------
    >>> decide([rate_above((100, 100), 0.9), rate_above((10, 10), 0.9)])[1].status
    'too few'
    """
    from scipy.stats import binom

    k, n = count
    text = f"{k} of {n}, claimed more than {100 * rate:g} %"
    p, p_against = binom.sf(k - 1, n, rate), binom.cdf(k, n, rate)
    return Verdict("rate above", text, float(p), float(p_against), rate**n)


def bracket(below: Verdict, above: Verdict, text: str = "") -> Verdict:
    """Claim that a threshold lies between two points: both verdicts must be shown.

    The larger p counts for the claim, and twice the smaller p against it.

    Examples
    --------
    >>> low, high = rate_above((97, 100), 0.5), rate_above((99, 100), 0.5)
    >>> decide([bracket(low, high)])[0].status
    'agrees'
    """
    return Verdict(
        "bracket",
        text or f"{below.text}; {above.text}",
        max(below.p, above.p),
        min(1.0, 2.0 * min(below.p_against, above.p_against)),
        max(below.best_p, above.best_p),
        below.is_test or above.is_test,
    )
