"""The kernels of sparse coding, each compared with the slow and obvious way."""

import numpy as np
import pytest
from numba import njit
from sklearn.linear_model import orthogonal_mp_gram

from helpers.kernels import from_python
from helpers.reference import off_span, qr_energy
from l0anneal.engine.coding import OMP, PURSUIT, encode
from l0anneal.engine.coding_pursuit import BY_CORRELATION, BY_ENERGY, pursue, solve_pursuit
from l0anneal.engine.coding_search import exchange, open_tableau, renew, search
from l0anneal.engine.coding_state import (
    ENERGY,
    MOVES,
    SIZE,
    coding_dictionary,
    combine,
    correlate,
    empty_code_tableau,
    refit,
)
from l0anneal.engine.vectors import largest, position_of
from l0anneal.problem.admissibility import PIVOT


@njit
def top(x):
    return largest(x, 0.0)


@njit
def place(x, value):
    return position_of(x, value)


def unit_atoms(rng, n_atoms, n_features, coherence=0.0):
    D = rng.standard_normal((n_atoms, n_features)) + coherence * rng.standard_normal(n_features)
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def started(D, y, k, rule=BY_CORRELATION):
    """Return a dictionary and a tableau after the pursuit of a signal."""
    d = coding_dictionary(D)
    t = empty_code_tableau(d, k)
    from_python(correlate)(d, y, t.b)
    assert pursue(d, t, k, -np.inf, rule)
    return d, t


def energy_of(D, y, support):
    """Return the energy relative to that of the empty support."""
    return qr_energy(D.T, y, support) - 0.5 * float(y @ y)


def assert_is_tableau(D, y, t, atol):
    """Compare a tableau with its definition, by least squares."""
    k, n = t.counts[SIZE], len(D)
    S = t.inside[:k]
    assert len(set(S.tolist())) == k
    W = np.linalg.lstsq(D[S].T, D.T, rcond=None)[0]
    x = np.linalg.lstsq(D[S].T, y, rcond=None)[0]
    np.testing.assert_allclose(t.W[:k, :n], W, atol=atol)
    np.testing.assert_allclose(t.U[:k, :k], np.linalg.inv(D[S] @ D[S].T), atol=atol)
    np.testing.assert_allclose(t.x[:k], x, atol=atol)
    np.testing.assert_allclose(t.r[:n], D @ (y - x @ D[S]), atol=atol)
    np.testing.assert_allclose(t.gamma[:n], np.sum((D - W.T @ D[S]) ** 2, axis=1), atol=atol)
    assert t.values[ENERGY] == pytest.approx(energy_of(D, y, S), abs=atol)
    # atoms inside are exact, and padding never gets a value
    np.testing.assert_array_equal(t.W[:k, S], np.eye(k))
    assert not t.r[S].any()
    assert not t.gamma[S].any()
    assert not t.W[:k, n:].any()


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize("n", [*range(1, 40), 64, 255, 256])
def test_largest_and_its_position(n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n)
    x[rng.integers(n)] = 5.0
    x[rng.integers(n)] = 5.0
    assert top(x) == 5.0
    assert place(x, 5.0) == np.argmax(x)
    assert top(-np.abs(x)) == 0.0
    x[x < 5.0] = np.nan
    assert top(x) == 5.0


@pytest.mark.parametrize("n_features", [1, 3, 4, 11, 16])
def test_products_with_all_atoms(n_features):
    rng = np.random.default_rng(n_features)
    D, y = rng.standard_normal((21, n_features)), rng.standard_normal(n_features)
    d = coding_dictionary(D)
    b = np.full(d.diag.size, np.nan)
    from_python(correlate)(d, y, b)
    np.testing.assert_allclose(b[:21], D @ y, atol=1e-13)
    assert not b[21:].any()


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 9), (2, 9), (3, 7), (8, 9)])
def test_rows_are_subtracted(start, stop):
    rng = np.random.default_rng(0)
    rows, factors, target = (rng.standard_normal(s) for s in ((12, 32), 9, 32))
    at = rng.permutation(12)[:9]
    expected = target - factors[start:stop] @ rows[at[start:stop]]
    from_python(combine)(target, rows, at, factors, start, stop)
    np.testing.assert_allclose(target, expected, atol=1e-13)


# ---------------------------------------------------------------- pursuits


