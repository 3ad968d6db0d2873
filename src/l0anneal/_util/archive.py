"""Results in files: arrays and one JSON header in an ``.npz``, never pickles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read", "write"]


def write(
    path: str | PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write a result of this kind; what `read` gives back is the same bit for bit."""
    text = json.dumps({"format": f"l0anneal.{kind}/1", **header})
    with open(path, "wb") as file:
        np.savez_compressed(file, header=np.array(text), **arrays)


def read(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays that `write` wrote, or raise ValueError."""
    with np.load(path, allow_pickle=False) as file:
        header = json.loads(str(file["header"])) if "header" in file else {}
        if header.pop("format", None) != f"l0anneal.{kind}/1":
            raise ValueError(f"{path} is not a saved {kind}")
        return header, {name: file[name] for name in file if name != "header"}
