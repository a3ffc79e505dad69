"""The interface: tasks are run, and yield their results as they are done; names for executors, and the plainest."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from suffice.errors import OptionError
from suffice.registry import Registry

R = TypeVar("R")
E = TypeVar("E", bound="type[Executor]")

Task = tuple[Callable[..., R], tuple[Any, ...]]
"""A function and its arguments; it is called with a `Link` after them."""

Watch = Callable[[int, Any], None]
"""Is told the number of a task and what it tells of its work."""


def ignore(*message: Any) -> None:
    """Hear nothing."""


class Link:
    """What a running task has of its executor: it tells how the work stands, and hears that it shall stop."""

    def __init__(self, tell: Callable[[Any], None] = ignore, stop: threading.Event | None = None) -> None:
        self.tell = tell
        self.stop = stop or threading.Event()

    def check(self) -> None:
        """End a task that has nothing to show before its end, where it shall stop."""
        if self.stop.is_set():
            raise KeyboardInterrupt


class Executor(ABC):
    """Runs tasks."""

    workers = 1
    """How many tasks run at once: who cuts work into tasks cuts it for so many."""

    standing = ""
    """Where the work is and how much of it is in flight, for whoever shows progress."""

    @abstractmethod
    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        """Run tasks; the result of each comes with its number as it is done.

        After an interrupt those that have begun may end with what they have, by their link, and no other begins.
        """


_registry = Registry[Executor]("executor", "suffice.executors", OptionError)

AnyExecutor = str | Executor
"""An executor, or the name of one, as NAME or NAME:key=value."""


def register_executor(name: str) -> Callable[[E], E]:
    """Make a class of executors usable by name; its parameters are the arguments of its constructor."""
    return _registry.register(name)


def get_executor(executor: AnyExecutor) -> Executor:
    """The executor that a string describes; an executor is returned as it is."""
    return executor if isinstance(executor, Executor) else _registry.get(executor)


@register_executor("here")
class Here(Executor):
    """Runs tasks in this process; an interrupt is raised in the task that is running."""

    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        """One after the other, until one of them was told to stop."""
        stop = threading.Event()
        for number, (function, arguments) in enumerate(tasks):
            if not stop.is_set():
                yield number, function(*arguments, Link(partial(watch, number), stop))
