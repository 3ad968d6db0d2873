import numpy as np
import pytest
from scipy import stats

from l0anneal.slab import LOG_PRIOR, PARTS, WEIGHT, Slab


def moments(x, centre):
    """Straight from the model, by sums over a grid: P(m > 0), E(log v), E(m)."""
    sums = np.zeros(4)
    for c, log_prior in zip(PARTS, LOG_PRIOR):
        middle = (1 - c) * centre
        m = np.linspace(0.0025, 7.9975, 1600) if c else np.zeros(1)
        m, log_v = np.meshgrid(m, np.log(middle) + np.linspace(-3.0, 6.0, 901))
        v = np.exp(log_v)
        chi = WEIGHT * middle / v
        law = np.exp(log_prior) * stats.chi2(WEIGHT).pdf(chi) * chi  # of log v
        if c:
            law *= 2.0 * stats.norm.pdf(m, scale=np.sqrt(v * c / (1 - c))) * 0.005
        for value in x:
            law *= 0.5 * (stats.norm.pdf(value, m, v**0.5) + stats.norm.pdf(value, -m, v**0.5))
        sums += [np.sum(law * what) for what in (1.0, m > 0, log_v, m)]
    return sums[1:] / sums[0]


@pytest.mark.parametrize(
    "x", [[0.9, -1.1, 1.0], [0.1, -1.6, 0.4]], ids=["of one size", "of all sizes"]
)
def test_humps_have_their_law(x):
    x = np.array(x)
    slab, rng = Slab(1.3), np.random.default_rng(0)
    draws = np.empty((6_000, 3))
    for row in draws:
        slab.draw(x, rng)
        row[:] = slab.m > 0, np.log(slab.v), slab.m
    batches = draws.reshape(50, -1, 3).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(50)
    assert np.all(error < 0.03)
    assert np.all(np.abs(batches.mean(axis=0) - moments(x, 1.3)) < 4.5 * error)


def test_coefficients_of_one_size_show_two_humps_and_gaussian_ones_do_not():
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], 30)
    for x, humps in [
        (signs * (1 + 0.1 * rng.standard_normal(30)), 1.0),
        (rng.normal(size=30), 0.0),
    ]:
        slab = Slab(1.0)
        found = []
        for _ in range(300):
            drawn = slab.draw(x, rng)
            found.append(slab.m > 0)
        assert np.mean(found) == pytest.approx(humps, abs=0.2)
        if humps:
            np.testing.assert_array_equal(drawn, signs)


def test_without_coefficients_the_law_is_the_prior():
    slab, rng = Slab(2.0), np.random.default_rng(2)
    nothing = np.zeros(0)
    humps = []
    for _ in range(4000):
        slab.draw(nothing, rng)
        humps.append(slab.m > 0)
    assert np.mean(humps) == pytest.approx(0.5, abs=4.5 * 0.5 / np.sqrt(4000))
