"""Verdicts on runs of known truth, as in ``benchmarks/diagnosis.py``."""

import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))  # where it finds the modules that benchmarks share
BENCHMARK = runpy.run_path(str(BENCHMARKS / "diagnosis.py"))


def wrong(rows, mode):
    """How many verdicts give false comfort, how many are "exact" or "agreed", and the same of alarms."""
    marks = [BENCHMARK["is_wrong"](family, solved, said[mode]) for family, _, solved, said in rows]
    comforts = sum(said[mode] in ("exact", "agreed") for *_, said in rows)
    return (
        (sum(comfort for comfort, _ in marks), comforts),
        (sum(alarm for _, alarm in marks), sum(solved for _, _, solved, _ in rows)),
    )


def test_a_verdict_can_be_wrong():
    is_wrong = BENCHMARK["is_wrong"]
    assert is_wrong("hard", False, "agreed") == (True, False)
    assert is_wrong("noise", True, "exact") == (True, False)
    assert is_wrong("easy", True, "trapped") == (False, True)
    assert is_wrong("easy", True, "exact") == (False, False)
    assert is_wrong("hard", False, "trapped") == (False, False)


@pytest.mark.slow
def test_a_few_verdicts_are_right():
    families = [f for f in BENCHMARK["FAMILIES"] if f.__name__ in ("correlated", "offset", "easy")]
    attempts = ("anneal, 40 sweeps", "50 kicks")
    rows = list(BENCHMARK["runs"](families, range(2), attempts))
    assert len(rows) == 12
    for mode in (0, 1):
        (comfort, n_comforts), (alarm, n_solved) = wrong(rows, mode)
        assert comfort == 0
        assert n_comforts >= 6
        assert alarm <= 1
        assert n_solved >= 8


@pytest.mark.slow
def test_verdicts_are_right():
    """Below 2 % of false comfort and 10 % of false alarms, in 264 runs."""
    rows = list(BENCHMARK["runs"](BENCHMARK["FAMILIES"], range(4)))
    assert len(rows) == 264
    for mode in (0, 1):
        (comfort, n_comforts), (alarm, n_solved) = wrong(rows, mode)
        assert comfort < 0.02 * n_comforts
        assert alarm < 0.1 * n_solved
