"""Pivots: the tableau after each change of the support, compared with least squares by QR."""

from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.extending import is_jitted

from helpers.kernels import from_python, kept
from helpers.reference import qr_energy, random_problem
from l0anneal import SparseProblem, kick_search, sparse_encode
from l0anneal.engine import pivots, tableau
from l0anneal.engine import refresh as refreshing
from l0anneal.engine.pivots import add, remove, swap
from l0anneal.engine.refresh import drift, refresh
from l0anneal.engine.tableau import DEFECT, ENERGY, copy_row
from l0anneal.engine.workspace import Workspace

delta_add = from_python(tableau.delta_add)
delta_remove = from_python(tableau.delta_remove)
delta_swap = from_python(tableau.delta_swap)


def check_against_qr(workspace, A, y, atol=1e-9):
    """Compare every array of the tableau with its definition."""
    t = workspace.tableau
    k = workspace.size
    A = A / np.linalg.norm(A, axis=0)
    y = y / np.sqrt(workspace.problem.unit_energy)
    inside, outside = workspace.inside_columns, workspace.outside_columns
    assert sorted([*inside, *outside]) == list(range(t.b.size))
    S, Z = A[:, inside], A[:, outside]
    W = np.linalg.lstsq(S, Z, rcond=None)[0].T if k else np.zeros((Z.shape[1], 0))
    x = np.linalg.lstsq(S, y, rcond=None)[0] if k else np.zeros(0)
    np.testing.assert_allclose(t.W[: outside.size, :k], W, atol=atol)
    np.testing.assert_allclose(t.x[:k], x, atol=atol)
    np.testing.assert_allclose(t.r[: outside.size], Z.T @ (y - S @ x), atol=atol)
    np.testing.assert_allclose(
        t.gamma[: outside.size], np.sum((Z - S @ W.T) ** 2, axis=0), atol=atol
    )
    np.testing.assert_allclose(kept(t.U, k), kept(np.linalg.inv(S.T @ S), k), atol=atol)
    assert 0.5 * y @ y + t.values[ENERGY] == pytest.approx(qr_energy(A, y, inside), abs=atol)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 18), extra=st.integers(0, 6), data=st.data())
def test_pivots_agree_with_least_squares(seed, n, extra, data):
    rng = np.random.default_rng(seed)
    A, y = random_problem(rng, n + extra, n)
    workspace = Workspace(SparseProblem(A, y), n)
    t = workspace.tableau
    for _ in range(data.draw(st.integers(1, 12))):
        k = workspace.size
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


def test_a_tableau_with_a_ridge_is_ridge_regression():
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


def test_a_refused_support_leaves_the_tableau_unchanged():
    A, y = random_problem(np.random.default_rng(0), 8, 9, "duplicates")  # 1 = 0, 2 = −3·3, 4 = 0
    workspace = Workspace(SparseProblem(A, y), 4)
    t = workspace.tableau
    assert not workspace.add(4)  # a zero column
    assert workspace.add(0)
    assert workspace.add(3)
    before = [field.copy() for field in t]
    assert not workspace.add(1)
    outside = {int(j): p for p, j in enumerate(t.outside[:7])}
    assert delta_swap(t, 1, outside[1]) == np.inf  # 3 leaves, and the twin of 0 enters
    assert not swap(t, 1, outside[1])
    assert not swap(t, 0, outside[2])
    for name, old, new in zip(t._fields, before, t):
        if name != "work":
            np.testing.assert_array_equal(old, new, err_msg=name)
    assert swap(t, 0, outside[1])  # a column may be exchanged for its twin
    assert t.values[DEFECT] < 1e-14


def n_signatures(kernel):
    """Number of signatures that a kernel was compiled for, counted by its files in Numba's cache.

    ``kernel.signatures`` does not tell: where a kernel is loaded from the cache, the kernels that it
    calls are not loaded at all. Each signature has a data file of its own, whose name contains the
    digest of the engine, so that files of other versions are not counted.
    """
    directory = Path(kernel.stats.cache_path)
    return len(list(directory.glob(f"*.{kernel.py_func.__qualname__}-*.nbc")))


def test_pivots_are_compiled_for_one_signature():
    """A literal among the arguments would compile them again, which takes seconds each."""
    rng = np.random.default_rng(0)
    problem = SparseProblem(rng.standard_normal((20, 30)), np.ones(20))
    kick_search(problem, 3, n_kicks=1, random_state=0)
    sparse_encode(rng.standard_normal((2, 10)), rng.standard_normal((15, 10)), 3, random_state=0)
    workspace = Workspace(problem, 2)
    workspace.fill(2, np.arange(30))
    delta_add(workspace.tableau, 0)
    delta_remove(workspace.tableau, 0)
    workspace.remove_worst()
    kernels = [
        item
        for module in (pivots, refreshing, tableau)
        for item in vars(module).values()
        if is_jitted(item) and item.py_func.__module__ == module.__name__
    ]
    assert len(kernels) > 20
    expected = {copy_row: {1, 2, 3}}  # which copies several types
    for kernel in kernels:
        assert n_signatures(kernel) in expected.get(kernel, {1}), kernel


def test_signatures_are_counted_in_the_cache(tmp_path, monkeypatch):
    """Control: a second signature is seen, also by a dispatcher that has loaded nothing."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def double(x):
        return x + x

    double.__qualname__ = "double"
    kernel = numba.njit(cache=True)(double)
    assert n_signatures(kernel) == 0
    kernel(1)
    assert n_signatures(kernel) == 1
    kernel(1.5)
    fresh = numba.njit(cache=True)(double)
    assert fresh.signatures == []
    assert n_signatures(fresh) == 2
