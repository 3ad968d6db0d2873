"""The workspace: what it reads from the tableau, and how it changes and maintains it."""

import numpy as np
import pytest

from helpers.kernels import from_python
from helpers.reference import qr_energy, random_problem
from l0anneal import SparseProblem, ensembles
from l0anneal.engine import tableau
from l0anneal.engine.kernel_choice import KERNELS
from l0anneal.engine.moves.descent import WIDE
from l0anneal.engine.moves.protocol import SPARE_ROWS, is_direct, new_tally
from l0anneal.engine.refresh import drift
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import STALE
from l0anneal.engine.workspace import Workspace
from l0anneal.problem import scaled as problem_module

delta_swap = from_python(tableau.delta_swap)


@pytest.fixture
def data():
    return random_problem(np.random.default_rng(0), 12, 20)


@pytest.fixture
def workspace(data):
    workspace = Workspace(SparseProblem(*data), 5)
    workspace.fill(5, np.array([7, 3, 11, 2, 19]))
    return workspace


def run(workspace, kernel, stop=40, mu=1.0):
    state = stream(np.random.SeedSequence(0))
    workspace.run(kernel, state, mu, stop, np.zeros(10), new_tally())


def test_the_support_is_read_in_the_callers_units(workspace, data):
    A, y = data
    assert workspace.size == 5
    assert workspace.support.tolist() == [2, 3, 7, 11, 19]
    assert workspace.energy == pytest.approx(qr_energy(A, y, workspace.support), rel=1e-12)
    x = np.linalg.lstsq(A[:, workspace.support], y, rcond=None)[0]
    np.testing.assert_allclose(workspace.coef[workspace.support], x, rtol=1e-10)
    assert np.count_nonzero(workspace.coef) == 5


def test_the_views_are_those_of_the_unit_columns(workspace, data):
    A = data[0] / np.linalg.norm(data[0], axis=0)
    S, Z = A[:, workspace.inside_columns], A[:, workspace.outside_columns]
    assert workspace.inside_columns.tolist() == [7, 3, 11, 2, 19]
    assert sorted(workspace.outside_columns) == sorted(set(range(20)) - {7, 3, 11, 2, 19})
    inverse = np.linalg.inv(S.T @ S)
    np.testing.assert_allclose(workspace.inverse, inverse, rtol=1e-10)
    np.testing.assert_allclose(workspace.inverse_diagonal, np.diag(inverse), rtol=1e-10)
    y = data[1] / np.sqrt(workspace.problem.unit_energy)
    x, W = (np.linalg.lstsq(S, target, rcond=None)[0] for target in (y, Z))
    np.testing.assert_allclose(workspace.coefficients, x, rtol=1e-10)
    np.testing.assert_allclose(workspace.outside_correlations, Z.T @ (y - S @ x), atol=1e-12)
    np.testing.assert_allclose(workspace.outside_distances, np.sum((Z - S @ W) ** 2, axis=0))


def test_the_worst_column_is_removed(workspace, data):
    A, y = data
    support = workspace.support
    energies = [qr_energy(A, y, np.delete(support, i)) for i in range(5)]
    workspace.remove_worst()
    np.testing.assert_array_equal(workspace.support, np.delete(support, np.argmin(energies)))
    assert workspace.energy == pytest.approx(min(energies), rel=1e-10)
    assert drift(workspace.tableau)["regressions"] < 1e-14


def test_exchange_costs_are_energy_changes(workspace):
    t = workspace.tableau
    expected = [delta_swap(t, k, p) for p in range(15) for k in range(5)]
    np.testing.assert_allclose(workspace.exchange_costs(), expected, rtol=1e-9, atol=1e-14)
    few = workspace.exchange_costs(at_most=12)
    assert few.size == 10  # two outside columns, the first and the last
    np.testing.assert_allclose(few, [*expected[:5], *expected[-5:]], rtol=1e-9, atol=1e-14)


