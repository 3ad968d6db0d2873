"""``benchmarks/rerun.py`` passes on a report that can be repeated, and fails on one that cannot."""

import importlib
from pathlib import Path

import pytest

from l0anneal.reproduction import Store, collect
from l0anneal.reproduction.datasets import gather, write_data
from l0anneal.reproduction.figures import sweeps_of
from l0anneal.reproduction.sweeps import tasks_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def rerun(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("rerun")


@pytest.fixture
def report(tmp_path):
    """A report of which only the pursuits are finished."""
    sweeps = sweeps_of(["noise-only"], quick=True)
    store = Store(tmp_path / "tasks")
    assert collect(tasks_of({"omp": sweeps["omp"]}), store, n_jobs=1).failures == []
    data = {name: gather(sweep, store) for name, sweep in sweeps.items()}
    write_data(tmp_path / "data", sweeps, data, {"quick": True, "figures": ["noise-only"]})
    return tmp_path


def test_samples_that_can_be_repeated_are_the_same(rerun, report, capsys):
    assert rerun.main([str(report), "--samples", "4"]) == 0
    assert "4 of 4 samples are the same to the last bit" in capsys.readouterr().out


@pytest.mark.parametrize("change", ["last bit", "missing", "additional"])
def test_a_sample_that_comes_out_otherwise_is_named(rerun, report, capsys, monkeypatch, change):
    def other(task):
        arrays, seconds = rerun_run(task)
        if task.sample == 3:
            if change == "last bit":
                arrays["distortion"].view("i8")[...] += 1
            elif change == "missing":
                del arrays["distortion"]
            else:
                arrays["energy"] = arrays["distortion"]
        return arrays, seconds

    rerun_run = rerun.run
    monkeypatch.setattr(rerun, "run", other)
    assert rerun.main([str(report), "--samples", "100"]) == 1
    out = capsys.readouterr().out
    name = "energy" if change == "additional" else "distortion"
    assert out.count(f"sample 3: differs: {name}") == 2  # at two sizes
    assert out.count("differs") == 2
