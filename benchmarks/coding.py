"""Sparse coding of image patches against orthogonal matching pursuit: error and throughput.

``python benchmarks/coding.py``: 10,000 patches of 8×8 pixels, means removed, an overcomplete separable
cosine dictionary of 256 atoms, k = 5, 12, 20. Both coders run in one thread and in turns, so that a busy
machine slows both. Needs scikit-image (the ``examples`` extra).
"""

import argparse
import os
import sys
import time
import warnings

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from rich.console import Console
from rich.table import Table
from skimage import data
from sklearn.linear_model import orthogonal_mp_gram

from l0anneal import sparse_encode

console = Console(highlight=False)
GAIN_NEEDED = {5: 0.03, 12: 0.08, 20: 0.0}


def patches(n, width=8, seed=0):
    """Patches from random places of the cameraman picture, as rows, without their means."""
    image = data.camera() / 255.0
    windows = np.lib.stride_tricks.sliding_window_view(image, (width, width))
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, size, n) for size in windows.shape[:2])
    chosen = windows[rows, columns].reshape(n, -1)
    return chosen - chosen.mean(axis=1, keepdims=True)


def cosines(width=8, n=16):
    """Overcomplete separable cosine dictionary: n² unit atoms of width² pixels as rows."""
    line = np.cos(np.pi * np.outer(np.arange(n), np.arange(width) + 0.5) / n)
    line[1:] -= line[1:].mean(axis=1, keepdims=True)
    line /= np.linalg.norm(line, axis=1, keepdims=True)
    return np.kron(line, line)


def squared_errors(Y, codes, D):
    """‖y − cD‖² of each signal."""
    return np.sum((Y - codes @ D) ** 2, axis=1)


def lstsq_errors(Y, codes, D):
    """The same with coefficients by SVD on the atoms in use: the truth for each code's support."""
    errors = np.empty(len(Y))
    for i, (y, code) in enumerate(zip(Y, codes)):
        atoms = D[code != 0].T
        errors[i] = np.sum((y - atoms @ np.linalg.lstsq(atoms, y, rcond=None)[0]) ** 2)
    return errors


def timed(function):
    """Seconds, and what the function returned."""
    began = time.perf_counter()
    value = function()
    return time.perf_counter() - began, value


def main():
    """Print the table; exit with 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-patches", type=int, default=10_000)
    parser.add_argument("--n-kicks", type=int, nargs="*", default=[0, 2, 10])
    arguments = parser.parse_args()
    D, Y = cosines(), patches(arguments.n_patches)
    gram, norms = D @ D.T, np.sum(Y**2, axis=1)
    norms[norms == 0] = 1.0
    sparse_encode(Y[:1], D, 1)  # kernels are compiled here, or loaded
    console.print(
        f"{len(Y):,} patches of {Y.shape[1]} pixels, {len(D)} atoms of rank "
        f"{np.linalg.matrix_rank(D)}, one thread each"
    )
    table = Table()
    for name in (
        "k",
        "kicks",
        "OMP, µs per patch",
        "ours, µs per patch",
        "speed / OMP's",
        "error below OMP's",
        "worst patch − OMP's, in ‖y‖²",
        "error − lstsq's, in ‖y‖²",
    ):
        table.add_column(name, justify="right")
    missed = []
    for k, needed in GAIN_NEEDED.items():
        for n_kicks in arguments.n_kicks:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # pursuit that ends early
                theirs, coef = timed(
                    lambda k=k: orthogonal_mp_gram(gram, D @ Y.T, n_nonzero_coefs=k)
                )
            ours, codes = timed(
                lambda k=k, n=n_kicks: sparse_encode(Y, D, k, n_kicks=n, random_state=0)
            )
            omp, errors = squared_errors(Y, coef.T, D), squared_errors(Y, codes, D)
            assert np.count_nonzero(codes, axis=1).max() <= k
            gain = 1 - errors.sum() / omp.sum()
            worst = np.max((errors - omp) / norms)
            off = np.max(np.abs(errors - lstsq_errors(Y, codes, D)) / norms)
            table.add_row(
                str(k),
                str(n_kicks),
                f"{theirs / len(Y) * 1e6:.0f}",
                f"{ours / len(Y) * 1e6:.0f}",
                f"{theirs / ours:.2f}",
                f"{gain:.1%}",
                f"{worst:.1e}",
                f"{off:.1e}",
            )
            if n_kicks == max(arguments.n_kicks) and gain < needed:
                missed.append(f"k = {k}: error {gain:.1%} below OMP's, needed {needed:.0%}")
            if worst > 1e-10 or off > 1e-10 or theirs / ours < 0.1:
                missed.append(f"k = {k}, {n_kicks} kicks: a worse patch, a wrong error or too slow")
    console.print(table)
    for line in missed:
        console.print(f"missed: {line}", style="red")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
