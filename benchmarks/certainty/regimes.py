"""The eight regimes: data whose law is not the sampler's prior.

Data set i of a regime depends on the name of the regime and on i alone. Columns have mean 0 and
variance 1, y has mean 0. The positions of the true columns are random; their coefficients are standard
Gaussian unless stated; the variance of the noise is (1 − R²)/R² times that of the signal Xβ.

| name | rows × columns | design | true columns | R² |
|---|---|---|---|---|
| wide | 60 × 2000 | independent Gaussian | 4 | .75 |
| medium | 100 × 500 | independent Gaussian | 3 | .5 |
| tall | 500 × 100 | independent Gaussian | 10 | .3 |
| chain | 200 × 1000 | Gaussian, AR(1), neighbours correlated .9 | 10 | .6 |
| equal | 150 × 300 | Gaussian, all pairs correlated .6 | 6 | .5 |
| heavy | 200 × 400 | independent Gaussian; coefficients Student t with 2 degrees of freedom | 15 | .7 |
| linkage | 300 × 500 | simulated genotypes 0/1/2 | 3 | .3 |
| half | 200 × 60 | independent Gaussian | 30 | .7 |

The genotypes of linkage are 300 diploid individuals of a population of 10,000, with mutation and
recombination rates of 10⁻⁸ per base, and 500 successive variants with a minor allele frequency of at
least .05 from the middle of a megabase. Duplicate columns are kept, as in real genotypes. msprime
simulates them once (``python benchmarks/certainty simulate``); afterwards they are read from the store.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

N_DATA_SETS = 100
N_NOISE = 50  # data sets of noise in each regime


class DataSet(NamedTuple):
    """Standardised columns, a centred signal and the true coefficients."""

    X: np.ndarray
    y: np.ndarray
    beta: np.ndarray

    @property
    def truth(self):
        """Which columns are true."""
        return self.beta != 0


def independent(rng, shape, i, store):
    """Independent Gaussian entries."""
    return rng.standard_normal(shape)


def chain(rng, shape, i, store, r=0.9):
    """Each column correlated with the one before: AR(1) along a row."""
    X = rng.standard_normal(shape)
    for j in range(1, shape[1]):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1 - r**2) * X[:, j]
    return X


def equal(rng, shape, i, store, r=0.6):
    """Every pair of columns equally correlated, by a common factor."""
    common = rng.standard_normal((shape[0], 1))
    return np.sqrt(r) * common + np.sqrt(1 - r) * rng.standard_normal(shape)


def linkage(rng, shape, i, store):
    """Genotypes that `simulate` has put into the store."""
    path = genotype_path(store, i)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist; genotypes are simulated by msprime: run "
            f"`python benchmarks/certainty simulate` with the same --store"
        )
    with np.load(path) as stored:
        return stored["genotypes"].astype(float)


def gaussian(rng, size):
    """Coefficients of all sizes around zero."""
    return rng.standard_normal(size)


def heavy_tailed(rng, size):
    """A few coefficients much larger than the others: Student's t with 2 degrees of freedom."""
    return rng.standard_t(2, size)


@dataclass(frozen=True)
class Regime:
    """A law of data sets."""

    name: str
    shape: tuple[int, int]
    n_true: int
    r_squared: float
    design: Callable = independent
    coefficients: Callable = gaussian

    @property
    def density(self):
        """The part of the columns that is true."""
        return self.n_true / self.shape[1]

    def data_set(self, i, store):
        """Return data set i."""
        X, rng = self._design("signal", i, store)
        beta = np.zeros(self.shape[1])
        beta[rng.choice(beta.size, self.n_true, replace=False)] = self.coefficients(
            rng, self.n_true
        )
        signal = X @ beta
        noise = signal.std() * np.sqrt((1 - self.r_squared) / self.r_squared)
        y = signal + noise * rng.standard_normal(signal.size)
        return DataSet(X, y - y.mean(), beta)

    def noise(self, i, store):
        """Return data set i of the same design, in which y is noise."""
        X, rng = self._design("noise", i, store)
        y = rng.standard_normal(X.shape[0])
        return DataSet(X, y - y.mean(), np.zeros(X.shape[1]))

    def _design(self, kind, i, store):
        rng = np.random.default_rng([zlib.crc32(f"{self.name} {kind}".encode()), i])
        X = self.design(rng, self.shape, i, store)
        X = X - X.mean(axis=0)
        return X / X.std(axis=0), rng


REGIMES = {
    regime.name: regime
    for regime in (
        Regime("wide", (60, 2000), 4, 0.75),
        Regime("medium", (100, 500), 3, 0.5),
        Regime("tall", (500, 100), 10, 0.3),
        Regime("chain", (200, 1000), 10, 0.6, chain),
        Regime("equal", (150, 300), 6, 0.5, equal),
        Regime("heavy", (200, 400), 15, 0.7, coefficients=heavy_tailed),
        Regime("linkage", (300, 500), 3, 0.3, linkage),
        Regime("half", (200, 60), 30, 0.7),
    )
}


def genotype_path(store, i):
    """Return where the genotypes of data set i are."""
    return Path(store) / "genotypes" / f"{i:04d}.npz"


def simulate(store, n_data_sets=N_DATA_SETS):
    """Simulate the genotypes of the linkage regime that the store does not have yet."""
    import msprime

    rows, columns = REGIMES["linkage"].shape
    for i in range(n_data_sets):
        path = genotype_path(store, i)
        if path.exists():
            continue
        ancestry = msprime.sim_ancestry(
            samples=rows,
            population_size=10_000,
            sequence_length=1_000_000,
            recombination_rate=1e-8,
            random_seed=2 * i + 1,
        )
        mutated = msprime.sim_mutations(
            ancestry, rate=1e-8, model=msprime.BinaryMutationModel(), random_seed=2 * i + 2
        )
        haplotypes = mutated.genotype_matrix()
        genotypes = (haplotypes[:, ::2] + haplotypes[:, 1::2]).T
        frequency = genotypes.mean(axis=0) / 2
        common = np.flatnonzero(np.minimum(frequency, 1 - frequency) >= 0.05)
        if common.size < columns:
            raise RuntimeError(
                f"data set {i} has {common.size} common variants; {columns} are needed; "
                "simulate a longer sequence"
            )
        first = (common.size - columns) // 2
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npz")
        chosen = genotypes[:, common[first : first + columns]]
        np.savez_compressed(partial, genotypes=chosen.astype(np.int8))
        partial.rename(path)
