"""Symmetric matrices of which a little more than one half is kept: rows, products and updates.

Rows are grouped in fours, and row m is kept up to the last column of its group: the lower triangle, and
all of the squares of four rows on the diagonal. Products and updates treat a group at once, in vectors
of four numbers (see `vectors`), and what is left of a group at the end one row at a time.
"""

from l0anneal.engine.inverse_vectors import change_block, multiply_block
from l0anneal.engine.kernel import inner
from l0anneal.engine.vectors import dot

__all__ = [
    "change",
    "change_and_multiply",
    "copy",
    "multiply",
    "multiply_two",
    "read_row",
    "write_row",
]


@inner
def read_row(U, k, u):
    """Copy row k of U to u."""
    for m in range(min(k | 3, u.size - 1) + 1):
        u[m] = U[k, m]
    for m in range((k | 3) + 1, u.size):
        u[m] = U[m, k]


@inner
def write_row(U, k, u, factor):
    """Set row k, and column k, of U to u times a factor."""
    for m in range(min(k | 3, u.size - 1) + 1):
        U[k, m] = factor * u[m]
    for m in range(k & -4, u.size):
        U[m, k] = factor * u[m]


@inner
def copy(U, n, V):
    """Copy a matrix of n rows to V."""
    for m in range(n):
        for l in range(min(m | 3, n - 1) + 1):
            V[m, l] = U[m, l]


@inner
def multiply(U, g, v):
    """Set v = U g."""
    fours = g.size & -4
    for m in range(0, fours, 4):
        multiply_block(U, m, (g,), (v,))
    for m in range(fours, g.size):
        _multiply_row(U, m, g, v)


@inner
def multiply_two(U, g, v, h, w):
    """Set v = U g and w = U h, to the same bits as `multiply`."""
    fours = g.size & -4
    for m in range(0, fours, 4):
        multiply_block(U, m, (g, h), (v, w))
    for m in range(fours, g.size):
        _multiply_row(U, m, g, v)
        _multiply_row(U, m, h, w)


@inner
def change(U, a, x, b, y, d):
    """Add a xᵀ + b yᵀ, which must be symmetric, to U; d receives the new diagonal."""
    fours = x.size & -4
    for m in range(0, fours, 4):
        change_block(U, m, a, x, b, y, d, (), ())
    for m in range(fours, x.size):
        _change_row(U, m, a, x, b, y, d)


@inner
def change_and_multiply(U, a, x, b, y, d, g, v):
    """Do `change`, and then set v = U g, to the same bits as `multiply`, in one pass over U."""
    fours = x.size & -4
    for m in range(0, fours, 4):
        change_block(U, m, a, x, b, y, d, (g,), (v,))
    for m in range(fours, x.size):
        _change_row(U, m, a, x, b, y, d)
        _multiply_row(U, m, g, v)


@inner
def _multiply_row(U, m, g, v):
    U_m, g_m = U[m, :m], g[m]
    for l in range(m):
        v[l] += U_m[l] * g_m
    v[m] = U[m, m] * g_m + dot(U_m, g)


@inner
def _change_row(U, m, a, x, b, y, d):
    U_m, a_m, b_m = U[m, : x.size], a[m], b[m]
    for l in range(x.size):
        U_m[l] += a_m * x[l] + b_m * y[l]
    d[m] = U_m[m]