def test_exchange_costs_leave_out_inadmissible_columns():
    A, y = random_problem(np.random.default_rng(0), 8, 9, "duplicates")  # 1 = 0, 2 = −3·3, 4 = 0
    workspace = Workspace(SparseProblem(A, y), 2)
    workspace.begin_at(np.array([0, 5]))
    # column 4 never enters, and column 1 only in the place of its twin
    assert workspace.exchange_costs().size == 2 * 7 - 2 - 1


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_leave_the_tableau_stale_if_they_are_declared_direct(workspace, name):
    kernel = KERNELS[name]
    run(workspace, kernel)
    assert workspace.tableau.counts[STALE] == is_direct(kernel)
    assert is_direct(kernel) == (name == "pair flip, direct")


def test_a_stale_tableau_is_completed_before_other_kernels(workspace):
    run(workspace, KERNELS["pair flip, direct"])
    assert drift(workspace.tableau)["regressions"] > 1e-3
    run(workspace, KERNELS["pair flip"], stop=0)
    assert not workspace.tableau.counts[STALE]
    assert drift(workspace.tableau)["regressions"] < 1e-14


def test_descent_ends_in_a_local_minimum(workspace, data):
    A, y = data
    before = workspace.energy
    assert workspace.descend() > 0
    assert workspace.energy < before
    assert workspace.exchange_costs().min() > -1e-12
    assert workspace.descend() == 0
    assert workspace.energy == pytest.approx(qr_energy(A, y, workspace.support), rel=1e-10)


def test_rows_of_the_gram_matrix_make_way_for_others(monkeypatch):
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr(problem_module, "ROW_CACHE_BYTES", 0)
    instance = ensembles.noise_only(40, 0.6, random_state=0)
    workspace = Workspace(instance.problem, 3)
    workspace.begin_at(np.array([5, 6, 7]))
    for j in range(40):
        workspace.bring(j)
    t = workspace.tableau
    held = np.flatnonzero(t.row_of >= 0)
    assert held.size == 3 + SPARE_ROWS == len(t.gram)
    assert set(held) == {5, 6, 7, *range(40 - SPARE_ROWS, 40)}
    A = instance.A / np.linalg.norm(instance.A, axis=0)
    np.testing.assert_allclose(t.gram[t.row_of[held]], A[:, held].T @ A, atol=1e-14)


def test_a_larger_capacity_keeps_the_tableau(workspace):
    before = workspace.support, workspace.energy, workspace.inverse
    workspace.grow(9)
    assert workspace.tableau.inside.size == 9
    for old, new in zip(before, (workspace.support, workspace.energy, workspace.inverse)):
        np.testing.assert_array_equal(old, new)
    assert workspace.add(0)
    assert drift(workspace.tableau)["regressions"] < 1e-13


def test_a_dependent_support_is_refused():
    A, y = random_problem(np.random.default_rng(0), 8, 9, "duplicates")
    workspace = Workspace(SparseProblem(A, y), 3)
    with pytest.raises(ValueError, match="linearly dependent: column 1 lies in the span"):
        workspace.begin_at(np.array([0, 5, 1]))


@pytest.mark.parametrize("start", ["in order", "greedily"])
def test_a_size_above_the_rank_is_refused(start):
    A, y = random_problem(np.random.default_rng(0), 8, 9, "low rank")
    workspace = Workspace(SparseProblem(A, y), 5)
    with pytest.raises(
        ValueError, match=r"n_nonzero = 5 exceeds the rank of A, which is 4: .* ≤ 4"
    ):
        workspace.fill(5, np.arange(9)) if start == "in order" else workspace.fill_greedily(5)


def test_a_singular_support_cannot_be_refreshed():
    A, y = random_problem(np.random.default_rng(0), 8, 9, "duplicates")
    workspace = Workspace(SparseProblem(A, y), 3)
    for j in (0, 5, 6):
        workspace.add(j)
    workspace.tableau.inside[1] = 1  # force the twin of column 0 into the support
    with pytest.raises(ArithmeticError, match="singular"):
        workspace.refresh()
    with pytest.raises(ValueError, match="singular"):
        drift(workspace.tableau)


