"""On data from the sampler's own prior, the probabilities of columns are right."""

import importlib
from pathlib import Path

import pytest

CERTAINTY = Path(__file__).parents[2] / "benchmarks" / "certainty"


@pytest.mark.slow
def test_probabilities_of_columns_are_probabilities(monkeypatch, tmp_path):
    """200 data sets in each of three shapes; one joint test over all bins in each."""
    monkeypatch.syspath_prepend(CERTAINTY)
    law = importlib.import_module("law")
    for _, n_bins, _, corrected in law.joint_tests(law.measure(tmp_path)).values():
        assert n_bins >= 3
        assert corrected > law.LEVEL