def greedy(D, y, k):
    """Add the atom whose least-squares fit leaves least, k times."""
    support = []
    for _ in range(k):
        left = {
            j: qr_energy(D.T, y, [*support, j])
            for j in range(len(D))
            if j not in support and off_span(D.T, [*support, j], j) > PIVOT
        }
        support.append(min(left, key=left.get))
    return support


@pytest.mark.parametrize("coherence", [0.0, 2.0])
def test_the_pursuit_by_energy_is_the_greedy_one(coherence):
    rng = np.random.default_rng(1)
    D = unit_atoms(rng, 25, 9, coherence)
    differs = False
    for _ in range(10):
        y = rng.standard_normal(9)
        y /= np.linalg.norm(y)
        d, t = started(D, y, 5, BY_ENERGY)
        assert t.inside.tolist() == greedy(D, y, 5)
        x, residual = np.zeros(5), np.zeros(9)
        error = from_python(solve_pursuit)(d, t, y, 1.0, x, residual)
        best = np.linalg.lstsq(D[t.inside].T, y, rcond=None)[0]
        np.testing.assert_allclose(x, best, atol=1e-11)
        assert error == pytest.approx(2 * qr_energy(D.T, y, t.inside), abs=1e-13)
        omp = np.flatnonzero(orthogonal_mp_gram(D @ D.T, D @ y, n_nonzero_coefs=5))
        differs = differs or set(omp) != set(t.inside.tolist())
    assert differs


def test_the_pursuit_by_correlation_is_scikit_learns():
    rng = np.random.default_rng(2)
    D = unit_atoms(rng, 40, 12, 1.0)
    for _ in range(20):
        y = rng.standard_normal(12)
        y /= np.linalg.norm(y)
        _, t = started(D, y, 6)
        theirs = orthogonal_mp_gram(D @ D.T, D @ y, n_nonzero_coefs=6)
        assert sorted(t.inside.tolist()) == np.flatnonzero(theirs).tolist()
        assert t.values[ENERGY] == pytest.approx(energy_of(D, y, t.inside), abs=1e-13)


# ---------------------------------------------------------------- the tableau


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_the_tableau_after_a_pursuit_and_after_exchanges(k):
    rng = np.random.default_rng(k)
    D, y = unit_atoms(rng, 30, 12), rng.standard_normal(12)
    y /= np.linalg.norm(y)
    d, t = started(D, y, k)
    from_python(open_tableau)(t)
    assert_is_tableau(D, y, t, 1e-10)
    made = 0
    for _ in range(20):
        before = t.inside.tolist()
        slot, j = rng.integers(k), rng.integers(30)
        if j in before:
            assert not exchange(d, t, slot, j) or j == before[slot]
            continue
        if exchange(d, t, slot, j):
            made += 1
            before[slot] = j
        assert t.inside.tolist() == before
    assert made > 5
    assert_is_tableau(D, y, t, 1e-9)
    assert renew(d, t)
    assert t.counts[MOVES] == 0
    assert_is_tableau(D, y, t, 1e-10)


def test_no_exchange_makes_a_support_nearly_dependent():
    rng = np.random.default_rng(3)
    D = unit_atoms(rng, 10, 6)
    D[7] = D[2] + 1e-5 * D[3]
    D[7] /= np.linalg.norm(D[7])
    y = D[2] + 0.5 * D[4] + 0.25 * D[5]
    d = coding_dictionary(np.vstack((D, np.zeros((1, 6)))))
    t = empty_code_tableau(d, 3)
    from_python(correlate)(d, y, t.b)
    t.counts[SIZE] = 3
    t.inside[:] = 2, 4, 5
    assert renew(d, t)
    assert not exchange(d, t, 1, 7)  # nearly the atom in slot 0
    assert not exchange(d, t, 1, 10)  # a zero atom
    assert exchange(d, t, 0, 7)  # takes the place of its twin
    assert t.inside.tolist() == [7, 4, 5]


