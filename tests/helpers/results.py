"""Comparing results of runs."""

import numpy as np


def assert_same(a, b):
    """Assert that two annealings are equal bit for bit."""
    for name in ("support", "coef", "energy", "mean_energy", "std_energy", "acceptance"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    np.testing.assert_array_equal(a.chain_supports, b.chain_supports)
