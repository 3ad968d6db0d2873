"""The reference numbers of ``reference.json``.

Computed once by independent programs, printed to eight digits; ``numbers`` to as many as are shown.
"""

import json
from pathlib import Path
from typing import Any

_TABLES = json.loads(Path(__file__).with_name("theory_reference.json").read_text())


def rows(table: str) -> list[dict[str, Any]]:
    """A table as one dictionary per row."""
    columns = _TABLES[table]["columns"]
    return [dict(zip(columns, row, strict=True)) for row in _TABLES[table]["rows"]]


NUMBERS: dict[str, float] = {row["name"]: row["value"] for row in rows("numbers")}
