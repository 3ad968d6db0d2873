"""Replica exchange: every rung has its stated law, in temperature and in size."""

import numpy as np
import pytest

from helpers.law import LEVEL, law_p_value, nearly_independent, sizes_p_value
from helpers.reference import enumerate_supports, random_problem
from l0anneal import SparseProblem, temper
from l0anneal.samplers.autocorrelation import autocorrelation_time


@pytest.mark.parametrize("kind", ["gaussian", "duplicates"])
def test_stationary_law_at_each_temperature(kind):
    A, y = random_problem(np.random.default_rng(5), 7, 10, kind)
    mu = [0.5, 1.5, 3.0]
    result = temper(
        SparseProblem(A, y),
        3,
        ladder=mu,
        n_sweeps=8_000,
        n_pilot=100,
        keep_samples=True,
        random_state=1,
    )
    assert result.exchange_rate.min() > 0.2
    known, energies = enumerate_supports(A, y, 3)
    energy_of = dict(zip(known, energies))
    for a in range(3):
        supports = result.samples[::5, a].to_numpy()
        assert nearly_independent(np.array([energy_of[tuple(s)] for s in supports.tolist()]))
        assert law_p_value(A, y, 3, mu[a], supports) > LEVEL
    wrong = result.samples[::5, 2].to_numpy()  # control: the law of a temperature 20 % off
    assert law_p_value(A, y, 3, 1.2 * mu[2], wrong) < 1e-6
    for a in range(3):
        weights = np.exp(-mu[a] * energies)
        mean = energies @ weights / weights.sum()
        assert abs(result.mean_energy[a] - mean) < 4 * result.energy_error[a]


@pytest.mark.parametrize("kind", ["gaussian", "duplicates"])
def test_stationary_law_over_sizes(kind):
    """Frozen weights: P(S) ∝ exp(−μ E(S) + w_|S|), and the ratios of G_k that follow from it."""
    A, y = random_problem(np.random.default_rng(5), 7, 8, kind)
    mu, sizes = [1.0, 3.0], (1, 2, 3)
    result = temper(
        SparseProblem(A, y),
        sizes=(1, 3),
        ladder=mu,
        n_sweeps=8_000,
        keep_samples=True,
        random_state=2,
    )
    for a in range(2):
        supports = [s[s >= 0] for s in result.samples[::5, a].to_numpy()]
        assert nearly_independent(np.array([s.size for s in supports], dtype=float))
        w = result.weights[a]
        assert sizes_p_value(A, y, sizes, mu[a], w, supports) > LEVEL
        # control: other weights are told from these
        other = w + np.array([0.0, 0.25, 0.5])
        assert sizes_p_value(A, y, sizes, mu[a], other, supports) < 1e-6
        log_g = np.array(
            [np.log(np.exp(-mu[a] * enumerate_supports(A, y, k)[1]).sum()) for k in sizes]
        )
        # visits are multinomial in n/τ independent draws, each size of about a third
        error = np.sqrt(6.0 * max(1.0, result.autocorrelation[a]) / result.n_sweeps)
        found = result.trajectory["log_g_ratio"].to_numpy()[a]
        assert np.all(np.abs(found - (log_g - log_g[0])) < 4 * error)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_autocorrelation_time_of_a_known_series(memory):
    """The series x ← a x + noise has τ = (1 + a)/(1 − a)."""
    rng = np.random.default_rng(0)
    n = 100_000
    series = np.zeros(n)
    noise = rng.standard_normal(n)
    for i in range(1, n):
        series[i] = memory * series[i - 1] + noise[i]
    expected = (1 + memory) / (1 - memory)
    # Sokal's error with window 5 τ: relative variance (4·5 + 2) τ / n for τ counted as here / 2
    error = expected * np.sqrt(22 * max(expected, 1.0) / n)
    assert abs(autocorrelation_time(series) - expected) < 4 * error


@pytest.mark.slow
def test_a_run_answers_rightly_or_refuses():
    """Short runs refuse, long ones answer, and no answer is off by more than 4.5 stated errors.

    The limits of the refusal were set on another problem than this one.
    """
    A, y = random_problem(np.random.default_rng(101), 9, 12)
    problem = SparseProblem(A, y)
    _, energies = enumerate_supports(A, y, 4)
    answered = {}
    for n_sweeps in (30, 100, 300, 1000):
        answered[n_sweeps] = 0
        for seed in range(1000, 1008):
            result = temper(problem, 4, mu_max=50.0, n_sweeps=n_sweeps, random_state=seed)
            if result.refusals:
                continue
            answered[n_sweeps] += 1
            weights = np.exp(-np.multiply.outer(result.ladder, energies - energies.min()))
            mean = weights @ energies / weights.sum(axis=1)
            assert np.all(np.abs(result.mean_energy - mean) < 4.5 * result.energy_error)
    assert answered[30] == answered[100] == 0
    assert answered[300] < answered[1000] == 8
