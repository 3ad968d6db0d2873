import pickle
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.extending import is_jitted
from sklearn.decomposition import SparseCoder
from sklearn.linear_model import orthogonal_mp_gram
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from helpers.kernels import from_python
from helpers.reference import admissible, enumerate_supports, qr_energy, random_problem
from l0anneal import AnnealedSparseCoder, sparse_encode
from l0anneal.engine import coding, coding_pursuit, coding_search, coding_state
from l0anneal.engine.coding import _seed
from l0anneal.engine.coding_pursuit import pursue_plainly
from l0anneal.engine.coding_state import coding_dictionary, empty_code_tableau


def cosines(width, n):
    """Overcomplete separable cosines: coherent, and of a rank far below the number of atoms."""
    line = np.cos(np.pi * np.outer(np.arange(n), np.arange(width) + 0.5) / n)
    line[1:] -= line[1:].mean(axis=1, keepdims=True)
    line /= np.linalg.norm(line, axis=1, keepdims=True)
    return np.kron(line, line)


def smooth_signals(rng, n, width):
    """Pieces of random walks in the plane, quantised: something like patches of an image."""
    steps = rng.standard_normal((n, width, width))
    walks = np.cumsum(np.cumsum(steps, axis=1), axis=2).reshape(n, -1)
    walks = np.round(8.0 * walks)
    return walks - walks.mean(axis=1, keepdims=True)


def errors_of(Y, codes, D):
    return np.sum((Y - codes @ D) ** 2, axis=1)


