"""One seed, one result: for all workers, orders and shares, and with the same instances."""

import os
import sys

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import sweeps
from helpers.tasks import assert_same_arrays
from l0anneal import Schedule, Sweep, anneal, ensembles, kick_search
from l0anneal.sweeps.samplers import SAMPLERS, Sampler
from l0anneal.sweeps.task import run_task
from l0anneal.tasks import Store, collect, shard_of

SMALL = {"a": [1, 2], "b": 7, "c": [3, 4, 5]}


def small(solver=sweeps.echo, **options):
    return Sweep(sweeps.number, solver, SMALL, **{"n_samples": 4, **options})


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Return the results of one worker."""
    store = Store(tmp_path_factory.mktemp("reference"))
    assert sweeps.two_samplers().run(store).n_run == 8
    return store


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_two_workers_give_the_bits_of_one(reference, tmp_path, backend):
    sweep = sweeps.two_samplers()
    done = sweep.run(tmp_path, n_jobs=2, backend=backend)
    assert (done.n_run, done.n_skipped, done.failures) == (8, 0, [])
    assert_same_arrays(reference, Store(tmp_path), sweep.tasks())


def test_the_order_of_tasks_does_not_matter(reference, tmp_path):
    tasks = sweeps.two_samplers().tasks()
    store = Store(tmp_path)
    for task in reversed(tasks):  # collect sorts by hash, so each is run by itself
        collect([task], store, run_task)
    assert_same_arrays(reference, store, tasks)


def test_shards_together_are_the_whole(reference, tmp_path):
    sweep = sweeps.two_samplers()
    counts = [sweep.run(tmp_path, shard=(i, 3)).n_run for i in (1, 2, 3)]
    assert sorted(counts) == [2, 3, 3]
    assert sweep.missing(tmp_path) == []
    xr.testing.assert_identical(
        sweep.gather(tmp_path).drop_vars("seconds").drop_attrs(),
        sweep.gather(reference).drop_vars("seconds").drop_attrs(),
    )


def test_a_function_of_a_notebook_runs_in_other_processes_if_it_is_named(tmp_path):
    shift = 5
    solver = Sweep.named("shifted")(lambda instance, c: {"answer": c + shift})
    sweep = Sweep(sweeps.number, solver, {"c": [1, 2]}, n_samples=2)
    assert sweep.run(tmp_path, n_jobs=2, backend="processes").failures == []
    np.testing.assert_array_equal(sweep.gather(tmp_path).answer, [[6, 6], [7, 7]])


@pytest.fixture(scope="module")
def client():
    """Start a Dask cluster inside this process."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with (
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_dask_client_gives_the_bits_of_one(reference, tmp_path, client):
    sweep = sweeps.two_samplers()
    assert sweep.run(tmp_path, backend=client).n_run == 8
    assert_same_arrays(reference, Store(tmp_path), sweep.tasks())


def test_tasks_run_on_the_workers_that_were_asked_for(tmp_path, client):
    sweep = Sweep(sweeps.number, sweeps.place, {}, n_samples=3)

    def places(name, **options):
        assert sweep.run(tmp_path / name, **options).failures == []
        return sweep.gather(tmp_path / name)

    alone, threads = places("alone"), places("threads", n_jobs=2, backend="threads")
    assert alone.main.all()
    assert not threads.main.any()
    assert (threads.process == os.getpid()).all()
    assert not threads.dask.any()
    assert (places("processes", n_jobs=2, backend="processes").process != os.getpid()).all()
    assert places("dask", backend=client).dask.all()


