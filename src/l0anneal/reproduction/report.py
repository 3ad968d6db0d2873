"""Write the report: one self-contained HTML page, with figures and data files beside it."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import xarray as xr
from joblib import delayed

from l0anneal.reproduction.analysis import Data, gather, summary
from l0anneal.reproduction.drawing import save
from l0anneal.reproduction.extra import check_extra
from l0anneal.reproduction.figures import FIGURES, figure_names, sweeps_of
from l0anneal.reproduction.rules import MIN_SAMPLES, Row
from l0anneal.reproduction.sweeps import Sweep, tasks_of
from l0anneal.tasks.collect import Failure
from l0anneal.tasks.store import Store
from l0anneal.tasks.workers import results_of

__all__ = ["Report", "write_report"]

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; color: #1a1a1a; background: #fff;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .4rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .3rem; }
p { margin: .5rem 0; }
code { background: #f2f2f2; padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
.note { border-left: 4px solid #E69F00; background: #fdf6e7; padding: .5rem .8rem; }
.bad { border-left-color: #D55E00; background: #fdf0ea; }
figure { margin: .6rem 0; }
figure img { width: 100%; height: auto; border: 1px solid #e5e5e5; border-radius: 4px; }
.wide { overflow-x: auto; }
figcaption { font-size: .95rem; color: #333; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .5rem;
         border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }
th { border-bottom: 2px solid #888; }
td.verdict { font-weight: 600; }
tr.agrees td.verdict { color: #00684d; } tr.partly td.verdict { color: #8a5d00; }
tr.differs td.verdict { color: #a84600; } tr.new td.verdict { color: #005a8d; }
@media (max-width: 44rem) {
  table, tbody, tr, td { display: block; width: 100%; }
  thead { display: none; }
  tr { border: 1px solid #ddd; border-radius: 6px; margin: .6rem 0; padding: .3rem .5rem; }
  td { border: 0; padding: .15rem 0; }
  td::before { content: attr(data-label) ": "; color: #666; font-weight: 400; }
  .wide img { width: max(100%, var(--width)); max-width: none; }
  td.quantity { font-weight: 600; } td.quantity::before { content: ""; }
}
"""

_HEADS = ("quantity", "paper says", "theory here", "measured here", "verdict")
_MARKS = {"agrees": "✓", "partly": "≈", "differs": "✗", "new": "★"}


@dataclass
class Report:
    """The content of a report, from which the page is written.

    Attributes
    ----------
    quick : bool
        Whether sizes and samples are small.
    command : str
        The command that makes this report.
    n_tasks, n_done : int
        The number of tasks, and how many are finished.
    rows, images, samples : dict
        The verdicts, the PNG file and the sizes with their samples, by figure.
    omitted : dict
        Why a figure was left out, by figure.
    failures : sequence of Failure
        Tasks that raised an exception.
    """

    quick: bool
    command: str
    n_tasks: int = 0
    n_done: int = 0
    rows: dict[str, list[Row]] = field(default_factory=dict)
    images: dict[str, bytes] = field(default_factory=dict)
    omitted: dict[str, str] = field(default_factory=dict)
    failures: Sequence[Failure] = ()
    samples: dict[str, str] = field(default_factory=dict)


