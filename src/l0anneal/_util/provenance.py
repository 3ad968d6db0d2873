"""Where a result comes from: the version and commit of the package, its libraries, the machine."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["ENGINE", "provenance"]

#: Raise this when any solver may return other numbers for the same problem, arguments and seed. Stored
#: results of experiments are then not found, and are computed again on the same instances. The
#: reproduction has a number for each of its solvers (`reproduction.task.ENGINES`).
ENGINE = 4

_LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn")


@cache
def provenance() -> dict[str, str]:
    """Return version, commit, libraries and platform of this process, as texts.

    The commit is empty where the package does not run from a checkout, and ends with ``+changes``
    where files of the checkout differ from it.

    Examples
    --------
    >>> sorted(provenance())
    ['commit', 'libraries', 'platform', 'version']
    """
    libraries = [f"{name} {_version(name)}" for name in _LIBRARIES]
    return {
        "version": _version("l0anneal"),
        "commit": _commit(),
        "libraries": ", ".join([f"Python {platform.python_version()}", *libraries]),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _commit() -> str:
    package = Path(__file__).resolve().parent.parent
    top = _git(package, "rev-parse", "--show-toplevel")
    # a package that is installed inside a checkout of something else has no commit of its own
    if not top or Path(top) / "src" / package.name != package:
        return ""
    changed = _git(package, "status", "--porcelain", "--untracked-files=no", "--", str(package))
    return _git(package, "rev-parse", "--short=12", "HEAD") + ("+changes" if changed else "")


def _git(where: Path, *words: str) -> str:
    """Return what git prints; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(where), *words],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