def test_kernels_of_each_sampler_are_ready_before_the_workers_start(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(Sampler, "get_ready", lambda sampler: order.append(sampler.name))
    monkeypatch.setattr(
        sys.modules["l0anneal.sweeps.sweep"],
        "run_task",
        lambda task: (order.append("task") or {"answer": np.zeros(1)}, 0.0),
    )
    assert sweeps.two_samplers().run(tmp_path).n_run == 8
    assert order == ["l0anneal.anneal", "l0anneal.kick_search", *["task"] * 8]


# ---------------------------------------------------------------- instances and seeds


def test_all_solvers_run_on_the_same_instances(tmp_path):
    several = small({"one": sweeps.echo, "two": (sweeps.echo_again, {})})
    several.run(tmp_path)
    data = several.gather(tmp_path)
    one, two = data.sel(solver="one"), data.sel(solver="two")
    np.testing.assert_array_equal(one.instance, two.instance)
    assert not np.isin(one.own, two.own).any()  # their own random numbers differ
    # a parameter of the solver alone does not change instances, all others do
    assert (np.ptp(one.instance.values, axis=1) == 0).all()
    assert np.unique(one.instance).size == 2 * 4
    assert np.unique(data.own).size == len(several) == 48
    # another sweep, with other values, has the same ones where they meet
    other = Sweep(sweeps.number, sweeps.echo, {"a": 2, "b": 7, "c": 99}, n_samples=6)
    other.run(tmp_path)
    found = other.gather(tmp_path)
    np.testing.assert_array_equal(found.instance[:4], one.instance.sel(a=2, c=3))


def test_the_instance_of_a_task_can_be_drawn_again():
    task = sweeps.two_samplers().tasks()[-1]
    again = sweeps.gaussian(20, 1.0, random_state=task.instance_seed)
    np.testing.assert_array_equal(task.draw().A, again.A)


def test_the_seed_changes_everything_and_the_revision_only_the_ids():
    first = small().tasks()
    for other, same in ((small(random_state=1), False), (small(revision=1), True)):
        pairs = list(zip(first, other.tasks()))
        assert all(a.id != b.id for a, b in pairs)
        assert all((a.instance_seed == b.instance_seed) is same for a, b in pairs)
        assert all((a.solver_seed == b.solver_seed) is same for a, b in pairs)


def test_a_measure_changes_ids_and_no_random_numbers():
    options = {"n_columns": 20, "noise": 0.1, "n_nonzero": 3}
    plain = Sweep(sweeps.gaussian, "anneal", options, n_samples=1).tasks()[0]
    measured = Sweep(
        sweeps.gaussian, "anneal", options, n_samples=1, measure=sweeps.trajectory
    ).tasks()[0]
    assert plain.id != measured.id
    assert plain.solver_seed == measured.solver_seed


def test_seeds_never_change():
    """The same sweep must have the same random numbers in later versions."""
    task = small().tasks()[0]
    assert hex(task.instance_seed)[-8:] == "f1fde21c"
    assert hex(task.solver_seed)[-8:] == "793d5bfc"


parameter = st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True)


@given(
    a=parameter,
    b=parameter | st.integers(0, 99),
    c=parameter,
    n_samples=st.integers(1, 3),
    n_shards=st.integers(1, 7),
)
@settings(max_examples=50, deadline=None)
def test_any_grid_has_each_task_once(a, b, c, n_samples, n_shards):
    sweep = Sweep(sweeps.number, sweeps.echo, {"a": a, "b": b, "c": c}, n_samples=n_samples)
    tasks = sweep.tasks()
    n_b = len(b) if isinstance(b, list) else 1
    assert len(sweep) == len(tasks) == len(set(tasks)) == len(a) * n_b * len(c) * n_samples
    assert len({task.instance_seed for task in tasks}) == len(a) * n_b * n_samples
    assert len({task.solver_seed for task in tasks}) == len(tasks)
    shares = [shard_of(tasks, (i, n_shards)) for i in range(1, n_shards + 1)]
    assert sorted(t.id for share in shares for t in share) == sorted(t.id for t in tasks)


# ---------------------------------------------------------------- samplers of the package


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_is_known_by_its_name_and_by_itself(name):
    function, arguments = SAMPLERS[name]
    grid = {"n_columns": 20, "noise": 0.1}
    by_name = Sweep(sweeps.gaussian, {"x": (name, arguments)}, grid, n_samples=1).tasks()
    by_itself = Sweep(sweeps.gaussian, {"x": (function, arguments)}, grid, n_samples=1).tasks()
    assert by_name == by_itself
    assert f'"function":"l0anneal.{name}"' in by_name[0].to_json()


def test_a_task_is_the_call_that_it_describes():
    grid = {"n_columns": 30, "alpha": 0.5, "rho_hat": 0.1, "rho": 0.2, "tau": 2}
    (task,) = Sweep("planted", "anneal", grid, n_samples=1).tasks()
    arrays, _ = run_task(task)
    instance = ensembles.planted(30, 0.5, 0.1, random_state=task.instance_seed)
    schedule = Schedule.automatic(instance.problem, 6, tau=2)
    result = anneal(instance.problem, 6, schedule, random_state=task.solver_seed)
    expected = {
        "distortion": result.distortion,
        "size": 6,
        "mse": instance.mse(result.coef),
        "n_planted": instance.support.size,
        "n_found": np.isin(result.support, instance.support).sum(),
    }
    assert {name: float(value) for name, value in arrays.items()} == expected


def test_an_instance_may_be_a_problem_without_a_truth():
    grid = {"n_columns": 20, "n_nonzero": 2, "n_kicks": 3}
    (task,) = Sweep(sweeps.bare_problem, kick_search, grid, n_samples=1).tasks()
    arrays, _ = run_task(task)
    assert sorted(arrays) == ["distortion", "size"]
