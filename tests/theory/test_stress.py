"""Many random problems: no solver gives up, and both say the same."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from l0anneal.theory import ReplicaSymmetric


@st.composite
def problems(draw):
    alpha = draw(st.one_of(st.floats(0.02, 1.0), st.floats(1.0, 3.0)))
    rho = min(alpha, 1.0) * draw(st.floats(0.003, 0.995))
    near = rho * draw(st.floats(0.5, 1.0))
    rho_hat = draw(st.one_of(st.just(0.0), st.floats(0.01, 1.0), st.just(near), st.just(1.0)))
    noise = 10.0 ** draw(st.floats(-8.0, 1.0))
    if rho_hat > 0.0 and draw(st.booleans()):
        noise = 0.0
    return ReplicaSymmetric(alpha, rho, rho_hat, sigma_xi2=noise)


@pytest.mark.slow
@settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(problems(), st.lists(st.floats(-9.0, 4.0), min_size=3, max_size=3))
def test_solvers_agree_everywhere(theory, exponents):
    theory.transition()
    theory.freezing("cooled")
    theory.at_instability("cooled")
    for branch in ("cooled", "planted"):
        if branch == "planted" and theory.rho_hat == 0.0:
            continue
        for exponent in exponents:
            t = theory.variance * 10.0**exponent
            spinodals = theory.spinodals()
            if branch == "planted" and spinodals.planted and t >= spinodals.planted:
                continue
            if branch == "cooled" and spinodals.cooling and t <= spinodals.cooling:
                continue
            fixed = theory.at(t, branch)
            curve = theory.at(t, branch, method="parametric")
            # The parametric T is 1/a - D over S0: what is left of its digits bounds the agreement.
            lost = 1e-15 * (1.0 + fixed.d * (theory.alpha - theory.rho) / (theory.alpha * t))
            assert fixed.distortion == pytest.approx(curve.distortion, rel=max(1e-9, 10.0 * lost))
            assert fixed.delta == pytest.approx(curve.delta, rel=max(1e-9, 10.0 * lost))
            rounding = max(1e-9, 10.0 * lost, 2e-15 * fixed.delta / t)
            assert fixed.entropy == pytest.approx(curve.entropy, abs=rounding)