def omp_errors(Y, D, k):
    unit = D / np.linalg.norm(D, axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        codes = orthogonal_mp_gram(unit @ unit.T, unit @ Y.T, n_nonzero_coefs=k).T
    return errors_of(Y, codes, unit)


@pytest.mark.parametrize("kind", ["gaussian", "correlated", "duplicates", "badly scaled"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_finds_the_best_support_of_small_problems(kind, k):
    rng = np.random.default_rng(k)
    A, _ = random_problem(rng, 7, 12, kind)
    Y = rng.standard_normal((8, 7))
    # with copies of atoms, 60 kicks miss the optimum of about one signal in a hundred
    codes = sparse_encode(Y, A.T, k, n_kicks=300, random_state=0)
    for y, code in zip(Y, codes):
        best = enumerate_supports(A, y, k)[1].min()
        energy = 0.5 * np.sum((y - A @ code) ** 2)
        assert energy == pytest.approx(best, rel=1e-9, abs=1e-12 * (y @ y))
        assert np.count_nonzero(code) == k


@pytest.mark.parametrize("k", [1, 4, 9, 16])
@pytest.mark.parametrize("n_kicks", [0, 3])
def test_never_worse_than_pursuit(k, n_kicks):
    rng = np.random.default_rng(0)
    D, Y = cosines(6, 12), smooth_signals(rng, 150, 6)
    codes = sparse_encode(Y, D, k, n_kicks=n_kicks, random_state=0)
    errors, omp = errors_of(Y, codes, D), omp_errors(Y, D, k)
    assert np.max((errors - omp) / np.sum(Y**2, axis=1)) < 1e-10
    assert np.count_nonzero(codes, axis=1).max() <= k
    if k > 1:
        assert errors.sum() < 0.99 * omp.sum()


def test_kicks_lower_the_error():
    rng = np.random.default_rng(1)
    D, Y = cosines(6, 12), smooth_signals(rng, 150, 6)
    few, more, many = (
        errors_of(Y, sparse_encode(Y, D, 8, n_kicks=n, random_state=0), D) for n in (0, 2, 20)
    )
    assert (more <= few + 1e-9 * few).all()
    assert (many <= more + 1e-9 * more).all()
    assert many.sum() < more.sum() < few.sum()


@pytest.mark.parametrize("k", [12, 24, 34])
def test_codes_are_least_squares_also_where_atoms_are_nearly_dependent(k):
    rng = np.random.default_rng(2)
    D, Y = cosines(6, 12), smooth_signals(rng, 30, 6)
    codes = sparse_encode(Y, D, k, n_kicks=2, random_state=0)
    for y, code in zip(Y, codes):
        support = np.flatnonzero(code)
        error = np.sum((y - code @ D) ** 2)
        assert abs(error - 2 * qr_energy(D.T, y, support)) < 1e-11 * (y @ y)
        residual = y - code @ D
        assert np.max(np.abs(D[support] @ residual)) < 1e-8 * np.linalg.norm(y)


def test_where_only_nearly_dependent_atoms_help_pursuit_is_the_answer():
    """The tableau refuses two atoms that differ by 1e-5, but only their difference reaches y."""
    D = np.eye(6, 8)
    D[1] = D[0]
    D[1, 7] = 1e-5
    y = np.zeros((1, 8))
    y[0, [0, 3, 7]] = 1.0, 0.3, 0.5
    assert omp_errors(y, D, 3)[0] < 1e-10
    codes = sparse_encode(y, D, 3, random_state=0)
    assert errors_of(y, codes, D)[0] < 1e-15
    assert np.flatnonzero(codes).tolist() == [0, 1, 3]
    assert codes[0, 1] == pytest.approx(0.5e5, rel=1e-6)


def test_plain_pursuit_is_scikit_learns():
    rng = np.random.default_rng(4)
    D = rng.standard_normal((30, 12))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    y = rng.standard_normal(12)
    y /= np.linalg.norm(y)
    d = coding_dictionary(D)
    t = empty_code_tableau(d, 5)
    support, x, residual = np.zeros(5, dtype=np.int64), np.zeros(5), np.zeros(12)
    assert from_python(pursue_plainly)(d, t, y, support, x, residual) == 5
    theirs = orthogonal_mp_gram(D @ D.T, D @ y, n_nonzero_coefs=5)
    code = np.zeros(30)
    code[support] = x
    np.testing.assert_allclose(code, theirs, atol=1e-12)
    # a signal within reach of two atoms needs no more
    assert from_python(pursue_plainly)(d, t, D[3], support, x, residual) == 1


def test_a_code_depends_on_seed_and_signal_alone():
    rng = np.random.default_rng(5)
    D, Y = cosines(5, 9), smooth_signals(rng, 100, 5)
    codes = sparse_encode(Y, D, 7, n_kicks=3, random_state=11)
    for jobs in (1, 2, 3, -1):
        again = sparse_encode(Y, D, 7, n_kicks=3, random_state=11, n_jobs=jobs)
        np.testing.assert_array_equal(codes, again)
    order = rng.permutation(100)
    shuffled = sparse_encode(Y[order], D, 7, n_kicks=3, random_state=11)
    np.testing.assert_array_equal(codes[order], shuffled)
    for i in (0, 31, 32, 99):
        alone = sparse_encode(Y[i : i + 1], D, 7, n_kicks=3, random_state=11)
        np.testing.assert_array_equal(codes[i], alone[0])
    other = sparse_encode(Y, D, 7, n_kicks=3, random_state=12)
    assert (np.any(codes != other, axis=1)).sum() > 5


def test_streams_differ_between_signals_and_seeds():
    a, b = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    key = np.array([1, 2, 3, 4], dtype=np.uint64)
    states = np.zeros((3, 4), dtype=np.uint64)
    from_python(_seed)(states[0], key, a)
    from_python(_seed)(states[1], key, b)
    from_python(_seed)(states[2], key + np.uint64(1), a)
    assert np.unique(states).size == 12
    again = np.zeros(4, dtype=np.uint64)
    from_python(_seed)(again, key, a)
    np.testing.assert_array_equal(again, states[0])


@given(st.integers(0, 2**32), st.integers(-90, 90), st.integers(-90, 90))
@settings(max_examples=20, deadline=None)
def test_scales_change_nothing_but_the_units(seed, of_signal, of_atoms):
    rng = np.random.default_rng(seed)
    D, Y = rng.standard_normal((12, 6)), rng.standard_normal((4, 6))
    codes = sparse_encode(Y, D, 3, n_kicks=2, random_state=0)
    scaled = sparse_encode(Y * 2.0**of_signal, D * 2.0**of_atoms, 3, n_kicks=2, random_state=0)
    np.testing.assert_array_equal(scaled, codes * 2.0 ** (of_signal - of_atoms))


def test_signals_of_any_size_and_atoms_of_any_norm():
    rng = np.random.default_rng(6)
    D, Y = rng.standard_normal((20, 8)), rng.standard_normal((6, 8))
    scale = 10.0 ** rng.uniform(-100, 100, 20)
    codes = sparse_encode(Y, D, 3, n_kicks=0)
    scaled = sparse_encode(1e-150 * Y, D * scale[:, None], 3, n_kicks=0)
    np.testing.assert_allclose(scaled * scale * 1e150, codes, rtol=1e-10)


def test_zero_constant_and_unreachable_signals():
    D = cosines(4, 7)
    constant = np.full((1, 16), 0.3)
    zero = np.zeros((1, 16))
    codes = sparse_encode(np.vstack((zero, constant)), D, 3, random_state=0)
    assert not codes[0].any()
    assert np.flatnonzero(codes[1]).tolist() == [0]  # the constant atom is enough
    assert codes[1, 0] * D[0, 0] == pytest.approx(0.3)
    # without its constant atom, nothing reaches a constant
    assert not sparse_encode(constant, D[1:][D[1:] @ np.ones(16) < 1e-12], 3).any()
    # a large offset out of reach does not blur what is within
    rng = np.random.default_rng(0)
    D, y = np.hstack((np.zeros((20, 1)), rng.standard_normal((20, 8)))), rng.standard_normal((1, 9))
    far = y.copy()
    far[0, 0] = 1e5
    near = sparse_encode(y, D, 3, n_kicks=0)
    np.testing.assert_allclose(sparse_encode(far, D, 3, n_kicks=0), near, rtol=1e-6)


def test_a_signal_of_few_atoms_has_a_code_of_few():
    rng = np.random.default_rng(7)
    D = rng.standard_normal((40, 20))
    codes = sparse_encode(3.0 * D[4:5] - D[9], D, 6, random_state=0)
    assert np.flatnonzero(codes).tolist() == [4, 9]
    np.testing.assert_allclose(codes[0, [4, 9]], [3.0, -1.0], rtol=1e-12)


def test_copies_and_zero_atoms_are_never_used_together():
    rng = np.random.default_rng(8)
    D = rng.standard_normal((10, 6))
    doubled = np.vstack((D, -2.0 * D, np.zeros((2, 6))))
    Y = rng.standard_normal((20, 6))
    codes = sparse_encode(Y, doubled, 4, n_kicks=100, random_state=0)
    used = codes != 0
    assert not used[:, 20:].any()
    assert not (used[:, :10] & used[:, 10:20]).any()
    plain = sparse_encode(Y, D, 4, n_kicks=100, random_state=0)
    np.testing.assert_allclose(errors_of(Y, codes, doubled), errors_of(Y, plain, D), rtol=1e-9)


def test_edges_of_size():
    rng = np.random.default_rng(9)
    D, Y = rng.standard_normal((6, 6)), rng.standard_normal((3, 6))
    assert not sparse_encode(Y, D, 0).any()
    np.testing.assert_allclose(sparse_encode(Y, D, 6), np.linalg.solve(D.T, Y.T).T, rtol=1e-8)
    assert sparse_encode(Y[:0], D, 2).shape == (0, 6)
    one = sparse_encode(Y[:, :1], D[:1, :1], 1)
    np.testing.assert_allclose(one, Y[:, :1] / D[0, 0])
    whole = sparse_encode(np.round(10 * Y).astype(int), np.round(10 * D).astype(int), 2)
    assert (np.count_nonzero(whole, axis=1) == 2).all()


def test_input_is_left_alone():
    rng = np.random.default_rng(10)
    D, Y = rng.standard_normal((9, 6)), rng.standard_normal((3, 6))
    kept = D.copy(), Y.copy()
    D.flags.writeable = Y.flags.writeable = False
    codes = sparse_encode(Y, D, 2, random_state=0)
    np.testing.assert_array_equal(D, kept[0])
    np.testing.assert_array_equal(Y, kept[1])
    fortran = sparse_encode(np.asfortranarray(Y), np.asfortranarray(D), 2, random_state=0)
    np.testing.assert_array_equal(codes, fortran)


def test_progress_goes_to_the_end(capsys):
    rng = np.random.default_rng(11)
    sparse_encode(rng.standard_normal((70, 5)), rng.standard_normal((8, 5)), 2, progress=True)
    assert "/70" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verbose", "shown"), [(0, False), (False, False), (True, True), (2, True)]
)
def test_verbose_shows_the_bar(capsys, verbose, shown):
    rng = np.random.default_rng(11)
    Y, D = rng.standard_normal((70, 5)), rng.standard_normal((8, 5))
    sparse_encode(Y, D, 2, verbose=verbose)
    assert ("signal" in capsys.readouterr().err) == shown
    AnnealedSparseCoder(D, verbose=verbose).transform(Y)
    assert ("signal" in capsys.readouterr().err) == shown
    with pytest.raises(ValueError, match="verbose must be an integer ≥ 0; got -1"):
        sparse_encode(Y, D, 2, verbose=-1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_nonzero_coefs": 5}, "exceeds the rank of the dictionary .* which is 3"),
        ({"n_nonzero_coefs": -1}, "n_nonzero_coefs must be an integer ≥ 0; got -1"),
        ({"n_nonzero_coefs": 2.0}, "n_nonzero_coefs must be an integer"),
        ({"n_nonzero_coefs": True}, "n_nonzero_coefs must be an integer"),
        ({"n_kicks": -1}, "n_kicks must be an integer ≥ 0"),
        ({"X": np.zeros(4)}, r"signals must be a matrix .* got shape \(4,\)"),
        ({"X": np.zeros((2, 5))}, "signals have 5 features, but the atoms .* have 4"),
        ({"X": np.full((2, 4), np.nan)}, "signals contains NaN or infinity"),
        ({"X": np.full((2, 4), 1j)}, "signals must hold real numbers"),
        ({"dictionary": np.full((2, 4), np.inf)}, "dictionary contains NaN or infinity"),
        ({"dictionary": np.zeros((0, 4))}, "dictionary of shape .* is empty"),
        ({"dictionary": np.zeros(4)}, "dictionary must be a matrix"),
        ({"dictionary": np.zeros((7, 4))}, "which is 0"),
        ({"X": scipy.sparse.eye_array(4)}, r"signals must be a dense array; .* toarray\(\)"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_errors_say_what_is_needed(change, message):
    rng = np.random.default_rng(12)
    dictionary = rng.standard_normal((7, 3)) @ rng.standard_normal((3, 4))
    arguments = {
        "X": rng.standard_normal((2, 4)),
        "dictionary": dictionary,
        "n_nonzero_coefs": 2,
        **change,
    }
    with pytest.raises(ValueError, match=message):
        sparse_encode(**arguments)


# ------------------------------------------------------------ the transformer

# No check of scikit-learn is excused, but each brings data of its own width, and a dictionary has but
# one. (The check of array API input skips itself unless SCIPY_ARRAY_API is set.)
WIDTHS = {
    1: ["check_fit2d_1feature"],
    2: [
        "check_estimators_overwrite_params",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
    ],
    4: ["check_n_features_in_after_fitting", "check_positive_only_tag_during_fit"],
    5: ["check_estimators_dtypes", "check_transformers_unfitted_stateless"],
    10: ["check_dtype_object", "check_fit2d_1sample"],
}
WIDTH_OF = {name: width for width, names in WIDTHS.items() for name in names}


def name_of(check):
    while hasattr(check, "func"):
        check = check.func
    return check.__name__


def checks():
    for width in (3, *WIDTHS):
        dictionary = np.random.default_rng(0).standard_normal((5, width))
        coder = AnnealedSparseCoder(dictionary, n_kicks=2)
        for i, (estimator, check) in enumerate(estimator_checks_generator(coder, mark=None)):
            if WIDTH_OF.get(name_of(check), 3) == width:
                yield pytest.param(estimator, check, id=f"{name_of(check)}-{i}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_stands_where_sparse_coder_stands():
    rng = np.random.default_rng(13)
    D, Y = rng.standard_normal((30, 20)), rng.standard_normal((12, 20))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    for split_sign in (False, True):
        theirs = SparseCoder(D, transform_algorithm="omp", split_sign=split_sign)
        ours = AnnealedSparseCoder(D, split_sign=split_sign)
        a, b = theirs.fit(Y).transform(Y), ours.fit(Y).transform(Y)
        assert a.shape == b.shape
        assert (b >= 0).all() == split_sign
        # the same default number of non-zeros, a tenth of the features
        np.testing.assert_array_equal(np.count_nonzero(b, axis=1), np.count_nonzero(a, axis=1))
        assert ours.n_components_ == theirs.n_components_
        assert ours.get_feature_names_out().size == b.shape[1]
        for code, coder in ((a, theirs), (b, ours)):
            np.testing.assert_allclose(
                coder.inverse_transform(code), ours.inverse_transform(code), atol=1e-12
            )
        loss = [np.sum((Y - ours.inverse_transform(code)) ** 2, axis=1) for code in (a, b)]
        assert (loss[1] <= loss[0] + 1e-10).all()
    assert ours.get_feature_names_out()[0] == "annealedsparsecoder0"


def test_works_in_a_pipeline_unfitted_and_pickled():
    rng = np.random.default_rng(14)
    D, Y = rng.standard_normal((15, 6)), rng.standard_normal((10, 6))
    coder = AnnealedSparseCoder(D, transform_n_nonzero_coefs=2)
    codes = coder.transform(Y)
    np.testing.assert_array_equal(codes, sparse_encode(Y, D, 2, random_state=0))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(coder)).transform(Y), codes)
    assert make_pipeline(StandardScaler(), coder).fit_transform(Y).shape == (10, 15)
    single = coder.transform(Y.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, codes, rtol=1e-3, atol=1e-5)


def test_the_transformer_names_what_does_not_fit():
    rng = np.random.default_rng(15)
    D, Y = rng.standard_normal((15, 6)), rng.standard_normal((10, 6))
    with pytest.raises(ValueError, match=r"dictionary has shape \(15, 6\), but signals with 5"):
        AnnealedSparseCoder(D).fit(Y[:, :5])
    with pytest.raises(ValueError, match="rank of the dictionary"):
        AnnealedSparseCoder(D, transform_n_nonzero_coefs=7).transform(Y)
    with pytest.raises(ValueError, match="codes need 15 columns, one per atom; got 6"):
        AnnealedSparseCoder(D).inverse_transform(Y)
    with pytest.raises(ValueError, match="codes need 30 columns, one per atom and sign; got 6"):
        AnnealedSparseCoder(D, split_sign=True).inverse_transform(Y)


# ---------------------------------------------------------------- tolerance, scikit-learn's arguments


@pytest.mark.parametrize("kind", ["gaussian", "correlated"])
def test_the_fewest_atoms_that_reach_a_tolerance(kind):
    rng = np.random.default_rng(0)
    A, _ = random_problem(rng, 7, 12, kind)
    Y = rng.standard_normal((10, 7))
    tol = 0.3 * float(np.mean(np.sum(Y**2, axis=1)))
    codes = sparse_encode(Y, A.T, tol=tol, n_kicks=60, random_state=0)
    assert errors_of(Y, codes, A.T).max() <= tol
    fewest = np.where(np.sum(Y**2, axis=1) <= tol, 0, -1)
    for k in range(1, 8):
        bases = [np.linalg.qr(A[:, s])[0] for s in combinations(range(12), k) if admissible(A, s)]
        least = np.min([np.sum((Y - Y @ Q @ Q.T) ** 2, axis=1) for Q in bases], axis=0)
        fewest[(fewest < 0) & (least <= tol)] = k
    np.testing.assert_array_equal(np.count_nonzero(codes, axis=1), fewest)


def test_no_more_atoms_than_matching_pursuit_needs():
    rng = np.random.default_rng(0)
    D, Y = cosines(6, 12), smooth_signals(rng, 60, 6)
    tol = 0.05 * float(np.median(np.sum(Y**2, axis=1)))
    codes = sparse_encode(Y, D, tol=tol, random_state=0)
    assert errors_of(Y, codes, D).max() <= tol * (1 + 1e-9)
    unit = D / np.linalg.norm(D, axis=1, keepdims=True)
    norms = np.sum(Y**2, axis=1)
    omp = np.array(
        [
            np.count_nonzero(
                orthogonal_mp_gram(unit @ unit.T, unit @ y, tol=tol, norms_squared=np.array([s]))
            )
            for y, s in zip(Y, norms)
        ]
    )
    needed = np.count_nonzero(codes, axis=1)
    assert (needed <= omp).all()
    assert needed.sum() < omp.sum()
    # a signal has the same code in any company; k limits the atoms of all
    np.testing.assert_array_equal(sparse_encode(Y[7:9], D, tol=tol, random_state=0), codes[7:9])
    few = sparse_encode(Y, D, 2, tol=tol, random_state=0)
    assert np.count_nonzero(few, axis=1).max() == 2
    within = errors_of(Y, few, D) <= tol
    np.testing.assert_array_equal(within, needed <= 2)


def test_a_code_within_a_tolerance_is_the_code_of_its_size():
    rng = np.random.default_rng(3)
    D, Y = rng.standard_normal((30, 10)), rng.standard_normal((20, 10))
    codes = sparse_encode(Y, D, tol=0.5, random_state=4)
    sizes = np.count_nonzero(codes, axis=1)
    assert len(set(sizes)) > 1
    for k in set(sizes):
        rows = sizes == k
        np.testing.assert_array_equal(sparse_encode(Y[rows], D, k, random_state=4), codes[rows])


def test_a_tolerance_in_the_coder_and_at_its_limits():
    rng = np.random.default_rng(1)
    D = rng.standard_normal((20, 8))
    Y = rng.standard_normal((5, 8))
    coder = AnnealedSparseCoder(D, transform_tol=1.0)
    np.testing.assert_array_equal(
        coder.fit_transform(Y), sparse_encode(Y, D, tol=1.0, random_state=0)
    )
    assert not sparse_encode(Y, D, tol=1e6).any()
    exact = sparse_encode(Y, D, tol=0.0, random_state=0)
    assert errors_of(Y, exact, D).max() < 1e-20
    with pytest.raises(ValueError, match="tol must be finite and ≥ 0; got -1"):
        sparse_encode(Y, D, tol=-1)
    assert np.count_nonzero(sparse_encode(np.ones((1, 30)), np.eye(30)), axis=1).item() == 3
    # k limits the atoms but, beside a tolerance, need not be possible
    assert np.count_nonzero(sparse_encode(Y, D, 3, tol=0.0), axis=1).tolist() == [3] * 5
    np.testing.assert_array_equal(
        sparse_encode(Y, D, 100, tol=1.0, random_state=0),
        sparse_encode(Y, D, tol=1.0, random_state=0),
    )
    assert not sparse_encode(Y, D, 0, tol=0.1).any()


def test_a_tolerance_of_zero_finds_signals_of_few_atoms():
    rng = np.random.default_rng(2)
    D = rng.standard_normal((60, 20))
    Y = np.array([D[[3, 5, 8]].sum(axis=0), D[7], np.zeros(20)])
    codes = sparse_encode(Y, D, tol=0.0, random_state=0)
    assert [np.flatnonzero(code).tolist() for code in codes] == [[3, 5, 8], [7], []]
    # the search also removes atoms that only the pursuit needed; rounding errors do not stop it
    Y = np.array([D[rng.choice(60, 5, replace=False)].sum(axis=0) for _ in range(20)])
    sizes = np.count_nonzero(sparse_encode(Y, D, tol=0.0, n_kicks=30, random_state=0), axis=1)
    assert sizes.min() == 5
    assert sizes.max() <= 20  # 20 atoms represent any signal
    assert np.mean(sizes == 5) > 0.6


def test_a_tolerance_at_any_scale():
    rng = np.random.default_rng(5)
    D, Y = rng.standard_normal((20, 8)), rng.standard_normal((6, 8))
    usual = sparse_encode(Y, D, tol=0.7, random_state=0)
    norms = 10.0 ** rng.integers(-9, 10, 20)
    uneven = sparse_encode(Y, D * norms[:, None], tol=0.7, random_state=0)
    np.testing.assert_allclose(uneven * norms, usual, rtol=1e-9, atol=1e-12)
    for scale in (2.0**-400, 2.0**400):  # powers of two change no digit
        scaled = sparse_encode(scale * Y, D, tol=0.7 * scale * scale, random_state=0)
        np.testing.assert_allclose(scaled / scale, usual, rtol=1e-9, atol=1e-12)
    assert not sparse_encode(1e-200 * Y, D, tol=1e-100).any()


def test_a_tolerance_out_of_reach_has_the_best_code():
    D = np.eye(4, 6)  # two features that no atom has
    Y = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]])
    codes = sparse_encode(Y, D, tol=1.0, random_state=0)
    np.testing.assert_allclose(codes, [[1, 2, 3, 4], [0, 0, 0, 0]], atol=1e-12)
    rng = np.random.default_rng(7)
    A, _ = random_problem(rng, 7, 12, "correlated")
    Y = rng.standard_normal((8, 7))
    np.testing.assert_array_equal(
        sparse_encode(Y, A.T, 2, tol=1e-9, random_state=0), sparse_encode(Y, A.T, 2, random_state=0)
    )


