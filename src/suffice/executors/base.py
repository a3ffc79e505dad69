"""The interface, and the executors of one machine."""

import multiprocessing
import os
import pickle
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from suffice.errors import OptionError, SufficeError, whole_number
from suffice.registry import Registry

LISTEN_SECONDS = 0.2
"""How often what the tasks tell is passed on."""

R = TypeVar("R")

Task = tuple[Callable[..., R], tuple[Any, ...]]
"""A function and its arguments; it is called with a `Link` after them."""

Watch = Callable[[int, Any], None]
"""Is told the number of a task and what it tells of its work."""


def ignore(*message: Any) -> None:
    """The watch of a run that nobody watches."""


class Link:
    """Passed to a task: it tells how the work stands, and hears that it shall stop."""

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
    """How many tasks run at once: work is cut into tasks for so many."""

    standing = ""
    """Where the work is and how much of it is in flight, for whoever shows progress."""

    @abstractmethod
    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        """Run tasks; the result of each comes with its number as it is done.

        An interrupt stops those that have begun, with what they have, and no other begins.
        """


_registry = Registry[Executor]("executor", "suffice.executors", OptionError)

AnyExecutor = str | Executor
"""An executor, or the name of one, as NAME or NAME:key=value."""


register_executor = _registry.register
"""Make a class of executors usable by name, with the parameters of its constructor."""


def get_executor(executor: AnyExecutor) -> Executor:
    """The executor that a string describes; an executor is returned as it is."""
    return executor if isinstance(executor, Executor) else _registry.get(executor)


@register_executor("here")
class Here(Executor):
    """Runs tasks in this process; an interrupt is raised in the task that is running."""

    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        stop = threading.Event()
        for number, (function, arguments) in enumerate(tasks):
            if not stop.is_set():
                yield number, function(*arguments, Link(partial(watch, number), stop))


_queue: Any = None
_stop: Any = None


@register_executor("processes")
class Processes(Executor):
    """Runs tasks in processes of their own, or here where one is alone or can't be sent."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = (os.cpu_count() or 1) if workers is None else whole_number("workers", workers)

    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        if len(tasks) <= 1 or not _can_be_sent(tasks):
            yield from Here().run(tasks, watch)
            return
        spawn = multiprocessing.get_context("spawn")
        queue, stop = spawn.Queue(), spawn.Event()
        pool = ProcessPoolExecutor(min(len(tasks), self.workers), spawn, _begin_worker, (queue, stop))
        try:
            with _holding_interrupts():
                numbers = {pool.submit(_work, number, *task): number for number, task in enumerate(tasks)}
            running = set(numbers)
            while running:
                try:
                    while not queue.empty():
                        watch(*queue.get())
                    done, _ = wait(running, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
                except KeyboardInterrupt:
                    stop.set()
                    running = {future for future in running if not future.cancel()}
                    continue
                for future in done:
                    running.remove(future)
                    yield numbers[future], future.result()
            pool.shutdown()  # a process that has ended has told all it had to tell
            while not queue.empty():
                watch(*queue.get())
        except BrokenProcessPool:
            raise SufficeError("a process ended before its work was done: is there enough memory?") from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Deliver Ctrl-C when the processes have begun: half begun, they would fail with a traceback.

    They inherit the mask, so that the parent alone hears interrupts, and tells them to stop.
    """
    held: list[int] = []
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread:  # where other threads run, the mask of this one does not keep an interrupt away
        handler = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if in_main_thread:
            signal.signal(signal.SIGINT, handler)
    if held:
        signal.raise_signal(signal.SIGINT)


def _can_be_sent(tasks: Any) -> bool:
    try:
        pickle.dumps(tasks)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _begin_worker(queue: Any, stop: Any) -> None:
    global _queue, _stop
    _queue, _stop = queue, stop


def _work(number: int, function: Any, arguments: tuple[Any, ...]) -> Any:
    return function(*arguments, Link(lambda message: _queue.put((number, message)), _stop))
