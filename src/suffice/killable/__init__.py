"""Work that may never end, done in a process that can be killed: searches, equality of formulas, JSON schemas."""

from suffice.killable.worker import SEARCHER, SECONDS, VALIDATOR, KillableWorker

__all__ = ["SEARCHER", "SECONDS", "VALIDATOR", "KillableWorker"]
