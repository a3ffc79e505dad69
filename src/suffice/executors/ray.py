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
"""How many tasks are with the cluster for each that can run: the next one is there when one ends."""

PLAIN = (str, bytes, int, float, bool, type(None))
"""What travels with a task, however many share it."""


def connect(address: str = "auto") -> Any:
    """The module `ray`, connected: to the cluster that this process is connected to, or to that at the address."""
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
    """Runs tasks on a Ray cluster: `auto` is the one at hand or at RAY_ADDRESS, `local` one that is begun here."""

    def __init__(self, address: str = "auto") -> None:
        self._ray = connect(address)
        self._remote = self._ray.remote(max_retries=RETRIES)(_work)
        self._inbox: Any = None
        self._runs = 0
        self._count(in_flight=0)

    def run(self, tasks: Sequence[Task[R]], watch: Watch = ignore) -> Iterator[tuple[int, R]]:
        """All over the cluster; an interrupt tells them all to stop, and what they have by then still comes.

        What several tasks share is sent once.
        """
        ray, errors = self._ray, self._ray.exceptions
        self._runs += 1
        messages = _Messages(ray, None if watch is ignore else self._open_inbox(), self._runs, watch)
        running, waiting, looked = dict[Any, int](), deque(enumerate(_shared(ray, tasks))), 0.0
        try:
            while True:
                try:
                    if time.monotonic() - looked >= LISTEN_SECONDS:
                        self._count(len(running))
                        messages.poll()
                        looked = time.monotonic()
                    while len(running) < QUEUED_EACH * self.workers and waiting:
                        number, (function, arguments) = waiting.popleft()
                        sent = self._remote.remote(messages.inbox, self._runs, number, function, *arguments)
                        running[sent] = number
                    if not running:
                        break
                    done, _ = ray.wait(list(running), timeout=LISTEN_SECONDS)
                    if done:  # and all others that have ended by now
                        done, _ = ray.wait(list(running), num_returns=len(running), timeout=0)
                except KeyboardInterrupt:
                    waiting.clear()
                    for reference in running:
                        ray.cancel(reference)
                    continue
                for reference in done:
                    number = running.pop(reference)
                    try:
                        told, result = ray.get(reference)
                    except errors.TaskCancelledError:
                        continue
                    for place, message in enumerate(told):
                        messages.receive(self._runs, number, place, message)
                    yield number, result
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

    def _open_inbox(self) -> Any:
        """Where tasks write what they tell while they run; one serves all runs, and no core is kept for it.

        It is on this process's node, so that it can't die without it.
        """
        if self._inbox is None:
            here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                self._ray.get_runtime_context().get_node_id(), soft=False
            )
            # What needs nothing is sent to any node first, be it one that has died a moment ago: so it needs one byte.
            options = {"num_cpus": 0, "memory": 1, "scheduling_strategy": here}
            self._inbox = self._ray.remote(**options)(_Inbox).remote()
        return self._inbox


def _shared(ray: Any, tasks: Sequence[Task[Any]]) -> list[Task[Any]]:
    """Put each argument that several tasks have, by identity, into the object store once."""
    every = [one for _, arguments in tasks for one in arguments if not isinstance(one, PLAIN)]
    uses, put = Counter(map(id, every)), dict[int, Any]()
    for one in every:
        if uses[id(one)] > 1 and id(one) not in put:
            put[id(one)] = ray.put(one)
    return [(function, tuple(put.get(id(one), one) for one in arguments)) for function, arguments in tasks]


class _Messages:
    """Passes on what the tasks of a run tell, once: it comes by the inbox, and again with a task's result.

    So all is heard though the inbox may be lost with its node, and nothing twice though a task may be begun again.
    """

    def __init__(self, ray: Any, inbox: Any, run: int, watch: Watch) -> None:
        self.inbox = inbox
        self._ray = ray
        self._run = run
        self._watch = watch
        self._places: Counter[int] = Counter()
        self._asked: Any = None

    def poll(self) -> None:
        """Hear what is in the inbox, without waiting for it."""
        if self.inbox is None:
            return
        self._asked = self._asked or self.inbox.take.remote()
        if self._ray.wait([self._asked], timeout=0)[0]:
            asked, self._asked = self._asked, None
            try:
                messages = self._ray.get(asked)
            except self._ray.exceptions.RayActorError:
                self.inbox = None
                return
            for one in messages:
                self.receive(*one)

    def receive(self, run: int, number: int, place: int, message: Any) -> None:
        """A task's message, with its place among the messages of that task."""
        if run == self._run and place >= self._places[number]:
            self._places[number] = place + 1
            self._watch(number, message)


class _Inbox:
    """An actor that keeps what tasks tell until it is taken."""

    def __init__(self) -> None:
        self._messages: list[tuple[Any, ...]] = []

    def tell(self, *messages: Any) -> None:
        self._messages.append(messages)

    def take(self) -> list[tuple[Any, ...]]:
        messages, self._messages = self._messages, []
        return messages


def _work(inbox: Any, run: int, number: int, function: Any, *arguments: Any) -> tuple[list[Any], Any]:
    """One task, on some node: what it messages, and its result. An interrupt stops it by its link."""
    messages: list[Any] = []

    def tell(message: Any) -> None:
        if inbox is not None:
            inbox.tell.remote(run, number, len(messages), message)
        messages.append(message)

    link = Link(tell)
    before = signal.signal(signal.SIGINT, lambda *received: link.stop.set())  # so does a task hear that it is cancelled
    try:
        return messages, function(*arguments, link)
    finally:
        signal.signal(signal.SIGINT, before)
