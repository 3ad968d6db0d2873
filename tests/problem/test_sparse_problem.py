"""Problems: validation, scaling, and least squares."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.reference import qr_energy, random_problem
from l0anneal import Schedule, SparseProblem, anneal, ensembles
from l0anneal.problem import scaled as problem_module

SHORT = Schedule.paper(n=30, tau=2)


@pytest.fixture
def instance():
    return ensembles.noise_only(40, 0.5, random_state=0)


def storages(A, tmp_path):
    """Yield the same dictionary in several forms, with their names."""
    path = tmp_path / "A.npy"
    np.save(path, A)
    yield "fortran order", np.asfortranarray(A)
    yield "strided", np.repeat(A, 2, axis=1)[:, ::2]
    yield "list", A.tolist()
    yield "csr", scipy.sparse.csr_array(A)
    yield "coo matrix", scipy.sparse.coo_matrix(A)
    yield "memory map", np.load(path, mmap_mode="r")


def test_the_storage_of_A_does_not_change_the_answer(instance, tmp_path):
    expected = anneal(instance.problem, 8, SHORT, random_state=1)
    for name, A in storages(instance.A, tmp_path):
        result = anneal(SparseProblem(A, instance.y), 8, SHORT, random_state=1)
        np.testing.assert_array_equal(result.support, expected.support, err_msg=name)
        np.testing.assert_allclose(result.coef, expected.coef, rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint16, bool])
def test_any_real_dtype_is_accepted(dtype):
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2 if dtype is bool else 90, (20, 30)).astype(dtype)
    y = rng.integers(0, 9, 20)
    problem = SparseProblem(A, y)
    expected = qr_energy(A.astype(float), y.astype(float), [3, 5, 9])
    assert problem.energy([3, 5, 9]) == pytest.approx(expected, rel=1e-10)
    assert anneal(problem, 4, SHORT, random_state=0).support.size == 4


def test_gram_rows_on_demand_give_the_results_of_the_whole_gram_matrix(
    instance, monkeypatch, tmp_path
):
    expected = anneal(instance.problem, 8, SHORT, random_state=1)
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    # the memory budgets change the running time only
    for cache, columns in ((0, 0), (20 * 40 * 8, 10**6), (10**6, 0), (10**6, 10**6)):
        monkeypatch.setattr(problem_module, "ROW_CACHE_BYTES", cache)
        monkeypatch.setattr(problem_module, "COLUMN_BYTES", columns)
        for name, A in storages(instance.A, tmp_path):
            problem = SparseProblem(A, instance.y)
            assert not problem.gram_is_whole
            assert problem.unit_columns.size == (800 if columns else 0)
            result = anneal(problem, 8, SHORT, random_state=1)
            np.testing.assert_array_equal(result.support, expected.support, err_msg=name)
            np.testing.assert_allclose(result.mean_energy, expected.mean_energy, rtol=1e-9)


def test_a_problem_from_gram_statistics_has_the_same_answer(instance):
    A, y = instance.A, instance.y
    problem = SparseProblem.from_gram(A.T @ A, A.T @ y, y @ y, len(y))
    expected = anneal(instance.problem, 8, SHORT, random_state=1)
    result = anneal(problem, 8, SHORT, random_state=1)
    np.testing.assert_array_equal(result.support, expected.support)
    np.testing.assert_allclose(result.coef, expected.coef, rtol=1e-9)
    assert result.energy == pytest.approx(expected.energy, rel=1e-9)
    assert problem.energy([]) == pytest.approx(0.5 * y @ y)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 12),
    n=st.integers(1, 12),
    kind=st.sampled_from(["gaussian", "correlated", "badly scaled", "low rank"]),
    data=st.data(),
)
def test_least_squares_agrees_with_qr(seed, m, n, kind, data):
    A, y = random_problem(np.random.default_rng(seed), m, n, "gaussian" if n < 5 else kind)
    k = data.draw(st.integers(0, n))
    support = np.random.default_rng(seed).permutation(n)[:k]
    x, energy = SparseProblem(A, y).least_squares(support)
    assert energy == pytest.approx(qr_energy(A, y, support), rel=1e-9, abs=1e-13 * (y @ y))
    np.testing.assert_allclose(
        0.5 * np.sum((y - A[:, support] @ x) ** 2), energy, rtol=1e-9, atol=1e-12 * (y @ y)
    )


BAD = [
    (np.zeros(3), np.zeros(3), r"matrix of shape \(M, N\); got 1 dim"),
    (np.zeros((0, 3)), np.zeros(0), "at least one row"),
    (np.zeros((3, 0)), np.zeros(3), "at least one row and one column"),
    (np.eye(3), np.zeros(4), "y has length 4, but A has 3 rows"),
    (np.eye(3), np.zeros((3, 1)), "one vector of length 3"),
    (np.array([[1.0, np.nan]]), np.zeros(1), "A contains NaN"),
    (np.eye(2), [np.inf, 0.0], "y contains NaN or infinity"),
    (np.eye(2) * 1j, np.zeros(2), "real numbers; got dtype complex"),
    (np.array([["a", "b"]]), np.zeros(1), "real numbers"),
    (np.eye(2), ["a", "b"], "y must hold real numbers"),
    (scipy.sparse.csr_array(np.array([[1.0, np.nan]])), np.zeros(1), "A contains NaN"),
    (scipy.sparse.csr_array(np.eye(2) * 1j), np.zeros(2), "real numbers"),
    (np.eye(2), [1e200, 0.0], "out of range"),
    (np.ma.masked_equal(np.eye(2), 0), [1.0, 0.0], "masked"),
]


@pytest.mark.parametrize(("A", "y", "message"), BAD)
def test_bad_input_is_refused_with_a_message(A, y, message):
    with pytest.raises(ValueError, match=message):
        SparseProblem(A, y)


def test_bad_gram_statistics_are_refused():
    G, b = np.eye(3), np.ones(3)
    for arguments, message in [
        ((np.zeros((2, 3)), b, 9.0, 5), "square"),
        ((G, np.ones(2), 9.0, 5), "length 2"),
        ((G + np.triu(np.ones((3, 3)), 1), b, 9.0, 5), "symmetric"),
        ((-G, b, 9.0, 5), "negative"),
        ((G, b, -1.0, 5), "signal_energy"),
        ((G, b, 9.0, 0), "n_samples"),
        ((G, b, 9.0, 2.5), "n_samples"),
        ((G, b, 0.5, 5), "not the Gram statistics"),
        ((G * np.nan, b, 9.0, 5), "NaN"),
        ((G, b, 0.0, 5), "not the Gram statistics"),
        ((G + 2 - 2 * np.eye(3), b, 9.0, 5), "not AᵀA of any A"),
    ]:
        with pytest.raises(ValueError, match=message):
            SparseProblem.from_gram(*arguments)


def test_a_gram_matrix_in_single_precision_is_accepted():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 20)).astype(np.float32) * np.float32(1e3) ** rng.uniform(0, 1, 20)
    y = rng.standard_normal(500).astype(np.float32)
    gram = sum(block.T @ block for block in np.array_split(A.astype(np.float32), 7)).astype(
        np.float32
    )
    gram[0, 1] *= np.float32(1 + 1e-6)
    problem = SparseProblem.from_gram(gram, A.T @ y, y @ y, 500)
    assert problem.energy([1, 5]) == pytest.approx(qr_energy(A.astype(float), y, [1, 5]), rel=1e-4)


@pytest.mark.parametrize("scale", [1e-165, 1e-305, 1e150])
@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array])
def test_extreme_scales_of_A_change_no_support(scale, form):
    A, y = random_problem(np.random.default_rng(0), 20, 30)
    expected = anneal(SparseProblem(A, y), 3, SHORT, random_state=0)
    result = anneal(SparseProblem(form(A * scale), y), 3, SHORT, random_state=0)
    np.testing.assert_array_equal(result.support, expected.support)
    assert result.energy == pytest.approx(expected.energy, rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e7])
def test_an_offset_that_no_column_can_represent_does_not_hide_the_signal(offset):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 40))
    A -= A.mean(axis=0)
    support = [3, 17, 29]
    y = A[:, support] @ [1.0, -2.0, 0.7] + offset
    assert anneal(SparseProblem(A, y), 3, random_state=0).support.tolist() == support


def test_a_dependent_support_of_a_gram_problem_is_refused():
    G = np.ones((2, 2))
    problem = SparseProblem.from_gram(G, np.ones(2), 1.0, 3)
    with pytest.raises(ValueError, match="linearly dependent"):
        problem.energy([0, 1])


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ([3, 0, 3], "at most once; got column 3"),
        ([0, 40], "0 to 39"),
        ([-1], "0 to 39"),
        ([0.5], "indices"),
        ([[1]], "one-dimensional"),
    ],
)
def test_bad_supports_are_refused(instance, support, message):
    with pytest.raises(ValueError, match=message):
        instance.problem.energy(support)


def test_impossible_gram_statistics_are_refused_by_name():
    rng = np.random.default_rng(0)
    A, y = random_problem(rng, 30, 12)
    G, b, energy = A.T @ A, A.T @ y, float(y @ y)
    SparseProblem.from_gram(G, b, energy, 30)
    explained = energy - 2 * qr_energy(A, y, range(12))
    SparseProblem.from_gram(G, b, explained * (1 + 1e-9), 30)
    with pytest.raises(ValueError, match=r"would explain 1\.11 times signal_energy"):
        SparseProblem.from_gram(G, b, 0.9 * explained, 30)
    indefinite = G - 1.3 * np.linalg.eigvalsh(G)[0] * np.eye(12)
    norms = np.sqrt(np.diag(indefinite))
    smallest = np.linalg.eigvalsh(indefinite / np.outer(norms, norms))[0]
    with pytest.raises(ValueError, match=f"no negative eigenvalue.* is {smallest:.3g}: compute"):
        SparseProblem.from_gram(indefinite, b, 10 * energy, 30)
    dependent = A.copy()
    dependent[:, 6:] = dependent[:, :6]
    with pytest.raises(ValueError, match="in the range of gram; a part of the given one"):
        SparseProblem.from_gram(dependent.T @ dependent, b, 100 * energy, 30)
    zero = G.copy()
    zero[3] = zero[:, 3] = 0.0
    with pytest.raises(ValueError, match="column 3 has norm zero, but correlation"):
        SparseProblem.from_gram(zero, b, energy, 30)


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_halved_or_too_small_signal_energies_are_refused(factor):
    A, y = random_problem(np.random.default_rng(1), 20, 40)  # the columns explain all of y
    with pytest.raises(ValueError, match="not half of it"):
        SparseProblem.from_gram(A.T @ A, A.T @ y, factor * float(y @ y), 20)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 60),
    n=st.integers(30, 50),
    kind=st.sampled_from(
        ["gaussian", "correlated", "badly scaled", "low rank", "duplicates", "barely independent"]
    ),
    precision=st.sampled_from(["double", "single", "single, stored in double", "accumulated"]),
    signal=st.sampled_from(["noise", "in the span", "offset"]),
)
def test_gram_statistics_of_real_data_are_accepted(seed, m, n, kind, precision, signal):
    """Collinear and badly scaled columns, fewer rows than columns, in double and single precision."""
    rng = np.random.default_rng(seed)
    A, y = random_problem(rng, m, n, kind)
    if signal == "in the span":
        y = A @ (rng.standard_normal(n) / np.maximum(np.linalg.norm(A, axis=0), 1e-12))
    elif signal == "offset":
        A, y = A + 30.0 * np.abs(A).max(axis=0), y + 1e3
    dtype = np.float64 if precision == "double" else np.float32
    A, y = A.astype(dtype), y.astype(dtype)
    if precision == "accumulated":  # row by row, which is the least accurate way
        G, b, energy = np.zeros((n, n), dtype), np.zeros(n, dtype), dtype(0)
        for row, value in zip(A, y):
            G += np.outer(row, row)
            b += row * value
            energy += value * value
    else:
        G, b, energy = A.T @ A, A.T @ y, y @ y
    if precision == "single, stored in double":
        G, b = G.astype(np.float64), b.astype(np.float64)
    problem = SparseProblem.from_gram(G, b, energy, m)
    assert problem.n_columns == n
