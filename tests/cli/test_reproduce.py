"""The command ``l0anneal reproduce``."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from joblib import Parallel, delayed

from helpers.tasks import assert_same_arrays, running, session_has_ended, wait_for
from l0anneal.cli.app import main
from l0anneal.reproduction import Store, collect
from l0anneal.reproduction.figures import FIGURES, sweeps_of
from l0anneal.reproduction.sweeps import tasks_of

QUICKEST = "time"  # needs no theory, and runs on pure noise, which are short
TASKS = tasks_of(sweeps_of([QUICKEST], quick=True))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("finished"))
    assert collect(TASKS, store, n_jobs=1).n_run == len(TASKS)
    return store


def command(capsys, *args):
    with pytest.raises(SystemExit) as exit:
        main(["reproduce", *map(str, args)])
    captured = capsys.readouterr()
    return exit.value.code, captured.out, captured.err


def test_list_names_every_figure(capsys):
    code, out, _ = command(capsys, "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(FIGURES)
    assert max(map(len, out.splitlines())) <= 80


def test_the_help_has_an_example_that_works(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    line = next(line for line in capsys.readouterr().out.splitlines() if "Example:" in line)
    words = line.split("Example:")[1].strip(" │").split()
    assert words[:2] == ["l0anneal", "reproduce"]
    # worker processes are used again by later calls, and keep the directory in which they began
    Parallel(n_jobs=2)(delayed(os.getcwd)() for _ in range(2))
    monkeypatch.chdir(tmp_path)
    code, out, err = command(capsys, *words[2:], "--only-report")
    assert (code, err) == (0, "")
    assert out.startswith("The report is look")


def test_a_finished_run_is_not_run_again(capsys, finished, tmp_path):
    args = [QUICKEST, "--quick", "--out", tmp_path, "--store", finished.directory]
    code, out, _ = command(capsys, *args, "--n-jobs", 1)
    assert code == 0
    assert "0 tasks run, 75 were finished before, 0 failed" in out
    assert out.splitlines()[-1] == f"The report is {tmp_path / 'report.html'}"
    assert (tmp_path / "report.html").exists()


def test_shards_report_only_when_all_are_finished(capsys, tmp_path):
    args = [QUICKEST, "--quick", "--out", tmp_path, "-j", 1, "--backend", "threading"]
    code, out, _ = command(capsys, *args, "--shard", "1/2")
    assert code == 0
    assert "38 tasks run" in out
    assert "37 tasks of other shares are not finished" in out
    assert not (tmp_path / "report.html").exists()
    code, out, _ = command(capsys, *args, "--shard", "2/2")
    assert code == 0
    assert out.splitlines()[-1].startswith("The report is ")


def test_only_report_runs_nothing(capsys, tmp_path):
    code, out, _ = command(capsys, QUICKEST, "--quick", "--out", tmp_path, "--only-report")
    assert code == 0
    assert "tasks run" not in out
    assert not list(tmp_path.rglob("*.npz"))


def test_a_report_is_drawn_again_from_its_data(capsys, finished, tmp_path):
    args = [QUICKEST, "--quick", "--out", tmp_path, "--store", finished.directory, "-j", 1]
    assert command(capsys, *args)[0] == 0
    page = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").unlink()
    code, out, _ = command(capsys, "--from", tmp_path, "-j", 1)
    assert code == 0
    assert out == f"The report is {tmp_path / 'report.html'}\n"
    assert (tmp_path / "report.html").read_bytes() == page
    code, _, err = command(capsys, QUICKEST, "--from", tmp_path)
    assert code == 2
    assert "use it without figures" in err
    code, _, err = command(capsys, "--from", tmp_path / "nowhere")
    assert code == 2
    assert "has no run.json" in err


def test_a_report_is_continued_from_its_data(capsys, finished, tmp_path):
    """Save a report of an unfinished run, lose the store, and go on with what was saved."""
    store, out = Store(shutil.copytree(finished.directory, tmp_path / "tasks")), tmp_path / "out"
    for task in TASKS[::7]:
        store.path(task).unlink()
    args = [QUICKEST, "--quick", "--out", out, "-j", 1]
    assert command(capsys, *args, "--store", store.directory, "--only-report")[0] == 0
    lost = len(TASKS[::7])
    assert f"{lost} tasks are not finished" in (out / "report.html").read_text(encoding="utf-8")
    code, printed, _ = command(capsys, *args, "--store", tmp_path / "new")
    assert code == 0
    kept = len(TASKS) - lost
    assert f"{kept} finished tasks restored from {out / 'data'}" in printed
    assert f"{lost} tasks run, {kept} were finished before, 0 failed" in printed
    for task in (task for task in TASKS if task in store):
        assert Store(tmp_path / "new").path(task).read_bytes() == store.path(task).read_bytes()
    assert_same_arrays(finished, Store(tmp_path / "new"), TASKS)
    again = command(capsys, *args, "--store", tmp_path / "new")[1]
    assert "restored" not in again


def test_a_report_of_another_engine_is_not_continued(capsys, finished, tmp_path):
    import h5netcdf

    args = [QUICKEST, "--quick", "--out", tmp_path, "-j", 1]
    assert command(capsys, *args, "--store", finished.directory, "--only-report")[0] == 0
    with h5netcdf.File(tmp_path / "data" / "omp.nc", "a") as file:
        file.attrs["engine"] = 1
    page = (tmp_path / "report.html").read_bytes()
    code, _, err = command(capsys, *args)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert "has results of engine 1; this version needs" in err
    assert "remove the file" in err
    assert (tmp_path / "report.html").read_bytes() == page


def test_a_local_dask_cluster_from_the_command(capsys, finished, tmp_path):
    pytest.importorskip("distributed")
    store = Store(shutil.copytree(finished.directory, tmp_path / "tasks"))
    store.path(TASKS[0]).unlink()
    args = [QUICKEST, "--quick", "--out", tmp_path, "-j", 1, "--backend", "dask"]
    code, out, _ = command(capsys, *args)
    assert code == 0
    assert "1 tasks run, 74 were finished before" in out


def test_failures_are_named_at_the_end_with_exit_code_1(capsys, tmp_path, monkeypatch):
    module = sys.modules["l0anneal.reproduction.collect"]
    real = module.run

    def fragile(task):
        if task.solver["kind"] == "l1" and task.sample == 1:
            raise ArithmeticError("no luck")
        return real(task)

    monkeypatch.setattr(module, "run", fragile)
    args = [QUICKEST, "--quick", "--out", tmp_path, "-j", 1]
    code, out, err = command(capsys, *args)
    assert code == 1
    assert "72 tasks run, 0 were finished before, 3 failed" in out
    assert err.count("failed: ArithmeticError: no luck") == 3
    assert '"kind":"l1"' in err
    monkeypatch.undo()
    code, out, _ = command(capsys, *args)
    assert code == 0
    assert "3 tasks run, 72 were finished before, 0 failed" in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fig7"], "no figure fig7"),
        (["--shard", "3/2"], "1 ≤ i ≤ n"),
        (["--shard", "half"], "i/n"),
        (["--scheduler", "tcp://localhost:1"], "--backend dask"),
        (["--backend", "carrier-pigeon"], "loky, threading or dask"),
        (["--n-jobs", "0"], "must not be 0"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, args, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = command(capsys, *args)
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_told_before_any_task_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5netcdf", None)
    code, _, err = command(capsys, QUICKEST, "--quick", "--out", tmp_path)
    assert code == 2
    needed = "l0anneal reproduce needs h5netcdf: pip install 'l0anneal[reproduction]'"
    assert err.strip() == f"l0anneal: {needed}"
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="needs process groups")
@pytest.mark.parametrize(
    "options",
    [
        ("-j", 2),
        pytest.param(("-j", 1), marks=pytest.mark.slow),
        pytest.param(("-j", 2, "--backend", "threading"), marks=pytest.mark.slow),
        "dask",
    ],
)
def test_ctrl_c_ends_all_processes_and_keeps_finished_tasks(tmp_path, options):
    if options == "dask":
        pytest.importorskip("distributed")
        options = ("-j", 2, "--backend", "dask")
    out, printed = tmp_path / "out", tmp_path / "printed"

    def n_finished():
        return sum(1 for _ in out.rglob("*.npz"))

    with running("reproduce", "--quick", "--out", out, *options, printed=printed) as process:
        wait_for(n_finished, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        code = process.wait(timeout=600)
        wait_for(lambda: session_has_ended(process))
    text = printed.read_text()
    assert code == 130, text
    assert "Traceback" not in text
    message = "l0anneal: interrupted; finished tasks are kept, run the same command to go on"
    assert text.splitlines()[-1] == message
    assert n_finished() < len(tasks_of(sweeps_of(quick=True)))
    for path in out.rglob("*.npz"):
        with np.load(path, allow_pickle=False) as file:
            assert "_task" in file.files


def test_the_command_line_starts_without_the_heavy_parts():
    program = (
        "import sys, l0anneal.cli.app; "
        "heavy = {'xarray', 'matplotlib', 'sklearn', 'distributed'}; print(*heavy & {*sys.modules})"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == []
