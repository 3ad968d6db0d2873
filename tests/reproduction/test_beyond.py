"""The solvers beyond the paper against slow versions of what they do, and their figures' verdicts."""

import itertools

import numpy as np
import pytest
import xarray as xr

from helpers.reference import qr_energy
from l0anneal import ensembles, temper
from l0anneal.reproduction.beyond import (
    MSE_EDGES,
    all_energies,
    enumerated,
    kicked,
    populated,
    tempered,
)
from l0anneal.reproduction.figures import escape, ground_state
from l0anneal.reproduction.report import decided


def test_all_energies_are_those_of_every_support():
    instance = ensembles.noise_only(8, 0.75, random_state=3)
    supports = list(itertools.combinations(range(8), 3))
    expected = [qr_energy(instance.A, instance.y, np.array(S)) for S in supports]
    assert all_energies(instance.A, instance.y, 3) == pytest.approx(expected, rel=1e-9)


def test_enumeration_gives_the_exact_averages_and_the_ground_state():
    instance = ensembles.noise_only(10, 0.5, random_state=1)
    found = enumerated(instance, 0, 0.2, 0.1, 10.0, 3)
    energies = all_energies(instance.A, instance.y, 2)
    for mu, g, eps in zip(found["mu"], found["free_entropy"], found["distortion"]):
        weights = np.exp(-mu * energies)
        assert g == pytest.approx(np.log(weights.sum()) / 10)
        assert eps == pytest.approx(np.average(energies, weights=weights) / 5)
    assert found["final_distortion"] == pytest.approx(energies.min() / 5)
    walked = kicked(instance, 0, 0.2, 3, n_kicks=20)
    assert walked["chain_distortion"].shape == (3,)
    assert walked["final_distortion"] == pytest.approx(energies.min() / 5)
    assert walked["signal"] == pytest.approx(instance.y @ instance.y / 5)


def test_populations_have_the_entropy_of_enumeration():
    instance = ensembles.noise_only(20, 0.5, random_state=1)
    given = {"rho": 0.2, "mu_min": 0.5, "mu_max": 5.0, "n": 6}
    found = populated(instance, 0, **given, population=300, tau=3)
    exact = enumerated(instance, 0, **given)
    gap = np.abs(found["free_entropy"] - exact["free_entropy"])
    assert np.all(gap[1:] < 5 * found["free_entropy_error"][1:])
    assert gap[0] < 1e-12
    assert np.all(found["free_entropy_error"][1:] < 0.01)


def test_two_tempered_runs_are_independent_and_agree_with_enumeration():
    instance = ensembles.planted(14, 0.7, 0.25, 1.0, 0.1, support="fixed", random_state=0)
    found = tempered(instance, 5, 0.3, 0.5, 0.02, 4, 2100 / 14**2, 6)
    energies = all_energies(instance.A, instance.y, 4)
    for a, mu in enumerate(found["mu"]):
        weights = np.exp(-mu * (energies - energies.min()))
        expected = np.average(energies, weights=weights) / 10
        spread = np.sqrt(np.average((energies / 10 - expected) ** 2, weights=weights) / 2100)
        for suffix in ("", "_truth"):
            times = max(1.0, found[f"autocorrelation{suffix}"][a])
            bound = 5 * spread * np.sqrt(times)
            assert abs(found[f"distortion{suffix}"][a] - expected) < bound
    assert not np.array_equal(found["distortion"], found["distortion_truth"])
    assert found["overlap"].shape == (4, 7)
    assert found["overlap"][:, :5].sum(axis=1) == pytest.approx(1.0)
    assert np.isnan(found["overlap"][:, 5:]).all()
    assert found["mse_histogram"].sum(axis=1) == pytest.approx(1.0)
    low = found["mse_histogram"][:, : int(np.searchsorted(MSE_EDGES, 0.0999))].sum(axis=1)
    assert low == pytest.approx((found["below_tenth"] + found["below_tenth_truth"]) / 2)


def test_levels_must_hold_all_overlaps():
    instance = ensembles.planted(10, 0.8, 0.2, support="fixed", random_state=0)
    with pytest.raises(ValueError, match="levels must be at least k = 5; got 4"):
        tempered(instance, 0, 0.5, 1.0, 0.1, 2, 1, 4)


def test_temper_starts_where_it_is_told():
    instance = ensembles.planted(30, 0.8, 0.2, support="fixed", random_state=0)
    cold = {"ladder": [1e9, 2e9], "n_sweeps": 2, "n_pilot": 1, "n_burn_in": 0, "polish": False}
    cold["random_state"] = 0
    result = temper(instance.problem, 6, initial_support=instance.support, **cold)
    assert (result.support == instance.support).all()
    elsewhere = temper(instance.problem, 6, initial_support=np.arange(6), **cold)
    at_random = temper(instance.problem, 6, **cold)
    assert min(elsewhere.energy, at_random.energy) > 1e-6 > 1e-12 > result.energy
    with pytest.raises(ValueError, match="give n_nonzero, not sizes"):
        temper(instance.problem, sizes=(2, 3), initial_support=[0, 1])
    with pytest.raises(ValueError, match="needs 6 columns; got 2"):
        temper(instance.problem, 6, initial_support=[0, 1])


# ---------------------------------------------------------------- verdicts on data with known answers


