"""The inner loops of the kernels, compared bit for bit with the same sums of exact fractions."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from l0anneal.engine.vectors import (
    dot,
    dot_four,
    largest,
    most_gained,
    multiply_four,
    subtract_four,
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
    return dot_four(W[0], W[1], W[2], W[3], y)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 9, 16, 21, 80])
def test_four_inner_products_are_those_of_one_row_at_a_time(n):
    rng = np.random.default_rng(n)
    W, y = rng.standard_normal((4, n)), rng.standard_normal(n)
    assert compiled_dots(W, y) == tuple(plain(row, y, n_sums=2) for row in W)


@njit
def compiled_multiplication(W, x, y):
    multiply_four(W[0], W[1], W[2], W[3], x, y)


@pytest.mark.parametrize("m", [0, 4, 8, 12, 28])
def test_four_rows_of_a_symmetric_matrix_are_used_twice(m):
    rng = np.random.default_rng(m)
    W, x, y = rng.standard_normal((4, m + 4)), *rng.standard_normal((2, m + 6))
    expected = y.copy()
    for at in range(m):
        for i in range(4):
            expected[at] = fused(W[i, at], x[m + i], expected[at])
    expected[m : m + 4] = [plain(row[:m], x[:m], n_sums=2) for row in W]
    for at in range(m, m + 4):
        for i in range(4):
            expected[at] = fused(W[i, at], x[m + i], expected[at])
    compiled_multiplication(W, x, y)
    np.testing.assert_array_equal(y, expected)


@njit
def compiled_subtraction(W, s, x, q, y):
    subtract_four(W[0], W[1], W[2], W[3], s, x, q, y)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 11, 12, 13, 21])
def test_two_vectors_are_subtracted_from_four_rows(n):
    rng = np.random.default_rng(n)
    W, x, y = rng.standard_normal((4, n)), *rng.standard_normal((2, n + 1))
    s, q = rng.standard_normal((2, 4))
    expected = [
        [fused(-q[i], y[at], fused(-s[i], x[at], W[i, at])) for at in range(n)] for i in range(4)
    ]
    compiled_subtraction(W, tuple(s), x, tuple(q), y)
    np.testing.assert_array_equal(W, np.reshape(expected, (4, n)))


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
def compiled_gain(w, y, freed, margin, gamma, r):
    return most_gained(w, y, freed, margin, gamma, r)


def gains(w, y, freed, margin, gamma, r):
    """Return what each exchange gains beyond its margin, in the compiled order of operations."""
    return [
        fused(
            fused(w_k, y_k, r),
            fused(w_k, y_k, r),
            -(fused(w_k * w_k, freed_k, gamma) * margin_k),
        )
        for w_k, y_k, freed_k, margin_k in zip(w, y, freed, margin)
    ]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 80])
def test_the_exchange_that_gains_most_is_found_at_any_slot(n):
    rng = np.random.default_rng(n)
    w, y, freed, margin = rng.standard_normal((4, n))
    gamma, r = 0.7, 0.3
    for at in range(n):
        best = margin.copy()
        best[at] = -1e3
        distance = np.abs(freed)
        expected = gains(w, y, distance, best, gamma, r)
        assert int(np.argmax(expected)) == at
        assert compiled_gain(w, y, distance, best, gamma, r) == expected[at]
        best[(at + 1) % n] = np.nan if n > 1 else best[at]
        assert compiled_gain(w, y, distance, best, gamma, r) == expected[at]
    assert compiled_gain(0.0 * w, y, freed, np.ones(n), gamma, r) == (
        fused(r, r, -gamma) if n else -np.inf
    )


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
