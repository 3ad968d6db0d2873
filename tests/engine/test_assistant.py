"""The second process that compiles from the other end of the list."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading

import joblib
import numba
import pytest

from helpers.compiling import compile_something, steps
from l0anneal import (
    Schedule,
    anneal,
    evidence_anneal,
    kick_search,
    population_anneal,
    sparse_encode,
    temper,
)
from l0anneal.engine import assistant
from l0anneal.engine.warm_up import tiny_problem

START = assistant._start


@pytest.fixture
def welcome(monkeypatch):
    monkeypatch.setattr(assistant, "_is_welcome", lambda: True)


@pytest.fixture
def started(monkeypatch, welcome):
    """Record the arguments of assistants instead of starting them."""
    arguments = []
    monkeypatch.setattr(assistant, "_start", arguments.append)
    return arguments


@pytest.fixture
def processes(monkeypatch, welcome):
    """Keep the processes that were started."""
    kept = []

    def start(arguments):
        kept.append(START(arguments))
        return kept[-1]

    monkeypatch.setattr(assistant, "_start", start)
    return kept


# ---------------------------------------------------------------- a real process


def test_the_assistant_makes_the_last_step_first_and_is_ended_with_the_first(processes, tmp_path):
    assistant.run_steps(steps, str(tmp_path), os.getpid())  # returns, though the assistant sleeps
    (process,) = processes
    assert process.returncode is not None


def failing_steps(folder, caller):
    first, last = steps(folder, caller)
    return [first, lambda: 1 / 0, last]


def test_an_error_ends_the_assistant_too(processes, tmp_path):
    with pytest.raises(ZeroDivisionError):
        assistant.run_steps(failing_steps, str(tmp_path), os.getpid())
    (process,) = processes
    assert process.returncode is not None


def test_the_assistant_has_no_assistant_and_the_settings_of_the_caller(monkeypatch):
    """Its output goes nowhere; json carries names that the file system's encoding cannot."""
    calls = []
    monkeypatch.setattr(
        assistant.subprocess, "Popen", lambda *a, **options: calls.append((a, options))
    )
    monkeypatch.delenv(assistant.SWITCH, raising=False)
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", "elsewhere")
    monkeypatch.setattr(sys, "path", ["/päth", b"bytes"])
    START([1, "module", "name", True, None])
    ((((program, _, _, sent),), options),) = calls
    assert program == sys.executable
    assert json.loads(sent) == [["/päth"], [1, "module", "name", True, None]]
    assert sent.isascii()
    assert options["env"][assistant.SWITCH] == "0"
    assert options["env"]["NUMBA_CACHE_DIR"] == "elsewhere"
    assert options["stdout"] == options["stderr"] == subprocess.DEVNULL


@pytest.mark.parametrize("error", [PermissionError, RuntimeError, UnicodeError])
def test_all_steps_are_made_where_no_process_can_be_started(welcome, monkeypatch, error):
    def refuse(*arguments, **options):
        raise error

    made = []
    monkeypatch.setattr(assistant.subprocess, "Popen", refuse)
    assistant.run_steps(lambda: [compile_something, lambda: made.append(True)])
    assert made == [True]


# ---------------------------------------------------------------- when it is started


def test_one_assistant_is_started_at_the_first_compilation_with_what_is_left(started):
    seen = []

    def three_steps():
        return [lambda: None, compile_something, lambda: seen.extend(started), compile_something]

    assistant.run_steps(three_steps)
    assert seen == started == [[2, __name__, three_steps.__qualname__]]


@pytest.mark.parametrize("module", [None, "another.package"])
def test_no_assistant_is_started_for_kernels_of_others(started, module):
    assistant.run_steps(lambda: [lambda: compile_something(module), compile_nothing])
    assert started == []


