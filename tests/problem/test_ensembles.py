"""Random instances of the paper."""

import numpy as np
import pytest

from l0anneal import ensembles


def test_a_planted_instance_has_the_moments_of_the_paper():
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


def test_a_seed_gives_one_instance():
    a = ensembles.planted(50, 0.5, 0.2, random_state=3)
    b = ensembles.planted(50, 0.5, 0.2, random_state=3)
    np.testing.assert_array_equal(a.A, b.A)
    np.testing.assert_array_equal(a.y, b.y)
    c = ensembles.planted(50, 0.5, 0.2)
    np.testing.assert_array_equal(c.y, ensembles.planted(50, 0.5, 0.2, random_state=c.seed).y)
    assert not np.array_equal(a.y, c.y)
    assert a.mse(a.truth) == 0
    assert a.mse(np.zeros(50)) == pytest.approx(np.mean(a.truth**2))


def test_the_planted_support_has_the_size_asked_for():
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
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ensembles.planted(*arguments)
    with pytest.raises(ValueError, match="bernoulli"):
        ensembles.planted(10, 0.5, 0.1, support="other")


def test_a_seeded_dictionary_is_a_chain_of_blocks():
    n, blocks = 400, 4
    instance = ensembles.seeded(n, 0.75, 0.5, random_state=1, alpha_seed=1.0, n_blocks=blocks)
    assert instance.A.shape == (300, 400)
    seed_rows, width = 100, 100
    rest = np.array_split(np.arange(seed_rows, 300), blocks - 1)
    rows = [np.arange(seed_rows), *rest]
    variance = np.array(
        [
            [np.mean(instance.A[r, q * width : (q + 1) * width] ** 2) for q in range(blocks)]
            for r in rows
        ]
    )
    relative = {0: 1.0, -1: 1.0, 1: 0.5}
    expected = np.array([[relative.get(q - p, 0.0) for q in range(blocks)] for p in range(blocks)])
    expected /= width * expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(variance, expected, rtol=0.06)
    assert not variance[expected == 0].any()
    # every row has the same power as in the i.i.d. ensemble
    np.testing.assert_allclose(variance.sum(axis=1) * width, 1.0, rtol=0.03)


def test_seeded_instances_are_planted_and_reproducible():
    a, b = (ensembles.seeded(80, 0.75, 0.5, random_state=5) for _ in range(2))
    assert a.A.tobytes() == b.A.tobytes()
    np.testing.assert_allclose(a.y, a.A @ a.truth, atol=1e-12)
    noisy = ensembles.seeded(80, 0.75, 0.5, sigma_xi2=0.1, random_state=5)
    assert np.std(noisy.y - noisy.A @ noisy.truth) == pytest.approx(np.sqrt(0.1), rel=0.3)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"alpha_seed": 0.5}, "alpha_seed"),
        ({"alpha_seed": 3.0}, "alpha_seed"),
        ({"n_blocks": 1}, "n_blocks"),
        ({"forward": -1.0}, "backward and forward"),
        ({"support": "random"}, "bernoulli"),
    ],
)
def test_impossible_chains_are_refused(more, words):
    with pytest.raises(ValueError, match=words):
        ensembles.seeded(80, 0.75, 0.5, **more)
