"""Decorators that compile kernels: cached on disk, and run without the GIL.

Kernels are compiled without ``fastmath``, so that the order of summation is fixed (see `dot`).
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.registry import cpu_target

from l0anneal.problem import admissibility

__all__ = ["digest", "has_nrt_option", "inlined", "kernel", "loop", "source_files"]


def source_files() -> list[Path]:
    """Return the files that decide what the kernels compute: the engine, and its tolerance."""
    return [*sorted(Path(__file__).parent.rglob("*.py")), Path(admissibility.__file__)]


def digest(paths: Iterable[Path]) -> str:
    """Return a short hash of the content of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


# Numba recompiles a cached kernel when its own file changes, but not when a kernel that it calls
# changes in another file. The name of each cache file therefore contains a digest of all of them.
_DIGEST = digest(source_files())


def has_nrt_option() -> bool:
    """Whether this version of Numba has the private option ``_nrt``."""
    return hasattr(cpu_target.options, "_nrt")


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call, or load it from the cache."""
    return _compile(function)


def loop(function: Callable[..., Any]) -> Any:
    """Compile a loop over proposals, without counting references to arrays.

    Numba counts references whenever a kernel takes an array out of the tableau, and that takes longer
    than the rest of a proposal. A kernel that does not count references must not create an array or
    call a kernel that returns one; views are allowed.

    The count is switched off by Numba's private option ``_nrt``. Where Numba has no such option, the
    kernel counts references: the numbers are the same, and the loop is slower.
    """
    return _compile(function, counts_references=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile ``function`` into each kernel that calls it, without counting references (see `loop`).

    This is for functions that are called once per proposal, where passing the sixteen arrays of a
    tableau takes longer than using them.
    """
    return _compile(function, counts_references=False, forceinline=True)


def _compile(
    function: Callable[..., Any], *, counts_references: bool = True, **options: Any
) -> Any:
    function.__qualname__ += f".{_DIGEST}"
    if has_nrt_option():
        # set for every kernel, because a kernel without a value of its own takes its caller's
        options["_nrt"] = counts_references
    return njit(cache=True, nogil=True, error_model="numpy", **options)(function)
