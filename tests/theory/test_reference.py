"""Both solvers reproduce the reference tables."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from helpers.theory_reference import NUMBERS, rows
from l0anneal.theory import ReplicaSymmetric

PARAMETERS = ("alpha", "rho", "rho_hat", "sigma_x2", "sigma_xi2")
FIELDS = ("distortion", "mse", "entropy", "free_entropy", "delta", "d", "lam")
STATES = rows("states")


@cache
def theory(*parameters: float) -> ReplicaSymmetric:
    return ReplicaSymmetric(*parameters)


def of(row: dict) -> ReplicaSymmetric:
    return theory(*(row[name] for name in PARAMETERS))


def name(row: dict) -> str:
    return f"row{row['row']}"


@pytest.mark.parametrize("method", ["fixed temperature", "parametric"])
@pytest.mark.parametrize("row", STATES, ids=name)
def test_state_matches_the_reference(row, method):
    state = of(row).at(row["temperature"], row["branch"], method=method)
    digits = 5 if row["branch"] == "planted" and row["temperature"] <= 1e-6 else 6
    for field in FIELDS:
        expected = row[field]
        # Small distortions must agree in their digits, not only to an absolute 1e-9.
        absolute = 0.0 if field in ("distortion", "mse", "delta", "d") else 1e-9
        value = getattr(state, field)
        assert value == pytest.approx(expected, rel=0.5 * 10.0 ** (1 - digits), abs=absolute), field
    assert state.at_ratio == pytest.approx(row["at_ratio"], abs=0.5001e-4)


@pytest.mark.parametrize("row", STATES, ids=name)
def test_the_two_solvers_agree(row):
    fixed = of(row).at(row["temperature"], row["branch"])
    curve = of(row).at(row["temperature"], row["branch"], method="parametric")
    for field in (*FIELDS, "hits", "at_ratio"):
        absolute = 1e-9 if field in ("entropy", "free_entropy", "lam", "hits") else 0.0
        expected = getattr(fixed, field)
        assert getattr(curve, field) == pytest.approx(expected, rel=1e-9, abs=absolute), field


@pytest.mark.parametrize("row", [r for r in STATES if r["temperature"] > 5e-4], ids=name)
def test_the_equations_hold_in_an_independent_quadrature(row):
    """E[p] = ρ, D, and Δ as P - 2m + q, integrated by SciPy."""
    state = of(row).at(row["temperature"], row["branch"])
    alpha, rho, sigma_x2 = row["alpha"], row["rho"], row["sigma_x2"]
    rho_hat = row["rho_hat"] if sigma_x2 > 0 else 0.0
    a = 1.0 / (row["temperature"] * alpha / (alpha - rho) + state.d)
    variances = (state.delta, state.delta + alpha * sigma_x2)

    def p(h):
        return expit(state.lam + 0.5 * a * h * h)

    def mean(k, function):
        v = variances[k]
        scale = math.sqrt(v)

        def integrand(z):
            return 2.0 * function(scale * z) * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)

        points = sorted({min(c / math.sqrt(a * v), 9.0) for c in (0.3, 1.0, 3.0, 8.0)})
        return quad(integrand, 0.0, 12.0, points=points, epsabs=1e-14, epsrel=1e-12, limit=400)[0]

    def mixture(function):
        total = (1.0 - rho_hat) * mean(0, function)
        return total + (rho_hat * mean(1, function) if rho_hat else 0.0)

    power = row["sigma_xi2"] + rho_hat * sigma_x2
    m = rho_hat * sigma_x2 * mean(1, lambda h: p(h) * h * h) / variances[1] if rho_hat else 0.0
    q = mixture(lambda h: (p(h) * h) ** 2) / alpha
    assert mixture(p) == pytest.approx(rho, rel=1e-10)
    assert mixture(lambda h: p(h) * (1.0 - p(h)) * h * h) / (alpha - rho) == pytest.approx(
        state.d, rel=1e-9
    )
    assert power - 2.0 * m + q == pytest.approx(state.delta, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("row", rows("transitions"), ids=lambda r: f"rho{r['rho']}")
def test_phase_structure(row):
    solver = ReplicaSymmetric(row["alpha"], row["rho"], row["rho_hat"])
    transition, spinodals = solver.transition(), solver.spinodals()
    assert transition.temperature == pytest.approx(row["transition"], rel=5e-7)
    assert spinodals.planted == pytest.approx(row["planted_spinodal"], rel=5e-6)
    if row["cooling_spinodal"] is None:
        assert spinodals.cooling is None
    else:
        assert spinodals.cooling == pytest.approx(row["cooling_spinodal"], rel=5e-6)
    assert transition.cooled.free_entropy == pytest.approx(
        transition.planted.free_entropy, abs=1e-12
    )
    for branch in ("cooled", "planted"):
        state = getattr(transition, branch)
        assert state.distortion == pytest.approx(row[f"{branch}_distortion"], rel=5e-5)
        assert state.mse == pytest.approx(row[f"{branch}_mse"], rel=5e-5)


def test_freezing_of_the_metastable_branch():
    frozen = theory(0.75, 0.65, 0.5, 1.0, 0.0).freezing("cooled")
    expected = NUMBERS["freezing T, metastable .75 .65 .5"]
    assert frozen.temperature == pytest.approx(expected, rel=5e-7)
    expected = NUMBERS["freezing distortion, metastable .75 .65 .5"]
    assert frozen.distortion == pytest.approx(expected, rel=5e-7)
    assert abs(frozen.entropy) < 1e-12


def test_instability_of_replica_symmetry_with_noise_only():
    state = theory(0.5, 0.2, 0, 0, 1).at_instability()
    assert state.temperature == pytest.approx(NUMBERS["AT temperature, alpha .5, rho .2"], abs=6e-6)
    assert state.distortion == pytest.approx(NUMBERS["AT distortion, alpha .5, rho .2"], abs=6e-6)
    assert state.entropy == pytest.approx(NUMBERS["AT entropy, alpha .5, rho .2"], abs=6e-5)
    assert state.at_ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("parameters", "largest"),
    [((0.75, 0.55, 0.5), 0.847), ((0.8, 0.55, 0.5), 0.773), ((0.8, 0.4, 0.2), 0.375)],
)
def test_smooth_cases_have_no_transition_and_stay_stable(parameters, largest):
    solver = ReplicaSymmetric(*parameters)
    assert solver.transition() is None
    assert solver.spinodals().cooling is None
    assert solver.spinodals().planted is None
    ratios = solver.curve(np.geomspace(1e3, 1e-8, 120)).at_ratio
    assert float(ratios.max()) == pytest.approx(largest, abs=1e-3)
    assert solver.at_instability() is None
