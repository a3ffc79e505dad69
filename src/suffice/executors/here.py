"""In this process, one task after the other."""

import threading
from collections.abc import Iterator, Sequence
from functools import partial

from suffice.executors.base import Executor, Link, R, Task, Watch, ignore, register_executor


@register_executor("here")
class Here(Executor):
    """Runs tasks in this process; an interrupt is raised in the task that is running."""

    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        """One after the other, until one of them was told to stop."""
        stop = threading.Event()
        for number, (function, arguments) in enumerate(tasks):
            if not stop.is_set():
                yield number, function(*arguments, Link(partial(watch, number), stop))
