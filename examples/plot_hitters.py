"""
No subset explains a salary: average over subsets
=================================================

The salaries of 263 baseball players in 1987, with 19 columns about each player, are the classic
example of best subset selection (Hitters, from *An Introduction to Statistical Learning*). Many
columns carry nearly the same information: the more often a player bats, the more hits and runs he
has. The data then do not decide between subsets, and which subset is chosen is partly chance. Left:
how probable each column is, and its coefficient averaged over subsets. Right: how well each way to
choose columns predicts the salaries of held-out players.

The example takes about two minutes; with ``L0ANNEAL_QUICK=1`` it makes fewer splits. It needs pandas
and the data of ISLP: ``pip install '.[examples]'; pip install --no-deps 'ISLP>=0.4,<0.5'``.
"""

import os
from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator
from sklearn.linear_model import LassoCV, LinearRegression
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import ShuffleSplit

from l0anneal import AnnealedSubsetRegressor

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
N_SPLITS = 2 if QUICK else 20
BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Read the table of ISLP without importing the package, which would need PyTorch. Scale the columns to
# unit standard deviation, so that their coefficients can be compared.

table = distribution("ISLP").locate_file("ISLP/data/Hitters.csv")
players = pd.read_csv(table).dropna()
y = np.log(players.pop("Salary"))
X = pd.get_dummies(players, drop_first=True, dtype=float)
X = (X - X.mean()) / X.std()

# %%
# One fit gives both the columns with a probability above one half and the average over all subsets.

model = AnnealedSubsetRegressor(random_state=0).fit(X, y)
evidence = model.evidence_
sizes = np.arange(evidence.size_posterior.size)
mean = sizes @ evidence.size_posterior
deviation = np.sqrt(sizes**2 @ evidence.size_posterior - mean**2)
print(evidence.summary())

# %%
# Predict held-out players, with the same splits for all methods. The splits share players, so the
# error bars are somewhat too short.

models = {
    "all 19 columns": LinearRegression(),
    "LassoCV": LassoCV(cv=10, max_iter=100_000),
    "l0anneal, k by BIC": AnnealedSubsetRegressor("bic", random_state=0),
    "l0anneal, k by evidence": AnnealedSubsetRegressor("evidence", random_state=0),
    "l0anneal, averaged": AnnealedSubsetRegressor(random_state=0),
}
errors = {name: np.zeros(N_SPLITS) for name in [*models, "l0anneal, p > ½"]}
splits = ShuffleSplit(N_SPLITS, test_size=0.3, random_state=0)
for i, (train, test) in enumerate(splits.split(X)):
    for name, m in models.items():
        m.fit(X.iloc[train], y.iloc[train])
        errors[name][i] = root_mean_squared_error(y.iloc[test], m.predict(X.iloc[test]))
    columns_only = X.iloc[test] @ m.coef_ + m.intercept_  # the last fit, without averaging
    errors["l0anneal, p > ½"][i] = root_mean_squared_error(y.iloc[test], columns_only)
reference = errors["all 19 columns"]
for name, error in errors.items():
    change = np.mean(error - reference)
    print(f"{name}: rms error {error.mean():.3f}, minus that of all columns {change:+.3f}")

# %%
# Draw the picture.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained")
order = np.argsort(-model.inclusion_probability_)
place = np.arange(order.size)
left.errorbar(
    model.averaged_coef_[order],
    place,
    xerr=evidence.coef_std[order],
    fmt="o",
    color=BLUE,
    capsize=2,
    label="averaged over subsets, ± standard deviation",
)
chosen = np.isin(order, model.support_)
left.plot(
    model.coef_[order][chosen],
    place[chosen],
    "D",
    mfc="none",
    color=ORANGE,
    label=f"least squares on the {chosen.sum()} columns of p > ½",
)
left.set_yticks(place, [f"{X.columns[j]}  ({model.inclusion_probability_[j]:.2f})" for j in order])
left.invert_yaxis()
left.axvline(0, color="0.3", lw=0.8)
left.set(
    xlabel="log salary per standard deviation of the column",
    ylabel="column, C…: career (probability p that it belongs)",
    title=f"No clear subset: {mean:.0f} ± {deviation:.0f} of {order.size} columns",
    ylim=(order.size - 0.5, -2.8),  # leaves room for the legend
)
left.legend(loc="upper left", framealpha=1, edgecolor="none")
for i, (name, error) in enumerate(errors.items()):
    colour = BLUE if "averaged" in name else ORANGE if "l0anneal" in name else "0.4"
    change = error - reference
    right.errorbar(
        change.mean(),
        i,
        xerr=change.std(ddof=1) / np.sqrt(N_SPLITS),
        fmt="o",
        color=colour,
        capsize=3,
    )
right.set_yticks(np.arange(len(errors)), [f"{n}: {e.mean():.3f}" for n, e in errors.items()])
right.invert_yaxis()
right.axvline(0, color="0.3", lw=0.8)
right.set(
    xlabel="rms error in log salary, minus that of all columns\n"
    f"(mean over {N_SPLITS} splits, ± standard error; left is better)",
    title="Held-out players: error of each way to choose",
)
right.xaxis.set_major_locator(MaxNLocator(5))
for axes in (left, right):
    axes.grid(alpha=0.3, axis="x")
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to conclude
# ----------------
# If columns carry nearly the same information, do not present one subset as the answer. Report the
# probabilities, and predict with the average over subsets, which is better than least squares on any
# one of them. For predictions alone, LassoCV is as good here; what it does not give are the
# probabilities.
