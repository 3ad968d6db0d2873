"""The commands ``solve`` and ``anneal``, and what Ctrl-C does to every command."""

import json
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from helpers.processes import child
from l0anneal import (
    AnnealResult,
    EvidenceResult,
    Schedule,
    anneal,
    ensembles,
    evidence_anneal,
    kick_search,
)
from l0anneal.cli.app import main
from l0anneal.engine.warm_up import warm_up


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warm_up()  # so that no notice about compiling gets into the output
    Schedule.geometric(0.1, 50.0, n=9, tau=3).save("s.json")
    instance = ensembles.planted(40, 0.6, 0.1, sigma_xi2=1e-3, support="fixed", random_state=0)
    np.save("A.npy", instance.A)
    np.save("y.npy", instance.y)
    np.savez("A.npz", instance.A)
    scipy.sparse.save_npz("sparse.npz", scipy.sparse.csr_array(instance.A))
    scipy.io.mmwrite("A.mtx", scipy.sparse.coo_array(instance.A), precision=17)
    np.savetxt("A.csv", instance.A, delimiter=",", fmt="%.17g")
    np.savetxt("y.csv", instance.y, fmt="%.17g", header="signal", comments="")
    np.save("nan.npy", np.full(24, np.nan))
    np.save("short.npy", np.zeros(7))
    np.save("matrix.npy", np.zeros((24, 2)))
    np.savez("two.npz", a=instance.A, b=instance.y)
    (tmp_path / "garbage.npy").write_bytes(b"not numbers")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "inf.json").write_text('{"name": "x", "mu": [1], "tau": [Infinity]}')
    (tmp_path / "words.csv").write_text("a,b\nc,d\n")
    return instance


def run(capsys, *args):
    with pytest.raises(SystemExit) as exit:
        main(["anneal", *args])
    captured = capsys.readouterr()
    return exit.value.code, captured.out, captured.err


@pytest.mark.parametrize("matrix", ["A.npy", "A.npz", "sparse.npz", "A.mtx", "A.csv"])
@pytest.mark.parametrize("vector", ["y.npy", "y.csv"])
def test_every_format_gives_the_answer_of_the_python_interface(files, capsys, matrix, vector):
    code, out, _ = run(capsys, matrix, vector, "-k", "4", "--seed", "3", "--json")
    assert code == 0
    answer = json.loads(out)
    expected = anneal(files.problem, 4, random_state=3)
    assert answer["support"] == expected.support.tolist()
    np.testing.assert_allclose(answer["coef"], expected.coef[expected.support], rtol=1e-8)
    assert answer["seed"] == 3


def test_options_mirror_the_function(files, capsys):
    np.savetxt("start.csv", [1, 2, 3, 5])
    code, out, _ = run(
        capsys,
        *[
            "A.npy",
            "y.npy",
            "-k",
            "4",
            "--seed",
            "3",
            "--json",
            "--schedule",
            "s.json",
            "--no-polish",
            "--move",
            "multi-flip",
            "--n-pairs",
            "3",
            "--n-chains",
            "3",
        ],
        *[
            "--n-jobs",
            "2",
            "--initial-support",
            "start.csv",
            "--keep-samples",
            "--out",
            "run.npz",
            "--plot",
            "run.png",
        ],
    )
    assert code == 0
    expected = anneal(
        files.problem,
        4,
        Schedule.load("s.json"),
        move="multi flip",
        n_pairs=3,
        polish=False,
        n_chains=3,
        initial_support=[1, 2, 3, 5],
        random_state=3,
    )
    assert json.loads(out)["support"] == expected.support.tolist()
    saved = AnnealResult.load("run.npz")
    np.testing.assert_array_equal(saved.mean_energy, expected.mean_energy)
    assert saved.samples.shape == (3, 27, 4)
    with open("run.png", "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_the_table_fits_a_terminal(files, capsys):
    code, out, _ = run(capsys, "A.npy", "y.npy", "-k", "4", "--seed", "3", "--schedule", "paper")
    assert code == 0
    assert "distortion" in out
    assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere.npy y.npy -k 4", "no such file: nowhere.npy"),
        ("A.npy nan.npy -k 4", "y contains NaN"),
        ("A.npy short.npy -k 4", "y has length 7, but A has 24 rows"),
        ("A.npy matrix.npy -k 4", "one vector is needed; got shape (24, 2)"),
        ("A.npy y.npy -k 41", "between 0 and N = 40; got 41"),
        ("A.npy y.npy -k 30", "rank of A, which is 24"),
        ("A.npy y.npy -k x", "-k"),
        ("A.npy y.npy", "Missing option"),
        ("A.npy y.npy -k 4 --schedule none", "--schedule must be automatic, paper"),
        ("A.npy y.npy -k 4 --schedule none.json", "none.json"),
        ("A.npy y.npy -k 4 --move best", 'move must be one of "pair flip", "auto"'),
        ("A.npy y.npy -k 4 --tau 0", "at least one sweep"),
        ("two.npz y.npy -k 4", "one is needed"),
        ("garbage.npy y.npy -k 4", "garbage.npy: not a readable .npy file"),
        ("words.csv y.npy -k 4", "words.csv: not a readable .csv file"),
        ("A.npy y.npy -k 4 --initial-support y.npy", "must be integers"),
        ("A.npy y.npy -k 4 --plot run.xyz", "a figure must be one of .png, .svg, .pdf"),
        ("A.npy y.npy -k 4 --out nowhere/run.npz", "its directory does not exist"),
        ("A.npy y.npy -k 4 --schedule bad.json", "bad.json: not a saved schedule"),
        ("A.npy y.npy -k 4 --schedule inf.json", "inf.json: not a saved schedule"),
        ("A.npy y.npy -k 4 --schedule s.json --tau 3", "do not go with a .json file"),
        ("A.npy y.npy -k 4 --schedule paper --tau 1000000000000000", "out of memory"),
        ("empty.csv y.npy -k 4", "it holds no numbers"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(files, capsys, arguments, message):
    code, out, err = run(capsys, *arguments.split())
    assert code == 2
    assert out == ""
    assert err.startswith("l0anneal: ")
    assert err.count("\n") == 1
    assert message in err


def test_unknown_format(files, capsys):
    open("A.txt", "w").close()
    code, _, err = run(capsys, "A.txt", "y.npy", "-k", "4")
    assert code == 2
    assert ".npy, .npz, .csv, .mtx" in err


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("anneal A.npy y.npy -k 4 --tau 1000000 --schedule paper", "ε ="),
        ("solve A.npy y.npy -k 3 --time-limit 600", re.compile(r"[1-9]\d*kick \[")),
        ("solve hard.npy z.npy --time-limit 600", "columns"),
    ],
)
def test_ctrl_c_prints_the_best_so_far(files, command, shown):
    hard = ensembles.planted(150, 0.6, 0.5, support="fixed", random_state=1)
    np.save("hard.npy", hard.A)
    np.save("z.npy", hard.y)
    with child(["-m", "l0anneal", *command.split(), "--json", "--progress"]) as process:
        process.wait_for(shown, timeout=300)  # the progress bar: the run is under way
        process.interrupt()
        ended = process.finish()
    assert ended.returncode == 130, ended.stderr
    assert "Traceback" not in ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["interrupted"] is True
    assert answer["ended"] == "interrupted by the user"
    assert ended.stderr.strip().endswith("l0anneal: interrupted")


