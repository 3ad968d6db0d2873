"""The choice of the cheapest kernel."""

import pytest

from l0anneal import Schedule, anneal, ensembles
from l0anneal.engine.kernel_choice import MOVES, choose_kernel, operations, pair_acceptance


def test_the_cheapest_kernel_is_chosen():
    """Hot chains do not update the outside columns, and frozen ones skip their rejections."""
    by_acceptance = [choose_kernel("auto", a, 80, 320) for a in (1.0, 0.1, 1e-2, 1e-6, 0.0)]
    assert by_acceptance[0] == "pair flip, direct"
    assert by_acceptance[-2:] == ["rejection free"] * 2
    for a in (1.0, 0.1, 1e-3, 0.0):
        costs = operations(a, 80, 320)
        assert costs[choose_kernel("auto", a, 80, 320)] == min(costs.values())
        assert choose_kernel("pair flip", a, 80, 320) in MOVES["pair flip"]
        assert choose_kernel("heat bath", a, 80, 320) == "heat bath"


@pytest.mark.parametrize("acceptance", [1.0, 0.1, 1e-3, 0.0])
def test_missing_rows_decide_between_kernels_of_one_chain_only(acceptance):
    whole = choose_kernel("auto", acceptance, 80, 320)
    missing = choose_kernel("auto", acceptance, 80, 320, row=1e9, cross=1e9)
    assert missing == whole or {missing, whole} == set(MOVES["pair flip"])


def test_missing_rows_count_in_the_choice_of_the_pair_flip():
    assert choose_kernel("pair flip", 0.5, 80, 320, row=1e9, cross=0.0) == "pair flip, direct"
    assert choose_kernel("pair flip", 0.5, 80, 320, row=0.0, cross=1e9) == "pair flip"


def test_the_acceptance_of_the_pair_flip_is_estimated_from_that_of_the_heat_bath():
    assert pair_acceptance("heat bath", 0.5, 10) == pytest.approx(0.1)
    assert pair_acceptance("heat bath", 1.0, 10) == 1.0
    assert pair_acceptance("rejection free", 0.3, 10) == 0.3


def test_the_choice_follows_the_previous_temperature():
    problem = ensembles.noise_only(40, 0.6, random_state=0).problem
    schedule = Schedule.geometric(0.1, 1e3, n=30, tau=3)
    result = anneal(problem, 8, schedule, move="auto", random_state=0)
    kernels, acceptance = result.kernels[0], result.acceptance[0]
    last = 1.0
    for kernel, accepted in zip(kernels, acceptance):
        assert kernel == choose_kernel("auto", last, 8, 32)
        last = pair_acceptance(kernel, accepted, 8)
    assert kernels[-1] == "rejection free"
    assert len(set(kernels)) >= 3
