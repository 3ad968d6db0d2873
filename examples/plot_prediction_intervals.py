"""
Prediction intervals keep their promise if they allow for the selection
=======================================================================

A common recipe is to select columns, to fit the chosen ones by least squares, and to report the
textbook's prediction intervals. These intervals pretend that the columns were known beforehand. The
search for columns has fitted a part of the noise as well: the residuals are too small, and new values
fall outside the intervals more often than stated. `AnnealedSubsetRegressor` averages over the subsets
that the data allow, and its ``predict(X, return_std=True)`` includes the uncertainty about the columns.

Both are tried on scikit-learn's diabetes data: ten measurements with their squares and products, 64
columns in all. Models are fitted to 100 of the 442 patients, and the other patients show how often the
intervals are right. The naive refit uses the best subset that BIC chooses, found by the same package,
so that the two differ only in what they do about the selection.

The example takes about a minute; with ``L0ANNEAL_QUICK=1`` it makes fewer splits.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import PolynomialFeatures

from l0anneal import AnnealedSubsetRegressor, choose_size, subset_path

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
N_SPLITS = 2 if QUICK else 12
N_TRAIN = 100
MAX_NONZERO = 20
LEVELS = np.array([0.5, 0.8, 0.9, 0.95])
N_SHOWN = 40
BLUE, ORANGE = "#0072B2", "#D55E00"

data = load_diabetes(as_frame=True)
expand = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
X = expand.fit_transform(data.data).drop(columns="sex^2").to_numpy()
y = data.target.to_numpy()


def naive(X, y, X_new):
    """Return predictions and half-widths for all levels, by least squares on the best subset."""
    path = subset_path(X, y, MAX_NONZERO, random_state=0)
    chosen = path.support(choose_size(path, "bic"))
    A, new = (np.column_stack((np.ones(len(Z)), Z[:, chosen])) for Z in (X, X_new))
    coef = np.linalg.lstsq(A, y, rcond=None)[0]
    freedom = len(A) - A.shape[1]
    variance = np.sum((y - A @ coef) ** 2) / freedom
    leverage = np.einsum("ij,ij->i", new, np.linalg.solve(A.T @ A, new.T).T)
    quantile = stats.t.ppf((1 + LEVELS) / 2, freedom)
    return new @ coef, np.outer(np.sqrt(variance * (1 + leverage)), quantile)


def averaged(X, y, X_new):
    """Return predictions and half-widths for all levels, averaged over subsets."""
    model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
    mean, std = model.predict(X_new, return_std=True)
    return mean, np.outer(std, stats.norm.ppf((1 + LEVELS) / 2))


# %%
# Fit both to many random choices of patients, and count how many of the other patients are within the
# intervals.

methods = {"selection ignored": naive, "selection included, l0anneal": averaged}
covered, width, error, example = ({name: [] for name in methods} for _ in range(4))
for train, test in ShuffleSplit(N_SPLITS, train_size=N_TRAIN, random_state=0).split(X):
    for name, method in methods.items():
        mean, half = method(X[train], y[train], X[test])
        covered[name].append(np.mean(np.abs(y[test] - mean)[:, None] <= half, axis=0))
        width[name].append(2 * half.mean(axis=0))
        error[name].append(np.mean((y[test] - mean) ** 2))
        example[name].append((y[test], mean, half))
for name in methods:
    rates = ", ".join(
        f"{rate:.1%} for {level:.0%}" for rate, level in zip(np.mean(covered[name], axis=0), LEVELS)
    )
    print(
        f"{name}: contain {rates}; width of the 95 % intervals {np.mean(width[name], axis=0)[-1]:.0f}, "
        f"rms error {np.sqrt(np.mean(error[name])):.1f}"
    )

# %%
# Draw the picture. The splits share patients, so the error bars are somewhat too short.

figure, (left, *panels) = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
marks = dict(zip(methods, ((ORANGE, "s", -0.4), (BLUE, "o", 0.4))))
left.plot((45, 100), (45, 100), color="0.4", lw=1, ls="--", label="as promised")
for name, (colour, mark, shift) in marks.items():
    rates = 100 * np.array(covered[name])
    left.errorbar(
        100 * LEVELS + shift,
        rates.mean(axis=0),
        rates.std(axis=0, ddof=1) / np.sqrt(N_SPLITS),
        marker=mark,
        color=colour,
        capsize=3,
        label=name,
    )
left.set(
    xlabel="level of the interval (%)",
    ylabel="held-out patients inside (%)",
    title=f"{N_SPLITS} splits, {N_TRAIN} patients to fit",
)
left.legend(frameon=False, loc="upper left")
for axes, (name, (colour, *_)) in zip(panels, marks.items()):
    truth, mean, half = example[name][0]
    rows = np.linspace(0, len(truth) - 1, N_SHOWN).astype(int)
    rows = rows[np.argsort(mean[rows])]
    place = np.arange(rows.size)
    inside = np.abs(truth - mean)[rows] <= half[rows, -1]
    axes.errorbar(
        place, mean[rows], half[rows, -1], fmt="none", ecolor=colour, alpha=0.6, capsize=2
    )
    axes.plot(place[inside], truth[rows][inside], "o", ms=4, color="0.3", label="inside")
    axes.plot(place[~inside], truth[rows][~inside], "X", ms=8, color="k", label="outside")
    share = np.mean(np.abs(truth - mean) <= half[:, -1])
    axes.set(
        xlabel="held-out patient, by prediction",
        ylabel="progress of the disease (score)",
        title=f"{name}:\n95 % intervals with {share:.0%} of the patients",
        ylim=(-120, 460),
    )
    axes.legend(frameon=False, loc="upper left", ncols=2)
for axes in (left, *panels):
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to conclude
# ----------------
# After a selection, the textbook's intervals are too narrow: they contain fewer new values than they
# promise at every level. The intervals of l0anneal contain about as many as they promise, and its
# predictions have a smaller error. They still assume noise of one variance that is roughly Gaussian;
# check the coverage on rows of your own in the same way.
