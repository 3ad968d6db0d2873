"""The run that all samplers share: clock, threads, budgets, parts."""

import signal
import threading
import time

import numpy as np
import pytest

from l0anneal.samplers.run import Run, RunStopped


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_map_keeps_the_order(n_jobs):
    with Run(n_jobs=n_jobs) as run:
        assert run.map(lambda i: i * i, range(20)) == [i * i for i in range(20)]
        assert run.map(lambda i: i, []) == []


def test_map_uses_the_threads():
    meeting = threading.Barrier(2, timeout=60)
    with Run(n_jobs=2) as run:
        run.map(lambda _: meeting.wait(), range(2))  # one thread alone would wait in vain


def test_the_first_error_stops_the_others_and_is_raised():
    stopped = threading.Event()

    def work(item):
        if item == "bad":
            raise ZeroDivisionError
        while True:
            try:
                run.listen()
            except RunStopped:
                stopped.set()
                raise
            time.sleep(0.001)

    with pytest.raises(ZeroDivisionError), Run(n_jobs=2) as run:
        run.map(work, ["endless", "bad"])
    assert stopped.is_set()


def test_the_clock_stands_still_while_kernels_compile():
    with Run(time_limit=10.0) as run:
        before = run.seconds
        run.compile(time.sleep, 0.3)
        assert run.seconds - before < 0.2
        assert run.left > 9.3


def test_the_deadline_leaves_time_to_pack_up():
    with Run(time_limit=0.05) as run:
        assert not run.over
        while not run.over:
            time.sleep(0.001)
        assert run.seconds > 0.045
        run.listen()  # time alone stops no step in its middle, or the run could not be replayed


@pytest.fixture
def handler():
    """Set Python's own handler of SIGINT, also where the parent process ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_of_an_inner_run_is_heard_by_the_outer_one(handler):
    with Run(on_interrupt="return") as outer:
        with Run(on_interrupt="return") as inner:
            signal.getsignal(signal.SIGINT)(signal.SIGINT, None)
            assert inner.interrupted
        assert outer.interrupted
    assert signal.getsignal(signal.SIGINT) is handler


def test_the_handler_is_restored(handler):
    with Run(on_interrupt="return") as run:
        during = signal.getsignal(signal.SIGINT)
        handlers = []
        run.compile(lambda: handlers.append(signal.getsignal(signal.SIGINT)))
    assert signal.getsignal(signal.SIGINT) is handler
    assert during is not handler
    assert handlers == [handler]  # while kernels compile there is nothing to return


def test_a_part_has_a_part_of_the_time_and_hears_the_same_stop():
    with Run(time_limit=10.0, random_state=1, n_jobs=2) as run:
        part = run.part(2.0, random_state=5, n_threads=1)
        assert part.seed == 5
        assert run.seed == 1
        assert 1.5 < part.left <= 2.0
        assert run.part(1e9).deadline <= run.deadline + 1e-3
    with pytest.raises(RunStopped):
        part.listen()
    with Run() as run:
        assert run.part(2.0).left == np.inf


def test_a_budget_records_the_steps_and_replays_them():
    with Run() as run:
        first = run.budget(end=run.now() + 0.02)
        while first.more():
            first.used += 1
            time.sleep(0.001)
        assert first.used >= 1
        assert first.exhausted
        again = run.budget(replay=first.used)
        while again.more():
            again.used += 1
        assert again.used == first.used
        assert run.budget(end=-1.0).more()  # the first step may always be made


def test_a_run_interrupted_before_it_found_anything_raises():
    with pytest.raises(KeyboardInterrupt), Run(on_interrupt="return"):
        raise RunStopped
    with pytest.raises(KeyboardInterrupt), Run(on_interrupt="return") as run:
        run.require([])  # what it raises becomes KeyboardInterrupt at the end of the run
    with Run() as run:
        run.require([1])


def test_arguments_are_checked():
    for n_jobs in (0, 1.5, True):
        with pytest.raises(ValueError, match="n_jobs must be"):
            Run(n_jobs=n_jobs)
    with pytest.raises(ValueError, match="on_interrupt must be one of"):
        Run(on_interrupt="ignore")
    for limit in (0.0, -1.0, np.inf, np.nan, "1", True):
        with pytest.raises(ValueError, match="time_limit, in seconds, must be positive and finite"):
            Run(time_limit=limit)


def test_a_run_may_be_made_in_any_thread():
    """Only the main thread can hear Ctrl-C; elsewhere the run works without."""
    found = []

    def work():
        with Run(on_interrupt="return") as run:
            found.append(run.map(lambda i: i, range(3)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[0, 1, 2]]


def test_the_record_says_why_the_run_ended():
    with Run(random_state=3) as run:
        record = run.record("all was done")
    assert record["seed"] == 3
    assert record["ended"] == "all was done"
    assert record["interrupted"] is False
    assert record["seconds"] >= 0.0
