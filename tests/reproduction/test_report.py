"""The page of the report, its figures and its data files."""

import re
import shutil
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import xarray as xr

from helpers.tasks import ANNEAL, NOISE
from l0anneal.reproduction import Store, Task, collect
from l0anneal.reproduction.figures import FIGURES, sweeps_of
from l0anneal.reproduction.report import decided, redraw_report, write_report
from l0anneal.reproduction.rows import Row
from l0anneal.reproduction.rules import Verdict
from l0anneal.reproduction.sweeps import tasks_of
from l0anneal.tasks.collect import Failure

NAMES = ["time", "noise-only"]  # runs on pure noise, which are short


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    store = Store(out / "tasks")
    collect(tasks_of(sweeps_of(NAMES, quick=True)), store, n_jobs=1)
    write_report(out, store, NAMES, quick=True)
    return out


class Page(HTMLParser):
    """What a browser would load; fails if tags do not match."""

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


def test_the_page_is_complete_and_needs_no_network(finished):
    text = (finished / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    images = [source for source in page.sources if not source.startswith("#")]
    assert len(images) == 2
    assert all(source.startswith("data:image/png;base64,") for source in images)
    # every row of the table belongs to a group that links to its figure, and the figure links back
    links = {source for source in page.sources if source.startswith("#")}
    assert links == {f"#{prefix}{name}" for name in NAMES for prefix in ("", "rows-")}
    assert all(f'id="{link[1:]}"' in text for link in links)
    assert not re.search(r"https?://|<script|@import|url\(", text)
    assert 'name="viewport"' in text
    assert "@media (max-width" in text
    assert "prefers-color-scheme: dark" in text
    assert "paper says" in page.heads
    # the table comes before the figures
    assert text.index("<table>") < text.index("<figure")
    assert page.cells[:5] == ["quantity", "paper says", "theory here", "measured here", "verdict"]


def test_the_page_gives_its_sizes_and_its_numbers(finished):
    text = (finished / "report.html").read_text(encoding="utf-8")
    assert "quick version" in text
    assert "N = 50: 10, N = 100: 10" in text
    for words in ("0.2136015", "0.0965908", "0.02720(62)", "1RSB: 0.01201", "N³"):
        assert words in text
    assert "nan" not in re.sub(r"base64,[^\"]*", "", text)


def test_the_page_says_where_it_comes_from(finished):
    text = (finished / "report.html").read_text(encoding="utf-8")
    for word in ("version: ", "engine: ", "libraries: Python", "run: 20", "processor hours"):
        assert word in text


def test_a_report_is_redrawn_from_its_data_to_the_byte(finished, tmp_path):
    page = redraw_report(finished, tmp_path / "again")
    assert page.read_bytes() == (finished / "report.html").read_bytes()
    for name in NAMES:
        for suffix in ("png", "svg"):
            file = f"figures/{name}.{suffix}"
            assert (tmp_path / "again" / file).read_bytes() == (finished / file).read_bytes()


def test_holm_counts_all_rows_of_the_page():
    few = {"a": [Row("q", "p", "t", "m", Verdict("test", "", 0.02, 1.0)), Row("q", "", "", "")]}
    many = {**few, "b": [Row("q", "p", "t", "m", Verdict("test", "", 0.5, 1.0))] * 9}
    assert decided(few)["a"][0][1].status == "agrees"
    assert decided(few)["a"][1][1] is None
    assert decided(many)["a"][0][1].status == "undecided"


def test_figures_and_data_are_written(finished):
    for name in NAMES:
        assert (finished / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        svg = (finished / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert "</svg>" in svg
        assert "<text" in svg  # text stays text, which can be searched and copied
    with xr.open_dataset(finished / "data" / "noise.nc") as data:
        assert data["distortion"].dims == ("size", "sample", "mu")
        assert data["n_samples"].to_numpy().tolist() == [10, 10]
        assert data.attrs["alpha"] == 0.5


def test_sweeps_of_a_group_share_a_data_file(tmp_path):
    sweeps = FIGURES["rho"].sweeps(True)
    store = Store(tmp_path / "tasks")
    name = "rho-noise-a-0.05"
    assert collect(sweeps[name].tasks(50)[:1], store, n_jobs=1).n_run == 1
    write_report(tmp_path, store, ["rho"], quick=True)
    groups = sorted({sweep.group or name for name, sweep in sweeps.items()})
    assert sorted(path.stem for path in (tmp_path / "data").glob("*.nc")) == groups
    for own, n in ((name, 1), ("rho-noise-a-0.2", 0)):
        with xr.open_dataset(tmp_path / "data" / "rho-noise-a.nc", group=own) as data:
            assert data["n_samples"].to_numpy().tolist() == [n]


def test_the_report_of_an_unfinished_run_names_what_is_incomplete(finished, tmp_path):
    """Two sizes of a sweep lack samples, and one of another sweep has none."""
    store = Store(shutil.copytree(finished / "tasks", tmp_path / "tasks"))
    sweeps = sweeps_of(NAMES, quick=True)
    lost = [*sweeps["noise"].tasks(50)[3:], *sweeps["noise"].tasks(100)[:1]]
    for task in [*lost, *sweeps["omp"].tasks(100)]:
        store.path(task).unlink()
    page = write_report(tmp_path, store, NAMES, quick=True)
    text = page.read_text(encoding="utf-8")
    Page(text)
    assert "18 tasks are not finished" in text
    assert "2 sweeps are not complete" in text
    assert "<code>noise</code>: 12 of 20 samples (N = 50: 3 of 10, N = 100: 9 of 10)" in text
    assert "<code>omp</code>: 10 of 20 samples (N = 50: 10, N = 100: 0 of 10)" in text
    assert text.count("<figure id") == len(NAMES)
    again = redraw_report(tmp_path, tmp_path / "again")
    assert again.read_bytes() == page.read_bytes()


def test_a_figure_that_cannot_be_drawn_yet_does_not_stop_the_report(finished, tmp_path):
    def fails(data):
        raise KeyError(400)

    store = Store(shutil.copytree(finished / "tasks", tmp_path / "tasks"))
    broken = replace(FIGURES["time"], draw=fails)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FIGURES, "time", broken)
        with pytest.raises(KeyError):  # with all samples, an error is an error
            write_report(tmp_path / "whole", store, NAMES, quick=True, n_jobs=1)
        store.path(sweeps_of(["time"], quick=True)["l1-large"].tasks(200)[0]).unlink()
        page = write_report(tmp_path / "part", store, NAMES, quick=True, n_jobs=1)
    text = page.read_text(encoding="utf-8")
    assert "Omitted: too few runs are finished yet (KeyError: 400)" in text
    assert text.count("<figure id") == len(NAMES) - 1


def test_a_report_without_results_names_what_is_missing(tmp_path):
    failure = Failure(Task(NOISE, ANNEAL, 4), "ValueError: too <small>", "Traceback")
    page = write_report(tmp_path, Store(tmp_path / "tasks"), ["easy"], failures=[failure])
    text = page.read_text(encoding="utf-8")
    Page(text)
    assert "0 of 300 tasks" in text
    assert "Omitted: no finished runs yet of: easy" in text
    assert "too &lt;small&gt;" in text
    assert "&quot;sample&quot;:4" in text


@pytest.mark.parametrize(("module", "package"), [("h5netcdf", "h5netcdf"), ("PIL", "pillow")])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"l0anneal reproduce needs {package}: pip install 'l0anneal\[reproduction\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        write_report(tmp_path, Store(tmp_path / "tasks"), ["easy"])
    assert not list(tmp_path.iterdir())
