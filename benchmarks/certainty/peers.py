"""Against the peers, on the data sets that a peer has answered: paired differences of average precision.

No difference is below −2 standard errors after Holm's correction over all regimes and peers, that is,
no corrected one-sided p-value is below Φ(−2) = .023; the mean over the regimes is at least 0 for each
peer; and the seconds of processor time are fewer than millipede's in each regime.
"""

import numpy as np
from answers import collect, paired
from judging import average_precision, holm, one_sided, with_error
from regimes import N_DATA_SETS, REGIMES
from sampler import default
from scipy import stats

from tables import verdict

PEERS = ("susie", "millipede")
LEVEL = stats.norm.cdf(-2)


def main(store, n_data_sets=None, minutes=None):
    """Print a line for each regime and peer."""
    n = n_data_sets or N_DATA_SETS

    def make(name, i):
        return REGIMES[name].data_set(i, store)

    if not collect(store, "default", REGIMES, n, make, default, minutes):
        return
    rows = []
    for peer in PEERS:
        for name in REGIMES:
            pairs = paired(store, ("default", peer), name, n, make)
            if len(pairs) < 2:
                print(f"{peer}, {name}: fewer than two answers in the store; left out")
                continue
            precision, seconds = (
                {
                    method: np.array([f(data, answers[method]) for data, answers in pairs])
                    for method in ("default", peer)
                }
                for f in (_precision, _seconds)
            )
            rows.append((peer, name, precision, seconds))
    if not rows:
        return
    differences = [precision["default"] - precision[peer] for peer, _, precision, _ in rows]
    corrected = holm([one_sided(difference) for difference in differences])
    print("\npeer       regime   sets    ours   peer  difference ± s.e.  Holm p   seconds")
    for (peer, name, precision, seconds), difference, p in zip(rows, differences, corrected):
        mean, error = with_error(difference)
        print(
            f"{peer:10s} {name:8s}{difference.size:5d}{precision['default'].mean():8.3f}"
            f"{precision[peer].mean():7.3f}   {mean:+.3f} ± {error:.3f}{p:11.3f}"
            f"{seconds['default'].mean():6.2f}/{seconds[peer].mean():.2f}"
        )
    print(f"no difference below −2 s.e. after Holm: {verdict(np.all(corrected >= LEVEL))}")
    for peer in PEERS:
        means = [d.mean() for d, row in zip(differences, rows) if row[0] == peer]
        if means:
            mean = np.mean(means)
            print(f"mean difference from {peer} {mean:+.4f} (≥ 0): {verdict(mean >= 0)}")
    times = [(name, seconds) for peer, name, _, seconds in rows if peer == "millipede"]
    slower = [name for name, s in times if s["default"].mean() >= s["millipede"].mean()]
    if times:
        print(f"seconds below millipede's: {verdict(not slower)} {' '.join(slower)}")
    if len(rows) < len(PEERS) * len(REGIMES):
        print(f"incomplete: {len(rows)} of {len(PEERS) * len(REGIMES)} comparisons")


def _precision(data, answer):
    return average_precision(answer.scored, data.truth)


def _seconds(data, answer):
    return answer.seconds
