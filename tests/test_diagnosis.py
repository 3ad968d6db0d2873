"""The diagnosis tells the trapped run from the good one, in any units."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from l0anneal.diagnosis.posterior import judge_evidence
from l0anneal.samplers.comparison import compare_chains


@pytest.fixture(scope="module")
def trapped():
    instance = ensembles.planted(200, 0.75, 0.5, support="fixed", random_state=0)
    return instance, anneal(instance.problem, 130, Schedule.paper(), n_chains=3, random_state=0)


def test_the_papers_hard_case_is_trapped(trapped):
    instance, result = trapped
    found = diagnose(result)
    assert found.verdict == "trapped"
    assert found.disagreement == pytest.approx(1.0, abs=0.2)  # the residuals have nothing in common
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


def test_solve_with_and_without_k(own_time):
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


# ---------------------------------------------------------------- units


def hurried(A, y, k=15, n_chains=2):
    """Two chains that had too little time to agree."""
    schedule = Schedule.geometric(0.1, 30.0, n=20, tau=1)
    y = y / np.linalg.norm(y) * 7.0  # the schedule is in units of the energy
    return anneal(SparseProblem(A, y), k, schedule, n_chains=n_chains, random_state=0)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), units=st.sampled_from(["columns", "signal", "signs", "all"]))
def test_units_change_neither_verdict_nor_disagreement(seed, units):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((50, 100)), rng.standard_normal(50)
    scale, factor = np.ones(100), 1.0
    if units in ("columns", "all"):
        scale = scale * 10.0 ** rng.uniform(-6, 6, 100)
    if units in ("signs", "all"):
        scale = scale * rng.choice([-1.0, 1.0], 100)
    if units in ("signal", "all"):
        factor = -(10.0 ** rng.uniform(-6, 6))
    search = {"n_kicks": int(rng.integers(4)), "n_chains": 2, "random_state": seed}
    one = diagnose(kick_search(SparseProblem(A, y), 15, **search))
    other = diagnose(kick_search(SparseProblem(A * scale, factor * y), 15, **search))
    assert other.verdict == one.verdict
    assert other.disagreement == pytest.approx(one.disagreement, rel=1e-6, abs=1e-9)
    assert (other.undecided, other.groups) == (one.undecided, one.groups)


def test_a_small_column_does_not_turn_a_trapped_run_into_a_good_one():
    """In the units of the coefficients, the column that both chains share would outweigh all others."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A, y = rng.standard_normal((50, 100)), rng.standard_normal(50)
        result = hurried(A, y)
        shared = np.intersect1d(*result.chain_supports)
        assert shared.size  # otherwise there is nothing to rescale
        A[:, shared[0]] *= 0.01
        again = hurried(A, y)
        np.testing.assert_array_equal(again.chain_supports, result.chain_supports)
        assert diagnose(result).verdict == diagnose(again).verdict == "trapped"


@pytest.mark.parametrize("offset", [3.0, 10.0, 100.0, 1e4])
def test_a_constant_column_does_not_hide_that_the_chains_differ(offset):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A = np.column_stack((rng.standard_normal((50, 100)), np.ones(50)))
        result = kick_search(
            SparseProblem(A, offset + rng.standard_normal(50)),
            15,
            n_kicks=0,
            n_chains=2,
            random_state=0,
        )
        assert np.ptp(result.chain_energies) > 1e-3 * result.energy
        assert 100 in np.intersect1d(*result.chain_supports)
        found = diagnose(result)
        assert found.verdict in ("trapped", "doubtful")
        assert found.disagreement > 0.1


def test_chains_of_different_energy_do_not_agree_however_close_their_fits():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 10))
    A[:, 1] = A[:, 0] + 1e-2 * rng.standard_normal(30)
    problem = SparseProblem(A, A[:, 0] + 0.1 * rng.standard_normal(30))
    result = kick_search(problem, 1, n_kicks=50, n_chains=2, random_state=0)
    assert diagnose(result).verdict == "agreed"
    supports = [np.array([0]), np.array([1])]
    energies = np.array([problem.energy(support) for support in supports])
    apart = replace(
        result,
        chain_energies=energies,
        chain_supports=np.array(supports),
        comparison=compare_chains(problem, supports, energies, 0.0),
    )
    found = diagnose(apart)
    assert found.verdict == "doubtful"
    assert found.disagreement < 0.02
    assert found.undecided == (0, 1)
    assert found.groups == ((0, 1),)
    assert "0 and 1 stand in for each other" in str(found).replace("\n             ", " ")


