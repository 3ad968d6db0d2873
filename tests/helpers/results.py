"""Comparing results of runs."""

import numpy as np


def assert_same(a, b):
    """Assert that two annealings are equal bit for bit."""
    names = ("support", "coef", "energy", "mean_energy", "std_energy", "acceptance")
    assert_same_fields(a, b, (*names, "chain_supports"))


def assert_same_fields(a, b, names):
    """Assert that fields of two results are equal bit for bit; a field may be a dict of arrays."""
    for name in names:
        first, second = getattr(a, name), getattr(b, name)
        if isinstance(first, dict):
            assert first.keys() == second.keys(), name
            for key in first:
                np.testing.assert_array_equal(first[key], second[key], err_msg=f"{name} {key}")
        else:
            np.testing.assert_array_equal(first, second, err_msg=name)
