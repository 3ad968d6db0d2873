"""Measure the planted branch: start at the planted support and heat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.blas import one_blas_thread
from l0anneal._util.counts import log_choose
from l0anneal._util.seeds import RandomState, seed_of
from l0anneal.engine.moves import pair_flip
from l0anneal.engine.rng import stream
from l0anneal.engine.sweep import Sweeps
from l0anneal.engine.warm_up import warm_up
from l0anneal.engine.workspace import Workspace
from l0anneal.problem.ensembles import Instance

__all__ = ["Heated", "heat"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Heated:
    """Means over the sweeps at each inverse temperature, in the order from cold to hot."""

    mu: Floats
    distortion: Floats
    mse: Floats
    acceptance: Floats
    free_entropy: Floats


def heat(
    instance: Instance,
    n_nonzero: int,
    mu: ArrayLike,
    tau: int = 5,
    random_state: RandomState = None,
) -> Heated:
    """Follow the planted state of a noiseless instance from cold to hot.

    The chain starts at the planted support plus random columns up to ``n_nonzero``, and μ descends.
    Where a metastable state exists, cooling never reaches this branch.

    Parameters
    ----------
    instance : Instance
        An instance without noise, so that the planted support has energy zero.
    n_nonzero : int
        k, at least the size of the planted support.
    mu : array
        Inverse temperatures in descending order.
    tau : int
        Sweeps at each temperature; the energies of all sweeps are averaged.
    random_state : None, int, SeedSequence or Generator
        The seed; the same seed gives the same result.

    Notes
    -----
    The free entropy is integrated from the cold end, where the supports of energy zero are those
    that contain the planted one: log G(μ) = log C(N − K̂, k − K̂) + ∫_μ^∞ ⟨E⟩ dμ'. Beyond the
    coldest temperature the planted state has ⟨E⟩ ∝ μ^(−3/2), so the rest of the integral is
    2 μ⟨E⟩.

    Examples
    --------
    >>> from l0anneal import ensembles
    >>> instance = ensembles.planted(40, 0.8, 0.2, support="fixed", random_state=0)
    >>> heated = heat(instance, 12, [1e6, 1e3, 1.0], tau=2, random_state=0)
    >>> bool(heated.mse[0] < 1e-6 < heated.mse[-1])
    True
    """
    mus = np.asarray(mu, dtype=np.float64)
    if mus.ndim != 1 or mus.size == 0 or not np.all(np.isfinite(mus)) or mus.min() <= 0:
        raise ValueError("mu must be a non-empty sequence of positive finite numbers")
    if np.any(np.diff(mus) >= 0):
        raise ValueError("mu must descend, because heating lowers the inverse temperature")
    if tau < 1:
        raise ValueError(f"tau, the sweeps at each temperature, must be ≥ 1; got {tau}")
    problem, truth = instance.problem, instance.support
    n, k = problem.n_columns, problem.check_size(n_nonzero)
    if k < truth.size:
        raise ValueError(f"n_nonzero must be at least {truth.size}, the planted size; got {k}")
    order, flips = np.random.SeedSequence(seed_of(random_state)).spawn(2)
    others = np.setdiff1d(np.arange(n), truth)
    extra = np.random.default_rng(order).permutation(others)[: k - truth.size]
    state = stream(flips)
    warm_up()
    energy, mse, acceptance = (np.zeros(mus.size) for _ in range(3))
    with one_blas_thread():
        workspace = Workspace(problem, k)
        workspace.begin_at(np.sort(np.concatenate((truth, extra))))
        for a, mu_a in enumerate(mus):
            unit_mu = mu_a * problem.unit_energy
            sweeps = Sweeps(workspace, pair_flip, state, unit_mu, n_sweeps=tau)
            for _ in sweeps.each():
                mse[a] += instance.mse(workspace.coef) / tau
            energy[a] = workspace.to_energy(sweeps.energies.mean())
            acceptance[a] = sweeps.acceptance
    count = log_choose(n - truth.size, k - truth.size)
    return Heated(
        mu=mus,
        distortion=energy / problem.n_samples,
        mse=mse,
        acceptance=acceptance,
        free_entropy=(count + _integral_from_infinity(mus, energy)) / n,
    )


def _integral_from_infinity(mu: Floats, energy: Floats) -> Floats:
    """Integrate E dμ' from μ to ∞ by trapezoids in log μ, where the integrand μE is smooth."""
    integrand = mu * energy
    steps = 0.5 * (integrand[1:] + integrand[:-1]) * -np.diff(np.log(mu))
    return 2.0 * integrand[0] + np.concatenate(([0.0], np.cumsum(steps)))
