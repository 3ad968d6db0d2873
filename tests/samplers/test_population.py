from math import comb, log

import numpy as np
import pytest

from helpers.reference import admissible, enumerate_supports, qr_energy, random_problem
from helpers.results import assert_same_fields
from l0anneal import PopulationResult, Schedule, SparseProblem, anneal, ensembles, population_anneal
from l0anneal.samplers.population.result import PopulationResult as Result

ARRAYS = [
    name
    for name in Result.__dataclass_fields__
    if name not in ("schedule", "seed", "seconds", "n_samples") and not name.startswith("sampled_")
]


@pytest.fixture(scope="module")
def instance():
    return ensembles.planted(40, 0.6, 0.15, sigma_xi2=0.01, support="fixed", random_state=0)


@pytest.fixture(scope="module")
def result(instance):
    return population_anneal(
        instance.problem, 6, population=100, tau=2, random_state=3, keep_samples=True
    )


def assert_same(a, b):
    assert_same_fields(a, b, ARRAYS)
    assert (a.schedule.mu, a.schedule.tau) == (b.schedule.mu, b.schedule.tau)


def test_the_answer(instance, result):
    assert result.energy == anneal(instance.problem, 6, n_chains=4, random_state=0).energy
    assert result.energy == pytest.approx(
        qr_energy(instance.A, instance.y, result.support), rel=1e-9
    )
    assert result.distortion == result.energy / 24
    assert set(np.flatnonzero(result.coef)) == set(result.support.tolist())


def test_one_seed_one_result_for_any_number_of_threads(instance, result):
    for n_jobs in (2, 3, -1):
        again = population_anneal(
            instance.problem, 6, population=100, tau=2, random_state=3, n_jobs=n_jobs
        )
        assert_same(result, again)
    other = population_anneal(
        instance.problem, 6, result.schedule, population=100, tau=2, random_state=4
    )
    assert not np.array_equal(other.log_g, result.log_g)


def test_the_executed_schedule_replays_exactly(instance, result):
    replayed = population_anneal(
        instance.problem, 6, result.schedule, population=100, random_state=result.seed
    )
    assert_same(result, replayed)
    assert replayed.schedule == result.schedule


def test_rows_on_demand_give_the_same_for_any_number_of_threads(instance, monkeypatch):
    """Where the Gram matrix comes by rows, what one thread has fetched must not matter."""
    monkeypatch.setattr("l0anneal.problem.scaled.WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr("l0anneal.problem.scaled.ROW_CACHE_BYTES", 10 * 8 * 40)
    for columns in (0, 2**20):
        monkeypatch.setattr("l0anneal.problem.scaled.COLUMN_BYTES", columns)
        runs = [
            population_anneal(
                SparseProblem(instance.A, instance.y),
                6,
                population=20,
                tau=1,
                mu_max=10.0,
                random_state=0,
                n_jobs=n_jobs,
            )
            for n_jobs in (1, 3)
        ]
        assert_same(*runs)
        assert not SparseProblem(instance.A, instance.y).gram_is_whole
        for support, energy in zip(runs[0].last_supports, runs[0].last_energies):
            assert energy == pytest.approx(qr_energy(instance.A, instance.y, support), rel=1e-8)


def test_each_step_has_the_overlap_asked_for(result):
    ess = result.trajectory["ess"].to_numpy()
    assert ess[0] == 1.0
    np.testing.assert_allclose(ess[1:-1], 0.9, rtol=1e-9)
    assert ess[-1] >= 0.9
    assert len(result.schedule) > 10


def test_trajectory(result):
    trajectory = result.trajectory
    assert trajectory["free_entropy"][0] == pytest.approx(log(comb(40, 6)) / 40, rel=1e-12)
    np.testing.assert_allclose(
        trajectory["entropy"],
        trajectory["free_entropy"] + trajectory["mu"] * trajectory["distortion"] * 24 / 40,
    )
    error = trajectory["free_entropy_error"] * 40
    np.testing.assert_allclose(trajectory["free_entropy_bias"] * 40, -0.5 * error**2)
    assert np.all(np.diff(trajectory["families"]) <= 0)
    assert int(trajectory["families"][-1]) == np.unique(result.family).size
    sizes = np.bincount(result.family)
    assert trajectory["rho_t"][-1] == pytest.approx(np.sum(sizes**2) / 100)
    last = trajectory.isel(mu=-1)
    assert last["distortion_std"] * 24 == pytest.approx(np.std(result.last_energies, ddof=1))
    assert result.samples.shape == (len(result.schedule), 100, 6)
    np.testing.assert_array_equal(result.samples[-1], result.last_supports)


def test_files_summary_and_plot(result, tmp_path):
    result.save(tmp_path / "run.npz")
    loaded = PopulationResult.load(tmp_path / "run.npz")
    assert_same(result, loaded)
    assert result.trajectory.identical(loaded.trajectory)
    assert result.samples.identical(loaded.samples)
    assert (loaded.seed, loaded.seconds) == (result.seed, result.seconds)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a saved PopulationResult"):
        PopulationResult.load(tmp_path / "other.npz")
    assert f"{result.distortion:.6g}" in result.summary()
    assert max(len(line) for line in result.summary().splitlines()) <= 80
    figure = result.plot()
    assert len(figure.axes) == 3
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)


