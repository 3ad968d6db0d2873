"""Regression on correlated columns against the peers: ``python benchmarks/regression.py``.

Columns are AR(1) (correlation r^|i−j|), M = 500, N = 2000, 20 of them carry ±1, or with
``--coefficients gaussian`` coefficients of all sizes. The annealed regressor is told nothing. The
peers are told that there are 20: OMP and abess by their parameter, MCP by the point of its path
with the number of columns nearest to 20; of the lasso, cross-validated, the 20 largest coefficients
count as its support, and all of them predict. SNR is the variance of the signal over that of the
noise. The prediction error is that of the signal at new rows, as a part of its variance.

Needs the extra: ``pip install l0anneal[benchmark]``; what is missing is left out with a word.
"""

import argparse
import os
import time
import warnings

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import scipy.linalg
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LassoCV, LinearRegression, OrthogonalMatchingPursuit

from l0anneal.estimators.path import subset_path
from l0anneal.estimators.subset_regressor import AnnealedSubsetRegressor
from origin import print_origin

K = 20
DESIGNS = [(0.5, 1.0), (0.5, 10.0), (0.9, 1.0), (0.9, 10.0)]
OURS, FIXED, PATH = "annealed, averaged", "annealed, least squares", "annealed path, evidence"
TRUTH = "least squares on the truth"


COEFFICIENTS = {
    "signs": lambda rng: rng.choice([-1.0, 1.0], K),
    "gaussian": lambda rng: rng.standard_normal(K),
}


def instance(correlation, snr, seed, m, n, law="signs"):
    """X, y and the true coefficients; the signal's variance is the population's."""
    rng = np.random.default_rng([seed, int(100 * correlation), int(snr)])
    X = rng.standard_normal((m, n))
    for j in range(1, n):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    beta = np.zeros(n)
    beta[rng.choice(n, K, replace=False)] = COEFFICIENTS[law](rng)
    noise = np.sqrt(variance(beta, correlation) / snr)
    return X, X @ beta + noise * rng.standard_normal(m), beta


def variance(coef, correlation):
    """Of X @ coef at a new row: coefᵀ Σ coef with Σ_ij = r^|i−j|."""
    first = correlation ** np.arange(coef.size)
    return float(coef @ scipy.linalg.matmul_toeplitz(first, coef))


def annealed(X, y, seed):
    """Both predictions of one fit."""
    model = AnnealedSubsetRegressor(random_state=seed).fit(X, y)
    return {
        OURS: (model.support_, model.averaged_coef_, model.averaged_intercept_),
        FIXED: (model.support_, model.coef_, model.intercept_),
    }


def annealed_path(X, y, seed):
    """The size chosen by the evidence of the best supports."""
    model = AnnealedSubsetRegressor("evidence", random_state=seed).fit(X, y)
    return {PATH: (model.support_, model.coef_, model.intercept_)}


def omp(X, y, seed):
    """Orthogonal matching pursuit, told 20."""
    model = OrthogonalMatchingPursuit(n_nonzero_coefs=K).fit(X, y)
    return {"OMP": (np.flatnonzero(model.coef_), model.coef_, model.intercept_)}


