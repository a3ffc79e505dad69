"""In processes, as many at once as there are cores."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from suffice.errors import SufficeError, whole_number
from suffice.executors.base import Executor, Here, Link, R, Task, Watch, ignore, register_executor

LISTEN_SECONDS = 0.2
"""How often what the tasks tell is passed on."""

_queue: Any = None
_stop: Any = None


@register_executor("processes")
class Processes(Executor):
    """Runs tasks in processes of their own; a single one, or one that can't be sent to another process, runs here."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = (os.cpu_count() or 1) if workers is None else whole_number("workers", workers)

    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        """Side by side; an interrupt tells them all to stop, and what they have by then still comes."""
        if len(tasks) <= 1 or not _can_be_sent(tasks):
            yield from Here().run(tasks, watch)
            return
        spawn = multiprocessing.get_context("spawn")
        queue, stop = spawn.Queue(), spawn.Event()
        pool = ProcessPoolExecutor(min(len(tasks), self.workers), spawn, _begin_worker, (queue, stop))
        try:
            with _deaf_to_interrupts():
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


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started here inherit deafness: they leave interrupts to the parent, which tells them to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
