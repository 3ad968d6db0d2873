"""Which column would gain most: all columns ranked in single precision.

A walk that adds the best column and removes the worst one needs r and γ of every column at each step,
but only to choose: the change of the energy by the chosen exchange is computed in double precision, from
U and one row of G (`moves.ranked_kick`). A *ranking* holds r and γ of all columns in single precision.
It is updated in one pass over the rows of G of the support, which it keeps next to each other, in place
of the N × K regressions W of the tableau.

Let the column in slot k leave and column j enter, with u = U_k: and v the regression of j on the others
(v_k = 0), γ' its squared distance from their span and r' its correlation with what they leave. Then, for
each column l,

    s = G_lS·u,   c = G_lj − G_lS·v,
    γ_l ← γ_l + s²/U_kk − c²/γ',   r_l ← r_l + s x_k/U_kk − c r'/γ'

Columns of the support have r = 0 and γ = 1, which the update leaves as they are up to rounding. Rounding
errors grow from exchange to exchange, as those of the tableau do, so that the ranking is made again
whenever the tableau is refreshed. They affect which column is chosen, and nothing else.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel import inlined, inner
from l0anneal.engine.single_vectors import TILE, project_tile
from l0anneal.engine.tableau import SIZE, aligned_zeros

__all__ = ["ZERO", "Ranking", "empty_ranking", "fill_ranking", "rank_after_swap"]

NEAREST = np.float32(1e-5)  # γ counts as this if it is smaller, and may be a rounding error
ZERO, ONE = np.float32(0.0), np.float32(1.0)


class Ranking(NamedTuple):
    """Single-precision arrays; those by column have room for a multiple of `TILE` columns."""

    rows: NDArray[
        np.float32
    ]  # rows of G of the support: tile of columns × slot × column of the tile
    r: NDArray[np.float32]
    gamma: NDArray[np.float32]
    gain: NDArray[np.float32]  # r²/γ, twice the energy that the column would gain
    s: NDArray[np.float32]  # of the last exchange
    c: NDArray[np.float32]
    u: NDArray[np.float32]
    v: NDArray[np.float32]
    position: NDArray[np.int64]  # column → its outside position, −1 inside


def empty_ranking(n_columns: int, n_inside: int) -> Ranking:
    """Return a ranking that is still to be filled, for supports of ``n_inside`` columns."""
    n_tiles = -(-n_columns // TILE)
    shapes = [(n_tiles, n_inside, TILE), *[(n_tiles * TILE,)] * 5, (n_inside,), (n_inside,)]
    arrays: list[NDArray[Any]] = [aligned_zeros(shape, np.float32) for shape in shapes]
    arrays.append(np.zeros(n_columns, dtype=np.int64))
    return Ranking(*arrays)


@inner
def _copy_row(row, rows, k):
    """Copy a row of G to slot k."""
    for tile in range(rows.shape[0]):
        begin = tile * TILE
        part = rows[tile, k]
        for l in range(min(TILE, row.size - begin)):
            part[l] = row[begin + l]


@inner
def fill_ranking(t, ranking):
    """Make the ranking of a tableau that is not stale."""
    n_inside = t.counts[SIZE]
    r, gamma, gain = ranking.r, ranking.gamma, ranking.gain
    for k in range(n_inside):
        _copy_row(t.gram[t.row_of[t.inside[k]]], ranking.rows, k)
    for l in range(r.size):
        r[l] = gain[l] = ZERO
        gamma[l] = ONE
    for k in range(n_inside):
        ranking.position[t.inside[k]] = -1
    for p in range(t.b.size - n_inside):
        j = t.outside[p]
        ranking.position[j] = p
        r[j], gamma[j] = t.r[p], t.gamma[p]
        gain[j] = r[j] * r[j] / max(gamma[j], NEAREST)


@inner
def _project(rows, u, v, s, c):
    for tile in range(rows.shape[0]):
        project_tile(rows, tile, u, v, s, c)


@inner
def _update(r, gamma, gain, s, c, freed, inverse, r_of_s, r_of_c):
    for l in range(r.size):
        gamma[l] = gamma[l] + s[l] * s[l] * freed - c[l] * c[l] * inverse
        r[l] = r[l] + s[l] * r_of_s - c[l] * r_of_c
        gain[l] = r[l] * r[l] / max(gamma[l], NEAREST)


@inlined
def rank_after_swap(t, k, j, u, v, freed, inverse, x_k, r_new, ranking):
    """Update the ranking for the exchange of slot k for column j, before the support changes.

    v is the regression on the support without slot k; freed = 1/U_kk, inverse = 1/γ' and r_new = r'.
    """
    row, c, i = t.gram[t.row_of[j]], ranking.c, t.inside[k]
    for m in range(u.size):
        ranking.u[m], ranking.v[m] = u[m], -v[m]
    for l in range(t.b.size):
        c[l] = row[l]
    _project(ranking.rows, ranking.u, ranking.v, ranking.s, c)
    ranking.gamma[i] = ZERO
    _update(
        ranking.r,
        ranking.gamma,
        ranking.gain,
        ranking.s,
        c,
        np.float32(freed),
        np.float32(inverse),
        np.float32(x_k * freed),
        np.float32(r_new * inverse),
    )
    ranking.r[j] = ranking.gain[j] = ZERO
    ranking.gamma[j] = ONE
    _copy_row(row, ranking.rows, k)
