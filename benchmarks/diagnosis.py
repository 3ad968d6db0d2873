"""Is the verdict of `diagnose` right? Runs of known truth, from easy to hopeless, in one table.

    python benchmarks/diagnosis.py               # the families that the limits were chosen on
    python benchmarks/diagnosis.py --held-back   # other seeds, and two more families

The truth is the best of all supports, by enumeration (14 columns), or a planted support that
represents the signal exactly. A run *solves* its problem if it finds a support of this energy. A
verdict is wrong if it is "exact" or "agreed" and the run did not solve the problem, if it is
"exact" and pure noise was fitted, and if it is "trapped" and the run did solve the problem. Each
family is searched with little and with enough effort, and each result is judged without and with
the problem at hand.
"""

import argparse
import os
from itertools import combinations

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import scipy.fft

from l0anneal import Schedule, SparseProblem, anneal, diagnose, ensembles, kick_search
from origin import print_origin

N = 14  # columns, where all supports are enumerated
ATTEMPTS = {
    "anneal, 40 sweeps": lambda p, k, s: anneal(p, k, _short(p, k, 2), n_chains=2, random_state=s),
    "anneal, 100 sweeps": lambda p, k, s: anneal(p, k, _short(p, k, 5), n_chains=2, random_state=s),
    "anneal, 500 sweeps": lambda p, k, s: anneal(p, k, n_chains=3, random_state=s),
    "10 kicks": lambda p, k, s: kick_search(p, k, n_kicks=10, n_chains=2, random_state=s),
    "50 kicks": lambda p, k, s: kick_search(p, k, n_kicks=50, n_chains=2, random_state=s),
    "200 kicks": lambda p, k, s: kick_search(p, k, n_kicks=200, n_chains=3, random_state=s),
}


def _short(problem, k, tau):
    """A fifth of the temperatures of the automatic schedule."""
    mu = Schedule.automatic(problem, k).mu[::5]
    return Schedule(mu, (tau,) * len(mu), "short")


def _signal(rng, A, n_true, noise):
    true = rng.choice(A.shape[1], n_true, replace=False)
    signal = A[:, true] @ rng.standard_normal(n_true)
    return signal + noise * np.std(signal) * rng.standard_normal(len(A))


def independent(rng):
    A = rng.standard_normal((20, N))
    return A, _signal(rng, A, 3, 0.5), 4


def noise(rng):
    return rng.standard_normal((20, N)), rng.standard_normal(20), 6


def correlated(rng):
    """Neighbouring columns have a correlation of .9."""
    A = rng.standard_normal((20, N))
    for j in range(1, N):
        A[:, j] = 0.9 * A[:, j - 1] + np.sqrt(1 - 0.81) * A[:, j]
    return A, _signal(rng, A, 4, 0.5), 4


def rescaled(rng):
    A, y, k = correlated(rng)
    return A * 10.0 ** rng.uniform(-5, 5, N), y * 10.0 ** rng.uniform(-5, 5), k


def offset(rng):
    """A constant column, and a signal with an offset."""
    A = rng.standard_normal((20, N))
    A[:, 5] = 1.0
    return A, 10.0 ** rng.uniform(0, 7) + _signal(rng, A, 4, 0.5), 5


