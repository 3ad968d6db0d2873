"""Experiments as tasks, a store of their results, and all results of the paper as a report."""

from l0anneal.reproduction.collect import Collected, Failure, collect, shard_of
from l0anneal.reproduction.store import Record, Store
from l0anneal.reproduction.task import Task

__all__ = ["Collected", "Failure", "Record", "Store", "Task", "collect", "shard_of"]
