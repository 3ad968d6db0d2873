"""Reference numbers of the theory, from ``theory_reference.json``.

They were computed by independent programs and rounded to eight digits; those in the table
``numbers`` have as many digits as are written there.
"""

import json
from pathlib import Path
from typing import Any

_TABLES = json.loads(Path(__file__).with_name("theory_reference.json").read_text())


def rows(table: str) -> list[dict[str, Any]]:
    """Return a table as one dictionary per row."""
    columns = _TABLES[table]["columns"]
    return [dict(zip(columns, row, strict=True)) for row in _TABLES[table]["rows"]]


NUMBERS: dict[str, float] = {row["name"]: row["value"] for row in rows("numbers")}
