"""What is wrong with a sweep is said before it runs, and a task that fails is reported at its end."""

import sys
from functools import partial

import numpy as np
import pytest

from helpers import sweeps
from l0anneal import Sweep
from l0anneal.sweeps.backends import workers
from l0anneal.sweeps.functions import import_name

GRID = {"a": [1, 2]}
DRAWN = {"n_columns": 20, "noise": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instance": "noise"}, "one of noise_only, planted, seeded, or a function; got 'noise'"),
        ({"solver": "lasso"}, "solver must be one of anneal, .*, or a function; got 'lasso'"),
        ({"measure": "mse"}, "measure must be a function; got 'mse'"),
        ({"solver": {}}, "texts as its labels, at least one"),
        ({"solver": {1: "anneal"}}, "texts as its labels"),
        ({"solver": {"x": ("anneal", 3)}}, "arguments of the solver 'x' must be a mapping; got 3"),
        ({"grid": [1, 2]}, "grid must be a mapping"),
        ({"grid": {"a": []}}, "no values for a; give at least one"),
        ({"grid": {"a": [1, 1.0]}}, "has 1 twice among the values of a"),
        ({"grid": {"a": [np.nan]}}, "values of a cannot be stored: .* must be finite"),
        ({"grid": {"a": object()}}, "values of a cannot be stored: .* plain data"),
        ({"grid": {"sample": [1]}}, "other than sample, solver, seconds, random_state"),
        ({"grid": {"z": [1]}}, "neither the instance nor the solver takes z; .*number takes a, b"),
        ({"n_samples": 0}, "n_samples must be an integer ≥ 1; got 0"),
        ({"random_state": None}, "random_state must be an integer ≥ 0; got None"),
        ({"revision": -1}, "revision must be an integer ≥ 0; got -1"),
        ({"instance": sweeps.no_seed}, "no_seed has no argument random_state; add one"),
        ({"instance": sweeps.gaussian, "grid": {"noise": 1}}, "gaussian needs n_columns; add it"),
        ({"solver": sweeps.fragile}, "the solver helpers.sweeps.fragile needs c; add it"),
        ({"solver": {"x": (sweeps.echo, {"d": 1})}}, "echo has no argument d; it takes c"),
        ({"solver": min}, "parameters of builtins.min cannot be found out; call it in a function"),
        ({"solver": {"x": (sweeps.echo, {"c": 1})}, "grid": {"c": [2]}}, "c is in the grid and"),
        (
            {"solver": {"x": sweeps.echo, "y": sweeps.returns_number}, "grid": {"c": [2]}},
            "c is in the grid, but helpers.sweeps.returns_number does not take it; give it as",
        ),
    ],
)
def test_wrong_input_is_refused_with_a_reason(change, message):
    good = {"instance": sweeps.number, "solver": sweeps.echo, "grid": GRID, "n_samples": 1}
    assert len(Sweep(**good)) == 2
    with pytest.raises(ValueError, match=message):
        Sweep(**{**good, **change})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "l0anneal.anneal needs n_nonzero"),
        ({"n_nonzero": 2, "rho": 0.1}, "takes n_nonzero or rho, and not both"),
        ({"n_nonzero": 2, "time_limit": 1}, "has no argument time_limit; it takes n_nonzero"),
        ({"n_nonzero": 2, "n_kicks": 1}, "has no argument n_kicks"),
    ],
)
def test_wrong_arguments_of_a_sampler_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Sweep(sweeps.gaussian, {"x": ("anneal", arguments)}, DRAWN, n_samples=1)


# ---------------------------------------------------------------- names of functions


def test_functions_that_no_process_can_import_are_refused():
    def closure(instance):
        return {"answer": 1}

    for function in (closure, lambda instance: {"answer": 1}, partial(sweeps.echo, c=1)):
        with pytest.raises(ValueError, match=r"another process can import.*@Sweep\.named"):
            Sweep(sweeps.number, function, GRID, n_samples=1)
        named = Sweep.named("a name")(function)
        assert Sweep(sweeps.number, named, GRID, n_samples=1).tasks()
    assert import_name(closure) == "named a name"
    with pytest.raises(ValueError, match="must be a text that is not empty; got ''"):
        Sweep.named("")


