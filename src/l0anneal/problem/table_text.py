"""Read text files of rows and columns: which character separates them, and whether there is a header."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from l0anneal._util.advice import option
from l0anneal.problem.table_cells import (
    Column,
    as_column,
    is_integer,
    is_missing,
    is_number,
)

__all__ = ["TextTable", "read_text_table"]

_SEPARATORS = (",", ";", "\t", "|")  # one or more spaces, if none of these divides the lines
_SAMPLE = 50  # rows that decide on the separator
_FEW = 4  # columns; a row 0, 1, 2 may be data where all other rows are integers too


@dataclass(frozen=True, eq=False)
class TextTable:
    """The content of a text file: names if it has a header, columns, and what was done to it."""

    names: tuple[str, ...] | None
    columns: tuple[Column, ...]
    notes: tuple[str, ...]


def read_text_table(path: Path, header: bool | None = None) -> TextTable:
    """Read a file of values that are separated by commas, semicolons, tabs or bars.

    Parameters
    ----------
    path : Path
        The file, which may be compressed by gzip.
    header : bool, optional
        Whether the first row has the names of the columns; by default this is found out.
    """
    notes: list[str] = []
    text = _text(path, notes).lstrip("\r\n ")
    comment = ""
    while text.startswith("#"):
        line, _, text = text.partition("\n")
        comment = comment or line.lstrip("# ")
    if not text.strip():
        raise ValueError(f"{path}: it holds no numbers: the file is empty")
    lines = [line for line in text.splitlines()[:_SAMPLE] if line.strip()]
    tab_first = ".tsv" in path.suffixes or ".tab" in path.suffixes
    separator = "\t" if tab_first and "\t" in lines[0] else _separator(lines)
    rows = _rows(path, text, separator)
    names = _rows(path, comment, separator)[0] if comment else []
    if len(names) != len(rows[0]):
        names = []  # a remark, not a header
    if header is not False and not names and (header or _has_header(rows, notes)):
        names = rows.pop(0)
    names = [name.strip() for name in names]
    if not rows:
        raise ValueError(f"{path}: it holds no numbers: there is a header but no row")
    if names and len(rows[0]) == len(names) + 1:
        names = ["", *names]  # as R writes row names: without a name in the header
    width = len(names or rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            at = number + (2 if names and not comment else 1)
            raise ValueError(
                f"{path}: row {at} has {len(row)} values, but {width} are needed, as in the first "
                "row: repair that row, or quote values that contain the separator"
            )
    columns = [as_column([row[j] for row in rows], separator != ",") for j in range(width)]
    if names and width > 1 and not names[-1] and all(is_missing(row[-1]) for row in rows):
        names, columns = names[:-1], columns[:-1]  # each line ends with a separator
    return TextTable(tuple(names) if names else None, tuple(columns), tuple(notes))


def _text(path: Path, notes: list[str]) -> str:
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError) as error:
            raise ValueError(f"{path}: not a readable gzip file ({error}); copy it again") from None
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace")
    if b"\0" in raw:
        raise ValueError(f"{path}: not a text file; save the table as .csv")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        notes.append("the text is not in UTF-8; it was read as Latin-1")
        return raw.decode("latin-1")


def _rows(path: Path, text: str, separator: str) -> list[list[str]]:
    if separator == " ":
        reader = _spaced(text.splitlines())
    else:
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True
        )
    try:
        return [row for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{path}: not a readable table ({error}); check its quotes") from None


def _separator(lines: list[str]) -> str:
    """Return the separator that divides the lines into equally many fields, and most of them."""

    def score(separator: str) -> tuple[bool, int]:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator)]
        return len(set(widths[1:])) <= 1 and min(widths) > 1, min(widths)

    best = max(_SEPARATORS, key=score)
    if score(best)[0]:
        return best
    spaced = list(_spaced(lines))
    widths = {len(row) for row in spaced[1:]}
    numbers = all(any(is_number(cell) for cell in row) for row in spaced[1:])
    return " " if len(widths) == 1 and min(widths) > 1 and len(spaced) > 1 and numbers else best


def _spaced(lines: Iterable[str]) -> Any:
    return csv.reader((line.strip() for line in lines), delimiter=" ", skipinitialspace=True)


def _has_header(rows: list[list[str]], notes: list[str]) -> bool:
    """Whether the first row has the names of the columns."""
    first, rest = rows[0], rows[1:]
    if not rest:
        return not all(is_number(cell) or is_missing(cell) for cell in first)
    numbers = first[1:] if is_missing(first[0]) and len(first) > 1 else first
    if all(is_number(cell) for cell in numbers):
        if not _counts(numbers):
            return False
        shown = ", ".join(numbers[:3]) + (", …" if len(numbers) > 3 else "")
        if all(is_integer(row[-1]) for row in rest) and len(first) < _FEW and numbers is first:
            notes.append(
                f"the first row ({shown}) was read as data, like the others; if it has the names of "
                f"the columns, give {option('header')}"
            )
            return False
        notes.append(
            f"the first row ({shown}) was read as names of columns, as pandas writes them; if it is "
            f"data, give {option('header', False)}"
        )
        return True
    if all(is_number(cell) or is_missing(cell) for cell in first):
        return False
    if _looks_like_data(first, rest):
        notes.append("the first row was read as data, like the others: the columns have no names")
        return False
    return True


def _counts(cells: list[str]) -> bool:
    """Whether the cells are 0, 1, 2, …, written without a point."""
    return [cell.strip() for cell in cells] == [str(j) for j in range(len(cells))]


def _looks_like_data(first: list[str], rest: list[list[str]]) -> bool:
    """Whether a row of numbers and words has numbers where the others do, and words that recur."""
    seen = False
    for j, cell in enumerate(first):
        below = [row[j] for row in rest if j < len(row) and not is_missing(row[j])]
        numeric = bool(below) and all(is_number(value) for value in below)
        if is_missing(cell):
            continue
        if is_number(cell) != numeric:
            return False
        seen |= not numeric and cell in below
    return seen and any(is_number(cell) for cell in first)
