"""The command ``l0anneal finemap``."""

import os
import signal

import numpy as np
import pytest

from helpers.loci import loci, rows, save, tables
from helpers.tasks import running, session_has_ended, wait_for
from l0anneal import Locus, finemap
from l0anneal.cli.app import main

QUICK = ("--n-draws", 40, "-j", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loci")
    for locus in loci(3):
        save(locus, folder)
    return folder


@pytest.fixture(scope="module")
def expected(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("expected")
    finemap(folder, n_jobs=1, n_draws=40).write(out)
    return tables(out)


def command(capsys, *args):
    with pytest.raises(SystemExit) as exit:
        main(["finemap", *map(str, args)])
    captured = capsys.readouterr()
    return exit.value.code, captured.out, captured.err


def test_the_example_of_the_help_works(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        main(["finemap", "--help"])
    line = next(line for line in capsys.readouterr().out.splitlines() if "Example:" in line)
    words = line.split("Example:")[1].strip(" │").split()
    assert words[:2] == ["l0anneal", "finemap"]
    monkeypatch.chdir(tmp_path)
    save(loci(1, 6)[0], tmp_path / "loci")
    code, out, _ = command(capsys, *words[2:])
    assert code == 0
    assert "1 loci mapped, 0 were finished before, 0 failed" in out
    assert out.splitlines()[-1] == "The tables are mapped/columns.tsv and mapped/loci.tsv"


def test_a_directory_becomes_two_tables_and_is_not_mapped_again(capsys, folder, expected, tmp_path):
    code, out, _ = command(capsys, folder, "--out", tmp_path, *QUICK)
    assert code == 0
    assert "loci         3 of 3 finished" in out
    assert tables(tmp_path) == expected
    code, out, _ = command(capsys, folder, "--out", tmp_path, *QUICK)
    assert code == 0
    assert "0 loci mapped, 3 were finished before, 0 failed" in out
    assert tables(tmp_path) == expected


def test_shares_write_the_tables_when_all_are_finished(capsys, folder, expected, tmp_path):
    args = [folder, "--out", tmp_path, *QUICK, "--backend", "threading"]
    code, out, _ = command(capsys, *args, "--shard", "1/2")
    assert code == 0
    assert "1 loci of other shares are not finished" in out
    assert not (tmp_path / "columns.tsv").exists()
    code, out, _ = command(capsys, *args, "--shard", "2/2")
    assert code == 0
    assert tables(tmp_path) == expected


def test_a_local_dask_cluster_from_the_command(capsys, folder, expected, tmp_path):
    pytest.importorskip("distributed")
    code, _, _ = command(capsys, folder, "--out", tmp_path, *QUICK, "--backend", "dask")
    assert code == 0
    assert tables(tmp_path) == expected


def test_options_reach_the_library(capsys, tmp_path):
    locus = loci(2, 12)[1]
    path = tmp_path / f"{locus.name}.npz"
    np.savez(path, z=locus.z, R=locus.R, names=locus.names)  # no n
    options = ["--coverage", 0.8, "--min-purity", 0.3, "--no-check", "-s", 5, "-j", 1]
    code, _, err = command(capsys, path, "--out", tmp_path / "a", *options)
    assert code == 1
    assert "got no n" in err
    code, _, _ = command(capsys, path, "--out", tmp_path / "a", *options, "--n", 400)
    assert code == 0
    nameless = Locus(locus.name, locus.R, z=locus.z, names=locus.names)
    expected = finemap(nameless, n=400, coverage=0.8, min_purity=0.3, check=False, random_state=5)
    expected.write(tmp_path / "b")
    assert tables(tmp_path / "a") == tables(tmp_path / "b")


def test_failures_are_named_at_the_end_with_exit_code_1(capsys, folder, tmp_path):
    bad = tmp_path / "bad.npz"
    np.savez(bad, z=[1.0, 2.0], R=[[1.0, 0.5], [0.2, 1.0]], n=50)
    paths = (folder / "locus0.npz", bad)
    code, out, err = command(capsys, *paths, "--out", tmp_path / "out", *QUICK)
    assert code == 1
    assert "1 loci mapped, 0 were finished before, 1 failed" in out
    assert "failed: ValueError: R must be symmetric" in err
    assert [row["locus"] for row in rows(tables(tmp_path / "out")[1])] == ["locus0", "bad"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nowhere"], "no such file or directory: nowhere"),
        (["."], "holds no locus"),
        ([".", "--shard", "3/2"], "1 ≤ i ≤ n"),
        ([".", "--backend", "carrier-pigeon"], "loky, threading or dask"),
        ([".", "--n-jobs", "0"], "must not be 0"),
        ([".", "--coverage", "2"], "coverage must be at most 1"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, args, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = command(capsys, *args)
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="needs process groups")
@pytest.mark.parametrize("options", [("-j", 2), pytest.param(("-j", 1), marks=pytest.mark.slow)])
def test_ctrl_c_ends_all_processes_and_keeps_finished_loci(tmp_path, options):
    for i, locus in enumerate(loci(3) * 40):
        named = Locus(f"locus{i}", locus.R, locus.n, z=locus.z, names=locus.names)
        save(named, tmp_path / "loci")
    out, printed = tmp_path / "out", tmp_path / "printed"

    def n_finished():
        return sum(1 for _ in out.rglob("*.npz"))

    args = ("finemap", tmp_path / "loci", "--out", out, "--n-draws", 40, *options)
    with running(*args, printed=printed) as process:
        wait_for(n_finished, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        code = process.wait(timeout=600)
        wait_for(lambda: session_has_ended(process))
    text = printed.read_text()
    assert code == 130, text
    assert "Traceback" not in text
    message = "l0anneal: interrupted; finished loci are kept, run the same command to go on"
    assert text.splitlines()[-1] == message
    assert n_finished() < 120
    assert not (out / "columns.tsv").exists()
