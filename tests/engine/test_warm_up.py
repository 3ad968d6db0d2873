"""The notice that is printed while kernels are compiled."""

import threading

import numba
import pytest

from l0anneal.engine import warm_up as module
from l0anneal.engine.moves.pair_flip import pair_flip
from l0anneal.engine.warm_up import compile_notice, warm_up


@pytest.fixture
def printed(monkeypatch):
    """Print the notice at once, and tell when it was printed."""
    event = threading.Event()
    monkeypatch.setattr(module, "NOTICE_AFTER", 0.0)
    monkeypatch.setattr(
        module, "print", lambda *a, **o: (print(*a, **o), event.set()), raising=False
    )
    return event


def compile_something():
    return numba.njit(lambda x: x + 1)(1)


def test_the_notice_is_printed_once_while_kernels_are_compiled(printed, capsys):
    with compile_notice(), compile_notice():
        compile_something()
        compile_something()
        assert printed.wait(60)
    assert capsys.readouterr() == ("", module.NOTICE + "\n")


def test_no_notice_is_printed_when_nothing_is_compiled(printed, capsys):
    """However long the block takes: loading kernels from the cache may be slow on a busy machine."""
    warm_up()
    with compile_notice():
        pair_flip.signatures  # noqa: B018
        assert not printed.wait(0.2)
    assert capsys.readouterr() == ("", "")


def test_no_notice_is_printed_for_a_short_compilation(monkeypatch, capsys):
    monkeypatch.setattr(module, "NOTICE_AFTER", 3600.0)
    with compile_notice():
        compile_something()
        (timer,) = (t for t in threading.enumerate() if getattr(t, "interval", 0) == 3600.0)
    timer.join(60)
    assert not timer.is_alive()
    assert capsys.readouterr() == ("", "")


def test_warm_up_makes_the_kernels_ready():
    warm_up()
    assert len(pair_flip.signatures) == 1
