"""Which sets of columns count as supports.

A support is *admissible* if, for each of its columns, the squared distance from the span of the others
is more than `PIVOT` times its squared norm. A support with a zero column, or with two copies of one
column, is never admissible.
"""

__all__ = ["PIVOT"]

PIVOT = 1e-7
