"""Is a column given probability p truly there a fraction p of the time?

Planted signals with noise; `evidence_anneal` is told nothing. The reliability diagram's bands come from
a bootstrap over instances. One joint test: with d_i the vector over bins of Σ (truth − p) of instance i,
n d̄ᵀ S⁻¹ d̄ is χ² with as many degrees of freedom as bins, whatever the dependence within an instance.
Bins that are expected to hold fewer than 5 columns of either kind are merged for it.
"""

import argparse
import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy import stats

from l0anneal import ensembles, evidence_anneal

LEAST = 5.0
EDGES = np.array([0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0])


# Each instance has a density of non-zeros of its own: were it always the same, a sampler that has to
# learn it from one instance could not be calibrated over all. "prior" is the law that the sampler
# supposes by default, under which its probabilities ought to be right; "log-uniform", which it does not
# suppose, is sparser: it shows what a wrong prior costs.
DENSITIES = {
    "prior": lambda rng: rng.beta(2, 25),
    "log-uniform": lambda rng: np.exp(rng.uniform(np.log(0.01), np.log(0.1))),
}


def collect(n_instances, densities="prior", first=0, n=200, alpha=0.5):
    """Inclusion probabilities and truths, by instance.

    Noise variances are log-uniform between .005 and .05.
    """
    p, truth = np.empty((n_instances, n)), np.empty((n_instances, n), dtype=bool)
    for i in range(n_instances):
        s = first + i
        rng = np.random.default_rng(s)
        rho_hat = DENSITIES[densities](rng)
        noise = np.exp(rng.uniform(np.log(0.005), np.log(0.05)))
        instance = ensembles.planted(n, alpha, rho_hat, 1.0, noise, random_state=1000 + s)
        result = evidence_anneal(instance.problem, random_state=s, n_draws=1000)
        p[i], truth[i] = result.inclusion_probability, instance.truth != 0
    return p, truth


def by_bin(p, truth):
    """Sums over each instance's columns in each bin: truth, p, and how many."""
    bins = np.clip(np.searchsorted(EDGES, p, side="right") - 1, 0, len(EDGES) - 2)
    return np.stack(
        [
            [np.where(bins == b, what, 0.0).sum(axis=1) for b in range(len(EDGES) - 1)]
            for what in (truth.astype(float), p, np.ones_like(p))
        ]
    ).transpose(0, 2, 1)


def merged(sums):
    """Neighbouring bins put together until each is expected to hold `LEAST` columns of either kind.

    Where fewer are expected, as where p is nearly 1, none may turn up, and then a variance measured
    over the instances is none.
    """
    total = sums.sum(axis=1)
    scarce = np.minimum(total[1], total[2] - total[1])
    groups, held = [[]], 0.0
    for b in range(total.shape[1]):
        if held >= LEAST:
            groups.append([])
            held = 0.0
        groups[-1].append(b)
        held += scarce[b]
    if held < LEAST and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return np.stack([sums[:, :, group].sum(axis=2) for group in groups], axis=2)


def joint_test(sums):
    """The statistic, its degrees of freedom, its p-value."""
    sums = merged(sums)
    d = sums[0] - sums[1]
    n, freedom = d.shape
    mean = d.mean(axis=0)
    statistic = n * mean @ np.linalg.solve(np.cov(d.T), mean)
    return statistic, freedom, stats.chi2.sf(statistic, freedom)


def main():
    """Print the table and the test; with ``--plot``, draw the diagram."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--densities", choices=DENSITIES, default="prior")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--plot")
    options = parser.parse_args()
    sums = by_bin(*collect(options.instances, options.densities, options.first))
    rng = np.random.default_rng(0)
    rows = rng.integers(options.instances, size=(1000, options.instances))
    boot = sums[:, rows].sum(axis=2)
    low, high = np.nanquantile(boot[0] / np.maximum(boot[2], 1), (0.025, 0.975), axis=0)
    total = sums.sum(axis=1)
    print("  p in bin     columns   mean p   truly there (95 % band)")
    for b in range(len(EDGES) - 1):
        print(
            f"{EDGES[b]:5.2f}–{EDGES[b + 1]:4.2f} {total[2, b]:11.0f} {total[1, b] / total[2, b]:8.3f}"
            f" {total[0, b] / total[2, b]:8.3f} ({low[b]:.3f}–{high[b]:.3f})"
        )
    statistic, freedom, chance = joint_test(sums)
    print(f"joint χ² = {statistic:.1f} with {freedom} degrees of freedom, p = {chance:.3f}")
    if options.plot:
        draw(options.plot, total, low, high, options.instances, chance)


def draw(path, total, low, high, n_instances, chance):
    """The reliability diagram."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfectly calibrated")
    x, y = total[1] / total[2], total[0] / total[2]
    ax.errorbar(x, y, [y - low, high - y], fmt="o", color="#0072B2", capsize=3, label="measured")
    ax.set(
        xlabel="inclusion probability given to a column",
        ylabel="fraction of such columns truly non-zero",
        title=f"{n_instances} noisy signals, joint χ² test p = {chance:.2f}",
    )
    ax.legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
