"""Options that say what to solve, and the problem that they describe."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from l0anneal.cli.notes import note
from l0anneal.problem.files import read_named_matrix, read_vector
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.problem.table import FORMATS, read_table

__all__ = [
    "Columns",
    "Dictionary",
    "Drop",
    "DropRows",
    "Header",
    "Impute",
    "Intercept",
    "OneHot",
    "Signal",
    "Source",
    "TableOptions",
    "Target",
    "Weights",
    "read_new_rows",
    "read_pair",
    "read_problem",
]

_PANEL = "Which columns and rows"
_KINDS = ", ".join(FORMATS)

Source = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help=f"One table ({_KINDS}, also .gz), or A: .npy, .npz, .csv, .mtx"
    ),
]
Dictionary = Annotated[Path, typer.Argument(help="Dictionary A, M × N: .npy, .npz, .csv or .mtx")]
Signal = Annotated[Path, typer.Argument(help="Signal y of length M, in one of these formats")]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", "-y", help="Column to explain: a name, or a position from 0", show_default=False
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--columns", help="Columns to choose from: a,b,c", rich_help_panel=_PANEL),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", help="Columns to leave out: a,b", rich_help_panel=_PANEL),
]
Weights = Annotated[
    str | None,
    typer.Option("--weights", help="Column of weights: 2 counts twice", rich_help_panel=_PANEL),
]
Impute = Annotated[
    str | None,
    typer.Option("--impute", help="Fill missing values: mean or median", rich_help_panel=_PANEL),
]
OneHot = Annotated[
    bool,
    typer.Option("--one-hot", help="Make dummies from columns of text", rich_help_panel=_PANEL),
]
DropRows = Annotated[
    bool,
    typer.Option("--drop-rows", help="Leave out rows with missing values", rich_help_panel=_PANEL),
]
Intercept = Annotated[
    bool | None,
    typer.Option(
        "--intercept/--no-intercept",
        help="Fit an intercept (default: for one table)",
        rich_help_panel=_PANEL,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether row 1 has names (default: find out)",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """Options that only one table can have."""

    target: str | None = None
    columns: list[str] | None = None
    drop: list[str] | None = None
    weights: str | None = None
    impute: str | None = None
    one_hot: bool = False
    drop_rows: bool = False

    def given(self) -> dict[str, Any]:
        """Return the options that were given."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value}


def read_problem(
    source: Path,
    signal: Path | None,
    table: TableOptions,
    intercept: bool | None,
    header: bool | None,
) -> SparseProblem:
    """Return the problem of one table and a target, or of two files."""
    given = table.given()
    if signal is not None:
        if given:
            option = next(iter(given)).replace("_", "-")
            raise ValueError(
                f"--{option} goes with one table, but {source} and {signal} were given: give one file "
                "and --target, or two files without such options"
            )
        return read_pair(source, signal, intercept, header)
    if table.target is None:
        names = read_table(source, header).names
        shown = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
        raise ValueError(
            f"{source}: one column has to be explained by the others: give --target NAME (the columns "
            f"are {shown}), or a second file with the signal"
        )
    problem = SparseProblem.from_table(
        source, intercept=intercept is not False, header=header, **given
    )
    for remark in problem.table.remarks if problem.table is not None else ():
        note(remark)
    return problem


def read_pair(
    A: Path, y: Path, intercept: bool | None = None, header: bool | None = None
) -> SparseProblem:
    """Return the problem of a dictionary and a signal in two files."""
    matrix = read_named_matrix(A, header)
    return SparseProblem(
        matrix.A, read_vector(y, header), intercept=intercept, feature_names=matrix.names
    )


def read_new_rows(
    path: Path, problem: SparseProblem, header: bool | None = None
) -> NDArray[np.float64]:
    """Return the columns of a problem in another file."""
    if problem.table is not None:
        return problem.table.matrix(path, header=header)
    X = read_named_matrix(path, header).A
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if X.ndim != 2 or X.shape[1] != problem.n_columns:
        raise ValueError(
            f"{path}: {problem.n_columns} columns are needed, as in A; got shape {X.shape}"
        )
    if not np.isfinite(X).all():
        raise ValueError(f"{path}: it contains NaN or infinity; fill or drop these values")
    return np.asarray(X, dtype=np.float64)
