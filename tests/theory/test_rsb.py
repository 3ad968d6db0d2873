"""One step of replica symmetry breaking at zero temperature."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.theory_reference import NUMBERS
from l0anneal.theory import ConvergenceError, ReplicaSymmetric, rsb


def test_ground_state_with_noise_only():
    theory = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0)
    ground = rsb.ground_state(theory)
    assert ground.y == pytest.approx(NUMBERS["1RSB y, alpha .5, rho .2"], abs=6e-5)
    expected = NUMBERS["1RSB distortion, alpha .5, rho .2"]
    assert ground.distortion == pytest.approx(expected, abs=6e-8)
    assert abs(ground.complexity) < 1e-12
    # The replica-symmetric limit is too low, because replica symmetry is unstable there.
    frozen = theory.freezing()
    assert frozen.distortion < ground.distortion
    assert not frozen.at_stable


def test_ground_state_of_the_metastable_branch():
    ground = rsb.ground_state(ReplicaSymmetric(0.75, 0.65, 0.5))
    assert 1.0 / ground.y == pytest.approx(NUMBERS["1RSB 1/y, metastable .75 .65 .5"], rel=6e-6)
    expected = NUMBERS["1RSB distortion, metastable .75 .65 .5"]
    assert ground.distortion == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("theory", "y"),
    [
        (ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0), 20.0),
        (ReplicaSymmetric(0.75, 0.65, 0.5), 8e6),
        (ReplicaSymmetric(0.6, 0.3, 0.2, sigma_xi2=0.1), 250.0),
    ],
)
def test_derivative_of_the_potential(theory, y):
    """dΦ/dy = -αε and Σ = Φ + yαε."""
    h = 0.01
    value = {k: rsb.clusters(theory, y * math.exp(k * h)).potential for k in (-2, -1, 1, 2)}
    slope = (8.0 * (value[1] - value[-1]) - (value[2] - value[-2])) / (12.0 * h)
    state = rsb.clusters(theory, y)
    energy = y * theory.alpha * state.distortion
    assert slope == pytest.approx(-energy, rel=1e-7)
    assert state.complexity == pytest.approx(state.potential + energy, rel=1e-12)


@settings(derandomize=True, deadline=None, max_examples=5)
@given(st.floats(0.2, 0.95), st.floats(0.1, 0.8), st.floats(0.1, 10.0))
def test_symmetry_breaking_raises_the_lowest_distortion(alpha, part, noise):
    theory = ReplicaSymmetric(alpha, alpha * part, sigma_xi2=noise)
    frozen = theory.freezing()
    ground = rsb.ground_state(theory)
    assert ground.distortion > frozen.distortion
    assert ground.y * frozen.temperature < 1.0
    assert abs(ground.complexity) < 1e-11
    # y scales as an inverse temperature, ε as a variance.
    unit = rsb.ground_state(ReplicaSymmetric(alpha, alpha * part, sigma_xi2=1.0))
    assert ground.distortion == pytest.approx(unit.distortion * noise, rel=1e-8)
    assert ground.y == pytest.approx(unit.y / noise, rel=1e-8)


def test_a_branch_that_does_not_freeze_has_no_ground_state():
    with pytest.raises(ValueError, match="entropy stays positive"):
        rsb.ground_state(ReplicaSymmetric(0.8, 0.4, 0.2))
    with pytest.raises(ValueError, match="y must be a positive finite number"):
        rsb.clusters(ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0), -1.0)


@pytest.mark.parametrize("y", [1e-3, 1.0])
def test_a_y_without_clusters_is_an_error(y):
    with pytest.raises(ConvergenceError), np.errstate(all="ignore"):
        rsb.clusters(ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0), y)