def write_report(
    out: Path,
    store: Store,
    figures: Iterable[str] = (),
    *,
    quick: bool = False,
    failures: Sequence[Failure] = (),
    command: str = "l0anneal reproduce",
    n_jobs: int | None = None,
) -> Path:
    """Analyse the finished tasks and write the page, the figures and the data files.

    Parameters
    ----------
    out : path
        The directory for ``report.html``, ``figures/*.svg``, ``figures/*.png`` and ``data/*.nc``.
    store : Store
        The finished tasks. The page says how many samples each figure has. A figure with a sweep
        that has no finished task at some size is omitted, and the page says so.
    figures : iterable of str
        Names of figures; all figures if empty.
    quick : bool
        Read the small sizes with few samples.
    failures : sequence of Failure
        Tasks that failed; they are listed at the top of the page.
    command : str
        The command that made the report, which the page names.
    n_jobs : int, optional
        The number of processes that draw and judge the figures.

    Returns
    -------
    Path
        The page.
    """
    check_extra()
    names = figure_names(figures)
    sweeps = sweeps_of(names, quick)
    tasks = tasks_of(sweeps)
    data = {name: gather(sweep, store) for name, sweep in sweeps.items()}
    report = Report(quick, command, failures=failures)
    report.n_tasks, report.n_done = len(tasks), len(tasks) - len(store.missing(tasks))
    _write_data(out / "data", sweeps, data)
    of_figure = {name: {key: data[key] for key in FIGURES[name].sweeps(quick)} for name in names}
    for name, its_data in of_figure.items():
        report.samples[name] = _samples(its_data)
        empty = [key for key, d in its_data.items() if not bool((d["n_samples"] > 0).all())]
        if empty:
            report.omitted[name] = f"no finished runs yet of: {', '.join(empty)}"
    ready = [name for name in names if name not in report.omitted]
    calls = [delayed(_make)(name, of_figure[name], out / "figures") for name in ready]
    with results_of(calls, n_jobs, "generator") as made:
        for name, (rows, image) in zip(ready, made, strict=True):
            report.rows[name], report.images[name] = rows, image
    page = out / "report.html"
    page.write_text(_page(report), encoding="utf-8")
    return page


def _make(name: str, data: Data, directory: Path) -> tuple[list[Row], bytes]:
    """Judge and draw one figure; return its rows of the table and its PNG file."""
    figure = FIGURES[name]
    return figure.judge(data), save(figure.draw(data), directory, name)["png"].read_bytes()


def _write_data(directory: Path, sweeps: Mapping[str, Sweep], data: Data) -> None:
    """Write one file for each sweep, and one for each group of sweeps over ρ."""
    directory.mkdir(parents=True, exist_ok=True)
    groups: dict[str, dict[float, xr.Dataset]] = {}
    for name, sweep in sweeps.items():
        kept = summary(data[name])
        if sweep.group:
            groups.setdefault(sweep.group, {})[sweep.parameters["rho"]] = kept
        else:
            kept.to_netcdf(directory / f"{name}.nc", engine="h5netcdf")
    for group, parts in groups.items():
        joined = xr.concat(parts.values(), dim="rho", combine_attrs="drop_conflicts")
        joined = joined.assign_coords(rho=list(parts))
        joined.to_netcdf(directory / f"{group}.nc", engine="h5netcdf")


def _samples(data: Data) -> str:
    """List the sizes of a figure's sweeps, and how many samples of each are finished."""
    parts = []
    for name, values in data.items():
        counts = values["n_samples"]
        sizes = ", ".join(f"N = {int(s)}: {int(counts.sel(size=s))}" for s in counts["size"])
        parts.append((name, sizes))
    same = {sizes for _, sizes in parts}
    if len(same) == 1:
        return (
            f"{'each of ' if len(parts) > 1 else ''}{', '.join(n for n, _ in parts)}: {same.pop()}"
        )
    return "; ".join(f"{name}: {sizes}" for name, sizes in parts)


def _page(report: Report) -> str:
    size = "Quick look" if report.quick else "Full run"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>How rapid simulated annealing succeeds and fails: reproduced</title>",
        f"<style>{_STYLE}</style></head><body>",
        "<h1>How rapid simulated annealing succeeds and fails: reproduced</h1>",
        "<p>Every figure and number of T. Obuchi and Y. Kabashima, <em>Sparse approximation "
        "problem: how rapid simulated annealing succeeds and fails</em>, measured by "
        "<code>l0anneal</code> and compared with replica theory.</p>",
        f"<p>{size}: {report.n_done} of {report.n_tasks} tasks. Made by "
        f"<code>{html.escape(report.command)}</code>.</p>",
    ]
    parts += _notes(report)
    parts += ["<h2>What the paper says, and what is found</h2>", _rules(report), _table(report)]
    parts.append("<h2>The figures</h2>")
    for name, figure in FIGURES.items():
        if name in report.images:
            parts.append(_figure(name, figure.title, figure.caption, report))
        elif name in report.omitted:
            parts.append(
                f"<h3>{html.escape(figure.title)}</h3>"
                f'<p class="note">Omitted: {html.escape(report.omitted[name])}.</p>'
            )
    parts.append("</body></html>\n")
    return "\n".join(parts)


