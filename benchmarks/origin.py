"""State what made the figures of a benchmark: versions, commit, date and machine."""

import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from l0anneal._util.provenance import provenance

PEERS = ("abess", "skglm", "spams", "sparse-approx-gsm", "statsmodels", "torch")


def print_origin():
    """Print it, with the peers that are installed."""
    origin = provenance()
    print(f"l0anneal {origin['version']}, commit {origin['commit'] or 'unknown'}, {date.today()}")
    print(f"{origin['libraries']}; {origin['platform']}, {_processor()}")
    peers = [f"{name} {found}" for name in PEERS if (found := _version(name))]
    if peers:
        print(", ".join(peers))


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor():
    """Return the name of the processor, where Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else platform.processor()
