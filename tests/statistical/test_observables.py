"""Observables, overlaps and specific heats of the samplers against enumeration of all supports."""

import numpy as np
import pytest
from scipy import stats

from helpers.reference import enumerate_supports, gibbs_law, random_problem
from l0anneal import Schedule, SparseProblem, overlap, population_anneal, temper
from l0anneal.samplers.overlap import across_families

K, MU = 3, np.array([0.5, 1.5, 3.0])
SIGMAS = (
    4.5  # two-sided 7e-6 each: with about a hundred comparisons, one failure in a thousand seeds
)


def roughness(coef):
    """Some function of the coefficients that is not a function of the energy."""
    return float(np.abs(coef).max() - coef[0])


@pytest.fixture(scope="module")
def data():
    return random_problem(np.random.default_rng(5), 7, 10)


@pytest.fixture(scope="module")
def exact(data):
    """Averages by enumeration at each μ: the observable, the specific heat and P(q)."""
    A, y = data
    supports, energies = enumerate_supports(A, y, K)
    values = np.zeros(len(supports))
    for i, support in enumerate(supports):
        coef = np.zeros(A.shape[1])
        coef[list(support)] = np.linalg.lstsq(A[:, support], y, rcond=None)[0]
        values[i] = roughness(coef)
    common = np.array([[len(set(a) & set(b)) for b in supports] for a in supports])
    means, heats, laws = [], [], []
    for mu in MU:
        law = gibbs_law(energies, mu)
        means.append(law @ values)
        heats.append(mu**2 * law @ (energies - law @ energies) ** 2 / A.shape[0])
        pairs = np.multiply.outer(law, law)
        laws.append([pairs[common == n].sum() for n in range(K + 1)])
    return {"roughness": np.array(means), "specific_heat": np.array(heats), "q": np.array(laws)}


@pytest.fixture(scope="module")
def ladders(data):
    """Two independent replica exchanges."""
    arguments = {
        "ladder": MU,
        "n_sweeps": 3000,
        "n_pilot": 100,
        "keep_samples": True,
        "observables": {"roughness": roughness},
    }
    return [temper(SparseProblem(*data), K, random_state=seed, **arguments) for seed in (1, 2)]


@pytest.fixture(scope="module")
def population(data):
    return population_anneal(
        SparseProblem(*data),
        K,
        Schedule.custom(np.append(0.0, MU), 3),
        population=4000,
        keep_samples=True,
        observables={"roughness": roughness},
        random_state=1,
    )


def pulls(dataset, name, expected, error=None):
    """Return deviations in units of the stated errors at each of the temperatures `MU`."""
    found = dataset.sel(mu=MU)
    error = found[f"{name}_error" if error is None else error].to_numpy()
    assert np.all(error > 0)
    return (found[name].to_numpy() - expected) / error


@pytest.mark.parametrize("name", ["roughness", "specific_heat"])
def test_averages_and_their_errors(ladders, population, exact, name):
    for result in (*ladders, population):
        assert np.all(np.abs(pulls(result.trajectory, name, exact[name])) < SIGMAS)
        # control: the averages of the neighbouring temperature are told from these
        assert np.any(np.abs(pulls(result.trajectory, name, np.roll(exact[name], 1))) > 10)


def test_overlaps(ladders, population, exact):
    law = exact["q"]
    np.testing.assert_allclose(law.sum(axis=1), 1.0)
    for found in (ladders[0].overlap_distribution(ladders[1]), population.overlap_distribution()):
        np.testing.assert_allclose(found["q"], np.arange(K + 1) / K)
        np.testing.assert_allclose(found["probability"].sum("q"), 1.0)
        assert np.all(np.abs(pulls(found, "probability", law, "error")) < SIGMAS)
        assert np.any(np.abs(pulls(found, "probability", np.roll(law, 1, 0), "error")) > 10)


def test_errors_have_the_right_size(data, exact):
    """Over 40 repeats, the scatter of each estimate agrees with its stated error, by χ²."""
    problem, n = SparseProblem(*data), 40
    schedule = Schedule.custom(np.append(0.0, MU), 1)
    found = {"heat": [], "roughness": [], "q": []}
    for seed in range(n):
        run = population_anneal(
            problem,
            K,
            schedule,
            population=150,
            keep_samples=True,
            observables={"roughness": roughness},
            polish=False,
            random_state=seed,
        )
        last = run.trajectory.isel(mu=-1)
        found["heat"].append((last["specific_heat"], last["specific_heat_error"]))
        found["roughness"].append((last["roughness"], last["roughness_error"]))
        q = run.overlap_distribution().isel(mu=-1, q=K)
        found["q"].append((q["probability"], q["error"]))
    for name, pairs in found.items():
        values, errors = np.array(pairs, dtype=float).T
        spread = (n - 1) * values.var(ddof=1) / np.mean(errors**2)
        # the estimates are nearly normal; the stated errors scatter as well, by some 10 %
        low, high = stats.chi2.ppf([5e-4, 1 - 5e-4], n - 1)
        assert low < spread < high, name


def test_overlap_of_supports():
    rng = np.random.default_rng(0)
    first, second = (
        np.stack([rng.choice(9, 4, replace=False) for _ in range(50)]) for _ in range(2)
    )
    expected = [len(set(a) & set(b)) / 4 for a, b in zip(first.tolist(), second.tolist())]
    np.testing.assert_array_equal(overlap(first, second), expected)
    assert overlap(first[:, None], second).shape == (50, 50)
    with pytest.raises(ValueError, match="same number of columns"):
        overlap([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="one size"):
        overlap([0, -1], [0, 1])


def test_relatives_are_not_compared():
    """With two families of identical members, every pair of different families has overlap 0."""
    supports = np.array([[0, 1]] * 50 + [[2, 3]] * 50)
    probability, _ = across_families(supports, np.repeat([0, 1], 50))
    np.testing.assert_array_equal(probability, [1.0, 0.0, 0.0])
    assert np.isnan(across_families(supports, np.zeros(100, dtype=int))[0]).all()


def test_a_second_independent_run_is_needed(ladders, data):
    first = ladders[0]
    with pytest.raises(ValueError, match="independent runs; both have the seed 1"):
        first.overlap_distribution(first)
    arguments = {"n_sweeps": 10, "keep_samples": True, "random_state": 3}
    other = temper(SparseProblem(*data), K, ladder=2 * MU, **arguments)
    with pytest.raises(ValueError, match="same temperatures"):
        first.overlap_distribution(other)
    sizes = temper(SparseProblem(*data), sizes=(1, K), ladder=MU, **arguments)
    with pytest.raises(ValueError, match="one size"):
        first.overlap_distribution(sizes)
