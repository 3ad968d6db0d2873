import os
import signal
import subprocess
import sys

import pytest
from joblib import delayed

from l0anneal.tasks.workers import results_of, shield_children_from_interrupts

posix = pytest.mark.skipif(os.name == "nt", reason="needs signal masks")
IS_BLOCKED = "import signal as s; print(s.SIGINT in s.pthread_sigmask(s.SIG_BLOCK, []))"


@pytest.fixture
def python_handles_sigint():
    """Set Python's own handler, which is missing if the parent process ignores SIGINT."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def is_blocked_in_a_child():
    child = subprocess.run([sys.executable, "-c", IS_BLOCKED], capture_output=True, check=True)
    return child.stdout.strip() == b"True"


@posix
def test_children_started_inside_do_not_receive_sigint():
    with shield_children_from_interrupts():
        assert is_blocked_in_a_child()
    assert not is_blocked_in_a_child()


@posix
def test_an_interrupt_inside_is_raised_at_the_end(python_handles_sigint):
    finished = []

    def interrupted():
        with shield_children_from_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            finished.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert finished
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_leaving_early_ends_the_calls_without_a_warning(n_jobs):
    calls = (delayed(pow)(i, 2) for i in range(1000))
    with results_of(calls, n_jobs, "generator") as results:
        assert [next(results) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(StopIteration):
        next(results)
