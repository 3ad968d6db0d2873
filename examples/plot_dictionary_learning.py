"""
Better codes learn a better dictionary from an image
====================================================

Dictionary learning alternates two steps. The first approximates every patch of the image by k atoms
of the present dictionary. The second finds the dictionary that fits these codes best, by least
squares (the method of optimal directions). Better codes make better dictionaries. This example
compares two ways to find the codes, orthogonal matching pursuit and `l0anneal.sparse_encode`. Both
start from the same dictionary of cosines.

The example takes less than a minute; with ``L0ANNEAL_QUICK=1`` it uses fewer patches and rounds.
It needs scikit-image: ``pip install '.[examples]'``.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
from skimage import data
from sklearn.linear_model import orthogonal_mp_gram

from l0anneal import sparse_encode

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
WIDTH = 8
K = 5
N_PATCHES, N_ROUNDS, N_LINE = (2000, 4, 12) if QUICK else (5000, 12, 12)
# pursuit ends early on blocks of a single grey level, and warns
warnings.filterwarnings("ignore", "Orthogonal matching pursuit ended")
COLOURS = {"OMP": "#D55E00", "l0anneal": "#0072B2"}


def cosines(n):
    """Return an overcomplete separable cosine dictionary: n² unit atoms of WIDTH² pixels, as rows."""
    line = np.cos(np.pi * np.outer(np.arange(n), np.arange(WIDTH) + 0.5) / n)
    line[1:] -= line[1:].mean(axis=1, keepdims=True)
    line /= np.linalg.norm(line, axis=1, keepdims=True)
    return np.kron(line, line)


def code_by_omp(signals, dictionary):
    """Return codes found by orthogonal matching pursuit."""
    gram, correlation = dictionary @ dictionary.T, dictionary @ signals.T
    return orthogonal_mp_gram(gram, correlation, n_nonzero_coefs=K).T


def code_by_annealing(signals, dictionary):
    """Return codes found by exchanging atoms, with random kicks."""
    return sparse_encode(signals, dictionary, K, n_kicks=3, n_jobs=-1, random_state=0)


def update(signals, codes, dictionary):
    """Return the best dictionary for the codes.

    An atom that no patch uses is replaced by the patch with the largest error.
    """
    used = np.count_nonzero(codes, axis=0) > 0
    updated = dictionary.copy()
    C = codes[:, used]
    normal = C.T @ C
    # atoms that are only used together would make these equations singular
    normal[np.diag_indices_from(normal)] *= 1 + 1e-9
    updated[used] = scipy.linalg.solve(normal, C.T @ signals, assume_a="pos")
    worst = np.argsort(np.sum((signals - codes @ updated) ** 2, axis=1))[::-1]
    updated[~used] = signals[worst[: np.sum(~used)]]
    return updated / np.linalg.norm(updated, axis=1, keepdims=True)


def learn(code, signals, dictionary):
    """Alternate the two steps; return the dictionary, and the error per pixel after each coding step."""
    errors = []
    for _ in range(N_ROUNDS):
        codes = code(signals, dictionary)
        errors.append(np.sqrt(np.mean((signals - codes @ dictionary) ** 2)))
        dictionary = update(signals, codes, dictionary)
    codes = code(signals, dictionary)
    errors.append(np.sqrt(np.mean((signals - codes @ dictionary) ** 2)))
    return dictionary, 255 * np.array(errors)


def rebuild(picture, code, dictionary):
    """Replace each block of the picture by its mean and its coded deviation from the mean."""
    n, m = (size // WIDTH for size in picture.shape)
    blocks = picture.reshape(n, WIDTH, m, WIDTH).swapaxes(1, 2).reshape(n * m, -1)
    means = blocks.mean(axis=1, keepdims=True)
    blocks = means + code(blocks - means, dictionary) @ dictionary
    return blocks.reshape(n, m, WIDTH, WIDTH).swapaxes(1, 2).reshape(picture.shape)


def psnr(picture, rebuilt):
    """Return the peak signal-to-noise ratio in decibels."""
    return -10 * np.log10(np.mean((picture - rebuilt) ** 2))


def mosaic(dictionary, codes):
    """Draw the atoms, those with the largest squared coefficients first, each in all shades of grey."""
    order = np.argsort(np.sum(codes**2, axis=0))[::-1]
    n = int(np.sqrt(len(dictionary)))
    picture = np.ones((n * (WIDTH + 1) + 1,) * 2)
    for i, atom in enumerate(dictionary[order[: n * n]]):
        top, left = (1 + (WIDTH + 1) * place for place in divmod(i, n))
        atom = atom.reshape(WIDTH, WIDTH) / np.max(np.abs(atom))
        picture[top : top + WIDTH, left : left + WIDTH] = 0.5 + 0.5 * atom
    return picture


# %%
# Take patches from random places, one per row, and subtract the mean of each.

image = data.camera() / 255.0
windows = np.lib.stride_tricks.sliding_window_view(image, (WIDTH, WIDTH))
rng = np.random.default_rng(0)
rows, columns = (rng.integers(0, n, N_PATCHES) for n in windows.shape[:2])
patches = windows[rows, columns].reshape(N_PATCHES, -1)
patches = patches - patches.mean(axis=1, keepdims=True)
patches = patches[patches.std(axis=1) > 0.01]  # flat patches have no structure to learn

# %%
# Learn with both ways of coding, from the same initial dictionary.

start = cosines(N_LINE)
coders = {"OMP": code_by_omp, "l0anneal": code_by_annealing}
learnt, errors = {}, {}
for name, code in coders.items():
    learnt[name], errors[name] = learn(code, patches, start)
    print(f"{name}: error per pixel {errors[name][0]:.2f} → {errors[name][-1]:.2f} grey levels")

# %%
# Draw the picture. It shows a piece of the image rebuilt from k atoms per block, with the cosines and
# with the learnt atoms.

piece = image[64:256, 128:320]
rebuilt = {
    "cosines, OMP": rebuild(piece, code_by_omp, start),
    "learnt, OMP": rebuild(piece, code_by_omp, learnt["OMP"]),
    "learnt, l0anneal": rebuild(piece, code_by_annealing, learnt["l0anneal"]),
}
figure = plt.figure(figsize=(12, 7.5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
curve, atoms = top.subplots(1, 2, width_ratios=(1.5, 1))
for name, mark in (("OMP", "s"), ("l0anneal", "o")):
    curve.plot(errors[name], marker=mark, color=COLOURS[name], label=f"coded by {name}")
curve.text(0.4, errors["OMP"][0], "with the cosines", verticalalignment="center")
curve.set(
    xlabel="updates of the dictionary",
    ylabel="error per pixel (grey levels of 255)",
    title=f"{len(patches):,} patches, {len(start)} atoms, {K} per patch",
)
curve.xaxis.get_major_locator().set_params(integer=True)
curve.grid(alpha=0.3)
curve.legend(frameon=False)
curve.spines[["top", "right"]].set_visible(False)
atoms.imshow(
    mosaic(learnt["l0anneal"], code_by_annealing(patches, learnt["l0anneal"])), cmap="gray"
)
atoms.set_title("learnt atoms, l0anneal, largest share first")
shown = {"original": piece, **rebuilt}
for axes, (name, picture) in zip(bottom.subplots(1, 4), shown.items()):
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axes.set_title(name if picture is piece else f"{name}: {psnr(piece, picture):.1f} dB")
    axes.set_axis_off()
atoms.set_axis_off()
bottom.supxlabel(f"A piece of the image from {K} atoms and the mean of each block")
plt.show()

# %%
# What to conclude
# ----------------
# Better codes make a better dictionary: with the same number of atoms for each patch, the error
# after learning is smaller when the codes are searched than when they are pursued greedily. The gain
# is small next to that of learning itself, and it needs enough patches: with a few hundred of them and
# a smaller dictionary, OMP can end with the smaller error. If speed matters more than the last few per
# cent, learn with OMP and search for the codes at the end only.
