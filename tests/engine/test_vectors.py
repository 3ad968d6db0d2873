"""The inner loops of the kernels, compared bit for bit with the same sums of exact fractions."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from l0anneal.engine.inverse_vectors import change_block, multiply_block, open_slot, regress
from l0anneal.engine.vectors import (
    dot,
    dot_block,
    dot_four,
    dot_rows,
    gaining_rows,
    largest,
    subtract_block,
    subtract_block_and_dot,
)

LENGTHS = [*range(40), 63, 64, 80, 257, 1000]


@njit
def compiled(x, y):
    return dot(x, y)


def fused(a, b, c):
    """Return ab + c, rounded once: the sum of exact fractions."""
    return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def plain(x, y, n_sums=4):
    """Add in vectors of four partial sums; what is left of a group is added to the first vector."""
    sums = [[0.0] * 4 for _ in range(n_sums)]
    whole, fours = len(y) - len(y) % (4 * n_sums), len(y) - len(y) % 4
    for at in range(fours):
        part = sums[at // 4 % n_sums if at < whole else 0]
        part[at % 4] = fused(x[at], y[at], part[at % 4])
    while len(sums) > 1:
        sums = [np.add(a, b).tolist() for a, b in zip(sums[::2], sums[1::2])]
    a, b, c, d = sums[0]
    total = (a + b) + (c + d)
    for at in range(fours, len(y)):
        total = fused(x[at], y[at], total)
    return total


@pytest.mark.parametrize("n", LENGTHS)
def test_the_order_of_summation_is_the_documented_one(n):
    x, y = np.random.default_rng(n).normal(size=(2, n)) * 10.0 ** np.arange(2)[:, None]
    assert compiled(x, y) == plain(x, y)
    assert compiled(x, np.concatenate((y, [np.nan, 1.0]))) == plain(x, y)  # y may be longer


@njit
def compiled_dots(W, y):
    return dot_four(W[0], W[1], W[2], W[3], y), dot_block(W, 1, y), dot_rows(W, 1, y)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 9, 16, 21, 80])
def test_four_inner_products_are_those_of_one_row_at_a_time(n):
    rng = np.random.default_rng(n)
    W, y = rng.standard_normal((5, n)), rng.standard_normal(n)
    four, block, rows = compiled_dots(W, y)
    assert four == tuple(plain(row, y, n_sums=2) for row in W[:4])
    assert block == tuple(plain(row, y, n_sums=2) for row in W[1:])
    assert rows == tuple(plain(row, y) for row in W[1:])


def plain_multiplication(W, m, x, y):
    """Do `multiply_block` with exact fractions; W has the rows from m on."""
    for at in range(m):
        for i in range(4):
            y[at] = fused(W[i, at], x[m + i], y[at])
    y[m : m + 4] = [plain(row[:m], x[:m], n_sums=2) for row in W]
    for at in range(m, m + 4):
        for i in range(4):
            y[at] = fused(W[i, at], x[m + i], y[at])


def plain_change(W, n, s, x, q, y):
    """Add s_i x + q_i y to the first n elements of the rows, with exact fractions."""
    for i in range(4):
        for at in range(n):
            W[i, at] = fused(q[i], y[at], fused(s[i], x[at], W[i, at]))


@njit
def compiled_multiplication(U, m, xs, ys):
    multiply_block(U, m, (xs[0], xs[1]), (ys[0], ys[1]))


@njit
def compiled_change(U, m, a, x, b, y, d, xs, ys):
    change_block(U, m, a, x, b, y, d, (xs[0],), (ys[0],))


@pytest.mark.parametrize("m", [0, 4, 8, 12, 28])
def test_four_rows_of_a_symmetric_matrix_are_used_twice(m):
    rng = np.random.default_rng(m)
    U, (xs, ys) = rng.standard_normal((m + 5, m + 6)), rng.standard_normal((2, 2, m + 6))
    expected = ys.copy()
    for x, y in zip(xs, expected):
        plain_multiplication(U[m : m + 4], m, x, y)
    compiled_multiplication(U, m, xs, ys)
    np.testing.assert_array_equal(ys, expected)


@pytest.mark.parametrize("m", [0, 4, 8, 12, 28])
def test_four_rows_are_changed_and_used_in_one_pass(m):
    rng = np.random.default_rng(m)
    U, (xs, ys) = rng.standard_normal((m + 5, m + 6)), rng.standard_normal((2, 2, m + 6))
    a, x, b, y, d = rng.standard_normal((5, m + 6))
    U_expected, d_expected, y_expected = U.copy(), d.copy(), ys.copy()
    plain_change(U_expected[m : m + 4], m + 4, a[m:], x, b[m:], y)
    plain_multiplication(U_expected[m : m + 4], m, xs[0], y_expected[0])
    d_expected[m : m + 4] = U_expected.diagonal()[m : m + 4]
    compiled_change(U, m, a, x, b, y, d, xs, ys)
    np.testing.assert_array_equal(U, U_expected)
    np.testing.assert_array_equal(ys, y_expected)
    np.testing.assert_array_equal(d, d_expected)


@njit
def compiled_subtraction(W, s, x, q, y):
    subtract_block(W, 1, s, x, q, y)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 11, 12, 13, 21])
def test_two_vectors_are_subtracted_from_four_rows(n):
    rng = np.random.default_rng(n)
    W, x, y = rng.standard_normal((5, n + 2)), *rng.standard_normal((2, n))
    s, q = rng.standard_normal((2, 4))
    expected = W.copy()
    plain_change(expected[1:], n, -s, x, -q, y)
    compiled_subtraction(W, tuple(s), x, tuple(q), y)
    np.testing.assert_array_equal(W, expected)


@njit
def compiled_regression(v, u, of_U, of_G, k, freed, inverse, least):
    return regress(v, u, of_U, of_G, k, freed, inverse, least)


@njit
def compiled_opening(u, v, x, a, b, k, numbers):
    open_slot(u, v, x, a, b, k, numbers[0], numbers[1], numbers[2], numbers[3])


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 21])
def test_vectors_by_slot_before_an_exchange(n):
    rng = np.random.default_rng(n)
    for k in range(n):
        v, u, of_U, of_G = rng.standard_normal((4, n))
        freed, inverse, lost, gained = numbers = rng.uniform(0.5, 2.0, 4)
        others = np.arange(n) != k
        regression = np.where(others, v - v[k] * freed * u, 0.0)
        diagonal = (regression * regression * inverse - u * u * freed + of_U) * of_G
        for least in (-np.inf, 100.0):
            entering = v.copy()
            found = compiled_regression(entering, u, of_U, of_G, k, freed, inverse, least)
            # column k itself counts as 0
            assert found == max(least, 0.0, *diagonal[others])
            np.testing.assert_array_equal(entering, regression)

        x, a, b = rng.standard_normal((3, n))
        expected = np.where(others, x - (lost * u + gained * v), gained)
        u_expected, v_expected = np.where(others, u, 0.0), np.where(others, v, -1.0)
        compiled_opening(u, v, x, a, b, k, tuple(numbers))
        np.testing.assert_array_equal(x, expected)
        np.testing.assert_array_equal(u, u_expected)
        np.testing.assert_array_equal(v, v_expected)
        np.testing.assert_array_equal(a, -freed * u_expected)
        np.testing.assert_array_equal(b, inverse * v_expected)


@njit
def compiled_largest(x, least):
    return largest(x, least)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 11, 16, 17, 35, 70])
def test_the_largest_element(n):
    x = np.random.default_rng(n).permutation(n) - 3.0
    for at in range(n):  # wherever it is
        assert compiled_largest(np.roll(x, at), -np.inf) == n - 4.0
    assert compiled_largest(x, 100.0) == 100.0


@njit
def compiled_gains(W, p, y, freed, margin, gamma, r, least):
    return gaining_rows(W, p, y, freed, margin, gamma, r, least)


def most_gained(w, y, freed, margin, gamma, r):
    """Return by how much the best exchange of a row is beyond its margin, with exact fractions."""
    return max(
        (
            fused(
                fused(w_k, y_k, r),
                fused(w_k, y_k, r),
                -(fused(w_k * w_k, freed_k, gamma) * margin_k),
            )
            for w_k, y_k, freed_k, margin_k in zip(w, y, freed, margin)
        ),
        default=-np.inf,
    )


@pytest.mark.parametrize("n", [0, 1, 4, 7, 8, 9, 12, 15, 16, 21, 80])
def test_rows_in_which_an_exchange_gains_are_found_at_any_slot(n):
    rng = np.random.default_rng(n)
    W = rng.standard_normal((6, n + 3))
    y, freed, margin = rng.standard_normal(n), rng.uniform(0.5, 2.0, n), rng.uniform(5.0, 9.0, n)
    gamma, r = rng.uniform(0.5, 1.0, 6), 0.1 * rng.standard_normal(6)
    W *= 0.1
    for at in range(n):
        W[2, at] = 30.0 * np.sign(r[2] * y[at])  # the exchange of slot ``at`` in row 2 gains most
        best = np.where(np.arange(n) == at, -1.0, margin)
        gained = [most_gained(w, y, freed, best, *numbers) for w, *numbers in zip(W, gamma, r)]
        for p in (0, 1, 2):
            for i in range(4):
                here = gained[p + i]
                for least, expected in ((here, 0), (np.nextafter(here, -np.inf), 1)):
                    found = compiled_gains(W, p, y, freed, best, gamma, r, least)
                    assert found >> i & 1 == expected
        best[(at + 1) % n] = np.nan if n > 1 else best[at]
        assert compiled_gains(W, 2, y, freed, best, gamma, r, gained[2]) & 1 == 0
        assert compiled_gains(W, 2, y, freed, best, gamma, r, gained[2] - 1e-9) & 1 == 1
        W[2, at] = 0.0
    assert compiled_gains(W, 0, y, freed, margin, gamma, r, np.inf) == 0
    assert n > 0 or compiled_gains(W, 0, y, freed, margin, gamma, r, -np.inf) == 0


@njit
def compiled_subtraction_and_dots(W, s, x, q, y, z):
    return subtract_block_and_dot(W, 0, s, x, q, y, z)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 11, 12, 13, 21, 80])
def test_rows_are_changed_while_the_next_are_multiplied(n):
    rng = np.random.default_rng(n)
    W, x, y, z = rng.standard_normal((8, n + 2)), *rng.standard_normal((3, n))
    s, q = rng.standard_normal((2, 4))
    expected = W.copy()
    plain_change(expected[:4], n, -s, x, -q, y)
    found = compiled_subtraction_and_dots(W, tuple(s), x, tuple(q), y, z)
    np.testing.assert_array_equal(W, expected)
    assert found == tuple(plain(row, z, n_sums=2) for row in W[4:, :n])


def test_arrays_of_another_type_or_layout_are_refused():
    from numba.core.errors import TypingError

    with pytest.raises(TypingError):
        compiled(np.ones(8)[::2], np.ones(4))
    with pytest.raises(TypingError):
        compiled(np.ones(4, dtype=np.float32), np.ones(4, dtype=np.float32))


PROGRAM = """
import hashlib
from l0anneal import Schedule, anneal, ensembles
instance = ensembles.planted(60, 0.75, 0.4, random_state=3)
digest = hashlib.sha256()
for move in ("pair flip", "heat bath", "multi flip", "rejection free"):
    result = anneal(instance.problem, 30, Schedule.paper(n=30), move=move, random_state=5)
    digest.update(result.trajectory["distortion"].to_numpy().tobytes() + result.coef.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_compiled_kernels_and_kernels_from_the_cache_give_the_same_bits(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    digests = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) > 60
