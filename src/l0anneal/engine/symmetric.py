"""Symmetric matrices of which a little more than one half is kept: rows, products and updates.

Rows are grouped in fours, and row m is kept up to the last column of its group: the lower triangle, and
all of the squares of four rows on the diagonal. Products and updates treat a group at once, in vectors
of four numbers (see `vectors`), and what is left of a group at the end one row at a time.
"""

from l0anneal.engine.kernel import inner
from l0anneal.engine.vectors import dot, multiply_four, subtract_four

__all__ = ["copy", "multiply", "read_row", "subtract", "write_row"]


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
    n = g.size
    fours = n & -4
    for m in range(0, fours, 4):
        a, b, c, d = U[m, : m + 4], U[m + 1, : m + 4], U[m + 2, : m + 4], U[m + 3, : m + 4]
        multiply_four(a, b, c, d, g, v)
    for m in range(fours, n):
        U_m, g_m = U[m, :m], g[m]
        for l in range(m):
            v[l] += U_m[l] * g_m
        v[m] = U[m, m] * g_m + dot(U_m, g)


@inner
def subtract(U, s, u, q, v):
    """Subtract s u uᵀ + q v vᵀ from U."""
    n = u.size
    fours = n & -4
    for m in range(0, fours, 4):
        a, b, c, d = U[m, : m + 4], U[m + 1, : m + 4], U[m + 2, : m + 4], U[m + 3, : m + 4]
        of_u = (s * u[m], s * u[m + 1], s * u[m + 2], s * u[m + 3])
        of_v = (q * v[m], q * v[m + 1], q * v[m + 2], q * v[m + 3])
        subtract_four(a, b, c, d, of_u, u, of_v, v)
    for m in range(fours, n):
        U_m, s_m, q_m = U[m, :n], s * u[m], q * v[m]
        for l in range(n):
            U_m[l] -= s_m * u[l] + q_m * v[l]
