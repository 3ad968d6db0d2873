import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.reference import admissible, enumerate_supports, qr_energy, random_problem
from helpers.results import assert_same
from l0anneal import Schedule, SparseProblem, anneal, ensembles
from l0anneal.engine.workspace import Workspace

SHORT = Schedule.paper(n=30, tau=2)


@pytest.fixture(scope="module")
def instance():
    return ensembles.planted(60, 0.7, 0.2, sigma_xi2=0.01, support="fixed", random_state=0)


def test_one_seed_one_result_for_any_number_of_threads(instance):
    runs = [
        anneal(instance.problem, 12, SHORT, n_chains=5, n_jobs=jobs, random_state=7)
        for jobs in (None, 2, 4, -1)
    ]
    for run in runs[1:]:
        assert_same(runs[0], run)
    again = anneal(SparseProblem(instance.A, instance.y), 12, SHORT, n_chains=5, random_state=7)
    assert_same(runs[0], again)


def test_a_chain_does_not_depend_on_its_company(instance):
    two = anneal(instance.problem, 12, SHORT, n_chains=2, random_state=7)
    five = anneal(instance.problem, 12, SHORT, n_chains=5, random_state=7)
    np.testing.assert_array_equal(two.chain_supports, five.chain_supports[:2])
    assert not np.array_equal(five.mean_energy[0], five.mean_energy[1])
    assert five.energy == five.chain_energies.min() <= two.energy


def test_a_result_can_be_had_again_from_its_seed(instance):
    first = anneal(instance.problem, 12, SHORT)
    assert_same(first, anneal(instance.problem, 12, first.schedule, random_state=first.seed))
    sequence = np.random.SeedSequence(5, spawn_key=(3, 1))
    run = anneal(instance.problem, 12, SHORT, random_state=sequence)
    assert_same(run, anneal(instance.problem, 12, SHORT, random_state=run.seed))


def test_watching_changes_nothing(instance):
    """Samples and observables stop the kernel at each sweep; the chain must not notice."""
    plain = anneal(instance.problem, 12, SHORT, random_state=7)
    watched = anneal(
        instance.problem,
        12,
        SHORT,
        random_state=7,
        keep_samples=True,
        observables={"mse": instance.mse},
    )
    assert_same(plain, watched)
    samples = watched.samples
    assert samples.shape == (1, SHORT.n_sweeps, 12)
    mu = samples["mu"].to_numpy()
    assert mu.tolist() == np.repeat(SHORT.mu, SHORT.tau).tolist()
    a = 9
    here = samples.to_numpy()[0][mu == SHORT.mu[a]]
    energies = [instance.problem.energy(support) for support in here]
    assert watched.mean_energy[0, a] == pytest.approx(np.mean(energies), rel=1e-10)
    assert watched.std_energy[0, a] == pytest.approx(np.std(energies, ddof=1), rel=1e-6)
    errors = []
    for support in here:
        coef = np.zeros(60)
        coef[support] = instance.problem.least_squares(support)[0]
        errors.append(instance.mse(coef))
    assert watched.trajectory["mse"].to_numpy()[a] == pytest.approx(np.mean(errors), rel=1e-8)


def test_samples_must_be_asked_for(instance):
    with pytest.raises(ValueError, match="keep_samples=True"):
        _ = anneal(instance.problem, 12, SHORT, random_state=7).samples


def test_polish_ends_in_a_swap_local_minimum(instance):
    rough = anneal(instance.problem, 12, SHORT, polish=False, random_state=3)
    result = anneal(instance.problem, 12, SHORT, polish=True, random_state=3)
    np.testing.assert_array_equal(rough.mean_energy, result.mean_energy)
    assert result.energy <= rough.energy
    support = set(result.support.tolist())
    for i in support:
        for j in set(range(60)) - support:
            neighbour = sorted(support - {i} | {j})
            energy = qr_energy(instance.A, instance.y, neighbour)
            assert energy > result.energy - 1e-12 * instance.problem.signal_energy


