"""The sampler that CONTRIBUTING shows: a file of its own, and everything else comes with the run."""

import re
from pathlib import Path

import numpy as np
import pytest

from helpers.processes import child
from l0anneal import ensembles

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
SOURCE = re.search(r'```python\n("""Random restart search.*?)^```', PAGE, re.S | re.M)[1]


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    import importlib.util

    path = tmp_path_factory.mktemp("sampler") / "restart_search.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("restart_search", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def problem():
    return ensembles.noise_only(60, 0.5, random_state=0).problem


def test_it_is_short():
    assert len(SOURCE.splitlines()) < 120


def test_seeds_threads_and_files(module, problem, tmp_path, capsys):
    first = module.restart_search(problem, 12, n_restarts=10, random_state=3)
    again = module.restart_search(
        problem, 12, n_restarts=10, n_jobs=2, random_state=3, progress=True
    )
    np.testing.assert_array_equal(again.support, first.support)
    one = module.restart_search(problem, 12, n_restarts=1, random_state=3)
    assert first.energy < one.energy
    first.save(tmp_path / "run.npz")
    assert module.RestartResult.load(tmp_path / "run.npz").summary() == first.summary()
    assert "restarts     10" in first.summary()


def test_a_time_limit_is_used_and_replays(own_time, module, problem):
    limited = module.restart_search(problem, 12, time_limit=0.5, random_state=3, n_jobs=2)
    assert limited.ended == "time limit"
    assert limited.seconds > 0.8 * 0.5
    again = module.restart_search(problem, 12, n_restarts=limited.n_restarts, random_state=3)
    np.testing.assert_array_equal(again.support, limited.support)
    assert again.ended == "all restarts were made"


def test_ctrl_c_returns_the_best_so_far(module, tmp_path):
    code = (
        SOURCE
        + """

from l0anneal import ensembles
problem = ensembles.noise_only(60, 0.5, random_state=0).problem
restart_search(problem, 12, n_restarts=1)
advance = Run.advance


def first(run, *arguments):
    print("step", flush=True)
    Run.advance = advance
    advance(run, *arguments)


Run.advance = first
result = restart_search(problem, 12, time_limit=1000.0, n_jobs=2, on_interrupt="return")
print(result.interrupted, result.support.size, result.ended)
"""
    )
    with child(code) as process:
        process.wait_for("step", timeout=300)
        process.interrupt()
        ended = process.finish(timeout=60)
    assert "True 12 interrupted by the user" in ended.stdout
