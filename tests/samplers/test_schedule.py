import json

import numpy as np
import pytest

from l0anneal import Schedule, SparseProblem, anneal, ensembles


def test_paper():
    schedule = Schedule.paper()
    assert len(schedule) == 100
    assert schedule.mu[0] == 1e-8
    np.testing.assert_allclose(schedule.mu, [1e-8 + 1.1 ** (a - 1) - 1 for a in range(1, 101)])
    assert schedule.mu[-1] == pytest.approx(1.2527e4, rel=1e-4)
    assert set(schedule.tau) == {5}
    assert schedule.n_sweeps == 500


def test_geometric_and_custom():
    schedule = Schedule.geometric(2.0, 500.0, 5, 7)
    np.testing.assert_allclose(np.diff(np.log(schedule.mu)), np.log(250) / 4)
    assert schedule.tau == (7,) * 5
    assert list(Schedule.custom([0, 1.5], [1, 2])) == [(0.0, 1), (1.5, 2)]


def test_logarithmic_keeps_the_guarantee_at_every_sweep():
    schedule = Schedule.logarithmic(3.0, n=50, tau=4)
    temperature = np.repeat(1 / np.array(schedule.mu), schedule.tau)
    t = np.arange(temperature.size)
    assert np.all(temperature >= 3.0 / np.log(t + 2) * (1 - 1e-12))


def test_automatic_scales_with_the_problem():
    instance = ensembles.noise_only(60, 0.5, random_state=0)
    base = Schedule.automatic(instance.problem, 12)
    assert base.mu[0] == 0
    for a, b in [(3.7, 1.0), (1.0, 0.01), (1e-5, 1e7)]:
        scaled = Schedule.automatic(SparseProblem(a * instance.A, b * instance.y), 12)
        np.testing.assert_allclose(scaled.mu, np.array(base.mu) / b**2, rtol=1e-9)
        result = anneal(SparseProblem(a * instance.A, b * instance.y), 12, random_state=3)
        expected = anneal(instance.problem, 12, random_state=3)
        np.testing.assert_array_equal(result.support, expected.support)
        np.testing.assert_allclose(result.coef, expected.coef * b / a, rtol=1e-9)


def test_automatic_spans_hot_to_cold():
    instance = ensembles.noise_only(100, 0.5, random_state=0)
    result = anneal(instance.problem, 20, random_state=0)
    acceptance = result.trajectory["acceptance"].to_numpy()
    assert acceptance[0] == 1.0
    assert acceptance[15] > 0.4
    assert acceptance[-5:].max() < 0.02


@pytest.mark.parametrize("k", [0, 5])
def test_automatic_where_nothing_can_move(k):
    schedule = Schedule.automatic(SparseProblem(np.eye(5), np.ones(5)), k)
    assert len(schedule) == 100


def test_json_round_trip_is_exact(tmp_path):
    schedule = Schedule.automatic(ensembles.noise_only(30, 0.5, random_state=0).problem, 5)
    schedule.save(tmp_path / "s.json")
    assert Schedule.load(tmp_path / "s.json") == schedule
    assert json.loads((tmp_path / "s.json").read_text())["name"] == "automatic"
    with pytest.raises(ValueError, match="a schedule is"):
        Schedule.from_dict({"mu": [1.0]})


def test_immutable_and_readable():
    schedule = Schedule.paper()
    with pytest.raises(AttributeError):
        schedule.mu = (1.0,)
    assert "100 temperatures" in repr(schedule)
    ax = schedule.plot()
    assert "sweeps" in ax.get_xlabel()
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule.custom([], 5), "at least one"),
        (lambda: Schedule.custom([1, 2], [1]), "2 of mu and 1 of tau"),
        (lambda: Schedule.custom([-1, 1], 5), "≥ 0"),
        (lambda: Schedule.custom([np.nan], 5), "finite"),
        (lambda: Schedule.custom([1], 0), "at least one sweep"),
        (lambda: Schedule.custom([1], 1.5), "integer"),
        (lambda: Schedule.paper(n=0), "n must be an integer"),
        (lambda: Schedule.geometric(0, 1), "0 < mu_min"),
        (lambda: Schedule.geometric(5, 1), "mu_min ≤ mu_max"),
        (lambda: Schedule.logarithmic(-1), "amplitude"),
    ],
)
def test_bad_schedules(make, message):
    with pytest.raises(ValueError, match=message):
        make()
