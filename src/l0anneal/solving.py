"""The front door: with k the lowest distortion for the time given, without k the evidence."""

from __future__ import annotations

from joblib import effective_n_jobs

from l0anneal._util.checks import check_time_limit
from l0anneal._util.seeds import RandomState
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.anneal import evidence_anneal
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.kicks.result import KickResult
from l0anneal.samplers.kicks.search import kick_search

__all__ = ["solve"]

DEFAULT_SECONDS = 2.0


def solve(
    problem: SparseProblem,
    n_nonzero: int | None = None,
    *,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> KickResult | EvidenceResult:
    """Find the best columns for a signal: the sampler and its settings are chosen for you.

    Parameters
    ----------
    problem : SparseProblem
        A and y.
    n_nonzero : int, optional
        k, how many columns. If it is not known, the evidence sampler finds how many there are, and
        how sure each of them is.
    time_limit : float, optional
        Seconds. With k the run fills them, 2 by default: more time, less distortion. It ends before
        that where nothing of the signal is left, and without k as soon as it knows.
    n_jobs : int, optional
        With k: threads, each with a chain of its own (−1: all cores). Unlike elsewhere in this package
        they change the result: more cores, more chains.
    random_state : None, int, SeedSequence or Generator
        With k, the result's ``n_kicks`` and ``seed``, given to `kick_search`, give it again exactly.
    progress : bool
        Show a bar.

    Returns
    -------
    KickResult or EvidenceResult
        With k or without. Either has ``support``, ``coef``, ``distortion`` and ``summary()``, and can
        be given to `diagnose`.

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
    check_time_limit(time_limit)
    if n_nonzero is None:
        return evidence_anneal(
            problem, time_limit=time_limit, random_state=random_state, progress=progress
        )
    return kick_search(
        problem,
        n_nonzero,
        n_chains=effective_n_jobs(n_jobs if n_jobs is not None else 1),
        n_jobs=n_jobs,
        time_limit=DEFAULT_SECONDS if time_limit is None else time_limit,
        random_state=random_state,
        progress=progress,
        on_interrupt="return",
    )