def test_a_function_that_another_one_hides_is_refused(monkeypatch):
    hidden = sweeps.echo
    assert import_name(hidden) == "helpers.sweeps.echo"
    monkeypatch.setattr(sweeps, "echo", sweeps.echo_again)
    with pytest.raises(ValueError, match="echo is not a function that another process can import"):
        import_name(hidden)


def test_a_function_of_a_script_has_the_name_of_the_script(monkeypatch):
    main = type(sys)("__main__")
    exec("def f(instance): return {}", vars(main))
    monkeypatch.setitem(sys.modules, "__main__", main)
    with pytest.raises(ValueError, match="in a notebook or at the prompt"):
        import_name(main.f)
    main.__file__ = "/somewhere/experiment.py"
    assert import_name(main.f) == "experiment.f"
    main.__spec__ = type("Spec", (), {"name": "package.experiment"})
    assert import_name(main.f) == "package.experiment.f"


# ---------------------------------------------------------------- which function takes what


def test_any_names_are_taken_if_nobody_lists_them(tmp_path):
    sweep = Sweep(sweeps.number, sweeps.any_names, {"a": 1, "c": [3, 4], "d": 5}, n_samples=1)
    task = sweep.tasks()[0]
    assert task.drawn_with == {"a": 1}  # listed by the instance alone
    assert task.solved_with == {"c": 3, "d": 5}
    sweep.run(tmp_path)
    np.testing.assert_array_equal(sweep.gather(tmp_path)["sum"], [[8], [9]])


def test_a_parameter_goes_to_all_who_list_it():
    grid = {"n_columns": 20, "alpha": 0.5, "rho_hat": 0.1, "rho": 0.1}
    (task,) = Sweep("planted", "kick_search", grid, n_samples=1).tasks()
    assert task.drawn_with == {"n_columns": 20, "alpha": 0.5, "rho_hat": 0.1}
    assert task.solved_with == {"rho": 0.1}


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_failed_tasks_are_reported_at_the_end_and_lose_nothing(tmp_path, n_jobs):
    sweep = Sweep(sweeps.number, sweeps.fragile, {"c": [1, 2, 3]}, n_samples=5)
    with pytest.warns(RuntimeWarning) as caught:
        done = sweep.run(tmp_path, n_jobs=n_jobs, backend="threads")
    (warning,) = caught
    text = str(warning.message)
    assert "5 tasks failed; the results of all others are stored" in text
    assert "RuntimeError: the parameter is two" in text
    assert '"arguments":{"c":2}' in text
    assert '"sample":' in text
    assert "and 2 more" in text
    assert warning.filename == __file__
    assert (done.n_run, len(done.failures)) == (10, 5)
    assert all("Traceback" in failure.details for failure in done.failures)
    data = sweep.gather(tmp_path)
    np.testing.assert_array_equal(data.answer.mean("sample"), [1, np.nan, 3])


@pytest.mark.parametrize(
    ("solver", "grid", "message"),
    [
        (sweeps.returns_text, {}, "returned str as answer"),
        (sweeps.returns_number, {}, "must return a mapping of names to numbers or arrays"),
        (sweeps.returns_parameter, {"c": 1}, "is none of c, sample, .* returned 'c'"),
        ("kick_search", {"n_nonzero": 1}, "need an instance that is a SparseProblem .* got dict"),
    ],
)
def test_a_wrong_result_is_a_failure_with_a_reason(tmp_path, solver, grid, message):
    sweep = Sweep(sweeps.number, solver, grid, n_samples=1)
    with pytest.warns(RuntimeWarning, match=message):
        done = sweep.run(tmp_path)
    assert done.n_run == 0


# ---------------------------------------------------------------- workers


@pytest.mark.parametrize("backend", ["loky", "dask", 3])
def test_an_unknown_backend_is_refused(tmp_path, backend):
    with pytest.raises(ValueError, match=r'"threads", "processes" or a dask.distributed.Client'):
        Sweep(sweeps.number, sweeps.echo, GRID, n_samples=1).run(tmp_path, backend=backend)
    assert not list(tmp_path.iterdir())


def test_without_distributed_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'l0anneal\[cluster\]'"):
        workers("dask")
    with pytest.raises(ValueError, match="must be"):
        workers("cluster")
