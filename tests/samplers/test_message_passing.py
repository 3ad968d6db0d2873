import numpy as np
import pytest

from l0anneal import SparseProblem, ensembles, evidence_anneal
from l0anneal.samplers.evidence.message_passing import pass_messages, set_up_flops


@pytest.mark.parametrize("dictionary", ["gaussian", "ar1", "mean", "dct", "pairs"])
def test_plans_are_found_on_any_kind_of_dictionary(dictionary):
    for seed in range(3):
        instance = ensembles.planted(
            200, 0.7, 0.3, support="fixed", dictionary=dictionary, random_state=seed
        )
        beliefs = pass_messages(instance.problem)
        np.testing.assert_array_equal(np.flatnonzero(beliefs.probability > 0.5), instance.support)
        _, _, rho, learnt = beliefs.log[-1]
        assert rho == pytest.approx(0.3, rel=1e-3)
        unit = instance.truth * instance.problem.column_norms
        slab = np.sum(unit**2) / instance.support.size / instance.problem.unit_energy
        assert learnt == pytest.approx(slab, rel=1e-3)


def test_orthogonal_columns_have_the_posterior_of_one_column_each():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((300, 200)))[0]
    truth = np.where(rng.random(200) < 0.2, rng.standard_normal(200), 0.0)
    problem = SparseProblem(Q, Q @ truth + 0.1 * rng.standard_normal(300))
    beliefs = pass_messages(problem)
    noise, _, rho, slab = beliefs.log[-1]
    b = problem.unit_correlation
    # N(b; 0, σ² + T) against N(b; 0, T)
    ratio = np.sqrt(noise / (slab + noise)) * np.exp(b**2 * slab / (2 * noise * (slab + noise)))
    expected = 1 / (1 + (1 - rho) / (rho * ratio))
    np.testing.assert_allclose(beliefs.probability, expected, atol=1e-6)
    # and the hyperparameters are fixed points of expectation maximisation
    assert rho == pytest.approx(expected.mean(), rel=1e-5)
    unit = problem.unit_energy
    assert noise * unit == pytest.approx(0.01, rel=4 * np.sqrt(2 / 300))


def test_wide_and_tall_forms_agree():
    instance = ensembles.planted(60, 0.7, 0.2, sigma_xi2=1e-2, support="fixed", random_state=3)
    problem = instance.problem
    from_gram = SparseProblem.from_gram(
        instance.A.T @ instance.A,
        instance.A.T @ instance.y,
        float(instance.y @ instance.y),
        problem.n_samples,
    )
    wide, tall = pass_messages(problem), pass_messages(from_gram)
    np.testing.assert_allclose(wide.probability, tall.probability, atol=1e-6)


def test_evidence_annealing_takes_the_guess_only_if_it_is_exact():
    instance = ensembles.planted(200, 0.7, 0.3, support="fixed", random_state=0)
    guessed = evidence_anneal(instance.problem, random_state=0)
    assert guessed.state == "found"
    assert guessed.attempts == 0
    assert "message passing" in guessed.summary()
    np.testing.assert_array_equal(guessed.support, instance.support)
    assert np.all(guessed.inclusion_probability[instance.support] > 0.999)
    assert guessed.trajectory.sizes["step"] == guessed.schedule.messages
    again = evidence_anneal(instance.problem, schedule=guessed.schedule, random_state=0)
    np.testing.assert_array_equal(again.averaged_coef, guessed.averaged_coef)
    alone = evidence_anneal(instance.problem, max_messages=0, random_state=0)
    assert alone.attempts > 0
    np.testing.assert_array_equal(alone.support, instance.support)

    noisy = ensembles.planted(200, 0.7, 0.05, sigma_xi2=1e-3, support="fixed", random_state=0)
    seeded = evidence_anneal(noisy.problem, n_draws=10, random_state=0)
    alone = evidence_anneal(noisy.problem, n_draws=10, max_messages=0, random_state=0)
    assert seeded.schedule.messages > 0
    np.testing.assert_array_equal(seeded.averaged_coef, alone.averaged_coef)


def test_duplicate_and_zero_columns_do_not_stop_it():
    instance = ensembles.planted(100, 0.7, 0.1, support="fixed", random_state=0)
    A = np.hstack((instance.A, instance.A[:, instance.support], np.zeros((70, 3))))
    y = instance.y
    result = evidence_anneal(SparseProblem(A, y), random_state=0)
    assert result.state == "found"
    assert result.support.size == instance.support.size
    assert result.energy < 1e-20 * instance.problem.signal_energy
    gram = SparseProblem.from_gram(A.T @ A, A.T @ y, float(y @ y), y.size)
    from_gram = evidence_anneal(gram, random_state=0)
    assert from_gram.state == "found"
    assert from_gram.support.size == instance.support.size


def test_it_is_left_out_where_the_matrices_are_not_held(monkeypatch):
    instance = ensembles.planted(60, 0.7, 0.1, support="fixed", random_state=0)
    monkeypatch.setattr("l0anneal.problem.scaled.WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr("l0anneal.samplers.evidence.message_passing.COLUMN_BYTES", 0)
    problem = SparseProblem(instance.A, instance.y)
    assert set_up_flops(problem) == np.inf
    result = evidence_anneal(problem, random_state=0)
    assert result.schedule.messages == 0
    assert "gram" not in problem.__dict__
    np.testing.assert_array_equal(result.support, instance.support)
