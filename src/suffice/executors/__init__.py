"""Executors: where work runs. Tasks go in, results come out as they are done, the same everywhere."""

from suffice.executors.base import AnyExecutor, Executor, Here, Link, Processes, Task, get_executor, register_executor
from suffice.executors.ray import Ray

__all__ = ["AnyExecutor", "Executor", "Here", "Link", "Processes", "Ray", "Task", "get_executor", "register_executor"]
