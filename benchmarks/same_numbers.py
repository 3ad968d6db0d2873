"""Check that a change of the code changes no result.

    python benchmarks/same_numbers.py store numbers.json     # before the change
    python benchmarks/same_numbers.py compare numbers.json   # after it

Every public sampler, estimator and the sparse coder run on a dozen problems with fixed seeds. Supports
must be equal and all other numbers agree to 1e-12 of the largest number in their array.
"""

import argparse
import json
import sys
import time
import warnings

import numpy as np
import scipy.sparse

import l0anneal
from l0anneal import (
    AdaptiveSchedule,
    AnnealedSparseCoder,
    AnnealedSubsetRegressor,
    Schedule,
    SparseProblem,
    anneal,
    evidence_anneal,
    kick_search,
    population_anneal,
    sparse_encode,
    subset_path,
    temper,
)

TOLERANCE = 1e-12


def problems():
    """A dozen problems: tall, square, wide, sparse, tiny, badly scaled, degenerate, with an offset."""
    rng = np.random.default_rng(20261116)

    def signal(A, support, noise):
        return A[:, support] @ rng.choice([-1.0, 1.5], len(support)) + noise * rng.standard_normal(
            len(A)
        )

    tall = rng.standard_normal((120, 30))
    yield "tall", tall, signal(tall, [2, 7, 19], 0.5), 3
    square = rng.standard_normal((50, 50))
    yield "square", square, signal(square, [1, 5, 9, 33], 0.3), 4
    wide = rng.standard_normal((40, 120))
    yield "wide", wide, signal(wide, [3, 50, 101], 0.2), 3
    yield "noiseless", wide, wide[:, [4, 40, 80, 110]] @ [1.0, -2.0, 0.5, 1.0], 6
    yield "noise only", rng.standard_normal((50, 100)), rng.standard_normal(50), 20
    walk = rng.standard_normal((60, 90))
    for j in range(1, 90):
        walk[:, j] = 0.9 * walk[:, j - 1] + np.sqrt(1 - 0.81) * walk[:, j]
    yield "correlated", walk, signal(walk, [10, 40, 70], 0.4), 3
    scaled = rng.standard_normal((40, 60)) * 10.0 ** rng.uniform(-5, 5, 60)
    yield "badly scaled", scaled, scaled[:, 3] / np.abs(scaled[:, 3]).max() + 0.1, 2
    double = rng.standard_normal((30, 40))
    double[:, 1], double[:, 2], double[:, 4] = double[:, 0], -3 * double[:, 3], 0.0
    yield "duplicates", double, signal(double, [0, 3, 9], 0.2), 3
    sparse = scipy.sparse.random_array((80, 60), density=0.1, random_state=rng, format="csc")
    dense = sparse.toarray()
    yield "sparse", sparse, signal(dense, [5, 6, 7], 0.1), 3
    tiny = rng.standard_normal((6, 4))
    yield "tiny", tiny, signal(tiny, [1], 0.1), 2
    offset = rng.standard_normal((60, 40)) + 5.0
    yield "offset", offset, 100.0 + signal(offset, [4, 8], 0.5), 2
    large = rng.standard_normal((100, 200))
    yield "hard", large, large[:, :60] @ rng.standard_normal(60), 70


def runs():
    """Yield the name of a run and its numbers."""
    for name, A, y, k in problems():
        problem = SparseProblem(A, y)
        dense = A.toarray() if scipy.sparse.issparse(A) else A
        quick = {"random_state": 7}
        yield f"{name}: anneal", _search(anneal(problem, k, n_chains=2, **quick))
        yield f"{name}: paper", _search(anneal(problem, k, Schedule.paper(30, 3), **quick))
        yield (
            f"{name}: adaptive",
            _search(anneal(problem, k, AdaptiveSchedule(tau=2, speed=3.0), **quick)),
        )
        for move in ("auto", "heat bath", "multi flip", "rejection free"):
            run = anneal(problem, k, Schedule.paper(20, 2), move=move, **quick)
            yield f"{name}: {move}", _search(run)
        yield (
            f"{name}: kicks",
            _search(kick_search(problem, k, n_chains=2, n_kicks=50, **quick)),
        )
        if problem.n_columns <= 100:
            tempered = temper(problem, k, n_sweeps=100, **quick)
            yield f"{name}: temper", _temper(tempered)
            sizes = temper(problem, sizes=(1, min(k, 3)), n_sweeps=100, **quick)
            yield f"{name}: temper, sizes", _temper(sizes)
        cooled = population_anneal(problem, k, population=30, **quick)
        yield f"{name}: population", _population(cooled)
        yield f"{name}: evidence", _evidence(evidence_anneal(problem, **quick))
        yield f"{name}: evidence, size", _evidence(evidence_anneal(problem, k, **quick))
        yield f"{name}: path", _path(subset_path(dense, y, min(k + 2, 8), **quick))
        yield f"{name}: path, cv", _path(subset_path(dense, y, min(k, 4), cv=3, **quick))
        for choice in ("auto", "bic", min(k, 5)):
            model = AnnealedSubsetRegressor(choice, **quick).fit(A, y)
            yield f"{name}: regressor, {choice}", _model(model)
        if problem.signal_energy and name != "tiny":
            signals = np.vstack([y, dense[:, 0] + dense[:, -1], y[::-1]])
            codes = sparse_encode(signals, dense.T, min(k, 5), n_kicks=3, **quick)
            coder = AnnealedSparseCoder(dense.T, transform_n_nonzero_coefs=2).fit(signals)
            yield f"{name}: codes", {"codes": codes, "transform": coder.transform(signals)}
    problem = SparseProblem.from_gram(tall_gram(), np.arange(1.0, 13.0) / 12, 100.0, 50)
    yield "gram: anneal", _search(anneal(problem, 3, random_state=1))
    yield "gram: evidence", _evidence(evidence_anneal(problem, random_state=1))


