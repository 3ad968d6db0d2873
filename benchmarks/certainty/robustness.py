"""Robustness: how much it costs that the prior is not the truth, in the eight regimes.

1. The log loss of the default sampler is at most 1.1 times that of the sampler told the true density.
2. In every bin with at least 20 columns, the mean probability lies within .05 of the 95 % bootstrap
   band of the true fraction.
3. In such bins above .9, the upper end of the band is not below .85.
"""

import numpy as np
from answers import collect, paired
from judging import EDGES, by_bin, log_loss, ratio_band, reliability
from regimes import N_DATA_SETS, REGIMES
from sampler import default, told

from tables import print_bins, verdict

MOST_LOSS, MARGIN, LEAST_COLUMNS = 1.1, 0.05, 20
SURE, LEAST_TRUE = 0.9, 0.85


def judge(columns, said, low, high):
    """Return whether each bin keeps the rules; None for a bin with too few columns."""
    judged = []
    for b in range(EDGES.size - 1):
        if columns[b] < LEAST_COLUMNS:
            judged.append(None)
            continue
        near = low[b] - MARGIN <= said[b] <= high[b] + MARGIN
        judged.append(bool(near and (EDGES[b] < SURE or high[b] >= LEAST_TRUE)))
    return judged


def main(store, n_data_sets=None, minutes=None):
    """Print the ratio of log losses and the bins of each regime."""
    n = n_data_sets or N_DATA_SETS

    def make(name, i):
        return REGIMES[name].data_set(i, store)

    complete = collect(store, "default", REGIMES, n, make, default, minutes)
    complete = complete and collect(store, "told", REGIMES, n, make, told, minutes)
    if not complete:
        return
    passed = True
    for name, regime in REGIMES.items():
        pairs = paired(store, ("default", "told"), name, n, make)
        truths = [data.truth for data, _ in pairs]
        scored = {
            method: [answers[method].scored for _, answers in pairs]
            for method in ("default", "told")
        }
        losses = {
            method: np.array([log_loss(p, truth) for p, truth in zip(found, truths)])
            for method, found in scored.items()
        }
        ratio, low, high = ratio_band(losses["default"], losses["told"])
        shape = "{} × {}".format(*regime.shape)
        print(f"\nrobustness, {name}: {len(pairs)} data sets, {shape}, {regime.n_true} true")
        means = [losses[method].mean() for method in ("default", "told")]
        print(
            f"log loss {means[0]:.2f}, told the density {means[1]:.2f}; ratio {ratio:.3f} "
            f"({low:.3f}–{high:.3f}): {verdict(ratio <= MOST_LOSS)}"
        )
        bins = reliability(by_bin(scored["default"], truths))
        columns, said, _, low, high = bins
        judged = judge(columns, said, low, high)
        print_bins(*bins, judged)
        states = [answers["default"].state for _, answers in pairs]
        counts = ", ".join(f"{state} {states.count(state)}" for state in sorted(set(states)))
        withdrawn = sum(answers["default"].withdrawn for _, answers in pairs)
        seconds = np.mean([answers["default"].seconds for _, answers in pairs])
        print(f"states: {counts}; probabilities withdrawn: {withdrawn}; {seconds:.2f} s a fit")
        passed &= bool(ratio <= MOST_LOSS) and False not in judged
    print(f"\nrobustness: {verdict(passed)}")
