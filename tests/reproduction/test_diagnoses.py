"""The sentences that say why a curve leaves theory, on curves made to leave it in a known way."""

import numpy as np
import pytest
import xarray as xr

from l0anneal.reproduction.analysis import Theory
from l0anneal.reproduction.diagnoses import by_rate, means_by_size, of_medians

PARAMETERS = {"alpha": 0.8, "rho": 0.4, "rho_hat": 0.2, "sigma_x2": 1.0, "sigma_xi2": 0.0}
TEMPERATURES = np.array([10.0, 1.0, 0.1, 0.01])


def runs(shifts):
    """Curves that lie a factor above theory: ``shifts`` has one by size, sample and temperature."""
    line = Theory(PARAMETERS).at("mse", TEMPERATURES)
    sizes = sorted(shifts)
    values = np.array([line * (1 + np.asarray(shifts[size], dtype=float)) for size in sizes])
    return xr.Dataset(
        {"mse": (("size", "sample", "mu"), values)},
        coords={
            "size": sizes,
            "mu": 1 / TEMPERATURES,
            "temperature": ("mu", TEMPERATURES),
        },
        attrs=PARAMETERS,
    )


def test_medians_do_not_follow_a_single_sample():
    lagging = runs(
        {100: np.zeros((3, 4)), 400: [[0, 0, 0, 0.1], [0, -0.2, 0, 0.1], [0, -0.2, 0, 9]]}
    )
    assert of_medians(lagging, "mse", 0.005, 20) == (
        "Medians at N = 400: -20 % at T = 1 to +10 % at T = 0.01."
    )


def test_the_size_is_scanned_where_the_largest_lies_farthest_from_theory():
    small, large = [[0.5, 0.6, 0.4, 0]], [[0, -0.3, 0.1, 0]]
    text = means_by_size(runs({100: small, 200: large}), "mse", 0.005, 20)
    assert text == "Means at T = 1: +60 % (N = 100), -30 % (N = 200)."
    cold = means_by_size(runs({100: small, 200: large}), "mse", 0.005, 0.5)
    assert cold == "Means at T = 0.1: +40 % (N = 100), +10 % (N = 200)."


def test_the_rate_is_scanned_at_the_largest_size_that_all_have():
    rapid = runs({100: [[0, 0, 0, 0.4]], 200: [[0, 0, 0.1, 0]]})
    slow = runs({100: [[0, 0, 0, 0.05]]})
    assert by_rate({100: slow, 5: rapid}, "mse", 0.005, 20) == (
        "Means at T = 0.01, N = 100: +40 % (τ = 5), +5 % (τ = 100)."
    )
    assert by_rate({5: rapid, 100: runs({400: [[0, 0, 0, 0]]})}, "mse", 0.005, 20) == ""


@pytest.mark.parametrize("shift", [0.25, -0.25])
def test_the_sign_is_that_of_the_deviation(shift):
    text = of_medians(runs({50: np.full((3, 4), shift)}), "mse", 0.05, 0.5)
    assert text.count(f"{100 * shift:+g} %") == 2
