"""Symmetric matrices of which one half is kept, compared with NumPy on whole matrices."""

import numpy as np
import pytest

from helpers.kernels import from_python, kept
from l0anneal.engine import symmetric

change = from_python(symmetric.change)
change_and_multiply = from_python(symmetric.change_and_multiply)
copy = from_python(symmetric.copy)
multiply = from_python(symmetric.multiply)
multiply_two = from_python(symmetric.multiply_two)
read_row = from_python(symmetric.read_row)
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
def test_products_and_changes(n):
    U, half = whole_and_half(n)
    g, u, v = np.random.default_rng(1).standard_normal((3, n))
    product, diagonal = np.full((2, n), np.nan)
    multiply(half, g, product)
    np.testing.assert_allclose(product, U @ g, atol=1e-14 * n)
    change(half, -0.3 * u, u, 0.7 * v, v, diagonal)
    U -= 0.3 * np.outer(u, u) - 0.7 * np.outer(v, v)
    np.testing.assert_allclose(kept(half, n), kept(U, n), atol=1e-14)
    np.testing.assert_array_equal(diagonal, half.diagonal()[:n])


@pytest.mark.parametrize("n", SIZES)
def test_passes_that_do_more_have_the_same_bits(n):
    """`multiply_two` and `change_and_multiply` are `multiply`, and `change`, one after the other."""
    _, half = whole_and_half(n)
    g, h, u, v = np.random.default_rng(2).standard_normal((4, n))
    expected, expected_two, first, second, diagonal = np.full((5, n), np.nan)
    multiply(half, g, expected)
    multiply(half, h, expected_two)
    multiply_two(half, g, first, h, second)
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, expected_two)

    together = half.copy()
    change(half, -0.3 * u, u, 0.7 * v, v, diagonal)
    multiply(half, g, expected)
    assert not np.array_equal(first, expected)  # so that the comparison below can fail
    change_and_multiply(together, -0.3 * u, u, 0.7 * v, v, diagonal, g, second)
    np.testing.assert_array_equal(together, half)
    np.testing.assert_array_equal(second, expected)
