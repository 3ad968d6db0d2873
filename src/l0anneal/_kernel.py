"""The decorator of all kernels: compiled once, cached, without the GIL.

No licence to reorder sums (``fastmath``): see `_dot`.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

__all__ = ["inlined", "kernel"]

_HERE = Path(__file__).parent
_SHARED = [
    *(_HERE / name for name in ("_kernel.py", "_dot.py", "rng.py", "tableau.py", "pivots.py"))
]
_SHARED += sorted((_HERE / "moves").glob("*.py"))

# Numba renews a cached kernel when its own file changes, but not when a kernel that it calls in
# another file does. The name of the cache file therefore carries a digest of the shared kernels.
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SHARED)).hexdigest()[:12]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call, or load it from the cache."""
    function.__qualname__ += f".{_DIGEST}"
    return njit(cache=True, nogil=True, error_model="numpy")(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile ``function`` into each kernel that calls it.

    For what is called once per proposal: to hand over the sixteen arrays of a tableau takes longer
    than to use them.
    """
    function.__qualname__ += f".{_DIGEST}"
    return njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)