def test_initial_support(instance):
    start = np.array([5, 3, 40, 7])
    frozen = Schedule.custom([1e12], 1)
    result = anneal(instance.problem, 4, frozen, initial_support=start, random_state=0)
    assert result.energy <= qr_energy(instance.A, instance.y, start) * (1 + 1e-12)
    with pytest.raises(ValueError, match="needs 5 columns; got 4"):
        anneal(instance.problem, 5, frozen, initial_support=start)
    A = instance.A.copy()
    A[:, 3] = A[:, 5]
    with pytest.raises(ValueError, match="linearly dependent"):
        anneal(SparseProblem(A, instance.y), 4, frozen, initial_support=start)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_nonzero": 61}, "between 0 and N = 60; got 61"),
        ({"n_nonzero": -1}, "between 0 and N"),
        ({"n_nonzero": 2.5}, "integer"),
        ({"n_nonzero": True}, "integer"),
        ({"n_nonzero": 43}, "rank of A, which is 42"),
        ({"n_nonzero": 5, "n_chains": 0}, "n_chains"),
        ({"n_nonzero": 5, "random_state": -1}, "random_state"),
        ({"n_nonzero": 5, "random_state": "x"}, "random_state"),
        ({"n_nonzero": 5, "on_interrupt": "stop"}, "on_interrupt"),
        ({"n_nonzero": 5, "observables": {"distortion": np.sum}}, "cannot be called 'distortion'"),
    ],
)
def test_bad_arguments(instance, arguments, message):
    with pytest.raises(ValueError, match=message):
        anneal(instance.problem, schedule=SHORT, **arguments)


def test_a_schedule_must_be_one(instance):
    with pytest.raises(ValueError, match="must be a Schedule"):
        anneal(instance.problem, 5, "paper")


def test_nearly_dependent_columns_have_a_message_of_their_own():
    A = np.vander(np.linspace(0, 1, 200), 10)
    with pytest.raises(
        ValueError, match=r"within the rank of A, which is 10, but .* nearly dependent"
    ):
        anneal(SparseProblem(A, np.ones(200)), 9, SHORT)


def test_the_rank_is_named():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 6)) @ rng.standard_normal((6, 30))
    problem = SparseProblem(A, rng.standard_normal(20))
    assert anneal(problem, 6, SHORT, random_state=0).support.size == 6
    for k in (7, 19, 25):
        with pytest.raises(ValueError, match=f"n_nonzero = {k} exceeds the rank of A, which is 6"):
            anneal(problem, k, SHORT)


@pytest.mark.parametrize("k", [0, 8])
def test_nothing_to_choose(k):
    A, y = random_problem(np.random.default_rng(0), 10, 8)
    result = anneal(SparseProblem(A, y), k, SHORT, random_state=0, keep_samples=True)
    assert result.support.tolist() == list(range(8))[:k]
    assert result.energy == pytest.approx(qr_energy(A, y, range(k)), rel=1e-12)
    assert result.mean_energy[0] == pytest.approx(result.energy, rel=1e-9)


