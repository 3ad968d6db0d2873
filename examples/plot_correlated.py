"""
Correlated columns: credible sets say "one of these", where the lasso names bystanders
======================================================================================

In spectra, time series and genomes, neighbouring columns are nearly the same: here column i has a
correlation of .95 with column i + 1. Which of two such columns matters cannot be read off the data, and
a method that names single columns has to guess. LassoCV hedges by naming many. `evidence_anneal` gives
*credible sets* instead: of each set, at least one column matters with a probability of at least .95.

The tables are simulated, so that the truth is known: 200 rows, 80 columns, three of which matter, and
noise with the same variance as the signal.

The example takes less than a minute; with ``L0ANNEAL_QUICK=1`` it simulates a single table.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from l0anneal import SparseProblem, evidence_anneal

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
N_TABLES = 1 if QUICK else 12
N_ROWS, N_COLUMNS, N_TRUE = 200, 80, 3
CORRELATION, NOISE = 0.95, 1.0  # noise: its standard deviation, in units of that of the signal
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def simulate(seed):
    """Return a table with neighbouring columns correlated, a target, and the true coefficients."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, N_COLUMNS))
    for j in range(1, N_COLUMNS):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    true = np.zeros(N_COLUMNS)
    true[rng.choice(N_COLUMNS, N_TRUE, replace=False)] = rng.choice([-1.0, 1.0], N_TRUE)
    signal = X @ true
    return X, signal + NOISE * signal.std() * rng.standard_normal(N_ROWS), true


def fit(X, y):
    """Return the posterior, its credible sets (None if it declines), and the coefficients of LassoCV."""
    result = evidence_anneal(SparseProblem(X, y, intercept=True), random_state=0)
    try:
        sets = result.credible_sets()
    except ValueError:  # too few independent draws, or chains that disagree: there is no statement
        sets = None
    lasso = LassoCV(cv=5, max_iter=20_000, eps=1e-2).fit(X, y)
    return result, sets, lasso.coef_


# %%
# Simulate the tables, fit each by both methods, and look at the first one. Its sets are printed with the
# probability of each column.

tables = [simulate(seed) for seed in range(3, 3 + N_TABLES)]
fits = [fit(X, y) for X, y, _ in tables]
true = tables[0][2]
result, sets, lasso = fits[0]
print("columns that matter:", *np.flatnonzero(true))
for found in sets:
    print(found)
print(f"LassoCV names {np.count_nonzero(lasso)} columns")

# %%
# All tables: how many sets contain a column that matters, how large the sets are, and how many of the
# columns that LassoCV names matter. ``credible_sets`` declines to answer if the sampler's draws are too
# few for it; these tables are counted and left out for both methods.

n_sets = n_right = n_true_in_sets = n_declined = n_named_right = 0
widths, named = [], []
for (_, _, planted), (_, credible, coef) in zip(tables, fits):
    if credible is None:
        n_declined += 1
        continue
    matters = planted != 0
    n_sets += len(credible)
    n_right += sum(matters[one.columns].any() for one in credible)
    widths += [one.columns.size for one in credible]
    members = np.concatenate([one.columns for one in credible] or [np.zeros(0, dtype=int)])
    n_true_in_sets += matters[members].sum()
    named.append(np.count_nonzero(coef))
    n_named_right += np.count_nonzero(coef[matters])
n_tables = N_TABLES - n_declined
n_all = n_tables * N_TRUE
print(
    f"{n_declined} of {N_TABLES} tables without a statement, because independent draws were too few"
)
print(
    f"{n_tables} tables: {n_right} of {n_sets} sets contain a column that matters, with "
    f"{np.mean(widths):.1f} columns on average; they contain {n_true_in_sets} of the {n_all} columns "
    "that matter"
)
print(
    f"LassoCV names {np.mean(named):.0f} columns on average, {n_named_right / sum(named):.0%} of which "
    f"matter; they contain {n_named_right} of the {n_all}"
)

# %%
# Draw the picture.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 6.4), sharex=True, layout="constrained")
probability = result.inclusion_probability
columns = np.arange(N_COLUMNS)
top.vlines(columns, 0, probability, color="0.75", lw=1)
for number, found in enumerate(sets):
    low, high = found.columns.min(), found.columns.max()
    top.axvspan(
        low - 1, high + 1, color=GREEN, alpha=0.2, lw=0, label=None if number else "credible set"
    )
    top.vlines(found.columns, 0, found.weights, color=GREEN, lw=2.5)
planted = np.flatnonzero(true)
top.plot(planted, probability[planted], "o", ms=9, mfc="none", mew=1.8, color=BLUE, label="matters")
top.set(
    ylabel="probability that\nthe column matters",
    ylim=(0, 1.35),
    yticks=(0, 0.5, 1),
    title=f"l0anneal: {len(sets)} sets; in {n_tables} tables, {n_right} of {n_sets} sets contain "
    "a column that matters",
)
bystanders = np.flatnonzero((lasso != 0) & (true == 0))
bottom.vlines(
    bystanders, 0, lasso[bystanders], color=ORANGE, lw=2.5, label="named, does not matter"
)
bottom.vlines(planted, 0, lasso[planted], color=BLUE, lw=2.5, label="named, matters")
bottom.plot(
    planted, true[planted], "o", ms=9, mfc="none", mew=1.8, color=BLUE, label="matters: true value"
)
bottom.axhline(0, color="0.3", lw=0.8)
bottom.set(
    xlabel="column (neighbours are correlated)",
    ylabel="coefficient\n(units of y per unit of X)",
    ylim=(-1.25, 1.75),
    title=f"LassoCV: {np.count_nonzero(lasso)} columns; in {n_tables} tables, "
    f"{n_named_right / sum(named):.0%} of the columns it names matter",
)
for axes in (top, bottom):
    axes.legend(frameon=False, ncols=3, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to conclude
# ----------------
# Read a credible set as "one of these": it says how far the data decide, and it keeps its promise. A
# long set is not a failure of the search, because columns that are nearly the same cannot be told
# apart. The columns that LassoCV names are good for predictions, and most of the columns that matter
# are among them, but most of those that it names do not matter. Where the signal is too weak, there
# is no set at all, and a column that matters is in none: no set does not mean no effect.