def test_threads_and_time_limits_keep_the_codes_within_a_tolerance():
    rng = np.random.default_rng(6)
    D, Y = rng.standard_normal((50, 20)), rng.standard_normal((200, 20))
    codes = sparse_encode(Y, D, tol=4.0, random_state=0)
    np.testing.assert_array_equal(sparse_encode(Y, D, tol=4.0, random_state=0, n_jobs=2), codes)
    with pytest.warns(UserWarning, match="time limit: .* of 200 signals have codes of more atoms"):
        few, finished = sparse_encode(
            Y, D, tol=4.0, n_kicks=300, time_limit=0.05, random_state=0, return_finished=True
        )
    assert not finished.all()
    assert errors_of(Y, few, D).max() <= 4.0  # from the pursuit
    assert (np.count_nonzero(few, axis=1) >= np.count_nonzero(codes, axis=1)).mean() > 0.9
    whole = sparse_encode(Y[finished], D, tol=4.0, n_kicks=300, random_state=0)
    np.testing.assert_array_equal(few[finished], whole)


@pytest.mark.parametrize(
    ("name", "message"),
    [("algorithm", "improves on 'omp'"), ("alpha", "or tol"), ("max_iter", "is n_kicks")],
)
def test_arguments_of_scikit_learn_that_have_no_meaning_are_refused(name, message):
    with pytest.raises(TypeError, match=message):
        sparse_encode(np.ones((1, 3)), np.eye(3), **{name: 1})
    with pytest.raises(TypeError, match="does not take 'n_kick': it is not known"):
        sparse_encode(np.ones((1, 3)), np.eye(3), n_kick=1)


