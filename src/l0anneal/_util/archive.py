"""Save a dataclass in an ``.npz`` file or as text in a ``.json`` file, and load it; no pickles.

Both have the same content: a header of plain data, and arrays by name. JSON writes every float with
the digits that give the same float again, so that both are exact.
"""

from __future__ import annotations

import json
import types
import typing
import zipfile
from dataclasses import MISSING, fields
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

__all__ = ["FORMAT", "load", "save"]

FORMAT = 2  # raised whenever files of an earlier version can no longer be read
Saved = TypeVar("Saved")


def save(record: Any, path: str | PathLike[str]) -> None:
    """Write a dataclass to a file, as text if its suffix is ``.json``; `load` is the exact inverse.

    Fields may be arrays, mappings or tuples of arrays, objects with ``to_dict`` and ``from_dict``,
    and anything that JSON can represent.
    """
    header: dict[str, Any] = {"format": f"l0anneal.{type(record).__name__}/{FORMAT}"}
    arrays: dict[str, Any] = {}
    for field in fields(record):
        name, value = field.name, getattr(record, field.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, dict):
            header[name] = list(value)
            arrays |= {f"{name}.{key}": array for key, array in value.items()}
        elif isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
            header[name] = len(value)
            arrays |= {f"{name}.{i}": array for i, array in enumerate(value)}
        elif hasattr(value, "to_dict"):
            header[name] = value.to_dict()
        else:
            header[name] = value
    if Path(path).suffix.lower() == ".json":
        Path(path).write_text(_as_text(header, arrays), encoding="utf-8")
        return
    with open(path, "wb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)


def load(kind: type[Saved], path: str | PathLike[str]) -> Saved:
    """Read a dataclass of the given kind that `save` wrote, or raise ValueError."""
    try:
        if Path(path).suffix.lower() == ".json":
            header, arrays = _from_text(Path(path).read_text(encoding="utf-8"))
        else:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(str(file["header"])) if "header" in file else {}
                arrays = {name: file[name] for name in file if name != "header"}
    except (ValueError, TypeError, KeyError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a saved {kind.__name__}: it is no intact .npz or .json file ({error})"
        ) from error
    _check_format(kind.__name__, str(header.get("format", "")), path)
    types_of = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        name, value = field.name, header.get(field.name)
        if name not in header and name not in arrays:
            # a field that earlier versions did not have
            if field.default is not MISSING or field.default_factory is not MISSING:
                continue
            raise ValueError(f"{path} is not a saved {kind.__name__}: it has no {name}")
        expected = _not_none(types_of[name])
        origin = typing.get_origin(expected) or expected
        if name in arrays:
            value = arrays[name]
        elif value is not None and hasattr(expected, "from_dict"):
            value = expected.from_dict(value)
        elif origin is dict and value is not None:
            value = {key: arrays[f"{name}.{key}"] for key in value}
        elif origin is tuple and isinstance(value, int):
            value = tuple(arrays[f"{name}.{i}"] for i in range(value))
        elif origin is tuple and value is not None:
            value = tuple(value)
        values[name] = value
    return kind(**values)


def _as_text(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    """Return header and arrays as JSON, with one line for each field."""
    plain = {
        name: {"dtype": str(array.dtype), "shape": array.shape, "values": array.ravel().tolist()}
        for name, array in ((name, np.asarray(array)) for name, array in arrays.items())
    }
    lines = [f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in header.items()]
    inner = ",\n  ".join(f'"{name}": {json.dumps(value)}' for name, value in plain.items())
    return "{\n " + ",\n ".join([*lines, f'"arrays": {{\n  {inner}\n }}']) + "\n}\n"


def _from_text(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header = json.loads(text)
    plain = header.pop("arrays", {})
    arrays = {
        name: np.array(item["values"], dtype=item["dtype"]).reshape(item["shape"])
        for name, item in plain.items()
    }
    return header, arrays


def _not_none(expected: Any) -> Any:
    """Return X of ``X | None``."""
    if isinstance(expected, types.UnionType) or typing.get_origin(expected) is typing.Union:
        return next(part for part in typing.get_args(expected) if part is not type(None))
    return expected


def _check_format(kind: str, found: str, path: str | PathLike[str]) -> None:
    name, _, number = found.removeprefix("l0anneal.").rpartition("/")
    if not found.startswith("l0anneal.") or not number.isdigit():
        raise ValueError(f"{path} is not a saved {kind}: l0anneal did not write this file")
    if name != kind:
        raise ValueError(f"{path} is a saved {name}; a saved {kind} is needed: use {name}.load")
    if int(number) > FORMAT:
        raise ValueError(
            f"{path} has format {number}, but this version of l0anneal reads format {FORMAT}: "
            "update l0anneal"
        )
    if int(number) < FORMAT:
        raise ValueError(
            f"{path} has format {number} of an earlier version, but this version of l0anneal reads "
            f"format {FORMAT}: run again with the same seed, or load it with that version"
        )