def test_energies_stay_true_where_atoms_are_coherent():
    """Random exchanges lead through near-singular supports, where rounding errors grow fast."""
    rng = np.random.default_rng(1)
    line = np.cos(np.pi * np.outer(np.arange(18), np.arange(6) + 0.5) / 18)
    line /= np.linalg.norm(line, axis=1, keepdims=True)
    D, y = np.kron(line, line), rng.standard_normal(36)
    y /= np.linalg.norm(y)
    d = coding_dictionary(D)
    t, best = empty_code_tableau(d, 24), empty_code_tableau(d, 24)
    from_python(correlate)(d, y, t.b)
    best.b[:] = t.b
    pursue(d, t, 24, -np.inf, BY_CORRELATION)
    from_python(open_tableau)(t)
    singular = 0.0
    for _ in range(1000):
        exchange(d, t, rng.integers(24), rng.integers(324))
        singular = max(singular, np.diag(t.U).max())
        assert abs(t.values[ENERGY] - energy_of(D, y, t.inside)) < 1e-8
    assert singular > 1e6
    # at the end of a descent, errors of the coefficients have no effect to first order
    search(d, t, best, 324, 30, np.arange(1, 5, dtype=np.uint64))
    assert abs(best.values[ENERGY] - energy_of(D, y, best.inside)) < 1e-11


def test_a_descent_ends_where_no_exchange_gains():
    rng = np.random.default_rng(5)
    D, y = unit_atoms(rng, 25, 10), rng.standard_normal(10)
    y /= np.linalg.norm(y)
    d, t = started(D, y, 4)
    best = empty_code_tableau(d, 4)
    best.b[:] = t.b
    begun = t.values[ENERGY]
    from_python(open_tableau)(t)
    search(d, t, best, 25, 0, np.ones(4, dtype=np.uint64))
    found = energy_of(D, y, best.inside)
    assert best.values[ENERGY] == pytest.approx(found, abs=1e-12)
    assert found <= begun
    for slot in range(4):
        for j in set(range(25)) - set(best.inside.tolist()):
            other = best.inside.copy()
            other[slot] = j
            assert energy_of(D, y, other) > found - 1e-12
    search(d, t, best, 25, 20, np.arange(1, 5, dtype=np.uint64))
    assert energy_of(D, y, best.inside) <= found + 1e-13


@pytest.mark.parametrize("n_kicks", [PURSUIT, OMP, 0, 4])
def test_codes_are_sorted_and_least_squares(n_kicks):
    rng = np.random.default_rng(6)
    D, Y = unit_atoms(rng, 30, 10, 1.0), rng.standard_normal((40, 10))
    Y[3] = 0.0
    Y[4] = D[7]
    d = coding_dictionary(D)
    t, spare = empty_code_tableau(d, 5), empty_code_tableau(d, 5)
    supports, coefs = np.zeros((40, 5), dtype=np.int64), np.zeros((40, 5))
    sizes, errors, key = np.zeros(40, dtype=np.int64), np.zeros(40), np.arange(4, dtype=np.uint64)
    norms = rng.uniform(0.5, 2.0, 30)
    encode(d, t, spare, norms, Y, 5, n_kicks, key, supports, coefs, sizes, errors)
    assert sizes[3] == 0
    assert sizes[4] == 1
    for y, support, x, size, error in zip(Y, supports, coefs, sizes, errors):
        S = support[:size]
        assert (np.diff(S) > 0).all()
        if size > 0:
            best = np.linalg.lstsq((D[S] * norms[S, None]).T, y, rcond=None)[0]
            np.testing.assert_allclose(x[:size], best, atol=1e-10)
            assert error * (y @ y) == pytest.approx(2 * qr_energy(D.T, y, S), abs=1e-12)
    order = rng.permutation(40)
    again = np.zeros((40, 5))
    encode(d, t, spare, norms, Y[order], 5, n_kicks, key, supports, again, sizes, errors)
    again[np.arange(5) >= sizes[:, None]] = 0.0
    coefs[3:5, 1:] = again[order.argsort()][3:5, 1:]
    np.testing.assert_array_equal(again[order.argsort()][5:], coefs[5:])


def test_dependent_atoms_have_no_least_squares():
    rng = np.random.default_rng(7)
    D = unit_atoms(rng, 5, 4)
    D[3] = -D[1]
    d = coding_dictionary(D)
    t = empty_code_tableau(d, 2)
    x, residual = np.zeros(2), np.zeros(4)
    assert refit(d, t, D[0], np.array([1, 3]), x, residual) == np.inf
    assert refit(d, t, D[0], np.array([0, 3]), x, residual) < 1e-30
