"""
Many models are equally good: do not interpret just the one you fitted
======================================================================

If columns are correlated, hundreds of models can fit a table almost equally well, and the best one is
best by chance. The set of all models that are nearly as good as the best is called a Rashomon set. Its
members can tell different stories about the same data. This example lists such a set for the salaries
of 263 baseball players (Hitters, from *An Introduction to Statistical Learning*): the different models
among the draws of `evidence_anneal` whose R² is within 5 % of the best draw's.

Is this set complete? No: the sampler draws models by their probability, and R² is not a probability.
The example therefore fits *all* models of a size and counts.

It takes less than a minute; with ``L0ANNEAL_QUICK=1`` it counts the models of a smaller size. It needs
pandas and the data of ISLP: ``pip install '.[examples]'; pip install --no-deps
'ISLP>=0.4,<0.5'``.
"""

import os
from importlib.metadata import distribution
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from l0anneal import SparseProblem, evidence_anneal

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
NEAR = 0.05  # a model is equally good if its R² is at least 1 − NEAR times that of the best
COUNTED = 3 if QUICK else 6  # the size of which all models are fitted
N_SHOWN = 60
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.6"

# %%
# Read the table of ISLP without importing the package, which would need PyTorch.

table = distribution("ISLP").locate_file("ISLP/data/Hitters.csv")
players = pd.read_csv(table).dropna()
y = np.log(players.pop("Salary"))
X = pd.get_dummies(players, drop_first=True, dtype=float)
names = np.array([name.removesuffix("_N").removesuffix("_W") for name in X.columns])
Z = ((X - X.mean()) / X.std()).to_numpy()
target = ((y - y.mean()) / y.std()).to_numpy()
gram, correlation, total = Z.T @ Z, Z.T @ target, target @ target


def r_squared(supports):
    """Return R² of the least-squares fits on supports of the same size, one per row."""
    supports = np.asarray(supports)
    blocks = gram[supports[:, :, None], supports[:, None, :]]
    right = correlation[supports]
    return np.einsum("ij,ij->i", right, np.linalg.solve(blocks, right[..., None])[..., 0]) / total


# %%
# Draw supports from their posterior, keep each different one once, and fit it by least squares.

result = evidence_anneal(SparseProblem(Z, target), random_state=0)
draws = result.draws
weight = {}
for i in range(len(draws)):
    support = tuple(sorted(draws.support(i).tolist()))
    weight[support] = weight.get(support, 0.0) + draws.weight[i]
by_size = {}
for support in weight:
    if support:
        by_size.setdefault(len(support), []).append(support)
fit = {s: r for group in by_size.values() for s, r in zip(group, r_squared(group))}
best = max(fit.values())
equal = sorted((s for s in fit if fit[s] >= (1 - NEAR) * best), key=len)
print(f"{len(draws)} draws, {len(fit)} different models; the best R² is {best:.3f}")
print(
    f"{len(equal)} models are within {NEAR:.0%} of it, with {len(equal[0])} to {len(equal[-1])} columns"
)
print(f"the most frequent model has {max(weight.values()):.1%} of the probability")

# %%
# Which columns do the equally good models agree on?

share = np.mean([np.isin(np.arange(names.size), s) for s in equal], axis=0)
always, never = names[share == 1], names[share == 0]
print(
    f"in all of them: {', '.join(always) or 'no column'}; in none: {', '.join(never) or 'no column'}"
)
print(f"in some but not in others: {np.sum((share > 0) & (share < 1))} of {names.size} columns")

# %%
# Fit all models of one size, to see how many equally good ones there are, and how many were drawn.

everything = np.array(list(combinations(range(names.size), COUNTED)))
r_all = r_squared(everything)
near_all = r_all >= (1 - NEAR) * r_all.max()
drawn = {s for s in fit if len(s) == COUNTED}
n_drawn = sum(tuple(s) in drawn for s in everything[near_all].tolist())
best_drawn = tuple(everything[np.argmax(r_all)].tolist()) in drawn
print(
    f"of all {len(everything):,} models of {COUNTED} columns, {near_all.sum():,} are within {NEAR:.0%} "
    f"of the best of this size; {n_drawn} of these were drawn, "
    f"{'with' if best_drawn else 'without'} the best"
)

# %%
# Draw the picture. In the right panel each row is a model, and a dark cell is a column that it has.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(12.5, 6), width_ratios=(1, 1.35), layout="constrained"
)
jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(fit))
inside = np.array([r >= (1 - NEAR) * best for r in fit.values()])
size_of = np.array([len(s) for s in fit]) + jitter
values = np.array(list(fit.values()))
left.plot(size_of[~inside], values[~inside], ".", ms=4, color=GREY, label="other draws")
left.plot(
    size_of[inside],
    values[inside],
    ".",
    ms=4,
    color=BLUE,
    label=f"within {NEAR:.0%}: {len(equal)} models",
)
left.axhline(
    (1 - NEAR) * best, color=ORANGE, ls="--", lw=1.5, label=f"{1 - NEAR:.0%} of the best R²"
)
left.set(
    xlabel="number of columns (points are spread sideways)",
    ylabel="R², part of the variance explained",
    title=f"{len(fit)} different models were drawn",
)
left.xaxis.get_major_locator().set_params(integer=True)
left.legend(frameon=False, loc="lower right", markerscale=2)
left.grid(alpha=0.3)
left.spines[["top", "right"]].set_visible(False)
shown = sorted(sorted(equal, key=lambda s: -weight[s])[:N_SHOWN], key=lambda s: (len(s), s))
order = np.argsort(-share)
cells = np.array([np.isin(order, s) for s in shown])
right.imshow(~cells, cmap="gray", vmin=-0.35, vmax=1, aspect="auto", interpolation="none")
right.set_xticks(np.arange(names.size), [f"{names[j]}  {share[j]:.0%}" for j in order], rotation=90)
right.set(
    xlabel="column, and its share of the equally good models",
    ylabel="model, from few columns to many",
    title=f"The {len(shown)} most probable of the equally good models",
)
plt.show()

# %%
# What to conclude
# ----------------
# The posterior does not hide that many models are equally good; a single "best" model does. A column
# that all of them share would be a finding. A column that is in half of them is neither refuted by a
# model without it nor proved by a model with it: other columns stand in for it. If one of your
# columns is costly, or may not be used, look for an equally good model without it. The draws are a
# sample of the probable models, not a list of all that are near in R²: there are far more of these,
# and the best model of a size need not be drawn. If you need all of them, enumerate them, as above,
# while columns are few.
