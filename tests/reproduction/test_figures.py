"""The figures of the report, and the sweeps that they need."""

import hashlib
from importlib import import_module
from pathlib import Path

import pytest

from l0anneal.reproduction import figures
from l0anneal.reproduction.figure import ReportFigure
from l0anneal.reproduction.figures import FIGURES, figure_names, sweeps_of
from l0anneal.reproduction.sweeps import tasks_of

BEYOND = ("equilibrium", "escape", "ground-state", "population")  # not the paper's own sizes
PAPER = tuple(name for name in FIGURES if name not in BEYOND)


def test_every_file_of_the_folder_is_a_figure_of_the_report():
    files = [path.stem for path in Path(figures.__file__).parent.glob("*.py")]
    modules = [import_module(f"{figures.__name__}.{name}") for name in files if name != "__init__"]
    assert all(isinstance(module.FIGURE, ReportFigure) for module in modules)
    assert {module.FIGURE.name for module in modules} == set(FIGURES)
    assert len(modules) == len(FIGURES)


@pytest.mark.parametrize(
    ("figures", "quick", "n_tasks", "digest"),
    [
        (PAPER, True, 493, "e4c0c6e3848f6179dd36ebeda8f94a5c7955f8a87e973bc6921fb057a4c7089b"),
        (PAPER, False, 12502, "914ce0c0967199a9e0a23a9a99daf4689febd86eae6a259d2a9237eb1877c8ac"),
        (BEYOND, True, 227, "f577c6fe4b0caba7bb4eaa18e38c2024712f4e25c9c4ba312c35b2121b04cf73"),
        (BEYOND, False, 7510, "1586b39aab768274a8196b502e26c9173ea8facde55d8ba751dadb610a3b0cfc"),
    ],
)
def test_the_tasks_stay_the_same(figures, quick, n_tasks, digest):
    """Stored results are found by their tasks' ids, so the ids must not change unintentionally."""
    ids = sorted(task.id for task in tasks_of(sweeps_of(figures, quick=quick)))
    assert len(ids) == n_tasks
    assert hashlib.sha256("\n".join(ids).encode()).hexdigest() == digest


def test_the_full_size_is_the_papers():
    full = sweeps_of()
    for name, parameters in {
        "easy": (0.8, 0.4, 0.2),
        "hard": (0.8, 0.55, 0.5),
        "metastable": (0.75, 0.65, 0.5),
        "rapid": (0.75, 0.55, 0.5),
        "noise": (0.5, 0.2, 0.0),
    }.items():
        found = full[name].parameters
        assert (found["alpha"], found["rho"], found["rho_hat"]) == parameters
        assert full[name].samples == {100: 100, 200: 100, 400: 100}
        assert full[name].solver["schedule"] == {"kind": "paper", "tau": 5}
    assert full["slow"].solver["schedule"]["tau"] == 100
    assert full["slow"].samples == {100: 100, 200: 100, 400: 100}
    # a hundred samples everywhere, except for the pictures of single runs
    singles = {"noisy-weak-one", "noisy-strong-one"}
    of_paper = sweeps_of(name for name in FIGURES if name not in BEYOND)
    counts = {name: set(sweep.samples.values()) for name, sweep in of_paper.items()}
    assert all(found == ({1} if name in singles else {100}) for name, found in counts.items())
    assert full["noise"].parameters["sigma_xi2"] == 1.0


@pytest.mark.parametrize("quick", [False, True])
def test_a_name_means_the_same_sweep_in_every_figure(quick):
    known = {}
    for figure in FIGURES.values():
        assert figure.sweeps(quick)
        for name, sweep in figure.sweeps(quick).items():
            assert known.setdefault(name, sweep) == sweep
    assert known == sweeps_of(FIGURES, quick=quick)


def test_the_quick_report_has_the_papers_figures():
    assert figure_names(quick=True) == list(PAPER)
    assert figure_names() == list(FIGURES)
    assert figure_names(BEYOND, quick=True) == list(BEYOND)
    assert sweeps_of(quick=True) == sweeps_of(PAPER, quick=True)


@pytest.mark.parametrize("quick", [False, True])
def test_sweeps_of_a_group_differ_in_rho_and_solver_alone(quick):
    groups = {}
    for sweep in sweeps_of(FIGURES, quick=quick).values():
        if sweep.group:
            kind = sweep.solver["kind"]
            groups.setdefault(sweep.group, {}).setdefault(kind, []).append(sweep.parameters)
    assert len(groups.pop("escape")) == 3  # its sweeps differ in the solver as well
    assert len(groups) == 5
    for by_kind in groups.values():
        for parameters in by_kind.values():
            assert len({p.pop("rho") for p in parameters}) == len(parameters) >= 2
            assert all(p == parameters[0] for p in parameters)


def test_shared_tasks_are_counted_once():
    both = tasks_of(sweeps_of(["noise-only", "time"]))
    assert len(both) == len({task.id for task in both})
    separate = [len(tasks_of(sweeps_of([name]))) for name in ("noise-only", "time")]
    assert len(both) < sum(separate)


def test_an_unknown_figure_is_named():
    with pytest.raises(ValueError, match="no figure fig7; there are easy"):
        sweeps_of(["fig7"])
