"""What all results have in common, and the trajectory of an annealing."""

import numpy as np
import pytest

from l0anneal import (
    AnnealResult,
    Schedule,
    anneal,
    ensembles,
    evidence_anneal,
    kick_search,
    population_anneal,
    subset_path,
    temper,
)


@pytest.fixture(scope="module")
def result():
    instance = ensembles.planted(50, 0.6, 0.1, random_state=3)
    return anneal(
        instance.problem,
        6,
        Schedule.paper(n=20, tau=2),
        n_chains=3,
        random_state=5,
        keep_samples=True,
        observables={"mse": instance.mse},
    )


def test_round_trip_is_exact(result, tmp_path):
    path = tmp_path / "run.npz"
    result.save(path)
    loaded = AnnealResult.load(path)
    for name in result.__dataclass_fields__:
        a, b = getattr(result, name), getattr(loaded, name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        elif isinstance(a, dict):
            assert a.keys() == b.keys()
            for key in a:
                np.testing.assert_array_equal(a[key], b[key])
        else:
            assert a == b
            assert type(a) is type(b)
    assert result.trajectory.identical(loaded.trajectory)
    assert result.chains.identical(loaded.chains)
    assert result.samples.identical(loaded.samples)


def test_files_hold_no_pickles(result, tmp_path):
    path = tmp_path / "run.npz"
    result.save(path)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a saved AnnealResult"):
        AnnealResult.load(tmp_path / "other.npz")


def test_trajectory_and_chains(result):
    trajectory = result.trajectory
    assert trajectory.sizes == {"mu": 20}
    assert set(trajectory) >= {"temperature", "distortion", "distortion_std", "acceptance"}
    assert set(trajectory) >= {"free_entropy", "entropy", "mse"}
    np.testing.assert_allclose(trajectory["temperature"] * trajectory["mu"], 1.0)
    np.testing.assert_allclose(
        trajectory["distortion"], result.chains["distortion"].mean("chain"), rtol=1e-12
    )
    assert result.chains.attrs["n_agree"] == result.chains["agrees"].sum() == result.n_agree >= 1
    assert result.distortion == result.energy / 30


def test_entropy_starts_at_the_number_of_supports(result):
    from math import comb, log

    assert result.trajectory["entropy"][0] == pytest.approx(log(comb(50, 6)) / 50, abs=1e-8)


def test_no_entropy_where_the_supports_are_not_counted():
    instance = ensembles.planted(10, 0.8, 0.2, random_state=0)
    from l0anneal import SparseProblem

    A = np.hstack([instance.A, instance.A])
    result = anneal(SparseProblem(A, instance.y), 3, Schedule.paper(n=5, tau=1), random_state=0)
    assert np.isnan(result.trajectory["entropy"]).all()


def test_summary_and_plot(result):
    assert f"{result.distortion:.6g}" in result.summary()
    assert max(len(line) for line in result.summary().splitlines()) <= 80
    figure = result.plot()
    assert len(figure.axes) == 3
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)


@pytest.fixture(scope="module")
def instance():
    return ensembles.planted(40, 0.8, 0.1, sigma_xi2=0.05, support="fixed", random_state=3)


RUNS = {
    "anneal": lambda i, **run: anneal(i.problem, 4, Schedule.paper(10, 1), **run),
    "kick_search": lambda i, **run: kick_search(i.problem, 4, n_kicks=5, **run),
    "temper": lambda i, **run: temper(i.problem, 4, n_sweeps=20, **run),
    "temper, sizes": lambda i, **run: temper(i.problem, sizes=(2, 4), n_sweeps=20, **run),
    "population_anneal": lambda i, **run: population_anneal(i.problem, 4, population=20, **run),
    "evidence_anneal": lambda i, **run: evidence_anneal(i.problem, n_draws=20, **run),
    "subset_path": lambda i, **run: subset_path(i.A, i.y, 4, cv=3, **run),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_result_can_be_read_saved_and_drawn(instance, name, tmp_path):
    result = RUNS[name](instance, random_state=1)
    assert result.seed == 1
    assert result.seconds > 0
    assert result.interrupted is False
    assert result.ended
    assert result.ended in result.summary()
    assert max(map(len, result.summary().splitlines())) <= 100
    assert type(result).__name__ in repr(result)
    assert len(repr(result).splitlines()) <= 15
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + len(result.table()) > 1
    assert result.to_dict()["seed"] == 1
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in result.plot().axes)
    result.save(tmp_path / "result.npz")
    loaded = type(result).load(tmp_path / "result.npz")
    assert loaded.summary() == result.summary()
    assert loaded.to_dict() == result.to_dict()
    for field in result.__dataclass_fields__:
        a, b = getattr(result, field), getattr(loaded, field)
        assert type(a) is type(b), field
        np.testing.assert_equal(b, a, err_msg=field)


@pytest.mark.parametrize("name", RUNS)
def test_one_meaning_of_the_common_arguments(instance, name):
    """Two threads, a bar and another answer to Ctrl-C change no result."""
    arguments = {"n_jobs": 2, "progress": True, "on_interrupt": "return", "random_state": 1}
    again = RUNS[name](instance, **arguments)
    first = RUNS[name](instance, random_state=1)
    assert again.to_dict() | {"seconds": 0} == first.to_dict() | {"seconds": 0}
    with pytest.raises(ValueError, match="on_interrupt must be one of"):
        RUNS[name](instance, on_interrupt="ignore")
    with pytest.raises(ValueError, match="time_limit, in seconds"):
        RUNS[name](instance, time_limit=0.0)
