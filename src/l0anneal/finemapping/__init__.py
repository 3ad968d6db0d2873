"""Fine-mapping: which columns matter, in thousands of small problems from summary statistics."""

from l0anneal.finemapping.finemap import FineMapping, finemap
from l0anneal.finemapping.locus import Locus

__all__ = ["FineMapping", "Locus", "finemap"]