def suppressors(rng):
    """Columns that explain nothing alone: a signal hidden behind strong common factors."""
    A = rng.standard_normal((20, N))
    A[:, : N // 2] += 5.0 * A[:, N // 2 :]
    y = _signal(rng, A[:, : N // 2] - 5.0 * A[:, N // 2 :], 2, 0.3)
    return A, y, 4


def nearly_square(rng):
    """As many columns as samples, or one fewer: any signal is fitted, by chance."""
    m = 8
    return rng.standard_normal((m, N)), rng.standard_normal(m), m - int(rng.integers(2))


def easy(rng):
    """Recovery is easy (α, ρ, ρ̂) = (.8, .4, .2)."""
    instance = ensembles.planted(100, 0.8, 0.2, support="fixed", random_state=rng)
    return instance.A, instance.problem.y, 40


def hard(rng):
    """The metastable state of the paper: (α, ρ, ρ̂) = (.75, .65, .5)."""
    instance = ensembles.planted(100, 0.75, 0.5, support="fixed", random_state=rng)
    return instance.A, instance.problem.y, 65


def between(rng):
    """Recovery succeeds now and then."""
    instance = ensembles.planted(80, 0.6, 0.35, support="fixed", random_state=rng)
    return instance.A, instance.problem.y, 36


def noisy(rng):
    """A planted signal with noise too weak for any other support of the same size to be the best."""
    instance = ensembles.planted(80, 0.6, 0.35, 1.0, 1e-6, support="fixed", random_state=rng)
    return instance.A, instance.problem.y, 28, instance.support


def equicorrelated(rng):
    """All columns share a factor."""
    A = rng.standard_normal((20, N)) + 2.0 * rng.standard_normal((20, 1))
    return A, _signal(rng, A, 4, 0.5), 5


def cosines(rng):
    """A planted signal in an overcomplete dictionary of cosines, whose neighbours are coherent."""
    A = scipy.fft.dct(np.eye(96), axis=0)[:32]
    true = rng.choice(96, 5, replace=False)
    return A, A[:, true] @ rng.standard_normal(5), 6


FAMILIES = [independent, noise, correlated, rescaled, offset, suppressors, nearly_square]
FAMILIES += [easy, hard, between, noisy]
HELD_BACK = [*FAMILIES, equicorrelated, cosines]
EXACT = {"easy", "hard", "between", "cosines"}  # the planted columns leave nothing


def lowest_energy(problem, k):
    """Energy of the best support, by enumeration."""
    return min(problem.energy(np.array(S)) for S in combinations(range(problem.n_columns), k))


def runs(families, seeds, attempts=tuple(ATTEMPTS)):
    """Yield family, attempt, whether the run solved the problem, and both verdicts."""
    for family in families:
        for seed in seeds:
            # str hashes differ between processes; the name's letters do not
            rng = np.random.default_rng([seed, *family.__name__.encode()])
            A, y, k, *planted = family(rng)
            problem = SparseProblem(A, y)
            if planted:
                best = problem.energy(planted[0])
            else:
                best = 0.0 if family.__name__ in EXACT else lowest_energy(problem, k)
            rounding = 1e-20 * problem.signal_energy
            for name in attempts:
                result = ATTEMPTS[name](problem, k, seed)
                solved = result.energy <= best * (1 + 1e-6) + rounding
                verdicts = diagnose(result).verdict, diagnose(result, problem).verdict
                yield family.__name__, name, solved, verdicts


def is_wrong(family, solved, verdict):
    """Whether a verdict gives false comfort, and whether it gives a false alarm."""
    comfort = verdict in ("exact", "agreed") and not solved
    comfort |= verdict == "exact" and family in ("noise", "nearly_square")
    return comfort, verdict == "trapped" and solved


def main():
    """Print how often each verdict was given to runs that solved their problem, and to others."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="instances of each family")
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument("--details", action="store_true", help="also by attempt")
    options = parser.parse_args()
    print_origin()
    first = 1000 if options.held_back else 0
    families = HELD_BACK if options.held_back else FAMILIES
    seeds = range(first, first + options.seeds)
    rows = list(runs(families, seeds))
    for mode, given in enumerate(("diagnose(result)", "diagnose(result, problem)")):
        print(f"\n{given}: verdicts on runs that solved their problem | on those that did not")
        words = ("exact", "agreed", "doubtful", "trapped")
        print(
            f"{'':28}"
            + "".join(f"{w:>9}" for w in words)
            + " |"
            + "".join(f"{w:>9}" for w in words)
        )
        kinds = [(family.__name__, None) for family in families]
        if options.details:
            kinds += [(None, name) for name in ATTEMPTS]
        for kind in [*kinds, (None, None)]:
            chosen = [r for r in rows if kind[0] in (None, r[0]) and kind[1] in (None, r[1])]
            cells = [
                "".join(
                    f"{sum(r[2] == solved and r[3][mode] == word for r in chosen):9}"
                    for word in words
                )
                for solved in (True, False)
            ]
            print(f"{kind[0] or kind[1] or 'all':28}{cells[0]} |{cells[1]}")
        wrong = np.array([is_wrong(r[0], r[2], r[3][mode]) for r in rows])
        said = sum(r[3][mode] in ("exact", "agreed") for r in rows)
        solved = sum(r[2] for r in rows)
        print(
            f"{len(rows)} runs; false comfort: {wrong[:, 0].sum()} of {said} exact or agreed "
            f"({wrong[:, 0].sum() / said:.1%}); false alarm: {wrong[:, 1].sum()} of {solved} solved "
            f"({wrong[:, 1].sum() / solved:.1%})"
        )


if __name__ == "__main__":
    main()
