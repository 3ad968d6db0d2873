"""The second process that compiles from the other end of the list."""

import os
import sys

import pytest

from helpers.compiling import compile_something, steps
from l0anneal.engine import assistant


@pytest.fixture
def welcome(monkeypatch):
    monkeypatch.setattr(assistant, "_is_welcome", lambda: True)


@pytest.fixture
def started(monkeypatch, welcome):
    """Record the commands of assistants instead of starting them."""
    commands = []
    monkeypatch.setattr(assistant, "_start", commands.append)
    return commands


def compiling_steps():
    return [compile_something, compile_something]


def foreign_steps():
    return [lambda: compile_something("another.package")]


def idle_steps():
    return [lambda: None]


def test_the_assistant_makes_the_last_step_first_and_does_not_outlive_the_first(welcome, tmp_path):
    assistant.run_steps(steps, str(tmp_path), os.getpid())  # returns, though the assistant sleeps
    pid = int((tmp_path / "note").read_text())
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_one_assistant_is_started_at_the_first_compilation(started):
    assistant.run_steps(compiling_steps)
    ((program, flag, code),) = started
    assert (program, flag) == (sys.executable, "-c")
    assert code.endswith(f"assist({__name__!r}, 'compiling_steps')")


@pytest.mark.parametrize("without", [foreign_steps, idle_steps])
def test_no_assistant_is_started_where_no_kernel_is_compiled(started, without):
    assistant.run_steps(without)
    assert started == []


def test_all_steps_are_made_where_no_process_can_be_started(welcome, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError("no processes here")

    made = []
    monkeypatch.setattr(assistant.subprocess, "Popen", refuse)
    assistant.run_steps(lambda: [compile_something, lambda: made.append(True)])
    assert made == [True]


def test_an_error_ends_the_assistant_too(welcome, tmp_path):
    with pytest.raises(ZeroDivisionError):
        assistant.run_steps(failing_steps, str(tmp_path), os.getpid())
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "note").read_text()), 0)


def failing_steps(folder, caller):
    first, last = steps(folder, caller)
    return [first, lambda: 1 / 0, last]


@pytest.fixture
def usual(monkeypatch):
    """A machine on which an assistant is welcome."""
    monkeypatch.delenv(assistant.SWITCH, raising=False)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3.11")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


def test_an_assistant_is_welcome_on_two_cores(usual):
    assert assistant._is_welcome()


def test_no_assistant_is_welcome_on_one_core(usual, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert not assistant._is_welcome()


def test_cores_are_counted_without_affinities(usual, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    for n_cores, welcome in ((4, True), (1, False), (None, False)):
        monkeypatch.setattr(os, "cpu_count", lambda n=n_cores: n)
        assert assistant._is_welcome() == welcome


def test_the_switch_keeps_the_assistant_away(usual, monkeypatch):
    monkeypatch.setenv(assistant.SWITCH, "0")
    assert not assistant._is_welcome()


@pytest.mark.parametrize("program", ["/opt/modeller/bin/modeller", "", None])
def test_no_other_program_is_started(usual, monkeypatch, program):
    """Where Python is embedded, sys.executable may be anything."""
    monkeypatch.setattr(sys, "executable", program)
    assert not assistant._is_welcome()


def test_no_frozen_program_is_started(usual, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not assistant._is_welcome()