def lasso(X, y, seed):
    """The lasso with λ by cross-validation; its 20 largest coefficients are its support."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, at the smallest λ
        model = LassoCV(cv=5, random_state=seed).fit(X, y)
    support = np.argsort(-np.abs(model.coef_))[:K]
    return {"LassoCV": (support[model.coef_[support] != 0], model.coef_, model.intercept_)}


def mcp(X, y, seed):
    """The minimax concave penalty along its path, the point nearest to 20 columns."""
    from skglm import MCPRegression

    mean = y.mean()
    largest = np.max(np.abs((X - X.mean(axis=0)).T @ (y - mean))) / y.size
    model = MCPRegression(warm_start=True)
    best, coef, intercept = np.inf, np.zeros(X.shape[1]), mean
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for alpha in largest * np.geomspace(1.0, 0.05, 60):
            model.set_params(alpha=alpha).fit(X, y)
            size = np.count_nonzero(model.coef_)
            if abs(size - K) <= best:
                best, coef, intercept = abs(size - K), model.coef_.copy(), float(model.intercept_)
            if size > 2 * K:
                break
    return {"MCP": (np.flatnonzero(coef), coef, intercept)}


def splicing(X, y, seed):
    """Best-subset selection by splicing, told 20."""
    from abess.linear import LinearRegression as Abess

    model = Abess(support_size=K, thread=1).fit(X, y)
    coef = np.ravel(model.coef_)
    return {"abess": (np.flatnonzero(coef), coef, float(np.ravel(model.intercept_)[0]))}


METHODS = {
    "annealed": annealed,
    "path": annealed_path,
    "omp": omp,
    "lasso": lasso,
    "mcp": mcp,
    "abess": splicing,
}


def score(answer, beta, correlation):
    """F1 of the support and the relative prediction error."""
    support, coef, intercept = answer
    truth = np.flatnonzero(beta)
    f1 = 2 * np.intersect1d(support, truth).size / max(1, len(support) + truth.size)
    error = variance(coef - beta, correlation) + intercept**2
    return f1, error / variance(beta, correlation), len(support)


def available(methods):
    """Those whose library is there."""
    X, y, _ = instance(0.5, 10.0, 0, 60, 80)
    there = {}
    for name in methods:
        try:
            METHODS[name](X, y, 0)  # also compiles what is to be compiled
            there[name] = METHODS[name]
        except ImportError as error:
            print(f"{name} is left out: {error}; pip install l0anneal[benchmark]")
    return there


def run(methods, correlation, snr, seeds, m, n, law):
    """Scores by method: arrays of (F1, error, size, seconds) by seed."""
    scores = {}
    for seed in range(seeds):
        X, y, beta = instance(correlation, snr, seed, m, n, law)
        truth = np.flatnonzero(beta)
        oracle = LinearRegression().fit(X[:, truth], y)
        coef = np.zeros(beta.size)
        coef[truth] = oracle.coef_
        answers = {TRUTH: ((truth, coef, oracle.intercept_), 0.0)}
        for method in methods.values():
            began = time.process_time()
            found = method(X, y, seed)
            seconds = time.process_time() - began
            answers |= {name: (answer, seconds) for name, answer in found.items()}
        for name, (answer, seconds) in answers.items():
            row = (*score(answer, beta, correlation), seconds)
            scores.setdefault(name, []).append(row)
    return {name: np.array(rows) for name, rows in scores.items()}


def with_error(values):
    """Mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def report(console, correlation, snr, scores):
    """One design: all methods, and the differences from the annealed regressor, seed by seed."""
    table = Table(title=f"correlation {correlation:g}, SNR {snr:g}, {len(scores[TRUTH])} seeds")
    for column in ("method", "F1", "columns", "prediction error", "ours − this", "seconds"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for name, rows in scores.items():
        cells = ["{:.4f} ± {:.4f}".format(*with_error(rows[:, i])) for i in (0, 1)]
        gap = "{:+.4f} ± {:.4f}".format(*with_error(scores[OURS][:, 1] - rows[:, 1]))
        sizes = f"{rows[:, 2].mean():.1f}"
        table.add_row(name, cells[0], sizes, cells[1], gap, f"{rows[:, 3].mean():.2f}")
    console.print(table)
    peers = [name for name in scores if name not in (OURS, FIXED, PATH, TRUTH)]
    ratio = scores[OURS][:, 1].mean() / scores[TRUTH][:, 1].mean()
    console.print(f"prediction error over that of least squares on the true columns: {ratio:.3f}")
    if peers:
        best = max(peers, key=lambda name: scores[name][:, 0].mean())
        for name in (OURS, PATH):
            if name in scores:
                mean, error = with_error(scores[name][:, 0] - scores[best][:, 0])
                met = "met" if mean >= -(0.01 + 2 * error) else "missed"
                console.print(
                    f"F1, {name} − best peer ({best}): {mean:+.4f} ± {error:.4f}  "
                    f"(goal ≥ −(0.01 + 2 s.e.): {met})"
                )
        console.print()


def time_path(console):
    """The whole path up to 30 columns against one annealing at 30."""
    from l0anneal import SparseProblem, anneal

    X, y, _ = instance(0.9, 1.0, 0, 500, 1000)
    problem = SparseProblem(X, y)
    anneal(problem, 30, random_state=0)
    subset_path(X[:, :50], y, 3, random_state=0)
    times = []
    for seed in range(5):
        began = time.process_time()
        anneal(SparseProblem(X, y), 30, random_state=seed)
        middle = time.process_time()
        subset_path(X, y, 30, random_state=seed)
        times.append((middle - began, time.process_time() - middle))
    one, path = np.median(times, axis=0)
    console.print(
        f"M = 500, N = 1000: every size up to 30 in {path:.2f} s, {path / one:.2f} times one "
        f"annealing at 30 ({one:.2f} s)\n"
    )


def main():
    """Print a table for each design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--columns", type=int, default=2000)
    parser.add_argument("--coefficients", choices=COEFFICIENTS, default="signs")
    parser.add_argument("--designs", type=int, nargs="*", default=range(len(DESIGNS)))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--path", action="store_true", help="only time the path")
    options = parser.parse_args()
    print_origin()
    console = Console(width=120)
    time_path(console)
    if options.path:
        return
    methods = available(dict.fromkeys(["annealed", *options.methods]))
    for design in options.designs:
        size = (options.seeds, options.samples, options.columns)
        scores = run(methods, *DESIGNS[design], *size, options.coefficients)
        report(console, *DESIGNS[design], scores)


if __name__ == "__main__":
    main()
