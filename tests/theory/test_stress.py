"""On many random problems, both solvers converge and agree."""

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


def rounding(theory, state):
    """Ten units of rounding of the largest term of the entropy, αaΔ/S ≤ αΔ/T."""
    return 2.2e-15 * theory.alpha * state.delta / state.temperature


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
    transition, spinodals = theory.transition(), theory.spinodals()
    if transition is not None:
        assert (spinodals.cooling or 0.0) < transition.temperature < spinodals.planted
        assert transition.cooled.free_entropy == pytest.approx(
            transition.planted.free_entropy, abs=1e-9
        )
    frozen, unstable = theory.freezing("cooled"), theory.at_instability("cooled")
    if frozen is not None:
        assert frozen.entropy == pytest.approx(0.0, abs=max(1e-9, rounding(theory, frozen)))
    if unstable is not None:
        assert unstable.at_ratio == pytest.approx(1.0, abs=1e-9)
    for branch in ("cooled", "planted"):
        if branch == "planted" and theory.rho_hat == 0.0:
            continue
        for exponent in exponents:
            t = theory.variance * 10.0**exponent
            if branch == "planted" and spinodals.planted and t >= spinodals.planted:
                continue
            if branch == "cooled" and spinodals.cooling and t <= spinodals.cooling:
                continue
            fixed = theory.at(t, branch)
            curve = theory.at(t, branch, method="parametric")
            # The parametric T = (1/a - D)/S0 loses digits to cancellation, which limits agreement.
            lost = 1e-15 * (1.0 + fixed.d * (theory.alpha - theory.rho) / (theory.alpha * t))
            assert fixed.distortion == pytest.approx(curve.distortion, rel=max(1e-9, 10.0 * lost))
            assert fixed.delta == pytest.approx(curve.delta, rel=max(1e-9, 10.0 * lost))
            absolute = max(1e-9, 10.0 * lost, rounding(theory, fixed))
            assert fixed.entropy == pytest.approx(curve.entropy, abs=absolute)