@pytest.mark.parametrize(
    "command", ["theory --alpha 0.75 --rho 0.65 --rho-hat 0.5", "phase-diagram"]
)
def test_ctrl_c_in_other_commands_is_one_line(command):
    """The commands are replaced by a wait, since they end too quickly to be interrupted."""
    code = f"""
import sys, time
import l0anneal.cli.theory as theory

def wait(*arguments, **options):
    print("begun", flush=True)
    time.sleep(1000)

theory.ReplicaSymmetric = theory.phase_diagram = wait
from l0anneal.cli.app import main
main({command.split()!r})
"""
    with child(code) as process:
        process.wait_for("begun", timeout=120)
        process.interrupt()
        ended = process.finish()
    assert ended.returncode == 130
    assert ended.stderr.strip() == "l0anneal: interrupted"


def test_ctrl_c_while_modules_are_loaded_is_one_line():
    program = """
        import importlib.abc, sys, time

        class Slow(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == "l0anneal.cli.app":
                    print("loading", flush=True)
                    time.sleep(600)

        sys.meta_path.insert(0, Slow())
        from l0anneal.cli import main
        main(["solve"])
    """
    with child(program) as process:
        process.wait_for("loading")
        process.interrupt()
        ended = process.finish()
    assert (ended.returncode, ended.stderr) == (130, "l0anneal: interrupted\n")


def test_no_arguments_is_the_help(capsys):
    with pytest.raises(SystemExit):
        main([])
    captured = capsys.readouterr()
    assert "anneal" in captured.out + captured.err
    assert "l0anneal: \n" not in captured.err


def solved(capsys, *args):
    with pytest.raises(SystemExit) as exit:
        main(["solve", *args])
    captured = capsys.readouterr()
    return exit.value.code, captured.out, captured.err


def test_solve_without_k_is_the_evidence(files, capsys):
    code, out, _ = solved(capsys, "A.npy", "y.npy", "--seed", "3", "--json", "--out", "r.npz")
    assert code == 0
    answer = json.loads(out)
    expected = evidence_anneal(files.problem, random_state=3)
    assert answer["support"] == expected.support.tolist()
    assert answer["state"] == "noise"
    assert sum(answer["size_posterior"]) == pytest.approx(1.0)
    np.testing.assert_array_equal(EvidenceResult.load("r.npz").coef, expected.coef)


def test_solve_with_k_and_a_diagnosis(own_time, files, capsys):
    arguments = ("A.npy", "y.npy", "-k", "4", "--time-limit", "0.2", "--seed", "3", "--diagnose")
    code, out, _ = solved(capsys, *arguments, "--json")
    assert code == 0
    answer = json.loads(out)
    assert len(answer["support"]) == 4
    assert answer["diagnosis"]["verdict"] == "agreed"
    again = kick_search(files.problem, 4, n_kicks=answer["n_kicks"], random_state=3)
    assert again.support.tolist() == answer["support"]
    code, out, _ = solved(capsys, *arguments)
    assert code == 0
    assert "verdict      agreed" in out


def test_solve_prints_probabilities_in_80_columns(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = solved(capsys, "A.npy", "y.npy", "--seed", "3")
    assert code == 0
    assert "probability" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time-limit", "-1"), "time_limit, in seconds, must be positive"),
        (("-k", "99"), "between 0 and N = 40"),
        (("--out", "nowhere/r.npz"), "directory does not exist"),
    ],
)
def test_mistakes_of_solve(files, capsys, arguments, message):
    code, out, err = solved(capsys, "A.npy", "y.npy", *arguments)
    assert code == 2
    assert out == ""
    assert message in err
