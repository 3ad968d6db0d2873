"""After very many proposals the tableau's energy is still that of QR least squares."""

import numpy as np
import pytest
import scipy.fft

from l0anneal import Schedule, SparseProblem, anneal, ensembles
from l0anneal._blas import one_blas_thread
from l0anneal.moves import pair_flip
from l0anneal.moves.outcome import OUTSIDE, PROPOSED, SLOT
from l0anneal.pivots import swap
from l0anneal.rng import below, stream
from l0anneal.tableau import FAULT, drift
from l0anneal.workspace import Workspace
from tests.reference import qr_energy


def gaussian(rho):
    instance = ensembles.planted(200, 0.75, 0.5, random_state=0)
    return instance.A, instance.y, round(rho * 200)


def autoregressive():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((150, 200))
    for j in range(1, 200):
        A[:, j] = 0.99 * A[:, j - 1] + np.sqrt(1 - 0.99**2) * A[:, j]
    return A, A[:, ::20] @ rng.standard_normal(10) + 0.1 * rng.standard_normal(150), 40


def overcomplete_dct():
    """64 × 256, four times oversampled: neighbours are 90 % correlated."""
    rng = np.random.default_rng(0)
    A = scipy.fft.dct(np.eye(256), axis=0, norm="ortho")[:, :64].T
    return A, rng.standard_normal(64), 20


def badly_scaled():
    A, y, k = gaussian(0.3)
    return A * 10.0 ** np.random.default_rng(0).uniform(-6, 6, 200), y, k


DICTIONARIES = {
    "gaussian": lambda: gaussian(0.3),
    "gaussian, K/M = .87": lambda: gaussian(0.65),
    "gaussian, K/M = .98": lambda: gaussian(0.735),
    "AR(1) .99": autoregressive,
    "overcomplete DCT": overcomplete_dct,
    "badly scaled": badly_scaled,
}


def worst_error(A, y, k, mu, n_proposals, checks=40):
    """Largest |tableau − QR| of the energy along a chain, in units of ½‖y‖²."""
    problem = SparseProblem(A, y)
    workspace = Workspace(problem, k)
    workspace.fill(k, np.random.default_rng(1).permutation(problem.n_columns))
    state = stream(np.random.SeedSequence(1))
    tally = np.zeros(4, dtype=np.int64)
    tally[SLOT] = tally[OUTSIDE] = -1
    energies = np.zeros(n_proposals // problem.n_columns + 1)
    worst = 0.0
    with one_blas_thread():
        for check in range(1, checks + 1):
            stop = n_proposals * check // checks
            workspace.run(pair_flip, state, mu / (0.5 * (y @ y)) * (y @ y), stop, energies, tally)
            exact = qr_energy(A, y, workspace.support)
            worst = max(worst, abs(workspace.energy - exact) / (0.5 * (y @ y)))
    assert tally[PROPOSED] == n_proposals
    return worst, workspace


# μ in units of one over ½‖y‖²
@pytest.mark.parametrize("mu", [0.0, 30.0, 1e5], ids=["hot", "warm", "cold"])
@pytest.mark.parametrize("name", DICTIONARIES)
def test_energy_stays_true(name, mu):
    worst, _ = worst_error(*DICTIONARIES[name](), mu, 10**5)
    assert worst < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.0, 30.0, 1e5], ids=["hot", "warm", "cold"])
@pytest.mark.parametrize("name", DICTIONARIES)
def test_energy_stays_true_for_ten_million_proposals(name, mu):
    worst, workspace = worst_error(*DICTIONARIES[name](), mu, 10**7, checks=200)
    print(f"{name}, mu = {mu}: {worst:.1e}, {workspace.refreshes} refreshes")
    assert worst < 1e-9


@pytest.mark.parametrize("name", DICTIONARIES)
def test_the_result_is_exact(name):
    A, y, k = DICTIONARIES[name]()
    result = anneal(SparseProblem(A, y), k, Schedule.paper(tau=1), random_state=0)
    exact = qr_energy(A, y, result.support)
    assert result.energy == pytest.approx(exact, rel=1e-9, abs=1e-14 * 0.5 * (y @ y))


def test_without_refreshing_it_does_not_hold():
    """Control: the drift is real, so the tests above mean something."""
    A, y, k = DICTIONARIES["gaussian, K/M = .98"]()
    _, workspace = worst_error(A, y, k, 0.0, 10**4)
    t = workspace.tableau
    refreshed = drift(t)["regressions"]
    state = stream(np.random.SeedSequence(2))
    for _ in range(10**4):
        t.values[FAULT] = -np.inf  # no fault is ever too large
        swap(t, below(state, k), below(state, 200 - k))
    assert drift(t)["regressions"] > 100 * refreshed
