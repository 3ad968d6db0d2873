"""The temperatures between which a problem's supports freeze, found from the problem itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal.engine.warm_up import warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["automatic_temperatures", "temperature_range"]


def temperature_range(
    problem: SparseProblem, k: int, pause: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    """Return the inverse temperatures of the hot and the cold end of `Schedule.automatic`.

    Both are in units of the engine, whose signal has unit norm; divide by ``problem.unit_energy``
    for the caller's. ``pause`` is called from time to time and may raise an exception to stop the
    computation.
    """
    warm_up()
    with one_blas_thread():
        hot, cold = _energy_scales(problem, k, pause)
    return 0.5 / hot, 20.0 / cold


def automatic_temperatures(
    problem: SparseProblem,
    k: int,
    n: int = 100,
    pause: Callable[[], object] = lambda: None,
) -> NDArray[np.float64]:
    """Return the inverse temperatures of `Schedule.automatic`, in the caller's units."""
    hot, cold = temperature_range(problem, k, pause)
    lead_in = np.linspace(0.0, hot, n // 10, endpoint=False)
    mu = np.concatenate((lead_in, np.geomspace(hot, cold, n - lead_in.size)))
    return mu / problem.unit_energy


def _energy_scales(
    problem: SparseProblem, k: int, pause: Callable[[], object]
) -> tuple[float, float]:
    """Return a typical cost of exchanges on a random support, and a low one at a local minimum.

    The random support has a fixed seed of its own, so that the schedule depends on the problem alone.
    """
    n = problem.n_columns
    if not 0 < k < n:
        return 1.0, 1.0
    workspace = Workspace(problem, k)
    workspace.pause = pause
    workspace.fill(k, np.random.default_rng(0).permutation(n))
    random_costs = np.abs(workspace.exchange_costs())
    hot = float(np.sum(random_costs)) / max(1, random_costs.size)
    workspace = Workspace(problem, k)
    workspace.pause = pause
    workspace.fill_greedily(k)
    workspace.descend()
    costs = workspace.exchange_costs()
    costs = costs[costs > 1e-12]
    if not hot > 1e-12 or costs.size == 0:
        return 1.0, 1.0
    return hot, min(hot, float(np.quantile(costs, 1e-3)))
