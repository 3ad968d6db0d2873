"""Copies of the numbers of the Gram matrix that a direct kernel reads again and again.

A proposal needs G_jS, which is scattered over as many rows of G as there are columns inside, and where
these rows are not held it needs products of columns. Two copies save most of this:

- ``W``, which a direct kernel leaves stale, has the rows of columns that stay inside, as its columns
  (``place``): then what one proposal needs of them is in one row. A refresh of W forgets them.
- ``inner`` is G_SS. A column brings its row when it enters, so that nothing is computed when it leaves
  or when the tableau is refreshed.
"""

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel import inner
from l0anneal.engine.tableau import SIZE, STALE, Tableau
from l0anneal.engine.vectors import dot, dot_four

__all__ = ["cross_near", "gram_between", "know_last", "know_slot", "lay_out", "open_near"]


@inner
def cross_near(t, j, g):
    """Fill g with G_jS from a copy, from a row of G that is held, else from products of columns."""
    near, row_of_j = t.W[j], t.row_of[j]
    waiting = a = b = c = 0  # slots that wait until there are four to be multiplied at once
    for m in range(g.size):
        i = t.inside[m]
        if t.place[i] >= 0:
            g[m] = near[t.place[i]]
        elif row_of_j >= 0:
            g[m] = t.gram[row_of_j, i]
        elif t.row_of[i] >= 0:
            g[m] = t.gram[t.row_of[i], j]
        elif waiting < 3:
            a, b, c = m, a, b
            waiting += 1
        else:
            g[a], g[b], g[c], g[m] = dot_four(
                t.columns[t.inside[a]],
                t.columns[t.inside[b]],
                t.columns[t.inside[c]],
                t.columns[i],
                t.columns[j],
            )
            waiting = 0
    for _ in range(waiting):
        g[a] = dot(t.columns[j], t.columns[t.inside[a]])
        a, b = b, c


@inner
def know_slot(t, k, j, g):
    """Write g, which is G_jS, to ``inner`` for column j that has entered slot k."""
    for m in range(t.counts[SIZE]):
        if m != k:  # a column that has joined is not part of g
            t.inner[k, m] = t.inner[m, k] = g[m]
    t.inner[k, k] = 1.0  # no kernel reads the diagonal of G but from ``diag``
    t.known[k] = j


@inner
def know_last(t, k):
    """Move what is known of the slot after the last to slot k, whose column has left."""
    last = t.counts[SIZE]
    for m in range(last):
        t.inner[k, m] = t.inner[m, k] = t.inner[last, m]
    t.inner[k, k] = 1.0
    t.known[k] = t.known[last]
    t.known[last] = -1  # what enters the other slots is not written beyond the last one


@inner
def open_near(t):
    """Make ``inner`` complete."""
    t.counts[STALE] = 1
    n_inside = t.counts[SIZE]
    g = t.work[3, :n_inside]
    for m in range(n_inside):
        if t.known[m] != t.inside[m]:
            cross_near(t, t.inside[m], g)
            know_slot(t, m, t.inside[m], g)
    for m in range(n_inside, t.known.size):
        t.known[m] = -1


def lay_out(t: Tableau, before: NDArray[np.int64]) -> None:
    """Copy the rows of columns to W that are held, inside now and inside ``before``.

    Columns that come and go leave again before a copy pays.
    """
    t.counts[STALE] = 1
    inside = t.inside[: t.counts[SIZE]]
    stays = np.zeros(t.b.size, dtype=bool)
    stays[before] = True
    new = inside[(t.place[inside] < 0) & (t.row_of[inside] >= 0) & stays[inside]]
    if new.size:
        taken = np.zeros(t.W.shape[1], dtype=bool)
        taken[t.place[inside][t.place[inside] >= 0]] = True
        places = np.flatnonzero(~taken)[: new.size]  # enough, as W has room for the whole support
        emptied = np.zeros(taken.size + 1, dtype=bool)  # the last: columns without a place
        emptied[places] = True
        t.place[emptied[t.place]] = -1
        t.place[new] = places
        t.W[:, places] = t.gram[t.row_of[new]].T


def gram_between(
    t: Tableau,
    inside: NDArray[np.int64],
    columns: NDArray[np.int64],
    unit_columns: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the elements of G of columns inside, as rows, and of other ``columns``, given as rows."""
    place, row = t.place[inside], t.row_of[inside]
    copied = place >= 0
    held = ~copied & (row >= 0)
    missing = ~copied & (row < 0)
    gram = np.empty((inside.size, columns.size))
    gram[copied] = t.W[columns, place[copied, None]]
    gram[held] = t.gram[row[held, None], columns]
    gram[missing] = t.columns[inside[missing]] @ unit_columns.T
    return gram
