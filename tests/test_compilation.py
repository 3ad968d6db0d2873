"""The runs that compile the kernels for all workers of the tests work themselves."""

import pytest


@pytest.mark.parametrize("number", range(7))
def test_each_run_gives_a_result(compilations, number):
    assert len(compilations) == 7
    assert compilations[number]() is not None
