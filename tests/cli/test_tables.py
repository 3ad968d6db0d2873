"""Command lines on tables of all kinds: the right answer, or one clear line and exit code 2.

The houses are made so that the price depends on rooms and garden alone, and strongly. Every right
answer is therefore known, whatever the file looks like.
"""

import gzip
import json
import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from helpers.processes import child
from l0anneal import EvidenceResult, KickResult, SparseProblem, solve
from l0anneal.cli.app import main
from l0anneal.diagnosis import posterior as judged
from l0anneal.engine.warm_up import warm_up
from l0anneal.samplers.evidence import draws, result

pytestmark = pytest.mark.usefixtures("few_draws", "own_time")

TRUE = {"rooms": 35.0, "garden": -4.0}
OFFSET = 100.0


def houses(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "rooms": rng.integers(1, 8, n).astype(float),
            "age": rng.uniform(0, 99, n),
            "garden": rng.uniform(0, 20, n),
            "floor": rng.integers(0, 9, n).astype(float),
        }
    )
    frame["price"] = OFFSET + sum(c * frame[name] for name, c in TRUE.items())
    frame["price"] += 0.5 * rng.standard_normal(n)
    return frame


def write(folder):
    """Write tables that differ in form, and tables in which something is wrong."""
    good = houses()
    good.to_csv("plain.csv", index=False)
    good.to_csv("index.csv")
    good.to_csv("named_index.csv", index_label="id")
    good.sample(frac=1, random_state=0).to_csv("shuffled.csv")
    good.to_csv("semicolon.csv", index=False, sep=";", decimal=",")
    good.to_csv("tabs.tsv", index=False, sep="\t")
    good.to_csv("bars.txt", index=False, sep="|")
    good.to_csv("packed.csv.gz", index=False)
    good.to_csv("spaces.txt", index=False, sep=" ")
    (folder / "aligned.txt").write_text(good.to_string())
    good.to_csv("utf16.csv", index=False, encoding="utf-16")
    good.to_parquet("good.parquet")
    good.to_feather("good.feather")
    good.to_excel("good.xlsx", index=False)
    numbered = good.set_axis(range(5), axis=1)
    numbered.to_csv("numeric_header.csv", index=False)
    numbered.to_csv("numeric_both.csv")
    numbered.to_csv("headless.csv", index=False, header=False)
    good.rename(columns={"rooms": "rooms, number of"}).to_csv("comma_name.csv", index=False)
    good.rename(columns={"rooms": "Zimmer größe"}).to_csv(
        "latin.csv", index=False, encoding="latin-1"
    )
    good.assign(constant=7).to_csv("constant.csv", index=False)
    city = np.random.default_rng(1).choice(["Rome", "Oslo", "Bern"], len(good))
    town = good.assign(city=city)
    town["price"] += 20.0 * (city == "Oslo")
    town.to_csv("city.csv", index=False)
    holes = good.copy()
    holes.loc[[3, 8], "age"] = np.nan
    holes.to_csv("holes.csv", index=False)
    good.assign(price=good.price.where(good.index != 5)).to_csv("no_price.csv", index=False)
    good.assign(w=np.arange(len(good)) % 3).to_csv("weights.csv", index=False)
    good.assign(w=-1.0).to_csv("negative.csv", index=False)
    pd.concat([good, good[["age"]]], axis=1).to_csv("twice.csv", index=False)
    good.assign(age=good.age.replace(good.age[4], np.inf)).to_csv("infinite.csv", index=False)
    good.assign(copy=2 * good.price + 1).to_csv("leak.csv", index=False)
    good.assign(price=(good.price > good.price.median()).astype(int)).to_csv("two.csv", index=False)
    good.assign(twin=good.rooms, price=good.price + 1e9).to_csv("twin.csv", index=False)
    good.head(3).to_csv("three_rows.csv", index=False)
    good[["price"]].to_csv("one_column.csv", index=False)
    good.head(1).to_csv("one_row.csv", index=False)
    good.head(0).to_csv("no_rows.csv", index=False)
    good.assign(price=5).to_csv("flat.csv", index=False)
    good.assign(name=[f"house {i}" for i in good.index]).to_csv("labels.csv", index=False)
    good.drop(columns="price").head(20).to_csv("new.csv", index=False)
    good[["age", "rooms", "floor"]].to_csv("new_short.csv", index=False)
    town.assign(city="Paris").to_csv("new_city.csv", index=False)
    good.drop(columns="price").to_csv("A.csv", index=False)
    good[["price"]].to_csv("y.csv", index=False)
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("a,b,c\n1,2,3\n4,5\n6,7,8\n")
    (folder / "notes.docx").write_text("hello")
    (folder / "binary.csv").write_bytes(b"\x00\x01\x02\x03")
    (folder / "damaged.parquet").write_bytes(b"PAR1 not really")
    (folder / "damaged.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:-9])
    return good


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setenv("COLUMNS", "80")
    warm_up()  # so that no notice about compiling gets into the output
    yield write(folder)
    patch.undo()


@dataclass
class Ended:
    code: int
    out: str
    err: str
    data: dict = field(default_factory=dict)


def run(capsys, command):
    """Run one command line in this process; anything but SystemExit is a traceback and fails."""
    args = re.findall(r"'[^']*'|\S+", command)
    with pytest.raises(SystemExit) as exit:
        main([arg.strip("'") for arg in args])
    captured = capsys.readouterr()
    data = json.loads(captured.out) if "--json" in args and exit.value.code == 0 else {}
    return Ended(exit.value.code or 0, captured.out, captured.err, data)


def problems(ended, names=tuple(TRUE), intercept=OFFSET, said=None):
    """List what is wrong with an answer in JSON."""
    wrong = []
    if ended.code != 0:
        return [f"exit code {ended.code}: {ended.err}"]
    found = dict(zip(ended.data.get("names", []), ended.data["coef"]))
    if sorted(found) != sorted(names):
        wrong.append(f"columns {sorted(found)}")
    for name, coef in zip(names, TRUE.values()):
        if abs(found.get(name, 0.0) - coef) > 0.5:
            wrong.append(f"{name}: {found.get(name)}")
    if abs(ended.data["intercept"] - intercept) > 3.0:
        wrong.append(f"intercept {ended.data['intercept']}")
    notes = [line for line in ended.err.splitlines() if line]
    if any(not line.startswith("l0anneal: note: ") for line in notes):
        wrong.append(f"stderr {ended.err}")
    if said is None and notes:
        wrong.append(f"unexpected notes {notes}")
    if said is not None and said not in ended.err:
        wrong.append(f"{said!r} is not in {notes}")
    return wrong


def one_line(ended, message):
    """List what is wrong with a refusal."""
    wrong = [] if ended.code == 2 else [f"exit code {ended.code}"]
    lines = [line for line in ended.err.splitlines() if not line.startswith("l0anneal: note: ")]
    if len(lines) != 1 or not lines[0].startswith("l0anneal: "):
        wrong.append(f"stderr {lines}")
    if ended.out:
        wrong.append(f"stdout {ended.out[:80]}")
    if message not in ended.err:
        wrong.append(f"{message!r} is not in {ended.err}")
    return wrong


P = "--target price"
RIGHT = [
    (f"plain.csv {P}", {}),
    ("plain.csv --target 4", {"said": "the target, column 4, is 'price'"}),
    ("plain.csv --target -1", {"said": "column -1, is 'price'"}),
    (f"index.csv {P}", {"said": "'Unnamed: 0' counts the rows: it is left out"}),
    (f"named_index.csv {P}", {"said": "'id' counts the rows"}),
    (f"shuffled.csv {P}", {"said": "'Unnamed: 0' numbers the rows"}),
    (f"semicolon.csv {P}", {}),
    (f"tabs.tsv {P}", {}),
    (f"bars.txt {P}", {}),
    (f"packed.csv.gz {P}", {}),
    (f"utf16.csv {P}", {}),
    (f"spaces.txt {P}", {}),
    (f"aligned.txt {P}", {"said": "'Unnamed: 0' counts the rows"}),
    (f"good.parquet {P}", {}),
    (f"good.feather {P}", {}),
    (f"good.xlsx {P}", {}),
    ("numeric_header.csv --target 4", {"names": ("0", "2"), "said": "read as names of columns"}),
    ("numeric_both.csv --target 4", {"names": ("0", "2"), "said": "it is left out"}),
    ("headless.csv --target 4", {"names": ("0", "2"), "said": "numbered from 0"}),
    (f"comma_name.csv {P}", {"names": ("rooms, number of", "garden")}),
    (f"latin.csv {P}", {"names": ("Zimmer größe", "garden"), "said": "read as Latin-1"}),
    (f"constant.csv {P}", {"said": "1 column is constant, left out: 'constant'"}),
    (f"city.csv {P} --drop city,age", {"intercept": OFFSET + 6}),
    (f"city.csv {P} --columns rooms --columns garden", {"intercept": OFFSET + 6}),
    (f"holes.csv {P} --impute mean", {"said": "replaced by the mean of the column: 'age' (2)"}),
    (f"holes.csv {P} --drop-rows", {"said": "2 of 60 rows have missing values"}),
    (f"holes.csv {P} --drop age", {}),
    (f"no_price.csv {P} --drop-rows", {"said": "1 of 60 rows"}),
    (f"weights.csv {P} --weights w", {"said": "60 rows count as 60"}),
    (f"twice.csv {P}", {"said": "2 columns are named 'age'"}),
    (f"plain.csv {P} -k 2 --time-limit 0.2", {}),
    ("A.csv y.csv --intercept", {}),
]
WRONG = [
    ("plain.csv", "give --target NAME (the columns are 'rooms', 'age'"),
    ("plain.csv --target prize", "no column 'prize' for target; did you mean 'price'?"),
    ("plain.csv --target 9", "5 columns, numbered from 0 to 4"),
    (f"plain.csv {P} --drop garage", "no column 'garage' for drop"),
    (f"plain.csv {P} --columns rooms,price", "cannot explain itself"),
    (f"plain.csv {P} --drop age,price", "'price' is the target and cannot be left out"),
    (f"plain.csv {P} --weights price", "'price' is the target and cannot also have the weights"),
    (f"plain.csv {P} --impute zero", "impute must be one of"),
    (f"plain.csv {P} --quick", "see l0anneal solve --help"),
    (f"plain.csv {P} -k 9", "between 0 and N = 4"),
    ("plain.csv y.csv --target price", "--target goes with one table"),
    (f"city.csv {P}", "column 'city' is text"),
    (f"city.csv {P}", "leave it out with --drop city, or make dummies with --one-hot"),
    (f"labels.csv {P}", "leave it out with --drop name\n"),
    (f"labels.csv {P} --one-hot", "column 'name' has 60 different words"),
    ("city.csv --target city --one-hot", "the target 'city' must be a number"),
    ("city.csv --target city --one-hot", "1 where city is 'Rome' and 0 elsewhere"),
    (f"holes.csv {P}", "column 'age' has 2 missing values in 60 rows"),
    (f"holes.csv {P}", "--impute mean"),
    (f"no_price.csv {P}", "--drop-rows"),
    (f"infinite.csv {P}", "column 'age' has 1 infinite value;"),
    (f"negative.csv {P} --weights w", "weights must be ≥ 0"),
    ("twice.csv --target age", "several columns named 'age'"),
    (f"one_column.csv {P}", "no column left to choose from"),
    (f"one_row.csv {P}", "has 1 usable row; at least 3 are needed"),
    (f"no_rows.csv {P}", "there is a header but no row"),
    (f"flat.csv {P}", "the target 'price' is 5 in every row"),
    (f"empty.csv {P}", "the file is empty"),
    ("ragged.csv --target a", "row 3 has 2 values, but 3 are needed"),
    ("notes.docx --target a", "unknown format '.docx'; save the table as one of .csv"),
    ("binary.csv --target a", "not a text file"),
    ("damaged.parquet --target a", "not a readable .parquet file"),
    ("damaged.csv.gz --target a", "not a readable gzip file"),
    ("nowhere.csv --target a", "no such file: nowhere.csv"),
    (f"plain.csv {P} --predict new_short.csv", "has no 'garden': add it"),
    (f"city.csv {P} --one-hot --predict new_city.csv", "has the word 'Paris'"),
    (f"plain.csv {P} --predictions p.csv", "--predictions needs --predict"),
    (f"plain.csv {P} --out model.pkl", "a result must be one of .json, .npz"),
    (f"plain.csv {P} --plot model.doc", "a figure must be one of"),
    ("A.csv empty.csv", "the file is empty"),
    ("city.csv y.csv", "column 5 holds"),
]


@pytest.mark.parametrize(("command", "expected"), RIGHT, ids=[command for command, _ in RIGHT])
def test_a_table_in_any_form_gives_the_right_answer(tables, capsys, command, expected):
    ended = run(capsys, f"solve {command} --seed 0 --json")
    assert problems(ended, **expected) == []


@pytest.mark.parametrize(("command", "message"), WRONG)
def test_what_is_in_the_way_is_named_in_one_line(tables, capsys, command, message):
    assert one_line(run(capsys, f"solve {command} --seed 0"), message) == []


def test_the_checks_find_wrong_answers(tables, capsys):
    plain = run(capsys, f"solve plain.csv {P} --seed 0 --json")
    assert problems(plain) == []
    assert problems(plain, names=("rooms", "age")) != []
    assert problems(plain, intercept=0.0) != []
    assert problems(plain, said="something else") != []
    assert one_line(plain, "") != []
    noted = run(capsys, f"solve constant.csv {P} --seed 0 --json")
    assert problems(noted) != []
    assert problems(run(capsys, f"solve city.csv {P} --json")) != []
    bare = run(capsys, f"solve plain.csv {P} --no-intercept --seed 0 --json")
    assert problems(bare, said="") != []


def test_two_files_without_an_intercept_get_a_note(tables, capsys):
    ended = run(capsys, "solve A.csv y.csv --seed 0 --json")
    assert ended.code == 0
    assert "a constant explains" in ended.err
    assert "--intercept" in ended.err
    assert set(ended.data["names"]) <= {"rooms", "age", "garden", "floor"}
    assert run(capsys, "solve A.csv y.csv --no-intercept --seed 0 --json").err == ""


def test_dummies_of_one_variable_enter_together(tables, capsys):
    ended = run(capsys, f"solve city.csv {P} --one-hot --seed 0 --json")
    names = {"rooms", "garden", "city=Bern", "city=Oslo", "city=Rome"}
    chosen = set(ended.data["names"])
    assert chosen < names
    assert len(chosen) == 4  # two dummies; the most frequent city has none
    assert "'city' enters as 2 dummies, to be compared with" in ended.err
    base = re.search(r"compared with '(\w+)'", ended.err).group(1)
    coef = dict(zip(ended.data["names"], ended.data["coef"])) | {f"city={base}": 0.0}
    assert coef["city=Oslo"] - coef["city=Rome"] == pytest.approx(20.0, abs=1.0)


def test_weights_count_rows(tables, capsys):
    weighted = run(capsys, f"solve weights.csv {P} --weights w -k 2 -t 0.1 --seed 0 --json")
    w = np.arange(len(tables)) % 3
    tables.loc[np.repeat(tables.index, w)].to_csv("repeated.csv", index=False)
    repeated = run(capsys, f"solve repeated.csv {P} -k 2 -t 0.1 --seed 0 --json")
    np.testing.assert_allclose(weighted.data["coef"], repeated.data["coef"])
    assert weighted.data["n_samples"] == repeated.data["n_samples"] == w.sum() - 1


def test_a_column_computed_from_the_target_is_pointed_out(tables, capsys):
    ended = run(capsys, f"solve leak.csv {P} --seed 0 --json")
    assert "column 'copy' is the target up to a factor" in ended.err
    assert ended.data["names"] == ["copy"]


def test_predictions_are_printed_and_written(tables, capsys):
    new = pd.read_csv("new.csv")
    truth = OFFSET + sum(c * new[name] for name, c in TRUE.items())
    ended = run(capsys, f"solve plain.csv {P} --predict new.csv --seed 0 --json")
    predicted = ended.data["predictions"]
    np.testing.assert_allclose(predicted["mean"], truth, atol=1.0)
    assert 0.3 < min(predicted["std"]) <= max(predicted["std"]) < 0.8  # the noise is 0.5
    ended = run(capsys, f"solve plain.csv {P} --predict new.csv --predictions p.csv --seed 0")
    assert "predictions written to p.csv" in ended.out
    np.testing.assert_allclose(pd.read_csv("p.csv")["price"], predicted["mean"], rtol=1e-12)
    ended = run(capsys, f"solve plain.csv {P} --predict new.csv --seed 0")
    assert "10 more: --predictions FILE.csv" in ended.out


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_a_result_can_be_loaded_from_both_formats(tables, capsys, suffix):
    assert run(capsys, f"solve plain.csv {P} --seed 0 --out model.{suffix}").code == 0
    loaded = EvidenceResult.load(f"model.{suffix}")
    expected = solve(SparseProblem.from_table(tables, "price"), random_state=0)
    assert loaded.feature_names == ("rooms", "age", "garden", "floor")
    assert loaded.intercept == pytest.approx(expected.intercept, rel=1e-12)
    np.testing.assert_allclose(loaded.coef, expected.coef, rtol=1e-9)
    assert loaded.draws is not None
    assert run(capsys, f"solve plain.csv {P} -k 2 -t 0.1 --out kicks.{suffix}").code == 0
    assert KickResult.load(f"kicks.{suffix}").support.tolist() == [0, 2]


@pytest.mark.parametrize("options", ["", "-k 2 -t 0.1", "--one-hot", "--predict new.csv"])
def test_the_answer_fits_80_columns_and_names_the_columns(tables, capsys, options):
    table = "city.csv" if "one-hot" in options else "plain.csv"
    ended = run(capsys, f"solve {table} {P} {options} --seed 0")
    assert ended.code == 0
    assert max(map(len, ended.out.splitlines())) <= 80
    for word in ("rooms", "garden", "(intercept)", "R²", "noise", "how sure", "next"):
        assert word in ended.out
    assert ("probability" in ended.out.splitlines()[2]) == ("-k" not in options)


def test_long_names_and_many_columns_fit_80_columns(tables, capsys):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((90, 60))
    frame = pd.DataFrame(X, columns=[f"{'a very long name ' * 6}number {j}" for j in range(60)])
    frame["total"] = X[:, :50].sum(axis=1) + 0.01 * rng.standard_normal(90)
    frame.to_csv("long.csv", index=False)
    ended = run(capsys, "solve long.csv --target total -k 50 -t 0.2 --seed 0")
    assert ended.code == 0
    assert "10 more: --json" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


def test_a_plot_has_the_names(tables, capsys):
    assert run(capsys, f"solve plain.csv {P} --seed 0 --plot plot.svg").code == 0
    with open("plot.svg", encoding="utf-8") as file:
        text = file.read()
    assert "<!-- rooms -->" in text
    assert "<!-- garden -->" in text


def test_some_dummies_of_a_variable_are_pointed_out(tables, capsys):
    ended = run(capsys, f"solve city.csv {P} --one-hot -k 3 -t 0.1 --seed 0 --json")
    assert len([name for name in ended.data["names"] if name.startswith("city=")]) == 1
    assert "1 of the 2 dummies of 'city'" in ended.err
    ended = run(capsys, f"solve city.csv {P} --one-hot -k 4 -t 0.1 --seed 0 --json")
    assert "of the 2 dummies" not in ended.err


def test_two_classes_are_pointed_out(tables, capsys):
    ended = run(capsys, f"solve two.csv {P} -k 2 -t 0.1 --seed 0 --json")
    assert "'price' has only the values 0 and 1" in ended.err
    assert "LogisticRegression" in ended.err


def test_predictions_of_a_number_of_columns_have_the_textbook_deviations(tables, capsys):
    ended = run(capsys, f"solve plain.csv {P} -k 2 -t 0.1 --predict new.csv --seed 0 --json")
    old, new = (
        np.column_stack([np.ones(len(f)), f[["rooms", "garden"]]])
        for f in (tables, pd.read_csv("new.csv"))
    )
    coef, left, *_ = np.linalg.lstsq(old, tables["price"], rcond=None)
    leverage = np.sum(new @ np.linalg.inv(old.T @ old) * new, axis=1)
    std = np.sqrt(left[0] / (len(old) - 3) * (1.0 + leverage))
    np.testing.assert_allclose(ended.data["predictions"]["mean"], new @ coef, rtol=1e-9)
    np.testing.assert_allclose(ended.data["predictions"]["std"], std, rtol=1e-6)


def test_equal_columns_and_a_large_offset(tables, capsys, monkeypatch):
    """Sets are named by their columns, and what an offset leaves of a number is shown."""
    for module in (draws, result, judged):
        monkeypatch.setattr(module, "ENOUGH", 1)  # so that few draws are enough for sets
    ended = run(capsys, f"solve twin.csv {P} --seed 0 --diagnose --predict twin.csv")
    assert re.search(r"columns (rooms and twin|twin and rooms) stand in", ended.out)
    assert "columns of one set are alike" in ended.out
    assert re.search(r"\(intercept\) +10000001\d\d", ended.out)
    (first,) = re.findall(r"^ +0 +(\d+)", ended.out, re.MULTILINE)
    assert int(first) == pytest.approx(1e9 + tables["price"][0], rel=0, abs=9)


def test_too_few_rows_are_named_and_no_time_is_asked_for(tables, capsys):
    ended = run(capsys, f"solve three_rows.csv {P} --seed 0")
    assert ended.code == 0
    assert "add rows: 3 are too few to tell columns from noise" in ended.out
    assert "time" not in ended.out


def test_annealing_recommends_only_what_it_can_do(tables, capsys):
    ended = run(capsys, "anneal A.csv y.csv -k 2 --seed 0")
    assert "a constant explains" in ended.err
    for option in ("--predict", "--diagnose", "R² 2"):
        assert option not in ended.out
    ended = run(capsys, "anneal A.csv y.csv -k 2 --seed 0 --intercept --json")
    assert problems(ended) == []


def test_notes_are_wrapped_on_a_terminal_only(tables, capsys, monkeypatch):
    command = "solve A.csv y.csv -k 2 -t 0.05 --seed 0 --no-progress"
    assert max(map(len, run(capsys, command).err.splitlines())) > 80
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    lines = run(capsys, command).err.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80


def test_version_help_and_completion(capsys, monkeypatch):
    from l0anneal import __version__

    monkeypatch.setenv("COLUMNS", "80")
    assert run(capsys, "--version").out == f"l0anneal {__version__}\n"
    for command in ("solve", "anneal", "finemap", "reproduce", "theory", "phase-diagram"):
        ended = run(capsys, f"{command} --help")
        assert ended.code == 0
        assert f"Example: l0anneal {command}" in ended.out
        assert f"Usage: l0anneal {command}" in ended.out
        assert "…" not in ended.out  # no option is cut
        assert max(map(len, ended.out.splitlines())) <= 80
    assert "--install-completion" in run(capsys, "--help").out


def test_the_bar_is_shown_on_a_terminal_only(tables, capsys):
    assert run(capsys, f"solve plain.csv {P} -k 2 -t 0.5 --json").err == ""
    assert "kick" in run(capsys, f"solve plain.csv {P} -k 2 -t 0.5 --json --progress").err


def test_ctrl_c_prints_the_best_so_far_by_name(tables):
    command = ["solve", "plain.csv", "--target", "price", "-k", "2", "-t", "600", "--progress"]
    with child(["-m", "l0anneal", *command]) as process:
        # the bar shows "?kick/s" before the first kick, and then a rate that ends in 5 now and then
        process.wait_for("5kick/s", timeout=300)
        process.interrupt()
        ended = process.finish()
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    assert "rooms" in ended.stdout
    assert "interrupted: these are the best columns so far" in ended.stdout
