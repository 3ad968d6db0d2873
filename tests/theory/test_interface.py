"""Arguments, errors and results of the public interface."""

import dataclasses
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from l0anneal.theory import ReplicaSymmetric, bayes, l1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, 0.5, 0.1), "rho must be smaller than alpha; got rho=0.5 and alpha=0.5"),
        ((0.5, 0.6, 0.1), "rho must be smaller than alpha; got rho=0.6 and alpha=0.5"),
        ((0.5, 0.0, 0.1), "rho is a fraction and must lie strictly between 0 and 1; got 0.0"),
        ((0.5, -0.1, 0.1), "rho is a fraction and must lie strictly between 0 and 1; got -0.1"),
        ((1.5, 1.0, 0.1), "rho is a fraction and must lie strictly between 0 and 1; got 1.0"),
        ((-0.5, 0.1, 0.1), "alpha must be a positive finite number; got -0.5"),
        ((0.5, 0.2, 1.1), "rho_hat is a fraction and must lie between 0 and 1; got 1.1"),
        ((0.5, 0.2, -0.1), "rho_hat is a fraction and must lie between 0 and 1; got -0.1"),
        ((0.5, 0.2, 0.1, -1.0), "sigma_x2 is a variance and must be finite and ≥ 0; got -1.0"),
        ((0.5, 0.2, 0.1, 1, -1e-3), "sigma_xi2 is a variance and must be finite and ≥ 0"),
        ((0.5, 0.2), "y would be zero with rho_hat=0.0"),
        ((0.5, 0.2, 0.1, 0.0), "y would be zero with rho_hat=0.1, sigma_x2=0.0"),
        ((float("nan"), 0.2, 0.1), "alpha must be a positive finite number; got nan"),
        ((0.5, float("nan"), 0.1), "rho is a fraction"),
        ((0.5, 0.2, float("nan")), "rho_hat is a fraction"),
        (
            (0.5, 0.2, 0.1, float("inf")),
            "sigma_x2 is a variance and must be finite and ≥ 0; got inf",
        ),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ReplicaSymmetric(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: l1.distortion(0.5, 0.5), "rho must be smaller than alpha"),
        (lambda: l1.distortion(0.5, 0.2, sigma_xi2=0.0), "sigma_xi2 must be a positive"),
        (lambda: l1.distortion_after_least_squares(0.5, 0.7), "rho must be smaller than alpha"),
        (lambda: l1.reconstruction_limit(1.2), "rho_hat is a fraction"),
        (lambda: l1.optimal_threshold(0.0), "rho_hat .* strictly between 0 and 1"),
        (lambda: l1.lasso(0.0, 0.2, theta=1.0), "alpha must be a positive"),
        (lambda: l1.lasso(0.5, 0.2, sigma_x2=-1.0, theta=1.0), "sigma_x2 is a variance"),
        (lambda: l1.lasso(0.5, 0.2, sigma_xi2=-1.0, theta=1.0), "sigma_xi2 is a variance"),
        (lambda: l1.lasso(0.5, 0.2, theta=-1.0), "theta must be a finite number ≥ 0; got -1.0"),
        (lambda: l1.lasso(0.5, 0.2), "exactly one .* got none of them"),
        (lambda: l1.lasso(0.5, 0.2, theta=1.0, penalty=1.0), "exactly one .* got theta, penalty"),
        (lambda: l1.lasso(0.5, 0.2, penalty=0.0), "penalty must be a positive"),
        (lambda: l1.lasso(0.5, 0.2, active_fraction=0.5), "active_fraction must lie between"),
        (lambda: l1.lasso(0.5, 0.0, theta=1.0), "y would be zero"),
        (lambda: l1.lasso(0.5, 0.2, sigma_xi2=0.1, theta=0.01), "below the LASSO path"),
        (lambda: bayes.mmse(-1.0, 0.5), "v is a variance"),
        (lambda: bayes.mmse(1.0, 1.5), "rho_hat is a fraction"),
        (lambda: bayes.mmse(1.0, 0.5, sigma_x2=0.0), "sigma_x2 must be a positive"),
        (lambda: bayes.information_limit(-0.5), "rho_hat is a fraction"),
        (lambda: bayes.amp_threshold(1.5), "rho_hat is a fraction"),
        (lambda: bayes.message_passing(0.0, 0.5), "alpha must be a positive"),
        (lambda: bayes.message_passing(0.5, 0.5, sigma_xi2=-1.0), "sigma_xi2 is a variance"),
    ],
)
def test_bad_arguments_of_functions_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.fixture(scope="module")
def hard():
    return ReplicaSymmetric(0.75, 0.65, 0.5)