def test_a_zero_signal():
    A, _ = random_problem(np.random.default_rng(0), 10, 8)
    result = anneal(SparseProblem(A, np.zeros(10)), 3, random_state=0)
    assert result.energy == 0
    assert np.all(result.coef == 0)
    assert result.support.size == 3


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 10),
    n=st.integers(1, 14),
    kind=st.sampled_from(["gaussian", "duplicates", "correlated", "badly scaled", "low rank"]),
    log_scale=st.sampled_from([0, -100, 100, 37]),
    log_signal=st.sampled_from([0, -100, 100]),
    k=st.integers(-1, 15),
    damage=st.sampled_from([None, None, None, None, "nan", "zero signal", "short"]),
)
def test_a_valid_support_or_a_clear_error(seed, m, n, kind, log_scale, log_signal, k, damage):
    A, y = random_problem(np.random.default_rng(seed), m, n, kind if n >= 5 else "gaussian")
    A *= 10.0**log_scale
    y *= 10.0**log_signal
    if damage == "nan":
        A[0, n - 1] = np.nan
    elif damage == "zero signal":
        y[:] = 0
    elif damage == "short":
        y = y[:-1]
    unit = A / np.where(np.linalg.norm(A, axis=0) > 0, np.linalg.norm(A, axis=0), 1.0)
    try:
        result = anneal(SparseProblem(A, y), k, SHORT, random_state=seed)
    except ValueError as error:
        text = str(error)
        if damage == "nan":
            assert "NaN" in text
        elif damage == "short":
            assert "length" in text
        elif not 0 <= k <= n:
            assert f"between 0 and N = {n}; got {k}" in text
        else:
            rank = int(text.split("which is ")[1].split(":")[0].split(",")[0])
            assert rank == np.linalg.matrix_rank(unit)
            assert rank < k or "nearly dependent" in text
        return
    assert damage not in ("nan", "short")
    assert result.support.size == k == np.unique(result.support).size
    assert admissible(unit, result.support)
    expected = qr_energy(A, y, result.support)
    assert result.energy == pytest.approx(expected, rel=1e-9, abs=1e-14 * 0.5 * (y @ y))
    assert np.isfinite(result.coef).all()
    assert set(np.flatnonzero(result.coef)) <= set(result.support.tolist())


def test_progress_bar(instance, capsys, eager_bar):
    schedule = Schedule.geometric(0.1, 1.0, n=3, tau=2)
    anneal(instance.problem, 12, schedule, random_state=0, progress=True)
    assert "ε =" in capsys.readouterr().err


def test_the_trajectory_integrates_to_the_enumerated_entropy():
    """Free entropy and entropy by thermodynamic integration against the sum over all supports."""
    A, y = random_problem(np.random.default_rng(2), 9, 12)
    k = 4
    _, energies = enumerate_supports(A, y, k)
    schedule = Schedule.custom(
        np.concatenate((np.arange(0, 2, 0.1), np.geomspace(2, 20, 40))), 4000
    )
    trajectory = anneal(SparseProblem(A, y), k, schedule, random_state=0).trajectory
    mu = np.array(schedule.mu)[:, None]
    logs = np.log(np.sum(np.exp(-mu * energies), axis=1))
    mean = np.sum(energies * np.exp(-mu * energies), axis=1) / np.exp(logs)
    variance = np.sum(energies**2 * np.exp(-mu * energies), axis=1) / np.exp(logs) - mean**2
    # 4000 sweeps of 12 proposals: at least one independent sample in ten sweeps
    tolerance = 5 * np.sqrt(variance / 400)
    np.testing.assert_array_less(np.abs(trajectory["distortion"] * 9 - mean), tolerance)
    error = np.sqrt(np.cumsum((np.diff(mu[:, 0], prepend=0) * tolerance) ** 2)) / 12 + 1e-4
    assert np.all(np.abs(trajectory["free_entropy"] - logs / 12) < error)
    entropy = (logs + mu[:, 0] * mean) / 12
    assert np.all(np.abs(trajectory["entropy"] - entropy) < error + mu[:, 0] * tolerance / 12)
    late = anneal(SparseProblem(A, y), k, Schedule.geometric(1, 10, 5, 5)).trajectory
    assert np.isnan(late["entropy"]).all()


def test_fill_falls_back_to_pivots():
    """A random order can get stuck below the rank only by rounding; the pivots then decide."""
    A, y = random_problem(np.random.default_rng(0), 6, 10, "duplicates")
    workspace = Workspace(SparseProblem(A, y), 6)
    workspace.fill(6, np.array([0, 1, 2, 3, 4]))  # an order that holds three independent columns
    assert workspace.support.size == 6
    assert admissible(A, workspace.support)
