"""The diagnosis tells the trapped run from the good one."""

import numpy as np
import pytest

from l0anneal import (
    Schedule,
    SparseProblem,
    anneal,
    diagnose,
    ensembles,
    evidence_anneal,
    kick_search,
    population_anneal,
    solve,
    temper,
)
from l0anneal.diagnosis import disagreement


@pytest.fixture(scope="module")
def trapped():
    instance = ensembles.planted(200, 0.75, 0.5, support="fixed", random_state=0)
    return instance, anneal(instance.problem, 130, Schedule.paper(), n_chains=3, random_state=0)


def test_the_papers_hard_case_is_trapped(trapped):
    instance, result = trapped
    found = diagnose(result)
    assert found.verdict == "trapped"
    assert 0.2 < found.disagreement < 1.0
    assert instance.mse(result.coef) > 0.01
    assert any("evidence" in advice for advice in found.advice)
    assert np.isnan(found.hysteresis)
    assert "trapped" in str(found)


def test_the_papers_easy_case_is_good():
    instance = ensembles.planted(200, 0.8, 0.2, support="fixed", random_state=0)
    result = anneal(
        instance.problem, 80, Schedule.paper(n=150), n_chains=3, polish=False, random_state=0
    )
    found = diagnose(result)
    assert found.verdict in ("exact", "agreed")
    assert found.disagreement < 1e-3
    assert not found.advice


def test_with_the_problem_a_single_chain_is_given_company_and_heated_back(trapped):
    instance, _ = trapped
    single = anneal(instance.problem, 130, Schedule.paper(), random_state=0)
    assert diagnose(single).verdict == "unknown"
    found = diagnose(single, instance.problem)
    assert found.verdict == "trapped"
    assert 0 < found.fell_behind < 1e-2
    assert found.hysteresis > 0.1
    again = diagnose(single, instance.problem)
    assert (again.disagreement, again.hysteresis) == (found.disagreement, found.hysteresis)


def test_a_slow_hot_run_is_in_equilibrium():
    instance = ensembles.noise_only(100, 0.5, random_state=0)
    schedule = Schedule.geometric(0.1, 3.0, n=30, tau=50)
    result = anneal(instance.problem, 20, schedule, polish=False, random_state=0)
    found = diagnose(result, instance.problem)
    assert np.isnan(found.fell_behind)
    assert abs(found.hysteresis) < 0.1
    assert found.theory_distortion == pytest.approx(
        0.00905209 * instance.problem.signal_energy / 50, rel=1e-5
    )


def test_disagreement():
    assert disagreement(np.array([[1.0, 0.0], [1.0, 0.0]])) == 0.0
    assert disagreement(np.array([[1.0, 0.0], [0.0, 1.0]])) == 1.0
    assert np.isnan(disagreement(np.ones((1, 3))))


def test_the_other_samplers():
    instance = ensembles.planted(60, 0.8, 0.1, support="fixed", random_state=1)
    noisy = ensembles.planted(60, 0.8, 0.05, 1.0, 0.05, 1, support="fixed")
    assert diagnose(evidence_anneal(instance.problem, random_state=0)).verdict == "exact"
    assert diagnose(evidence_anneal(noisy.problem, random_state=0)).verdict == "agreed"
    short = temper(instance.problem, 6, n_sweeps=20, random_state=0)
    assert diagnose(short).verdict == "doubtful"
    assert diagnose(short).reasons == short.refusals
    few = population_anneal(instance.problem, 6, population=4, random_state=0)
    assert diagnose(few).verdict == "doubtful"
    with pytest.raises(ValueError, match="what a sampler returned"):
        diagnose(3)


def test_solve_with_and_without_k():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 80))
    y = A[:, [3, 30]] @ [1.0, -2.0] + 0.1 * rng.standard_normal(40)
    problem = SparseProblem(A, y)
    assert solve(problem, random_state=0).support.tolist() == [3, 30]
    result = solve(problem, 2, time_limit=0.2, random_state=0)
    assert result.support.tolist() == [3, 30]
    again = kick_search(problem, 2, n_kicks=result.n_kicks, random_state=result.seed)
    assert again.energy == result.energy
    assert solve(problem, 0, time_limit=0.05).support.size == 0
    with pytest.raises(ValueError, match="time_limit"):
        solve(problem, 2, time_limit=-1)
