"""The tableau against QR, move by move."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.reference import qr_energy, random_problem
from l0anneal import SparseProblem, ensembles
from l0anneal.engine.pivots import add, remove, swap
from l0anneal.engine.tableau import (
    DEFECT,
    DEFECT_LIMIT,
    ENERGY,
    MOVES,
    MOVES_AT_LEAST,
    MOVES_PER_COLUMN,
    REFRESHES,
    SIZE,
    delta_add,
    delta_remove,
    delta_swap,
    drift,
    refresh,
    refresh_due,
)
from l0anneal.engine.workspace import Workspace


def check_against_qr(workspace, A, y, atol=1e-9):
    """Every array of the tableau against its definition."""
    t = workspace.tableau
    k = int(t.counts[SIZE])
    A = A / np.linalg.norm(A, axis=0)
    y = y / np.sqrt(workspace.problem.unit_energy)
    ones, zeros = t.inside[:k], t.outside[: t.b.size - k]
    assert sorted([*ones, *zeros]) == list(range(t.b.size))
    S, Z = A[:, ones], A[:, zeros]
    W = np.linalg.lstsq(S, Z, rcond=None)[0].T if k else np.zeros((Z.shape[1], 0))
    x = np.linalg.lstsq(S, y, rcond=None)[0] if k else np.zeros(0)
    np.testing.assert_allclose(t.W[: zeros.size, :k], W, atol=atol)
    np.testing.assert_allclose(t.x[:k], x, atol=atol)
    np.testing.assert_allclose(t.r[: zeros.size], Z.T @ (y - S @ x), atol=atol)
    np.testing.assert_allclose(t.gamma[: zeros.size], np.sum((Z - S @ W.T) ** 2, axis=0), atol=atol)
    lower = np.tril(t.U[:k, :k])
    np.testing.assert_allclose(lower, np.tril(np.linalg.inv(S.T @ S)), atol=atol)
    assert 0.5 * y @ y + t.values[ENERGY] == pytest.approx(qr_energy(A, y, ones), abs=atol)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 12), extra=st.integers(0, 6), data=st.data())
def test_moves_agree_with_least_squares(seed, n, extra, data):
    rng = np.random.default_rng(seed)
    A, y = random_problem(rng, n + extra, n)
    workspace = Workspace(SparseProblem(A, y), n)
    t = workspace.tableau
    for _ in range(data.draw(st.integers(1, 12))):
        k = int(t.counts[SIZE])
        possible = ["add"] * (k < n) + ["remove"] * (k > 0) + ["swap"] * (0 < k < n)
        kind = data.draw(st.sampled_from(possible))
        before = float(t.values[ENERGY])
        slot = data.draw(st.integers(0, k - 1)) if kind != "add" else -1
        outside = data.draw(st.integers(0, n - k - 1)) if kind != "remove" else -1
        if kind == "add":
            delta = delta_add(t, outside)
            assert add(t, outside)
        elif kind == "remove":
            delta = delta_remove(t, slot)
            remove(t, slot)
        else:
            delta = delta_swap(t, slot, outside)
            assert swap(t, slot, outside)
        assert t.values[ENERGY] - before == pytest.approx(delta, abs=1e-12)
        check_against_qr(workspace, A, y, atol=1e-7)
    assert refresh(t)
    check_against_qr(workspace, A, y, atol=1e-7)


def test_ridge_is_ridge_regression():
    A, y = random_problem(np.random.default_rng(3), 6, 9)
    ridge = 0.7
    workspace = Workspace(SparseProblem(A, y), 5, ridge=ridge)
    t = workspace.tableau
    for outside in (2, 0, 3, 1):
        assert add(t, outside)
    assert swap(t, 1, 2)
    remove(t, 0)
    support = t.inside[:3].copy()
    S = A[:, support]
    x = np.linalg.solve(S.T @ S + ridge * np.eye(3), S.T @ y)
    np.testing.assert_allclose(workspace.coef[support], x, rtol=1e-10)
    energy = 0.5 * np.sum((y - S @ x) ** 2) + 0.5 * ridge * np.sum(x**2)
    assert workspace.energy == pytest.approx(energy, rel=1e-12)
    assert drift(t)["regressions"] < 1e-13


def test_inadmissible_supports_are_refused_and_leave_no_trace():
    A, y = random_problem(np.random.default_rng(0), 8, 9, "duplicates")  # 1 = 0, 2 = −3·3, 4 = 0
    workspace = Workspace(SparseProblem(A, y), 4)
    t = workspace.tableau
    assert not workspace.add(4)  # a zero column
    assert workspace.add(0)
    assert workspace.add(3)
    before = [field.copy() for field in t]
    assert not workspace.add(1)
    outside = {int(j): p for p, j in enumerate(t.outside[:7])}
    assert delta_swap(t, 1, outside[1]) == np.inf  # 3 out, the twin of 0 in
    assert not swap(t, 1, outside[1])
    assert not swap(t, 0, outside[2])
    for name, old, new in zip(t._fields, before, t):
        if name != "work":
            np.testing.assert_array_equal(old, new, err_msg=name)
    assert swap(t, 0, outside[1])  # a column may leave for its own twin
    assert t.values[DEFECT] < 1e-14


def test_refresh_rule():
    instance = ensembles.noise_only(40, 0.5, random_state=0)
    workspace = Workspace(instance.problem, 8)
    workspace.fill(8, np.arange(40))
    t = workspace.tableau
    assert t.counts[MOVES] == 0
    assert not refresh_due(t)
    t.counts[MOVES] = MOVES_PER_COLUMN * 8 + MOVES_AT_LEAST
    assert refresh_due(t)
    t.counts[MOVES] = 0
    t.W[:] += 1e-6  # a fault in the regressions ...
    assert drift(t)["regressions"] == pytest.approx(1e-6, rel=1e-6)
    assert not refresh_due(t)
    assert swap(t, 0, 3)  # ... shows itself at the next move
    assert t.values[DEFECT] > DEFECT_LIMIT
    assert refresh_due(t)
    done = int(t.counts[REFRESHES])
    workspace.refresh()
    assert t.counts[REFRESHES] == done + 1
    assert drift(t)["regressions"] < 1e-14
    t.U[0, 0] *= 1 + 1e-6  # a fault in the inverse shows itself when that column leaves
    assert swap(t, 0, 3)
    assert refresh_due(t) or t.counts[REFRESHES] == done + 2


def test_careful_swap_is_exact_where_the_plain_formula_is_not():
    """Polynomials: the support is near-singular, and so are its neighbours."""
    A = np.vander(np.linspace(0, 1, 40), 12)
    y = np.random.default_rng(0).standard_normal(40)
    problem = SparseProblem(A, y)
    workspace = Workspace(problem, 5)
    workspace.fill(5, np.random.default_rng(1).permutation(12))
    t = workspace.tableau
    before = qr_energy(A, y, workspace.support)
    plain_errors, errors = [], []
    for k in range(5):
        for p in range(7):
            support = t.inside[:5].copy()
            support[k] = t.outside[p]
            exact = (qr_energy(A, y, support) - before) / problem.unit_energy
            delta = delta_swap(t, k, p)
            if np.isfinite(delta):
                errors.append(abs(delta - exact))
                w, u = t.W[p, k], t.U[k, k]
                r, gamma = t.r[p] + w * t.x[k] / u, t.gamma[p] + w * w / u
                plain_errors.append(abs(0.5 * t.x[k] ** 2 / u - 0.5 * r * r / gamma - exact))
    assert len(errors) > 5
    assert max(errors) < 1e-8
    assert max(plain_errors) > 1e-7


def test_a_singular_support_cannot_be_refreshed():
    A, y = random_problem(np.random.default_rng(0), 8, 9, "duplicates")
    workspace = Workspace(SparseProblem(A, y), 3)
    for j in (0, 5, 6):
        workspace.add(j)
    workspace.tableau.inside[1] = 1  # force the twin of column 0 in, behind the tableau's back
    with pytest.raises(ArithmeticError, match="singular"):
        workspace.refresh()
