"""The notice that is printed while kernels are compiled."""

import os
import re
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import event

from helpers.compiling import compile_something
from l0anneal.engine import warm_up as module
from l0anneal.engine.moves.pair_flip import pair_flip
from l0anneal.engine.rng import stream, uniform
from l0anneal.engine.warm_up import compile_notice, warm_up


@pytest.fixture
def printed(monkeypatch):
    """Print the notice soon, and tell when it was printed."""
    event = threading.Event()
    monkeypatch.setattr(module, "NOTICE_AFTER", 0.3)
    monkeypatch.setattr(
        module, "print", lambda *a, **o: (print(*a, **o), event.set()), raising=False
    )
    return event


def compiling(name):
    """The event that Numba triggers while it compiles a kernel."""
    function = SimpleNamespace(__module__="l0anneal.engine.moves", __name__=name)
    data = {"dispatcher": SimpleNamespace(py_func=function)}
    return event.trigger_event("numba:compile", data=data)


def test_the_notice_is_printed_once_and_says_what_and_how_long(printed, capsys):
    with compile_notice(), compile_notice():
        for kernel in ("jump", "leap"):
            with compiling(kernel), compiling("swap"):
                assert printed.wait(60)
    out, err = capsys.readouterr()
    assert out == ""
    first, last = err.splitlines()
    assert first.startswith("l0anneal: compiling the kernel jump and those that it needs")
    assert re.fullmatch(r"l0anneal: compiled 3 kernels in \d+ s; the next process .*", last)


def test_a_compilation_is_noticed(capsys):
    with compile_notice():
        compile_something()
        assert module._notice.names == ["one_more"]
        assert module._notice.seconds > 0
        compile_something("another.package")
        assert module._notice.names == ["one_more"]
    assert module._notice.names == []


def test_no_notice_is_printed_when_nothing_is_compiled(printed, capsys):
    """However long the block takes: loading kernels from the cache may be slow on a busy machine."""
    warm_up()  # which may compile
    printed.clear()
    capsys.readouterr()
    with compile_notice():
        pair_flip.signatures  # noqa: B018
        assert not printed.wait(0.6)
    assert capsys.readouterr() == ("", "")


def test_no_notice_is_printed_for_kernels_of_others(printed, capsys):
    with compile_notice():
        compile_something("another.package")
        assert not printed.wait(0.6)
    assert capsys.readouterr() == ("", "")


def test_no_notice_is_printed_after_a_short_compilation(monkeypatch, capsys):
    """What comes after a compilation is none, however long it takes."""
    monkeypatch.setattr(module, "NOTICE_AFTER", 3600.0)
    with compile_notice():
        compile_something()
        for timer in (t for t in threading.enumerate() if getattr(t, "interval", 0) > 3000.0):
            timer.join(60)
            assert not timer.is_alive()  # it ended with the compilation
        assert module._notice.seconds > 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("cached", [True, False])
def test_a_process_that_loads_its_kernels_compiles_none(cached, tmp_path):
    """With the cache that this process has filled, and in the other direction with an empty one."""
    state = stream(np.random.SeedSequence(0))
    uniform(state)
    code = (
        "import numpy as np\n"
        "import l0anneal.engine.warm_up as w\n"
        "from l0anneal.engine.rng import stream, uniform\n"
        "state = stream(np.random.SeedSequence(0))\n"
        "with w.compile_notice():\n"
        "    uniform(state)\n"
        "    print('uniform' in w._notice.names)\n"
    )
    environment = dict(os.environ)
    if not cached:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == f"{not cached}\n"
    assert not cached or run.stderr == ""


def test_warm_up_makes_the_kernels_ready():
    warm_up()
    assert len(pair_flip.signatures) == 1
