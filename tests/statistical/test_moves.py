"""Every move leaves the Gibbs law invariant, against enumeration of all supports."""

import numpy as np
import pytest

from l0anneal import Schedule, SparseProblem, anneal
from l0anneal import problem as problem_module
from l0anneal.moves import pair_flip, pair_flip_direct
from l0anneal.moves.outcome import OUTSIDE, SLOT
from l0anneal.rng import stream
from l0anneal.tableau import ENERGY
from l0anneal.workspace import Workspace
from tests.reference import enumerate_supports, random_problem
from tests.statistical.law import LEVEL, law_p_value, nearly_independent

MOVES = {"pair flip": pair_flip, "pair flip, direct": pair_flip_direct}
CASES = [("gaussian", 0.0), ("gaussian", 0.5), ("gaussian", 3.0), ("duplicates", 0.7)]
CASES += [("correlated", 1.0), ("low rank", 1.5), ("badly scaled", 2.0)]


def sample(move, problem, k, mu, n_samples, thin, seed):
    workspace = Workspace(problem, k)
    workspace.fill(k, np.random.default_rng(seed).permutation(problem.n_columns))
    state = stream(np.random.SeedSequence(seed))
    energies = np.zeros(thin)
    supports = np.empty((n_samples, k), dtype=np.int64)
    series = np.empty(n_samples)
    for i in range(n_samples + 10):
        tally = np.zeros(4, dtype=np.int64)
        tally[SLOT] = tally[OUTSIDE] = -1
        stop = thin * problem.n_columns
        workspace.run(move, state, mu * problem.unit_energy, stop, energies, tally)
        if i >= 10:
            supports[i - 10] = workspace.support
            series[i - 10] = workspace.tableau.values[ENERGY]
    return supports, series


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("kind", "mu"), CASES)
def test_stationary_law(move, kind, mu):
    A, y = random_problem(np.random.default_rng(5), 7, 10, kind)
    k = 3
    supports, series = sample(MOVES[move], SparseProblem(A, y), k, mu, 20_000, 12, seed=11)
    assert nearly_independent(series)
    assert law_p_value(A, y, k, mu, supports) > LEVEL


@pytest.mark.parametrize("move", MOVES)
def test_stationary_law_with_gram_rows_on_demand(move, monkeypatch):
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr(problem_module, "ROW_CACHE_BYTES", 0)
    A, y = random_problem(np.random.default_rng(5), 7, 10, "duplicates")
    supports, series = sample(MOVES[move], SparseProblem(A, y), 3, 0.7, 5_000, 12, seed=11)
    assert nearly_independent(series)
    assert law_p_value(A, y, 3, 0.7, supports) > LEVEL


@pytest.mark.parametrize("move", MOVES)
def test_the_law_test_can_fail(move):
    """Control: samples at a temperature 10 % off are told from the law."""
    A, y = random_problem(np.random.default_rng(5), 7, 10)
    supports, _ = sample(MOVES[move], SparseProblem(A, y), 3, 1.1 * 3.0, 20_000, 12, seed=11)
    assert law_p_value(A, y, 3, 3.0, supports) < 1e-6


@pytest.mark.parametrize("kind", ["gaussian", "duplicates", "correlated", "badly scaled"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_annealing_finds_the_enumerated_optimum(kind, k):
    for seed in range(5):
        A, y = random_problem(np.random.default_rng([seed, k]), 11, 12, kind)
        _, energies = enumerate_supports(A, y, k)
        schedule = Schedule.geometric(0.1, 1e5, n=100, tau=20)  # energies are of order one
        result = anneal(
            SparseProblem(A, y), k, schedule, polish=False, n_chains=16, random_state=seed
        )
        assert result.energy == pytest.approx(energies.min(), rel=1e-9)
