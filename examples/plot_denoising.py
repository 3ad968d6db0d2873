"""
Denoising: fewer atoms than OMP, and the picture is no worse
============================================================

A patch of a photograph is close to a combination of a few cosines; noise is not. To denoise a picture,
approximate every patch by as few atoms as bring its error down to the noise, and average the patches
where they overlap. Orthogonal matching pursuit (OMP) adds one atom after another until the error is
small enough. `sparse_encode` with ``tol`` then looks for a smaller set of atoms with the same error.

Sparser is not the same as better: the noise also has a sparsest approximation. The example therefore
measures both, the number of atoms and the error of the picture, against the clean photograph.

The photograph comes with scikit-learn. The example takes less than a minute; with ``L0ANNEAL_QUICK=1``
it uses a smaller piece of the picture and one level of noise.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.linear_model import orthogonal_mp_gram

from l0anneal import sparse_encode

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
WIDTH = 8
SIDE = 40 if QUICK else 96
NOISES = (20,) if QUICK else (10, 20, 40)  # standard deviations, in grey levels of 255
SHOWN = 20
N_KICKS = 3
ORANGE, BLUE = "#D55E00", "#0072B2"


def cosines(n=16):
    """Return an overcomplete separable cosine dictionary: n² unit atoms of WIDTH² pixels, as rows."""
    line = np.cos(np.pi * np.outer(np.arange(n), np.arange(WIDTH) + 0.5) / n)
    line[1:] -= line[1:].mean(axis=1, keepdims=True)
    line /= np.linalg.norm(line, axis=1, keepdims=True)
    return np.kron(line, line)


def code_by_omp(signals, dictionary, tol):
    """Return codes of the fewest atoms that orthogonal matching pursuit needs."""
    gram, correlation = dictionary @ dictionary.T, dictionary @ signals.T
    squares = np.sum(signals**2, axis=1)
    return orthogonal_mp_gram(gram, correlation, tol=tol, norms_squared=squares).T


def code_by_annealing(signals, dictionary, tol):
    """Return codes of the fewest atoms that exchanges and kicks find."""
    return sparse_encode(signals, dictionary, tol=tol, n_kicks=N_KICKS, random_state=0)


def denoise(picture, noise, code, dictionary):
    """Return the denoised picture, and the number of atoms of each patch."""
    windows = np.lib.stride_tricks.sliding_window_view(picture, (WIDTH, WIDTH))
    n, m = windows.shape[:2]
    patches = windows.reshape(n * m, -1)
    means = patches.mean(axis=1, keepdims=True)
    codes = code(patches - means, dictionary, noise**2 * (WIDTH**2 - 1))
    rebuilt = (means + codes @ dictionary).reshape(n, m, WIDTH, WIDTH)
    total, count = np.zeros_like(picture), np.zeros_like(picture)
    for i in range(WIDTH):
        for j in range(WIDTH):
            total[i : i + n, j : j + m] += rebuilt[:, :, i, j]
            count[i : i + n, j : j + m] += 1
    return total / count, np.count_nonzero(codes, axis=1)


def psnr(picture, other):
    """Return the peak signal-to-noise ratio in decibels; higher is better."""
    return 10 * np.log10(255**2 / np.mean((picture - other) ** 2))


# %%
# Add noise of a known standard deviation σ to a piece of the photograph, and denoise it with both
# coders. All patches are used, one for each pixel. The mean of a patch is kept, so that the noise that
# is left has 63 degrees of freedom, and the tolerance is 63 σ².

photograph = load_sample_image("china.jpg").mean(axis=2)
clean = photograph[120 : 120 + SIDE, 180 : 180 + SIDE]
dictionary = cosines()
coders = {"OMP": code_by_omp, "l0anneal": code_by_annealing}
rng = np.random.default_rng(0)
noisy, denoised, atoms = {}, {}, {}
for noise in NOISES:
    noisy[noise] = clean + noise * rng.standard_normal(clean.shape)
    for name, code in coders.items():
        denoised[name, noise], atoms[name, noise] = denoise(noisy[noise], noise, code, dictionary)
    print(
        f"σ = {noise}: noisy {psnr(clean, noisy[noise]):.2f} dB; "
        + "; ".join(
            f"{name} {psnr(clean, denoised[name, noise]):.2f} dB, "
            f"{atoms[name, noise].mean():.2f} atoms per patch"
            for name in coders
        )
    )

# %%
# How many atoms are saved, and what it does for the picture.

saved = {s: 1 - atoms["l0anneal", s].sum() / atoms["OMP", s].sum() for s in NOISES}
gain = {s: psnr(clean, denoised["l0anneal", s]) - psnr(clean, denoised["OMP", s]) for s in NOISES}
for noise in NOISES:
    fewer = np.mean(atoms["l0anneal", noise] < atoms["OMP", noise])
    print(
        f"σ = {noise}: {saved[noise]:.1%} of the atoms saved, {fewer:.0%} of the patches have fewer; "
        f"the picture changes by {gain[noise]:+.2f} dB"
    )

# %%
# Draw the pictures, and the atoms that each patch needs.

figure = plt.figure(figsize=(12, 6.8), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
shown = {
    "clean": clean,
    f"noisy, σ = {SHOWN}": noisy[SHOWN],
    "OMP": denoised["OMP", SHOWN],
    "l0anneal": denoised["l0anneal", SHOWN],
}
for axes, (name, picture) in zip(top.subplots(1, 4), shown.items()):
    axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axes.set_title(name if picture is clean else f"{name}: {psnr(clean, picture):.2f} dB")
    axes.set_axis_off()
left, right = bottom.subplots(1, 2)
most = int(max(atoms["OMP", SHOWN].max(), atoms["l0anneal", SHOWN].max()))
for name, colour, style in (("OMP", ORANGE, "--"), ("l0anneal", BLUE, "-")):
    counts = np.bincount(atoms[name, SHOWN], minlength=most + 1)
    share = 100 * (counts.sum() - np.cumsum(counts) + counts) / counts.sum()
    label = f"{name}, {atoms[name, SHOWN].mean():.2f} on average"
    left.step(np.arange(most + 1), share, style, where="mid", color=colour, label=label)
left.set(
    xlabel="atoms, k",
    ylabel="patches with k atoms or more (%)",
    title=f"Atoms that a patch needs at σ = {SHOWN}",
    xlim=(0, most),
    ylim=(0, None),
)
left.legend(frameon=False)
place = np.arange(len(NOISES))
right.bar(place, [100 * saved[s] for s in NOISES], 0.5, color=BLUE)
for i, noise in enumerate(NOISES):
    right.text(i, 100 * saved[noise], f"{gain[noise]:+.2f} dB", ha="center", va="bottom")
right.set_xticks(place, [f"{s}" for s in NOISES])
right.set(
    xlabel="noise, σ (grey levels of 255)",
    ylabel="atoms saved against OMP (%)",
    title="Atoms saved, and the change of the picture",
    ylim=(0, 125 * max(saved.values())),
    xlim=(-0.6, len(NOISES) - 0.4),
)
for axes in (left, right):
    axes.grid(alpha=0.3, axis="y")
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to conclude
# ----------------
# A search for the sparsest codes saves some per cent of OMP's atoms at the same tolerance, and no
# patch needs more atoms than before. The denoised picture hardly changes: averaging over overlapping
# patches does most of the work, and hides which atoms were chosen. Use the search where atoms cost
# something, as in compression, or where the atoms themselves are the answer. If all you want is a
# denoised picture, OMP is good enough.
