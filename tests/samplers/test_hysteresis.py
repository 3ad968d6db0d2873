"""Schedules that heat: hysteresis, and the planted branch above T_c."""

import numpy as np
import pytest

from helpers.reference import enumerate_supports, gibbs_law, random_problem
from helpers.results import assert_same
from l0anneal import (
    Schedule,
    SparseProblem,
    anneal,
    autocorrelation_time,
    ensembles,
    population_anneal,
)
from l0anneal.theory import ReplicaSymmetric

N, K = 160, 104
CHAINS = 8


@pytest.fixture(scope="module")
def instance():
    """The paper's hard case, α = .75, ρ̂ = .5, ρ = .65: cooling never finds the planted support."""
    return ensembles.planted(N, 0.75, 0.5, support="fixed", random_state=0)


@pytest.fixture(scope="module")
def temperature():
    """A temperature in the middle of the range where the planted branch is metastable."""
    theory = ReplicaSymmetric(0.75, 0.65, 0.5)
    t_c, end = theory.transition().temperature, theory.spinodals().planted
    assert t_c < end
    return (t_c * end) ** 0.5


@pytest.fixture(scope="module")
def cooling(temperature):
    return Schedule.custom(np.geomspace(1.0, 1.0 / temperature, 12), 10)


def test_schedules_in_both_directions():
    schedule = Schedule.custom([0.0, 1.0, 10.0], [1, 2, 3])
    assert schedule.cools
    assert schedule.reversed().mu == (10.0, 1.0, 0.0)
    assert schedule.reversed().tau == (3, 2, 1)
    loop = schedule.there_and_back()
    assert (loop.mu, loop.tau) == ((0.0, 1.0, 10.0, 10.0, 1.0, 0.0), (1, 2, 3, 3, 2, 1))
    assert not loop.cools
    assert not schedule.reversed().cools
    assert Schedule.from_dict(loop.to_dict()) == loop


def test_hysteresis(instance, temperature, cooling):
    """Above T_c the heated chains are still planted where the cooled ones are not.

    At the hottest temperature both branches have the same energies.
    """
    problem, observables = instance.problem, {"mse": instance.mse}
    others = np.setdiff1d(np.arange(N), instance.support)
    start = np.append(instance.support, others[: K - instance.support.size])
    arguments = {"n_chains": CHAINS, "observables": observables, "random_state": 1}
    loop = anneal(problem, K, cooling.there_and_back(), **arguments)
    heated = anneal(problem, K, cooling.reversed(), initial_support=start, **arguments)
    n = len(cooling)
    cold, hot = 1.0 / temperature, cooling.mu[0]
    assert loop.trajectory["mu"][[n - 1, n]].values.tolist() == [cold, cold]
    assert heated.trajectory["mu"][-1] == hot
    assert np.all(heated.chains["mse"][:, 0] < 0.05)
    assert np.all(loop.chains["mse"][:, [n - 1, n]] > 0.2)
    branches = [loop.chains["distortion"][:, i].values for i in (0, 2 * n - 1)]
    branches.append(heated.chains["distortion"][:, n - 1].values)
    for other in branches[1:]:
        error = np.hypot(*(b.std(ddof=1) / np.sqrt(CHAINS) for b in (branches[0], other)))
        assert abs(other.mean() - branches[0].mean()) < 4 * error
    # control: the branches are told apart in energy at the lowest temperature
    gap = loop.chains["distortion"][:, n].values - heated.chains["distortion"][:, 0].values
    assert gap.mean() > 4 * gap.std(ddof=1) / np.sqrt(CHAINS)


def test_the_answer_is_the_best_end_of_a_temperature(instance, cooling):
    """The chain ends hot, but the result is the planted support, where it began."""
    others = np.setdiff1d(np.arange(N), instance.support)
    start = np.append(instance.support, others[: K - instance.support.size])
    schedule = Schedule.custom([1e8, *cooling.mu[::-1]], 2)
    arguments = {"initial_support": start, "keep_samples": True, "random_state": 0}
    for polish in (False, True):
        result = anneal(instance.problem, K, schedule, polish=polish, **arguments)
        last = result.sampled_values["energy"][0, -1]
        assert result.energy < 1e-6 < 0.01 < last
        assert set(instance.support) <= set(result.support.tolist())


def test_both_branches_have_the_law_of_their_temperature():
    A, y = random_problem(np.random.default_rng(5), 7, 10)
    schedule = Schedule.custom([0.5, 3.0], 3000).there_and_back()
    result = anneal(SparseProblem(A, y), 3, schedule, keep_samples=True, random_state=0)
    _, energies = enumerate_supports(A, y, 3)
    series = result.sampled_values["energy"][0].reshape(4, 3000)
    means = [gibbs_law(energies, mu) @ energies for mu in schedule.mu]
    for values, mean, found in zip(series, means, result.mean_energy[0]):
        assert found == pytest.approx(values.mean())
        error = values.std() * np.sqrt(autocorrelation_time(values) / values.size)
        assert abs(found - mean) < 4 * error < 0.1 * abs(means[0] - means[1])


def test_one_seed_one_result(instance, cooling):
    loop = cooling.there_and_back()
    runs = [
        anneal(instance.problem, K, loop, n_chains=3, n_jobs=n_jobs, random_state=0)
        for n_jobs in (None, 2)
    ]
    assert_same(*runs)


def test_a_time_limit_shortens_a_loop(instance, cooling):
    loop = Schedule.custom(cooling.mu, 10**5).there_and_back()
    first = anneal(instance.problem, K, loop, time_limit=0.5, random_state=0)
    assert first.ended == "time limit"
    again = anneal(
        instance.problem, K, first.schedule, polish=first.polished, random_state=first.seed
    )
    assert_same(first, again)


def test_entropies_end_where_the_heating_begins():
    instance = ensembles.noise_only(30, 0.6, random_state=0)
    schedule = Schedule.custom(np.linspace(0.0, 5.0, 20), 2)
    cooled = anneal(instance.problem, 5, schedule, random_state=0)
    loop = anneal(instance.problem, 5, schedule.there_and_back(), random_state=0)
    entropy = loop.trajectory["entropy"].values
    np.testing.assert_array_equal(entropy[:20], cooled.trajectory["entropy"])
    assert np.isnan(entropy[21:]).all()
    loop.plot()


def test_a_population_only_cools():
    problem = ensembles.noise_only(30, 0.6, random_state=0).problem
    with pytest.raises(ValueError, match="needs a schedule that cools"):
        population_anneal(problem, 5, Schedule.custom([0.0, 2.0, 1.0], 1))
