"""The notice that is printed while kernels are compiled."""

import threading

from l0anneal.engine import warm_up as module
from l0anneal.engine.moves.pair_flip import pair_flip
from l0anneal.engine.warm_up import compile_notice, warm_up


def test_the_notice_is_printed_while_the_user_waits(monkeypatch, capsys):
    printed = threading.Event()
    monkeypatch.setattr(module, "NOTICE_AFTER", 0.0)
    monkeypatch.setattr(
        module, "print", lambda *a, **o: (print(*a, **o), printed.set()), raising=False
    )
    with compile_notice():
        assert printed.wait(60)
    assert capsys.readouterr() == ("", module.NOTICE + "\n")


def test_no_notice_is_printed_when_the_kernels_are_ready(monkeypatch, capsys):
    monkeypatch.setattr(module, "NOTICE_AFTER", 3600.0)
    with compile_notice():
        (timer,) = (t for t in threading.enumerate() if getattr(t, "interval", 0) == 3600.0)
    timer.join(60)
    assert not timer.is_alive()
    assert capsys.readouterr() == ("", "")


def test_warm_up_makes_the_kernels_ready():
    warm_up()
    assert len(pair_flip.signatures) == 1
