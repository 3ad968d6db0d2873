"""The page of the report: one self-contained HTML file."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from l0anneal.reproduction.figures import FIGURES
from l0anneal.reproduction.rows import MIN_SAMPLES, Row
from l0anneal.reproduction.rules import LEVEL, Decision

__all__ = ["Report", "page"]

_STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --back: #fff; --soft: #555; --line: #ddd;
        --code: #f2f2f2; --note: #fdf6e7; --bad: #fdf0ea; --group: #f0f4f8; --link: #005a8d;
        --agrees: #00684d; --differs: #a84600; --undecided: #8a5d00; --few: #666; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --back: #16181b; --soft: #a8a8a8; --line: #3a3d42; --code: #2a2d31;
          --note: #332b17; --bad: #3a2218; --group: #22272e; --link: #7cc4f0; --agrees: #5fd0ac;
          --differs: #ff9a5c; --undecided: #e8b552; --few: #a8a8a8; }
  figure img { filter: brightness(.9); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1rem; color: var(--text); background: var(--back);
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
a { color: var(--link); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .4rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .3rem; }
p { margin: .5rem 0; }
code { background: var(--code); padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
.note { border-left: 4px solid #E69F00; background: var(--note); padding: .5rem .8rem; }
.bad { border-left-color: #D55E00; background: var(--bad); }
figure { margin: .6rem 0; }
figure img { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 4px;
             background: #fff; }
.wide { overflow-x: auto; }
figcaption { font-size: .95rem; }
details { margin: .5rem 0; } .small { font-size: .875rem; color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
thead th { min-width: 6rem; } thead th:first-child { min-width: 9rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .5rem;
         border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid #888; }
tr.group th { background: var(--group); padding-top: .6rem; }
td.verdict strong { color: var(--few); }
td .small { display: block; margin-top: .2rem; font-size: .8rem; }
tr.agrees strong { color: var(--agrees); } tr.undecided strong { color: var(--undecided); }
tr.differs strong { color: var(--differs); }
@media (max-width: 44rem) {
  table, tbody, tr, td, tr.group th { display: block; width: 100%; }
  thead { display: none; }
  tr { border: 1px solid var(--line); border-radius: 6px; margin: .6rem 0; padding: .3rem .5rem; }
  tr.group { border: 0; padding: 0; margin-top: 1.4rem; }
  td { border: 0; padding: .15rem 0; }
  td::before { content: attr(data-label) ": "; color: var(--soft); font-weight: 400; }
  .wide img { width: max(100%, var(--width)); max-width: none; }
  td.quantity { font-weight: 600; } td.quantity::before { content: ""; }
}
"""

_HEADS = ("quantity", "paper says", "theory here", "measured here", "verdict")
_MARKS = {
    "agrees": "✓ agrees",
    "differs": "✗ differs",
    "undecided": "? undecided",
    "too few": "… too few samples to tell",
    "reported": "• reported",
}
_PLURALS = {
    "agrees": "✓ {} agree",
    "differs": "✗ {} differ",
    "undecided": "? {} undecided",
    "too few": "… {} with too few samples to tell",
    "reported": "• {} reported only",
}


@dataclass
class Report:
    """The content of a report, from which the page is written.

    Attributes
    ----------
    run : dict
        What was run: ``quick``, ``command``, ``n_tasks``, ``n_done``, and ``failures`` as texts.
    origin : dict
        Version, commit, libraries, platform and dates of the results, and processor hours.
    rows : dict
        The rows of each figure, each with its decision (None if it is reported only).
    images, samples : dict
        The PNG file, and the sizes with their samples, by figure.
    findings : dict
        Sentences with measured numbers that follow the caption, by figure; may be empty.
    omitted : dict
        Why a figure was left out, by figure.
    incomplete : dict
        How many samples there are of those wanted, by sweep, for the sweeps that lack some.
    """

    run: dict[str, Any]
    origin: dict[str, str]
    rows: dict[str, list[tuple[Row, Decision | None]]] = field(default_factory=dict)
    images: dict[str, bytes] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    omitted: dict[str, str] = field(default_factory=dict)
    incomplete: dict[str, str] = field(default_factory=dict)


