"""A sweep: solvers on random instances over a grid, as tasks that are stored and gathered."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from l0anneal._util.checks import check_integer
from l0anneal._util.provenance import ENGINE
from l0anneal.problem import ensembles
from l0anneal.sweeps.backends import workers
from l0anneal.sweeps.functions import AnyFunction, Function, import_name, named
from l0anneal.sweeps.gather import coordinate, dataset_of
from l0anneal.sweeps.grid import checked_grid, points, shares
from l0anneal.sweeps.samplers import SAMPLERS, Sampler, sampler_of
from l0anneal.sweeps.task import SweepTask, prepare, run_task
from l0anneal.tasks.collect import Collected, Failure, collect
from l0anneal.tasks.store import Store, joint_origin
from l0anneal.tasks.task import canonical_json

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Sweep"]

_ENSEMBLES: dict[str, Callable[..., Any]] = {
    "noise_only": ensembles.noise_only,
    "planted": ensembles.planted,
    "seeded": ensembles.seeded,
}
_SHOWN = 3  # failures that a warning shows in full
Place = str | PathLike[str] | Store


class Sweep:
    """Solvers on random instances, at every point of a grid and with many instances at each.

    Parameters
    ----------
    instance : str or callable
        What draws an instance: the name of a function in `l0anneal.ensembles`, or a function of your
        own with an argument ``random_state``, an integer.
    solver : str, callable or mapping
        What solves it: "anneal", "kick_search", "temper", "population_anneal", "evidence_anneal",
        "solve", or a function of your own, which is called with the instance and, if it has an argument
        of this name, ``random_state``. Several solvers are a mapping of labels to solvers, or to pairs
        (solver, arguments).
    grid : mapping of str to list or value
        The parameters. One with a list of values is a dimension of the grid; one with a single value is
        the same everywhere. Each parameter goes to those of ``instance`` and the solvers that have an
        argument of this name.
    n_samples : int
        The number of instances at each point.
    measure : callable, optional
        A function of the instance and of what the solver returned, which returns a mapping of names to
        numbers or arrays. By default, the mapping that the solver itself returned or, for the samplers
        of l0anneal, ``distortion`` and ``size`` and, where the instance has a ``truth``, ``mse``,
        ``n_planted`` and ``n_found``.
    random_state : int
        The seed of the whole sweep.
    revision : int
        Raise it when you have changed a function: results of the earlier one are then not used, and the
        instances keep their seeds.

    See Also
    --------
    ensembles.planted : Draw a random problem with a known answer.
    baselines.omp : A solver to compare with.
    theory.ReplicaSymmetric : What theory predicts.

    Notes
    -----
    The random numbers of an instance depend on the function, the parameters that it takes, its number
    and ``random_state``. All solvers run on the same instances, so that their results can be compared
    in pairs. Results have the same bits for any number and kind of workers, any order, any shares, and
    after any restart, on one kind of CPU and one set of library versions.

    A function is known by the names of its module and of itself, a function of a script by the name of
    the script. Functions that cannot be imported, such as those of a notebook, need `Sweep.named`.

    The samplers of l0anneal get ``instance.problem``, or the instance if it is a `SparseProblem`. With
    them, ``rho`` may stand for n_nonzero = round(ρ N) (`evidence_anneal` has a ``rho`` of its own), a
    schedule is a mapping such as ``{"kind": "paper", "tau": 5}``, and `anneal` takes ``tau`` directly.

    Examples
    --------
    >>> import tempfile
    >>> from l0anneal import Sweep
    >>> grid = {"n_columns": [20, 40], "alpha": 0.5, "rho": 0.2}
    >>> sweep = Sweep("noise_only", "kick_search", {**grid, "n_kicks": 5}, n_samples=3)
    >>> with tempfile.TemporaryDirectory() as store:
    ...     done = sweep.run(store)
    ...     data = sweep.gather(store)
    >>> done.n_run, dict(data.sizes)
    (6, {'n_columns': 2, 'sample': 3})
    >>> data["size"].mean("sample").values
    array([4., 8.])
    """

    def __init__(
        self,
        instance: str | Callable[..., Any],
        solver: str | Callable[..., Any] | Mapping[str, Any],
        grid: Mapping[str, Any],
        *,
        n_samples: int,
        measure: Callable[..., Any] | None = None,
        random_state: int = 0,
        revision: int = 0,
    ) -> None:
        self.instance = _instance_of(instance)
        self.solvers = _solvers_of(solver)
        self.grid = checked_grid(grid)
        self.n_samples = check_integer("n_samples", n_samples, 1)
        self.measure = None if measure is None else _function(measure, "measure", 2)
        self.random_state = check_integer("random_state", random_state, 0)
        self.revision = check_integer("revision", revision, 0)
        self._drawn, self._solved = shares(self.grid, self.instance, self.solvers)
        self.instance.check(dict.fromkeys(self._drawn), "instance")
        for function, own in self.solvers.values():
            function.check({**dict.fromkeys(self._solved), **own}, "solver")

    @staticmethod
    def named(name: str) -> Callable[[AnyFunction], AnyFunction]:
        """Give a function a name in tasks, as a decorator.

        A function that other processes cannot import, such as one of a notebook or a lambda, has no
        name of its own. Its code is sent to the workers. Change the name when you change the function,
        or raise ``revision``.

        Parameters
        ----------
        name : str
            The name, which is to belong to this function alone.

        Examples
        --------
        >>> from l0anneal import Sweep
        >>> zero = Sweep.named("zero")(lambda instance: {"answer": 0})
        >>> Sweep("noise_only", zero, {"n_columns": 20, "alpha": 0.5}, n_samples=2)
        Sweep(named zero on noise_only: 2 tasks)
        """
        return named(name)

    def __len__(self) -> int:
        """Return the number of tasks."""
        lengths = [len(values) for values in self.grid.values() if isinstance(values, list)]
        return int(np.prod([len(self.solvers), *lengths, self.n_samples]))

    def tasks(self) -> list[SweepTask]:
        """Return all tasks: for each solver, each point of the grid and each sample."""
        return [task for _, task in self._placed()]

    def missing(self, store: Place) -> list[SweepTask]:
        """Return the tasks that ``store``, a folder, does not have yet."""
        return _store_of(store).missing(self.tasks())

    def run(
        self,
        store: Place,
        *,
        n_jobs: int | None = None,
        backend: Any = None,
        shard: tuple[int, int] = (1, 1),
        progress: bool = False,
    ) -> Collected:
        """Run the tasks that the store does not have, and store their results.

        Parameters
        ----------
        store : path
            A folder with one file for each finished task. Several sweeps, and several processes, may
            use the same one.
        n_jobs : int, optional
            The number of workers; −1 for all cores. A Dask cluster knows its own number.
        backend : {"threads", "processes"} or dask.distributed.Client, optional
            The kind of workers. By default, that of `joblib.parallel_config`, or else processes.
        shard : (i, n)
            Run only share i of n, with i from 1, for jobs that run independently.
        progress : bool
            Show a progress bar that counts tasks.

        Returns
        -------
        Collected
            How many tasks were run (``n_run``) and had been finished before (``n_skipped``), and the
            ``failures``.

        Warns
        -----
        RuntimeWarning
            At the end, if tasks raised exceptions, with these and the parameters. All other tasks are
            finished, and a further run tries the failed ones again.

        Notes
        -----
        Ctrl-C raises KeyboardInterrupt. Finished tasks stay in the store, and the same call continues.
        """
        tasks = self.tasks()
        with workers(backend):
            done = collect(
                tasks,
                _store_of(store),
                run_task,
                prepare=lambda: prepare(tasks),
                n_jobs=n_jobs,
                shard=shard,
                progress=progress,
            )
        if done.failures:
            warnings.warn(_report(done.failures), RuntimeWarning, stacklevel=2)
        return done

    def gather(
        self, store: Place, *, dims: Mapping[str, Sequence[str]] | None = None
    ) -> xr.Dataset:
        """Read the finished tasks into a dataset.

        Parameters
        ----------
        store : path
            The folder that was given to `run`.
        dims : mapping of str to sequence of str, optional
            Names for the dimensions of results that are arrays, such as ``{"energy": ["step"]}``. By
            default, ``energy_0`` and so on.

        Returns
        -------
        xarray.Dataset
            Its dimensions are ``solver`` if several were given by labels, the parameters with a list of
            values, and ``sample``. Numbers are in double precision; NaN stands for tasks that are not
            finished, and fills up arrays that are shorter than others. ``seconds`` are the processor
            seconds of the solver; threads of one process count each other's. The attributes hold all
            parameters, the functions, the seed, and version, libraries and dates of the results.
        """
        where = _store_of(store)
        records = [(index, where.read(task)) for index, task in self._placed() if task in where]
        if not records:
            raise ValueError(
                f"{where.directory} has no result of this sweep; run it first, with the same functions, "
                "random_state and revision"
            )
        coords = {name: coordinate(values) for name, values in self.grid.items()}
        labels = {} if None in self.solvers else {"solver": coordinate(list(self.solvers))}
        coords = {**labels, **coords, "sample": np.arange(self.n_samples)}
        data = dataset_of(records, coords, dims or {})
        data.attrs = {**self._parameters(), "n_finished": len(records), "n_tasks": len(self)}
        data.attrs |= joint_origin(record.origin for _, record in records)
        return data

    def _placed(self) -> Iterator[tuple[tuple[int, ...], SweepTask]]:
        """Yield every task with its index in the dataset."""
        for number, (label, (solver, own)) in enumerate(self.solvers.items()):
            first = () if label is None else (number,)
            for index, point in points(self.grid):
                drawn_with = {name: point[name] for name in self._drawn}
                solved_with = {**{name: point[name] for name in self._solved}, **own}
                for sample in range(self.n_samples):
                    yield (
                        (*first, *index, sample),
                        SweepTask(
                            self.instance,
                            drawn_with,
                            solver,
                            solved_with,
                            self.measure,
                            sample,
                            self.random_state,
                            self.revision,
                        ),
                    )

    def _parameters(self) -> dict[str, Any]:
        """Return what the sweep was made of, as numbers and texts that a netCDF file can hold."""
        solvers = [
            {"label": label, "function": function.name, "arguments": own}
            for label, (function, own) in self.solvers.items()
        ]
        return {
            "instance": self.instance.name,
            "solvers": canonical_json(solvers),
            "measure": "" if self.measure is None else self.measure.name,
            "grid": canonical_json(self.grid),
            "n_samples": self.n_samples,
            "random_state": self.random_state,
            "revision": self.revision,
            "engine": ENGINE,
        }

    def __repr__(self) -> str:
        solvers = ", ".join(
            str(label or function.name.removeprefix("l0anneal."))
            for label, (function, _) in self.solvers.items()
        )
        instance = self.instance.name.removeprefix("l0anneal.ensembles.")
        return f"Sweep({solvers} on {instance}: {len(self)} tasks)"


def _instance_of(instance: Any) -> Function:
    for name, function in _ENSEMBLES.items():
        if instance is function or (isinstance(instance, str) and instance == name):
            return Function(f"l0anneal.ensembles.{name}", function)
    found = _function(instance, "instance", 0, tuple(_ENSEMBLES))
    if "random_state" not in found.arguments and not found.takes_any:
        raise ValueError(
            f"the instance {found.name} has no argument random_state; add one, and draw all random "
            "numbers from numpy.random.default_rng(random_state)"
        )
    return found


def _solvers_of(solver: Any) -> dict[str | None, tuple[Function, dict[str, Any]]]:
    """Return solvers and their arguments by label; None is the label of a single solver."""
    if not isinstance(solver, Mapping):
        return {None: (_solver_of(solver), {})}
    if not solver or not all(isinstance(label, str) for label in solver):
        raise ValueError(f"solver must have texts as its labels, at least one; got {list(solver)}")
    found: dict[str | None, tuple[Function, dict[str, Any]]] = {}
    for label, given in solver.items():
        function, own = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
        if not isinstance(own, Mapping):
            raise ValueError(
                f"the arguments of the solver {label!r} must be a mapping; got {own!r}"
            )
        found[label] = (_solver_of(function), checked_grid({"arguments": dict(own)})["arguments"])
    return found


def _solver_of(solver: Any) -> Function:
    sampler: Sampler | None = sampler_of(solver)
    return sampler or _function(solver, "solver", 1, tuple(SAMPLERS))


def _function(function: Any, what: str, n_given: int, known: Sequence[str] = ()) -> Function:
    if callable(function):
        return Function(import_name(function), function, n_given)
    names = f"one of {', '.join(known)}, or " if known else ""
    raise ValueError(f"{what} must be {names}a function; got {function!r}")


def _store_of(store: Place) -> Store:
    return store if isinstance(store, Store) else Store(store)


def _report(failures: list[Failure]) -> str:
    """Return how many tasks failed, and the first of them with their parameters."""
    n = len(failures)
    lines = [f"{n} task{'s' * (n > 1)} failed; the results of all others are stored"]
    lines += [f"  {failure}" for failure in failures[:_SHOWN]]
    if n > _SHOWN:
        lines.append(f"  and {n - _SHOWN} more, which are in the failures of the returned object")
    return "\n".join(lines)
