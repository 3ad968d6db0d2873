import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.tasks import ANNEAL, NOISE, PLANTED, tasks
from l0anneal._util.provenance import ENGINE
from l0anneal.reproduction import Task
from l0anneal.reproduction.solvers import run
from l0anneal.reproduction.task import ENGINES
from l0anneal.tasks.task import canonical_json

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(plain)
def test_canonical_json_keeps_the_content(content):
    text = canonical_json(content)
    assert json.loads(text) == content
    assert canonical_json(json.loads(text)) == text


def test_only_solvers_whose_numbers_changed_have_another_engine():
    evidence = Task(NOISE, {"kind": "evidence"}, 1)
    assert Task(NOISE, ANNEAL, 1).engine == 2
    assert evidence.engine == ENGINES["evidence"]
    assert max(ENGINES.values()) <= ENGINE


def test_the_id_depends_on_the_content_and_on_nothing_else():
    task = Task(NOISE, ANNEAL, 1)
    shuffled = dict(reversed(NOISE.items()))
    assert Task(shuffled, ANNEAL, 1) == task
    assert Task({**NOISE, "n_columns": np.int64(40), "alpha": np.float64(0.5)}, ANNEAL, 1) == task
    assert Task({**NOISE, "n_columns": 40.0}, ANNEAL, 1).id == task.id
    assert Task.from_json(task.to_json()) == task
    different = [
        Task(NOISE, ANNEAL, 2),
        Task({**NOISE, "alpha": 0.5 + 1e-15}, ANNEAL, 1),
        Task(NOISE, {**ANNEAL, "rho": 0.25}, 1),
        Task(NOISE, {**ANNEAL, "polish": True}, 1),
    ]
    assert len({task.id, *(other.id for other in different)}) == 5
    assert len({hash(t) for t in different}) == 4


def test_ids_and_seeds_are_the_same_in_another_process():
    task = Task(PLANTED, ANNEAL, 3)
    program = (
        "import sys; from l0anneal.reproduction import Task; "
        "t = Task.from_json(sys.argv[1]); print(t.id, t.seed, t.instance_seed)"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, task.to_json()],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert out == [task.id, str(task.seed), str(task.instance_seed)]


def test_solvers_run_on_the_same_instances_with_their_own_random_streams():
    a = Task(PLANTED, ANNEAL, 0)
    b = Task(PLANTED, {**ANNEAL, "rho": 0.4}, 0)
    assert a.instance_seed == b.instance_seed
    assert a.seed != b.seed
    assert Task(PLANTED, ANNEAL, 1).instance_seed != a.instance_seed
    every = tasks(20)
    assert len({task.seed for task in every}) == len(every)


@pytest.mark.parametrize("task", tasks(1), ids=lambda t: f"{t.ensemble['kind']}-{t.solver['kind']}")
def test_a_task_run_again_gives_the_same_bits(task):
    first, _ = run(task)
    second, seconds = run(task)
    assert first
    assert seconds > 0
    for name, values in first.items():
        assert values.tobytes() == second[name].tobytes()


@pytest.mark.parametrize(
    ("ensemble", "solver", "sample", "words"),
    [
        ({"n_columns": 4}, ANNEAL, 0, "kind"),
        (NOISE, "omp", 0, "kind"),
        (NOISE, ANNEAL, -1, "≥ 0"),
        (NOISE, ANNEAL, 1.5, "integer"),
        ({**NOISE, "alpha": float("nan")}, ANNEAL, 0, "finite"),
        ({**NOISE, "alpha": np.zeros(3)}, ANNEAL, 0, "plain data"),
        ({**NOISE, 3: 4}, ANNEAL, 0, "strings"),
    ],
)
def test_what_is_not_a_task_is_refused(ensemble, solver, sample, words):
    with pytest.raises(ValueError, match=words):
        Task(ensemble, solver, sample)


def test_foreign_json_is_refused():
    with pytest.raises(ValueError, match="not a task"):
        Task.from_json('{"ensemble": {}}')


@pytest.mark.parametrize(
    ("ensemble", "solver", "words"),
    [
        ({**NOISE, "kind": "cubic"}, ANNEAL, "ensemble 'cubic' is not known"),
        (NOISE, {"kind": "magic"}, "solver 'magic' is not known"),
        (NOISE, {**ANNEAL, "speed": 9}, "no argument speed"),
        (NOISE, {**ANNEAL, "schedule": {"kind": "sudden"}}, "schedule 'sudden'"),
    ],
)
def test_unknown_names_are_named(ensemble, solver, words):
    with pytest.raises(ValueError, match=words):
        run(Task(ensemble, solver, 0))
