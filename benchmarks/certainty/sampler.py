"""The candidate: `evidence_anneal` on one thread, and draws from its prior."""

from functools import cache

import numpy as np
from answers import Answer, timed
from regimes import REGIMES, DataSet

from l0anneal import SparseProblem, evidence_anneal


def default(name, data, i):
    """Fit with default arguments; keep the credible sets."""
    result, seconds = _fit(data, i)
    try:
        sets = [found.columns for found in result.credible_sets(coverage=0.95, min_purity=0.5)]
        refused = False
    except ValueError:  # too few effective draws: counted as a refusal
        sets, refused = [], True
    answer = _answer(result, seconds)
    answer.sets, answer.refused = sets, refused
    return answer


def told(name, data, i):
    """Fit with the true density of the regime."""
    return _answer(*_fit(data, i, rho=REGIMES[name].density))


def plain(name, data, i):
    """Fit with default arguments; leave out the credible sets."""
    return _answer(*_fit(data, i))


def draw_from_prior(A, rng):
    """Return a `DataSet` with dictionary ``A`` whose coefficients are a draw from the default prior.

    This function is the only place that knows how the sampler states its prior: columns of unit norm,
    coefficients in units of the standard deviation of the noise.
    """
    from l0anneal.samplers.evidence.prior import Prior

    noise = rng.standard_normal(A.shape[0])
    support, coefficients = Prior.of(SparseProblem(A, noise)).draw(rng)
    beta = np.zeros(A.shape[1])
    beta[support] = coefficients / np.linalg.norm(A[:, support], axis=0)
    return DataSet(A, A @ beta + noise, beta)


def _fit(data, i, **arguments):
    _compile()
    problem = SparseProblem(data.X, data.y)
    return timed(evidence_anneal, problem, n_jobs=1, random_state=i, **arguments)


def _answer(result, seconds):
    probability = np.asarray(result.inclusion_probability, dtype=float)
    return Answer(probability, seconds, state=result.state, density=float(result.rho))


@cache
def _compile():
    """Run once on a small problem, so that compilation is not timed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    evidence_anneal(SparseProblem(X, X[:, 0] + rng.standard_normal(40)), random_state=0)
