"""Symmetric matrices of which one half is kept, compared with NumPy on whole matrices."""

import numpy as np
import pytest

from helpers.kernels import from_python, kept
from l0anneal.engine import symmetric

copy = from_python(symmetric.copy)
multiply = from_python(symmetric.multiply)
read_row = from_python(symmetric.read_row)
subtract = from_python(symmetric.subtract)
write_row = from_python(symmetric.write_row)

SIZES = [1, 2, 3, 4, 5, 7, 8, 11, 12, 17, 36]


def whole_and_half(n, seed=0):
    """Return a symmetric matrix, and an array with more room that holds NaN where nothing is kept."""
    B = np.random.default_rng(seed).standard_normal((n, n))
    room = np.full((n + 2, n + 3), np.nan)
    row, column = np.indices((n, n))
    room[:n, :n] = np.where(column <= row | 3, B + B.T, np.nan)
    return B + B.T, room


@pytest.mark.parametrize("n", SIZES)
def test_rows_are_read_and_written(n):
    U, half = whole_and_half(n)
    u = np.empty(n)
    for k in range(n):
        read_row(half, k, u)
        np.testing.assert_array_equal(u, U[k])
    new = np.arange(1.0, n + 1.0)
    for k in range(n):
        write_row(half, k, new, -2.0)
        U[k] = U[:, k] = -2.0 * new
        np.testing.assert_array_equal(kept(half, n), kept(U, n))
    assert np.isnan(half).sum() == half.size - np.count_nonzero(kept(np.ones((n, n)), n))


@pytest.mark.parametrize("n", SIZES)
def test_copies_are_of_all_that_is_kept(n):
    U, half = whole_and_half(n)
    target = np.full((n, n), np.nan)
    copy(half, n, target)
    np.testing.assert_array_equal(kept(target, n), kept(U, n))


@pytest.mark.parametrize("n", SIZES)
def test_products_and_updates(n):
    U, half = whole_and_half(n)
    g, u, v = np.random.default_rng(1).standard_normal((3, n))
    product = np.full(n, np.nan)
    multiply(half, g, product)
    np.testing.assert_allclose(product, U @ g, atol=1e-14 * n)
    subtract(half, 0.3, u, -0.7, v)
    U -= 0.3 * np.outer(u, u) - 0.7 * np.outer(v, v)
    np.testing.assert_allclose(kept(half, n), kept(U, n), atol=1e-14)