def walks(sizes, n, value, agree, alpha, rho, rho_hat, seed=0):
    """Return the data of walks: distortions with a mean that depends on N, and how many agree."""
    rng = np.random.default_rng(seed)
    lowest = np.array([value(size) * (1 + rng.normal(0, 1 / np.sqrt(size), n)) for size in sizes])
    signal = 1 + 0.2 * rng.random((len(sizes), n))
    chains = np.repeat((lowest * signal)[..., None], 4, axis=-1)
    chains[..., agree:] *= 1.1
    return xr.Dataset(
        {
            "final_distortion": (("size", "sample"), lowest * signal),
            "signal": (("size", "sample"), signal),
            "chain_distortion": (("size", "sample", "part"), chains),
            "n_samples": ("size", np.full(len(sizes), n)),
        },
        coords={"size": list(sizes)},
        attrs={
            **{"alpha": alpha, "rho": rho, "rho_hat": rho_hat},
            **{"sigma_x2": float(rho_hat > 0), "sigma_xi2": float(rho_hat == 0)},
        },
    )


def ground_data(limit, wrong=0):
    noise = (0.5, 0.2, 0.0)
    exact = walks([20], 100, lambda n: 0.035, 4, *noise)
    check = exact.copy(deep=True)
    check["final_distortion"][0, :wrong] *= 1.2
    return {
        "enumerated": exact,
        "ground-check": check,
        "ground": walks([40, 60, 100, 200, 400], 150, lambda n: limit + 0.1 / n, 3, *noise),
        "ground-hard": walks([60, 100], 10, lambda n: 1e-7, 1, 0.75, 0.65, 0.5),
    }


@pytest.mark.parametrize(
    ("limit", "wrong", "statuses"),
    [
        (0.0120, 0, ["agrees", "differs", "agrees"]),
        (0.0094, 40, ["differs", "agrees", "differs"]),
    ],
)
def test_the_ground_state_is_judged_both_ways(limit, wrong, statuses):
    data = ground_data(limit, wrong)
    rows = decided({"ground-state": ground_state.judge(data)})["ground-state"]
    assert [decision.status for _, decision in rows if decision is not None] == statuses
    fraction, two, n = ground_state.agreement_of(data["ground"], 100)
    assert (fraction, two, n) == (0.75, 150, 150)
    assert ground_state.agreement_of(data["ground-hard"], 60)[:2] == (0.25, 0)
    assert ground_state.draw(data).axes[0].get_ylabel() == "lowest distortion ε_0 = E_0/M"
    assert "by N^(−1): 0.0" in ground_state.findings(data)


def test_a_line_in_the_right_power_fits_and_one_in_the_wrong_power_does_not():
    rng = np.random.default_rng(0)
    lowest = {n: 0.01 + n**-1.0 + rng.normal(0, 0.002, 400) for n in (60, 80, 100, 200, 400)}
    limit, slope, chi2, freedom = ground_state.line_through(lowest, 1.0)
    assert abs(limit - 0.01) < 4 * float(ground_state.limit_of(lowest, 1.0).error[0])
    assert slope == pytest.approx(1.0, rel=0.1)
    assert chi2 < freedom + 4 * np.sqrt(2 * freedom)
    assert ground_state.line_through(lowest, 2 / 3)[2] > freedom + 4 * np.sqrt(2 * freedom)
    for power in (1.0, 2 / 3):
        estimate = ground_state.limit_of(lowest, power)
        assert ground_state.line_through(lowest, power)[0] == pytest.approx(float(estimate.mean[0]))


def annealing_runs(law, rho, tau, sizes, seed):
    """Return the ends of annealing runs whose needed τ grows by a known law."""
    error = np.empty((len(sizes), 80))
    for i, size in enumerate(sizes):
        needed = 2 * np.exp(0.03 * (size - 40)) if law == "exponential" else 2 * (size / 40) ** 1.5
        waiting = np.random.default_rng([seed, size]).exponential(needed, 80)
        error[i] = np.where(waiting < tau, 1e-5, 0.5)
    return xr.Dataset(
        {
            "final_mse": (("size", "sample"), error),
            "n_planted": (("size", "sample"), np.full(error.shape, 10)),
            "seconds": (("size", "sample"), np.full(error.shape, 0.01 * tau)),
            "n_samples": ("size", np.full(len(sizes), 80)),
        },
        coords={"size": list(sizes)},
        attrs={"rho": rho},
    )


def escape_data(laws):
    data = {}
    for rho, law in laws.items():
        for tau in escape.TAUS:
            data[f"escape-{rho}-{tau}"] = annealing_runs(law, rho, tau, (40, 60, 80), 1)
            if tau in escape.RUNS[rho]:
                data[escape.RUNS[rho][tau]] = annealing_runs(law, rho, tau, (100, 200, 400), 1)
        walk = annealing_runs(law, rho, 4000, (40, 60, 80, 100, 200, 400), 2)
        made = np.empty((6, 80, 1))
        for i, size in enumerate(walk["size"].to_numpy()):
            end = 6 * np.exp(0.02 * (size - 40)) if law == "exponential" else 6 * (size / 40) ** 2
            made[i, :, 0] = np.random.default_rng([3, size]).exponential(end, 80)
        walk["chain_kicks"] = (("size", "sample", "part"), np.minimum(made, 4000).round())
        walk["final_mse"] = (("size", "sample"), np.where(made[..., 0] < 4000, 1e-9, 0.5))
        data[f"escape-{rho}-kicks"] = walk
    data["escape-evidence"] = annealing_runs("power", 0.65, 1e9, (40, 100, 200), 4)
    return data


@pytest.mark.slow
def test_the_law_of_growth_is_judged_both_ways():
    right = escape_data({0.65: "exponential", 0.55: "power"})
    wrong = escape_data({0.65: "power", 0.55: "exponential"})
    for data, status in ((right, "agrees"), (wrong, "differs")):
        rows = decided({"escape": escape.judge(data)})["escape"]
        assert [decision.status for _, decision in rows] == [status] * 4
    assert len(escape.draw(right).axes) == 6
    assert "solves 80 of 80 at N = 40" in escape.findings(right)
