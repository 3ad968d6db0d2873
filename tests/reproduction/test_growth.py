"""The growth of search times: an exponential and a power law, each recognised, or not to be told."""

import math

import numpy as np
import pytest

from l0anneal.reproduction.growth import (
    Trials,
    compare_laws,
    fit_growth,
    half_time,
    resampled_rates,
)
from l0anneal.reproduction.rules import decide, larger

LENGTHS = np.geomspace(2, 2000, 6)
SIZES = (40, 60, 80, 100, 200, 400)


def trials(law, seed, n=60, sizes=SIZES):
    """Return searches with exponential waiting times of known growth."""
    rng = np.random.default_rng(seed)
    times = {
        "exponential": lambda size: 3 * math.exp(0.015 * size),
        "power": lambda size: 3 * (size / 40) ** 2.0,
    }[law]
    parts = []
    for size in sizes:
        waiting = rng.exponential(times(size), (n, 1))
        parts.append((size, LENGTHS, waiting < LENGTHS))
    return Trials.of(parts)


@pytest.mark.parametrize(("law", "rate"), [("exponential", 0.015), ("power", 2.0)])
def test_the_rate_is_found_with_its_error(law, rate):
    own = trials(law, 0)
    growth = fit_growth(own, law)
    error = resampled_rates(own, law, 60).std()
    assert abs(growth.rate - rate) < 4 * error
    assert error < 0.1 * rate
    assert growth.steepness == pytest.approx(1.0, abs=0.15)
    expected = 3 * math.log(2) * (math.exp(0.015 * 100) if law == "exponential" else 2.5**2)
    assert float(growth.time_at(100, law)) == pytest.approx(expected, rel=0.4)


def test_each_law_is_recognised_and_the_other_rejected():
    for law, other in (("exponential", "power"), ("power", "exponential")):
        own = trials(law, 1)
        advantage, estimate = compare_laws(own, law)
        against, reverse = compare_laws(own, other)
        assert advantage == pytest.approx(-against)
        assert advantage > 5
        assert decide([larger(estimate)])[0].status == "agrees"
        assert decide([larger(reverse)])[0].status == "differs"


def test_two_near_sizes_cannot_tell_the_laws_apart():
    _, estimate = compare_laws(trials("exponential", 2, sizes=(80, 90, 100)))
    assert decide([larger(estimate)])[0].status == "undecided"


def test_a_half_time_is_bounded_only_by_searches_that_bound_it():
    truth = 3 * math.log(2) * 2.5**2
    found = [half_time(trials("power", seed, sizes=(100,)), 100.0, 1.0) for seed in range(50)]
    assert all(low < best < high for best, low, high in found)
    covered, missed = (sum(low < t < high for _, low, high in found) for t in (truth, 2 * truth))
    assert covered / 50 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 50)
    assert missed < 10
    nothing = Trials.of([(40, LENGTHS, np.zeros((10, 6)))])
    best, low, high = half_time(nothing, 40.0, 1.0)
    assert (best, high) == (low, math.inf)
    assert low > LENGTHS[-1]
    everything = Trials.of([(40, LENGTHS, np.ones((10, 6)))])
    assert half_time(everything, 40.0, 1.0)[1] == 0.0


def test_searches_that_were_not_made_do_not_count():
    outcomes = np.array([[0.0, 1.0, np.nan], [np.nan, np.nan, np.nan], [0.0, 0.0, 1.0]])
    own = Trials.of([(40, [1.0, 2.0, 4.0], outcomes)])
    assert own.found.tolist() == [0, 1, 0, 0, 1]
    assert own.time.tolist() == [1, 2, 1, 2, 4]
    assert own.instance.tolist() == [0, 0, 2, 2, 2]
