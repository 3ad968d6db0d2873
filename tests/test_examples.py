"""Every example runs in its quick mode and draws a picture."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
NEEDS = {
    "diabetes": ("pandas",),
    "dictionary_learning": ("scikit-image",),
    "ecg": ("PyWavelets",),
    "finemapping": ("msprime",),
    "genes": ("ISLP", "pandas"),
    "hitters": ("ISLP", "pandas"),
    "patches": ("scikit-image",),
}


def name_of(script):
    return script.stem.removeprefix("plot_")


def test_the_packages_of_every_example_are_listed():
    assert {name_of(script) for script in EXAMPLES} == set(NEEDS)


@pytest.mark.parametrize("script", EXAMPLES, ids=name_of)
def test_an_example_draws_a_picture(script, tmp_path):
    for package in NEEDS[name_of(script)]:
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"{package} is not installed, and the example uses its data")
    environment = {**os.environ, "L0ANNEAL_QUICK": "1", "MPLBACKEND": "agg"}
    run = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert run.returncode == 0, run.stderr
    assert [path.name for path in tmp_path.iterdir()] == [f"{name_of(script)}.png"]
    assert (tmp_path / f"{name_of(script)}.png").stat().st_size > 10_000
