"""Six real tables against the peers, and whether intervals hold: ``python benchmarks/tables.py``.

Repeated cross-validation with the same folds for all methods. The error is the mean squared error on
left-out rows as a part of the variance of y. A difference to the first method is the mean over folds,
and its standard error is that of the paired differences, corrected for the overlap of the training rows
(Nadeau and Bengio, Machine Learning 52, 239–281, 2003). Columns are standardised, which matters to the
lasso and to ridge regression only.

The second table has the part of left-out rows within the stated intervals of ``return_std``, on the
tables and on simulated data whose noise is Gaussian.

Peers that are not installed are left out with a word: ``pip install 'l0anneal[benchmark]'``. The tables
of ISLP need pandas and ``pip install --no-deps 'ISLP>=0.4,<0.5'``.
"""

import argparse
import os
import time
import warnings
from importlib.metadata import PackageNotFoundError, distribution

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LassoCV, OrthogonalMatchingPursuitCV, RidgeCV
from sklearn.model_selection import RepeatedKFold
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from l0anneal import AnnealedSubsetRegressor
from origin import print_origin

LEVELS = (0.5, 0.8, 0.95)
FOLDS = 5


# ---------------------------------------------------------------- the tables


def islp(name):
    """A table of ISLP, read without importing the package, which would need PyTorch."""
    table = pd.read_csv(distribution("ISLP").locate_file(f"ISLP/data/{name}.csv")).dropna()
    return table.loc[:, ~table.columns.str.startswith("Unnamed")]


def split(table, target, transform=lambda y: y):
    y = transform(table.pop(target).to_numpy(dtype=float))
    return pd.get_dummies(table, drop_first=True, dtype=float), y


def diabetes():
    data = load_diabetes(as_frame=True)
    return data.data, data.target.to_numpy()


def diabetes_products():
    """Ten columns, their squares and products; takes several times as long as the other tables."""
    X, y = diabetes()
    expand = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
    return expand.fit_transform(X).drop(columns="sex^2"), y


def cancer():
    data = load_breast_cancer(as_frame=True)
    return data.data, data.target.to_numpy(dtype=float)


def college():
    table = islp("College")
    return split(table.drop(columns=["Accept", "Enroll"]), "Apps", np.log)


TABLES = {
    "diabetes": diabetes,
    "Boston": lambda: split(islp("Boston"), "medv", np.log),
    "College": college,
    "Credit": lambda: split(islp("Credit").drop(columns="ID", errors="ignore"), "Balance"),
    "Hitters": lambda: split(islp("Hitters"), "Salary", np.log),
    "breast cancer, 0 and 1": cancer,
}
LONG = {"diabetes, products": diabetes_products}


# ---------------------------------------------------------------- the methods


class Abess:
    """Splicing, with the size by abess's own criterion."""

    def fit(self, X, y):
        from abess import LinearRegression

        self.model = LinearRegression(support_size=range(min(51, X.shape[1] + 1)), thread=1)
        self.model.fit(X, y)
        self.coef_ = np.ravel(self.model.coef_)
        return self

    def predict(self, X):
        return np.ravel(self.model.predict(X))


class MCP:
    """The MCP penalty, its strength by five folds."""

    def fit(self, X, y):
        from skglm import MCPRegression

        mean = y.mean()
        largest = np.max(np.abs(X.T @ (y - mean))) / len(y)
        strengths = np.geomspace(largest, 1e-3 * largest, 30)
        errors = np.zeros(strengths.size)
        order = np.random.default_rng(0).permutation(len(y))
        for test in np.array_split(order, 5):
            train = np.setdiff1d(order, test)
            for i, a in enumerate(strengths):
                model = MCPRegression(a, gamma=3.0).fit(X[train], y[train])
                errors[i] += np.sum((y[test] - model.predict(X[test])) ** 2)
        self.model = MCPRegression(strengths[np.argmin(errors)], gamma=3.0).fit(X, y)
        self.coef_ = self.model.coef_
        return self

    def predict(self, X):
        return self.model.predict(X)


def annealed(k, averaging="auto"):
    return lambda seed: AnnealedSubsetRegressor(k, averaging=averaging, random_state=seed)


METHODS = {
    "auto": annealed("auto"),
    "auto, coef": annealed("auto", False),
    "evidence": annealed("evidence"),
    "cv": annealed("cv"),
    "cv, averaged": annealed("cv", True),
    "cv_min": annealed("cv_min"),
    "cv_min, averaged": annealed("cv_min", True),
    "LassoCV": lambda seed: LassoCV(max_iter=100_000),
    "RidgeCV": lambda seed: RidgeCV(np.geomspace(1e-4, 1e5, 30)),
    "OMP": lambda seed: OrthogonalMatchingPursuitCV(),
    "abess": lambda seed: Abess(),
    "MCP": lambda seed: MCP(),
}
# Pairs that differ in what predicts but not in the fit: the fit of the first serves both.
SAME_FIT = {"auto, coef": "auto", "cv, averaged": "cv", "cv_min, averaged": "cv_min"}


