"""Loci: summary statistics of neighbouring columns, in memory or in files.

A locus in files is one of

- ``NAME.npz`` with the arrays ``z`` (or ``effect`` and ``standard_error``), ``R``, ``n`` and, if the
  columns have names, ``names``;
- a table ``NAME.tsv`` (separated by tabs) or ``NAME.z`` (by spaces), with one row for each column and a
  header, and its correlations ``NAME.ld`` (text: one row in each line, as PLINK writes them) or
  ``NAME.npy`` beside it.

The names of arrays and of columns of a table may also be those that are usual in genetics (`NAMES`), in
capital or small letters; other columns of a table are ignored. ``n`` may be a column of the table, of
which the smallest number counts, or may be given for all loci.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal.problem.summary import Summary, read_summary

__all__ = ["NAMES", "Locus", "digest_of_files", "find_loci", "name_of"]

NAMES = {
    "z": ("z", "zscore", "z_score"),
    "effect": ("effect", "beta"),
    "standard_error": ("standard_error", "se"),
    "R": ("r", "ld"),
    "n": ("n", "n_samples"),
    "names": ("names", "name", "rsid", "snp", "variant", "id"),
}
_SUFFIXES = (".npz", ".tsv", ".z")
_PARTNERS = (".ld", ".npy")


@dataclass(frozen=True, eq=False)
class Locus:
    """Summary statistics of one locus; see `SparseProblem.from_summary` for their meaning.

    Parameters
    ----------
    name : str
        The name of the locus, which also decides on its random numbers.
    R : array of shape (N, N)
        Correlations of the columns.
    n : int, optional
        The number of samples.
    z : array of shape (N,), optional
        The z-scores.
    effect, standard_error : arrays of shape (N,), optional
        Effects and standard errors, instead of z.
    names : sequence of str, optional
        The names of the columns; by default their numbers, from 0.

    See Also
    --------
    finemap : Map loci.
    SparseProblem.from_summary : Make a problem of one locus.
    check_summary : Check z-scores against correlations.

    Examples
    --------
    >>> from l0anneal import Locus
    >>> locus = Locus("chr1", [[1.0, 0.9], [0.9, 1.0]], 500, z=[5.0, 4.0], names=["rs1", "rs2"])
    >>> locus.column_names
    ['rs1', 'rs2']
    """

    name: str
    R: ArrayLike
    n: int | None = None
    z: ArrayLike | None = None
    effect: ArrayLike | None = None
    standard_error: ArrayLike | None = None
    names: Iterable[str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise ValueError(f"a locus needs a name of printable characters; got {self.name!r}")
        if self.names is not None:
            object.__setattr__(self, "names", [str(name) for name in self.names])
            if len(self.column_names) != len(np.asarray(self.R)):
                raise ValueError(
                    f"locus {self.name} has {len(np.asarray(self.R))} columns, but "
                    f"{len(self.column_names)} names: give one name for each column"
                )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Locus:
        """Read the locus of an .npz file, or of a table with its correlations beside it."""
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(2, "no such file", str(path))
        try:
            found = _read_npz(path) if path.suffix.lower() == ".npz" else _read_table(path)
        except OSError:
            raise
        except Exception as error:  # each reader fails on a damaged file in its own way
            raise ValueError(f"{path}: {error}") from error
        return cls(name_of(path), **found)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, or their numbers."""
        if self.names is None:
            return [str(j) for j in range(len(np.asarray(self.R)))]
        return list(self.names)

    @property
    def digest(self) -> str:
        """The SHA-256 hash of all numbers and names."""
        state = hashlib.sha256()
        for part in (self.R, self.n, self.z, self.effect, self.standard_error):
            values = np.zeros(0) if part is None else np.asarray(part, dtype=np.float64)
            state.update(repr(values.shape).encode() + np.ascontiguousarray(values).tobytes())
        state.update("\n".join(self.column_names).encode())
        return state.hexdigest()

    def read(self, n: int | None = None) -> Summary:
        """Return the checked statistics; ``n`` counts where the locus has none of its own."""
        return read_summary(
            self.z, self.R, n if self.n is None else self.n, self.effect, self.standard_error
        )


