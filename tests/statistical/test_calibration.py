import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import calibration


@pytest.mark.slow
def test_probabilities_of_columns_are_probabilities():
    """200 signals from the law that the sampler supposes; one joint test over all bins."""
    _, freedom, chance = calibration.joint_test(calibration.by_bin(*calibration.collect(200)))
    assert freedom >= 6
    assert chance > 0.01
