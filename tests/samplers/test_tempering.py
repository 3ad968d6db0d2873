import numpy as np
import pytest

from helpers.reference import enumerate_supports, qr_energy, random_problem
from helpers.results import assert_same_fields
from l0anneal import RunTooShort, SparseProblem, TemperResult, anneal, ensembles, temper
from l0anneal.samplers.autocorrelation import autocorrelation_time


@pytest.fixture(scope="module")
def instance():
    return ensembles.noise_only(30, 0.6, random_state=0)


@pytest.fixture(scope="module")
def result(instance):
    return temper(
        instance.problem, 5, mu_max=20.0, n_sweeps=1500, random_state=3, keep_samples=True
    )


@pytest.fixture(scope="module")
def path(instance):
    return temper(instance.problem, sizes=(1, 6), mu_max=6.0, n_sweeps=3000, random_state=3)


def assert_same(a, b):
    assert_same_fields(a, b, set(TemperResult.__dataclass_fields__) - {"seconds"})


def test_the_answer(instance, result):
    assert result.energy == anneal(instance.problem, 5, n_chains=4, random_state=0).energy
    assert result.energy == pytest.approx(qr_energy(instance.A, instance.y, result.support))
    assert result.distortion == result.energy / 18


def test_the_pilot_evens_the_exchange_rates(result):
    assert not result.refusals
    assert result.ladder[-1] == pytest.approx(20.0)
    assert result.exchange_rate.max() - result.exchange_rate.min() < 0.25
    assert result.exchange_rate.min() > 0.35
    assert result.round_trips >= 10
    assert np.all(result.autocorrelation >= 1 / 1500)
    assert result.samples.shape == (1500, result.ladder.size, 5)


@pytest.mark.parametrize("arguments", [{"n_nonzero": 5}, {"sizes": (0, 4)}])
def test_one_seed_one_result_for_any_number_of_threads(instance, arguments):
    runs = [
        temper(
            instance.problem,
            n_sweeps=40,
            n_replicas=5,
            random_state=1,
            n_jobs=n_jobs,
            keep_samples=True,
            **arguments,
        )
        for n_jobs in (None, 2, 3)
    ]
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])