# ---------------------------------------------------------------- what is exact


@pytest.mark.parametrize("k", [29, 30])
def test_noise_that_is_fitted_by_chance_is_not_exact(k):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        problem = SparseProblem(rng.standard_normal((30, 80)), rng.standard_normal(30))
        result = kick_search(problem, k, n_kicks=50, n_chains=2, random_state=0)
        assert result.energy < 1e-10 * problem.signal_energy
        for found in (diagnose(result), diagnose(result, problem)):
            assert found.verdict == "doubtful"
            assert "any signal" in found.reasons[0]
            assert "smaller n_nonzero" in found.advice[0]


def test_superfluous_columns_are_mentioned():
    instance = ensembles.planted(100, 0.7, 0.1, support="fixed", random_state=0)
    found = diagnose(kick_search(instance.problem, 14, n_kicks=50, n_chains=2, random_state=0))
    assert found.verdict == "exact"
    assert found.reasons[0].startswith("10 columns, fewer than the 70 samples")
    assert any("the other 4 columns" in reason for reason in found.reasons)


def offset_problem(offset, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 80))
    y = A[:, :5] @ [1.0, -1.0, 0.7, 0.5, 0.3] + rng.standard_normal(60)
    centred = SparseProblem(A - A.mean(axis=0), y - y.mean())
    return centred, SparseProblem(np.column_stack((A, np.ones(60))), offset + y)


@pytest.mark.parametrize("offset", [1e5, 1e9])
def test_solve_finds_beside_a_dominant_column_what_it_finds_without(own_time, offset):
    for seed in range(3):
        centred, problem = offset_problem(offset, seed)
        expected = kick_search(centred, 9, n_kicks=300, random_state=0)
        result = kick_search(problem, 10, n_kicks=300, n_chains=2, random_state=0)
        assert result.support.tolist() == [*expected.support.tolist(), 80]
        assert result.energy == pytest.approx(expected.energy, rel=1e-6)
        assert result.ended == "all kicks were made"
        for found in (diagnose(result), diagnose(result, problem)):
            assert found.verdict == "agreed"
    short = solve(problem, 10, time_limit=0.3, random_state=0)
    assert short.n_kicks[0] > 0
    assert short.ended == "time limit"


def test_an_annealing_that_rounding_blinds_says_so():
    _, problem = offset_problem(1e7)
    result = anneal(problem, 10, n_chains=2, random_state=0)
    found = diagnose(result)
    assert found.verdict in ("doubtful", "trapped")
    text = " ".join(found.reasons)
    assert "rounding limits this search: columns 80 dwarf" in text
    assert any("kick_search" in advice for advice in found.advice)


