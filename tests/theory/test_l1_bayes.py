"""The l1 and Bayes-optimal limits."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from helpers.theory_reference import NUMBERS, rows
from l0anneal.theory import bayes, l1

THRESHOLDS = rows("thresholds")


@pytest.mark.parametrize("row", THRESHOLDS, ids=lambda r: str(r["rho_hat"]))
def test_thresholds(row):
    assert l1.reconstruction_limit(row["rho_hat"]) == pytest.approx(row["l1_limit"], abs=6e-8)
    assert l1.optimal_threshold(row["rho_hat"]) == pytest.approx(row["l1_threshold"], abs=6e-6)
    assert bayes.amp_threshold(row["rho_hat"]) == pytest.approx(row["amp_threshold"], abs=6e-7)


def test_limits_at_the_ends_and_their_order():
    assert l1.reconstruction_limit(0.0) == 0.0
    assert l1.reconstruction_limit(1.0) == 1.0
    assert bayes.amp_threshold(0.0) == 0.0
    assert bayes.amp_threshold(1.0) == 1.0
    for rho_hat in (1e-4, 0.3, 0.97):
        information = bayes.information_limit(rho_hat)
        amp, basis_pursuit = bayes.amp_threshold(rho_hat), l1.reconstruction_limit(rho_hat)
        assert information < amp < basis_pursuit < 1.0


@pytest.mark.parametrize(("alpha", "rho"), [(0.5, 0.2), (0.4, 0.1)])
def test_noise_only(alpha, rho):
    at = f"alpha {alpha:g}, rho {rho:g}".replace("0.", ".")
    value, refit = l1.distortion(alpha, rho), l1.distortion_after_least_squares(alpha, rho)
    assert value == pytest.approx(NUMBERS[f"l1 distortion, {at}"], abs=6e-8)
    assert refit == pytest.approx(NUMBERS[f"l1 + least squares, {at}"], abs=6e-8)
    assert l1.distortion(alpha, rho, sigma_xi2=3.0) == pytest.approx(3.0 * value, rel=1e-13)
    assert l1.distortion_after_least_squares(alpha, rho, sigma_xi2=3.0) == pytest.approx(
        3.0 * refit, rel=1e-13
    )


def test_lasso_planted_in_noise():
    fit = l1.lasso(0.6, 0.2, sigma_xi2=0.1, theta=1.2)
    assert fit.penalty == pytest.approx(NUMBERS["LASSO penalty"], abs=6e-8)
    assert fit.active_fraction == pytest.approx(NUMBERS["LASSO active fraction"], abs=6e-8)
    assert fit.distortion == pytest.approx(NUMBERS["LASSO distortion"], abs=6e-9)
    assert fit.mse == pytest.approx(NUMBERS["LASSO mse"], abs=6e-9)
    for again in (
        l1.lasso(0.6, 0.2, sigma_xi2=0.1, penalty=fit.penalty),
        l1.lasso(0.6, 0.2, sigma_xi2=0.1, active_fraction=fit.active_fraction),
    ):
        assert again.theta == pytest.approx(1.2, rel=1e-9)
        assert again.mse == pytest.approx(fit.mse, rel=1e-9)


def test_lasso_reduces_to_the_noise_only_formula():
    for options in ({"rho_hat": 0.0}, {"rho_hat": 0.3, "sigma_x2": 0.0}):
        fit = l1.lasso(0.5, sigma_xi2=1.0, active_fraction=0.2, **options)
        assert fit.distortion == pytest.approx(l1.distortion(0.5, 0.2), rel=1e-12)


def test_lasso_mse_is_the_average_of_the_soft_threshold():
    """Compare with a numerical integral over the scalar channel."""
    fit = l1.lasso(0.6, 0.2, sigma_xi2=0.1, theta=1.2)
    v = fit.delta / 0.6
    cut = 1.2 * math.sqrt(v)

    def density(u, variance):
        return math.exp(-0.5 * u * u / variance) / math.sqrt(2.0 * math.pi * variance)

    def soft(u):
        return math.copysign(max(abs(u) - cut, 0.0), u)

    # E[(x - x̂)²] given u = x̂ + sqrt(v) z: the posterior mean of x̂ is u/(1+v), its variance v/(1+v)
    def mean(function, variance):
        return 2.0 * quad(lambda u: function(u) * density(u, variance), 0, 12, points=[cut])[0]

    zero = mean(lambda u: soft(u) ** 2, v)
    nonzero = v / (1.0 + v) + mean(lambda u: (soft(u) - u / (1.0 + v)) ** 2, 1.0 + v)
    assert fit.mse == pytest.approx(0.8 * zero + 0.2 * nonzero, rel=1e-9)


def test_noiseless_lasso_at_vanishing_penalty_is_basis_pursuit():
    limit = l1.reconstruction_limit(0.5)
    theta = l1.optimal_threshold(0.5)
    assert l1.lasso(limit + 1e-4, 0.5, theta=theta).mse == 0.0
    assert l1.lasso(limit - 0.01, 0.5, penalty=1e-6).mse > 1e-4
    assert l1.lasso(limit + 0.01, 0.5, penalty=1e-6).mse < 1e-8


def test_mmse_agrees_with_a_numerical_integral():
    rho_hat, v = 0.3, 0.2

    def gauss(r, variance):
        return math.exp(-0.5 * r * r / variance) / math.sqrt(2.0 * math.pi * variance)

    def integrand(r):
        one, zero = rho_hat * gauss(r, 1.0 + v), (1.0 - rho_hat) * gauss(r, v)
        pi, mean = one / (one + zero), r / (1.0 + v)
        second = pi * (v / (1.0 + v) + mean**2)
        return (one + zero) * (second - (pi * mean) ** 2)

    expected = 2.0 * quad(integrand, 0.0, 14.0, epsabs=1e-13)[0]
    assert bayes.mmse(v, rho_hat) == pytest.approx(expected, rel=1e-11)
    assert bayes.mmse(4 * v, rho_hat, sigma_x2=4.0) == pytest.approx(4 * expected, rel=1e-11)


def test_mmse_grows_with_the_noise_up_to_the_prior_variance():
    values = [bayes.mmse(v, 0.3) for v in np.geomspace(1e-12, 1e6, 60)]
    assert (np.diff(values) > 0.0).all()
    assert values[0] == pytest.approx(0.3e-12, rel=1e-3)
    assert values[-1] == pytest.approx(0.3, rel=1e-3)
    assert bayes.mmse(0.0, 0.3) == 0.0


def test_message_passing_succeeds_above_its_threshold_only():
    threshold = bayes.amp_threshold(0.5)
    assert bayes.message_passing(threshold + 0.01, 0.5).mse == 0.0
    assert bayes.message_passing(threshold - 0.01, 0.5).mse > 0.01
    noisy = bayes.message_passing(0.6, 0.2, sigma_xi2=0.1)
    assert noisy.mse < l1.lasso(0.6, 0.2, sigma_xi2=0.1, theta=1.2).mse
    assert noisy.effective_noise * 0.6 == pytest.approx(0.1 + noisy.mse, rel=1e-12)
