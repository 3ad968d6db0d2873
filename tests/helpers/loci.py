"""Small loci in files, and comparisons of the tables that fine-mapping makes of them."""

import numpy as np

from helpers.summary import simulated
from l0anneal import Locus


def loci(n_loci=3, n_columns=20):
    """Return loci with one, two or no effects, and names for their columns."""
    found = []
    for i in range(n_loci):
        rng = np.random.default_rng([11, i])
        z, R, *_ = simulated(rng, 400, n_columns, "r = .9", i % 3, 0.3)
        names = [f"rs{i}_{j}" for j in range(n_columns)]
        found.append(Locus(f"locus{i}", R, 400, z=z, names=names))
    return found


def save(locus, directory):
    """Write a locus as an .npz file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{locus.name}.npz"
    np.savez(path, z=locus.z, R=locus.R, n=locus.n, names=locus.names)
    return path


def tables(directory):
    """Return the text of both tables."""
    return [(directory / name).read_text("utf-8") for name in ("columns.tsv", "loci.tsv")]


def rows(text):
    """Return the rows of a table as dictionaries."""
    head, *lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]
