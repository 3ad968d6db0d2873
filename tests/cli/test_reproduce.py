"""The plan, the page and the command."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import xarray as xr

from helpers.tasks import ANNEAL, NOISE
from l0anneal.cli.app import main
from l0anneal.reproduction import Store, Task, collect
from l0anneal.reproduction.collect import Failure
from l0anneal.reproduction.paper import FIGURES, RHOS, plan, sweeps, tasks_of
from l0anneal.reproduction.report import write_report

QUICKEST = "time"  # no theory, and runs without a plan, which are short


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    store = Store(out / "tasks")
    collect(tasks_of(plan([QUICKEST, "noise-only"], quick=True)), store, n_jobs=1)
    write_report(out, store, [QUICKEST, "noise-only"], quick=True)
    return out


def command(capsys, *args):
    with pytest.raises(SystemExit) as exit:
        main(["reproduce", *map(str, args)])
    captured = capsys.readouterr()
    return exit.value.code, captured.out, captured.err


# ---------------------------------------------------------------- the plan


def test_the_full_plan_is_the_papers():
    full = sweeps()
    for name, parameters in {
        "easy": (0.8, 0.4, 0.2),
        "hard": (0.8, 0.55, 0.5),
        "metastable": (0.75, 0.65, 0.5),
        "rapid": (0.75, 0.55, 0.5),
        "noise": (0.5, 0.2, 0.0),
    }.items():
        found = full[name].parameters
        assert (found["alpha"], found["rho"], found["rho_hat"]) == parameters
        assert full[name].samples == {100: 100, 200: 100, 400: 100}
        assert full[name].solver["schedule"] == {"kind": "paper", "tau": 5}
    assert full["slow"].solver["schedule"]["tau"] == 100
    assert full["noise"].parameters["sigma_xi2"] == 1.0


@pytest.mark.parametrize("quick", [False, True])
def test_every_sweep_is_in_a_figure_and_every_figure_has_what_it_draws(quick):
    used = {name for figure in FIGURES for name in plan([figure], quick)}
    assert used == set(sweeps(quick))
    for figure in FIGURES:
        assert plan([figure], quick)
    for group in RHOS:
        assert len([name for name in sweeps(quick) if name.startswith(group)]) >= 2


def test_shared_tasks_are_counted_once():
    both = tasks_of(plan(["noise-only", "time"]))
    assert len(both) == len({task.id for task in both})
    separate = len(tasks_of(plan(["noise-only"]))) + len(tasks_of(plan(["time"])))
    assert len(both) < separate


def test_an_unknown_figure_is_named():
    with pytest.raises(ValueError, match="no figure fig7; there are easy"):
        plan(["fig7"])


# ---------------------------------------------------------------- the page


class Page(HTMLParser):
    """What a browser would load, and whether tags match."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.sources, self.heads, self.cells = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.sources += [v for k, v in attrs if k in ("src", "href")]
        if tag == "td":
            self.cells.append(attributes.get("data-label"))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "h1", "h2", "h3"):
            self.heads.append(data)


