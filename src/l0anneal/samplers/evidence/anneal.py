"""Evidence annealing: the number of columns is free, and the noise level is the temperature.

The paper's measure weighs a support of fixed size by exp(−E/T) with E = min_x ½‖y − Ax‖². Here the
coefficients are not minimised over but integrated out. The coefficients of the chosen unit-norm
columns have a Gaussian prior of variance σ² (the slab), and each column is chosen with prior
probability ρ:

    P(S) ∝ (ρ/(1 − ρ))^|S|  det(I + G_SS/λ)^(−1/2)  exp(−E_λ(S)/T),      λ = T/σ²,
    E_λ(S) = min_x ½‖y − A_S x‖² + ½ λ‖x‖².

Three terms are added to the paper's. The *determinant* is the volume of coefficients that a support
offers: a support that explains y only with finely tuned coefficients pays for it. This removes the
paper's metastable state, which consists of the many wrong supports that fit y well with useless
coefficients. The *prior odds* let the size fluctuate, so that a column can enter before another one
leaves, and ρ need not be known. The *ridge* keeps supports of any size, even larger than M, well
defined. As T → 0 at fixed size the minimisers are the paper's again.

The run begins with a guess by message passing (`message_passing`), which takes a small part of the time.
If the columns of the guess represent y exactly, they are the answer; if not, the guess is dropped.

Otherwise T starts above ⟨y²⟩ and is lowered. Meanwhile ρ and σ² are updated by expectation
maximisation, and the residual variance RSS/(M − df) is compared with T. Without noise, the residual
variance becomes negligible compared with T once the planted support is found. With noise, it no
longer follows T down from some point on, and there T is the noise variance. The run then draws
supports together with ρ, T and the slab, which may now have two humps (`slab`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from l0anneal._util.checks import check_choice, check_integer, check_positive
from l0anneal._util.seeds import RandomState
from l0anneal.problem.sparse_problem import SparseProblem
from l0anneal.samplers.evidence.attempts import Attempts, best_of
from l0anneal.samplers.evidence.chain import Model
from l0anneal.samplers.evidence.groups import Group, check_groups
from l0anneal.samplers.evidence.package import not_begun, package
from l0anneal.samplers.evidence.posterior import Posterior
from l0anneal.samplers.evidence.prior import SLABS, Prior, check_density
from l0anneal.samplers.evidence.remainder import put_back, remainder_of
from l0anneal.samplers.evidence.result import EvidenceResult, EvidenceSchedule
from l0anneal.samplers.evidence.warm_up import warm_up_evidence
from l0anneal.samplers.run import OnInterrupt, OutOfTime, Run, RunStopped

__all__ = ["evidence_anneal", "evidence_anneal_in"]

WIDE = 5  # columns for each sample above which fewer attempts are made
ATTEMPTS = 0.75  # part of a time limit after which an attempt is stopped in the middle of a sweep


def evidence_anneal(
    problem: SparseProblem,
    n_nonzero: int | None = None,
    *,
    rho: float | tuple[float, float] | ArrayLike | None = None,
    noise_variance: float | None = None,
    slab: str = "learned",
    groups: Sequence[Sequence[int]] | None = None,
    always_include: ArrayLike | None = None,
    tau: int = 5,
    n_draws: int | None = None,
    max_attempts: int | None = None,
    max_messages: int = 500,
    time_limit: float | None = None,
    schedule: EvidenceSchedule | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    on_interrupt: OnInterrupt = "raise",
) -> EvidenceResult:
    """Find which columns matter, how many they are, and how certain each of them is.

    Neither the number of columns nor the noise level has to be given. The model is a spike and
    slab: a coefficient is either exactly zero or drawn from a Gaussian. The noise level of the
    model, which is its temperature, is lowered until it agrees with the residuals, and supports
    are then drawn from the posterior.

    Parameters
    ----------
    problem : SparseProblem
        The dictionary A and the signal y.
    n_nonzero : int, optional
        Fix the number of columns; by default it is inferred.
    rho : float, pair of floats, or array of shape (N,), optional
        Prior probability that a column matters; or the parameters (a, b) of a Beta prior on this
        probability, as a tuple; or a probability for each column, where 0 excludes a column. By default
        it is learned: its logarithm is uniform, or, with a prior probability of .1, it is uniform
        itself, both up to .9 or, if there are few samples, up to ρ with ρ log(1/ρ) = M/2N.
    noise_variance : float, optional
        The noise variance, if it is known; by default it is inferred, and its logarithm is uniform.
    slab : {"learned", "one hump", "two humps"}
        The shape of the prior on coefficients: Gaussian around zero; Gaussian around plus and minus a
        learned size, for coefficients of about the same magnitude; or learned from the data. The draws
        of the result show what was learned.
    groups : list of lists of column indices, optional
        Columns that enter and leave the support together, such as the dummies of one variable. A group
        counts as one column.
    always_include : array of column indices, optional
        Columns that are part of every support. Their coefficients have a flat prior. A column that
        explains all but a millionth of ‖y‖² by itself, such as a constant column for a signal with a
        large offset, is treated in the same way, and so is a column with a ``rho`` of 1.
    tau : int
        Number of sweeps at each temperature of the first attempt; a sweep is N proposals. Each
        further attempt makes about twice as many.
    n_draws : int, optional
        Number of draws from the posterior that are averaged, of all chains together. By default, two
        chains draw until their draws are worth 420 independent ones, or 1200 each. If the chains
        disagree, two more are run.
    max_attempts : int, optional
        The largest number of attempts, that is, of coolings from the highest temperature. By
        default 4, or 2 if there are more than five columns for each sample, or as many as a time
        limit has time for. The search ends with an attempt that finds an exact representation, or a
        noise level with few columns. An attempt that ends with many columns may be trapped and is
        followed by another, slower one.
    max_messages : int
        The largest number of steps of message passing before the first attempt. These steps are
        quick, and if there is no noise they often find the columns. They are left out if this is 0,
        if the number of columns or the noise variance is given, or if A is too large for an
        eigenvalue decomposition.
    time_limit : float, optional
        Wall-clock time of the whole call in seconds, not counting the compilation of kernels. About
        a fifth of the time is reserved for drawing from the posterior. The run ends early if it
        finds an exact representation, or a noise level with few columns.
    schedule : EvidenceSchedule, optional
        The ``schedule`` of an earlier result. Together with the seed of that run it replays the run
        exactly. It replaces ``tau``, ``n_draws``, ``max_attempts`` and ``max_messages``, and cannot
        be combined with a time limit.
    n_jobs : int, optional
        Number of threads (−1: all cores); the chains that sample the posterior can run at the same
        time. The result does not depend on it.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers. Without a time limit, the same seed gives the same result. None
        draws a new seed, which the result stores as ``seed``.
    progress : bool
        Show a progress bar with the temperature and the number of columns.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the average over the draws made so far
        (or the present support, if no draw has been made). Before the first sweep,
        KeyboardInterrupt is raised.

    Returns
    -------
    EvidenceResult

    See Also
    --------
    EvidenceResult : The result.
    AnnealedSubsetRegressor : The same for scikit-learn.
    diagnose : Decide whether to trust the result.
    finemap : The same for thousands of small problems.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SparseProblem, evidence_anneal
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 100))
    >>> y = A[:, [5, 50]] @ [2.0, -1.0] + 0.3 * rng.standard_normal(60)
    >>> result = evidence_anneal(SparseProblem(A, y), random_state=0)
    >>> result.support
    array([ 5, 50])
    """
    size = None if n_nonzero is None else problem.check_size(n_nonzero)
    tau = check_integer("tau", tau, 1)
    if n_draws is not None:
        n_draws = check_integer("n_draws", n_draws, 1)
    if max_attempts is not None:
        max_attempts = check_integer("max_attempts", max_attempts, 1)
    max_messages = check_integer("max_messages", max_messages, 0)
    if noise_variance is not None:
        check_positive("noise_variance", noise_variance)
    if schedule is not None and not isinstance(schedule, EvidenceSchedule):
        raise ValueError(
            f"schedule must be an EvidenceSchedule of an earlier run; got {schedule!r}"
        )
    if schedule is not None and time_limit is not None:
        raise ValueError("give a schedule or a time limit, not both: a schedule has its own length")
    knowledge = _check_knowledge(problem, size, rho, slab, groups, always_include)
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress,
        on_interrupt=on_interrupt,
        unit="step",
    ) as run:
        return evidence_anneal_in(
            run,
            problem,
            size,
            **knowledge,
            noise_variance=noise_variance,
            tau=tau,
            n_draws=n_draws,
            max_attempts=max_attempts,
            max_messages=max_messages,
            schedule=schedule,
        )


def _check_knowledge(
    problem: SparseProblem,
    size: int | None,
    rho: Any,
    slab: str,
    groups: Sequence[Sequence[int]] | None,
    always_include: ArrayLike | None,
) -> dict[str, Any]:
    """Check what the caller knows about the columns; return it as arguments of `evidence_anneal_in`."""
    check_choice("slab", slab, tuple(SLABS))
    density = check_density(rho, problem.n_columns)
    checked = check_groups(groups, problem.column_norms)
    if checked:
        if size is not None or slab == "two humps":
            raise ValueError("groups need a free number of columns and a slab of one hump")
        if isinstance(density, np.ndarray):
            raise ValueError("give groups or a rho for each column, not both")
        slab = "one hump"
    included = problem.check_support(() if always_include is None else always_include)
    if isinstance(density, np.ndarray):
        included = np.union1d(
            included, np.flatnonzero((density == 1.0) & (problem.column_norms > 0))
        )
        allowed = np.count_nonzero((density > 0.0) & (problem.column_norms > 0))
        if size is not None and size > allowed:
            raise ValueError(
                f"n_nonzero must be at most {allowed}, the number of columns with rho above 0; "
                f"got {size}"
            )
    for group in checked:
        if 0 < np.isin(group, included).sum() < group.size:
            raise ValueError(
                f"always_include must name all columns of a group or none; got {included}"
            )
    if size is not None and size < included.size:
        raise ValueError(
            f"n_nonzero counts the {included.size} columns of always_include; got {size}"
        )
    return {"rho": density, "slab": slab, "groups": checked, "always_include": included}


def evidence_anneal_in(
    run: Run,
    problem: SparseProblem,
    size: int | None = None,
    *,
    rho: Any = None,
    slab: str = "learned",
    groups: tuple[Group, ...] = (),
    always_include: NDArray[np.int64] | None = None,
    noise_variance: float | None = None,
    tau: int = 5,
    n_draws: int | None = None,
    max_attempts: int | None = None,
    max_messages: int = 500,
    schedule: EvidenceSchedule | None = None,
) -> EvidenceResult:
    """Anneal inside a run that has begun, with arguments that have been checked."""
    included = np.zeros(0, dtype=np.int64) if always_include is None else always_include
    alone = np.ones(problem.n_columns, dtype=bool)
    alone[[j for group in groups for j in group]] = False
    if isinstance(rho, np.ndarray):
        alone &= rho > 0.0
    rest = remainder_of(problem, included, alone, size)
    if rest is not None:
        place = np.full(problem.n_columns, -1)
        place[rest.candidates] = np.arange(rest.candidates.size)
        left = tuple(place[group][place[group] >= 0] for group in groups)
        result = evidence_anneal_in(
            run,
            rest.problem,
            None if size is None else size - rest.removed.size,
            rho=rho[rest.candidates] if isinstance(rho, np.ndarray) else rho,
            slab=slab,
            groups=tuple(group for group in left if group.size > 1),
            noise_variance=noise_variance,
            tau=tau,
            n_draws=n_draws,
            max_attempts=max_attempts,
            max_messages=max_messages,
            schedule=schedule,
        )
        rng = np.random.default_rng(run.stream("evidence remainder"))
        return put_back(result, problem, rest, rng)
    if max_attempts is None:
        max_attempts = 2 if problem.n_columns > WIDE * problem.n_samples else 4
        if run.time_limit is not None:
            max_attempts = 10**6
    known = None
    if noise_variance is not None and problem.signal_energy:
        known = noise_variance / problem.unit_energy
    run.compile(warm_up_evidence)
    model = Model(problem, size, Prior.of(problem, rho, slab, groups), known)
    attempts = Attempts(run, model, schedule)
    try:
        with run.to_start(ATTEMPTS):
            run.prepare(problem)
            best = attempts.seeded(max_messages) or attempts.best(tau, max_attempts)
    except OutOfTime:
        if not attempts.chains:
            return not_begun(run, model)
        attempts.out_of_time = True
        best = best_of(attempts.chains)
    except RunStopped:
        best = attempts.so_far()
    posterior = Posterior(run, model, best)
    if best.state != "found" and (schedule is None or schedule.sampling):
        replay = None
        if schedule is not None:
            replay = schedule.sampling
            n_draws = None if schedule.in_rounds else sum(replay)
        posterior.sample(n_draws, attempts.ends[-1], replay)
    attempts.budgets += posterior.budgets
    sampling = tuple(budget.used for budget in posterior.budgets)
    executed = attempts.executed(sampling, in_rounds=n_draws is None)
    return package(posterior, executed, run.record(attempts.why(best)))
