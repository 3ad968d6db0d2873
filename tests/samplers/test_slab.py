import numpy as np
import pytest
from scipy import stats

from l0anneal.samplers.evidence.slab import PARTS, WEIGHT, Slab


def moments(x, centre):
    """Straight from the model, by sums over a grid: P(m > 0), E(log v), E(m)."""
    sums = np.zeros(4)
    for c in PARTS:
        middle = (1 - c) * centre
        m = np.linspace(0.005, 7.995, 800) if c else np.zeros(1)
        m, log_v = np.meshgrid(m, np.log(middle) + np.linspace(-3.0, 6.0, 301))
        v = np.exp(log_v)
        chi = WEIGHT * middle / v
        law = (0.1 / 3 if c else 0.9) * stats.chi2(WEIGHT).pdf(chi) * chi  # of log v
        if c:
            prior = stats.norm(scale=np.sqrt(v * c / (1 - c)))
            law *= np.where(m > v**0.5, prior.pdf(m) / prior.sf(v**0.5), 0.0) * 0.01
        for value in x:
            law *= 0.5 * (stats.norm.pdf(value, m, v**0.5) + stats.norm.pdf(value, -m, v**0.5))
        sums += [np.sum(law * what) for what in (1.0, m > 0, log_v, m)]
    return sums[1:] / sums[0]


GAUSSIAN = np.random.default_rng(1).normal(size=30)


@pytest.mark.parametrize(
    "x",
    [[], [0.9, -1.1, 1.0], [0.1, -1.6, 0.4], GAUSSIAN, np.sign(GAUSSIAN) + 0.9 * GAUSSIAN[::-1]],
    ids=["none", "of one size", "of all sizes", "Gaussian", "overlapping humps"],
)
def test_humps_have_their_law(x):
    x = np.array(x)
    slab, rng = Slab(1.3), np.random.default_rng(0)
    draws = np.empty((6_000, 3))
    for row in draws:
        slab.draw(x, rng)
        row[:] = slab.m > 0, np.log(slab.v), slab.m
    batches = draws.reshape(30, -1, 3).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(30)
    assert np.all(error < 0.06)
    assert np.all(np.abs(batches.mean(axis=0) - moments(x, 1.3)) < 4.5 * error)


def test_signs_are_those_of_the_humps():
    """Given m and v, the sign of x is its hump's with odds exp(2 m |x|/v)."""
    x = np.array([0.2, -0.8, 1.5])
    slab, rng = Slab(1.0), np.random.default_rng(1)
    seen, expected, spread = np.zeros(3), np.zeros(3), np.zeros(3)
    for _ in range(4000):
        signs = slab.draw(x, rng)
        own = 1.0 / (1.0 + np.exp(-2.0 * slab.m * np.abs(x) / slab.v))
        seen += signs == np.sign(x)
        expected += own
        spread += own * (1.0 - own)
    assert np.all(spread > 100)
    assert np.all(np.abs(seen - expected) < 4.5 * np.sqrt(spread))


def test_coefficients_of_one_size_show_two_humps():
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], 30)
    slab = Slab(1.0)
    for _ in range(20):
        drawn = slab.draw(signs * (1 + 0.1 * rng.standard_normal(30)), rng)
    assert slab.m == pytest.approx(1.0, abs=0.1)
    np.testing.assert_array_equal(drawn, signs)