def test_a_population_of_few_families_is_not_trusted(instance):
    """One huge step leaves the lowest replica's family alone."""
    quench = population_anneal(
        instance.problem, 6, Schedule.custom([0.0, 1e4], 1), population=50, random_state=0
    )
    assert quench.trusted.tolist() == [True, False]
    assert "beware" in quench.summary()
    assert quench.ess[-1] < 0.1


def test_samples_must_be_asked_for(instance):
    run = population_anneal(instance.problem, 6, population=10, mu_max=1.0, random_state=0)
    with pytest.raises(ValueError, match="keep_samples=True"):
        _ = run.samples


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_nonzero": 41}, "between 0 and N = 40; got 41"),
        ({"n_nonzero": 25}, "rank of A, which is 24"),
        ({"n_nonzero": 5, "population": 1}, "population must be an integer ≥ 2"),
        ({"n_nonzero": 5, "population": 2.5}, "population"),
        ({"n_nonzero": 5, "tau": 0}, "tau"),
        ({"n_nonzero": 5, "overlap": 1.0}, "overlap"),
        ({"n_nonzero": 5, "overlap": 0.0}, "overlap"),
        ({"n_nonzero": 5, "mu_max": -1.0}, "mu_max"),
        ({"n_nonzero": 5, "mu_max": float("inf")}, "mu_max"),
        ({"n_nonzero": 5, "mu_max": 1.0, "schedule": Schedule.custom([0.0], 1)}, "not both"),
        ({"n_nonzero": 5, "random_state": -1}, "random_state"),
    ],
)
def test_bad_arguments(instance, arguments, message):
    with pytest.raises(ValueError, match=message):
        population_anneal(instance.problem, **arguments)


@pytest.mark.parametrize("k", [0, 8])
def test_nothing_to_choose(k):
    A, y = random_problem(np.random.default_rng(0), 10, 8)
    run = population_anneal(SparseProblem(A, y), k, population=5, mu_max=3.0, random_state=0)
    energy = qr_energy(A, y, range(k))
    assert run.support.tolist() == list(range(8))[:k]
    assert run.log_g[-1] == pytest.approx(-3.0 * energy, rel=1e-9)
    assert run.integrated_log_g[-1] == pytest.approx(-3.0 * energy, rel=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1e-100, 1e100])
def test_scales_of_the_signal(scale):
    A, y = random_problem(np.random.default_rng(0), 10, 12)
    run = population_anneal(SparseProblem(A, scale * y), 3, population=20, random_state=0)
    assert run.support.size == 3
    assert np.isfinite(run.log_g).all()
    if scale:
        unit = population_anneal(SparseProblem(A, y), 3, population=20, random_state=0)
        np.testing.assert_array_equal(run.support, unit.support)
        np.testing.assert_allclose(run.log_g, unit.log_g, rtol=1e-6, atol=1e-6)


def test_dependent_columns_are_counted():
    """G(0) is the number of admissible supports, here estimated from the draws."""
    A, y = random_problem(np.random.default_rng(5), 7, 10, "duplicates")
    known, _ = enumerate_supports(A, y, 3)
    assert len(known) < comb(10, 3)
    run = population_anneal(
        SparseProblem(A, y), 3, Schedule.custom([0.0], 1), population=4000, random_state=0
    )
    assert 0 < run.log_g_error[0] < 0.02
    assert abs(run.log_g[0] - log(len(known))) < 3 * run.log_g_error[0]
    assert all(admissible(A, support) for support in run.last_supports[:200])


def test_supports_too_rare_to_draw():
    """Ten columns in forty copies each: hardly any ten are independent. G(0) stays open."""
    rng = np.random.default_rng(0)
    A = np.repeat(rng.standard_normal((12, 10)), 40, axis=1)
    run = population_anneal(
        SparseProblem(A, rng.standard_normal(12)), 10, population=5, mu_max=1.0, random_state=0
    )
    assert np.isnan(run.log_g).all()
    assert admissible(A, run.support)
    assert run.plot().axes


def test_progress_bar(instance, capsys, eager_bar):
    schedule = Schedule.custom(np.linspace(0, 1, 3), 2)
    population_anneal(instance.problem, 6, schedule, population=20, random_state=0, progress=True)
    assert "ε =" in capsys.readouterr().err