def test_temperatures_beyond_a_branch_are_refused(hard):
    with pytest.raises(ValueError, match=r"planted branch ends at its spinodal T=0\.000638844"):
        hard.at(1e-3, "planted")
    theory = ReplicaSymmetric(0.75, 0.61, 0.5)
    with pytest.raises(ValueError, match=r"cooled branch ends at its spinodal T=0\.0008989458"):
        theory.at(5e-4, "cooled")
    with pytest.raises(ValueError, match="no planted branch"):
        ReplicaSymmetric(0.5, 0.2, sigma_xi2=1).at(1.0, "planted")
    with pytest.raises(ValueError, match="branch must be one of"):
        hard.at(1.0, "metastable")
    with pytest.raises(ValueError, match="temperature must lie between"):
        hard.at(0.0)
    with pytest.raises(ValueError, match="method must be"):
        hard.at(1.0, method="guess")


@pytest.mark.parametrize("method", ["fixed temperature", "parametric"])
@pytest.mark.parametrize(
    ("rho", "branch"), [(0.65, "planted"), (0.61, "planted"), (0.61, "cooled")]
)
def test_branches_end_in_a_fold_at_their_spinodals(rho, branch, method):
    """Near a fold at T_s, all quantities depend on T as constant + sqrt|T - T_s|."""
    theory = ReplicaSymmetric(0.75, rho, 0.5)
    spinodals = theory.spinodals()
    end, inward = (spinodals.planted, -1.0) if branch == "planted" else (spinodals.cooling, 1.0)
    near, middle, far = (
        theory.at(end * (1.0 + inward * distance), branch, method=method).mse
        for distance in (1e-7, 4e-7, 16e-7)
    )
    # sqrt gives the ratio (4 - 2)/(2 - 1); a branch that ended elsewhere would give 4.
    assert (far - middle) / (middle - near) == pytest.approx(2.0, rel=0.01)
    with pytest.raises(ValueError, match=f"{branch} branch ends at its spinodal"):
        theory.at(end * (1.0 - inward * 1e-7), branch, method=method)


def test_states_at_extreme_temperatures(hard):
    assert hard.at(1e4, "cooled").entropy > 0.6
    assert 0 < hard.at(1e-9, "planted").distortion < 1e-13
    assert hard.at(1e-9, "planted").at_stable


def test_equilibrium_is_the_branch_of_larger_free_entropy(hard):
    critical = hard.transition().temperature
    for t, name in ((critical * 1.01, "cooled"), (critical * 0.99, "planted"), (0.1, "cooled")):
        state = hard.at(t)
        assert state.branch == "equilibrium"
        assert state.distortion == hard.at(t, name).distortion


def test_without_a_transition_all_branches_are_the_same():
    theory = ReplicaSymmetric(0.8, 0.4, 0.2)
    values = {theory.at(0.01, name).distortion for name in ("equilibrium", "cooled", "planted")}
    assert len(values) == 1
    assert theory.freezing("planted") is None
    assert theory.freezing("equilibrium") is None


def test_strong_noise_removes_the_planted_branch():
    assert ReplicaSymmetric(0.75, 0.65, 0.5, sigma_xi2=1e-4).transition() is not None
    assert ReplicaSymmetric(0.75, 0.65, 0.5, sigma_xi2=1e-3).spinodals().planted is None


def test_states_do_not_depend_on_earlier_calls():
    one, two = ReplicaSymmetric(0.75, 0.65, 0.5), ReplicaSymmetric(0.75, 0.65, 0.5)
    one.at(1e-7, "cooled")
    assert one.at(3e-3, "cooled") == two.at(3e-3, "cooled")


