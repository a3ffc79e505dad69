"""On a Ray cluster: tasks go to whatever nodes there are, and to others where a node dies."""

import importlib
import logging
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from suffice.errors import OptionError, SufficeError, missing
from suffice.executors.base import LISTEN_SECONDS, Executor, Link, R, Task, Watch, ignore, register_executor
from suffice.notebook import many

RETRIES = 5
"""How often a task is begun again whose node, or process, died."""

QUEUED_EACH = 2
"""Tasks with the cluster for each that can run: the next one is there when one ends."""

PLAIN = (str, bytes, int, float, bool, type(None))
"""What travels with a task, however many share it."""


def connect(address: str = "auto") -> Any:
    """Import `ray`, and connect it to the cluster at the address unless it is connected."""
    try:
        ray = importlib.import_module("ray")
    except ModuleNotFoundError:
        raise missing("ray", "ray") from None
    if ray.is_initialized():
        return ray
    named = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    if named.startswith(("http://", "https://")):
        raise OptionError(
            f"{named} takes whole jobs: use RAY_ADDRESS={named} ray job submit --working-dir . -- suffice … --ray auto"
        )
    options = {"include_dashboard": False} if named == "local" else {}
    try:
        ray.init(address=named, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise OptionError(f'there is no Ray cluster at "{named}": ray start --head starts one ({reason})') from None
    return ray


@register_executor("ray")
class Ray(Executor):
    """Runs tasks on a Ray cluster: `auto` is the one at hand or at RAY_ADDRESS, `local` a new one here."""

    def __init__(self, address: str = "auto") -> None:
        self._ray = connect(address)
        self._remote = self._ray.remote(max_retries=RETRIES)(_work)
        self._runs = 0
        # On this process's node it can't die alone.
        # Without a byte to need it might be sent to a node that has just died.
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        here = affinity(self._ray.get_runtime_context().get_node_id(), soft=False)
        options = {"num_cpus": 0, "memory": 1, "scheduling_strategy": here}
        self._queue = importlib.import_module("ray.util.queue").Queue(actor_options=options)
        self._count(in_flight=0)

    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        ray, errors = self._ray, self._ray.exceptions
        self._runs += 1
        messages = _Messages(self._queue, self._runs, watch)
        running, waiting, looked = dict[Any, int](), deque(enumerate(_shared(ray, tasks))), 0.0
        try:
            while running or waiting:
                try:
                    while len(running) < QUEUED_EACH * self.workers and waiting:
                        number, (function, arguments) = waiting.popleft()
                        sent = self._remote.remote(self._queue, self._runs, number, function, *arguments)
                        running[sent] = number
                    if time.monotonic() - looked >= LISTEN_SECONDS:
                        self._count(len(running))
                        messages.pass_on()
                        looked = time.monotonic()
                    done, _ = ray.wait(list(running), timeout=LISTEN_SECONDS)
                    if done:  # and all others that have ended by now
                        done, _ = ray.wait(list(running), num_returns=len(running), timeout=0)
                except KeyboardInterrupt:
                    waiting.clear()
                    for reference in reversed(running):  # first those that have not begun
                        ray.cancel(reference)
                    continue
                for reference in done:
                    number = running.pop(reference)
                    try:
                        told, result = ray.get(reference)
                    except errors.TaskCancelledError:
                        continue
                    messages.waiting.extend((self._runs, number, *one) for one in enumerate(told))
                    yield number, result
            messages.pass_on()
            self._count(in_flight=0)
        except errors.RayTaskError as error:
            raise error.cause from None
        except (errors.WorkerCrashedError, errors.ObjectLostError, errors.OutOfMemoryError):
            raise SufficeError("a process ended before its work was done: is there enough memory?") from None
        finally:
            for reference in running:
                ray.cancel(reference)

    def _count(self, in_flight: int) -> None:
        nodes = sum(node["Alive"] for node in self._ray.nodes())
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self.standing = f"{many(nodes, 'node')}, {many(in_flight, 'task')} in flight"


def _shared(ray: Any, tasks: Sequence[Task[Any]]) -> list[Task[Any]]:
    """Put each argument that several tasks have, by identity, into the object store once."""
    every = [one for _, arguments in tasks for one in arguments if not isinstance(one, PLAIN)]
    uses, put = Counter(map(id, every)), dict[int, Any]()
    for one in every:
        if uses[id(one)] > 1 and id(one) not in put:
            put[id(one)] = ray.put(one)
    return [(function, tuple(put.get(id(one), one) for one in arguments)) for function, arguments in tasks]


class _Messages:
    """Passes on what tasks tell once, though it comes by the queue and with results."""

    def __init__(self, queue: Any, run: int, watch: Watch) -> None:
        self.waiting: deque[tuple[int, int, int, Any]] = deque()
        self._queue = queue
        self._run = run
        self._watch = watch
        self._heard: Counter[int] = Counter()  # by task

    def pass_on(self) -> None:
        self.waiting.extend(self._queue.get_nowait_batch(self._queue.qsize()))
        while self.waiting:  # of which an interrupt loses none
            run, number, place, message = self.waiting.popleft()
            if run == self._run and place >= self._heard[number]:
                self._heard[number] = place + 1
                self._watch(number, message)


def _work(queue: Any, run: int, number: int, function: Any, *arguments: Any) -> tuple[list[Any], Any]:
    """Run one task, on some node; return what it told, and its result."""
    told: list[Any] = []

    def tell(message: Any) -> None:
        # To wait for it would free the core, and another task would begin.
        queue.actor.put_nowait.remote((run, number, len(told), message))
        told.append(message)

    link = Link(tell)
    before = signal.signal(signal.SIGINT, lambda *received: link.stop.set())  # Ray cancels by it
    try:
        return told, function(*arguments, link)
    finally:
        signal.signal(signal.SIGINT, before)