def test_a_dominant_column_may_leave_again():
    """Two columns reproduce the dominant one exactly; with them, two further columns are needed less."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 12))
    A[:, 0] = A[:, 1] + A[:, 2]
    y = 1e5 * A[:, 0] + A[:, 1] + A[:, 3] + 1e-3 * rng.standard_normal(40)
    problem = SparseProblem(A, y)
    result = kick_search(problem, 3, n_kicks=20, n_chains=2, random_state=0)
    best = min(problem.energy(S) for S in combinations(range(12), 3))
    assert result.energy == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("from_gram", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nearly_equal_columns_that_were_not_considered_together_are_named(from_gram, sign):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((50, 20)), rng.standard_normal(50)
    A[:, 7] = sign * (A[:, 3] + 1e-4 * y)
    A[:, 12:] = 0.0
    problem = SparseProblem(A, y)
    if from_gram:
        problem = SparseProblem.from_gram(A.T @ A, A.T @ y, y @ y, 50)
    result = kick_search(problem, 2, n_kicks=100, n_chains=2, random_state=0)
    assert result.energy > 10.0 > 1e-3 > problem.energy([3, 7])
    found = diagnose(result)
    assert found.verdict == "doubtful"
    assert found.excluded == (3, 7)
    assert "columns 3 and 7 are nearly linearly dependent" in " ".join(found.reasons)
    assert "their difference" in found.advice[0]
    if not from_gram:
        A[:, 7] -= sign * A[:, 3]  # what the advice says
        better = kick_search(SparseProblem(A, y), 1, n_kicks=100, n_chains=2, random_state=0)
        assert better.support.tolist() == [7]
        assert diagnose(better).verdict == "exact"


def test_equal_columns_are_not_a_reason_for_doubt():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 20))
    A[:, 7] = A[:, 3]
    y = A[:, 3] + 0.1 * rng.standard_normal(50)
    found = diagnose(kick_search(SparseProblem(A, y), 2, n_kicks=100, n_chains=2, random_state=0))
    assert (found.verdict, found.excluded) == ("agreed", ())


# ---------------------------------------------------------------- with the problem at hand


def test_a_better_support_is_proof_that_the_chains_are_trapped():
    """Two chains agree because both began at the same support, too cold to leave it."""
    problem = ensembles.noise_only(60, 0.5, random_state=0).problem
    start = kick_search(problem, 10, n_kicks=0, random_state=0).support
    cold = Schedule.geometric(1e6, 1e7, n=20, tau=5)
    result = anneal(problem, 10, cold, n_chains=2, initial_support=start, random_state=0)
    assert diagnose(result).verdict == "agreed"
    found = diagnose(result, problem)
    assert found.verdict == "trapped"
    assert any("there is a better support" in reason for reason in found.reasons)


def test_the_agreement_of_short_chains_proves_little():
    instance = ensembles.planted(60, 0.8, 0.05, 1.0, 0.05, 1, support="fixed")
    for n_kicks, verdict in ((5, "doubtful"), (100, "agreed")):
        result = kick_search(instance.problem, 3, n_kicks=n_kicks, n_chains=2, random_state=0)
        assert result.n_agree == 2
        assert diagnose(result).verdict == verdict
        assert diagnose(result, instance.problem).verdict == "agreed"


def test_sizes_at_the_ends():
    rng = np.random.default_rng(0)
    problem = SparseProblem(rng.standard_normal((20, 8)), rng.standard_normal(20))
    for k in (0, 8):
        found = diagnose(kick_search(problem, k, random_state=0), problem)
        assert (found.verdict, found.undecided) == ("agreed", ())
    zero = SparseProblem(rng.standard_normal((20, 8)), np.zeros(20))
    found = diagnose(kick_search(zero, 3, n_chains=2, random_state=0), zero)
    assert "the signal is zero" in found.reasons[-1]


# ---------------------------------------------------------------- evidence annealing


def posterior(state, **more):
    """What `evidence_anneal` returns, as far as the diagnosis reads it."""
    p = np.array([1.0, 0.6, 0.4, 0.0])
    fields = {"state": state, "inclusion_probability": p, "support": np.array([0, 1])}
    fields |= {"noise_variance": 0.1, "distortion": 0.2, "n_samples": 40}
    fields |= {"has_few_samples": False, "name": str}
    fields |= {"effective_sample_size": 500.0, "draws": None, "ended": "sampled", "seconds": 1.0}
    return judge_evidence(SimpleNamespace(**fields | more))


def test_chains_of_evidence_annealing_that_disagree_are_doubtful():
    chains = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.2, 0.8, 0.0]])
    found = posterior("disagreed", chain_probability=chains, disagreement=0.4)
    assert (found.verdict, found.disagreement) == ("doubtful", 0.4)
    assert "1 (0.20 to 1.00), 2 (0.00 to 0.80)" in " ".join(found.reasons)
    assert found.undecided == (1, 2)
    assert any("chain_probability" in advice for advice in found.advice)


def test_credible_sets_are_groups_and_a_refusal_is_passed_on():
    pair = SimpleNamespace(columns=np.array([1, 2]), probability=0.97)
    alone = SimpleNamespace(columns=np.array([0]), probability=1.0)
    found = posterior("noise", credible_sets=lambda: [alone, pair])
    assert found.verdict == "agreed"
    assert found.groups == ((1, 2),)
    assert "at least one of them belongs, with probability 0.97" in " ".join(found.reasons)
    assert "columns 1 and 2 stand in" in " ".join(found.reasons)
    named = posterior("noise", credible_sets=lambda: [pair], name=["a", "b", "c", "d"].__getitem__)
    assert "columns b and c stand in" in " ".join(named.reasons)

    def refuse():
        raise ValueError("effective sample size 31: raise n_draws")

    found = posterior("noise", credible_sets=refuse)
    assert found.groups == ()
    assert "no credible sets: effective sample size 31: raise n_draws" in found.reasons


def test_the_text_fits_into_80_columns(trapped):
    for found in (diagnose(trapped[1]), posterior("disagreed")):
        assert max(map(len, str(found).split("\n"))) <= 80
        assert found.to_dict()["undecided"] == list(found.undecided)
