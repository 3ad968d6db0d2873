"""T_c(N) from probabilities of a phase, and its limit: known answers, and data without one."""

import math

import numpy as np
import pytest
import xarray as xr

from l0anneal.reproduction.coexistence import (
    densities_near,
    half_temperature,
    limit_of_halves,
    overlaps_at,
    pseudo_values,
    resampled_limits,
    shared_columns,
)
from l0anneal.reproduction.rules import decide, within
from l0anneal.theory import ReplicaSymmetric

T = np.geomspace(2e-3, 4e-5, 12)
TRUE = 3e-4


def instances(rng, size, n, at=TRUE, slope=20.0):
    """Return curves of instances whose transitions scatter by 3/√N and are shifted by slope/N."""
    centres = math.log(at) + slope / size + 3 / math.sqrt(size) * rng.normal(size=n)
    return 1 / (1 + np.exp((np.log(T) - centres[:, None]) * 0.03 * size))


def ensemble(seed, at=TRUE, n=200):
    rng = np.random.default_rng(seed)
    return {size: instances(rng, size, n, at) for size in (40, 60, 80, 100, 120)}


def test_the_half_is_interpolated_in_the_logarithm_and_missing_if_there_is_none():
    t = np.array([1e-2, 1e-3, 1e-4])
    assert half_temperature(t, np.array([0.0, 0.25, 0.75])) == pytest.approx(math.sqrt(1e-7))
    assert math.isnan(half_temperature(t, np.array([0.6, 0.7, 0.9])))
    assert math.isnan(half_temperature(t, np.array([0.1, 0.2, 0.4])))
    # a rise through ½ is no transition
    assert math.isnan(half_temperature(t, np.array([0.9, 0.6, 0.2])))


def test_pseudo_values_have_the_error_from_sample_to_sample():
    found = [
        pseudo_values(T, instances(np.random.default_rng(seed), 80, 100)) for seed in range(60)
    ]
    said = np.mean([values.std(ddof=1) / 10 for values in found])
    scatter = np.std([values.mean() for values in found], ddof=1)
    # the relative error of a standard deviation from 60 values is 1/√118, about 9 %
    assert abs(said / scatter - 1) < 4 / math.sqrt(118)


def test_the_limit_is_found_and_a_wrong_one_is_rejected():
    curves = ensemble(0)
    estimate = limit_of_halves(T, curves)
    assert abs(estimate.mean[0] - math.log(TRUE)) < 4 * estimate.error[0]
    assert estimate.error[0] < 0.08
    right, wrong = (within(estimate, math.log(at), 0.25) for at in (TRUE, 1.9 * TRUE))
    assert [decision.status for decision in decide([right, wrong])] == ["agrees", "differs"]


def test_the_bootstrap_gives_the_same_limit_and_error():
    curves = ensemble(1)
    estimate, limits = limit_of_halves(T, curves), resampled_limits(T, curves, 400)
    assert np.log(limits).std() == pytest.approx(estimate.error[0], rel=0.2)  # 4/√(2·400) = .14
    assert abs(np.log(limits).mean() - estimate.mean[0]) < estimate.error[0]


def test_a_size_without_a_transition_has_no_limit():
    curves = ensemble(2)
    curves[60] = np.full_like(curves[60], 0.2)
    assert limit_of_halves(T, curves) is None
    assert resampled_limits(T, curves, 5).size == 0


def test_overlaps_are_interpolated_between_temperatures_and_their_peaks_seen():
    k, n = 26, 3
    table = np.full((1, n, 2, 40), np.nan)
    table[..., : k + 1] = 0.0
    table[:, :, 0, 17], table[:, :, 1, 21] = 1.0, 1.0  # one peak at each temperature
    source = xr.Dataset(
        {"overlap": (("size", "sample", "mu", "overlap_bin"), table)},
        coords={"size": [40], "mu": [1e3, 1e4], "temperature": ("mu", [1e-3, 1e-4])},
        attrs={"rho": 0.65},
    )
    own = overlaps_at(source, 40, math.sqrt(1e-7))
    assert own.shape == (n, k + 1)
    assert own[0, 17] == pytest.approx(0.5)
    assert own[0, 21] == pytest.approx(0.5)
    low, valley, high = densities_near(own, (17 / 26, 19 / 26, 21 / 26)).mean(axis=0)
    assert min(low, high) > 0 == valley
    low, valley, _ = densities_near(overlaps_at(source, 40, 1e-3), (17 / 26, 19 / 26, 21 / 26))[0]
    assert low > 0 == valley


def test_supports_share_columns_as_random_ones_do_when_hot_and_more_in_the_planted_phase():
    theory = ReplicaSymmetric(0.75, 0.65, rho_hat=0.5)
    given = (0.75, 0.65, 0.5, 1.0)
    assert shared_columns(theory.at(4e5), *given) == pytest.approx(0.65, abs=1e-4)
    transition = theory.transition()
    cooled, planted = (shared_columns(s, *given) for s in (transition.cooled, transition.planted))
    # all planted columns and a random choice of the others would share (.5 + .15²/.5)/.65
    assert 0.65 < cooled < planted < (0.5 + 0.15**2 / 0.5) / 0.65
