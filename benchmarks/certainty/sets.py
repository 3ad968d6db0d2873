"""Credible sets (coverage .95, purity .5), against SuSiE's on the same data sets.

A set covers if at least one of its columns is true: at least .93 of 400 or more sets have to. The true
columns in some set are not fewer than SuSiE's, paired by data set; and sets are no larger, paired by
true column: for each true column that both have in a set, the sizes of the smallest such sets.
"""

import numpy as np
from answers import collect, paired
from judging import with_error
from regimes import N_DATA_SETS, REGIMES
from sampler import default

from tables import verdict

METHODS = ("default", "susie")
LEAST_SETS, LEAST_COVERAGE = 400, 0.93


def covering(sets, truth):
    """Return whether each set contains a true column."""
    return [bool(truth[members].any()) for members in sets]


def smallest(sets, truth):
    """Return the size of the smallest set that contains it, by true column; others are left out."""
    sizes = {}
    for members in sets:
        for j in members[truth[members]]:
            sizes[int(j)] = min(len(members), sizes.get(int(j), truth.size))
    return sizes


def main(store, n_data_sets=None, minutes=None):
    """Print a line for each regime and method, and the paired differences."""
    n = n_data_sets or N_DATA_SETS

    def make(name, i):
        return REGIMES[name].data_set(i, store)

    if not collect(store, "default", REGIMES, n, make, default, minutes):
        return
    print("\ncredible sets        data sets  refused  sets  coverage  true covered  mean size")
    all_covering, found, larger = [], [], []
    for name in REGIMES:
        pairs = paired(store, METHODS, name, n, make)
        if not pairs:
            print(f"{name}: SuSiE has no answers in the store; left out")
            continue
        sizes = {
            method: [smallest(answers[method].sets, data.truth) for data, answers in pairs]
            for method in METHODS
        }
        for method in METHODS:
            sets = [s for _, answers in pairs for s in answers[method].sets]
            covers = [c for d, answers in pairs for c in covering(answers[method].sets, d.truth)]
            if method == "default":
                all_covering += covers
            refused = sum(answers[method].refused for _, answers in pairs)
            n_found = sum(len(found_by) for found_by in sizes[method])
            coverage = f"{np.mean(covers):.3f}" if covers else "–"
            size = f"{np.mean([len(s) for s in sets]):.2f}" if sets else "–"
            print(
                f"{name:9s}{method:9s}{len(pairs):12d}{refused:9d}{len(sets):6d}"
                f"{coverage:>10s}{n_found:14d}{size:>11s}"
            )
        for ours, theirs in zip(sizes["default"], sizes["susie"]):
            found.append(len(ours) - len(theirs))
            both = sorted(ours.keys() & theirs.keys())
            larger.append([ours[j] - theirs[j] for j in both])
    if not found:
        return
    n_sets = len(all_covering)
    coverage = np.mean(all_covering) if n_sets else np.nan
    passed = n_sets >= LEAST_SETS and coverage >= LEAST_COVERAGE
    print(
        f"coverage {coverage:.3f} (≥ {LEAST_COVERAGE}) of {n_sets} sets (≥ {LEAST_SETS}): ", end=""
    )
    print(verdict(passed))
    mean, error = with_error(found)
    print(f"true columns covered, ours − SuSiE's: {mean:+.3f} ± {error:.3f} a data set: ", end="")
    print(verdict(mean >= 0) + (" within two standard errors" if -2 * error <= mean < 0 else ""))
    mean, error = with_error([np.mean(rows) for rows in larger if rows])
    print(f"size of a true column's set, ours − SuSiE's: {mean:+.3f} ± {error:.3f}: ", end="")
    print(verdict(mean <= 0) + (" within two standard errors" if 0 < mean <= 2 * error else ""))
