"""Fine-mapping of many loci: what it finds, and that nothing but the data and the seed decides."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config

from helpers.loci import loci, rows, save, tables
from l0anneal import Locus, check_summary, evidence_anneal, finemap
from l0anneal.problem import SparseProblem

MODULE = sys.modules["l0anneal.finemapping.finemap"]


QUICK = {"n_draws": 40}  # too few for credible sets; for tests that compare runs with each other


def undisturbed(folder, **options):
    found = finemap(loci(), store=folder / "tasks", n_jobs=1, **options)
    assert (found.n_run, found.missing, found.failures) == (3, [], [])
    found.write(folder)
    return tables(folder)


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """Return the tables of one undisturbed worker that makes as many draws as are needed."""
    return undisturbed(tmp_path_factory.mktemp("complete"))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Return the tables of one undisturbed worker that makes few draws."""
    return undisturbed(tmp_path_factory.mktemp("reference"), **QUICK)


def assert_same_tables(found, reference, tmp_path):
    found.write(tmp_path / "again")
    assert tables(tmp_path / "again") == reference


def test_the_tables_have_a_row_for_each_column_and_each_locus(complete):
    columns, summary = map(rows, complete)
    assert [row["column"] for row in columns] == [n for locus in loci() for n in locus.names]
    assert [row["locus"] for row in summary] == [locus.name for locus in loci()]
    for locus, row in zip(loci(), summary):
        mine = [c for c in columns if c["locus"] == locus.name]
        np.testing.assert_allclose([float(c["z"]) for c in mine], locus.z, rtol=1e-5)
        numbers = {c["set"] for c in mine} - {"NA"}
        assert numbers == {str(k + 1) for k in range(int(row["n_sets"]))}
        for c in mine:
            assert (c["set"] == "NA") == (c["set_probability"] == "NA") == (c["purity"] == "NA")
            if c["set"] != "NA":
                assert float(c["set_probability"]) >= 0.95
                assert float(c["purity"]) >= 0.5
        assert row["suspicious"] == "NA"
        assert (row["n_columns"], row["n_samples"]) == ("20", "400")
    assert int(summary[0]["n_sets"]) == 0  # no effects
    assert int(summary[1]["n_sets"]) == 1


def test_a_locus_is_a_problem_from_summary_statistics(complete):
    locus = loci()[1]
    problem = SparseProblem.from_summary(locus.z, locus.R, locus.n)
    seed = MODULE.stream_of(0, f"locus {locus.name}")
    expected = evidence_anneal(problem, random_state=seed).inclusion_probability
    mine = [row for row in rows(complete[0]) if row["locus"] == locus.name]
    np.testing.assert_allclose([float(r["probability"]) for r in mine], expected, rtol=1e-5)


def test_files_give_the_tables_of_arrays(reference, tmp_path):
    for locus in loci():
        save(locus, tmp_path / "loci")
    found = finemap(tmp_path / "loci", n_jobs=1, **QUICK)
    assert_same_tables(found, reference, tmp_path)


def test_the_order_of_loci_orders_the_tables_and_changes_nothing_else(reference, tmp_path):
    found = finemap(list(reversed(loci())), n_jobs=1, **QUICK)
    expected = sorted(reference[1].splitlines()[1:], reverse=True)
    found.write(tmp_path)
    assert tables(tmp_path)[1].splitlines()[1:] == expected


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_two_workers_give_the_tables_of_one(reference, tmp_path, backend):
    with parallel_config(backend):
        found = finemap(loci(), n_jobs=2, **QUICK)
    assert_same_tables(found, reference, tmp_path)


def test_a_dask_cluster_gives_the_tables_of_one_worker(reference, tmp_path):
    distributed = pytest.importorskip("distributed")
    for locus in loci():
        save(locus, tmp_path / "loci")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        parallel_config("dask"),
    ):
        found = finemap(tmp_path / "loci", **QUICK)
    assert_same_tables(found, reference, tmp_path)


def test_shares_together_give_the_same_tables(reference, tmp_path):
    first = finemap(loci(), store=tmp_path / "tasks", n_jobs=1, shard=(1, 2), **QUICK)
    assert first.n_run == 2
    assert len(first.missing) == 1
    assert len(list(first.loci())) == 2
    second = finemap(loci(), store=tmp_path / "tasks", n_jobs=1, shard=(2, 2), **QUICK)
    assert (second.n_run, second.missing) == (1, [])
    assert_same_tables(second, reference, tmp_path)


