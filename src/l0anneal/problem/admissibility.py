"""Which sets of columns count as a support.

A support is *admissible* if each of its columns keeps more than `PIVOT` of its squared length off the
span of the others. Zero columns, and two copies of one column, are never admissible together.
"""

__all__ = ["PIVOT"]

PIVOT = 1e-7