def _notes(report: Report) -> list[str]:
    """Return the warnings at the top of the page: quick, unfinished, failed."""
    parts = []
    if report.quick:
        parts.append(
            '<p class="note">This is the quick version: sizes are small and samples few, so error '
            "bars are wide and finite-size effects large. The full run is "
            "<code>l0anneal reproduce --out DIR</code>.</p>"
        )
    if report.n_done < report.n_tasks:
        parts.append(
            f'<p class="note">{report.n_tasks - report.n_done} tasks are not finished; the same '
            "command runs only these. Each figure says how many samples it has.</p>"
        )
    if report.failures:
        items = "".join(f"<li><code>{html.escape(str(f))}</code></li>" for f in report.failures)
        parts.append(f'<div class="note bad"><p>Tasks that failed:</p><ul>{items}</ul></div>')
    return parts


def _rules(report: Report) -> str:
    rows = [row for group in report.rows.values() for row in group]
    counts = ", ".join(
        f"{_MARKS[status]} {sum(row.status == status for row in rows)} {word}"
        for status, word in (
            ("agrees", "agree"),
            ("partly", "in part"),
            ("differs", "differ"),
            ("new", "not in the paper"),
        )
    )
    return (
        f"<p><strong>{counts}.</strong> Problems are named (α, ρ, ρ̂). Error bars are the paper's, "
        "std / √(samples − 1); 0.0365(16) means 0.0365 ± 0.0016. Theory is for N → ∞ while runs "
        "have finite N (at N = 100 and T = 1, ε is about 3 % and the MSE about 6 % off), so curves "
        "are also extrapolated by a straight line in 1/N. A curve agrees with theory if the "
        "largest deviation of this limit stays within the bound that chance alone exceeds in one "
        "case of a hundred (Bonferroni: 3.9 error bars for 99 temperatures), and if no error bar is "
        "wider than the theory's value. A single number agrees if it lies within three error bars. "
        f"Sizes with fewer than {MIN_SAMPLES} samples are drawn but not judged.</p>"
    )


def _table(report: Report) -> str:
    head = "".join(f"<th>{name}</th>" for name in _HEADS)
    body = []
    for rows in report.rows.values():
        for row in rows:
            cells = (row.quantity, row.paper, row.theory, row.measured)
            texts = [
                f'<td class="{"quantity" if i == 0 else ""}" data-label="{_HEADS[i]}">'
                f"{html.escape(cell)}</td>"
                for i, cell in enumerate(cells)
            ]
            texts.append(
                f'<td class="verdict" data-label="verdict">{_MARKS[row.status]} '
                f"{html.escape(row.verdict)}</td>"
            )
            body.append(f'<tr class="{row.status}">{"".join(texts)}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _figure(name: str, title: str, caption: str, report: Report) -> str:
    data = base64.b64encode(report.images[name]).decode()
    # the header of a PNG has its width; on a phone the panels stay readable and scroll sideways
    width = int.from_bytes(report.images[name][16:20], "big") // 36
    return (
        f'<figure id="{name}"><h3>{html.escape(title)}</h3>'
        f'<div class="wide"><img style="--width: {width}rem" alt="{html.escape(title)}" '
        f'src="data:image/png;base64,{data}"></div>'
        f"<figcaption><p>{html.escape(caption)}</p>"
        f"<p>Samples: {html.escape(report.samples[name])}.</p></figcaption></figure>"
    )
