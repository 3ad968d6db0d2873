"""The random number generator of the kernels."""

import numpy as np
from numba import njit
from scipy import stats

from helpers.kernels import from_python
from l0anneal.engine import rng as generator
from l0anneal.engine.rng import _next, below, stream, uniform

accepts = from_python(generator.accepts)


def test_outputs_are_those_of_the_published_generator():
    """Compare with the published first outputs of xoshiro256++ from the state 1, 2, 3, 4."""
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert [int(_next(state)) for _ in expected] == expected


@njit
def _fill(state, n, integers, floats):
    for i in range(integers.size):
        integers[i] = below(state, n)
        floats[i] = uniform(state)


def test_draws_are_uniform():
    integers, floats = np.empty(10**6, dtype=np.int64), np.empty(10**6)
    for n in (1, 2, 7, 1000):
        _fill(stream(np.random.SeedSequence(n)), n, integers, floats)
        assert integers.min() >= 0
        assert integers.max() == n - 1
        if n > 1:
            assert stats.chisquare(np.bincount(integers)).pvalue > 1e-3
        assert floats.min() >= 0
        assert floats.max() < 1
        assert stats.kstest(floats, "uniform").pvalue > 1e-3


def test_streams_of_children_differ():
    seeds = np.random.SeedSequence(0).spawn(3)
    states = [tuple(stream(seed)) for seed in seeds]
    assert len(set(states)) == 3


def test_metropolis_rule_without_the_exponential_is_the_rule():
    chances = [0.0, 2.0**-53, 1e-10, 0.5, 1.0 - 2.0**-53]
    costs = [-np.inf, -1.0, 0.0, 0.1, 23.0, 36.7, 36.8, 39.9, 40.1, 700.0, 745.0, 746.0, np.inf]
    for chance in chances:
        for cost in [*costs, np.nan]:
            with np.errstate(over="ignore"):
                assert accepts(chance, cost) == (chance < np.exp(-cost))