def tall_gram():
    """A Gram matrix of twelve correlated columns."""
    index = np.arange(12)
    return 0.5 ** np.abs(index[:, None] - index)


def _search(result):
    return {"support": result.support, "coef": result.coef, "energy": result.energy} | {
        name: getattr(result, name)
        for name in ("chain_energies", "chain_supports", "mean_energy", "acceptance", "n_kicks")
        if hasattr(result, name)
    }


def _temper(result):
    return {
        "support": result.support,
        "energy": result.energy,
        "ladder": result.ladder,
        "weights": result.weights,
        "mean_energy": result.mean_energy,
        "visits": result.visits,
        "best_energies": result.best_energies,
    }


def _population(result):
    return {
        "support": result.support,
        "energy": result.energy,
        "log_g": result.log_g,
        "mean_energy": result.mean_energy,
        "family": result.family,
        "last_supports": result.last_supports,
    }


def _evidence(result):
    return {
        "support": result.support,
        "coef": result.coef,
        "probability": result.inclusion_probability,
        "averaged": result.averaged_coef,
        "size": result.size_posterior,
        "noise": result.noise_variance,
        "rho": result.rho,
    }


def _path(path):
    return {
        "support": np.concatenate(path.supports),
        "energies": path.energies,
        "coefs": path.coefs,
        **path.criteria,
    }


def _model(model):
    return {
        "support": model.support_,
        "coef": model.coef_,
        "intercept": model.intercept_,
        "probability": model.inclusion_probability_,
        "averaged": model.averaged_coef_,
    }


def _plain(values):
    return {name: np.asarray(value, dtype=np.float64).tolist() for name, value in values.items()}


def differences(stored, found):
    """Yield what differs: where, by how much (relative to the array's largest number)."""
    for name in sorted(stored.keys() ^ found.keys()):
        yield name, "only in one of the two", np.inf
    for name in sorted(stored.keys() & found.keys()):
        for key in sorted(stored[name].keys() | found[name].keys()):
            a, b = (np.asarray(runs[name].get(key, np.nan)) for runs in (stored, found))
            if a.shape != b.shape:
                yield name, f"{key}: shapes {a.shape} and {b.shape}", np.inf
            elif a.size and not np.array_equal(a, b, equal_nan=True):
                scale = max(np.nanmax(np.abs(a), initial=0.0), 1e-300)
                largest = float(np.nanmax(np.abs(a - b))) / scale
                if not np.array_equal(np.isnan(a), np.isnan(b)):
                    largest = np.inf
                yield name, key, largest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["store", "compare"])
    parser.add_argument("file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    found = {}
    for name, values in runs():
        found[name] = _plain(values)
        print(f"\r{len(found):4} runs, {name:40}", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(
        f"l0anneal {l0anneal.__version__}: {len(found)} runs in {time.perf_counter() - began:.0f} s"
    )
    if options.action == "store":
        with open(options.file, "w") as file:
            json.dump(found, file)
        return
    with open(options.file) as file:
        stored = json.load(file)
    differing = list(differences(stored, found))
    wrong = [row for row in differing if row[2] > (0.0 if "support" in row[1] else TOLERANCE)]
    for name, key, size in wrong:
        print(f"differs: {name}, {key}, by {size:.1e}")
    print(
        f"{len(found) - len({row[0] for row in wrong})} of {len(stored)} runs give the same numbers"
    )
    largest = max((row[2] for row in differing if row not in wrong), default=0.0)
    print(f"largest accepted difference {largest:.1e}, limit {TOLERANCE}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
