"""Read matrices and vectors from files: NumPy, text and Matrix Market."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from l0anneal._util.advice import option
from l0anneal.problem.table_cells import is_number, is_text
from l0anneal.problem.table_text import read_text_table

__all__ = ["FORMATS", "NamedMatrix", "read_matrix", "read_named_matrix", "read_vector"]

FORMATS = (".npy", ".npz", ".csv", ".mtx")


class NamedMatrix(NamedTuple):
    """A matrix, and the names of its columns if the file has a header."""

    A: Any
    names: tuple[str, ...] | None = None


def read_matrix(path: Path) -> Any:
    """Read a dense or sparse matrix; a .npy file is opened as a memory map."""
    return read_named_matrix(path).A


def read_named_matrix(path: Path, header: bool | None = None) -> NamedMatrix:
    """Read a matrix and the names of its columns; a warning says what is unusual about them.

    Parameters
    ----------
    path : Path
        The file; .tsv files and files compressed by gzip are read like .csv files.
    header : bool, optional
        Whether the first row of a text file has the names; by default this is found out.
    """
    suffix = path.suffix.lower()
    if not path.exists():
        raise FileNotFoundError(2, "no such file", str(path))
    if ".csv" in path.name.lower() or ".tsv" in path.name.lower():
        return _read_text(path, header)
    if suffix not in FORMATS:
        raise ValueError(
            f"{path}: unknown format {suffix!r}; convert it to one of {', '.join(FORMATS)}"
        )
    try:
        return NamedMatrix(_READERS[suffix](path))
    except OSError:
        raise
    except Exception as error:  # each reader fails on a damaged file in its own way
        raise ValueError(f"{path}: not a readable {suffix} file ({error})") from error


def read_vector(path: Path, header: bool | None = None) -> NDArray[Any]:
    """Read a vector, which may be stored as a matrix of one row or one column."""
    values = read_named_matrix(path, header).A
    if scipy.sparse.issparse(values):
        values = values.toarray()
    values = np.asarray(values)
    if values.ndim == 2 and 1 in values.shape:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"{path}: one vector is needed; got shape {values.shape}")
    return values


def _read_npz(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as file:
        names = list(file)
        if "format" not in names:
            if len(names) != 1:
                raise ValueError(f"it holds {len(names)} arrays, {names}; one is needed")
            return file[names[0]]
    return scipy.sparse.load_npz(path)


def _read_text(path: Path, header: bool | None) -> NamedMatrix:
    """Read numbers from a text file; a first column that is a saved index is left out."""
    text = read_text_table(path, header)
    for j, column in enumerate(text.columns):
        if is_text(column):
            first = next(
                str(value) for value in column if value is not None and not is_number(value)
            )
            raise ValueError(
                f"{path}: not a readable .csv file of numbers: column {j} holds {first!r}; a matrix "
                f"needs numbers: remove the column, or give one table with {option('target', 'NAME')}"
            )
    columns, names, notes = text.columns, text.names, text.notes
    if names and len(columns) > 1 and not names[0]:
        columns, names = columns[1:], names[1:]
        notes = (*notes, "the first column has no name: it is left out as a saved index")
    for note in notes:
        warnings.warn(f"{path.name}: {note}", stacklevel=4)
    return NamedMatrix(np.column_stack(columns), names)


def _read_mtx(path: Path) -> Any:
    from scipy.io import mmread  # here, because it takes long to import

    return mmread(path)


_READERS = {
    ".npy": lambda path: np.load(path, mmap_mode="r", allow_pickle=False),
    ".npz": _read_npz,
    ".mtx": _read_mtx,
}
