"""The law: on data from the sampler's own prior, a column said p must be true a fraction p of the time.

200 data sets in each of three shapes. The columns of the dictionaries are Gaussian, and neighbours are
correlated .5. One joint test of all bins in each shape; Holm's correction over the shapes. It passes
if the corrected p-values exceed .01.
"""

import zlib

import numpy as np
import regimes
from answers import collect, paired
from judging import by_bin, calibration_test, holm, reliability
from sampler import draw_from_prior, plain

from tables import print_bins, verdict

SHAPES = {"tall": (200, 50), "square": (100, 100), "wide": (50, 250)}
N_DATA_SETS = 200
LEVEL = 0.01


def make(shape, i):
    """Return data set i of a shape."""
    rng = np.random.default_rng([zlib.crc32(f"{shape} law".encode()), i])
    A = regimes.chain(rng, SHAPES[shape], i, None, r=0.5)
    return draw_from_prior(A, rng)


def joint_tests(sums_by_shape):
    """Return (F, bins, p-value, corrected p-value) by shape."""
    tests = {shape: calibration_test(sums) for shape, sums in sums_by_shape.items()}
    corrected = holm([chance for *_, chance in tests.values()])
    return {shape: (*found, c) for (shape, found), c in zip(tests.items(), corrected)}


def measure(store, n_data_sets=N_DATA_SETS, minutes=None):
    """Fit what is missing; return the sums by bin of each shape, or None if time ran out."""
    if not collect(store, "law", SHAPES, n_data_sets, make, plain, minutes):
        return None
    sums = {}
    for shape in SHAPES:
        pairs = paired(store, ("law",), shape, n_data_sets, make)
        probabilities = [answers["law"].scored for _, answers in pairs]
        sums[shape] = by_bin(probabilities, [data.truth for data, _ in pairs])
    return sums


def draw(path, sums, tests):
    """Draw the reliability diagram of each shape."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained", sharey=True)
    for ax, (shape, found) in zip(axes, tests.items()):
        columns, said, true, low, high = reliability(sums[shape])
        held = columns > 0
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfectly calibrated")
        error = np.stack([true - low, high - true])[:, held]
        ax.errorbar(
            said[held], true[held], error, fmt="o", color="#0072B2", capsize=3, label="measured"
        )
        size = "{} × {}".format(*SHAPES[shape])
        ax.set(xlabel="probability given to a column", title=f"{size}, joint p = {found[2]:.2f}")
    axes[0].set_ylabel("fraction of such columns truly non-zero")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(store, n_data_sets=None, minutes=None, plot=None):
    """Print the bins and the test of each shape; draw them if ``plot`` is a path."""
    sums = measure(store, n_data_sets or N_DATA_SETS, minutes)
    if sums is None:
        return
    tests = joint_tests(sums)
    if plot is not None:
        draw(plot, sums, tests)
    for shape, found in tests.items():
        size = "{} × {}".format(*SHAPES[shape])
        print(f"\nlaw, {shape}: {sums[shape].shape[1]} data sets, {size}")
        print_bins(*reliability(sums[shape]))
        f, bins, chance, corrected = found
        print(
            f"Hotelling's F = {f:.2f}, {bins} bins: p = {chance:.3f}, after Holm {corrected:.3f}"
            f" (> {LEVEL}): {verdict(corrected > LEVEL)}"
        )