def test_arguments_of_scikit_learn_that_ask_for_nothing_else_are_accepted():
    same = {"gram": None, "cov": None, "init": None, "alpha": None, "positive": False}
    codes = sparse_encode(
        np.ones((1, 3)), np.eye(3), n_nonzero_coefs=3, algorithm="omp", check_input=False, **same
    )
    np.testing.assert_allclose(codes, np.ones((1, 3)))


def test_kernels_are_compiled_once():
    """Read-only signals, or a literal among arguments, would compile kernels again for seconds each."""
    rng = np.random.default_rng(0)
    Y, D = rng.standard_normal((4, 6)), rng.standard_normal((9, 6))
    Y.flags.writeable = False
    for options in (
        {"n_nonzero_coefs": 2},
        {"n_nonzero_coefs": 2, "pursuit_only": True},
        {"tol": 0.5},
    ):
        sparse_encode(Y, D, **options)
    for kernel in (coding.encode, coding.sizes_of_pursuit):
        assert len(kernel.signatures) == 1, kernel
    folder = Path(coding.encode.stats.cache_path)
    for module in (coding, coding_pursuit, coding_search, coding_state):
        for kernel in vars(module).values():
            if is_jitted(kernel) and kernel.py_func.__module__ == module.__name__:
                name = f"{Path(module.__file__).stem}.{kernel.py_func.__qualname__}"
                assert len(list(folder.glob(f"{name}-*.nbc"))) <= 1, name
