"""Every move leaves the Gibbs law invariant, compared with enumeration of all supports."""

import numpy as np
import pytest
from scipy import stats

from helpers.law import LEVEL, law_p_value, nearly_independent
from helpers.reference import enumerate_supports, gibbs_law, off_span, qr_energy, random_problem
from l0anneal import Schedule, SparseProblem, anneal, ensembles
from l0anneal.engine.kernel_choice import KERNELS
from l0anneal.engine.moves.protocol import ACCEPTED, new_tally
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from l0anneal.problem import scaled as problem_module
from l0anneal.problem.admissibility import PIVOT

# The statistic of a temperature that is wrong by 10 % is a noncentral χ²: 98 degrees of freedom with
# λ = 194 for 20,000 samples, which a level of 1e-6 detects with probability .99998; 73 with λ = 97 for
# 10,000, which LEVEL detects with probability .995.
SAMPLES, SAMPLES_OF_CONTROL = 10_000, 20_000
# The sweeps between samples follow from the second eigenvalue of the pair flip's transition matrix:
# after that time its power is below 2e-3.
CASES = [("gaussian", 0.0, 2), ("gaussian", 3.0, 8), ("duplicates", 0.7, 3)]
CASES += [("correlated", 1.0, 4), ("low rank", 1.5, 2), ("badly scaled", 2.0, 5)]
CASES += [pytest.param("gaussian", 0.5, 2, marks=pytest.mark.slow)]


def sample(move, problem, k, mu, n_samples, thin, seed):
    workspace = Workspace(problem, k)
    workspace.fill(k, np.random.default_rng(seed).permutation(problem.n_columns))
    state = stream(np.random.SeedSequence(seed))
    energies = np.zeros(thin)
    supports = np.empty((n_samples, k), dtype=np.int64)
    series = np.empty(n_samples)
    for i in range(n_samples + 10):
        stop = thin * problem.n_columns
        tally = new_tally(n_pairs=3)
        workspace.run(move, state, mu * problem.unit_energy, stop, energies, tally)
        if i >= 10:
            supports[i - 10] = workspace.support
            series[i - 10] = workspace.unit_energy
    return supports, series


@pytest.mark.parametrize("move", KERNELS)
@pytest.mark.parametrize(("kind", "mu", "thin"), CASES)
def test_stationary_law(move, kind, mu, thin):
    A, y = random_problem(np.random.default_rng(5), 7, 10, kind)
    k = 3
    supports, series = sample(KERNELS[move], SparseProblem(A, y), k, mu, SAMPLES, thin, seed=11)
    if kind == "low rank":  # of rank k, so all energies are equal up to rounding
        assert np.std(series) < 1e-8  # the rounding of AᵀA over the smallest pivot admitted
        series = np.any(supports == 5, axis=1).astype(float)
    assert nearly_independent(series)
    assert law_p_value(A, y, k, mu, supports) > LEVEL


@pytest.mark.parametrize("move", KERNELS)
def test_stationary_law_with_gram_rows_on_demand(move, monkeypatch):
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr(problem_module, "ROW_CACHE_BYTES", 0)
    A, y = random_problem(np.random.default_rng(5), 7, 10, "duplicates")
    supports, series = sample(KERNELS[move], SparseProblem(A, y), 3, 0.7, 5_000, 3, seed=11)
    assert nearly_independent(series)
    assert law_p_value(A, y, 3, 0.7, supports) > LEVEL


@pytest.mark.parametrize("move", KERNELS)
def test_stationary_law_of_barely_independent_columns(move):
    A, y = random_problem(np.random.default_rng(8), 4, 7, "barely independent")
    supports, series = sample(KERNELS[move], SparseProblem(A, y), 3, 1.0, SAMPLES, 7, seed=11)
    assert nearly_independent(series)
    assert law_p_value(A, y, 3, 1.0, supports) > LEVEL


