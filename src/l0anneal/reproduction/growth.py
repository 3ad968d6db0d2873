"""How the time that a search needs grows with the size of the system.

A search of length t on an instance of N columns succeeds with the probability

    P(N, t) = 1 − exp(−(t/t_0(N))^b),        t_0 ∝ exp(r N)  or  t_0 ∝ N^r,

with b = 1 for attempts without memory. Both laws have three parameters, so their likelihoods can be
compared directly. Searches of different lengths on one instance are not independent: errors come from
resampling whole instances, and the laws are compared by the likelihood of each instance (Vuong's test).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal.reproduction.estimate import Estimate

__all__ = ["Growth", "Law", "Trials", "compare_laws", "fit_growth", "half_time", "resampled_rates"]

Floats = NDArray[np.float64]
Law = Literal["exponential", "power"]
_SCALE = 100.0  # columns; keeps the numbers of the fit near one
_RIDGE = 1e-4  # keeps the fit finite where all searches succeed or fail


@dataclass(frozen=True)
class Trials:
    """Searches: sizes, lengths and outcomes of each, and the instance that each was made on."""

    size: Floats
    time: Floats
    found: Floats
    instance: NDArray[np.int_]

    @classmethod
    def of(cls, parts: Sequence[tuple[int, ArrayLike, ArrayLike]]) -> Trials:
        """Gather groups of instances: each has a size, lengths, and outcomes by instance and length."""
        size, time, found, instance = [], [], [], []
        n = 0
        for columns, lengths, outcomes in parts:
            table = np.asarray(outcomes, dtype=np.float64)
            t = np.broadcast_to(np.asarray(lengths, dtype=np.float64), table.shape)
            size.append(np.full(table.size, float(columns)))
            time.append(t.ravel())
            found.append(table.ravel())
            instance.append(np.repeat(n + np.arange(len(table)), table.shape[1]))
            n += len(table)
        known = np.isfinite(np.concatenate(found))
        return cls(*(np.concatenate(part)[known] for part in (size, time, found, instance)))


@dataclass(frozen=True)
class Growth:
    """A fitted law.

    Attributes
    ----------
    rate, steepness, log_time : float
        r of t_0(N), the exponent b, and log t_0 at N = 100.
    log_likelihood : array
        The log likelihood of each trial.
    """

    rate: float
    steepness: float
    log_time: float
    log_likelihood: Floats

    def time_at(self, size: ArrayLike, law: Law, chance: float = 0.5) -> Floats:
        """Return the length at which searches succeed with the given probability."""
        log_chance = math.log(-math.log1p(-chance)) / self.steepness
        x = _covariate(np.asarray(size, dtype=np.float64), law)
        unit = _SCALE if law == "exponential" else 1.0
        return np.asarray(np.exp(self.log_time + self.rate * unit * x + log_chance))


def _covariate(size: Floats, law: Law) -> Floats:
    """N or log N, zero at N = 100."""
    return size / _SCALE - 1.0 if law == "exponential" else np.log(size / _SCALE)


def fit_growth(trials: Trials, law: Law, weights: ArrayLike | None = None) -> Growth:
    """Fit a law by maximum likelihood (a binomial model with complementary log-log link).

    Parameters
    ----------
    trials : Trials
        The searches.
    law : {"exponential", "power"}
        How t_0 depends on N.
    weights : array, optional
        How often each trial counts.

    Examples
    --------
    >>> lengths = np.geomspace(1, 1e4, 9)
    >>> rng = np.random.default_rng(0)
    >>> parts = [
    ...     (n, lengths, rng.exponential(np.exp(0.05 * n), (200, 1)) < lengths)
    ...     for n in (40, 80, 120)
    ... ]
    >>> growth = fit_growth(Trials.of(parts), "exponential")
    >>> bool(abs(growth.rate - 0.05) < 0.005)
    True
    """
    w = np.ones(trials.found.size) if weights is None else np.asarray(weights, dtype=np.float64)
    x = np.stack([np.ones_like(w), np.log(trials.time), _covariate(trials.size, law)], axis=1)
    y = trials.found
    beta = np.array([-1.0, 0.5, -1.0])
    ridge = _RIDGE * np.eye(3)
    best = _penalised(beta, x, y, w)
    for _ in range(100):
        eta = np.clip(x @ beta, -30.0, 3.5)
        rate = np.exp(eta)
        miss = np.exp(-rate)
        chance = np.maximum(-np.expm1(-rate), 1e-300)
        slope = rate * miss
        score = x.T @ (w * (y - chance) * rate / chance) - 2 * _RIDGE * beta
        information = (x * (w * slope * rate / chance)[:, None]).T @ x + 2 * ridge
        step = np.linalg.solve(information, score)
        scale = 1.0
        while (new := _penalised(beta + scale * step, x, y, w)) < best and scale > 1e-6:
            scale *= 0.5
        beta = beta + scale * step
        done = new - best < 1e-9
        best = new
        if done:
            break
    steepness = float(beta[1])
    unit = _SCALE if law == "exponential" else 1.0
    return Growth(
        rate=float(-beta[2] / steepness / unit),
        steepness=steepness,
        log_time=float(-beta[0] / steepness),
        log_likelihood=_log_likelihood(beta, x, y),
    )


def _log_likelihood(beta: Floats, x: Floats, y: Floats) -> Floats:
    rate = np.exp(np.clip(x @ beta, -30.0, 3.5))
    return np.where(y > 0.5, np.log(np.maximum(-np.expm1(-rate), 1e-300)), -rate)


def _penalised(beta: Floats, x: Floats, y: Floats, w: Floats) -> float:
    return float(w @ _log_likelihood(beta, x, y) - _RIDGE * beta @ beta)


def half_time(trials: Trials, size: float, steepness: float) -> tuple[float, float, float]:
    """Return the length at which half of the searches at one size succeed, with a 95 % interval.

    The interval has the lengths whose likelihood is within a factor e^1.92 of the largest, as if all
    searches were independent, and the central 95 % of resampled instances. An end that the searches
    do not bound is 0 or infinite.
    """
    own = trials.size == size
    t, y = np.log(trials.time[own]), trials.found[own]
    _, instance = np.unique(trials.instance[own], return_inverse=True)
    grid = np.linspace(t.min() - 12.0, t.max() + 12.0, 1200)
    each = np.zeros((instance.max() + 1, grid.size))
    values = _log_likelihood(np.array([steepness]), (t[:, None] - grid)[..., None], y[:, None])
    np.add.at(each, instance, values)
    total = each.sum(axis=0)
    likely = np.flatnonzero(total >= total.max() - 1.92)
    rng = np.random.default_rng(len(each))
    counts = rng.multinomial(len(each), np.full(len(each), 1 / len(each)), 200)
    ends = np.quantile(np.argmax(counts @ each, axis=1), [0.025, 0.975], method="nearest")
    first, last = min(likely[0], int(ends[0])), max(likely[-1], int(ends[1]))
    shift = math.log(math.log(2.0)) / steepness
    low = 0.0 if first == 0 else math.exp(grid[first] + shift)
    high = math.inf if last == grid.size - 1 else math.exp(grid[last] + shift)
    if not math.isfinite(high):
        return low, low, high
    return (math.exp(grid[int(np.argmax(total))] + shift) if low > 0 else high), low, high


def compare_laws(trials: Trials, favoured: Law = "exponential") -> tuple[float, Estimate | None]:
    """Compare the exponential law with the power law, or the other way round.

    Returns
    -------
    advantage : float
        log likelihood of the favoured law minus that of the other. Both have three parameters, so the
        difference of Akaike's criteria is twice this.
    estimate : Estimate or None
        The mean advantage of an instance, over all sizes; None if a size has a single instance.
    """
    exponential, power = fit_growth(trials, "exponential"), fit_growth(trials, "power")
    sign = 1.0 if favoured == "exponential" else -1.0
    gain = sign * (exponential.log_likelihood - power.log_likelihood)
    each = np.bincount(trials.instance, gain)
    size_of = np.zeros(each.size)
    size_of[trials.instance] = trials.size
    seen = np.bincount(trials.instance, minlength=each.size) > 0
    each, size_of = each[seen], size_of[seen]
    groups = [each[size_of == size] for size in np.unique(size_of)]
    advantage = float(each.sum())
    if min(len(group) for group in groups) < 2:
        return advantage, None
    return advantage, Estimate(groups, [len(group) / each.size for group in groups])


def resampled_rates(trials: Trials, law: Law, n_resampled: int = 100) -> Floats:
    """Return r of fits to resampled instances, those of each size resampled among themselves."""
    rng = np.random.default_rng(n_resampled)
    n = int(trials.instance.max()) + 1
    size_of = np.zeros(n)
    size_of[trials.instance] = trials.size
    found = []
    for _ in range(n_resampled):
        counts = np.zeros(n)
        for size in np.unique(trials.size):
            own = np.flatnonzero(size_of == size)
            counts[own] = np.bincount(rng.integers(own.size, size=own.size), minlength=own.size)
        found.append(fit_growth(trials, law, counts[trials.instance]).rate)
    return np.array(found)
