"""Write the report: judge and draw all figures, write the page, its pictures and its data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from joblib import delayed

from l0anneal.reproduction.analysis import Data
from l0anneal.reproduction.datasets import gather, read_data, read_run, write_data
from l0anneal.reproduction.drawing import save
from l0anneal.reproduction.extra import check_extra
from l0anneal.reproduction.figures import FIGURES, figure_names, sweeps_of
from l0anneal.reproduction.page import Report, page
from l0anneal.reproduction.rows import Row
from l0anneal.reproduction.rules import Decision, decide
from l0anneal.reproduction.sweeps import tasks_of
from l0anneal.tasks.collect import Failure
from l0anneal.tasks.store import Store
from l0anneal.tasks.workers import results_of

__all__ = ["decided", "redraw_report", "write_report"]


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
        The finished tasks. Sizes without a finished task are left out. The page names the sweeps
        that are not complete, with their numbers of samples, and the figures that cannot be drawn
        yet.
    figures : iterable of str
        Names of figures; all figures of the report if empty.
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
    names = figure_names(figures, quick)
    sweeps = sweeps_of(names, quick)
    tasks = tasks_of(sweeps)
    run = {
        "quick": quick,
        "figures": names,
        "command": command,
        "n_tasks": len(tasks),
        "n_done": len(tasks) - len(store.missing(tasks)),
        "failures": [str(failure) for failure in failures],
    }
    data = {name: gather(sweep, store) for name, sweep in sweeps.items()}
    write_data(out / "data", sweeps, data, run, n_jobs)
    return _finish(out, data, run, n_jobs)


def redraw_report(source: Path, out: Path, *, n_jobs: int | None = None) -> Path:
    """Judge and draw a report again from its own data files, without its tasks.

    Parameters
    ----------
    source : path
        The directory of a report, with ``data/``.
    out : path
        The directory for the new page and its figures; may be the same.
    n_jobs : int, optional
        The number of processes that draw and judge the figures.

    Returns
    -------
    Path
        The page.
    """
    check_extra()
    run = read_run(source / "data")
    sweeps = sweeps_of(run["figures"], run["quick"])
    data = read_data(source / "data", sweeps)
    if out.resolve() != source.resolve():
        write_data(out / "data", sweeps, data, run, n_jobs)
    return _finish(out, data, run, n_jobs)


def _finish(out: Path, data: Data, run: dict[str, Any], n_jobs: int | None) -> Path:
    """Judge and draw the figures that have data, decide all verdicts together, write the page."""
    names = run["figures"]
    report = Report(run, _origin(data), incomplete=_incomplete(data))
    started = {key: d.isel(size=np.flatnonzero(d["n_samples"] > 0)) for key, d in data.items()}
    of_figure = {name: list(FIGURES[name].sweeps(run["quick"])) for name in names}
    for name, keys in of_figure.items():
        report.samples[name] = _samples({key: data[key] for key in keys})
        if empty := [key for key in keys if not started[key].sizes["size"]]:
            report.omitted[name] = f"no finished runs yet of: {', '.join(empty)}"
    ready = [name for name in names if name not in report.omitted]
    calls = [
        delayed(_make)(
            name,
            {key: started[key] for key in of_figure[name]},
            (out / "figures").resolve(),  # workers may have another working directory
            whole=not any(key in report.incomplete for key in of_figure[name]),
        )
        for name in ready
    ]
    rows: dict[str, list[Row]] = {}
    with results_of(calls, n_jobs, "generator") as all_made:
        for name, made in zip(ready, all_made, strict=True):
            if isinstance(made, str):
                report.omitted[name] = f"too few runs are finished yet ({made})"
            else:
                rows[name], report.images[name], report.findings[name] = made
    report.rows = decided(rows)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "report.html"
    path.write_text(page(report), encoding="utf-8")
    return path


def _make(
    name: str, data: Data, directory: Path, whole: bool
) -> tuple[list[Row], bytes, str] | str:
    """Judge and draw one figure; return its rows of the table, its PNG file and its findings.

    A figure needs not be able to do with any part of its samples: if it fails and its sweeps are not
    ``whole``, return the error instead, so that the report of an unfinished run can be written.
    """
    figure = FIGURES[name]
    try:
        image = save(figure.draw(data), directory, name)["png"].read_bytes()
        return figure.judge(data), image, figure.findings(data) if figure.findings else ""
    except Exception as error:
        if whole:
            raise
        return f"{type(error).__name__}: {error}"


def _incomplete(data: Data) -> dict[str, str]:
    """Return how many samples there are of those wanted, for each sweep that lacks some."""
    found = {}
    for name, own in data.items():
        counts = _counts(own)
        if any(done < wanted for done, wanted in counts.values()):
            total = f"{sum(n for n, _ in counts.values())} of {sum(n for _, n in counts.values())}"
            found[name] = f"{total} samples ({_counts_text(counts)})"
    return found


def _counts(data: xr.Dataset) -> dict[int, tuple[int, int]]:
    """Return finished and wanted samples by size."""
    wanted = json.loads(data.attrs["samples"])
    return {
        int(size): (int(done), wanted[str(size)])
        for size, done in zip(data["size"].to_numpy(), data["n_samples"].to_numpy())
    }


def _counts_text(counts: dict[int, tuple[int, int]]) -> str:
    return ", ".join(
        f"N = {size}: {done}" + (f" of {wanted}" if done < wanted else "")
        for size, (done, wanted) in counts.items()
    )


def decided(rows: dict[str, list[Row]]) -> dict[str, list[tuple[Row, Decision | None]]]:
    """Apply the one rule of multiplicity to all rows of the page."""
    verdicts = [row.verdict for own in rows.values() for row in own if row.verdict is not None]
    decisions = iter(decide(verdicts))
    return {
        name: [(row, None if row.verdict is None else next(decisions)) for row in own]
        for name, own in rows.items()
    }


def _origin(data: Data) -> dict[str, str]:
    """Return where the results come from; results of several versions are all named."""

    def every(name: str) -> str:
        texts = (text for d in data.values() for text in d.attrs.get(name, "").split("; "))
        return ", and ".join(sorted({text for text in texts if text}))

    dates = [d.attrs.get(name, "") for d in data.values() for name in ("date_first", "date_last")]
    days = sorted({date[:10] for date in dates if date})
    hours = sum(float(d["seconds"].sum()) for d in data.values()) / 3600
    engines = sorted({int(d.attrs["engine"]) for d in data.values()})
    return {
        "version": every("version"),
        "commit": every("commit"),
        "engine": ", ".join(map(str, engines)),
        "libraries": every("libraries"),
        "platform": every("platform"),
        "run": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "processor hours of the solvers": f"{hours:.2g}",
    }


def _samples(data: Data) -> str:
    """List the sizes of a figure's sweeps, and how many samples of each are finished."""
    by_sizes: dict[str, list[str]] = {}
    for name, values in data.items():
        by_sizes.setdefault(_counts_text(_counts(values)), []).append(name)
    return "; ".join(f"{', '.join(names)}: {sizes}" for sizes, names in by_sizes.items())
