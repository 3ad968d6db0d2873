"""Settings that all tests share, and kernels that are compiled once for all workers.

On a fresh clone every kernel has to be compiled, which takes minutes. Two workers of ``make test`` would
compile the same kernels at the same time. Here each sampler is the job of one worker: a worker that
comes to a test with kernels takes the jobs that no other has taken, and waits until all are done. The
first worker begins with such a test, the others with tests that need no kernels, so none is idle.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("MPLBACKEND", "agg")
os.environ["L0ANNEAL_COMPILE_ASSISTANT"] = "0"  # the workers of pytest keep all cores busy

TESTS = Path(__file__).parent
WITHOUT_KERNELS = (
    "theory/",
    "cli/test_theory.py",
    "tasks/",
    "test_processes.py",
    "test_rooms.py",
)
LONG = (
    "estimators/",
    "statistical/",
    "reproduction/",
    "samplers/test_time_limits.py",
    "test_docs.py",
    "test_examples.py",
)
PATIENCE = 1200.0  # seconds; whoever compiles is done long before, or was killed


def is_in(places, path):
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).as_posix().startswith(places)


def needs_kernels(path):
    return not is_in(WITHOUT_KERNELS, path)


def pytest_collection_modifyitems(items):
    """Order the files: one that needs kernels, those that need none, long ones, the others."""
    first = next((item.path for item in items if needs_kernels(item.path)), None)

    def place(item):
        if item.path == first:
            return 0
        return 1 if not needs_kernels(item.path) else 2 if is_in(LONG, item.path) else 3

    items.sort(key=place)  # a stable sort: the order within a file stays
    for item in items:
        if "few_draws" in item.fixturenames:  # so few that chains may differ by chance
            item.add_marker(pytest.mark.filterwarnings("ignore:independent chains found different"))


@pytest.fixture(scope="module", autouse=True)
def _kernels(request):
    if "PYTEST_XDIST_WORKER" in os.environ and needs_kernels(request.path):
        request.getfixturevalue("compiled_kernels")


@pytest.fixture
def own_time(monkeypatch):
    """Let runs with a time limit count processor time, so that they get it on a busy machine too.

    On a quiet machine both clocks tell the same, where a call uses one thread and never waits.
    """
    monkeypatch.setattr(time, "perf_counter", time.process_time)


@pytest.fixture
def eager_bar(monkeypatch):
    """Draw progress bars at once and at each step, also where a run is shorter than the bar's delay."""
    from l0anneal.samplers import run

    bar = run.tqdm

    def eager(**options):
        return bar(**options | {"delay": 0.0, "mininterval": 0.0, "miniters": 1})

    monkeypatch.setattr(run, "tqdm", eager)


@pytest.fixture
def few_draws(monkeypatch):
    """Let evidence annealing draw forty times a chain, where a test does not ask how precise it is.

    By default it draws until the draws are worth 420 independent ones, which takes most of its time.
    """
    from l0anneal.samplers.evidence import posterior

    monkeypatch.setattr(posterior, "MOST_ROUNDS", 1)
    monkeypatch.setattr(posterior, "ROUND", 40)


@pytest.fixture(scope="session")
def compiled_kernels(tmp_path_factory, compilations):
    """Compile the kernels of all samplers, together with the other workers."""
    folder = tmp_path_factory.getbasetemp().parent  # the workers share it, and no other run has it
    for number, job in enumerate(compilations):
        with suppress(FileExistsError):
            (folder / f"compiling-{number}").touch(exist_ok=False)
            with suppress(Exception):  # reported by test_compilation.py and the sampler's tests
                job()
            (folder / f"compiled-{number}").touch()
    end = time.monotonic() + PATIENCE
    while not all((folder / f"compiled-{number}").exists() for number in range(len(compilations))):
        assert time.monotonic() < end, "another worker has not compiled its kernels"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def compilations():
    """Small runs that use every kernel; the first compiles what the others use too."""
    import l0anneal as l0

    rng = np.random.default_rng(0)
    A, y, atoms = (
        rng.standard_normal((12, 16)),
        rng.standard_normal(12),
        rng.standard_normal((16, 12)),
    )
    problem = l0.SparseProblem(A, y)
    short = l0.Schedule.geometric(0.1, 10.0, n=2, tau=1)
    return [
        lambda: l0.anneal(problem, 3, short, move="auto", random_state=0),
        lambda: l0.evidence_anneal(problem, random_state=0),
        lambda: l0.sparse_encode(y[None], atoms, 3, n_kicks=2, random_state=0),
        lambda: l0.anneal(problem, 3, short, move="multi flip", random_state=0),
        lambda: l0.population_anneal(problem, 3, short, population=4, random_state=0),
        lambda: l0.kick_search(problem, 3, n_kicks=2, random_state=0),
        lambda: l0.temper(problem, sizes=(2, 4), n_sweeps=20, random_state=0),
    ]