def test_the_page_is_whole_and_needs_no_network(finished):
    text = (finished / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert not re.search(r"https?://|<script|@import|url\(", text)
    assert 'name="viewport"' in text
    assert "@media (max-width" in text
    assert "paper says" in page.heads
    # the table first, then the figures
    assert text.index("<table>") < text.index("<figure")
    assert page.cells[:5] == ["quantity", "paper says", "theory here", "measured here", "verdict"]


def test_the_page_says_how_small_it_is_and_what_it_found(finished):
    text = (finished / "report.html").read_text(encoding="utf-8")
    assert "quick version" in text
    assert "N = 50: 10, N = 100: 10" in text
    for words in ("0.2136015", "0.0965908", "0.02720(62)", "1RSB: 0.01201", "N³"):
        assert words in text
    assert "nan" not in re.sub(r"base64,[^\"]*", "", text)


def test_figures_and_data_are_written(finished):
    for name in (QUICKEST, "noise-only"):
        assert (finished / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        svg = (finished / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert "</svg>" in svg
        assert "<text" in svg  # words are words, to be searched and copied
    with xr.open_dataset(finished / "data" / "noise.nc") as data:
        assert data["distortion"].dims == ("size", "mu")
        assert (data["distortion_error"] > 0).all()
        assert data["n_samples"].to_numpy().tolist() == [10, 10]
        assert data.attrs["alpha"] == 0.5


def test_a_report_of_nothing_names_what_is_missing(tmp_path):
    failure = Failure(Task(NOISE, ANNEAL, 4), "ValueError: too <small>", "Traceback")
    page = write_report(tmp_path, Store(tmp_path / "tasks"), ["easy"], failures=[failure])
    text = page.read_text(encoding="utf-8")
    Page(text)
    assert "0 of 300 tasks" in text
    assert "Omitted: no finished runs yet of: easy" in text
    assert "too &lt;small&gt;" in text
    assert "&quot;sample&quot;:4" in text


# ---------------------------------------------------------------- the command


def test_list_names_every_figure(capsys):
    code, out, _ = command(capsys, "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(FIGURES)


def test_a_finished_run_is_not_run_again(capsys, finished, tmp_path):
    args = [QUICKEST, "--quick", "--out", tmp_path, "--store", finished / "tasks", "--jobs", 1]
    code, out, _ = command(capsys, *args)
    assert code == 0
    assert "0 tasks run, 69 were finished before, 0 failed" in out
    assert out.splitlines()[-1] == f"The report is {tmp_path / 'report.html'}"
    assert (tmp_path / "report.html").exists()


def test_shards_report_only_when_all_is_there(capsys, tmp_path):
    args = [QUICKEST, "--quick", "--out", tmp_path, "--jobs", 1, "--backend", "threading"]
    code, out, _ = command(capsys, *args, "--shard", "1/2")
    assert code == 0
    assert "35 tasks run" in out
    assert "34 tasks of other shares are missing" in out
    assert not (tmp_path / "report.html").exists()
    code, out, _ = command(capsys, *args, "--shard", "2/2")
    assert code == 0
    assert out.splitlines()[-1].startswith("The report is ")


def test_only_report_runs_nothing(capsys, tmp_path):
    code, out, _ = command(capsys, QUICKEST, "--quick", "--out", tmp_path, "--only-report")
    assert code == 0
    assert "tasks run" not in out
    assert not list(tmp_path.rglob("*.npz"))


def test_a_local_dask_cluster_from_the_command(capsys, finished, tmp_path):
    pytest.importorskip("distributed")
    args = [QUICKEST, "--quick", "--out", tmp_path, "--store", finished / "tasks"]
    gone = tasks_of(plan([QUICKEST], quick=True))[0]
    Store(finished / "tasks").path(gone).unlink()
    code, out, _ = command(capsys, *args, "--jobs", 1, "--backend", "dask")
    assert code == 0
    assert "1 tasks run, 68 were finished before" in out


def test_failures_are_named_at_the_end_with_exit_code_1(capsys, tmp_path, monkeypatch):
    module = sys.modules["l0anneal.reproduction.collect"]
    real = module.run

    def fragile(task):
        if task.solver["kind"] == "l1" and task.sample == 1:
            raise ArithmeticError("no luck")
        return real(task)

    monkeypatch.setattr(module, "run", fragile)
    args = [QUICKEST, "--quick", "--out", tmp_path, "--jobs", 1]
    code, out, err = command(capsys, *args)
    assert code == 1
    assert "66 tasks run, 0 were finished before, 3 failed" in out
    assert err.count("failed: ArithmeticError: no luck") == 3
    assert '"kind":"l1"' in err
    monkeypatch.undo()
    code, out, _ = command(capsys, *args)
    assert code == 0
    assert "3 tasks run, 66 were finished before, 0 failed" in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fig7"], "no figure fig7"),
        (["--shard", "3/2"], "1 ≤ i ≤ n"),
        (["--shard", "half"], "i/n"),
        (["--scheduler", "tcp://localhost:1"], "--backend dask"),
        (["--backend", "carrier-pigeon"], "loky, threading or dask"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, args, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = command(capsys, *args)
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_command_line_starts_without_the_heavy_parts():
    program = (
        "import sys, l0anneal.cli.app; "
        "heavy = {'xarray', 'matplotlib', 'sklearn', 'distributed'}; print(*heavy & {*sys.modules})"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == []
