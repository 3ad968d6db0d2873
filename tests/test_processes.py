"""The helper that starts child processes keeps its promises."""

import math
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from helpers.processes import child

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")

FAILURE = pytest.fail.Exception

SLEEPER = """
    import time
    try:
        print("ready")
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted")
        raise SystemExit(130)
"""


def test_a_child_is_interrupted_when_it_is_ready():
    with child(SLEEPER) as process:
        process.wait_for("ready\n")
        process.interrupt()
        ended = process.finish()
    assert ended.returncode == 130
    assert ended.stdout == "ready\ninterrupted\n"
    assert ended.stderr == ""
    assert 0.0 < ended.seconds < 30.0


def test_a_child_that_ends_by_itself():
    code = "import os, sys; print(sys.argv[1:], os.environ['GIVEN'], os.getcwd(), file=sys.stderr)"
    with child(["-c", code, "-k", "3"], env={"GIVEN": "value"}, cwd="/") as process:
        ended = process.finish()
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == "['-k', '3'] value /\n"
    assert math.isnan(ended.seconds)


def test_more_output_than_a_pipe_holds():
    with child("print('x' * 2_000_000)") as process:
        assert len(process.finish().stdout) == 2_000_001


def test_a_marker_that_never_comes_fails_with_the_output():
    with child("print('something else')") as process, pytest.raises(FAILURE) as caught:
        process.wait_for("ready\n")
    assert "ended without 'ready" in str(caught.value)
    assert "stdout:\nsomething else\n" in str(caught.value)
    with child(SLEEPER) as process:
        process.wait_for("ready\n")
        with pytest.raises(FAILURE, match=r"did not print 'steady' in 0\.1 s"):
            process.wait_for("steady", timeout=0.1)


def test_a_child_that_hangs_fails_and_is_killed():
    with child(SLEEPER) as process:
        process.wait_for("ready\n")
        with pytest.raises(FAILURE, match=r"did not end in 0\.1 s"):
            process.finish(timeout=0.1)
        assert process.running
    assert not process.running
    assert process.finish().returncode == -signal.SIGKILL


def test_a_failing_test_leaves_no_grandchild_behind(tmp_path):
    fifo = tmp_path / "held open by the grandchild"
    os.mkfifo(fifo)
    grandchild = f"import time; f = open({str(fifo)!r}, 'w'); print('alive'); time.sleep(600)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-uc', {grandchild!r}])"
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    def failing():
        with child(code) as process:
            process.wait_for("alive")
            assert select.select([reader], [], [], 0.0)[0] == []  # open, and nothing to read
            raise ZeroDivisionError

    try:
        with pytest.raises(ZeroDivisionError):
            failing()
        assert select.select([reader], [], [], 30.0)[0] == [reader]
        assert os.read(reader, 1) == b""  # the end of the file: nobody holds it open for writing
    finally:
        os.close(reader)


def test_a_child_answers_where_its_parent_ignores_the_signal():
    """As under ``nohup make test &`` or cron; a plain child would inherit the ignoring."""
    parent = f"""
        import signal, subprocess, sys

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from helpers.processes import child

        asked = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
        print("a plain child ignores it:", flush=True)
        subprocess.run([sys.executable, "-c", asked], check=True)
        with child({SLEEPER!r}) as process:
            process.wait_for("ready\\n")
            process.interrupt()
            print("ours ended with", process.finish().returncode)
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(parent)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert out.stdout == "a plain child ignores it:\nTrue\nours ended with 130\n", out.stderr
