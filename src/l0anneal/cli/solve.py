"""The commands ``solve`` and ``anneal``."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from l0anneal.cli.answer import Answer
from l0anneal.cli.figure import plot_answer
from l0anneal.cli.inputs import (
    Columns,
    Dictionary,
    Drop,
    DropRows,
    Header,
    Impute,
    Intercept,
    OneHot,
    Signal,
    Source,
    TableOptions,
    Target,
    Weights,
    read_new_rows,
    read_pair,
    read_problem,
)
from l0anneal.cli.notes import Progress, wanted, warnings_as_notes
from l0anneal.cli.screen import TOOLS, answer_lines, prediction_lines
from l0anneal.diagnosis import diagnose
from l0anneal.problem.files import read_vector
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.pace import AdaptiveSchedule
from l0anneal.samplers.result import Result
from l0anneal.samplers.schedule import Schedule
from l0anneal.solving import solve, warn_without_intercept

__all__ = ["register"]

_FIGURES = (".png", ".svg", ".pdf")
_RESULTS = (".json", ".npz")

TimeLimit = Annotated[float | None, typer.Option("--time-limit", "-t", help="Seconds")]
NJobs = Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1: all cores")]
RandomState = Annotated[
    int | None, typer.Option("--random-state", "-s", help="One seed, one result")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Save the result (.json or .npz)")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the result (.png, .svg, .pdf)")]


def register(app: typer.Typer) -> None:
    """Add the commands to a Typer application."""
    app.command("solve")(solve_command)
    app.command("anneal")(anneal_command)


def solve_command(
    A: Source,
    y: Annotated[
        Path | None, typer.Argument(metavar="Y", help="Signal, if TABLE is a dictionary A")
    ] = None,
    target: Target = None,
    columns: Columns = None,
    drop: Drop = None,
    weights: Weights = None,
    impute: Impute = None,
    one_hot: OneHot = False,
    drop_rows: DropRows = False,
    intercept: Intercept = None,
    header: Header = None,
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
    predict: Annotated[
        Path | None, typer.Option("--predict", help="Predict the rows of this file")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help="Write predictions to this .csv file")
    ] = None,
    as_json: Json = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Find which columns of a table explain a target: k of them or, without -k, all that matter.

    With -k the search takes 2 seconds unless --time-limit is given.

    Ctrl-C prints the best columns found so far.

    Example: l0anneal solve houses.csv --target price --drop id --one-hot

    Example: l0anneal solve A.npy y.npy -k 10 --diagnose
    """
    _check_outputs(out, plot, predictions)
    if predictions is not None and predict is None:
        raise ValueError("--predictions needs --predict FILE, the rows to predict")
    table = TableOptions(target, columns, drop, weights, impute, one_hot, drop_rows)
    with warnings_as_notes():
        problem = read_problem(A, y, table, intercept, header)
        predicted = None
        if predict is not None:
            predicted = _Predicted(read_new_rows(predict, problem, header), predict, predictions)
        result = solve(
            problem,
            n_nonzero,
            time_limit=time_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            progress=wanted(progress),
            on_interrupt="return",
        )
        _report(result, problem, as_json, out, plot, check=check, predicted=predicted)


def anneal_command(
    A: Dictionary,
    y: Signal,
    n_nonzero: Annotated[int, typer.Option("--n-nonzero", "-k", help="Number of columns")],
    schedule: Annotated[
        str,
        typer.Option(help="automatic, paper, adaptive, or a .json file that Schedule.save wrote"),
    ] = "automatic",
    n: Annotated[
        int | None, typer.Option(help="Temperatures (automatic, paper); 100 if not given")
    ] = None,
    tau: Annotated[
        int | None, typer.Option(help="Sweeps at each temperature; 5 if not given")
    ] = None,
    time_limit: TimeLimit = None,
    intercept: Annotated[
        bool | None,
        typer.Option("--intercept/--no-intercept", help="Fit an intercept (default: no)"),
    ] = None,
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
    keep_samples: Annotated[
        bool, typer.Option("--keep-samples", help="Keep the supports of all sweeps")
    ] = False,
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
    with warnings_as_notes():
        problem = read_pair(A, y, intercept)
        warn_without_intercept(problem)
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
        progress=wanted(progress),
        on_interrupt="return",
    )
    _report(result, problem, as_json, out, plot, tools=("plot", "out"))


# ---------------------------------------------------------------- arguments


def _check_outputs(out: Path | None, plot: Path | None, predictions: Path | None = None) -> None:
    """Check before the run starts that the output files can be written."""
    for path in (out, plot, predictions):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"{path}: its directory does not exist; create it first")
    if out is not None and out.suffix.lower() not in _RESULTS:
        raise ValueError(f"{out}: a result must be one of {', '.join(_RESULTS)}")
    if plot is not None and plot.suffix.lower() not in _FIGURES:
        raise ValueError(f"{plot}: a figure must be one of {', '.join(_FIGURES)}")


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
    problem: SparseProblem,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
    *,
    check: bool = False,
    predicted: _Predicted | None = None,
    tools: Collection[str] = TOOLS,
) -> None:
    """Print, save, draw and diagnose a result."""
    answer = Answer(result, problem)
    if out is not None:
        result.save(out)
    if plot is not None:
        drawn = result.plot() if problem.feature_names is None else plot_answer(answer)
        drawn.savefig(plot, dpi=150)
    data, interrupted = answer.to_dict(), result.interrupted
    if not as_json:
        used = {"out": out, "plot": plot, "predict": predicted, "diagnose": check or None}
        given = [name for name in used if used[name] is not None]
        print("\n".join(answer_lines(answer, given, tools)))
    if predicted is not None:
        data["predictions"] = _report_predictions(answer, predicted, as_json)
    if not as_json:
        for name, path in (("result", out), ("figure", plot)):
            if path is not None:
                print(f"{name} written to {path}")
    if check and not result.interrupted:
        try:
            diagnosis = diagnose(result, problem)
        except KeyboardInterrupt:
            interrupted = True  # the answer itself is complete
        else:
            data["diagnosis"] = diagnosis.to_dict()
            if not as_json:
                print(f"\n{diagnosis}")
    if as_json:
        print(json.dumps(data))
    if interrupted:
        raise typer.Exit(130)


class _Predicted(NamedTuple):
    """New rows, where they come from, and where their predictions go."""

    X: Any
    source: Path
    to: Path | None


def _report_predictions(answer: Answer, predicted: _Predicted, as_json: bool) -> dict[str, Any]:
    """Print or write predictions, and return them as plain data."""
    mean, std = answer.predict(predicted.X)
    if predicted.to is not None:
        columns = [mean] if std is None else [mean, std]
        names = [answer.target] if std is None else [answer.target, f"std of {answer.target}"]
        with predicted.to.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows([repr(float(v)) for v in row] for row in zip(*columns))
    if not as_json and predicted.to is None:
        print("\n".join(prediction_lines(answer, predicted.source.name, mean, std)))
    elif not as_json:
        print(f"predictions written to {predicted.to}")
    return {"mean": mean.tolist()} | ({} if std is None else {"std": std.tolist()})