def installed(console):
    left_out = []
    for name, package in (("abess", "abess"), ("MCP", "skglm")):
        try:
            __import__(package)
        except ImportError as error:
            left_out.append(name)
            console.print(f"{name} is left out: {error}")
    return {name: make for name, make in METHODS.items() if name not in left_out}


# ---------------------------------------------------------------- cross-validation


def cross_validate(X, y, methods, repeats):
    """Errors, columns and seconds of each method by fold, and the standardised errors of "auto"."""
    X = np.asarray(X, dtype=float)
    outcome = {name: [] for name in methods}
    deviations = []
    folds = RepeatedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=0)
    for i, (train, test) in enumerate(folds.split(X)):
        scale = StandardScaler().fit(X[train])
        A, B = scale.transform(X[train]), scale.transform(X[test])
        models = {}
        for name, make in methods.items():
            began = time.process_time()
            twin = models.get(SAME_FIT.get(name))
            if twin is not None:
                model = make(i)
                model.__dict__ = {**twin.__dict__, "averaging": model.averaging}
            else:
                model = make(i).fit(A, y[train])
            seconds = time.process_time() - began
            models[name] = model
            error = np.mean((y[test] - model.predict(B)) ** 2) / y.var()
            outcome[name].append((error, np.count_nonzero(model.coef_), seconds))
        mean, std = models["auto"].predict(B, return_std=True)
        deviations.append((y[test] - mean) / std)
    return {name: np.array(rows) for name, rows in outcome.items()}, np.concatenate(deviations)


def paired(a, b):
    """Mean difference b − a and its corrected standard error."""
    d = b - a
    return d.mean(), np.sqrt(d.var(ddof=1) * (1.0 / d.size + 1.0 / (FOLDS - 1)))


def simulated(n_sets, rho, rng):
    """Standardised errors on new rows of simulated data: 80 rows, 100 correlated columns, 5 effects."""
    deviations = []
    for seed in range(n_sets):
        X = rng.standard_normal((280, 100))
        for j in range(1, 100):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
        beta = np.zeros(100)
        beta[rng.choice(100, 5, replace=False)] = rng.standard_normal(5)
        y = 3.0 + X @ beta + rng.standard_normal(280)
        model = AnnealedSubsetRegressor(random_state=seed).fit(X[:80], y[:80])
        mean, std = model.predict(X[80:], return_std=True)
        deviations.append((y[80:] - mean) / std)
    return np.array(deviations)


def coverage(deviations):
    """Part of the deviations within each level."""
    return [np.mean(np.abs(deviations) <= norm.ppf(0.5 + level / 2)) for level in LEVELS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2, help="of the five-fold cross-validation")
    parser.add_argument("--simulations", type=int, default=25)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=[*TABLES, *LONG])
    given = parser.parse_args()
    print_origin()
    console = Console(width=110)
    methods = installed(console)
    warnings.filterwarnings("ignore")  # of the peers' convergence, and of 0 and 1 as a target
    AnnealedSubsetRegressor("cv", random_state=0).fit(np.eye(12, 3), np.arange(12.0))  # compile
    intervals = Table("rows", *(f"{level:.0%}" for level in LEVELS))
    for name in given.tables:
        try:
            X, y = (TABLES | LONG)[name]()
        except PackageNotFoundError:
            console.print(f"{name} is left out: the tables of ISLP are not installed")
            continue
        outcome, deviations = cross_validate(X, y, methods, given.repeats)
        table = Table("method", "error", "against auto", "columns", "seconds")
        table.title = f"{name}: {X.shape[0]} rows, {X.shape[1]} columns"
        for method, rows in outcome.items():
            difference, error = paired(outcome["auto"][:, 0], rows[:, 0])
            against = "" if method == "auto" else f"{difference:+.4f} ± {error:.4f}"
            seconds = outcome[SAME_FIT.get(method, method)][:, 2].mean()
            table.add_row(
                method,
                f"{rows[:, 0].mean():.4f}",
                against,
                f"{rows[:, 1].mean():.1f}",
                f"{seconds:.2f}",
            )
        parts = [f"{part:.3f}" for part in coverage(deviations)]
        table.caption = f"left-out rows within the intervals of 50, 80, 95 %: {', '.join(parts)}"
        console.print(table)
        intervals.add_row(name, *parts)
    rng = np.random.default_rng(0)
    for rho in (0.0, 0.8):
        each = simulated(given.simulations, rho, rng)
        spread = [
            np.std([coverage(one)[i] for one in each], ddof=1) / np.sqrt(len(each))
            for i in range(len(LEVELS))
        ]
        cells = [f"{part:.3f} ± {s:.3f}" for part, s in zip(coverage(each.ravel()), spread)]
        intervals.add_row(f"simulated, correlation {rho:g}", *cells)
    console.print(intervals)


if __name__ == "__main__":
    main()
