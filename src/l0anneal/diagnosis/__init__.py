"""Judge how far a result can be trusted: `diagnose`, with one module for each kind of result."""

from l0anneal.diagnosis.diagnose import diagnose
from l0anneal.diagnosis.verdict import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
