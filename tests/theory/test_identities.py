"""Thermodynamic identities at random parameters."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from l0anneal.theory import ReplicaSymmetric
from l0anneal.theory.branches import Branches
from l0anneal.theory.fixed_temperature import planted_asymptotics

fixed = settings(
    derandomize=True,
    deadline=None,
    max_examples=5,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
fractions = st.floats(0.05, 0.95)


@st.composite
def theories(draw, *, planted=None):
    alpha = draw(st.floats(0.15, 0.98))
    rho = alpha * draw(fractions)
    signal = draw(st.booleans()) if planted is None else planted
    if not signal:
        return ReplicaSymmetric(alpha, rho, sigma_xi2=draw(st.floats(0.1, 5.0)))
    rho_hat = draw(st.floats(0.02, 0.98))
    noise = draw(st.sampled_from([0.0, 1e-4, 0.05, 1.0]))
    return ReplicaSymmetric(alpha, rho, rho_hat, draw(st.floats(0.2, 5.0)), noise)


@st.composite
def noiseless(draw):
    """Problems without noise and with ρ̂ < ρ."""
    alpha = draw(st.floats(0.2, 0.98))
    rho = alpha * draw(st.floats(0.1, 0.95))
    rho_hat = rho * draw(st.floats(0.05, 0.95))
    return ReplicaSymmetric(alpha, rho, rho_hat, draw(st.floats(0.2, 5.0)))


@fixed
@given(theories(), st.floats(-2.5, 2.0))
def test_derivative_and_two_forms_of_the_free_entropy(theory, exponent):
    t = theory.variance * 10.0**exponent
    spinodal = theory.spinodals().cooling
    assume(spinodal is None or t > 1.01 * spinodal)
    state = theory.at(t, "cooled")
    mu, alpha = state.mu, theory.alpha
    # dg/dμ = -αε, by a five-point difference
    h = 2e-3 * mu
    g = {k: theory.at(1.0 / (mu + k * h), "cooled").free_entropy for k in (-2, -1, 1, 2)}
    slope = (8.0 * (g[1] - g[-1]) - (g[2] - g[-2])) / (12.0 * h)
    assert slope == pytest.approx(-alpha * state.distortion, rel=1e-7, abs=1e-11 / h)
    # g = s - μαε in the units of the problem, and g by its own formula
    assert state.entropy == pytest.approx(
        state.free_entropy + mu * alpha * state.distortion, abs=1e-12 * (1 + mu)
    )
    assert _free_entropy(theory, t) == pytest.approx(state.free_entropy, rel=1e-10, abs=1e-10)


def _free_entropy(theory: ReplicaSymmetric, t: float) -> float:
    """Return g from E[log(1 + e^u)] instead of s (docs/theory.md, section 2)."""
    state = theory.at(t, "cooled")
    p = theory.variance
    channel = Branches(theory.model, p).ladders["cooled"].solve(t / p)[1]
    alpha, rho, mu = theory.alpha, theory.rho, 1.0 / t
    s0 = alpha / (alpha - rho)
    s = s0 + mu * state.d
    return (
        -0.5 * alpha * math.log(s / s0)
        - 0.5 * alpha * mu * (state.delta + p) / s
        + mu * alpha * state.distortion
        - rho * (state.lam - 0.5 * math.log(s / s0))
        + channel.log_partition()
    )


@fixed
@given(theories())
def test_infinite_temperature(theory):
    state = theory.at(5e5 * theory.variance, "cooled")
    alpha, rho, noise = theory.alpha, theory.rho, theory.sigma_xi2
    power = theory.rho_hat * theory.sigma_x2
    left = noise + (1.0 - rho) * power
    assert state.distortion == pytest.approx(0.5 * (1.0 - rho / alpha) * left, rel=1e-4)
    assert state.mse == pytest.approx(left * alpha / (alpha - rho) - noise, rel=1e-4)
    binary = -rho * math.log(rho) - (1.0 - rho) * math.log(1.0 - rho)
    assert state.entropy == pytest.approx(binary, rel=1e-6)
    assert state.lam == pytest.approx(math.log(rho / (1.0 - rho)), abs=1e-4)
    assert state.precision == pytest.approx(theory.rho_hat if power else 0.0, rel=1e-4)


@fixed
@given(noiseless())
def test_planted_branch_at_low_temperature(theory):
    """ε and MSE fall as T^{3/2}; s tends to the entropy of choosing the surplus columns."""
    t = 1e-9 * theory.variance
    state, colder = theory.at(t, "planted"), theory.at(0.25 * t, "planted")
    delta, d = np.exp(planted_asymptotics(theory.model, 1e-9)) * theory.variance
    assert state.delta == pytest.approx(delta, rel=0.02)
    assert state.d == pytest.approx(d, rel=0.02)
    assert state.mse / colder.mse == pytest.approx(8.0, rel=0.02)
    assert state.distortion / colder.distortion == pytest.approx(8.0, rel=0.02)
    r0 = (theory.rho - theory.rho_hat) / (1.0 - theory.rho_hat)
    binary = -r0 * math.log(r0) - (1.0 - r0) * math.log1p(-r0)
    assert state.entropy == pytest.approx((1.0 - theory.rho_hat) * binary, rel=5e-3)
    assert state.hits == pytest.approx(theory.rho_hat, rel=1e-3)


@fixed
@given(noiseless())
def test_planted_entropy_is_positive_and_distortion_grows_with_temperature(theory):
    top = theory.spinodals().planted
    top = 10.0 * theory.variance if top is None else top * (1.0 - 1e-6)
    data = theory.curve(np.geomspace(1e-9 * theory.variance, top, 25), "planted")
    assert (data.entropy.values > 0.0).all()
    assert (np.diff(data.distortion.values) > 0.0).all()
    assert (np.diff(data.entropy.values) > 0.0).all()


@fixed
@given(theories())
def test_distortion_grows_with_temperature_on_the_cooled_branch(theory):
    low = theory.spinodals().cooling
    low = 1e-4 * theory.variance if low is None else low * (1.0 + 1e-6)
    data = theory.curve(np.geomspace(low, 1e3 * theory.variance, 25), "cooled")
    assert (np.diff(data.distortion.values) > 0.0).all()
    # s is positive exactly above the freezing point
    frozen = theory.freezing("cooled")
    positive = data.entropy.values > 0.0
    if frozen is None:
        assert positive.all()
    else:
        assert (positive == (data.temperature.values > frozen.temperature)).all()


def test_metastable_branch_has_equipartition_at_zero_temperature():
    theory = ReplicaSymmetric(0.75, 0.65, 0.5)
    for t in (1e-6, 1e-8):
        state = theory.at(t, "cooled")
        assert state.distortion == pytest.approx(0.5 * (1.0 - 0.65 / 0.75) * t, rel=2e3 * t)
    cold, colder = theory.at(1e-7, "cooled"), theory.at(1e-9, "cooled")
    slope = (cold.entropy - colder.entropy) / math.log(100.0)
    assert slope == pytest.approx(0.5 * (0.75 - 0.65), rel=1e-4)


@fixed
@given(theories(), st.floats(-40.0, 40.0), st.floats(-2.0, 2.0))
def test_results_scale_with_the_units(theory, exponent, log_t):
    """If all variances and T are multiplied by a constant, ε and Δ are too, and s and Λ are not."""
    unit = 10.0**exponent
    scaled = ReplicaSymmetric(
        theory.alpha, theory.rho, theory.rho_hat, theory.sigma_x2 * unit, theory.sigma_xi2 * unit
    )
    t = theory.variance * 10.0**log_t
    one, two = theory.at(t), scaled.at(t * unit)
    assert two.distortion == pytest.approx(one.distortion * unit, rel=1e-9)
    assert two.delta == pytest.approx(one.delta * unit, rel=1e-9)
    assert two.entropy == pytest.approx(one.entropy, rel=1e-9, abs=1e-10)
    assert two.lam == pytest.approx(one.lam, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("parameters", [(0.8231, 0.066, 0, 1, 1), (0.5, 0.1, 0.1, 1, 0.001)])
def test_narrow_steps_are_resolved(parameters):
    """Below freezing Λ → -∞ as 1/T, so the sigmoid becomes a step of vanishing width."""
    theory = ReplicaSymmetric(*parameters)
    for t in (1e-4, 1e-6, 1e-8):
        fixed_t = theory.at(t, "cooled")
        curve = theory.at(t, "cooled", method="parametric")
        assert fixed_t.lam < -1e-3 / t
        assert fixed_t.distortion == pytest.approx(curve.distortion, rel=1e-11)
        assert fixed_t.d == pytest.approx(curve.d, rel=1e-9)
        # Here s is a difference of terms of size Δ/T.
        assert fixed_t.entropy == pytest.approx(curve.entropy, abs=1e-15 * fixed_t.delta / t)
