"""The tableau: when it is refreshed, and how accurate its energies are."""

import numpy as np
import pytest

from helpers.kernels import from_python
from helpers.reference import qr_energy
from l0anneal import SparseProblem, ensembles
from l0anneal.engine import refresh, tableau
from l0anneal.engine.pivots import swap
from l0anneal.engine.refresh import drift
from l0anneal.engine.tableau import (
    DEFECT,
    DEFECT_LIMIT,
    MOVES,
    MOVES_AT_LEAST,
    MOVES_PER_COLUMN,
    REFRESHES,
)
from l0anneal.engine.workspace import Workspace

delta_swap = from_python(tableau.delta_swap)
refresh_due = from_python(refresh.refresh_due)


def test_the_tableau_is_refreshed_by_the_rule():
    instance = ensembles.noise_only(40, 0.5, random_state=0)
    workspace = Workspace(instance.problem, 8)
    workspace.fill(8, np.arange(40))
    t = workspace.tableau
    assert t.counts[MOVES] == 0
    assert not refresh_due(t)
    t.counts[MOVES] = MOVES_PER_COLUMN * 8 + MOVES_AT_LEAST
    assert refresh_due(t)
    t.counts[MOVES] = 0
    t.W[:] += 1e-6  # an error in the regressions ...
    assert drift(t)["regressions"] == pytest.approx(1e-6, rel=1e-6)
    assert not refresh_due(t)
    assert swap(t, 0, 3)  # ... is measured at the next move
    assert t.values[DEFECT] > DEFECT_LIMIT
    assert refresh_due(t)
    done = int(t.counts[REFRESHES])
    workspace.refresh()
    assert t.counts[REFRESHES] == done + 1
    assert drift(t)["regressions"] < 1e-14
    t.U[0, 0] *= 1 + 1e-6  # an error in the inverse is measured when that column leaves
    assert swap(t, 0, 3)
    assert refresh_due(t) or t.counts[REFRESHES] == done + 2


def test_careful_swap_is_accurate_where_the_plain_formula_is_not():
    """For polynomials, the support and its neighbours are near-singular."""
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


def test_rows_begin_at_a_line_of_the_cache_also_after_growing():
    t = tableau.empty_tableau(
        np.eye(30), np.arange(30), np.empty((0, 0)), np.ones(30), np.zeros(30), capacity=5
    )
    for grown in (t, tableau.grown_tableau(t, 11)):
        for rows in (grown.U, grown.W, grown.work):
            assert rows.ctypes.data % 64 == 0
            assert rows.strides[0] % 64 == 0