def page(report: Report) -> str:
    """Return the page as text."""
    run = report.run
    size = "Quick look" if run["quick"] else "Full run"
    title = "How rapid simulated annealing succeeds and fails: reproduced"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        "<p>The figures and numbers of T. Obuchi and Y. Kabashima, <em>Sparse approximation "
        "problem: how rapid simulated annealing succeeds and fails</em>, measured or computed by "
        "<code>l0anneal</code> and compared with replica theory.</p>",
        f"<p>{size}: {run['n_done']} of {run['n_tasks']} tasks. Made by "
        f"<code>{html.escape(run['command'])}</code>.</p>",
        _origin(report.origin),
    ]
    parts += _notes(run, report.incomplete)
    parts += ["<h2>What the paper says, and what is found</h2>", _rules(report), _table(report)]
    parts.append("<h2>The figures</h2>")
    for name, figure in FIGURES.items():
        if name in report.images:
            caption = f"{figure.caption} {report.findings.get(name, '')}".strip()
            parts.append(_figure(name, figure.title, caption, report))
        elif name in report.omitted:
            parts.append(
                f"<h3>{html.escape(figure.title)}</h3>"
                f'<p class="note">Omitted: {html.escape(report.omitted[name])}.</p>'
            )
    parts.append("</body></html>\n")
    return "\n".join(parts)


def _origin(origin: dict[str, str]) -> str:
    items = "; ".join(f"{name}: {html.escape(text)}" for name, text in origin.items() if text)
    return f'<p class="small">{items}.</p>'


def _notes(run: dict[str, Any], incomplete: dict[str, str]) -> list[str]:
    """Return the warnings at the top of the page: quick, unfinished, failed."""
    parts = []
    if run["quick"]:
        parts.append(
            '<p class="note">This is the quick version: sizes are small and samples few, so most '
            "claims cannot be decided. The full run is <code>l0anneal reproduce --out DIR</code>."
            "</p>"
        )
    if incomplete:
        items = "".join(
            f"<li><code>{html.escape(name)}</code>: {html.escape(text)}</li>"
            for name, text in incomplete.items()
        )
        parts.append(
            f'<div class="note"><p>{run["n_tasks"] - run["n_done"]} tasks are not finished; the same '
            "command runs only these. Each figure says how many samples it has.</p>"
            f"<details><summary>{len(incomplete)} sweeps are not complete</summary><ul>{items}</ul>"
            "</details></div>"
        )
    if run["failures"]:
        items = "".join(f"<li><code>{html.escape(text)}</code></li>" for text in run["failures"])
        parts.append(f'<div class="note bad"><p>Tasks that failed:</p><ul>{items}</ul></div>')
    return parts


def _status(decision: Decision | None) -> str:
    return "reported" if decision is None else decision.status


