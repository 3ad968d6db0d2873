"""Tables of fine-mapping: one row for each column of each locus, and one row for each locus."""

from __future__ import annotations

import csv
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from l0anneal.tasks.store import Record

__all__ = ["COLUMNS", "LOCI", "column_rows", "locus_row", "write_table"]

COLUMNS = ("locus", "column", "z", "probability", "set", "set_probability", "purity")
LOCI = (
    "locus",
    "n_columns",
    "n_samples",
    "state",
    "disagreement",
    "mean_size",
    "n_sets",
    "suspicious",
    "weight",
    "note",
)


def column_rows(name: str, record: Record) -> Iterable[dict[str, Any]]:
    """Yield one row for each column of a finished locus; what a column has not is None."""
    a = record.arrays
    for column, z, probability, number in zip(a["names"], a["z"], a["probability"], a["set"]):
        k = int(number)
        yield {
            "locus": name,
            "column": str(column),
            "z": float(z),
            "probability": float(probability),
            "set": k or None,
            "set_probability": float(a["set_probability"][k - 1]) if k else None,
            "purity": float(a["purity"][k - 1]) if k else None,
        }


def locus_row(name: str, record: Record) -> dict[str, Any]:
    """Return the row of a finished locus; the suspicious columns by name."""
    a = record.arrays
    return {
        "locus": name,
        "n_columns": a["z"].size,
        "n_samples": int(a["n"]),
        "state": str(a["state"]),
        "disagreement": float(a["disagreement"]),
        "mean_size": float(a["mean_size"]),
        "n_sets": a["purity"].size,
        "suspicious": ",".join(a["names"][a["suspicious"]].tolist()) or None,
        "weight": float(a["weight"]),
        "note": str(a["note"]) or None,
    }


def write_table(path: Path, heads: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table separated by tabs, completely or not at all; NA stands for what is missing."""
    heads = list(heads)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(heads)
            for row in rows:
                writer.writerow([_shown(row[head]) for head in heads])
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "NA"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
