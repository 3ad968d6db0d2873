"""The report: one HTML page that needs nothing else, with the figures and data beside it."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import xarray as xr
from joblib import Parallel, delayed

from l0anneal.reproduction.analysis import gather, summary
from l0anneal.reproduction.collect import Failure
from l0anneal.reproduction.drawing import save
from l0anneal.reproduction.figures import draw
from l0anneal.reproduction.paper import FIGURES, RHOS, Sweep, plan, tasks_of
from l0anneal.reproduction.rules import MIN_SAMPLES, Row
from l0anneal.reproduction.store import Store
from l0anneal.reproduction.verdicts import verdicts

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
    """What a report says, before it is a page."""

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
    """Analyse what the store has and write figures, data and the page; return the page's path.

    Parameters
    ----------
    out : path
        Gets ``report.html``, ``figures/*.svg``, ``figures/*.png`` and ``data/*.nc``.
    store : Store
        Finished tasks. Missing samples are left out and the page says how many there are; a figure
        that lacks a whole experiment is omitted and named.
    figures : iterable of str
        Names from `FIGURES`; all if empty.
    quick : bool
        Which sizes and samples to look for.
    failures : sequence of Failure
        Named at the head of the page.
    command : str
        The command that made it, for the page.
    n_jobs : int, optional
        Processes to work out the figures in.
    """
    names = list(figures) or list(FIGURES)
    chosen = plan(names, quick)
    data = {name: gather(sweep, store) for name, sweep in chosen.items()}
    report = Report(quick, command, failures=failures)
    tasks = tasks_of(chosen)
    report.n_tasks, report.n_done = len(tasks), len(tasks) - len(store.missing(tasks))
    _write_data(out / "data", data)
    for name in names:
        wanted = plan([name], quick)
        report.samples[name] = _samples(wanted, data)
        empty = [n for n in wanted if not bool((data[n]["n_samples"] > 0).all())]
        if empty:
            report.omitted[name] = f"no finished runs yet of: {', '.join(empty)}"
    ready = [name for name in names if name not in report.omitted]
    made = Parallel(n_jobs=n_jobs)(
        delayed(_make)(name, {key: data[key] for key in plan([name], quick)}, out / "figures")
        for name in ready
    )
    for name, (rows, image) in zip(ready, made):
        report.rows[name], report.images[name] = rows, image
    page = out / "report.html"
    page.write_text(_page(report), encoding="utf-8")
    return page


def _make(name: str, data: Mapping[str, xr.Dataset], directory: Path) -> tuple[list[Row], bytes]:
    """One figure's rows of the table, and its picture."""
    rows = verdicts(name, data)
    return rows, save(draw(name, data), directory, name)["png"].read_bytes()


def _write_data(directory: Path, data: Mapping[str, xr.Dataset]) -> None:
    """One file for each sweep; the many over ρ go into one file each group."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, values in data.items():
        group = next((g for g in RHOS if name.startswith(g + "-")), None)
        kept = summary(values)
        if group is None:
            kept.to_netcdf(directory / f"{name}.nc", engine="h5netcdf")
    for group, (_, _, rhos) in RHOS.items():
        parts = {r: summary(data[f"{group}-{r:g}"]) for r in rhos if f"{group}-{r:g}" in data}
        if parts:
            joined = xr.concat(parts.values(), dim="rho", combine_attrs="drop_conflicts")
            joined = joined.assign_coords(rho=list(parts))
            joined.to_netcdf(directory / f"{group}.nc", engine="h5netcdf")


def _samples(wanted: Mapping[str, Sweep], data: Mapping[str, xr.Dataset]) -> str:
    """Sizes and samples of a figure's experiments, as they are in the store."""
    parts = []
    for name in wanted:
        counts = data[name]["n_samples"]
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
        "<code>l0anneal</code> and laid beside replica theory.</p>",
        f"<p>{size}: {report.n_done} of {report.n_tasks} tasks. Made by "
        f"<code>{html.escape(report.command)}</code>.</p>",
    ]
    if report.quick:
        parts.append(
            '<p class="note">This is the quick version: small sizes and few samples, so error '
            "bars are wide and finite-size effects large. The full run is "
            "<code>l0anneal reproduce --out DIR</code>.</p>"
        )
    if report.n_done < report.n_tasks:
        parts.append(
            f'<p class="note">{report.n_tasks - report.n_done} tasks are not finished; the same '
            "command runs them and nothing else. Each figure says how many samples it has.</p>"
        )
    if report.failures:
        items = "".join(f"<li><code>{html.escape(str(f))}</code></li>" for f in report.failures)
        parts.append(f'<div class="note bad"><p>Tasks that failed:</p><ul>{items}</ul></div>')
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
        "are also extrapolated by a straight line in 1/N. A curve agrees if that limit is so close "
        "to the theory at every temperature that chance alone would go farther at one of them in "
        "one case of a hundred (Bonferroni: 3.9 error bars for 99 temperatures), with error bars "
        "no wider than the theory's value. A single number agrees within three error bars. "
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
    # a PNG's width is in its header; on a phone, panels stay readable and scroll sideways
    width = int.from_bytes(report.images[name][16:20], "big") // 36
    return (
        f'<figure id="{name}"><h3>{html.escape(title)}</h3>'
        f'<div class="wide"><img style="--width: {width}rem" alt="{html.escape(title)}" '
        f'src="data:image/png;base64,{data}"></div>'
        f"<figcaption><p>{html.escape(caption)}</p>"
        f"<p>Samples: {html.escape(report.samples[name])}.</p></figcaption></figure>"
    )