def _rules(report: Report) -> str:
    decisions = [decision for rows in report.rows.values() for _, decision in rows]
    found = [_status(decision) for decision in decisions]
    counts = ", ".join(
        text.format(found.count(status)) for status, text in _PLURALS.items() if status in found
    )
    n_tests = sum(d is not None and d.verdict.is_test for d in decisions)
    return (
        f"<p><strong>{counts}.</strong> ★ marks measurements that the paper does not have. Problems "
        "are named (α, ρ, ρ̂); 0.0365(16) means 0.0365 ± 0.0016.</p>"
        "<details><summary>How verdicts are made</summary><p>Each row tests its claim in both "
        "directions. A claim of equality has a stated margin: it <em>agrees</em> if two one-sided "
        "tests show that the mean lies inside the margin, and <em>differs</em> if a test shows that "
        "it lies outside. A curve has to lie inside at every temperature. A claim of direction "
        "agrees if a one-sided test shows it, and differs if a test shows the opposite. Runs on "
        "shared instances are compared in pairs (Student's t with the bootstrap over samples; "
        "McNemar's exact test for counts), others by Welch's or Fisher's test. Holm's method is "
        f"applied to all {n_tests} tests of the page, so that chance alone puts a false ✓ on it in "
        f"at most {100 * LEVEL:g} of 100 cases, and likewise a false ✗. Everything else is "
        "<em>undecided</em> or, if even a perfect estimate with these error bars would not have passed "
        "and nothing speaks against the claim, has <em>too few samples to tell</em>. p-values are after "
        "Holm's method; intervals in brackets are 90 % intervals for one row alone. The clearest "
        "deviation of a curve is the one that exceeds its margin by the most error bars, not the "
        "largest.</p>"
        "<p>Theory is for N → ∞, so curves at several sizes are extrapolated by a straight line in "
        "1/N. Their margins are 5 % of theory for ε and 10 % for the MSE, because at N = 100 and "
        "T = 1 the finite size shifts these by 3 % and 6 %, and a limit has to be nearer to theory "
        "than a single size; for entropies 0.01 (g) and 0.02 nats (s), some hundredths of their "
        f"range. Sizes with fewer than {MIN_SAMPLES} samples are drawn but not judged. Error bars are "
        "the paper's, std / √(samples − 1).</p></details>"
    )


def _table(report: Report) -> str:
    head = "".join(f"<th>{name}</th>" for name in _HEADS)
    body = []
    for name, rows in report.rows.items():
        title = html.escape(FIGURES[name].title)
        body.append(
            f'<tr class="group" id="rows-{name}"><th colspan="5"><a href="#{name}">{title}</a></th>'
            "</tr>"
        )
        body += [_row(row, decision) for row, decision in rows]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _row(row: Row, decision: Decision | None) -> str:
    quantity = f"★ {row.quantity}" if row.new else row.quantity
    cells: Sequence[str] = (quantity, row.paper, row.theory, row.measured)
    texts = [
        f'<td class="{"quantity" if i == 0 else ""}" data-label="{_HEADS[i]}">'
        f"{html.escape(cell)}</td>"
        for i, cell in enumerate(cells)
    ]
    status = _status(decision)
    numbers = ""
    if decision is not None:
        numbers = html.escape(decision.verdict.text)
        if decision.verdict.is_test and status != "too few":
            numbers += f"; {_p_text(decision)}"
    note = f'<span class="small">{html.escape(row.note.strip())}</span>' if row.note else ""
    texts.append(
        f'<td class="verdict" data-label="verdict"><strong>{_MARKS[status]}</strong>'
        f"{f': {numbers}' if numbers else ''}{note}</td>"
    )
    return f'<tr class="{status.replace(" ", "-")}">{"".join(texts)}</tr>'


def _p_text(decision: Decision) -> str:
    if decision.status == "differs":
        return f"p = {decision.p_against:.2g} against"
    if decision.status == "agrees":
        return f"p = {decision.p:.2g}"
    alone = "; this row alone would differ" if decision.verdict.p_against <= LEVEL else ""
    return f"p = {decision.p:.2g} for, {decision.p_against:.2g} against{alone}"


def _figure(name: str, title: str, caption: str, report: Report) -> str:
    data = base64.b64encode(report.images[name]).decode()
    # the header of a PNG has its width; on a phone the panels stay readable and scroll sideways
    width = int.from_bytes(report.images[name][16:20], "big") // 32
    return (
        f'<figure id="{name}"><h3>{html.escape(title)}</h3>'
        f'<div class="wide"><img style="--width: {width}rem" alt="{html.escape(title)}" '
        f'src="data:image/png;base64,{data}"></div>'
        f"<figcaption><p>{html.escape(caption)}</p>"
        f'<p class="small">Samples: {html.escape(report.samples[name])}. '
        f'<a href="#rows-{name}">Verdicts of this figure</a>.</p></figcaption></figure>'
    )
