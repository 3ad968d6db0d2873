import numpy as np
import pytest

from l0anneal import ensembles


def test_planted_has_the_moments_of_the_paper():
    n = 1000
    instance = ensembles.planted(n, 0.6, 0.3, sigma_x2=4.0, sigma_xi2=0.25, random_state=0)
    assert instance.A.shape == (600, n)
    # standard errors: of a variance over m numbers, σ² √(2/m)
    assert n * instance.A.var() == pytest.approx(1, abs=4 * np.sqrt(2 / instance.A.size))
    assert instance.support.size / n == pytest.approx(0.3, abs=4 * np.sqrt(0.3 * 0.7 / n))
    values = instance.truth[instance.support]
    assert values.var() == pytest.approx(4, abs=4 * 4 * np.sqrt(2 / values.size))
    noise = instance.y - instance.A @ instance.truth
    assert noise.var() == pytest.approx(0.25, abs=4 * 0.25 * np.sqrt(2 / 600))


def test_seeds_and_truth():
    a = ensembles.planted(50, 0.5, 0.2, random_state=3)
    b = ensembles.planted(50, 0.5, 0.2, random_state=3)
    np.testing.assert_array_equal(a.A, b.A)
    np.testing.assert_array_equal(a.y, b.y)
    c = ensembles.planted(50, 0.5, 0.2)
    np.testing.assert_array_equal(c.y, ensembles.planted(50, 0.5, 0.2, random_state=c.seed).y)
    assert not np.array_equal(a.y, c.y)
    assert a.mse(a.truth) == 0
    assert a.mse(np.zeros(50)) == pytest.approx(np.mean(a.truth**2))


def test_fixed_size_and_noise_only():
    assert ensembles.planted(50, 0.5, 0.2, support="fixed", random_state=0).support.size == 10
    instance = ensembles.noise_only(50, 0.5, random_state=0)
    assert instance.support.size == 0
    assert instance.y.any()
    assert instance.size(0.21) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.5, 0.1), "n_columns"),
        ((10, 0.0, 0.1), "alpha"),
        ((10, 0.5, 1.1), "rho_hat"),
        ((10, 0.5, 0.1, -1.0), "variances"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        ensembles.planted(*arguments)
    with pytest.raises(ValueError, match="bernoulli"):
        ensembles.planted(10, 0.5, 0.1, support="other")
