"""Noise only: in how many data sets without a true column does some column get more than one half?

50 data sets in each of the eight designs; at most 12 of the 400, and at most 4 in any design.
"""

from answers import collect, paired
from regimes import N_NOISE, REGIMES
from sampler import plain

from tables import verdict

MOST, MOST_IN_ONE = 12, 4


def main(store, n_data_sets=None, minutes=None):
    """Print the false alarms of each design."""
    n = min(n_data_sets or N_NOISE, N_NOISE)

    def make(name, i):
        return REGIMES[name].noise(i, store)

    if not collect(store, "noise", REGIMES, n, make, plain, minutes):
        return
    print("\nnoise only  data sets  with a column above ½  columns above ½  seconds")
    alarms = {}
    for name in REGIMES:
        answers = [answers["noise"] for _, answers in paired(store, ("noise",), name, n, make)]
        above = [int((answer.scored > 0.5).sum()) for answer in answers]
        alarms[name] = sum(count > 0 for count in above)
        seconds = sum(answer.seconds for answer in answers) / len(answers)
        print(f"{name:10s}{len(answers):11d}{alarms[name]:23d}{sum(above):17d}{seconds:9.2f}")
    total, largest = sum(alarms.values()), max(alarms.values())
    passed = total <= MOST and largest <= MOST_IN_ONE
    print(f"{total} in all (≤ {MOST}), {largest} at most (≤ {MOST_IN_ONE}): {verdict(passed)}")
