import runpy
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "calibration.py"


@pytest.mark.slow
def test_probabilities_of_columns_are_probabilities():
    """200 signals from the law that the sampler supposes; one joint test over all bins."""
    benchmark = runpy.run_path(str(BENCHMARK))
    sums = benchmark["by_bin"](*benchmark["collect"](200))
    _, freedom, chance = benchmark["joint_test"](sums)
    assert freedom >= 6
    assert chance > 0.01
