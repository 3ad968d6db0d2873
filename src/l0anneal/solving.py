"""Solve a problem with the sampler that suits it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from joblib import effective_n_jobs

from l0anneal._util.advice import option
from l0anneal._util.seeds import RandomState
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.anneal import evidence_anneal
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.kicks.search import kick_search
from l0anneal.samplers.run import OnInterrupt

__all__ = ["solve", "warn_without_intercept"]

DEFAULT_SECONDS = 2.0


def solve(
    problem: SparseProblem,
    n_nonzero: int | None = None,
    *,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: OnInterrupt = "raise",
) -> KickResult | EvidenceResult:
    """Find the best columns for a signal, with a sampler and settings that suit the problem.

    An intercept is fitted if the problem has one (``SparseProblem(A, y, intercept=True)``, or
    `SparseProblem.from_table`). A warning says so if there is none and a constant would explain most
    of the signal.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary A and the signal y.
    n_nonzero : int, optional
        k, the number of columns. If it is not given, evidence annealing finds how many columns
        matter and how certain each of them is.
    time_limit : float, optional
        Wall-clock time of the whole call in seconds, not counting the compilation of kernels. If k
        is given, the run uses all of this time, 2 seconds by default, and finds better columns the
        longer it takes; it ends early only if the columns fit the signal exactly. If k is not
        given, the run ends as soon as the columns are found.
    n_jobs : int, optional
        The number of threads (−1: all cores). If k is given, each thread runs a chain of its own,
        so that here, unlike elsewhere in this package, the result depends on ``n_jobs``.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers; None draws a new one. To replay a run exactly, use `kick_search`
        with the result's ``seed``, ``n_kicks`` and as many chains if k was given, and
        `evidence_anneal` with the result's ``seed`` and ``schedule`` if not.
    progress : bool
        Show a progress bar.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the best columns found so far.

    Returns
    -------
    KickResult or EvidenceResult
        A `KickResult` if k was given, and an `EvidenceResult` if not. Both have ``support``,
        ``coef``, ``distortion``, ``summary()`` and ``plot()``, and can be passed to `diagnose`.

    See Also
    --------
    kick_search : The search that is used when k is given.
    evidence_anneal : The sampler that is used when k is not given.
    diagnose : Decide whether to trust the result.
    AnnealedSubsetRegressor : The same for scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem, solve
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 100))
    >>> y = A[:, [5, 50]] @ [2.0, -1.0] + 0.3 * rng.standard_normal(60)
    >>> solve(SparseProblem(A, y), random_state=0).support
    array([ 5, 50])
    >>> solve(SparseProblem(A, y), 2, time_limit=0.2, random_state=0).support
    array([ 5, 50])
    """
    warn_without_intercept(problem)
    if n_nonzero is None:
        return evidence_anneal(
            problem,
            groups=problem.groups or None,
            time_limit=time_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            progress=progress,
            on_interrupt=on_interrupt,
        )
    result = kick_search(
        problem,
        n_nonzero,
        n_chains=effective_n_jobs(n_jobs if n_jobs is not None else 1),
        n_jobs=n_jobs,
        time_limit=DEFAULT_SECONDS if time_limit is None else time_limit,
        random_state=random_state,
        progress=progress,
        on_interrupt=on_interrupt,
    )
    _warn_of_parts(problem, result.support)
    return result


def warn_without_intercept(problem: SparseProblem, stacklevel: int = 3) -> None:
    """Warn if a problem has no intercept although a constant would explain most of the signal."""
    share = problem.lacks_intercept()
    if share:
        warnings.warn(
            f"a constant explains {100 * min(share, 0.999):.3g} % of the signal's square, but no "
            "intercept is fitted, and other columns may be chosen to make up for it: give the problem "
            f"{option('intercept')} or, if there must be none, {option('intercept', False)}",
            stacklevel=stacklevel,
        )


def _warn_of_parts(problem: SparseProblem, support: Iterable[int]) -> None:
    """Warn of variables of which some dummies were chosen and others were not."""
    if problem.table is None:
        return
    chosen, split = set(support), []
    variables = [part.name for part in problem.table.parts if len(part.feature_names) > 1]
    for name, group in zip(variables, problem.groups):
        n = len(chosen & set(group))
        if 0 < n < len(group):
            split.append(f"{n} of the {len(group)} dummies of {name!r}")
    if split:
        warnings.warn(
            f"the chosen columns include {' and '.join(split)}: levels whose dummy was not chosen count "
            "as the level without a dummy; if the number of columns is not given, the dummies of a "
            "variable enter together",
            stacklevel=3,
        )