def test_rows_on_demand(instance, monkeypatch):
    whole = temper(instance.problem, 5, n_sweeps=30, n_replicas=3, random_state=1)
    monkeypatch.setattr("l0anneal.problem.scaled.WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr("l0anneal.problem.scaled.ROW_CACHE_BYTES", 8 * 8 * 30)
    problem = SparseProblem(instance.A, instance.y)
    assert not problem.gram_is_whole
    rows = temper(problem, 5, n_sweeps=30, n_replicas=3, random_state=1)
    np.testing.assert_array_equal(rows.support, whole.support)
    sizes = temper(problem, sizes=(2, 5), n_sweeps=30, n_replicas=3, random_state=1)
    for k, support, energy in zip(sizes.sizes, sizes.best_supports, sizes.best_energies):
        assert energy == pytest.approx(qr_energy(instance.A, instance.y, support[:k]), rel=1e-9)


def test_a_short_run_refuses(instance):
    short = temper(instance.problem, 5, n_sweeps=30, random_state=0, keep_samples=True)
    assert any("round trips" in reason for reason in short.refusals)
    assert "too short" in short.summary()
    for name in ("trajectory", "samples"):
        with pytest.raises(RunTooShort, match="are needed"):
            getattr(short, name)
    assert short.support.size == 5
    assert short.exchanges.attrs["round_trips"] == short.round_trips
    assert short.plot().axes


def test_too_few_rungs_are_refused(instance):
    gap = temper(instance.problem, 5, ladder=[0.01, 1e4], n_sweeps=200, random_state=0)
    assert any("more replicas" in reason for reason in gap.refusals)


def test_a_run_that_still_relaxes_is_refused(instance):
    """One cold rung, begun at random, with no pilot to speak of."""
    cold = temper(instance.problem, 5, ladder=[1e4], n_sweeps=20, n_pilot=1, random_state=0)
    lone = temper(instance.problem, 5, ladder=[0.5], n_sweeps=2000, random_state=0)
    assert not lone.refusals
    assert cold.refusals


def test_all_sizes_are_visited(instance, path):
    assert not path.refusals
    assert path.sizes.tolist() == [1, 2, 3, 4, 5, 6]
    share = path.visits / path.visits.sum(axis=1, keepdims=True)
    assert share.min() > 0.2 / 6
    assert path.size_trips >= 10
    _, energies = enumerate_supports(instance.A, instance.y, 2)
    assert path.best_energies[1] == pytest.approx(energies.min(), rel=1e-9)
    assert np.all(np.diff(path.best_energies) < 0)
    for k, support, energy in zip(path.sizes, path.best_supports, path.best_energies):
        assert np.all(support[k:] == -1)
        assert energy == pytest.approx(qr_energy(instance.A, instance.y, support[:k]), rel=1e-9)
    assert path.path["coef"].sel(size=3).astype(bool).sum() == 3


def test_files_summary_and_plot(result, path, tmp_path):
    for run in (result, path):
        run.save(tmp_path / "run.npz")
        loaded = TemperResult.load(tmp_path / "run.npz")
        assert_same(run, loaded)
        assert run.trajectory.identical(loaded.trajectory)
        figure = run.plot()
        assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)
        assert f"{run.distortion:.6g}" in run.summary()
    with pytest.raises(ValueError, match="keep_samples=True"):
        _ = path.samples
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a saved TemperResult"):
        TemperResult.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either n_nonzero or sizes"),
        ({"n_nonzero": 3, "sizes": (1, 3)}, "either n_nonzero or sizes"),
        ({"n_nonzero": 31}, "between 0 and N = 30"),
        ({"n_nonzero": 19}, "rank of A, which is 18"),
        ({"sizes": (4, 3)}, "k_min ≤ k_max"),
        ({"sizes": 3}, "pair"),
        ({"sizes": (1, 19)}, "rank of A, which is 18"),
        ({"n_nonzero": 3, "n_sweeps": 1}, "n_sweeps"),
        ({"n_nonzero": 3, "n_pilot": 0}, "n_pilot"),
        ({"n_nonzero": 3, "n_replicas": 1}, "n_replicas"),
        ({"n_nonzero": 3, "n_replicas": 10_000}, "n_replicas"),
        ({"n_nonzero": 3, "mu_max": 0.0}, "mu_max"),
        ({"n_nonzero": 3, "ladder": [1.0, 0.5]}, "ascend"),
        ({"n_nonzero": 3, "ladder": []}, "ladder"),
        ({"n_nonzero": 3, "ladder": [-1.0]}, "ladder"),
        ({"n_nonzero": 3, "ladder": [1.0], "n_replicas": 3}, "not both"),
    ],
)
def test_bad_arguments(instance, arguments, message):
    with pytest.raises(ValueError, match=message):
        temper(instance.problem, **arguments)


@pytest.mark.parametrize("k", [0, 8])
def test_nothing_to_choose(k):
    A, y = random_problem(np.random.default_rng(0), 10, 8)
    run = temper(SparseProblem(A, y), k, n_sweeps=200, random_state=0)
    assert run.support.tolist() == list(range(8))[:k]
    assert run.energy == pytest.approx(qr_energy(A, y, range(k)), rel=1e-9)


def test_a_zero_signal():
    A, _ = random_problem(np.random.default_rng(0), 10, 8)
    run = temper(SparseProblem(A, np.zeros(10)), sizes=(1, 3), n_sweeps=50, random_state=0)
    assert run.energy == 0.0


def test_autocorrelation_of_odd_series():
    assert autocorrelation_time(np.ones(10)) == 1.0
    with pytest.raises(ValueError, match="two steps"):
        autocorrelation_time([1.0])