def find_loci(paths: Iterable[str | PathLike[str]]) -> list[Path]:
    """Return the files of loci: given ones, and those in given directories, sorted by name."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES)
            if not inside:
                raise ValueError(
                    f"{path} holds no locus; a locus is a file that ends in "
                    f"{', '.join(_SUFFIXES)}: give another directory"
                )
            found += inside
        elif not path.exists():
            raise FileNotFoundError(2, "no such file or directory", str(path))
        elif path.suffix.lower() not in _SUFFIXES:
            raise ValueError(
                f"{path}: a locus is a file that ends in {', '.join(_SUFFIXES)}: convert the file"
            )
        else:
            found.append(path)
    return found


def name_of(path: Path) -> str:
    """Return the name of a locus from that of its file."""
    return path.stem


def digest_of_files(path: Path) -> str:
    """Return the SHA-256 hash of a locus's file, and of its correlations if these are another."""
    state = hashlib.sha256()
    for file in [path] if path.suffix.lower() == ".npz" else [path, _partner(path)]:
        with file.open("rb") as stream:
            state.update(hashlib.file_digest(stream, "sha256").digest())
    return state.hexdigest()


def _partner(path: Path) -> Path:
    """Return the file with the correlations of a table."""
    for suffix in _PARTNERS:
        if (other := path.with_suffix(suffix)).exists():
            return other
    raise FileNotFoundError(
        2, "no correlations beside the table", str(path.with_suffix(_PARTNERS[0]))
    )


def _known(found: Mapping[str, Any]) -> dict[str, Any]:
    """Pick what a locus needs, by any of its names."""
    lower = {name.strip().lower(): value for name, value in found.items()}
    picked = {
        argument: next(lower[alias] for alias in aliases if alias in lower)
        for argument, aliases in NAMES.items()
        if any(alias in lower for alias in aliases)
    }
    if "z" in picked:  # a table may have both; z is what counts
        picked.pop("effect", None)
        picked.pop("standard_error", None)
    if "R" not in picked:
        raise ValueError(f"it holds no correlations R, but {', '.join(found)}: add R")
    if "z" not in picked and not {"effect", "standard_error"} <= set(picked):
        raise ValueError(
            f"it holds neither z nor effect and standard_error, but {', '.join(found)}: add one"
        )
    return picked


def _read_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        found = _known({name: file[name] for name in file.files})
    if "n" in found:
        found["n"] = _smallest(found["n"])
    return found


def _read_table(path: Path) -> dict[str, Any]:
    separator = "\t" if path.suffix.lower() == ".tsv" else None
    rows = [line.split(separator) for line in path.read_text("utf-8").splitlines() if line.strip()]
    if len(rows) < 2:
        raise ValueError("a table needs a header and a row for each column; it has no rows")
    short = [i for i, row in enumerate(rows[1:], start=2) if len(row) != len(rows[0])]
    if short:
        raise ValueError(
            f"row {short[0]} has {len(rows[short[0] - 1])} fields, but the header has "
            f"{len(rows[0])}: give each row as many"
        )
    columns = {name: list(values) for name, values in zip(rows[0], zip(*rows[1:]))}
    found = _known({**columns, "ld": _read_correlations(_partner(path))})
    for name in ("z", "effect", "standard_error", "n"):
        if name in found:
            found[name] = np.array(found[name], dtype=np.float64)
    if "n" in found:
        found["n"] = _smallest(found["n"])
    return found


def _read_correlations(path: Path) -> NDArray[np.float64]:
    if path.suffix == ".npy":
        return np.asarray(np.load(path, allow_pickle=False))
    return np.loadtxt(path, ndmin=2, encoding="utf-8")


def _smallest(n: NDArray[Any]) -> int:
    """Return the smallest number of samples; these are integers, but may be stored as floats."""
    smallest = float(np.min(n))
    if smallest != int(smallest):
        raise ValueError(f"n must be an integer, the number of samples; got {smallest}")
    return int(smallest)
