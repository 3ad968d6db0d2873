"""The complexity at m = 1, and the temperature at which it vanishes."""

import pytest

from l0anneal.theory import ReplicaSymmetric, condensation
from l0anneal.theory.condensation import _Inside


@pytest.fixture(scope="module")
def hard():
    return ReplicaSymmetric(0.75, 0.65, rho_hat=0.5)


def test_the_point_is_that_of_an_independent_solution(hard):
    """The numbers are from another program, with another quadrature."""
    point = condensation.condensation_point(hard)
    assert point.temperature == pytest.approx(1.3466e-7, abs=0.5e-11)
    assert point.state.distortion == pytest.approx(8.977e-9, abs=0.5e-12)
    assert point.state.entropy == pytest.approx(0.01063, abs=0.5e-5)


@pytest.mark.parametrize("temperature", [2e-7, 1e-6])
def test_there_are_fewer_clusters_than_supports(hard, temperature):
    state = hard.at(temperature, "cooled")
    assert 0 < condensation.complexity(hard, state) < state.entropy


def test_a_cluster_that_fills_its_branch_is_alone(hard):
    """D₁ = D solves the equation for D₁, and has no complexity."""
    state = hard.at(1e-6, "cooled")
    inside = _Inside(hard, state)
    nearly = state.d * (1 - 1e-3)
    assert inside.excess(nearly) == pytest.approx(0.0, abs=2e-3)
    assert inside.complexity(nearly) == pytest.approx(0.0, abs=1e-4)


def test_a_hot_state_is_one_cluster():
    theory = ReplicaSymmetric(0.8, 0.4, rho_hat=0.2)
    assert condensation.complexity(theory, theory.at(1.0)) is None
    assert condensation.condensation_point(theory) is None
