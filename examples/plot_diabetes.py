"""
Diabetes data: a few columns predict as well as the many of the lasso
=====================================================================

The target is the progress of diabetes in 442 patients. The columns are ten measurements of each
patient and all their squares and products, 64 in total. `subset_path` finds the best subset of every
size and cross-validates it, with the columns selected anew in each fold. `AnnealedSubsetRegressor`
gives the probability of each column. The lasso is cross-validated in the same folds for comparison.

The example takes less than a minute; with ``L0ANNEAL_QUICK=1`` it uses fewer folds. The data come with
scikit-learn.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV, lasso_path
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures

from l0anneal import AnnealedSubsetRegressor, choose_size, subset_path

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
N_FOLDS, MAX_NONZERO = (3, 10) if QUICK else (10, 20)
N_SHOWN = 16
MEANINGS = {
    "s1": "cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol/HDL",
    "s5": "log-triglycerides",
    "s6": "glucose",
}
BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Scale the columns to unit standard deviation, form squares and products, and scale these again. The
# square of sex is dropped, because sex has two values and its square adds nothing.

data = load_diabetes(as_frame=True, scaled=False)
single = ((data.data - data.data.mean()) / data.data.std()).rename(columns=MEANINGS)
expand = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
X = expand.fit_transform(single).drop(columns="sex^2")
X = (X - X.mean()) / X.std()
y = data.target

# %%
# Find the best subset of every size, and the probability of every column over subsets of all sizes.

folds = KFold(N_FOLDS, shuffle=True, random_state=0)
path = subset_path(X, y, MAX_NONZERO, cv=folds, random_state=0)
chosen = {
    criterion: choose_size(path, criterion) for criterion in ("evidence", "bic", "ebic", "cv")
}
model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
for criterion, k in chosen.items():
    print(f"{criterion}: k = {k}:", ", ".join(X.columns[path.support(k)]))

# %%
# Cross-validate the lasso in the same folds. Its number of columns is that of the fit to all rows.

lasso = LassoCV(cv=folds, max_iter=100_000, eps=1e-2).fit(X, y)
_, coefs, _ = lasso_path(X, y - y.mean(), alphas=lasso.alphas_, max_iter=100_000)
lasso_sizes = np.count_nonzero(coefs, axis=0)
lasso_errors = lasso.mse_path_.mean(axis=1)
kept = np.count_nonzero(lasso.coef_)
best = int(np.argmin(path.criteria["cv"]))
print(f"lasso: {kept} columns, mean squared error {lasso_errors.min():.0f}")
print(f"subsets: {path.sizes[best]} columns, {path.criteria['cv'][best]:.0f}")

# %%
# Draw the picture.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
left.errorbar(
    path.sizes[1:],
    path.criteria["cv"][1:],
    path.cv_error[1:],
    marker="o",
    color=BLUE,
    capsize=2,
    label="best subset of each size, l0anneal",
)
shown = [k for k in np.unique(lasso_sizes) if 0 < k <= MAX_NONZERO]
lowest = [lasso_errors[lasso_sizes == k].min() for k in shown]
spread = lasso.mse_path_.std(axis=1, ddof=1) / np.sqrt(N_FOLDS)
left.plot(shown, lowest, "s-", ms=4, color=ORANGE, label="lasso, best penalty for each size")
at = int(np.argmin(lasso_errors))
if kept <= MAX_NONZERO:
    left.errorbar(
        kept,
        lasso_errors[at],
        spread[at],
        fmt="s",
        ms=9,
        mfc="none",
        color=ORANGE,
        capsize=2,
        label=f"LassoCV's choice: {kept} columns",
    )
by_size = {}
for criterion, k in chosen.items():
    by_size.setdefault(k, []).append(
        {"bic": "BIC", "ebic": "extended BIC"}.get(criterion, criterion)
    )
for (k, criteria), style in zip(sorted(by_size.items()), (":", "--", "-.", "-")):
    left.axvline(k, color="0.4", ls=style, lw=1.2, label=f"k = {k} by {', '.join(criteria)}")
left.set(
    xlabel="number of columns, k",
    ylabel="mean squared error, cross-validated (± standard error)",
    title=f"How many of {X.shape[1]} columns",
)
left.xaxis.get_major_locator().set_params(integer=True)
left.grid(alpha=0.3)
left.set_ylim(None, np.max((path.criteria["cv"] + path.cv_error)[1:]) * 1.15)  # k = 0 is not shown
left.legend(framealpha=1, edgecolor="none", loc="upper right")

order = np.argsort(-model.inclusion_probability_)[:N_SHOWN]
names = [name.replace(" ", " × ").replace("^2", "²") for name in X.columns[order]]
in_lasso = lasso.coef_[order] != 0
place = np.arange(N_SHOWN)
right.barh(place, model.inclusion_probability_[order], color=BLUE, label="probability, l0anneal")
right.plot(np.full(in_lasso.sum(), 1.04), place[in_lasso], "s", color=ORANGE, label="in the lasso")
right.set_yticks(place, names)
right.invert_yaxis()
right.axvline(0.5, color="0.4", lw=1, ls=":")
right.set(
    xlabel="probability that the column belongs to the model",
    xlim=(0, 1.08),
    title=f"Which, and how sure: the {N_SHOWN} most probable",
)
right.legend(frameon=False, loc="lower right", bbox_to_anchor=(0.95, 0))
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to conclude
# ----------------
# A few of the 64 columns predict as well as the many that the lasso keeps, within the error bars. How
# many exactly is not sharply determined: the curve is flat around its minimum, and the criteria need
# not choose the same size. The probabilities say which columns are certain; report those of the
# others along with them, rather than the chosen columns alone.
