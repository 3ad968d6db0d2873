"""The decorator of all kernels: compiled once, cached, without the GIL.

No licence to reorder sums (``fastmath``): see `_dot`.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

__all__ = ["inlined", "kernel", "loop"]

_ENGINE = sorted(Path(__file__).parent.rglob("*.py"))

# Numba renews a cached kernel when its own file changes, but not when a kernel that it calls in
# another file does. The name of the cache file therefore carries a digest of the shared kernels.
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _ENGINE)).hexdigest()[:12]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call, or load it from the cache."""
    return _compiled(function)


def loop(function: Callable[..., Any]) -> Any:
    """A kernel that goes through proposals and keeps no count of references to arrays.

    Numba counts them whenever an array is taken out of the tableau, which takes longer than all the
    rest of a proposal. Without that count a kernel must not create an array, nor call one that
    returns an array; views are allowed.
    """
    return _compiled(function, _nrt=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile ``function`` into each kernel that calls it.

    For what is called once per proposal: to hand over the sixteen arrays of a tableau takes longer
    than to use them. What holds for a `loop` holds for it.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    function.__qualname__ += f".{_DIGEST}"
    # ``_nrt`` is said to each, or else a kernel would have its caller's
    return njit(cache=True, nogil=True, error_model="numpy", **{"_nrt": True} | options)(function)
