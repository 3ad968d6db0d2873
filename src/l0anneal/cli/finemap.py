"""The command ``finemap``: credible sets of many loci, from files of summary statistics."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from l0anneal.cli.notes import Progress, wanted
from l0anneal.cli.workers import Backend, NWorkers, Scheduler, Shard, Workers

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to a Typer application."""
    app.command("finemap")(finemap_command)


def finemap_command(
    loci: Annotated[
        list[Path],
        typer.Argument(
            help="Files of loci, or directories of such files: NAME.npz with z (or beta and se), R, n "
            "and names; or a table NAME.tsv or NAME.z with its correlations NAME.ld"
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Directory for columns.tsv and loci.tsv")
    ] = Path("finemap"),
    store: Annotated[
        Path | None, typer.Option(help="Directory of finished loci (default: OUT/tasks)")
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Samples, for files that do not state n")
    ] = None,
    coverage: Annotated[float, typer.Option(help="Probability of a credible set, at least")] = 0.95,
    min_purity: Annotated[float, typer.Option(help="Smallest |r| inside a set, at least")] = 0.5,
    check: Annotated[bool, typer.Option(help="List the columns whose z does not fit R")] = True,
    n_draws: Annotated[int | None, typer.Option(help="Draws from the posterior")] = None,
    random_state: Annotated[
        int, typer.Option("--random-state", "-s", help="One seed, one result")
    ] = 0,
    n_jobs: NWorkers = -1,
    shard: Shard = "1/1",
    backend: Backend = None,
    scheduler: Scheduler = None,
    progress: Progress = None,
) -> None:
    """Find the columns that matter in each locus, with probabilities and credible sets.

    OUT/columns.tsv has a row for each column of each locus, and OUT/loci.tsv a row for each locus.

    Finished loci are kept, so the same command continues where an earlier one stopped.

    Example: l0anneal finemap loci/ --out mapped -j 2
    """
    from l0anneal.finemapping import finemap
    from l0anneal.finemapping.finemap import compile_kernels

    workers = Workers.from_options(n_jobs, shard, backend, scheduler)
    options = {} if n_draws is None else {"n_draws": n_draws}
    began = time.perf_counter()
    try:
        with workers.started(compile_kernels) as n_workers:
            found = finemap(
                loci,
                n=n,
                coverage=coverage,
                min_purity=min_purity,
                check=check,
                store=store or out / "tasks",
                n_jobs=n_workers,
                shard=workers.shard,
                random_state=random_state,
                progress=wanted(progress),
                **options,
            )
        print(
            f"{found.n_run} loci mapped, {found.n_skipped} were finished before, "
            f"{len(found.failures)} failed; {time.perf_counter() - began:.0f} s"
        )
        n_others = len(found.missing) - len(found.failures)
        if n_others:
            print(
                f"{n_others} loci of other shares are not finished; "
                "the last share to finish writes the tables"
            )
        else:
            columns, table = found.write(out)
            print(found)
            print(f"The tables are {columns} and {table}")
    except KeyboardInterrupt:
        # one line and the shell's exit code for SIGINT, without main's own line
        print(
            "l0anneal: interrupted; finished loci are kept, run the same command to go on",
            file=sys.stderr,
        )
        raise SystemExit(130) from None
    if found.failures:
        for failure in found.failures:
            print(f"failed: {failure}", file=sys.stderr)
        raise typer.Exit(1)
