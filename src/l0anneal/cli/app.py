"""The command line: it mirrors the Python interface, option by option."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from l0anneal.cli.reproduce import register as register_experiments
from l0anneal.cli.theory import register as register_theory
from l0anneal.diagnosis import diagnose
from l0anneal.problem.files import read_matrix, read_vector
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.annealing.result import AnnealResult
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.pace import AdaptiveSchedule
from l0anneal.samplers.schedule import Schedule
from l0anneal.solving import solve

__all__ = ["app", "main"]

_FIGURES = (".png", ".svg", ".pdf")

app = typer.Typer(
    name="l0anneal",
    help="The best k columns of a dictionary for a signal, found by annealing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


register_experiments(app)
register_theory(app)


@app.command("anneal")
def anneal_command(
    A: Annotated[Path, typer.Argument(help="Dictionary, M × N: .npy, .npz, .csv or .mtx")],
    y: Annotated[Path, typer.Argument(help="Signal of length M, in any of these formats")],
    k: Annotated[int, typer.Option("-k", "--n-nonzero", help="Columns to choose")],
    schedule: Annotated[
        str,
        typer.Option(help="automatic, paper, adaptive, or a .json file that Schedule.save wrote"),
    ] = "automatic",
    n: Annotated[int | None, typer.Option(help="Temperatures (automatic, paper) [100]")] = None,
    tau: Annotated[int | None, typer.Option(help="Sweeps at each, but for a .json [5]")] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds; the automatic schedule fills them")
    ] = None,
    move: Annotated[
        str, typer.Option(help="pair flip, auto, heat bath, multi flip or rejection free")
    ] = "pair flip",
    pairs: Annotated[int, typer.Option(help="Columns exchanged at once, at most (multi flip)")] = 2,
    polish: Annotated[bool, typer.Option(help="End in a swap-local minimum")] = True,
    chains: Annotated[int, typer.Option(help="Independent chains; the best wins")] = 1,
    jobs: Annotated[int, typer.Option(help="Threads to run them in; -1: all cores")] = 1,
    initial_support: Annotated[
        Path | None, typer.Option(help="File of k column indices to start from")
    ] = None,
    keep_samples: Annotated[bool, typer.Option(help="Keep the supports of all sweeps")] = False,
    seed: Annotated[int | None, typer.Option(help="One seed, one result")] = None,
    progress: Annotated[
        bool | None, typer.Option(help="Show a bar (default: if stderr is a terminal)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else")] = False,
    out: Annotated[Path | None, typer.Option(help="Save the result (.npz)")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the run (.png, .svg, .pdf)")] = None,
) -> None:
    """Find the k columns of A that approximate y best, by simulated annealing."""
    _check_outputs(out, plot)
    problem = SparseProblem(read_matrix(A), read_vector(y))
    start = None
    if initial_support is not None:
        indices = read_vector(initial_support)
        start = indices.astype(np.int64)
        if not np.array_equal(indices, start):
            raise ValueError(f"{initial_support}: column indices must be integers")
    result = anneal(
        problem,
        k,
        _schedule(schedule, problem, k, n, tau, time_limit),
        move=move.replace("-", " "),
        n_pairs=pairs,
        polish=polish,
        n_chains=chains,
        n_jobs=jobs,
        initial_support=start,
        keep_samples=keep_samples,
        time_limit=time_limit,
        random_state=seed,
        progress=sys.stderr.isatty() if progress is None else progress,
        on_interrupt="return",
    )
    if as_json:
        print(json.dumps(_as_json(result)))
    else:
        _print(result, out)
    for what, path in (("result", out), ("figure", plot)):
        if path is not None:
            result.save(path) if what == "result" else result.plot().savefig(path, dpi=150)
            if not as_json:
                print(f"{what} written to {path}")
    if result.interrupted:
        raise typer.Exit(130)


@app.command("solve")
def solve_command(
    A: Annotated[Path, typer.Argument(help="Dictionary, M × N: .npy, .npz, .csv or .mtx")],
    y: Annotated[Path, typer.Argument(help="Signal of length M, in any of these formats")],
    k: Annotated[
        int | None, typer.Option("-k", "--n-nonzero", help="Columns to choose, if it is known")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds (default with -k: 2; without: until it knows)")
    ] = None,
    jobs: Annotated[int, typer.Option(help="With -k: threads, each a chain; -1: all cores")] = 1,
    check: Annotated[
        bool, typer.Option("--diagnose", help="Say how far the answer can be trusted")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="One seed, one result")] = None,
    progress: Annotated[
        bool | None, typer.Option(help="Show a bar (default: if stderr is a terminal)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else")] = False,
    out: Annotated[Path | None, typer.Option(help="Save the result (.npz)")] = None,
) -> None:
    """Find the best columns of A for y: k of them, or, without -k, as many as there are."""
    _check_outputs(out, None)
    problem = SparseProblem(read_matrix(A), read_vector(y))
    result = solve(
        problem,
        k,
        time_limit=time_limit,
        n_jobs=jobs,
        random_state=seed,
        progress=sys.stderr.isatty() if progress is None else progress,
    )
    verdict = diagnose(result, problem) if check else None
    if as_json:
        data = _evidence_json(result) if isinstance(result, EvidenceResult) else _as_json(result)
        if verdict is not None:
            data["diagnosis"] = {
                "verdict": verdict.verdict,
                "reasons": verdict.reasons,
                "advice": verdict.advice,
            }
        print(json.dumps(data))
    else:
        if isinstance(result, EvidenceResult):
            _print_evidence(result)
        else:
            _print(result, out)
        if verdict is not None:
            print(verdict)
    if out is not None:
        result.save(out)
        if not as_json:
            print(f"result written to {out}")
    if isinstance(result, KickResult) and result.interrupted:
        raise typer.Exit(130)


def _check_outputs(out: Path | None, plot: Path | None) -> None:
    """Before the work is done, not after."""
    for path in (out, plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"{path}: its directory does not exist")
    if plot is not None and plot.suffix.lower() not in _FIGURES:
        raise ValueError(f"{plot}: a figure can be {', '.join(_FIGURES)}")


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
            raise ValueError("--n and --tau are for made schedules; a .json file has its own")
        return Schedule.load(name)
    given = {"n": 100 if n is None else n, "tau": 5 if tau is None else tau}
    if name == "automatic" and n is None and tau is None and time_limit is not None:
        return None  # the run fills the time
    if name == "adaptive":
        if n is not None:
            raise ValueError("--n is for made schedules; an adaptive one finds its temperatures")
        return AdaptiveSchedule(tau=given["tau"])
    if name == "automatic":
        return Schedule.automatic(problem, k, **given)
    if name == "paper":
        return Schedule.paper(**given)
    raise ValueError(f"--schedule is automatic, paper, adaptive or a .json file; got {name!r}")


def _evidence_json(result: EvidenceResult) -> dict[str, Any]:
    likely = np.flatnonzero(result.inclusion_probability > 0.01)
    return {
        "support": result.support.tolist(),
        "coef": result.coef[result.support].tolist(),
        "energy": result.energy,
        "distortion": result.distortion,
        "noise_variance": result.noise_variance,
        "state": result.state,
        "inclusion_probability": {
            str(j): float(result.inclusion_probability[j]) for j in likely.tolist()
        },
        "size_posterior": result.size_posterior.tolist(),
        "n_samples": result.n_samples,
        "n_columns": result.coef.size,
        "seed": result.seed,
        "seconds": result.seconds,
    }


def _as_json(result: AnnealResult | KickResult) -> dict[str, Any]:
    own: dict[str, Any] = (
        {"n_kicks": result.n_kicks.tolist()}
        if isinstance(result, KickResult)
        else {"move": result.move, "schedule": result.schedule.to_dict()}
    )
    return {
        "support": result.support.tolist(),
        "coef": result.coef[result.support].tolist(),
        "energy": result.energy,
        "distortion": result.distortion,
        "n_samples": result.n_samples,
        "n_columns": result.n_columns,
        "n_chains": len(result.chain_energies),
        "n_agree": result.n_agree,
        "interrupted": result.interrupted,
        "seed": result.seed,
        "seconds": result.seconds,
        **own,
    }


def _print_evidence(result: EvidenceResult) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(
        title=f"{result.support.size} of {result.coef.size} columns", title_justify="left"
    )
    for name in ("column", "probability", "coefficient", "its average", "± std"):
        table.add_column(name, justify="right")
    order = np.argsort(-result.inclusion_probability, kind="stable")
    likely = order[: max(10, min(20, result.support.size))]
    for j in likely[result.inclusion_probability[likely] > 0.01]:
        table.add_row(
            str(j),
            f"{result.inclusion_probability[j]:.2f}",
            f"{result.coef[j]:.4g}" if result.coef[j] else "–",
            f"{result.averaged_coef[j]:.4g}",
            f"{result.coef_std[j]:.2g}",
        )
    console.print(table)
    console.print(result.summary())


def _print(result: AnnealResult | KickResult, out: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(
        title=f"{result.support.size} of {result.n_columns} columns", title_justify="left"
    )
    table.add_column("column", justify="right")
    table.add_column("coefficient", justify="right")
    largest = result.support[np.argsort(-np.abs(result.coef[result.support]), kind="stable")]
    for j in largest[:10]:
        table.add_row(str(j), f"{result.coef[j]:.6g}")
    if largest.size > 10:
        table.add_row("…", f"{largest.size - 10} smaller ones")
    console.print(table)
    console.print(result.summary())
    if largest.size > 12 and out is None:
        console.print("(all columns: --json, or --out FILE)")


def main(args: list[str] | None = None) -> None:
    """Run the command line; a mistake of the caller is one line on stderr and exit code 2."""
    try:
        code = app(args, standalone_mode=False)
    except (ValueError, OSError, ArithmeticError) as error:
        message = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else error
        _fail(str(message), 2)
    except MemoryError as error:
        _fail(f"out of memory ({error})", 2)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        # usage errors of the option parser know how to say themselves; anything else is a bug
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if not message:  # the help was asked for, and shown
            sys.exit(2)
        _fail(message, 2)
    if code == 130:
        _fail("interrupted", 130)
    sys.exit(code or 0)


def _fail(message: str, code: int) -> None:
    print(f"l0anneal: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
