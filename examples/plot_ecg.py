"""
A heartbeat needs fewer atoms if atoms can be exchanged
=======================================================

An electrocardiogram of 1024 points, which comes with PyWavelets, is approximated by k atoms of an
overcomplete dictionary. The dictionary joins two orthonormal bases: wavelets, which suit the spikes,
and cosines, which suit the slow waves. Orthogonal matching pursuit chooses one atom after another and
never removes one. `sparse_encode` exchanges atoms, and leaves local minima by random kicks. Left: the
error of both methods, and of wavelets alone. Right: the signal and its approximation, and below them
the two parts of the approximation, wavelets and cosines.

The example takes less than a minute; with ``L0ANNEAL_QUICK=1`` it uses fewer values of k and fewer
kicks. It needs PyWavelets: ``pip install '.[examples]'``.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import pywt
import scipy.fft
from matplotlib.ticker import NullLocator
from sklearn.linear_model import orthogonal_mp_gram

from l0anneal import sparse_encode

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
SIZES = (20, 40) if QUICK else (5, 10, 20, 30, 40, 50, 60, 70, 80)
N_KICKS = 50 if QUICK else 1000
SHOWN = 40
BLACK, BLUE, ORANGE, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"


def wavelets(n, name="sym4", level=6):
    """Return an orthonormal basis of n periodic wavelets, as rows."""
    zeros = pywt.wavedec(np.zeros(n), name, "periodization", level)
    _, places = pywt.coeffs_to_array(zeros)
    return np.array(
        [
            pywt.waverec(pywt.array_to_coeffs(one, places, "wavedec"), name, "periodization")
            for one in np.eye(n)
        ]
    )


def rms(residual):
    """Return the root mean square, in the units of the recording."""
    return np.sqrt(np.mean(residual**2))


# %%
# Subtract the mean from the signal, and build the dictionary.

signal = pywt.data.ecg().astype(float)
signal -= signal.mean()
n = signal.size
basis = wavelets(n)
dictionary = np.vstack((basis, scipy.fft.idct(np.eye(n), norm="ortho", axis=1)))

# %%
# Compare the methods at the same k. In a single orthonormal basis the best k atoms are simply those
# with the largest coefficients.

gram, correlation = dictionary @ dictionary.T, dictionary @ signal
in_basis = np.sort((basis @ signal) ** 2)[::-1]
alone, pursuit, ours = (
    "wavelets alone",
    "wavelets and cosines, OMP",
    "wavelets and cosines, l0anneal",
)
errors = {alone: [], pursuit: [], ours: []}
for k in SIZES:
    omp = orthogonal_mp_gram(gram, correlation, n_nonzero_coefs=k)
    code = sparse_encode(signal[None], dictionary, k, n_kicks=N_KICKS, random_state=0)[0]
    errors[alone].append(np.sqrt(in_basis[k:].sum() / n))
    errors[pursuit].append(rms(signal - omp @ dictionary))
    errors[ours].append(rms(signal - code @ dictionary))
    if k == SHOWN:
        shown = code
    print(f"k = {k:2d}: " + "; ".join(f"{name} {e[-1]:.2f}" for name, e in errors.items()))

# %%
# Draw the picture.

figure = plt.figure(figsize=(12, 5), layout="constrained")
panels = figure.subplot_mosaic(
    [["error", "signal"], ["error", "parts"]], width_ratios=(1, 1.6), height_ratios=(1.3, 1)
)
error, top, below = panels["error"], panels["signal"], panels["parts"]
for (name, values), mark, colour in zip(errors.items(), "^so", (GREEN, ORANGE, BLUE)):
    error.plot(SIZES, values, marker=mark, color=colour, label=name)
error.set(
    xlabel="atoms, k",
    ylabel="error, root mean square (units of the recording)",
    title=f"{n} points, {len(dictionary)} atoms",
    yscale="log",
)
error.set_yticks((3, 5, 10, 20, 30), labels=("3", "5", "10", "20", "30"))
error.yaxis.set_minor_locator(NullLocator())
error.legend(frameon=False)
error.grid(alpha=0.3)
is_wavelet = np.arange(len(dictionary)) < n
time = np.arange(n)
top.plot(time, signal, color="0.6", lw=2.5, label="recorded")
top.plot(time, shown @ dictionary, color=BLUE, lw=1, label=f"{SHOWN} atoms, l0anneal")
top.set(ylabel="signal (units\nof the recording)")
top.set_title(
    f"The signal, rms {rms(signal):.1f}, and its approximation, rms error "
    f"{rms(signal - shown @ dictionary):.1f}"
)
for kind, mask, colour in (("wavelets", is_wavelet, BLACK), ("cosines", ~is_wavelet, ORANGE)):
    part = np.where(mask, shown, 0.0)
    below.plot(
        time,
        part @ dictionary,
        color=colour,
        lw=1,
        ls="-" if kind == "wavelets" else "--",
        label=f"{np.count_nonzero(part)} {kind}",
    )
below.set(xlabel="sample number", ylabel="its two parts\n(same units)")
for axes in (top, below):
    axes.legend(frameon=False, loc="upper right", ncols=2)
    axes.set_xlim(0, n)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))  # leaves room for the legend
top.sharex(below)
top.tick_params(labelbottom=False)
for axes in panels.values():
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to conclude
# ----------------
# A dictionary of two kinds of atoms pays off only with a search. OMP gains little from the second
# kind, because it cannot remove an atom that it has chosen. Exchanges of atoms find smaller errors
# with the same number of atoms, or fewer atoms for the same error. With few atoms the methods differ
# little.
