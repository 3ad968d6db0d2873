"""Run a task: draw the instance that its ensemble names, and run the solver that it names."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal import baselines, ensembles
from l0anneal.engine.warm_up import warm_up
from l0anneal.problem.ensembles import Instance
from l0anneal.reproduction.beyond import (
    enumerated,
    evidenced,
    get_ready,
    kicked,
    populated,
    tempered,
)
from l0anneal.reproduction.heating import heat
from l0anneal.reproduction.task import Task
from l0anneal.samplers.annealing.anneal import anneal
from l0anneal.samplers.described import schedule_from

__all__ = ["instance_of", "run"]

Arrays = dict[str, NDArray[np.generic]]

_ENSEMBLES: dict[str, Callable[..., Instance]] = {
    "planted": ensembles.planted,
    "noise_only": ensembles.noise_only,
    "seeded": ensembles.seeded,
}


def run(task: Task) -> tuple[Arrays, float]:
    """Run a task; return its arrays and the processor seconds that its solver took.

    Processor time is measured instead of wall-clock time because workers share their cores with
    other programs. Threads of one process count each other's time, so measure times with processes.

    Where the ensemble plants a signal, the arrays include ``n_planted``, the size of its support.

    Examples
    --------
    >>> ensemble = {"kind": "noise_only", "n_columns": 40, "alpha": 0.5}
    >>> arrays, seconds = run(Task(ensemble, {"kind": "omp", "rho": 0.2}, 0))
    >>> sorted(arrays)
    ['distortion', 'mse']
    """
    solve = _known(_SOLVERS, task.solver["kind"], "solver")
    instance = instance_of(task)
    _get_ready(task.solver["kind"])
    began = time.process_time()
    arrays = _call(solve, _arguments(task.solver), instance=instance, seed=task.seed)
    seconds = time.process_time() - began
    if "rho_hat" in task.ensemble:
        arrays["n_planted"] = np.array(instance.support.size)
    return arrays, seconds


def instance_of(task: Task) -> Instance:
    """Draw the instance of a task."""
    draw = _known(_ENSEMBLES, task.ensemble["kind"], "ensemble")
    return _call(draw, _arguments(task.ensemble), random_state=task.instance_seed)


def _get_ready(kind: str) -> None:
    """Compile and import what a solver needs on its first call, to keep this out of its time."""
    warm_up()
    get_ready(kind)
    if kind in ("omp", "l1", "basis_pursuit"):
        import scipy.optimize  # noqa: F401
        import sklearn.linear_model  # noqa: F401


def _known(table: Mapping[str, Any], kind: str, what: str) -> Any:
    if kind not in table:
        raise ValueError(f"the {what} {kind!r} is not known; use one of {', '.join(table)}")
    return table[kind]


def _arguments(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "kind"}


def _call(function: Callable[..., Any], arguments: dict[str, Any], **others: Any) -> Any:
    """Call a function with a task's arguments; name the ones that it does not have."""
    wanted = set(inspect.signature(function).parameters)
    if unknown := set(arguments) - wanted:
        raise ValueError(f"{function.__name__} has no argument {', '.join(sorted(unknown))}")
    return function(**arguments, **others)


def _anneal(
    instance: Instance, seed: int, rho: float, schedule: Mapping[str, Any], polish: bool = False
) -> Arrays:
    """Anneal as in the paper; return distortion, MSE and free entropy at every temperature."""
    k = instance.size(rho)
    result = anneal(
        instance.problem,
        k,
        schedule_from({"kind": "paper", **schedule}, instance.problem, k),
        polish=polish,
        observables={"mse": instance.mse},
        random_state=seed,
    )
    names = ("distortion", "mse", "acceptance", "free_entropy")
    return {
        "mu": np.array(result.schedule.mu),
        **{name: result.trajectory[name].to_numpy() for name in names},
        "final_distortion": np.array(result.distortion),
        "final_mse": np.array(instance.mse(result.coef)),
        "final_mse_by_eighth": _by_eighth((instance.truth - result.coef) ** 2),
    }


def _by_eighth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average over eight equal stretches of the columns, to see where in a dictionary errors are."""
    return np.array([part.mean() for part in np.array_split(values, 8)])


def _heat(
    instance: Instance, seed: int, rho: float, mu_max: float, mu_min: float, n: int, tau: int
) -> Arrays:
    """Heat from the planted support and return the planted branch."""
    heated = heat(
        instance, instance.size(rho), np.geomspace(mu_max, mu_min, n), tau, random_state=seed
    )
    names = ("mu", "distortion", "mse", "acceptance", "free_entropy")
    return {name: getattr(heated, name) for name in names}


def _measured(instance: Instance, coef: NDArray[np.float64]) -> Arrays:
    residual = instance.y - instance.A @ coef
    return {
        "distortion": np.array(0.5 * float(residual @ residual) / instance.y.size),
        "mse": np.array(instance.mse(coef)),
    }


def _omp(instance: Instance, seed: int, rho: float) -> Arrays:
    """Run orthogonal matching pursuit."""
    return _measured(instance, baselines.omp(instance.problem, instance.size(rho)))


def _l1(instance: Instance, seed: int, rho: float) -> Arrays:
    """Follow the l1 path to k non-zeros; measure it also after least squares on its support."""
    coef = baselines.l1(instance.problem, instance.size(rho))
    refit = _measured(instance, baselines.refit(instance.problem, coef))
    return _measured(instance, coef) | {f"refit_{name}": value for name, value in refit.items()}


def _basis_pursuit(instance: Instance, seed: int) -> Arrays:
    """Minimise the l1 norm among all x with Ax = y."""
    return _measured(instance, baselines.basis_pursuit(instance.problem))


_SOLVERS: dict[str, Callable[..., Arrays]] = {
    "anneal": _anneal,
    "heat": _heat,
    "omp": _omp,
    "l1": _l1,
    "basis_pursuit": _basis_pursuit,
    "temper": tempered,
    "kicks": kicked,
    "evidence": evidenced,
    "population": populated,
    "enumerate": enumerated,
}