def test_no_assistant_is_started_where_nothing_is_compiled_or_nothing_is_left(started):
    assistant.run_steps(lambda: [compile_nothing, compile_nothing])
    assistant.run_steps(lambda: [compile_nothing, compile_something])
    assert started == []


def compile_nothing():
    """Make a step for which all kernels are there."""


def test_threads_share_one_assistant(started):
    """Numba tells every listener in a process about every compilation."""
    everyone = threading.Barrier(4, timeout=120)

    def waiting_steps():
        return [everyone.wait, compile_something, everyone.wait, compile_nothing]

    threads = [
        threading.Thread(target=assistant.run_steps, args=(waiting_steps,)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(started) == 1


def test_compilations_of_other_threads_do_not_count(started):
    def elsewhere():
        thread = threading.Thread(target=compile_something)
        thread.start()
        thread.join(120)

    assistant.run_steps(lambda: [elsewhere, compile_nothing])
    assert started == []
    assistant.run_steps(lambda: [compile_something, compile_nothing])  # the lock was released
    assert len(started) == 1


# ---------------------------------------------------------------- where it is welcome


@pytest.fixture
def usual(monkeypatch):
    """A machine on which an assistant is welcome."""
    monkeypatch.delenv(assistant.SWITCH, raising=False)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3.11")
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)


@pytest.mark.parametrize("program", ["python", "python3.14t", "pythonw.exe", "Python.exe"])
def test_an_assistant_is_welcome_on_two_cores(usual, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", f"/usr/bin/{program}")
    assert assistant._is_welcome()


def test_no_assistant_is_welcome_on_one_core(usual, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 1)
    assert not assistant._is_welcome()


def test_workers_have_no_assistant(usual, monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert not assistant._is_welcome()


def test_the_switch_keeps_the_assistant_away(usual, monkeypatch):
    monkeypatch.setenv(assistant.SWITCH, "0")
    assert not assistant._is_welcome()


@pytest.mark.parametrize("program", ["/opt/bin/modeller", "/opt/MyPythonTool.exe", "", None])
def test_no_other_program_is_started(usual, monkeypatch, program):
    """Where Python is embedded, sys.executable may be anything."""
    monkeypatch.setattr(sys, "executable", program)
    assert not assistant._is_welcome()


def test_no_frozen_program_is_started(usual, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not assistant._is_welcome()


# ---------------------------------------------------------------- the lists of the samplers


SHORT = Schedule.geometric(0.1, 10.0, n=2, tau=1)
SAMPLERS = {
    "anneal": lambda p: anneal(p, 2, SHORT, move="auto", random_state=0),
    "evidence_anneal": lambda p: evidence_anneal(p, n_draws=20, random_state=0),
    "kick_search": lambda p: kick_search(p, 2, n_kicks=2, random_state=0),
    "population_anneal": lambda p: population_anneal(p, 2, SHORT, population=4, random_state=0),
    "sparse_encode": lambda p: sparse_encode(p.y[None], p.A.T, 2, n_kicks=1, random_state=0),
    "temper": lambda p: temper(p, sizes=(1, 3), n_sweeps=20, random_state=0),
}


def test_the_lists_of_all_samplers_can_be_sent_and_made_backwards(monkeypatch):
    lists = []
    run_steps = assistant.run_steps

    def record(function, *arguments):
        lists.append([function.__module__, function.__qualname__, *arguments])
        run_steps(function, *arguments)

    for module in list(sys.modules.values()):
        if getattr(module, "run_steps", None) is run_steps:
            monkeypatch.setattr(module, "run_steps", record)
        for name in ("warm_up", "_warm_up", "warm_up_evidence", "warm_up_coding"):
            if hasattr(getattr(module, name, None), "cache_clear"):
                getattr(module, name).cache_clear()
    for run in SAMPLERS.values():
        run(tiny_problem())
    assert len({module for module, *_ in lists}) == len(SAMPLERS)
    for sent in lists:
        assistant.assist(0, *json.loads(json.dumps(sent)))
