"""
The best three genes are partly chance, and subsamples show it
==============================================================

The expression of 2308 genes was measured in 63 small round blue cell tumours of childhood (Khan et
al., 2001), and in 20 more that are set aside for the test. Which three genes distinguish Ewing
sarcomas from the other three kinds? With so few tumours, many triples of genes fit nearly as well as
the best one. This example shows how to notice that. It compares the posterior probability of each
gene with the choices made from random four fifths of the tumours, and tests these choices on the
tumours that were set aside.

The two measures of certainty need not agree. The posterior takes the tumours as given and the model
as true. The subsamples show how the choice depends on the tumours. Believe the more modest of the
two.

The example takes less than a minute; with ``L0ANNEAL_QUICK=1`` it draws fewer subsamples. It needs
pandas and the data of ISLP: ``pip install '.[examples]'; pip install --no-deps
'ISLP>=0.4,<0.5'``.
"""

import os
from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter
from sklearn.model_selection import StratifiedShuffleSplit

from l0anneal import AnnealedSubsetRegressor, diagnose, subset_path

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
N_SUBSAMPLES = 2 if QUICK else 50
KINDS = {1: "Burkitt lymphoma", 2: "Ewing sarcoma", 3: "neuroblastoma", 4: "rhabdomyosarcoma"}
TARGET = 2
K = 3
N_SHOWN = 10
COLOURS = dict(zip(KINDS, ("#E69F00", "#0072B2", "#009E73", "#CC79A7")))
MARKS = dict(zip(KINDS, "s^Dv")) | {TARGET: "o"}


def read(name):
    """Read a table of ISLP without importing the package, which would need PyTorch."""
    path = distribution("ISLP").locate_file(f"ISLP/data/Khan_{name}.csv")
    return pd.read_csv(path).to_numpy()


# %%
# The target is 1 for Ewing sarcomas and −1 for the other kinds, so the fit is a linear discriminant.

X, X_test = read("xtrain"), read("xtest")
kind, kind_test = read("ytrain").ravel(), read("ytest").ravel()
y = np.where(kind == TARGET, 1.0, -1.0)

# %%
# Find the best three genes for all tumours, and the posterior probabilities over all triples.

model = AnnealedSubsetRegressor(K, n_chains=2, random_state=0).fit(X, y)
probability = model.inclusion_probability_
print("best three genes:", *model.support_)
print(diagnose(model.result_))

# %%
# Find the best three genes for random four fifths of the tumours, and classify the test tumours by
# each of these choices.

subsamples = StratifiedShuffleSplit(N_SUBSAMPLES, train_size=0.8, random_state=0).split(X, kind)
frequency = np.zeros(X.shape[1])
scores = []
for rows, _ in subsamples:
    path = subset_path(X[rows], y[rows], K, random_state=0)
    frequency[path.supports[-1]] += 1 / N_SUBSAMPLES
    scores.append(X_test @ path.coefs[-1] + path.intercepts[-1])
scores = np.array(scores)
right = (scores > 0) == (kind_test == TARGET)
print(f"{np.count_nonzero(frequency)} different genes in {N_SUBSAMPLES} choices of {K}")
print(
    f"test tumours classified correctly: {right.mean():.0%} on average, "
    f"{right.mean(axis=1).min():.0%} at worst"
)
together = (scores.mean(axis=0) > 0) == (kind_test == TARGET)
print(f"by the mean of all choices: {together.sum()} of {together.size}")

# %%
# Draw the picture.

figure, (left, axes) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
order = np.argsort(-(frequency + 1e-3 * probability))[:N_SHOWN]
error = np.sqrt(frequency[order] * (1 - frequency[order]) / N_SUBSAMPLES)
place = np.arange(N_SHOWN)
left.barh(
    place,
    frequency[order],
    xerr=np.minimum(error, frequency[order]),
    color="#56B4E9",
    ecolor="0.3",
    capsize=3,
    label=f"chosen in {N_SUBSAMPLES} subsamples (± standard error)",
)
left.plot(probability[order], place, "D", color="#D55E00", label="posterior, all tumours")
left.set_yticks(place, [f"gene {j}" for j in order])
left.invert_yaxis()
left.set(
    xlabel=f"share of the choices of {K} genes that have it, or probability",
    xlim=(0, 1.03),
    title=f"Few of {X.shape[1]} genes are sure: {np.count_nonzero(frequency)} were chosen at least once",
)
left.xaxis.set_major_formatter(PercentFormatter(1.0, 0))
left.legend(frameon=False, loc="lower right")

by_kind = np.lexsort((scores.mean(axis=0), kind_test, kind_test != TARGET))
for i, tumour in enumerate(by_kind):
    low, high = np.percentile(scores[:, tumour], (5, 95))
    colour, mark = COLOURS[kind_test[tumour]], MARKS[kind_test[tumour]]
    axes.plot((i, i), (low, high), color=colour, lw=2)
    axes.plot(i, scores[:, tumour].mean(), mark, color=colour)
for number, name in sorted(KINDS.items(), key=lambda item: item[0] != TARGET):
    axes.plot([], [], MARKS[number], color=COLOURS[number], label=name)
axes.axhline(0, color="0.3", lw=1, ls="--")
axes.set_xticks(np.arange(len(by_kind)), by_kind)
axes.set(
    xlabel="test tumour",
    ylabel="score (mean; bar: 5 to 95 % of the subsamples)",
    title=f"Above 0 it is said to be an {KINDS[TARGET]}: {together.sum()} of {together.size} right",
)
low, high = axes.get_ylim()
axes.set_ylim(low, high + 0.25 * (high - low))  # leaves room for the legend
axes.legend(frameon=False, ncols=2, loc="upper right")
for panel in (left, axes):
    panel.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to conclude
# ----------------
# With far more genes than tumours, the best three genes are partly chance: other tumours give other
# genes. A high posterior probability holds for these tumours and this model only, so report the
# frequencies in subsamples as well, and believe the more modest of the two. The predictions are more
# certain than the genes: the mean over the choices classifies the tumours that were set aside nearly
# all correctly.
