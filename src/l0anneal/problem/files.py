"""Read matrices and vectors from files: NumPy, CSV and Matrix Market."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

__all__ = ["read_matrix", "read_vector"]

_FORMATS = ".npy, .npz, .csv, .mtx"


def read_matrix(path: Path) -> Any:
    """Read a dense or sparse matrix; a .npy file is opened as a memory map."""
    suffix = path.suffix.lower()
    if not path.exists():
        raise FileNotFoundError(2, "no such file", str(path))
    if suffix not in _FORMATS.split(", "):
        raise ValueError(f"{path}: unknown format {suffix!r}; convert it to one of {_FORMATS}")
    try:
        return _READERS[suffix](path)
    except OSError:
        raise
    except Exception as error:  # each reader fails on a damaged file in its own way
        raise ValueError(f"{path}: not a readable {suffix} file ({error})") from error


def read_vector(path: Path) -> NDArray[Any]:
    """Read a vector, which may be stored as a matrix of one row or one column."""
    values = read_matrix(path)
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


def _read_csv(path: Path) -> NDArray[np.float64]:
    """Read numbers separated by commas; a first line with column names is skipped."""
    with path.open(encoding="utf-8") as file:
        first = file.readline()
    try:
        _ = [float(word) for word in first.split(",")]
        header = 0
    except ValueError:
        header = 1
    if not path.read_text(encoding="utf-8").split("\n", header)[-1].strip():
        raise ValueError("it holds no numbers")
    return np.loadtxt(path, delimiter=",", skiprows=header, ndmin=2, encoding="utf-8")


_READERS = {
    ".npy": lambda path: np.load(path, mmap_mode="r", allow_pickle=False),
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".mtx": lambda path: scipy.io.mmread(path),
}
