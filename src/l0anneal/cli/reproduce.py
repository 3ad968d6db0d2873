"""The command ``reproduce``: run the paper's experiments, resume or spread them, write the report."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from l0anneal.cli.notes import Progress, wanted
from l0anneal.cli.workers import Backend, NWorkers, Scheduler, Shard, Workers

if TYPE_CHECKING:
    from l0anneal.reproduction import Collected, Store, Task

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to a Typer application."""
    app.command("reproduce")(reproduce_command)


def reproduce_command(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[list | FIGURE...]",
            help="Names of figures, all if none is given; or the word list, to list them",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for the page, figures and data (default: reproduction)"),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Directory of finished tasks (default: OUT/tasks)")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few samples")] = False,
    n_jobs: NWorkers = -1,
    shard: Shard = "1/1",
    backend: Backend = None,
    scheduler: Scheduler = None,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Run no task; report on the finished ones")
    ] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run no task; judge and draw the report in DIR again from its data files",
        ),
    ] = None,
    progress: Progress = None,
) -> None:
    """Run the paper's experiments again and report what agrees.

    Finished tasks are kept, so the same command continues where an earlier one stopped. The samples of
    a report that OUT holds already are not run again either, even if the store is lost.

    Example: l0anneal reproduce easy slow --quick --out look -j 2
    """
    names = list(figures or [])
    try:
        if names == ["list"]:
            _list_figures()
            return
        workers = Workers.from_options(n_jobs, shard, backend, scheduler)
        if source is not None:
            _redraw(source, out or source, names, quick or only_report or store, workers)
            return
        out = out or Path("reproduction")
        job = _check(names, out, store, quick, workers, only_report, wanted(progress))
        _restore(job)
        collected = _run(job)
        _report(job, collected)
    except KeyboardInterrupt:
        # one line and the shell's exit code for SIGINT, without main's own line
        print(
            "l0anneal: interrupted; finished tasks are kept, run the same command to go on",
            file=sys.stderr,
        )
        raise SystemExit(130) from None
    if collected.failures:
        for failure in collected.failures:
            print(f"failed: {failure}", file=sys.stderr)
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Job:
    """The checked options of one call, and the tasks that they name."""

    names: list[str]
    out: Path
    store: Store
    quick: bool
    workers: Workers
    only_report: bool
    tasks: list[Task]
    progress: bool

    @property
    def command(self) -> str:
        """The command to quote in the report: which figures and which size, not where or how."""
        return " ".join(
            ["l0anneal", "reproduce", *self.names, *(["--quick"] if self.quick else [])]
        )


def _check(
    names: list[str],
    out: Path,
    store: Path | None,
    quick: bool,
    workers: Workers,
    only_report: bool,
    progress: bool,
) -> _Job:
    """Refuse wrong options and missing packages before any task runs."""
    from l0anneal.reproduction.extra import check_extra
    from l0anneal.reproduction.figures import sweeps_of
    from l0anneal.reproduction.sweeps import tasks_of
    from l0anneal.tasks.store import Store

    try:
        check_extra()
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    tasks = tasks_of(sweeps_of(names, quick))
    where = Store(store or out / "tasks")
    return _Job(names, out, where, quick, workers, only_report, tasks, progress)


def _redraw(source: Path, out: Path, names: list[str], others: object, workers: Workers) -> None:
    """Write the report again from its data files."""
    from l0anneal.reproduction.report import redraw_report

    if names or others:
        raise ValueError(
            "--from takes figures and size from the report; use it without figures, --quick, "
            "--store and --only-report"
        )
    page = redraw_report(source, out, n_jobs=workers.n_jobs)
    print(f"The report is {page}")


def _restore(job: _Job) -> None:
    """Fill the store with the samples of the report that this one will replace."""
    from l0anneal.reproduction.restore import restore

    data = job.out / "data"
    if job.store.missing(job.tasks) and (n_restored := restore(data, job.store)):
        print(f"{n_restored} finished tasks restored from {data}")


def _run(job: _Job) -> Collected:
    """Run the tasks that are not finished, and print how many there were."""
    from l0anneal.engine.warm_up import warm_up
    from l0anneal.reproduction import Collected, collect

    if job.only_report:
        return Collected()
    began = time.perf_counter()
    with job.workers.started(warm_up) as n_jobs:
        collected = collect(
            job.tasks, job.store, n_jobs=n_jobs, shard=job.workers.shard, progress=job.progress
        )
    print(
        f"{collected.n_run} tasks run, {collected.n_skipped} were finished before, "
        f"{len(collected.failures)} failed; {time.perf_counter() - began:.0f} s"
    )
    return collected


def _report(job: _Job, collected: Collected) -> None:
    """Write the report, unless other shares have still to finish."""
    from l0anneal.reproduction.report import write_report

    missing = len(job.store.missing(job.tasks)) - len(collected.failures)
    if missing and job.workers.shard != (1, 1):
        print(
            f"{missing} tasks of other shares are not finished; "
            "the last share to finish writes the report"
        )
        return
    page = write_report(
        job.out,
        job.store,
        job.names,
        quick=job.quick,
        failures=collected.failures,
        command=job.command,
        n_jobs=job.workers.n_jobs,
    )
    print(f"The report is {page}")


def _list_figures() -> None:
    from l0anneal.reproduction.figures import FIGURES
    from l0anneal.reproduction.sweeps import tasks_of

    for name, figure in FIGURES.items():
        full, quick = (len(tasks_of(figure.sweeps(q))) for q in (False, True))
        title = shorten(figure.title, 42, placeholder=" …")
        print(f"{name:13} {title:42} {full:5} tasks, {quick:3} quick")
