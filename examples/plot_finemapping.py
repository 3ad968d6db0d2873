"""
Which variant is it? A credible set says how far the data decide
================================================================

Neighbouring genetic variants are inherited together, so that a variant without any effect can be
associated with a trait as strongly as the one that matters. The association of each variant by itself
(its z-score) therefore does not tell which one it is. A credible set does: it is a small set of
correlated variants, one of which has an effect with a stated probability.

This example simulates the genomes of 2000 people with msprime, a trait on which three of the variants
have an effect, and what a study would publish about it: z-scores and correlations. From these alone it
finds the credible sets of one region, and then of many regions, to see whether the sets keep what they
promise.

The example takes about two minutes; with ``L0ANNEAL_QUICK=1`` it maps fewer regions. It needs msprime:
``pip install '.[examples]'``.
"""

import os
import sys

import matplotlib.pyplot as plt
import numpy as np

from l0anneal import Locus, SparseProblem, evidence_anneal, finemap

try:
    import msprime
except ModuleNotFoundError:
    sys.exit("this example needs msprime: pip install '.[examples]'")

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
N_REGIONS = 2 if QUICK else 40
N_PEOPLE = 2000
LENGTH = 200_000  # base pairs
N_EFFECTS = 3
EXPLAINED = 0.04  # share of the trait's variance
LEAST_FREQUENCY = 0.05
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")


def simulate(seed):
    """Return the positions and the genotypes (0, 1 or 2 copies) of the frequent variants."""
    ancestry = msprime.sim_ancestry(
        N_PEOPLE,
        sequence_length=LENGTH,
        recombination_rate=1e-8,
        population_size=10_000,
        random_seed=seed,
    )
    mutated = msprime.sim_mutations(
        ancestry, rate=1e-8, model=msprime.BinaryMutationModel(), random_seed=seed
    )
    copies = mutated.genotype_matrix()
    genotypes = (copies[:, 0::2] + copies[:, 1::2]).T.astype(float)
    frequency = genotypes.mean(axis=0) / 2
    kept = np.minimum(frequency, 1 - frequency) > LEAST_FREQUENCY
    return mutated.sites_position[kept], genotypes[:, kept]


def study(genotypes, seed):
    """Return the columns with effects, the z-scores of all columns, and their correlations."""
    rng = np.random.default_rng(seed)
    X = (genotypes - genotypes.mean(axis=0)) / genotypes.std(axis=0, ddof=1)
    true = np.sort(rng.choice(X.shape[1], N_EFFECTS, replace=False))
    value = X[:, true] @ rng.standard_normal(N_EFFECTS)
    value *= np.sqrt(EXPLAINED / value.var())
    trait = value + np.sqrt(1 - EXPLAINED) * rng.standard_normal(N_PEOPLE)
    r = X.T @ (trait - trait.mean()) / ((N_PEOPLE - 1) * trait.std(ddof=1))
    return true, r * np.sqrt((N_PEOPLE - 2) / (1 - r**2)), np.corrcoef(X.T)


# %%
# One region: the posterior from z-scores and correlations, and its credible sets.

position, genotypes = simulate(seed=1)
true, z, R = study(genotypes, seed=1)
result = evidence_anneal(SparseProblem.from_summary(z, R, N_PEOPLE), random_state=0)
probability = result.inclusion_probability
sets = result.credible_sets()
print(f"{z.size} variants; variants with an effect: {', '.join(map(str, true))}")
for number, found in enumerate(sets, start=1):
    print(
        f"set {number}: {found.columns.size} variants, probability {found.probability:.2f}, "
        f"smallest |r| {found.purity:.2f}, contains {np.intersect1d(found.columns, true)}"
    )

# %%
# Many regions: how many of the sets contain a variant with an effect, and how often the variant with
# the largest z-score is one.

loci, truth = [], {}
for seed in range(1, N_REGIONS + 1):
    true_columns, scores, correlations = study(simulate(seed)[1], seed)
    name = f"region {seed}"
    truth[name] = {str(j) for j in true_columns}
    loci.append(Locus(name, correlations, N_PEOPLE, z=scores))
mapped = finemap(loci, random_state=0)
print(mapped)

members, strongest = {}, {}
for row in mapped.columns():
    if row["set"] is not None:
        members.setdefault((row["locus"], row["set"]), set()).add(row["column"])
    if abs(row["z"]) > abs(strongest.get(row["locus"], {"z": 0.0})["z"]):
        strongest[row["locus"]] = row
n_covering = sum(bool(columns & truth[locus]) for (locus, _), columns in members.items())
with_sets = {locus for locus, _ in members}
n_right = sum(strongest[locus]["column"] in truth[locus] for locus in with_sets)
print(
    f"{n_covering} of {len(members)} sets contain a variant with an effect; the strongest association "
    f"is one in {n_right} of the {len(with_sets)} regions with a set"
)

# %%
# Draw the picture.

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(10, 6.4), sharex=True, layout="constrained", height_ratios=(3, 2)
)
place = position / 1000
for axes, height in ((top, probability), (bottom, np.abs(z))):
    axes.vlines(place, 0, height, color="0.8", lw=0.8)
    axes.plot(place, height, "o", ms=3.5, color="0.55")
    for number, found in enumerate(sets, start=1):
        colour = COLOURS[(number - 1) % len(COLOURS)]
        axes.vlines(place[found.columns], 0, height[found.columns], color=colour, lw=1.4)
        axes.plot(
            place[found.columns],
            height[found.columns],
            "o",
            ms=6,
            color=colour,
            label=f"set {number}: {found.columns.size} variants, purity {found.purity:.2f}",
        )
    axes.plot(
        place[true],
        height[true],
        "o",
        ms=12,
        mfc="none",
        mec="#D55E00",
        mew=1.6,
        label="has an effect",
    )
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
top.set(
    ylabel="probability of an effect",
    ylim=(0, 1.3 * probability.max()),  # leaves room for the legend
    title=f"One of each colour has an effect: {n_covering} of {len(members)} such sets keep the promise",
)
top.legend(frameon=False, fontsize=9, ncols=2)
n_strong = np.count_nonzero(np.abs(z) > 5.45)
bottom.axhline(5.45, color="0.3", lw=1, ls="--")
bottom.annotate("p = 5e-8", (0, 5.5), va="bottom", fontsize=9, color="0.3")
bottom.set(
    xlabel="position (thousands of base pairs)",
    ylabel="|z| of each variant by itself",
    title=f"The associations do not tell which: {n_strong} of {z.size} variants are significant",
)
plt.show()

# %%
# What to conclude
# ----------------
# The largest z-score often belongs to a bystander, and a significant one proves little about its
# variant. A credible set names the variants that the study cannot tell apart, and the sets keep what
# they promise. Read a set as "one of these", not as "all of these". More people, or people of other
# ancestry, make it smaller, but a longer search does not.
