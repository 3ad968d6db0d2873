import numpy as np
import pytest
import scipy.sparse

from l0anneal import SparseProblem, baselines, ensembles
from l0anneal.theory import bayes, l1


@pytest.fixture(scope="module")
def instances():
    return [ensembles.noise_only(400, 0.5, random_state=seed) for seed in range(16)]


def distortion(instance, coef):
    return float(np.sum((instance.y - instance.A @ coef) ** 2)) / (2 * instance.y.size)


def test_distortions_agree_with_theory_and_paper(instances):
    """l1 and l1 + LS have the ε of their large-N limits, OMP that of the paper, 0.0365(7)."""
    found = {"l1": [], "refit": [], "omp": []}
    for instance in instances:
        coef = baselines.l1(instance.problem, 80)
        assert np.count_nonzero(coef) == 80
        found["l1"].append(distortion(instance, coef))
        found["refit"].append(distortion(instance, baselines.refit(instance.problem, coef)))
        found["omp"].append(distortion(instance, baselines.omp(instance.problem, 80)))
    expected = {
        "l1": l1.distortion(0.5, 0.2),
        "refit": l1.distortion_after_least_squares(0.5, 0.2),
        "omp": 0.0365,
    }
    for name, values in found.items():
        error = np.std(values) / np.sqrt(len(values) - 1)
        # allow one per cent for finite-size effects
        assert abs(np.mean(values) - expected[name]) < 3 * error + 0.01 * expected[name], name


def test_l1_satisfies_the_optimality_conditions_of_the_lasso(instances):
    instance = instances[0]
    coef = baselines.l1(instance.problem, 80)
    slopes = instance.A.T @ (instance.y - instance.A @ coef)
    active = coef != 0
    penalty = np.abs(slopes[active]).max()
    np.testing.assert_allclose(slopes[active], penalty * np.sign(coef[active]), rtol=1e-8)
    assert np.abs(slopes[~active]).max() <= penalty * (1 + 1e-8)
    # and the next column is about to enter
    assert np.abs(slopes[~active]).max() >= 0.9 * penalty


def test_omp_does_not_depend_on_the_scale_of_the_columns():
    instance = ensembles.planted(80, 0.7, 0.1, support="fixed", random_state=4)
    scale = np.geomspace(0.01, 100, 80)
    first = baselines.omp(instance.problem, 8)
    second = baselines.omp(SparseProblem(instance.A * scale, instance.y), 8)
    np.testing.assert_allclose(second * scale, first, atol=1e-10)


def test_basis_pursuit_finds_the_solution_of_least_norm():
    instance = ensembles.planted(40, 0.5, 0.6, random_state=2)
    coef = baselines.basis_pursuit(instance.problem)
    np.testing.assert_allclose(instance.A @ coef, instance.y, atol=1e-9)
    assert np.abs(coef).sum() < np.abs(instance.truth).sum()
    kernel = np.linalg.svd(instance.A)[2][20:]
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = coef + 0.01 * rng.standard_normal(20) @ kernel
        assert np.abs(other).sum() >= np.abs(coef).sum() - 1e-9


def test_sparse_dictionaries_give_the_same_answer():
    instance = ensembles.planted(40, 0.8, 0.1, support="fixed", random_state=0)
    problem = SparseProblem(scipy.sparse.csr_array(instance.A), instance.y)
    for solve in (baselines.omp, baselines.l1):
        np.testing.assert_allclose(solve(problem, 4), solve(instance.problem, 4), atol=1e-12)
        assert not solve(problem, 0).any()


def test_problems_without_columns_are_refused():
    instance = ensembles.planted(40, 0.8, 0.1, support="fixed", random_state=0)
    gram = SparseProblem.from_gram(
        instance.A.T @ instance.A, instance.A.T @ instance.y, instance.y @ instance.y, 32
    )
    for call in (
        lambda: baselines.omp(gram, 4),
        lambda: baselines.l1(gram, 4),
        lambda: baselines.basis_pursuit(gram),
        lambda: baselines.bayes_amp(gram, 0.1),
    ):
        with pytest.raises(ValueError, match="only their Gram matrix"):
            call()


def test_more_columns_than_the_l1_path_has_are_refused():
    instance = ensembles.noise_only(20, 0.4, random_state=0)
    with pytest.raises(ValueError, match="l1 path ends at 8"):
        baselines.l1(instance.problem, 12)


def test_basis_pursuit_without_a_solution_says_so():
    A = np.array([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="no x with Ax = y"):
        baselines.basis_pursuit(SparseProblem(A, np.array([1.0, 1.0])))


def test_refit_is_least_squares_on_the_support():
    instance = ensembles.noise_only(60, 0.5, random_state=1)
    coef = baselines.l1(instance.problem, 12)
    support = np.flatnonzero(coef)
    expected = np.linalg.lstsq(instance.A[:, support], instance.y, rcond=None)[0]
    refit = baselines.refit(instance.problem, coef)
    np.testing.assert_allclose(refit[support], expected, rtol=1e-10)
    assert np.count_nonzero(refit) == 12


def test_message_passing_recovers_the_signal_above_its_threshold_only():
    assert bayes.amp_threshold(0.3) == pytest.approx(0.48, abs=0.01)
    errors = []
    for alpha in (0.4, 0.6):
        instance = ensembles.planted(400, alpha, 0.3, support="fixed", random_state=0)
        errors.append(instance.mse(baselines.bayes_amp(instance.problem, 0.3)))
    assert errors[0] > 1e-2
    assert errors[1] < 1e-12


@pytest.mark.parametrize("rho_hat", [0.0, 1.0, -0.1, float("nan")])
def test_message_passing_needs_a_fraction(rho_hat):
    instance = ensembles.planted(40, 0.8, 0.1, support="fixed", random_state=0)
    with pytest.raises(ValueError, match="rho_hat is a fraction"):
        baselines.bayes_amp(instance.problem, rho_hat)
