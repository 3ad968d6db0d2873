"""The command ``reproduce``: the paper's results, run, resumed, spread and reported."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to a Typer application."""
    app.command("reproduce")(reproduce_command)


def reproduce_command(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[list | FIGURE...]", help="Names of figures, or list; all if none"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for page, figures and data")] = Path(
        "reproduction"
    ),
    store: Annotated[
        Path | None, typer.Option(help="Directory of finished tasks [default: OUT/tasks]")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, few samples")] = False,
    jobs: Annotated[int, typer.Option(help="Workers; -1: all cores")] = -1,
    shard: Annotated[
        str, typer.Option(help="Run share i/n of the tasks, and no report unless all are there")
    ] = "1/1",
    backend: Annotated[
        str | None, typer.Option(help="loky (processes), threading, or dask")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler [default: a local cluster]")
    ] = None,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Run nothing; report what is finished")
    ] = False,
) -> None:
    """Rerun the paper's results and report what agrees; a second call goes on where one stopped."""
    from l0anneal.reproduction.collect import Collected, collect
    from l0anneal.reproduction.paper import plan, tasks_of
    from l0anneal.reproduction.store import Store

    names = list(figures or [])
    if names == ["list"]:
        _list()
        return
    share = _share(shard)
    tasks = tasks_of(plan(names, quick))
    if scheduler is not None and backend != "dask":
        raise ValueError("--scheduler needs --backend dask")
    began = time.perf_counter()
    where = Store(store or out / "tasks")
    done = Collected()
    if not only_report:
        with _parallel(backend, scheduler, jobs):
            # a cluster has as many workers as it has; --jobs is for this machine
            n_jobs = None if backend == "dask" else jobs
            done = collect(tasks, where, n_jobs=n_jobs, shard=share, progress=True)
        print(
            f"{done.n_run} tasks run, {done.n_skipped} were finished before, "
            f"{len(done.failures)} failed; {time.perf_counter() - began:.0f} s"
        )
    missing = len(where.missing(tasks)) - len(done.failures)
    if missing and share != (1, 1):
        print(
            f"{missing} tasks of other shares are missing; the report comes with the last of them"
        )
    else:
        from l0anneal.reproduction.report import write_report

        page = write_report(
            out,
            where,
            names,
            quick=quick,
            failures=done.failures,
            command=_command(names, quick),
            n_jobs=jobs,
        )
        print(f"The report is {page}")
    if done.failures:
        for failure in done.failures:
            print(f"failed: {failure}", file=sys.stderr)
        raise typer.Exit(1)


def _command(names: list[str], quick: bool) -> str:
    return " ".join(["l0anneal", "reproduce", *names, *(["--quick"] if quick else [])])


def _list() -> None:
    from l0anneal.reproduction.paper import FIGURES, plan, tasks_of

    for name, figure in FIGURES.items():
        full, quick = (len(tasks_of(plan([name], q))) for q in (False, True))
        print(f"{name:14} {figure.title}  [{full} tasks, {quick} with --quick]")


def _share(text: str) -> tuple[int, int]:
    parts = text.split("/")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise ValueError(f"--shard is i/n, such as 1/8; got {text!r}")
    i, n = int(parts[0]), int(parts[1])
    if not 1 <= i <= n:
        raise ValueError(f"--shard is i/n with 1 ≤ i ≤ n; got {text!r}")
    return i, n


@contextmanager
def _parallel(backend: str | None, scheduler: str | None, jobs: int) -> Iterator[None]:
    """Choose joblib's backend for what is inside."""
    from joblib import cpu_count, parallel_config

    if backend is None:
        yield
    elif backend in ("loky", "threading"):
        with parallel_config(backend):
            yield
    elif backend == "dask":
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise ValueError("--backend dask needs Dask: pip install 'l0anneal[cluster]'") from None
        if scheduler is not None:
            with Client(scheduler), parallel_config("dask"):
                yield
        else:
            from l0anneal.engine.warm_up import warm_up

            warm_up()  # before the workers start, so that they find the kernels compiled
            n = jobs if jobs > 0 else cpu_count()
            with (
                LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster),
                parallel_config("dask"),
            ):
                yield
    else:
        raise ValueError(f"--backend is loky, threading or dask; got {backend!r}")