def test_objects_are_frozen(hard):
    with pytest.raises(dataclasses.FrozenInstanceError):
        hard.alpha = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        hard.at(1.0).entropy = 0.0


def test_curve_is_a_dataset(hard):
    temperatures = np.geomspace(1.0, 1e-3, 7)
    data = hard.curve(temperatures, "cooled")
    assert data.sizes == {"temperature": 7}
    np.testing.assert_array_equal(data.temperature, temperatures)
    assert data.attrs["branch"] == "cooled"
    assert data.attrs["rho"] == 0.65
    assert float(data.distortion[3]) == hard.at(temperatures[3], "cooled").distortion
    assert hard.curve([], "cooled").sizes == {"temperature": 0}


def test_branches_include_the_unstable_one(hard):
    data = hard.branches()
    names = list(dict.fromkeys(data.branch.values.tolist()))
    assert names == ["cooled", "unstable", "planted"]
    assert (data.temperature.values > 0.0).all()
    unstable = data.where(data.branch == "unstable", drop=True)
    assert float(unstable.temperature.max()) == pytest.approx(hard.spinodals().planted, rel=1e-12)
    # On the unstable branch the error falls as the temperature rises.
    order = np.argsort(unstable.temperature.values)
    assert (np.diff(unstable.mse.values[order]) < 0.0).all()
    assert (np.diff(data.a.values) > -1e-12).all()


def test_a_separate_planted_branch_is_found():
    """At ρ = 0.7 the planted curve is not joined to the hot one, not even below T = 0."""
    theory = ReplicaSymmetric(0.75, 0.7, 0.5)
    names = list(dict.fromkeys(theory.branches().branch.values.tolist()))
    assert names == ["cooled", "unstable", "planted"]
    critical = theory.transition()
    assert critical.temperature < theory.spinodals().planted
    assert critical.planted.mse < critical.cooled.mse


def test_a_curve_of_a_hundred_temperatures_takes_less_than_a_second(hard):
    for branch, top in (("cooled", 1e4), ("planted", 6e-4)):
        temperatures = np.geomspace(top, 1e-8, 100)
        hard.curve(temperatures[-1:], branch)  # imports, and fills the ladder
        start = time.process_time()
        hard.curve(temperatures, branch)
        assert time.process_time() - start < 1.0


def test_importing_is_light():
    code = (
        "import sys, l0anneal.theory; "
        "heavy = {'xarray', 'matplotlib', 'pandas', 'numba', 'sklearn', 'typer', 'rich'}; "
        "heavy |= {'scipy.optimize'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_negative_entropy_is_frozen_and_clamped():
    theory = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1)
    frozen = theory.freezing()
    warm, cold = (theory.at(x * frozen.temperature) for x in (1.1, 0.5))
    assert (warm.frozen, cold.frozen, frozen.frozen) == (False, True, False)
    assert theory.clamped(warm) is warm
    clamped = theory.clamped(cold)
    assert clamped.distortion == frozen.distortion > cold.distortion
    assert clamped.entropy == 0.0
    assert clamped.free_entropy == pytest.approx(-0.5 * frozen.distortion / cold.temperature)
    assert clamped.temperature == cold.temperature


def test_several_temperatures_at_once(hard):
    data = hard.at([1e-3, 1e-2], "cooled")
    assert data["distortion"].to_numpy().tolist() == [
        hard.at(t, "cooled").distortion for t in (1e-3, 1e-2)
    ]
    assert all("units" in data[name].attrs for name in data.variables)
    assert data["frozen"].to_numpy().tolist() == [False, False]


@pytest.mark.parametrize("branch", ["cooled", "planted"])
def test_overlaps_add_up(hard, branch):
    state = hard.at(2e-4, branch)
    assert state.Q - state.q == pytest.approx(state.d)
    assert state.mse == pytest.approx(0.5 - 2 * state.m + state.Q)
    assert state.delta == pytest.approx(0.5 - 2 * state.m + state.q, rel=1e-6)
    assert 0 < state.m < 0.5