def test_an_interruption_keeps_finished_loci(reference, tmp_path, monkeypatch):
    real, left = MODULE.run_locus, [1]

    def interrupted(task):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(task)

    monkeypatch.setattr(MODULE, "run_locus", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finemap(loci(), store=tmp_path / "tasks", n_jobs=1, **QUICK)
    monkeypatch.undo()
    found = finemap(loci(), store=tmp_path / "tasks", n_jobs=1, **QUICK)
    assert (found.n_run, found.n_skipped) == (2, 1)
    assert_same_tables(found, reference, tmp_path)


def test_a_locus_is_mapped_again_only_if_its_data_or_the_options_change(tmp_path):
    store = tmp_path / "tasks"
    first = loci(1, 12)[0]
    assert finemap(first, store=store, **QUICK).n_run == 1
    assert finemap(first, store=store, **QUICK).n_run == 0
    changed = Locus(first.name, first.R, first.n, z=np.array(first.z) + 1e-6, names=first.names)
    assert finemap(changed, store=store, **QUICK).n_run == 1
    assert finemap(first, store=store, **QUICK, coverage=0.9).n_run == 1
    assert finemap(first, store=store, **QUICK, random_state=1).n_run == 1
    assert finemap(first, store=store, **QUICK, rho=0.05).n_run == 1
    assert finemap(first, store=store, **QUICK, n=999).n_run == 1
    assert finemap(first, store=store, **QUICK).n_run == 0


def test_columns_that_do_not_fit_are_named_in_the_table():
    locus = loci(2)[1]
    z = np.array(locus.z)
    j = int(np.argmax(np.abs(z)))
    z[j] *= -1
    # with 400 samples, the flipped sign would be impossible instead of suspicious
    flipped = Locus("flipped", locus.R, 10_000, z=z, names=locus.names)
    assert check_summary(z, locus.R, 10_000).suspicious.tolist() == [j]
    found = finemap(flipped, **QUICK)
    assert [row["suspicious"] for row in found.loci()] == [locus.column_names[j]]
    assert "1 loci do not fit" in str(found)
    unchecked = finemap(flipped, check=False, **QUICK)
    assert [row["suspicious"] for row in unchecked.loci()] == [None]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_locus_that_fails_is_reported_and_loses_nothing(reference, tmp_path, n_jobs):
    bad = Locus("bad", np.array([[1.0, 2.0], [2.0, 1.0]]), 400, z=[1.0, 2.0])
    found = finemap([*loci(), bad], n_jobs=n_jobs, **QUICK)
    assert [failure.task.name for failure in found.failures] == ["bad"]
    assert found.missing == ["bad"]
    found.write(tmp_path)
    columns, summary = tables(tmp_path)
    assert columns == reference[0]
    last = rows(summary)[-1]
    assert last["locus"] == "bad"
    assert "correlations must lie between" in last["note"]
    assert last["state"] == "NA"
    assert "1 loci: see their note" in str(found)


def test_too_few_draws_leave_probabilities_without_sets(monkeypatch):
    def refuse(self, **options):
        raise ValueError("too few draws: give n_draws")

    monkeypatch.setattr(MODULE.EvidenceResult, "credible_sets", refuse)
    found = finemap(loci(2)[1], **QUICK)
    (row,) = found.loci()
    assert (row["n_sets"], row["note"]) == (0, "too few draws: give n_draws")
    assert max(c["probability"] for c in found.columns()) > 0.1
    assert "1 loci: see their state and note" in str(found)


def test_a_temporary_store_ends_with_the_result(monkeypatch):
    found = finemap(loci(1, 5))
    directory = found.store.directory
    assert found.missing == []
    del found
    gc.collect()
    assert not directory.exists()
    made = []
    real = MODULE.tempfile.mkdtemp
    monkeypatch.setattr(MODULE.tempfile, "mkdtemp", lambda **k: made.append(real(**k)) or made[0])
    with pytest.raises(ValueError, match="1 ≤ i ≤ n"):
        finemap(loci(1, 5), shard=(3, 2))
    assert made
    assert not Path(made[0]).exists()


def test_the_bar_counts_loci(capfd):
    finemap(loci(2, 8), n_jobs=1, progress=True)
    shown = capfd.readouterr().err
    assert "2/2" in shown
    assert "locus" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"loci": []}, "at least one locus"),
        ({"loci": [*loci(1, 5), *loci(1, 5)]}, "'locus0' is given twice"),
        ({"coverage": 1.5}, "coverage must be at most 1"),
        ({"coverage": 0}, "coverage must be positive"),
        ({"min_purity": -0.1}, "min_purity"),
        ({"time_limit": 3.0}, "no option time_limit"),
        ({"speed": 3.0}, "no option speed"),
        ({"shard": (3, 2)}, "1 ≤ i ≤ n"),
        ({"random_state": "one"}, "random_state"),
        ({"rho": np.ones(3)}, "plain data"),
    ],
)
def test_impossible_arguments_are_refused_before_any_run(arguments, words, monkeypatch):
    monkeypatch.setattr(MODULE, "run_locus", None)
    with pytest.raises(ValueError, match=words):
        finemap(**{"loci": loci(1, 5), **arguments})


def test_kernels_are_compiled_before_the_workers_start(monkeypatch):
    order = []
    real = MODULE.run_locus
    monkeypatch.setattr(MODULE, "compile_kernels", lambda: order.append("compiled"))
    monkeypatch.setattr(MODULE, "run_locus", lambda task: order.append("ran") or real(task))
    finemap(loci(2, 5), n_jobs=1)
    assert order == ["compiled", "ran", "ran"]
