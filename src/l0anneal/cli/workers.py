"""Options of commands that run many tasks, and the workers that these options start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from distributed import LocalCluster

__all__ = ["Backend", "NWorkers", "Scheduler", "Shard", "Workers"]

_BACKENDS = ("loky", "threading", "dask")

NWorkers = Annotated[
    int, typer.Option("--n-jobs", "-j", help="Number of workers; -1 for all cores")
]
Shard = Annotated[
    str,
    typer.Option(help="Run share i/n of the tasks; the last share to finish writes the results"),
]
Backend = Annotated[str | None, typer.Option(help="loky (processes), threading, or dask")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler (default: a local cluster)")
]


@dataclass(frozen=True)
class Workers:
    """The checked options: how many workers of which kind run which share of the tasks."""

    n_jobs: int
    shard: tuple[int, int]
    backend: str | None
    scheduler: str | None

    @classmethod
    def from_options(
        cls, n_jobs: int, shard: str, backend: str | None, scheduler: str | None
    ) -> Workers:
        """Check the options of a command; raise ValueError if one is wrong."""
        share = _share(shard)
        if backend is not None and backend not in _BACKENDS:
            raise ValueError(f"--backend must be loky, threading or dask; got {backend!r}")
        if scheduler is not None and backend != "dask":
            raise ValueError(f"--scheduler {scheduler} needs --backend dask")
        if n_jobs == 0:
            raise ValueError(
                "--n-jobs must not be 0; give a number of workers, or -1 for all cores"
            )
        return cls(n_jobs, share, backend, scheduler)

    @contextmanager
    def started(self, prepare: Callable[[], object]) -> Iterator[int | None]:
        """Choose joblib's backend for the code inside; yield the number of workers to ask for.

        ``prepare`` compiles kernels. It is called before a local cluster starts, whose workers then
        load the compiled kernels.
        """
        from joblib import parallel_config

        if self.backend is None:
            yield self.n_jobs
        elif self.backend == "dask":
            with self._dask(prepare), parallel_config("dask"):
                yield None  # a Dask cluster knows its number of workers
        else:
            with parallel_config(self.backend):
                yield self.n_jobs

    @contextmanager
    def _dask(self, prepare: Callable[[], object]) -> Iterator[None]:
        """Connect to the given Dask scheduler, or to a cluster on this machine."""
        try:
            from distributed import Client
        except ImportError:
            raise ValueError("--backend dask needs Dask: pip install 'l0anneal[cluster]'") from None
        if self.scheduler is not None:
            with Client(self.scheduler):
                yield
            return
        prepare()
        with _start_cluster(self.n_jobs) as cluster, Client(cluster):
            try:
                yield
            except KeyboardInterrupt:
                _end_workers(cluster)
                raise


def _share(text: str) -> tuple[int, int]:
    parts = text.split("/")
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        i, n = int(parts[0]), int(parts[1])
        if 1 <= i <= n:
            return i, n
    raise ValueError(f"--shard must be i/n with 1 ≤ i ≤ n, such as 1/8; got {text!r}")


def _start_cluster(n_jobs: int) -> LocalCluster:
    """Start Dask workers on this machine."""
    from distributed import LocalCluster
    from joblib import cpu_count

    from l0anneal.tasks.workers import shield_children_from_interrupts

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
