"""Fine-mapping of many loci: each is a small problem, and they are independent.

Each locus is a task (`l0anneal.tasks`): its content is its name, the hash of its data, and the options.
A finished locus is one file in a store, so that a run can be interrupted and continued, split into
shares, and spread over a cluster, always with the same result. The random numbers of a locus come from
the seed of the run and the name of the locus.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal._util.checks import check_positive
from l0anneal._util.seeds import RandomState, seed_of, stream_of
from l0anneal.finemapping.locus import Locus, digest_of_files, find_loci, name_of
from l0anneal.finemapping.tables import COLUMNS, LOCI, column_rows, locus_row, write_table
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.problem.summary_check import compare
from l0anneal.samplers.evidence.anneal import evidence_anneal
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.tasks.collect import Collected, Failure, collect
from l0anneal.tasks.store import Store
from l0anneal.tasks.task import StoredTask

__all__ = ["FineMapping", "LocusTask", "compile_kernels", "finemap", "locus_tasks", "run_locus"]

# Arguments of `evidence_anneal` that are not for users of `finemap`: a result must depend on the
# data and the seed alone, and each locus runs in one thread.
_RESERVED = {
    "problem",
    "time_limit",
    "schedule",
    "n_jobs",
    "random_state",
    "progress",
    "on_interrupt",
}
Source = Locus | str | PathLike[str]


@dataclass(frozen=True, eq=False)
class LocusTask(StoredTask):
    """The fine-mapping of one locus, which is read from ``source`` on the worker."""

    name: str
    data: str
    options: Mapping[str, Any]
    source: Locus | Path = field(repr=False)

    format = "l0anneal.LocusTask/1"

    def __post_init__(self) -> None:
        _ = self.id  # options that have no JSON must fail here, not on a worker

    def content(self) -> dict[str, Any]:
        """Return the name, the hash of the data, and the options."""
        return {"name": self.name, "data": self.data, "options": self.options}


@dataclass(frozen=True, eq=False)
class FineMapping:
    """The result of `finemap`.

    Attributes
    ----------
    n_run, n_skipped : int
        How many loci this call mapped, and how many were finished before.
    failures : list of Failure
        Loci that could not be mapped, with the reason.
    missing : list of str
        Names of the loci that are not finished: failed ones, and those of other shares.

    See Also
    --------
    finemap : Map loci.
    CredibleSet : Columns of which at least one belongs.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import Locus, finemap
    >>> R = 0.8 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    >>> found = finemap([Locus("a", R, 1000, z=9.0 * R[2])])
    >>> found.n_run, found.failures, found.missing
    (1, [], [])
    """

    tasks: list[LocusTask] = field(repr=False)
    store: Store
    collected: Collected = field(repr=False)

    @property
    def n_run(self) -> int:
        """How many loci this call mapped."""
        return self.collected.n_run

    @property
    def n_skipped(self) -> int:
        """How many loci were finished before."""
        return self.collected.n_skipped

    @property
    def failures(self) -> list[Failure]:
        """Loci that could not be mapped, with the reason."""
        return self.collected.failures

    @property
    def missing(self) -> list[str]:
        """Names of the loci that are not finished."""
        return [task.name for task in self.store.missing(self.tasks)]

    def columns(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each column of each finished locus, in the order of the loci.

        ``set`` is the number of the column's credible set in its locus, from 1, or None.
        ``pandas.DataFrame(result.columns())`` makes a table.
        """
        for task in self._finished():
            yield from column_rows(task.name, self.store.read(task))

    def loci(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each locus: how its run ended, its sets, and columns that do not fit R.

        A locus that failed has the reason as its ``note`` and nothing else.
        """
        errors = {failure.task.id: failure.error for failure in self.failures}
        for task in self.tasks:
            if task in self.store:
                yield locus_row(task.name, self.store.read(task))
            elif task.id in errors:
                note = " ".join(errors[task.id].split())
                yield dict.fromkeys(LOCI) | {"locus": task.name, "note": note}

    def write(self, directory: str | PathLike[str]) -> tuple[Path, Path]:
        """Write ``columns.tsv`` and ``loci.tsv`` into ``directory``, and return their paths."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        columns, loci = folder / "columns.tsv", folder / "loci.tsv"
        write_table(columns, COLUMNS, self.columns())
        write_table(loci, LOCI, self.loci())
        return columns, loci

    def __str__(self) -> str:
        n_sets = n_suspicious = n_unsure = 0
        for task in self._finished():
            row = locus_row(task.name, self.store.read(task))
            n_sets += row["n_sets"]
            n_suspicious += row["suspicious"] is not None or row["weight"] > 0
            n_unsure += row["state"] not in ("found", "noise") or row["note"] is not None
        lines = [
            ("loci", f"{len(self.tasks) - len(self.missing)} of {len(self.tasks)} finished"),
            ("sets", str(n_sets)),
        ]
        if n_suspicious:
            lines.append(("z against R", f"{n_suspicious} loci do not fit: see suspicious, weight"))
        if n_unsure:
            lines.append(("not sure", f"{n_unsure} loci: see their state and note"))
        if self.failures:
            lines.append(("failed", f"{len(self.failures)} loci: see their note"))
        return "\n".join(f"{name:<12} {text}" for name, text in lines)

    def _finished(self) -> Iterator[LocusTask]:
        return (task for task in self.tasks if task in self.store)


def finemap(
    loci: Source | Iterable[Source],
    *,
    n: int | None = None,
    coverage: float = 0.95,
    min_purity: float = 0.5,
    check: bool = True,
    store: str | PathLike[str] | None = None,
    n_jobs: int | None = None,
    shard: tuple[int, int] = (1, 1),
    random_state: RandomState = 0,
    progress: bool = False,
    **options: Any,
) -> FineMapping:
    """Find the columns that matter in each of many loci, with probabilities and credible sets.

    Parameters
    ----------
    loci : Locus, path, or iterable of these
        Loci in memory, files of loci, or directories of such files. `Locus.load` describes the files.
        Names must differ, because a locus is known by its name.
    n : int, optional
        The number of samples of loci that do not state it.
    coverage, min_purity : float
        As in `EvidenceResult.credible_sets`.
    check : bool
        Compare z with R in each locus, as `check_summary` does, and list what does not fit.
    store : path, optional
        Directory of finished loci. Loci that it has are not mapped again, unless their data or the
        options have changed. By default a temporary directory, which ends with the result.
    n_jobs : int, optional
        The number of workers; −1 for all cores. `joblib.parallel_config` chooses whether these are
        processes, threads, or workers of a Dask cluster, which must be able to read the files.
    shard : (i, n)
        Map only this share of the loci, with i from 1.
    random_state : int, SeedSequence or Generator
        Seed of all random numbers. Those of a locus depend on this seed and on its name alone, so
        that the result is the same for any number of workers, any shares, and after a restart.
    progress : bool
        Show a progress bar that counts loci.
    **options
        Further arguments of `evidence_anneal`, such as ``n_draws`` or ``rho``.

    Returns
    -------
    FineMapping
        Its ``write`` makes the tables. Loci that could not be mapped are its ``failures``.

    See Also
    --------
    Locus : The statistics of one locus.
    FineMapping : The result.
    check_summary : Check z-scores against correlations.
    evidence_anneal : The sampler.

    Notes
    -----
    Ctrl-C raises KeyboardInterrupt. Finished loci stay in the store, and the same call continues.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import Locus, finemap
    >>> R = 0.8 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    >>> loci = [Locus("a", R, 1000, z=9.0 * R[2]), Locus("b", R, 1000, z=0.5 * R[0])]
    >>> found = finemap(loci)
    >>> [(row["locus"], row["n_sets"]) for row in found.loci()]
    [('a', 1), ('b', 0)]
    >>> [row["column"] for row in found.columns() if row["set"] is not None]
    ['2']
    """
    tasks = locus_tasks(
        loci,
        n=n,
        coverage=coverage,
        min_purity=min_purity,
        check=check,
        random_state=random_state,
        **options,
    )
    if store is not None:
        where = Store(store)
        collected = _collect(tasks, where, n_jobs, shard, progress)
        return FineMapping(tasks, where, collected)
    where = Store(tempfile.mkdtemp(prefix="l0anneal-"))
    try:
        found = FineMapping(tasks, where, _collect(tasks, where, n_jobs, shard, progress))
    except BaseException:
        shutil.rmtree(where.directory, ignore_errors=True)
        raise
    weakref.finalize(found, shutil.rmtree, where.directory, ignore_errors=True)
    return found


def _collect(
    tasks: list[LocusTask],
    store: Store,
    n_jobs: int | None,
    shard: tuple[int, int],
    progress: bool,
) -> Collected:
    return collect(
        tasks,
        store,
        run_locus,
        prepare=compile_kernels,
        n_jobs=n_jobs,
        shard=shard,
        progress=progress,
        unit="locus",
    )


def locus_tasks(
    loci: Source | Iterable[Source],
    *,
    n: int | None,
    coverage: float,
    min_purity: float,
    check: bool,
    random_state: RandomState,
    **options: Any,
) -> list[LocusTask]:
    """Return the tasks of `finemap`, or raise ValueError for options that no locus can have."""
    for name, value in (("coverage", coverage), ("min_purity", min_purity)):
        if check_positive(name, value) > 1:
            raise ValueError(f"{name} must be at most 1; got {value}")
    known = set(inspect.signature(evidence_anneal).parameters) - _RESERVED
    if unknown := sorted(set(options) - known):
        raise ValueError(
            f"finemap has no option {', '.join(unknown)}; besides its own parameters, it takes "
            f"{', '.join(sorted(known))}"
        )
    content = {
        "n": n,
        "coverage": coverage,
        "min_purity": min_purity,
        "check": bool(check),
        "seed": str(seed_of(random_state)),  # as text, since it may exceed what JSON numbers hold
        "evidence": options,
    }
    sources = [loci] if isinstance(loci, (Locus, str, PathLike)) else list(loci)
    tasks: list[LocusTask] = []
    for source in sources:
        if isinstance(source, Locus):
            tasks.append(LocusTask(source.name, source.digest, content, source))
        else:
            tasks += [
                LocusTask(name_of(path), digest_of_files(path), content, path.absolute())
                for path in find_loci([source])
            ]
    if not tasks:
        raise ValueError("finemap needs at least one locus; got none: give loci, or their files")
    seen: set[str] = set()
    for task in tasks:
        if task.name in seen:
            raise ValueError(
                f"the names of loci must differ; {task.name!r} is given twice: rename one"
            )
        seen.add(task.name)
    return tasks


def run_locus(task: LocusTask) -> tuple[dict[str, NDArray[np.generic]], float]:
    """Map one locus; return its arrays and the processor seconds that it took."""
    began = time.process_time()
    options = task.options
    locus = task.source if isinstance(task.source, Locus) else Locus.load(task.source)
    summary = locus.read(options["n"])
    problem = SparseProblem.from_summary(
        locus.z,
        summary.R,
        summary.n,
        effect=locus.effect,
        standard_error=locus.standard_error,
        check=False,
    )
    fit = compare(summary.z, summary.R) if options["check"] else None
    result = evidence_anneal(
        problem,
        random_state=stream_of(int(options["seed"]), f"locus {task.name}"),
        **options["evidence"],
    )
    sizes = np.arange(result.size_posterior.size)
    arrays: dict[str, NDArray[np.generic]] = {
        "names": np.array(locus.column_names),
        "z": summary.scores,
        "probability": result.inclusion_probability,
        "n": np.array(summary.n),
        "state": np.array(result.state),
        "disagreement": np.array(float(result.disagreement)),
        "mean_size": np.array(float(sizes @ result.size_posterior)),
        "suspicious": np.zeros(0, dtype=np.int64) if fit is None else fit.suspicious,
        "weight": np.array(0.0 if fit is None else fit.weight),
        **_sets(result, options["coverage"], options["min_purity"]),
    }
    return arrays, time.process_time() - began


def _sets(
    result: EvidenceResult, coverage: float, min_purity: float
) -> dict[str, NDArray[np.generic]]:
    """Return the number of each column's set (0: none), and what is known about each set."""
    try:
        sets, note = result.credible_sets(coverage=coverage, min_purity=min_purity), ""
    except ValueError as error:  # the draws do not suffice for sets; the probabilities stand
        sets, note = [], " ".join(str(error).split())
    number = np.zeros(result.inclusion_probability.size, dtype=np.int64)
    for k, found in enumerate(sets, start=1):
        number[found.columns] = k
    return {
        "set": number,
        "set_probability": np.array([found.probability for found in sets]),
        "purity": np.array([found.purity for found in sets]),
        "note": np.array(note),
    }


@cache
def compile_kernels() -> None:
    """Compile the kernels of evidence annealing once, before workers start and load them."""
    rng = np.random.default_rng(0)
    problem = SparseProblem(rng.standard_normal((12, 16)), rng.standard_normal(12))
    evidence_anneal(problem, random_state=0)
