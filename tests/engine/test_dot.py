"""The inner product of the kernels, compared bit for bit with the same sum in plain Python."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from l0anneal.engine.dot import dot


@njit
def compiled(x, y):
    return dot(x, y)


def plain(x, y):
    """Add in 16 partial sums; what is left of a group of 16 is added in fours to the first four."""
    sums = np.zeros((4, 4))
    whole, fours = len(x) - len(x) % 16, len(x) - len(x) % 4
    for at in range(0, whole, 4):
        sums[at // 4 % 4] += x[at : at + 4] * y[at : at + 4]
    for at in range(whole, fours, 4):
        sums[0] += x[at : at + 4] * y[at : at + 4]
    a, b, c, d = (sums[0] + sums[1]) + (sums[2] + sums[3])
    total = (a + b) + (c + d)
    for at in range(fours, len(x)):
        total += x[at] * y[at]
    return total


@pytest.mark.parametrize("n", [*range(40), 63, 64, 80, 257, 1000])
def test_the_order_of_summation_is_the_documented_one(n):
    x, y = np.random.default_rng(n).normal(size=(2, n)) * 10.0 ** np.arange(2)[:, None]
    assert compiled(x, y) == plain(x, y)
    assert compiled(x, np.concatenate((y, [np.nan, 1.0]))) == plain(x, y)  # y may be longer


def test_arrays_of_another_type_or_layout_are_refused():
    from numba.core.errors import TypingError

    with pytest.raises(TypingError):
        compiled(np.ones(8)[::2], np.ones(4))
    with pytest.raises(TypingError):
        compiled(np.ones(4, dtype=np.float32), np.ones(4, dtype=np.float32))


PROGRAM = """
import hashlib
from l0anneal import Schedule, anneal, ensembles
instance = ensembles.planted(60, 0.75, 0.4, random_state=3)
digest = hashlib.sha256()
for move in ("pair flip", "heat bath", "multi flip", "rejection free"):
    result = anneal(instance.problem, 30, Schedule.paper(n=30), move=move, random_state=5)
    digest.update(result.trajectory["distortion"].to_numpy().tobytes() + result.coef.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_compiled_kernels_and_kernels_from_the_cache_give_the_same_bits(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    digests = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) > 60
