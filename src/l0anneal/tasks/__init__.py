"""Many independent computations: tasks by content, a store of their results, and workers."""

from l0anneal.tasks.collect import Collected, Failure, collect, shard_of
from l0anneal.tasks.store import Record, Store
from l0anneal.tasks.task import StoredTask, canonical_json

__all__ = [
    "Collected",
    "Failure",
    "Record",
    "Store",
    "StoredTask",
    "canonical_json",
    "collect",
    "shard_of",
]