def test_barely_independent_columns_detect_a_wrong_heat_bath():
    """Control: a heat bath that tests the entering column only, and refuses the others later.

    The law of that chain, computed exactly, differs so much that the samples of a test detect it.
    """
    A, y = random_problem(np.random.default_rng(8), 4, 7, "barely independent")
    supports, energies = enumerate_supports(A, y, 3)
    chain = np.zeros((len(supports), len(supports)))
    for i, support in enumerate(supports):
        for j in set(range(7)) - set(support):
            weights, ends = [1.0], [i]
            for k in support:
                after = tuple(sorted(set(support) - {k} | {j}))
                if off_span(A, after, j) > PIVOT:
                    weights.append(np.exp(energies[i] - qr_energy(A, y, after)))
                    ends.append(supports.index(after) if after in supports else i)
            np.add.at(chain[i], ends, np.array(weights) / sum(weights) / 4)
    wrong = np.linalg.matrix_power(chain, 10_000)[0]
    right = gibbs_law(energies, 1.0)
    distance = SAMPLES * np.sum((wrong - right) ** 2 / right)
    assert stats.chi2.sf(distance, right.size - 1) < 1e-12


@pytest.mark.parametrize("move", KERNELS)
def test_the_law_test_can_fail(move):
    """Control: the test detects samples at a temperature that is wrong by 10 %."""
    A, y = random_problem(np.random.default_rng(5), 7, 10)
    problem, n_samples = SparseProblem(A, y), SAMPLES_OF_CONTROL
    supports, _ = sample(KERNELS[move], problem, 3, 1.1 * 3.0, n_samples, 8, seed=11)
    assert law_p_value(A, y, 3, 3.0, supports) < 1e-6


def relaxations(move, problem, k, mu, n_sweeps, n_runs, seed):
    """Return energies after each sweep, and acceptances, of many short runs from one support."""
    order = np.random.default_rng(0).permutation(problem.n_columns)
    energies = np.zeros((n_runs, n_sweeps))
    accepted = np.zeros(n_runs)
    children = np.random.SeedSequence(seed).spawn(n_runs)
    stop = n_sweeps * problem.n_columns
    for i in range(n_runs):
        workspace = Workspace(problem, k)
        workspace.fill(k, order)
        tally = new_tally()
        unit_mu = mu * problem.unit_energy
        workspace.run(move, stream(children[i]), unit_mu, stop, energies[i], tally)
        accepted[i] = tally[ACCEPTED]
    return np.column_stack((energies, accepted))


@pytest.mark.parametrize("mu", [2.0, 10.0, 100.0])
def test_rejection_free_is_the_pair_flip_at_every_time(mu):
    """Compare energies after one, two, ... sweeps from one start, and acceptances.

    Control: the same test detects that the heat bath, with the same stationary law, is another chain.
    """
    problem = ensembles.noise_only(30, 0.5, random_state=4).problem
    runs = {
        name: relaxations(KERNELS[name], problem, 6, mu, 4, 1500, seed)
        for seed, name in enumerate(("pair flip", "rejection free", "heat bath"))
    }

    def p_values(name):
        return [stats.ks_2samp(a, b).pvalue for a, b in zip(runs["pair flip"].T, runs[name].T)]

    assert min(p_values("rejection free")) > LEVEL
    assert min(p_values("heat bath")) < 1e-6


@pytest.mark.parametrize("kind", ["gaussian", "duplicates", "correlated", "badly scaled"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_annealing_finds_the_enumerated_optimum(kind, k):
    for seed in range(3):
        A, y = random_problem(np.random.default_rng([seed, k]), 11, 12, kind)
        _, energies = enumerate_supports(A, y, k)
        schedule = Schedule.geometric(0.1, 1e5, n=100, tau=10)  # energies are of order one
        result = anneal(
            SparseProblem(A, y), k, schedule, polish=False, n_chains=8, random_state=seed
        )
        assert result.energy == pytest.approx(energies.min(), rel=1e-9)
