"""Experiments as tasks, a store of their results, and all results of the paper as a report."""

from l0anneal.reproduction.collect import collect
from l0anneal.reproduction.task import Task
from l0anneal.tasks import Collected, Failure, Record, Store, shard_of

__all__ = ["Collected", "Failure", "Record", "Store", "Task", "collect", "shard_of"]
