"""The decorator of all kernels: compiled once, cached, without the GIL."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

__all__ = ["kernel"]

_HERE = Path(__file__).parent
_SHARED = [*(_HERE / name for name in ("_kernel.py", "rng.py", "tableau.py", "pivots.py"))]
_SHARED += sorted((_HERE / "moves").glob("*.py"))

# Numba renews a cached kernel when its own file changes, but not when a kernel that it calls in
# another file does. The name of the cache file therefore carries a digest of the shared kernels.
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SHARED)).hexdigest()[:12]

# sums may be reordered for SIMD; NaN and infinity keep their meaning
_MATH = {"reassoc", "contract", "arcp", "nsz"}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call, or load it from the cache."""
    function.__qualname__ += f".{_DIGEST}"
    return njit(cache=True, nogil=True, fastmath=_MATH, error_model="numpy")(function)
