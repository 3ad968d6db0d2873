"""The command ``reproduce``: run the paper's experiments, resume or spread them, write the report."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from distributed import LocalCluster

    from l0anneal.reproduction import Collected, Store, Task

__all__ = ["register"]

_BACKENDS = ("loky", "threading", "dask")


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
    out: Annotated[Path, typer.Option(help="Directory for the page, figures and data")] = Path(
        "reproduction"
    ),
    store: Annotated[
        Path | None, typer.Option(help="Directory of finished tasks (default: OUT/tasks)")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few samples")] = False,
    n_jobs: Annotated[
        int, typer.Option("--n-jobs", "-j", help="Number of workers; -1 for all cores")
    ] = -1,
    shard: Annotated[
        str,
        typer.Option(help="Run share i/n of the tasks; the last share to finish writes the report"),
    ] = "1/1",
    backend: Annotated[
        str | None, typer.Option(help="loky (processes), threading, or dask")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler (default: a local cluster)")
    ] = None,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Run no task; report on the finished ones")
    ] = False,
) -> None:
    """Run the paper's experiments again and report what agrees.

    Finished tasks are kept, so the same command continues where an earlier one stopped.

    Example: l0anneal reproduce easy slow --quick --out look -j 2
    """
    names = list(figures or [])
    try:
        if names == ["list"]:
            _list_figures()
            return
        job = _check(names, out, store, quick, n_jobs, shard, backend, scheduler, only_report)
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
    n_jobs: int
    shard: tuple[int, int]
    backend: str | None
    scheduler: str | None
    only_report: bool
    tasks: list[Task]

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
    n_jobs: int,
    shard: str,
    backend: str | None,
    scheduler: str | None,
    only_report: bool,
) -> _Job:
    """Refuse wrong options and missing packages before any task runs."""
    from l0anneal.reproduction.extra import check_extra
    from l0anneal.reproduction.figures import sweeps_of
    from l0anneal.reproduction.store import Store
    from l0anneal.reproduction.sweeps import tasks_of

    share = _share(shard)
    if backend is not None and backend not in _BACKENDS:
        raise ValueError(f"--backend must be loky, threading or dask; got {backend!r}")
    if scheduler is not None and backend != "dask":
        raise ValueError(f"--scheduler {scheduler} needs --backend dask")
    if n_jobs == 0:
        raise ValueError("--n-jobs must not be 0; give a number of workers, or -1 for all cores")
    try:
        check_extra()
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    tasks = tasks_of(sweeps_of(names, quick))
    where = Store(store or out / "tasks")
    return _Job(names, out, where, quick, n_jobs, share, backend, scheduler, only_report, tasks)


def _share(text: str) -> tuple[int, int]:
    parts = text.split("/")
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        i, n = int(parts[0]), int(parts[1])
        if 1 <= i <= n:
            return i, n
    raise ValueError(f"--shard must be i/n with 1 ≤ i ≤ n, such as 1/8; got {text!r}")


def _run(job: _Job) -> Collected:
    """Run the tasks that are not finished, and print how many there were."""
    from l0anneal.reproduction.collect import Collected, collect

    if job.only_report:
        return Collected()
    began = time.perf_counter()
    with _parallel(job):
        # a Dask cluster knows its number of workers
        n_jobs = None if job.backend == "dask" else job.n_jobs
        collected = collect(job.tasks, job.store, n_jobs=n_jobs, shard=job.shard, progress=True)
    print(
        f"{collected.n_run} tasks run, {collected.n_skipped} were finished before, "
        f"{len(collected.failures)} failed; {time.perf_counter() - began:.0f} s"
    )
    return collected


def _report(job: _Job, collected: Collected) -> None:
    """Write the report, unless other shares have still to finish."""
    from l0anneal.reproduction.report import write_report

    missing = len(job.store.missing(job.tasks)) - len(collected.failures)
    if missing and job.shard != (1, 1):
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
        n_jobs=job.n_jobs,
    )
    print(f"The report is {page}")


def _list_figures() -> None:
    from l0anneal.reproduction.figures import FIGURES
    from l0anneal.reproduction.sweeps import tasks_of

    for name, figure in FIGURES.items():
        full, quick = (len(tasks_of(figure.sweeps(q))) for q in (False, True))
        print(f"{name:14} {figure.title}  [{full} tasks, {quick} with --quick]")


@contextmanager
def _parallel(job: _Job) -> Iterator[None]:
    """Choose joblib's backend for the code inside."""
    from joblib import parallel_config

    if job.backend is None:
        yield
    elif job.backend == "dask":
        with _dask(job), parallel_config("dask"):
            yield
    else:
        with parallel_config(job.backend):
            yield


@contextmanager
def _dask(job: _Job) -> Iterator[None]:
    """Connect to the given Dask scheduler, or to a cluster on this machine."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--backend dask needs Dask: pip install 'l0anneal[cluster]'") from None
    if job.scheduler is not None:
        with Client(job.scheduler):
            yield
        return
    with _start_cluster(job.n_jobs) as cluster, Client(cluster):
        try:
            yield
        except KeyboardInterrupt:
            _end_workers(cluster)
            raise


def _start_cluster(n_jobs: int) -> LocalCluster:
    """Start Dask workers on this machine."""
    from distributed import LocalCluster
    from joblib import cpu_count

    from l0anneal.engine.warm_up import warm_up
    from l0anneal.reproduction.workers import shield_children_from_interrupts

    warm_up()  # before the workers start, so that they find compiled kernels
    with shield_children_from_interrupts():
        return LocalCluster(
            n_workers=n_jobs if n_jobs > 0 else cpu_count(),
            threads_per_worker=1,
            dashboard_address=":0",  # any free port: the default one may be taken
            silence_logs=logging.ERROR,
        )


def _end_workers(cluster: LocalCluster) -> None:
    """End the workers of a cluster in the middle of their tasks, without Dask's warnings."""

    async def end() -> None:
        # after the timeout a worker is killed; one that takes long to disappear is no error
        closing = (nanny.close(timeout=0.1) for nanny in cluster.workers.values())
        await asyncio.gather(*closing, return_exceptions=True)

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    cluster.sync(end)
