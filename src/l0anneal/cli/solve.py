"""The commands ``solve`` and ``anneal``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from l0anneal.diagnosis import diagnose
from l0anneal.problem.files import read_matrix, read_vector
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.pace import AdaptiveSchedule
from l0anneal.samplers.result import Result
from l0anneal.samplers.schedule import Schedule
from l0anneal.solving import solve

__all__ = ["register"]

_FIGURES = (".png", ".svg", ".pdf")

Dictionary = Annotated[Path, typer.Argument(help="Dictionary A, M × N: .npy, .npz, .csv or .mtx")]
Signal = Annotated[Path, typer.Argument(help="Signal y of length M, in one of these formats")]
TimeLimit = Annotated[float | None, typer.Option("--time-limit", "-t", help="Seconds")]
NJobs = Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1: all cores")]
RandomState = Annotated[
    int | None, typer.Option("--random-state", "--seed", "-s", help="One seed, one result")
]
Progress = Annotated[
    bool | None, typer.Option(help="Show a progress bar [default: if stderr is a terminal]")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Save the result (.npz)")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the result (.png, .svg, .pdf)")]


def register(app: typer.Typer) -> None:
    """Add the commands to a Typer application."""
    app.command("solve")(solve_command)
    app.command("anneal")(anneal_command)


def solve_command(
    A: Dictionary,
    y: Signal,
    n_nonzero: Annotated[
        int | None, typer.Option("--n-nonzero", "-k", help="Number of columns, if it is known")
    ] = None,
    time_limit: TimeLimit = None,
    n_jobs: NJobs = 1,
    check: Annotated[
        bool, typer.Option("--diagnose", help="Tell how far the answer can be trusted")
    ] = False,
    random_state: RandomState = None,
    progress: Progress = None,
    as_json: Json = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Find the best columns of A for y: k of them or, without -k, as many as matter.

    With -k the search takes 2 seconds unless --time-limit is given.

    Ctrl-C prints the best columns found so far.

    Example: l0anneal solve A.npy y.npy -k 10 --diagnose
    """
    _check_outputs(out, plot)
    problem = SparseProblem(read_matrix(A), read_vector(y))
    result = solve(
        problem,
        n_nonzero,
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=_wanted(progress),
        on_interrupt="return",
    )
    _report(result, as_json, out, plot, problem if check else None)


def anneal_command(
    A: Dictionary,
    y: Signal,
    n_nonzero: Annotated[int, typer.Option("--n-nonzero", "-k", help="Number of columns")],
    schedule: Annotated[
        str,
        typer.Option(help="automatic, paper, adaptive, or a .json file that Schedule.save wrote"),
    ] = "automatic",
    n: Annotated[int | None, typer.Option(help="Temperatures (automatic, paper) [100]")] = None,
    tau: Annotated[int | None, typer.Option(help="Sweeps at each temperature [5]")] = None,
    time_limit: TimeLimit = None,
    move: Annotated[
        str, typer.Option(help="pair flip, auto, heat bath, multi flip or rejection free")
    ] = "pair flip",
    n_pairs: Annotated[
        int, typer.Option(help="Columns that multi flip exchanges at once, at most")
    ] = 2,
    polish: Annotated[bool, typer.Option(help="End in a swap-local minimum")] = True,
    n_chains: Annotated[
        int, typer.Option("--n-chains", "-c", help="Independent chains; the best one is returned")
    ] = 1,
    n_jobs: NJobs = 1,
    initial_support: Annotated[
        Path | None, typer.Option(help="File of k column indices to start from")
    ] = None,
    keep_samples: Annotated[bool, typer.Option(help="Keep the supports of all sweeps")] = False,
    random_state: RandomState = None,
    progress: Progress = None,
    as_json: Json = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Find the k columns of A that approximate y best, by simulated annealing.

    Ctrl-C prints the best columns found so far.

    Example: l0anneal anneal A.npy y.npy -k 10 --schedule paper --plot run.png
    """
    _check_outputs(out, plot)
    problem = SparseProblem(read_matrix(A), read_vector(y))
    result = anneal(
        problem,
        n_nonzero,
        _schedule(schedule, problem, n_nonzero, n, tau, time_limit),
        move=move.replace("-", " "),
        n_pairs=n_pairs,
        polish=polish,
        n_chains=n_chains,
        n_jobs=n_jobs,
        initial_support=None if initial_support is None else _read_indices(initial_support),
        keep_samples=keep_samples,
        time_limit=time_limit,
        random_state=random_state,
        progress=_wanted(progress),
        on_interrupt="return",
    )
    _report(result, as_json, out, plot)


# ---------------------------------------------------------------- arguments


def _check_outputs(out: Path | None, plot: Path | None) -> None:
    """Check before the run starts that the output files can be written."""
    for path in (out, plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"{path}: its directory does not exist")
    if plot is not None and plot.suffix.lower() not in _FIGURES:
        raise ValueError(f"{plot}: a figure must be one of {', '.join(_FIGURES)}")


def _wanted(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else progress


def _read_indices(path: Path) -> Any:
    values = read_vector(path)
    indices = values.astype(np.int64)
    if not np.array_equal(values, indices):
        raise ValueError(f"{path}: column indices must be integers")
    return indices


def _schedule(
    name: str,
    problem: SparseProblem,
    k: int,
    n: int | None,
    tau: int | None,
    time_limit: float | None,
) -> Schedule | AdaptiveSchedule | None:
    if name.endswith(".json"):
        if n is not None or tau is not None:
            raise ValueError("--n and --tau do not go with a .json file, which has its own")
        return Schedule.load(name)
    given = {"n": 100 if n is None else n, "tau": 5 if tau is None else tau}
    if name == "automatic" and n is None and tau is None and time_limit is not None:
        return None  # the run fills the time
    if name == "adaptive":
        if n is not None:
            raise ValueError("--n does not go with an adaptive schedule, which finds its own")
        return AdaptiveSchedule(tau=given["tau"])
    if name == "automatic":
        return Schedule.automatic(problem, k, **given)
    if name == "paper":
        return Schedule.paper(**given)
    raise ValueError(f"--schedule must be automatic, paper, adaptive or a .json file; got {name!r}")


# ---------------------------------------------------------------- output


def _report(
    result: Result,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
    problem: SparseProblem | None = None,
) -> None:
    """Print and save a result; with the problem, diagnose it as well."""
    if out is not None:
        result.save(out)
    if plot is not None:
        result.plot().savefig(plot, dpi=150)
    if not as_json:
        _print(result, out)
        for name, path in (("result", out), ("figure", plot)):
            if path is not None:
                print(f"{name} written to {path}")
    data, interrupted = result.to_dict(), result.interrupted
    if problem is not None and not result.interrupted:
        try:
            diagnosis = diagnose(result, problem)
        except KeyboardInterrupt:
            interrupted = True  # the answer itself is complete
        else:
            data["diagnosis"] = diagnosis.to_dict()
            if not as_json:
                print(diagnosis)
    if as_json:
        print(json.dumps(data))
    if interrupted:
        raise typer.Exit(130)


def _print(result: Result, out: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    title = f"{result.support.size} of {result.n_columns} columns"
    table = Table(title=title, title_justify="left")
    rows = result.table()
    for name in rows[0] if rows else ():
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row.values())
    console.print(table if rows else title)
    console.print(result.summary())
    if result.support.size > 12 and out is None:
        console.print("(all columns: --json, or --out FILE)")
