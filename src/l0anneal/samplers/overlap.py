"""Overlaps of supports, and their distribution P(q) over pairs of independent replicas.

The overlap of two supports of k columns is q = |S ∩ S'| / k: 1 if they are the same, and k/N on average
if they are drawn at random from N columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from l0anneal.samplers.blocks import N_BLOCKS, jackknife_error

if TYPE_CHECKING:
    import xarray

__all__ = ["across_families", "in_pairs", "overlap", "overlap_dataset"]

MOST_REPLICAS = 1000  # of a population, of which all pairs are compared
Floats = NDArray[np.float64]
Integers = NDArray[np.integer]


def overlap(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the overlap ``q = |S ∩ S'| / k`` of supports with the same number k of columns.

    Parameters
    ----------
    first, second : int arrays of shape (..., k)
        Supports, along the last axis; the other axes are broadcast.

    See Also
    --------
    AnnealResult : Has samples to compare.
    temper : Sample supports in equilibrium.

    Examples
    --------
    >>> import l0anneal
    >>> l0anneal.overlap([[0, 1, 2, 3], [4, 5, 6, 7]], [0, 1, 2, 9]).tolist()
    [0.75, 0.0]
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-1] or a.shape[-1] == 0:
        raise ValueError(
            "overlaps need supports of the same number of columns, at least one, along the last "
            f"axis; got shapes {a.shape} and {b.shape}"
        )
    if min(a.min(initial=0), b.min(initial=0)) < 0:
        raise ValueError("overlaps need supports of one size; got supports padded with −1")
    return _n_common(a, b) / a.shape[-1]


def _n_common(a: Integers, b: Integers) -> Integers:
    """|S ∩ S'|: the columns that occur twice when both supports are sorted together."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    both = np.concatenate((np.broadcast_to(a, shape), np.broadcast_to(b, shape)), axis=-1)
    both.sort(axis=-1)
    return np.asarray(np.sum(both[..., 1:] == both[..., :-1], axis=-1))


def in_pairs(first: Integers, second: Integers) -> tuple[Floats, Floats]:
    """Return P(q) and its errors from two independent series of supports (rows), step by step.

    The errors follow from the scatter of blocks of the series.
    """
    n, k = first.shape
    common = _n_common(first, second)
    blocks = np.array_split(np.arange(n), min(N_BLOCKS, n))
    counts = np.stack([np.bincount(common[b], minlength=k + 1) for b in blocks]).astype(float)
    return _pooled(counts.sum(axis=0), counts)


def across_families(supports: Integers, family: Integers) -> tuple[Floats, Floats]:
    """Return P(q) and its errors from all pairs of supports (rows) of different families.

    The errors follow from leaving out groups of whole families. At most 1000 of the supports are
    compared. Without two families there is nothing to compare, and the answer is NaN.
    """
    chosen = (
        np.linspace(0, len(supports) - 1, min(len(supports), MOST_REPLICAS)).round().astype(int)
    )
    supports, family = supports[chosen], family[chosen]
    n, k = supports.shape
    start = np.arange(0, n * k + 1, k)
    inside = sparse.csr_array((np.ones(n * k, dtype=np.int64), supports.ravel(), start))
    common = (inside @ inside.T).toarray()
    apart = family[:, None] != family
    if not apart.any():
        return np.full(k + 1, np.nan), np.full(k + 1, np.nan)
    group = _groups(family)
    n_groups = int(group.max()) + 1
    # counts of pairs by the first one's group, and of pairs within that group
    each = np.zeros((n_groups, k + 1))
    within = np.zeros((n_groups, k + 1))
    for g in range(n_groups):
        rows = group == g
        each[g] = np.bincount(common[rows][apart[rows]], minlength=k + 1)
        inner = np.ix_(rows, rows)
        within[g] = np.bincount(common[inner][apart[inner]], minlength=k + 1)
    # pairs are counted in both orders: those of a group with others are lost twice
    return _pooled(each.sum(axis=0), 2.0 * each - within)


def _groups(family: Integers) -> Integers:
    """Divide families into about 20 groups of equal numbers of replicas."""
    _, index, sizes = np.unique(family, return_inverse=True, return_counts=True)
    before = np.cumsum(sizes) - sizes
    group = before * N_BLOCKS // family.size
    return np.asarray(np.unique(group, return_inverse=True)[1][index])


def _pooled(total: Floats, lost: Floats) -> tuple[Floats, Floats]:
    """Return frequencies, and their errors by the jackknife; a row of ``lost`` for each omission."""
    left = total - lost
    n_left = left.sum(axis=1, keepdims=True)
    if len(lost) < 2 or np.any(n_left == 0):
        return total / total.sum(), np.full(total.size, np.nan)
    return total / total.sum(), jackknife_error(left / n_left)


def overlap_dataset(mu: Floats, k: int, found: list[tuple[Floats, Floats]]) -> xarray.Dataset:
    """Return P(q) at each inverse temperature as a dataset."""
    import xarray as xr

    probability, error = (np.stack(rows) for rows in zip(*found))
    return xr.Dataset(
        {"probability": (("mu", "q"), probability), "error": (("mu", "q"), error)},
        coords={"mu": mu, "q": np.arange(k + 1) / k},
        attrs={"definition": "q = |S ∩ S'| / k"},
    )
