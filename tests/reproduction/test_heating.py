import math
from itertools import combinations

import numpy as np
import pytest

from l0anneal import ensembles
from l0anneal._util.counts import log_choose
from l0anneal.reproduction.heating import heat
from l0anneal.theory import ReplicaSymmetric


def test_the_planted_branch_follows_theory():
    """Compare the mean of 40 small instances below T_c, which cooling never reaches."""
    theory = ReplicaSymmetric(0.75, 0.65, 0.5)
    mu = np.geomspace(1e6, 1e4, 8)
    runs = [
        heat(
            ensembles.planted(120, 0.75, 0.5, support="fixed", random_state=i),
            78,
            mu,
            10,
            random_state=i,
        )
        for i in range(40)
    ]
    for name in ("distortion", "mse", "free_entropy"):
        values = np.array([getattr(run, name)[-1] for run in runs])
        error = values.std() / math.sqrt(len(runs) - 1)
        expected = getattr(theory.at(1e-4, "planted"), name)
        if name == "free_entropy":  # with the number of supports at its limit of large N
            p = 0.15 / 0.5
            limit = -0.5 * (p * math.log(p) + (1 - p) * math.log(1 - p))
            values = values + limit - log_choose(60, 18) / 120
        assert abs(values.mean() - expected) < 4 * error + 0.02 * abs(expected), name


def test_the_free_entropy_is_that_of_enumeration():
    """Compare with the sum over all supports, at temperatures where the planted state dominates."""
    instance = ensembles.planted(14, 0.75, 0.25, support="fixed", random_state=3)
    k = 6
    energies = np.array([instance.problem.energy(c) for c in combinations(range(14), k)])
    mu = np.geomspace(1e8, 30.0, 90)
    found = np.mean(
        [heat(instance, k, mu, 40, random_state=i).free_entropy for i in range(6)], axis=0
    )
    for at in (40, -1):
        exact = math.log(np.sum(np.exp(-mu[at] * energies))) / 14
        assert found[at] == pytest.approx(exact, abs=0.01)


def test_the_same_seed_gives_the_same_result():
    instance = ensembles.planted(40, 0.8, 0.2, random_state=0)
    a, b = (heat(instance, 14, [1e5, 1e2], 3, random_state=5) for _ in range(2))
    assert a.distortion.tobytes() == b.distortion.tobytes()
    assert heat(instance, 14, [1e5, 1e2], 3, random_state=6).mse[1] != a.mse[1]


@pytest.mark.parametrize(
    ("k", "mu", "tau", "words"),
    [
        (12, [1.0, 2.0], 5, "descend"),
        (12, [1.0, -2.0], 5, "positive"),
        (12, [], 5, "positive"),
        (12, [1.0], 0, "tau"),
        (2, [1.0], 5, "at least 8"),
    ],
)
def test_wrong_arguments_are_refused(k, mu, tau, words):
    instance = ensembles.planted(40, 0.8, 0.2, support="fixed", random_state=0)
    with pytest.raises(ValueError, match=words):
        heat(instance, k, mu, tau)