def steepest_descent(A, y, support):
    """Make the exchange of one column that lowers the energy most, as long as one does; by QR."""
    support, n_exchanges = set(support), 0
    while True:
        best = (0.5 * np.sum(residual_of(A[:, sorted(support)], y) ** 2) - 1e-12, None)
        for leaving in support:
            Q = np.linalg.qr(A[:, sorted(support - {leaving})])[0]
            left, columns = y - Q @ (Q.T @ y), A - Q @ (Q.T @ A)
            gamma = np.sum(columns**2, axis=0)
            gain = np.where(gamma > 1e-6, (columns.T @ left) ** 2 / np.maximum(gamma, 1e-6), 0.0)
            gain[sorted(support)] = 0.0
            entering = int(np.argmax(gain))
            energy = 0.5 * (left @ left - gain[entering])
            if energy < best[0]:
                best = (energy, (leaving, entering))
        if best[1] is None:
            return sorted(support), n_exchanges
        support = (support - {best[1][0]}) | {best[1][1]}
        n_exchanges += 1


def residual_of(columns, y):
    return y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]


@pytest.mark.parametrize("seed", range(3))
def test_descent_among_many_columns_makes_the_best_exchanges(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, WIDE + 100))
    A /= np.linalg.norm(A, axis=0)
    y = rng.standard_normal(30)
    start = rng.choice(A.shape[1], 4, replace=False)
    workspace = Workspace(SparseProblem(A, y), 4)
    workspace.begin_at(start)
    n_exchanges = workspace.descend()
    support, expected = steepest_descent(A, y, start.tolist())
    assert workspace.support.tolist() == support
    assert n_exchanges == expected >= 3
    assert workspace.descend() == 0


def test_a_support_set_at_once_is_that_of_columns_added_one_after_another(monkeypatch):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 25)), rng.standard_normal(30)
    for support in ([3, 24, 7, 23, 0, 11], [24], list(range(24, 4, -1)), []):
        at_once = Workspace(SparseProblem(A, y), 20)
        at_once.begin_at(np.array(support, dtype=np.int64))
        with monkeypatch.context() as patch:
            patch.setattr(Workspace, "_set", lambda self, columns: False)
            one_by_one = Workspace(SparseProblem(A, y), 20)
            one_by_one.begin_at(np.array(support, dtype=np.int64))
        k = len(support)
        assert at_once.inside_columns.tolist() == support
        for name in ("inside", "outside", "x", "r", "gamma", "values"):
            ours, theirs = getattr(at_once.tableau, name), getattr(one_by_one.tableau, name)
            n = {"inside": k, "x": k, "values": 4}.get(name, 25 - k)
            np.testing.assert_array_equal(ours[:n], theirs[:n])
        np.testing.assert_array_equal(at_once.inverse, one_by_one.inverse)
        np.testing.assert_array_equal(
            at_once.tableau.W[: 25 - k, :k], one_by_one.tableau.W[: 25 - k, :k]
        )


@pytest.mark.parametrize("almost", [0.0, 1e-6])
def test_dependent_columns_are_skipped_though_a_support_is_set_at_once(almost):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 25)), rng.standard_normal(30)
    A[:, 5] = A[:, 1] - A[:, 3] + almost * A[:, 6]
    workspace = Workspace(SparseProblem(A, y), 8)
    workspace.fill(8, np.arange(25))
    assert workspace.support.tolist() == [0, 1, 2, 3, 4, 6, 7, 8]
    with pytest.raises(ValueError, match="column 5 lies in the span"):
        Workspace(SparseProblem(A, y), 3).begin_at(np.array([1, 3, 5]))


def test_a_support_that_cannot_be_set_at_once_leaves_no_trace():
    rng = np.random.default_rng(0)
    A = np.vander(rng.standard_normal(20), 12)
    workspace = Workspace(SparseProblem(A, rng.standard_normal(20)), 12)
    before = [field.copy() for field in workspace.tableau]
    for columns in (np.arange(12), np.array([3, 3, 7])):
        assert not workspace._set(columns)
        for name, old, new in zip(workspace.tableau._fields, before, workspace.tableau):
            if name not in ("U", "W", "x", "inside", "work"):  # what belongs to no column
                np.testing.assert_array_equal(old, new, err_msg=name)
